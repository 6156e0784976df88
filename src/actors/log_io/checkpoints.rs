//! The checkpoint files of one log directory: which offsets are on disk, committed, deleted, compacted. Kept whole in memory, written when changed.

use super::{Marks, Noted};
use crate::core::types::Offset;
use crate::log::LogError;
use crate::log::checkpoint::{self, PartitionOffset};
use crate::log::storage::Fs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Offsets = BTreeMap<(Arc<str>, i32), Offset>;

/// `recovery-point-offset-checkpoint`.
pub const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
/// `replication-offset-checkpoint`.
pub const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
/// `log-start-offset-checkpoint`.
pub const LOG_STARTS: &str = "log-start-offset-checkpoint";

/// `cleaner-offset-checkpoint`.
pub const CLEANED: &str = "cleaner-offset-checkpoint";

/// One file.
struct Kept {
    path: PathBuf,
    offsets: Offsets,
    changed: bool,
}

/// The files of a directory.
pub struct Checkpoints {
    recovery: Kept,
    high_watermarks: Kept,
    log_starts: Kept,
    cleaned: Kept,
}

impl Kept {
    fn load(dir: &Path, name: &str) -> Result<Kept, LogError> {
        let path = dir.join(name);
        let offsets = read(&path)?;
        Ok(Kept { path, offsets, changed: false })
    }

    fn set(&mut self, topic: &Arc<str>, partition: i32, offset: Option<Offset>) {
        let key = (topic.clone(), partition);
        let before = match offset {
            Some(offset) => self.offsets.insert(key, offset),
            None => self.offsets.remove(&key),
        };
        self.changed |= before != offset;
    }

    fn write(&mut self) -> Result<(), LogError> {
        if self.changed {
            let row = |((topic, partition), offset): (&(Arc<str>, i32), &Offset)| PartitionOffset {
                topic: topic.to_string(),
                partition: *partition,
                offset: *offset,
            };
            let rows: Vec<_> = self.offsets.iter().map(row).collect();
            checkpoint::write_offsets(&Fs, &self.path, &rows)?;
            self.changed = false;
        }
        Ok(())
    }
}

/// Reads one of the files; a missing one is empty.
pub fn read(path: &Path) -> Result<Offsets, LogError> {
    let rows = checkpoint::read_offsets(&Fs, path)?;
    Ok(rows.into_iter().map(|row| ((Arc::from(row.topic), row.partition), row.offset)).collect())
}

impl Checkpoints {
    /// Reads what the last run left.
    pub fn load(dir: &Path) -> Result<Checkpoints, LogError> {
        Ok(Checkpoints {
            recovery: Kept::load(dir, RECOVERY_POINTS)?,
            high_watermarks: Kept::load(dir, HIGH_WATERMARKS)?,
            log_starts: Kept::load(dir, LOG_STARTS)?,
            cleaned: Kept::load(dir, CLEANED)?,
        })
    }

    /// Takes over a partition's new positions.
    pub fn note(&mut self, noted: Noted) {
        let Noted { topic, partition, at } = noted;
        self.recovery.set(&topic, partition, at.map(|Marks { recovery_point, .. }| recovery_point));
        self.high_watermarks.set(&topic, partition, at.map(|Marks { high_watermark, .. }| high_watermark));
        self.log_starts.set(&topic, partition, at.and_then(|Marks { log_start, .. }| log_start));
        self.cleaned.set(&topic, partition, at.and_then(|Marks { cleaned_to, .. }| cleaned_to));
    }

    /// Writes the files that changed.
    pub fn write(&mut self) -> Result<(), LogError> {
        self.log_starts.write()?;
        self.recovery.write()?;
        self.cleaned.write()?;
        self.high_watermarks.write()
    }
}
