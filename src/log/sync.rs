//! What has to be written through to the disk so that a log is safe up to an offset: taken from the log by its owner, synced by the directory's I/O
//! thread while the log goes on being appended to, and reported back.

use std::io;
use std::path::PathBuf;

use super::error::LogError;
use super::files::{Files, Handle};
use super::partition_log::Log;
use super::segment::path_of;
use super::storage::{File, Storage};
use crate::core::types::Offset;

/// Files to sync, and how far the log is on disk after that.
pub struct SyncTarget<S: Storage> {
    files: Files<S>,
    logs: Vec<Handle<S>>,
    /// Small files that are only opened to be synced: indexes of closed segments, the topic id.
    others: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
    upto: Offset,
    names: u64,
    generation: u64,
}

impl<S: Storage> Log<S> {
    /// What to sync for everything appended so far; None if it is on disk.
    pub fn sync_target(&self) -> Option<SyncTarget<S>> {
        let active = self.active.as_ref()?;
        if self.recovery_point >= self.end && self.names_synced == self.names {
            return None;
        }
        // Segments that end after the recovery point: the one that holds it and the later ones.
        let first = self.closed.partition_point(|s| s.base <= self.recovery_point).saturating_sub(1);
        let mut target = SyncTarget {
            files: self.files.clone(),
            logs: Vec::with_capacity(1),
            others: Vec::new(),
            dirs: Vec::new(),
            upto: self.end,
            names: self.names,
            generation: self.generation,
        };
        for (at, segment) in self.closed.iter().enumerate().skip(first) {
            let end = self.segment(at + 1).map_or(self.end, |next| next.base);
            if end > self.recovery_point {
                target.logs.push(segment.log.clone());
                target.others.extend(["index", "timeindex"].map(|suffix| path_of(&self.dir, segment.base, suffix)));
            }
        }
        target.logs.push(active.segment.log.clone());
        if self.names_synced != self.names {
            target.others.push(self.dir.join(super::dirs::PARTITION_METADATA_FILE));
            target.dirs.push(self.dir.clone());
            target.dirs.extend(self.dir.parent().map(PathBuf::from));
        }
        Some(target)
    }

    /// The target was synced: the recovery point moves, unless the log was cut since the target was taken.
    pub fn mark_synced(&mut self, target: &SyncTarget<S>) {
        if target.generation != self.generation {
            return;
        }
        self.recovery_point = self.recovery_point.max(target.upto);
        self.names_synced = target.names;
    }
}

impl<S: Storage> SyncTarget<S> {
    /// The log is on disk up to there (exclusive) once this is synced.
    pub fn upto(&self) -> Offset {
        self.upto
    }

    /// How many files there are to sync.
    pub fn file_count(&self) -> usize {
        self.logs.len() + self.others.len() + self.dirs.len()
    }

    /// Syncs. A segment that was deleted meanwhile needs no sync. Blocks for as long as the disk takes: for the I/O thread.
    ///
    /// After an error nothing is known about what is on disk, and trying again would not tell: the directory has failed.
    pub fn sync(&self) -> Result<(), LogError> {
        let storage = self.files.storage();
        let gone_is_fine = |result: io::Result<()>| match result {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        for log in &self.logs {
            gone_is_fine(self.files.get(log).and_then(|f| f.sync_data())).map_err(|e| LogError::io("sync", &log.path(), e))?;
        }
        for path in &self.others {
            gone_is_fine(storage.open(path).and_then(|f| f.sync_data())).map_err(|e| LogError::io("sync", path, e))?;
        }
        for dir in &self.dirs {
            gone_is_fine(storage.sync_dir(dir)).map_err(|e| LogError::io("sync", dir, e))?;
        }
        Ok(())
    }
}
