//! The log directories at start: locked, formatted on first use, their owner checked, what lies in them listed.

use crate::actors::log_io;
use crate::actors::log_io::checkpoints::{CLEANED, LOG_STARTS, RECOVERY_POINTS, read};
use crate::actors::partition::replica::Found;
use crate::actors::shard::{Dir, Disk};
use crate::cli::{StorageError, format_directories, random_id};
use crate::config::Config;
use crate::core::controller::records::BrokerEpoch;
use crate::core::types::{BrokerId, DirectoryId, Id, Millis, Offset};
use crate::log::dirs::{CleanShutdown, DirLock, DirName, MetaProperties, marked_dir_name};
use crate::log::survival::same_mount_as_before;
use crate::log::{Fs, LogError};
use crate::rt::clock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A log directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadDirectory {
    /// It cannot be made.
    #[error("cannot make the log directory {dir}: {source}; choose another with log.dirs", dir = dir.display())]
    Make {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Locked by another process, or the disk refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Several nodes would each make a cluster of its own.
    #[error(
        "the log directories are not formatted, and with several voters nobody can choose the cluster's id alone: run `understudy storage random-uuid` once, then `understudy storage format -t ID -c FILE` on every node"
    )]
    NoClusterId,
    /// It belongs to another cluster or node.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// One directory that is ours.
pub struct Prepared {
    /// Its place in [`AllPrepared::dirs`].
    pub index: usize,
    /// Where.
    pub path: PathBuf,
    /// Its identity.
    pub id: DirectoryId,
    /// What the last orderly stop left; `None` after a crash or in a new directory.
    pub clean: Option<CleanShutdown>,
    /// Whether everything that the last run wrote is there, synced or not.
    pub survived: bool,
}

/// Every directory of this node.
pub struct AllPrepared {
    /// For partitions, in the order of `log.dirs`; the metadata directory last if it is none of them.
    pub dirs: Vec<Prepared>,
    /// The metadata log's place in `dirs`.
    pub metadata: usize,
    /// How many of `dirs` take partitions.
    pub for_partitions: usize,
    /// The cluster's id.
    pub cluster_id: String,
    /// Held as long as the process uses the directories.
    pub locks: Vec<DirLock>,
}

/// Locks the directories, gives new ones the cluster's and this node's id, refuses foreign ones.
pub fn prepare(config: &Config) -> Result<AllPrepared, BadDirectory> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in config.log_directories() {
        std::fs::create_dir_all(&path).map_err(|source| BadDirectory::Make { dir: path.clone(), source })?;
        let path = path.canonicalize().map_err(|source| BadDirectory::Make { dir: path.clone(), source })?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let for_partitions = paths.len();
    let metadata = config.metadata_directory();
    std::fs::create_dir_all(&metadata).map_err(|source| BadDirectory::Make { dir: metadata.clone(), source })?;
    let metadata = metadata.canonicalize().map_err(|source| BadDirectory::Make { dir: metadata.clone(), source })?;
    let at = paths.iter().position(|path| *path == metadata).unwrap_or_else(|| {
        paths.push(metadata);
        paths.len() - 1
    });
    let locks = paths.iter().map(|path| DirLock::take(path)).collect::<Result<_, _>>()?;
    let cluster_id = cluster_id(&paths, config)?;
    format_directories(&paths, &cluster_id, BrokerId(config.node_id))?;
    let dirs = paths.into_iter().enumerate().map(|(index, path)| {
        let found = MetaProperties::read(&Fs, &path)?;
        let id = found.and_then(|found| found.directory_id).unwrap_or(Id::ZERO);
        Ok(Prepared { index, id, clean: CleanShutdown::take(&Fs, &path)?, survived: same_mount_as_before(&path)?, path })
    });
    let dirs = dirs.collect::<Result<_, BadDirectory>>()?;
    Ok(AllPrepared { dirs, metadata: at, for_partitions, cluster_id, locks })
}

impl AllPrepared {
    /// The metadata log's directory.
    pub fn metadata(&self) -> &Prepared {
        &self.dirs[self.metadata]
    }

    /// Identities of the directories that take partitions.
    pub fn directory_ids(&self) -> Vec<DirectoryId> {
        self.dirs[..self.for_partitions].iter().map(|dir| dir.id).collect()
    }

    /// The registration in which the last process stopped in good order; `None` if a directory lacks its marker, or they disagree.
    pub fn previous_epoch(&self) -> Option<BrokerEpoch> {
        let mut epochs = self.dirs[..self.for_partitions].iter().map(|dir| dir.clean.map(|clean| clean.broker_epoch));
        let first = epochs.next()?.filter(|epoch| *epoch >= 0)?;
        epochs.all(|epoch| epoch == Some(first)).then_some(BrokerEpoch(first))
    }
}

/// As configured, as found in a directory, or a new one.
fn cluster_id(paths: &[PathBuf], config: &Config) -> Result<String, BadDirectory> {
    if let Some(id) = &config.understudy_cluster_id {
        return Ok(id.clone());
    }
    for path in paths {
        if let Some(found) = MetaProperties::read(&Fs, path)? {
            return Ok(found.cluster_id);
        }
    }
    // Each would make an id of its own, and they would not talk to each other.
    if config.endpoints.voters.len() > 1 {
        return Err(BadDirectory::NoClusterId);
    }
    Ok(random_id().to_string())
}

/// Starts the directories' threads and lists the partitions that lie there.
pub fn open(prepared: &AllPrepared, config: &Config) -> Result<Disk, LogError> {
    let mut found = HashMap::new();
    let mut dirs = Vec::new();
    for dir in &prepared.dirs {
        let io = log_io::start(&dir.path, config.num_recovery_threads_per_data_dir as usize)?;
        list(dir, &io, &mut found)?;
        dirs.push(Dir { id: dir.id, io, partitions: AtomicUsize::new(0) });
    }
    Ok(Disk::new(dirs, prepared.for_partitions, found))
}

type FoundPartitions = HashMap<(Arc<str>, i32), (usize, Found)>;

fn list(dir: &Prepared, io: &log_io::Handle, found: &mut FoundPartitions) -> Result<(), LogError> {
    let recovery = read(&dir.path.join(RECOVERY_POINTS))?;
    let starts = read(&dir.path.join(LOG_STARTS))?;
    let cleaned = read(&dir.path.join(CLEANED))?;
    let entries = std::fs::read_dir(&dir.path).map_err(|e| LogError::io("list", &dir.path, e))?;
    for entry in entries {
        let entry = entry.map_err(|e| LogError::io("list", &dir.path, e))?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        match DirName::parse(&name) {
            DirName::Log(topic, _) if topic == "__cluster_metadata" => {}
            DirName::Log(topic, partition) => {
                let key = (Arc::from(topic), partition);
                let here = Found {
                    clean: dir.clean.is_some(),
                    survived: dir.survived,
                    recovery_point: recovery.get(&key).copied().unwrap_or(Offset(0)),
                    log_start: starts.get(&key).copied(),
                    cleaned_to: cleaned.get(&key).copied(),
                };
                found.insert(key, (dir.index, here));
            }
            // The last run was interrupted before it could finish deleting.
            DirName::Delete => io.tell(log_io::Job::Remove { path: entry.path(), at: Millis(clock::now().0) }),
            DirName::Future(..) | DirName::Stray | DirName::Other => {}
        }
    }
    Ok(())
}

/// Sets aside what no topic of the metadata claims: deleted while this node was down, or put there by somebody.
pub fn set_strays_aside(disk: &Disk) {
    for (dir, topic, partition) in disk.unclaimed() {
        let path = disk.path(dir, &topic, partition);
        let aside: &Path = &disk.dirs[dir].io.dir.join(marked_dir_name(&topic, partition, random_id(), "stray"));
        match std::fs::rename(&path, aside) {
            Ok(()) => tracing::warn!(
                dir = %path.display(),
                "the metadata knows no such partition: set aside as {}; delete it if nobody misses it",
                aside.display()
            ),
            Err(e) => {
                tracing::warn!(dir = %path.display(), "the metadata knows no such partition, and its directory cannot be set aside: {e}")
            }
        }
    }
}
