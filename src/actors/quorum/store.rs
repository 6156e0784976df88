//! What a voter keeps on disk: the metadata log, its snapshots, and `quorum-state`. Opening reads them into the image.

use super::snapshot;
use crate::core::controller::Image;
use crate::core::epochs::EpochCache;
use crate::core::quorum::RecoveredLog;
use crate::core::quorum::records::{ElectionState, SnapshotId};
use crate::core::types::{BrokerId, Epoch, Id, Millis, Offset};
use crate::log::batch::Batches;
use crate::log::records::Records;
use crate::log::storage::{File, Storage, read_exact_at, read_file, replace_file, write_at};
use crate::log::{Files, Fs, Log, LogConfig, LogError, OpenHints, ReadError};
use crate::wire::records::{self, quorum_state};
use bytes::Bytes;
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
    /// Opens the metadata in log directory `dir`, making it if there is none. `clean`: the last stop was orderly. The image holds what is committed
    /// for sure: everything if this node is the only voter, else what the newest snapshot has.
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
        let alone = voters.len() == 1;
        let mut epochs = replay(&log, start.max(log.start()), alone.then_some(&mut image))?;
        let last_epoch = epochs.latest().unwrap_or(Epoch(0));
        if base.is_some_and(|id| log.end() < id.end || last_epoch < id.epoch) {
            // The snapshot goes beyond the log: it was loaded by a process that died before it had dropped the log.
            let dropped = log.truncate_fully_and_start_at(start, now)?;
            crate::log::remove_files(storage, &dropped)?;
            epochs = EpochCache::default();
        }
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

    /// There is a new snapshot: all but the newest go, and so does the log below the oldest that stays, which who is a little behind can still fetch
    /// from. Returns files to remove.
    pub fn forget_old(&mut self) -> Result<Vec<PathBuf>, LogError> {
        let dir = self.log.dir().to_owned();
        let snapshots = snapshot::list(self.files.storage(), &dir)?;
        let old = snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
        let mut paths = match snapshots.get(old) {
            Some((id, _)) if snapshots.len() >= SNAPSHOTS_KEPT && id.end <= self.log.end() => self.log.advance_start(id.end)?.paths,
            _ => Vec::new(),
        };
        paths.extend(snapshots[..old].iter().map(|(id, _)| id.path(&dir)));
        Ok(paths)
    }
}

impl Store {
    /// Batches from `from` on and below `upto`, of about so many bytes.
    pub fn read(&self, from: Offset, max_bytes: u32, upto: Offset) -> Result<Bytes, LogError> {
        let dir = self.log.dir();
        let range = self.log.read(from, max_bytes, upto).map_err(|e| match e {
            ReadError::Log(e) => e,
            ReadError::OutOfRange { .. } => LogError::BadFile { path: dir.to_owned(), why: e.to_string() },
        })?;
        let Some(range) = range else { return Ok(Bytes::new()) };
        let mut bytes = vec![0; range.len as usize];
        read_exact_at(&*range.file, range.position, &mut bytes).map_err(|e| LogError::io("read", dir, e))?;
        Ok(bytes.into())
    }

    /// Appends batches as the leader has them.
    pub fn append_fetched(&mut self, bytes: &[u8], now: Millis) -> Result<(), LogError> {
        let mut at = 0;
        while let Some(appended) = self.log.append_as_follower(&bytes[at..], now)? {
            at += appended.bytes;
        }
        Ok(())
    }

    /// Cuts the log to end at `to`.
    pub fn truncate(&mut self, to: Offset, now: Millis) -> Result<(), LogError> {
        let dropped = self.log.truncate_to(to, now)?;
        crate::log::remove_files(self.files.storage(), &dropped)
    }

    /// Writes a part of a snapshot that is being loaded.
    pub fn write_part(&self, id: SnapshotId, position: u64, bytes: &[u8]) -> Result<(), LogError> {
        let path = self.part(id);
        let failed = |e| LogError::io("write", &path, e);
        let storage = self.files.storage();
        storage.create_dir(self.log.dir()).map_err(failed)?;
        let file = if position == 0 { storage.create(&path) } else { storage.open(&path) }.map_err(failed)?;
        write_at(&file, position, &[], bytes).map_err(failed)
    }

    /// Forgets what came of a snapshot.
    pub fn drop_part(&self, id: SnapshotId) {
        if let Err(e) = self.files.storage().remove(&self.part(id)) {
            tracing::debug!("a part of a snapshot stays behind: {e}");
        }
    }

    /// What came of the snapshot is all of it: it gets its name, the log starts anew at its end, older snapshots go. Returns its image.
    pub fn load(&mut self, id: SnapshotId, cluster_id: &str, now: Millis) -> Result<Image, Damaged> {
        let (dir, part) = (self.log.dir().to_owned(), self.part(id));
        let storage = *self.files.storage();
        let failed = |e| LogError::io("finish", &part, e);
        storage.open(&part).and_then(|file| file.sync_data()).map_err(failed)?;
        storage.rename(&part, &id.path(&dir)).and_then(|()| storage.sync_dir(&dir)).map_err(failed)?;
        let whole = snapshot::read(&storage, &dir, &id, cluster_id)?;
        let image = whole.ok_or_else(|| Damaged::Snapshot { path: id.path(&dir), why: "it has no footer".into() })?;
        let dropped = self.log.truncate_fully_and_start_at(id.end, now)?;
        crate::log::remove_files(&storage, &dropped)?;
        for (older, _) in snapshot::list(&storage, &dir)?.into_iter().filter(|(known, _)| *known < id) {
            storage.remove(&older.path(&dir)).map_err(|e| LogError::io("remove", &older.path(&dir), e))?;
        }
        Ok(image)
    }

    /// Bytes of a snapshot.
    pub fn read_snapshot(&self, id: SnapshotId, position: u64, max_bytes: u32) -> Result<Bytes, LogError> {
        let path = id.path(self.log.dir());
        let failed = |e| LogError::io("read", &path, e);
        let file = self.files.storage().open(&path).map_err(failed)?;
        let left = file.len().map_err(failed)?.saturating_sub(position);
        let mut bytes = vec![0; left.min(u64::from(max_bytes)) as usize];
        read_exact_at(&file, position, &mut bytes).map_err(failed)?;
        Ok(bytes.into())
    }

    fn part(&self, id: SnapshotId) -> PathBuf {
        let mut path = id.path(self.log.dir()).into_os_string();
        path.push(".part");
        path.into()
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

/// Applies everything from `from` on to the image, if there is one; returns the epochs of the whole log.
fn replay(log: &Log<Fs>, from: Offset, mut image: Option<&mut Image>) -> Result<EpochCache, Damaged> {
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
            if let Some(image) = image.as_deref_mut().filter(|_| last >= from && !batch.header.is_control()) {
                for record in Records::new(&batch.header, batch.payload()) {
                    let record = record.map_err(|e| damaged(next, format!("{e:?}")))?;
                    let (decoded, _) =
                        records::decode(record.value.unwrap_or_default()).map_err(|e| damaged(record.offset, e.to_string()))?;
                    if record.offset >= from {
                        image.apply(record.offset, &decoded).map_err(|e| damaged(record.offset, e.to_string()))?;
                    }
                }
            }
            if let Some(image) = image.as_deref_mut().filter(|_| last >= from) {
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
