//! What leaves a log at its old end: by age, by size, and because the log start offset moved. Whole segments only. Their files get another name at
//! once and are removed later by the caller's I/O thread, so that readers which are in the middle of them come to an end.

use std::io;
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::partition_log::Log;
use super::segment::{Segment, path_of};
use super::storage::{File, Storage};
use crate::core::types::{Millis, Offset};

/// Suffix of files that are to be removed.
pub(super) const DELETED: &str = ".deleted";

/// Files of segments that are no part of the log any more, under the names they have now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentFiles {
    /// Their paths.
    pub paths: Vec<PathBuf>,
    /// Bytes of the batches in them.
    pub bytes: u64,
}

impl SegmentFiles {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

/// Removes them; one that is gone already is fine.
pub fn remove_files<S: Storage>(storage: &S, files: &SegmentFiles) -> Result<(), LogError> {
    files.paths.iter().try_for_each(|path| remove_if_there(storage, path))
}

fn remove_if_there<S: Storage>(storage: &S, path: &Path) -> Result<(), LogError> {
    match storage.remove(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(LogError::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// Removes the files of one segment at once.
pub(super) fn remove_segment_files<S: Storage>(storage: &S, dir: &Path, base: Offset) -> Result<(), LogError> {
    ["log", "index", "timeindex", "txnindex"].iter().try_for_each(|suffix| remove_if_there(storage, &path_of(dir, base, suffix)))
}

/// Removes a partition's directory and all that is in it. For the I/O thread.
pub fn remove_partition_dir<S: Storage>(storage: &S, dir: &Path) -> Result<(), LogError> {
    let entries = match storage.list(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| LogError::io("list", dir, e))?,
    };
    for entry in entries {
        remove_if_there(storage, &dir.join(entry.name))?;
    }
    storage.remove_dir(dir).map_err(|e| LogError::io("remove", dir, e))
}

impl<S: Storage> Log<S> {
    /// Takes away what retention says may go: never beyond the high watermark. If that is everything, a new segment is started first. The log start
    /// moves with it.
    pub fn retention(&mut self, now: Millis, high_watermark: Offset) -> Result<SegmentFiles, LogError> {
        self.usable()?;
        let mut out = self.drop_below(self.start)?;
        if !self.config.delete {
            return Ok(out);
        }
        let mut count = 0;
        let mut excess = match self.config.retention_bytes {
            limit if limit < 0 => -1,
            limit => self.size_bytes() as i64 - limit,
        };
        // Oldest first, and stop at the first that stays: by size, then by age.
        while let Some(segment) = self.deletable(count, high_watermark) {
            if excess < segment.size as i64 {
                break;
            }
            excess -= segment.size as i64;
            count += 1;
        }
        if self.config.retention_ms >= 0 {
            while let Some(segment) = self.deletable(count, high_watermark) {
                let newest = self.newest_timestamp(count, segment)?;
                if now.since(newest) <= self.config.retention_ms {
                    break;
                }
                count += 1;
            }
        }
        if count > self.closed.len() {
            self.roll(self.end, now)?;
        }
        if count > 0 {
            self.start = self.start.max(self.segment(count).map_or(self.end, |s| s.base));
            let dropped = self.drop_below(self.start)?;
            out.bytes += dropped.bytes;
            out.paths.extend(dropped.paths);
        }
        Ok(out)
    }

    /// Segment number `at`, if all of it is below the high watermark and it is not the empty last one.
    fn deletable(&self, at: usize, high_watermark: Offset) -> Option<&Segment<S>> {
        let segment = self.segment(at).filter(|_| at <= self.closed.len())?;
        let next = if at < self.closed.len() { self.segment(at + 1)?.base } else { self.end };
        (next <= high_watermark && (at < self.closed.len() || segment.size > 0)).then_some(segment)
    }

    /// Largest record timestamp of segment number `at`; when it was last written to if its records have none.
    fn newest_timestamp(&self, at: usize, segment: &Segment<S>) -> Result<Millis, LogError> {
        let max = self.max_of(at)?;
        if max.timestamp.0 >= 0 {
            return Ok(max.timestamp);
        }
        self.files.get(&segment.log).and_then(|f| f.modified()).map_err(|e| self.read_error(e))
    }

    /// Moves the log start offset to `offset` (DeleteRecords, or a leader that did so) and takes away segments that are wholly below. The caller
    /// keeps `offset` at or below the high watermark. The log start never moves back.
    pub fn advance_start(&mut self, offset: Offset) -> Result<SegmentFiles, LogError> {
        self.usable()?;
        assert!(offset <= self.end, "the log start may not pass the log end; truncate_fully_and_start_at does that");
        self.start = self.start.max(offset);
        self.drop_below(self.start)
    }

    /// Renames closed segments whose successor starts at or below `offset`.
    fn drop_below(&mut self, offset: Offset) -> Result<SegmentFiles, LogError> {
        let mut out = SegmentFiles::default();
        while let Some(next) = self.segment(1).filter(|next| !self.closed.is_empty() && next.base <= offset) {
            let next = next.base;
            let Some(segment) = self.closed.pop_front() else { break };
            self.set_aside(&segment, &mut out)?;
            // Snapshots below the first segment say nothing that is still needed.
            self.remove_snapshots(|at| at < next)?;
        }
        Ok(out)
    }

    /// Gives the files of a segment names under which they are no part of the log.
    pub(super) fn set_aside(&self, segment: &Segment<S>, out: &mut SegmentFiles) -> Result<(), LogError> {
        let with = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(DELETED);
            PathBuf::from(name)
        };
        let log = segment.log.path();
        let to = with(&log);
        self.files.rename(&segment.log, to.clone()).map_err(|e| LogError::io("rename", &log, e))?;
        out.paths.push(to);
        out.bytes += segment.size;
        for suffix in ["index", "timeindex", "txnindex"] {
            let path = path_of(&self.dir, segment.base, suffix);
            let to = with(&path);
            match self.files.storage().rename(&path, &to) {
                Ok(()) => out.paths.push(to),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(LogError::io("rename", &path, e)),
            }
        }
        Ok(())
    }
}
