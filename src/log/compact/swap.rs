//! Putting a rewritten segment in the place of those it was made from: renames only, by the log's owner.
//!
//! The order is Kafka's. `.cleaned` becomes `.swap`; what is replaced gets the suffix `.deleted`; `.swap` falls away. A crash before every
//! part is a `.swap` undoes the compaction of these segments, a crash after it completes it.

use std::path::PathBuf;

use super::output::{PARTS, cleaned_path};
use crate::core::types::{Millis, Offset};
use crate::log::error::LogError;
use crate::log::index::TimeEntry;
use crate::log::partition_log::Log;
use crate::log::retention::SegmentFiles;
use crate::log::segment::{Segment, path_of};
use crate::log::storage::Storage;

/// Suffix of files that are being put in place.
const SWAP: &str = ".swap";

/// A rewritten segment, on the disk as `.cleaned` files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// The segments it was made from: base offset and bytes of each. Its own base is that of the first.
    pub(super) inputs: Vec<(Offset, u64)>,
    /// Bytes of its batches.
    pub(super) size: u64,
    /// Its largest timestamp.
    pub(super) max: TimeEntry,
    /// It has an index of aborted transactions.
    pub(super) aborted: bool,
    /// The log's count of cuts when the task was made.
    pub(super) generation: u64,
}

/// A rewritten segment was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SwapRefused {
    /// The segments are not those it was made from: nothing was done.
    #[error("the segments changed meanwhile")]
    Changed,
    /// The disk refused. If the log is [`Log::is_broken`] now, it was in the middle: nothing is read or appended until it is opened again.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl<S: Storage> Log<S> {
    /// Puts a rewritten segment in place. Returns the files of those it replaces: the caller syncs the directory, and then removes them.
    pub fn swap(&mut self, cleaned: &Cleaned, now: Millis) -> Result<SegmentFiles, SwapRefused> {
        self.usable()?;
        let Some((base, _)) = cleaned.inputs.first().copied() else { return Err(SwapRefused::Changed) };
        let at = self.closed.partition_point(|segment| segment.base < base);
        let there = self.closed.iter().skip(at).map(|segment| (segment.base, segment.size));
        if cleaned.generation != self.generation || !there.take(cleaned.inputs.len()).eq(cleaned.inputs.iter().copied()) {
            return Err(SwapRefused::Changed);
        }
        let parts = &PARTS[..if cleaned.aborted { 4 } else { 3 }];
        let dir = self.dir.clone();
        let swap = |part: &str| -> PathBuf {
            let mut path = path_of(&dir, base, part).into_os_string();
            path.push(SWAP);
            path.into()
        };
        let storage = self.files.storage();
        for (done, part) in parts.iter().enumerate() {
            let from = cleaned_path(&self.dir, base, part);
            if let Err(e) = storage.rename(&from, &swap(part)) {
                // Without its `.cleaned` neighbours a `.swap` would count as complete.
                let undone = parts[..done].iter().all(|part| storage.rename(&swap(part), &cleaned_path(&self.dir, base, part)).is_ok());
                let e = LogError::io("rename", &from, e);
                self.broken |= !undone;
                return Err(e.into());
            }
        }
        let mut replaced = SegmentFiles::default();
        let put = self.replace(at, cleaned, parts, &swap, now, &mut replaced);
        if put.is_err() {
            self.broken = true;
        }
        put.map(|()| replaced).map_err(SwapRefused::Log)
    }

    fn replace(
        &mut self,
        at: usize,
        cleaned: &Cleaned,
        parts: &[&str],
        swap: &dyn Fn(&str) -> PathBuf,
        now: Millis,
        replaced: &mut SegmentFiles,
    ) -> Result<(), LogError> {
        let base = cleaned.inputs[0].0;
        let created = self.closed[at].created.min(now);
        for segment in self.closed.iter().skip(at).take(cleaned.inputs.len()) {
            self.set_aside(segment, replaced)?;
        }
        for part in parts {
            let from = swap(part);
            self.files.storage().rename(&from, &path_of(&self.dir, base, part)).map_err(|e| LogError::io("rename", &from, e))?;
        }
        let segment = Segment::new(base, cleaned.size, self.files.handle(path_of(&self.dir, base, "log")), created);
        segment.max.set(Some(cleaned.max));
        self.closed.drain(at..at + cleaned.inputs.len());
        self.closed.insert(at, segment);
        self.names += 1;
        Ok(())
    }
}
