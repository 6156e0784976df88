//! What a voter keeps on disk: the metadata log, its snapshots, and `quorum-state`. Opening reads them into the image.

use super::snapshot;
use crate::core::controller::Image;
use crate::core::epochs::EpochCache;
use crate::core::quorum::RecoveredLog;
use crate::core::quorum::records::{ElectionState, SnapshotId};
use crate::core::types::{BrokerId, Epoch, Id, Millis, Offset};
use crate::log::batch::Batches;
use crate::log::records::Records;
use crate::log::storage::{Storage, read_exact_at, read_file, replace_file};
use crate::log::{Files, Fs, Log, LogConfig, LogError, OpenHints, ReadError};
use crate::wire::records::{self, quorum_state};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of the metadata log below its log directory.
pub const METADATA_DIR: &str = "__cluster_metadata-0";

/// The file with the newest epoch and vote.
const QUORUM_STATE: &str = "quorum-state";

/// Bytes of `quorum-state` at most.
const QUORUM_STATE_LIMIT: u64 = 1 << 20;

/// Bytes of the log read at a time.
const READ_BYTES: u32 = 4 << 20;

/// Snapshots that are kept.
const SNAPSHOTS_KEPT: usize = 2;

/// The metadata on disk cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Damaged {
    /// The disk refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A snapshot holds something else.
    #[error("{path} is damaged ({why}); if an older snapshot is beside it, move this one away and start again", path = path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The log holds something else.
    #[error("the metadata log in {dir} is damaged at offset {offset} ({why}); restore the directory from a copy", dir = dir.display(), offset = offset.0)]
    Records {
        /// The directory.
        dir: PathBuf,
        /// The record.
        offset: Offset,
        /// What is wrong.
        why: String,
    },
    /// `quorum-state` holds something else.
    #[error("{path} is damaged ({why}); restore it from a copy", path = path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// See the module.
pub struct Store {
    /// The metadata log.
    pub log: Log<Fs>,
    /// Epochs and the offset where each begins.
    epochs: EpochCache,
    snapshots: Vec<(SnapshotId, u64)>,
    /// As stored.
    pub state: ElectionState,
    files: Files<Fs>,
    voters: Vec<BrokerId>,
}

impl Store {
    /// Opens the metadata in log directory `dir`, making it if there is none. `clean`: the last stop was orderly.
    pub fn open(
        files: &Files<Fs>,
        dir: &Path,
        cluster_id: &str,
        voters: Vec<BrokerId>,
        clean: bool,
        config: LogConfig,
        now: Millis,
    ) -> Result<(Store, Image), Damaged> {
        let (dir, config) = (dir.join(METADATA_DIR), Arc::new(config));
        let storage = files.storage();
        let fresh = match storage.list(&dir) {
            Ok(_) => false,
            Err(e) if e.kind() == io::ErrorKind::NotFound => true,
            Err(e) => return Err(LogError::io("list", &dir, e).into()),
        };
        if fresh {
            let log = Log::create(files, dir, Id::ONE, Offset(0), config);
            let (epochs, snapshots) = (EpochCache::default(), Vec::new());
            let store = Store { log, epochs, snapshots, state: ElectionState::default(), files: files.clone(), voters };
            return Ok((store, Image::empty(cluster_id)));
        }
        let (base, mut image) = newest_snapshot(storage, &dir, cluster_id)?;
        let start = base.as_ref().map_or(Offset(0), |id| id.end);
        let hints = OpenHints { clean, survived: false, recovery_point: Offset(0), log_start: Offset(0), replay_from: Offset(i64::MAX) };
        let opened = Log::open(files, dir, hints, config, now, &mut |_| {})?;
        let mut log = opened.log;
        if log.end() < start {
            // The snapshot is newer than all of the log: the log goes on where it ends.
            let dropped = log.truncate_fully_and_start_at(start, now)?;
            crate::log::remove_files(storage, &dropped)?;
        }
        let epochs = replay(&log, start.max(log.start()), &mut image)?;
        let state = read_state(storage, log.dir())?;
        let snapshots = snapshot::list(storage, log.dir())?;
        Ok((Store { log, epochs, snapshots, state, files: files.clone(), voters }, image))
    }

    /// What the rules are to know of the log as it was found.
    pub fn recovered(&self) -> RecoveredLog {
        let (start, end) = (self.log.start(), self.log.end());
        let before = self.snapshots.iter().find(|(id, _)| id.end == start).map(|(id, _)| id.epoch);
        RecoveredLog {
            start,
            end,
            durable: self.log.recovery_point(),
            base_epoch: before.or((start == Offset(0)).then_some(Epoch(0))),
            epochs: self.epochs.entries().to_vec(),
            snapshots: self.snapshots.clone(),
        }
    }

    /// Makes `state` the content of `quorum-state`, on disk.
    pub fn write_state(&self, state: &ElectionState) -> Result<(), LogError> {
        let dir = self.log.dir();
        let path = dir.join(QUORUM_STATE);
        let text =
            quorum_state::encode_v0(state, &self.voters).map_err(|e| LogError::BadFile { path: path.clone(), why: e.to_string() })?;
        self.files.storage().create_dir(dir).map_err(|e| LogError::io("create", dir, e))?;
        replace_file(self.files.storage(), &path, text.as_bytes(), true).map_err(|e| LogError::io("write", &path, e))
    }

    /// A snapshot covers everything below `end`: whole segments below go, and so do older snapshots. Returns files to remove.
    pub fn forget_below(&mut self, end: Offset) -> Result<Vec<PathBuf>, LogError> {
        let dir = self.log.dir().to_owned();
        let mut paths = self.log.advance_start(end)?.paths;
        let snapshots = snapshot::list(self.files.storage(), &dir)?;
        let old = snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
        paths.extend(snapshots[..old].iter().map(|(id, _)| id.path(&dir)));
        Ok(paths)
    }
}

fn newest_snapshot<S: Storage>(storage: &S, dir: &Path, cluster_id: &str) -> Result<(Option<SnapshotId>, Image), Damaged> {
    for (id, _) in snapshot::list(storage, dir)?.into_iter().rev() {
        if let Some(image) = snapshot::read(storage, dir, &id, cluster_id)? {
            return Ok((Some(id), image));
        }
        tracing::warn!(snapshot = %id.path(dir).display(), "skipping a snapshot that was never finished");
    }
    Ok((None, Image::empty(cluster_id)))
}

/// Applies everything from `from` on; returns the epochs of the whole log.
fn replay(log: &Log<Fs>, from: Offset, image: &mut Image) -> Result<EpochCache, Damaged> {
    let mut next = log.start();
    let mut epochs = EpochCache::default();
    let mut bytes = Vec::new();
    let damaged = |offset, why: String| Damaged::Records { dir: log.dir().to_owned(), offset, why };
    while let Some(range) = log.read(next, READ_BYTES, log.end()).map_err(|e| match e {
        ReadError::Log(e) => Damaged::Log(e),
        ReadError::OutOfRange { .. } => damaged(next, e.to_string()),
    })? {
        bytes.resize(range.len as usize, 0);
        read_exact_at(&*range.file, range.position, &mut bytes).map_err(|e| LogError::io("read", log.dir(), e))?;
        for batch in Batches::new(&bytes) {
            // The range may end inside a batch; the next one starts with it.
            let Ok(batch) = batch else { break };
            let last = batch.header.last_offset();
            if last >= from && !batch.header.is_control() {
                for record in Records::new(&batch.header, batch.payload()) {
                    let record = record.map_err(|e| damaged(next, format!("{e:?}")))?;
                    let (decoded, _) =
                        records::decode(record.value.unwrap_or_default()).map_err(|e| damaged(record.offset, e.to_string()))?;
                    if record.offset >= from {
                        image.apply(record.offset, &decoded).map_err(|e| damaged(record.offset, e.to_string()))?;
                    }
                }
            }
            if last >= from {
                image.advance(last, batch.header.leader_epoch);
            }
            epochs.assign(batch.header.leader_epoch, batch.header.base_offset);
            next = last + 1;
        }
    }
    Ok(epochs)
}

fn read_state<S: Storage>(storage: &S, dir: &Path) -> Result<ElectionState, Damaged> {
    let path = dir.join(QUORUM_STATE);
    let bytes = match read_file(storage, &path, QUORUM_STATE_LIMIT) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(ElectionState::default()),
        Err(e) => return Err(LogError::io("read", &path, e).into()),
    };
    let damaged = |why: String| Damaged::State { path: path.clone(), why };
    let text = std::str::from_utf8(&bytes).map_err(|e| damaged(e.to_string()))?;
    quorum_state::decode(text).map_err(|e| damaged(e.to_string()))
}
