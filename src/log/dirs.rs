//! What a log directory holds besides logs: its lock, `meta.properties`, the marker of an orderly stop; and the names of partition directories and
//! the file in each that says whose it is. Formats: reference sections 5.1 and 5.3.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, fcntl_lock};
use serde::{Deserialize, Serialize};

use super::error::LogError;
use super::storage::{Storage, read_file, replace_file};
use crate::core::types::{BrokerId, DirectoryId, Id, TopicId};

/// The lock file.
pub const LOCK_FILE: &str = ".lock";
/// The marker of an orderly stop.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
/// Cluster, node and directory ids.
pub const META_PROPERTIES_FILE: &str = "meta.properties";
/// The topic id of a partition directory.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";
/// Bytes that such a file has at most.
const LIMIT: u64 = 64 * 1024;

/// Files locked by this process: a POSIX lock does not keep out the process that has it.
static LOCKED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// The lock on a log directory, until dropped. A POSIX record lock, as Java's `FileLock` takes, so that other brokers' tools respect ours.
#[derive(Debug)]
pub struct DirLock {
    file: std::fs::File,
    id: (u64, u64),
}

impl DirLock {
    /// Takes the lock. Error: [`LogError::Locked`] if this or another process has it.
    pub fn take(dir: &Path) -> Result<DirLock, LogError> {
        let path = dir.join(LOCK_FILE);
        let error = |doing| {
            let path = path.clone();
            move |e: io::Error| LogError::io(doing, &path, e)
        };
        let locked = || LogError::Locked { dir: dir.to_owned() };
        let mut held = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
        // Closing any descriptor of a file gives up this process's locks on it: look before opening it a second time.
        if let Ok(meta) = std::fs::metadata(&path)
            && held.contains(&(meta.dev(), meta.ino()))
        {
            return Err(locked());
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(error("open"))?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => return Err(locked()),
            Err(e) => return Err(error("lock")(e.into())),
        }
        let meta = file.metadata().map_err(error("look at"))?;
        let id = (meta.dev(), meta.ino());
        held.push(id);
        Ok(DirLock { file, id })
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        let mut held = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|id| *id != self.id);
        // Closing the file would do; done here so that the list above and the lock change together.
        let _ = fcntl_lock(&self.file, FlockOperation::NonBlockingUnlock);
    }
}

/// Key=value lines, `#` comments; a line without `=` is an error.
fn properties(path: &Path, bytes: Vec<u8>) -> Result<BTreeMap<String, String>, LogError> {
    let bad = |why: String| LogError::BadFile { path: path.to_owned(), why };
    let text = String::from_utf8(bytes).map_err(|_| bad("not UTF-8 text".into()))?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(['#', '!']));
    lines
        .map(|line| match line.split_once(['=', ':']) {
            // Java escapes these when it writes values.
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().replace("\\:", ":").replace("\\=", "="))),
            None => Err(bad(format!("line {line:?} is not of the form key=value"))),
        })
        .collect()
}

fn read<S: Storage>(storage: &S, path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    match read_file(storage, path, LIMIT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Err(LogError::BadFile { path: path.to_owned(), why: e.to_string() }),
        Err(e) => Err(LogError::io("read", path, e)),
    }
}

/// What `meta.properties` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// `cluster.id`, as it is written.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: BrokerId,
    /// `directory.id`; None in a directory formatted before there were such.
    pub directory_id: Option<DirectoryId>,
}

impl MetaProperties {
    /// Reads the file of that log directory; None if there is none. Error: [`LogError::BadFile`].
    pub fn read<S: Storage>(storage: &S, dir: &Path) -> Result<Option<MetaProperties>, LogError> {
        let path = dir.join(META_PROPERTIES_FILE);
        let Some(bytes) = read(storage, &path)? else { return Ok(None) };
        let values = properties(&path, bytes)?;
        let bad = |why: String| LogError::BadFile { path: path.clone(), why };
        let get = |key: &str| values.get(key).ok_or_else(|| bad(format!("no {key}")));
        let version = get("version")?;
        if version != "1" {
            return Err(bad(format!("version {version}; this broker reads version 1")));
        }
        let node = get("node.id")?;
        let directory = values.get("directory.id");
        Ok(Some(MetaProperties {
            cluster_id: get("cluster.id")?.clone(),
            node_id: BrokerId(node.parse().map_err(|_| bad(format!("node.id={node} is not a number")))?),
            directory_id: directory.map(|id| id.parse().map_err(|e| bad(format!("directory.id={id}: {e}")))).transpose()?,
        }))
    }

    /// Writes the file, safe against a power cut.
    pub fn write<S: Storage>(&self, storage: &S, dir: &Path) -> Result<(), LogError> {
        let path = dir.join(META_PROPERTIES_FILE);
        let directory = self.directory_id.map(|id| format!("directory.id={id}\n")).unwrap_or_default();
        let text = format!("cluster.id={}\n{directory}node.id={}\nversion=1\n", self.cluster_id, self.node_id.0);
        replace_file(storage, &path, text.as_bytes(), true).map_err(|e| LogError::io("write", &path, e))
    }
}

/// The marker of an orderly stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanShutdown {
    version: i32,
    /// The broker epoch it stopped in; -1 if it had none.
    #[serde(rename = "brokerEpoch")]
    pub broker_epoch: i64,
}

impl CleanShutdown {
    /// A marker with that epoch.
    pub fn new(broker_epoch: i64) -> CleanShutdown {
        CleanShutdown { version: 0, broker_epoch }
    }

    /// Takes the marker away and says what was in it; None if the last stop was not orderly. A marker that cannot be understood counts, as in
    /// Kafka, as an orderly stop in an unknown epoch (-1). The directory is synced, so that the marker does not come back.
    pub fn take<S: Storage>(storage: &S, dir: &Path) -> Result<Option<CleanShutdown>, LogError> {
        let path = dir.join(CLEAN_SHUTDOWN_FILE);
        let Some(bytes) = read(storage, &path)? else { return Ok(None) };
        storage.remove(&path).and_then(|()| storage.sync_dir(dir)).map_err(|e| LogError::io("remove", &path, e))?;
        Ok(Some(serde_json::from_slice(&bytes).unwrap_or(CleanShutdown::new(-1))))
    }

    /// Writes the marker; the last thing of an orderly stop.
    pub fn write<S: Storage>(&self, storage: &S, dir: &Path) -> Result<(), LogError> {
        let path = dir.join(CLEAN_SHUTDOWN_FILE);
        let text = serde_json::to_vec(self).map_err(|e| LogError::io("write", &path, e.into()))?;
        replace_file(storage, &path, &text, true).map_err(|e| LogError::io("write", &path, e))
    }
}

/// Writes `partition.metadata`; it is synced with the partition's first data.
pub fn write_partition_metadata<S: Storage>(storage: &S, dir: &Path, topic_id: TopicId) -> Result<(), LogError> {
    let path = dir.join(PARTITION_METADATA_FILE);
    let text = format!("version: 0\ntopic_id: {topic_id}");
    replace_file(storage, &path, text.as_bytes(), false).map_err(|e| LogError::io("write", &path, e))
}

/// The topic id of a partition directory; None without the file, or with an empty one, which a power cut may leave.
pub fn read_partition_metadata<S: Storage>(storage: &S, dir: &Path) -> Result<Option<TopicId>, LogError> {
    let path = dir.join(PARTITION_METADATA_FILE);
    let Some(bytes) = read(storage, &path)?.filter(|b| !b.is_empty()) else { return Ok(None) };
    let values = properties(&path, bytes)?;
    let bad = |why: String| LogError::BadFile { path: path.clone(), why };
    match values.get("version").map(String::as_str) {
        Some("0") => {}
        other => return Err(bad(format!("version {}; this broker reads version 0", other.unwrap_or("missing")))),
    }
    let id = values.get("topic_id").ok_or_else(|| bad("no topic_id".into()))?;
    id.parse().map(Some).map_err(|e| bad(format!("topic_id {id}: {e}")))
}

/// What a directory below a log directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirName {
    /// The log of a partition: topic, partition.
    Log(String, i32),
    /// A copy on its way from another log directory (`-future`).
    Future(String, i32),
    /// A deleted partition (`-delete`): to be removed.
    Delete,
    /// A partition that the cluster did not know (`-stray`): left for a person.
    Stray,
    /// Nothing of a broker's.
    Other,
}

impl DirName {
    /// Reads the name of a directory.
    pub fn parse(name: &str) -> DirName {
        let log = |name: &str| {
            let (topic, partition) = name.rsplit_once('-')?;
            let partition: i32 = partition.parse().ok().filter(|p| *p >= 0)?;
            (!topic.is_empty()).then(|| (topic.to_owned(), partition))
        };
        // `<topic>-<partition>.<32 hex digits>-<why>`
        let marked = |suffix: &str| {
            let (name, unique) = name.strip_suffix(suffix)?.rsplit_once('.')?;
            (unique.len() == 32 && unique.bytes().all(|b| b.is_ascii_hexdigit())).then(|| log(name)).flatten()
        };
        if marked("-delete").is_some() {
            DirName::Delete
        } else if marked("-stray").is_some() {
            DirName::Stray
        } else if let Some((topic, partition)) = marked("-future") {
            DirName::Future(topic, partition)
        } else if let Some((topic, partition)) = log(name) {
            DirName::Log(topic, partition)
        } else {
            DirName::Other
        }
    }
}

/// Name of a partition's directory.
pub fn log_dir_name(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// Name for a partition's directory that is to be removed (`why` = "delete") or set aside ("stray"); `unique` is a random number. A long topic name
/// is cut so that the name fits in the 255 bytes of a file name.
pub fn marked_dir_name(topic: &str, partition: i32, unique: Id, why: &str) -> String {
    let end = format!("-{partition}.{:032x}-{why}", unique.0);
    // Topic names are ASCII; others are kept whole, for the file system to refuse.
    let keep = topic.len().min(255 - end.len());
    format!("{}{end}", topic.get(..keep).unwrap_or(topic))
}

/// Path of a partition's directory.
pub fn partition_dir(dir: &Path, topic: &str, partition: i32) -> PathBuf {
    dir.join(log_dir_name(topic, partition))
}
