//! One segment: its three files, what is known of them, and how offsets and timestamps are found in it. The one that is appended to has its
//! indexes in memory and remembers where the last batches are; closed ones are searched in their files, opened when needed.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::batch::BatchHeader;
use super::error::LogError;
use super::files::{Files, Handle};
use super::index::{self, Index, TimeEntry};
use super::storage::{File, Storage};
use super::walk;
use crate::core::types::{Millis, Offset};

/// How many of the last batches are found without looking into a file.
const RECENT: usize = 64;

/// The path of a segment's file: 20 digits and a suffix (`log`, `index`, `timeindex`, `txnindex`, `snapshot`).
pub(super) fn path_of(dir: &Path, offset: Offset, suffix: &str) -> PathBuf {
    dir.join(format!("{:020}.{suffix}", offset.0))
}

/// Offset and suffix of such a name.
pub(super) fn parse_name(name: &str) -> Option<(Offset, &str)> {
    let (digits, suffix) = name.split_once('.')?;
    if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((Offset(digits.parse().ok()?), suffix))
}

/// A segment, open or closed.
pub(super) struct Segment<S: Storage> {
    /// Offsets in it are at or above.
    pub base: Offset,
    /// Bytes of `.log` that are batches.
    pub size: u64,
    /// The `.log`.
    pub log: Handle<S>,
    /// When it was made, or opened.
    pub created: Millis,
    /// Largest timestamp, once it was needed; of closed segments only.
    pub max: Cell<Option<TimeEntry>>,
}

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub base: Offset,
    pub last: Offset,
    pub position: u64,
    pub size: u32,
}

impl Place {
    pub fn of(header: &BatchHeader, position: u64) -> Place {
        Place { base: header.base_offset, last: header.last_offset(), position, size: header.size() as u32 }
    }
}

impl<S: Storage> Segment<S> {
    pub fn new(base: Offset, size: u64, log: Handle<S>, created: Millis) -> Segment<S> {
        Segment { base, size, log, created, max: Cell::new(None) }
    }

    /// Makes the three files, empty.
    pub fn create(files: &Files<S>, dir: &Path, base: Offset, now: Millis) -> Result<Segment<S>, LogError> {
        for suffix in ["index", "timeindex"] {
            let path = path_of(dir, base, suffix);
            files.storage().create(&path).map_err(|e| LogError::io("create", &path, e))?;
        }
        let path = path_of(dir, base, "log");
        let log = files.create(path.clone()).map_err(|e| LogError::io("create", &path, e))?;
        Ok(Segment::new(base, 0, log, now))
    }

    /// The first batch that ends at or after `offset`, in a closed segment.
    pub fn find(&self, files: &Files<S>, dir: &Path, offset: Offset) -> io::Result<Option<Place>> {
        if self.size == 0 {
            return Ok(None);
        }
        let index = files.storage().open(&path_of(dir, self.base, "index"))?;
        let from = index::floor_in(&index, self.base, offset)?;
        let found = walk::find_offset(&*files.get(&self.log)?, from, self.size, offset)?;
        Ok(found.map(|(header, position)| Place::of(&header, position)))
    }

    /// The largest timestamp in a closed segment.
    pub fn max(&self, files: &Files<S>, dir: &Path) -> io::Result<TimeEntry> {
        if let Some(max) = self.max.get() {
            return Ok(max);
        }
        let max = self.floor_time(files, dir, Millis(i64::MAX))?;
        self.max.set(Some(max));
        Ok(max)
    }

    /// The last time index entry at or before `timestamp`, in a closed segment.
    pub fn floor_time(&self, files: &Files<S>, dir: &Path, timestamp: Millis) -> io::Result<TimeEntry> {
        let file = files.storage().open(&path_of(dir, self.base, "timeindex"))?;
        index::floor_time_in(&file, self.base, timestamp)
    }
}

/// The segment that is appended to.
pub(super) struct Active<S: Storage> {
    pub segment: Segment<S>,
    pub index: Index,
    /// Largest timestamp of its first batch: what its age is measured from. None until it is needed or without batches.
    first: Cell<Option<Millis>>,
    /// The last batches, oldest first; without gaps between them up to the end of the segment.
    recent: VecDeque<Place>,
}

impl<S: Storage> Active<S> {
    pub fn new(segment: Segment<S>, index: Index) -> Active<S> {
        Active { segment, index, first: Cell::new(None), recent: VecDeque::new() }
    }

    /// Takes note of a batch that was written at the end of the segment.
    #[inline]
    pub fn note(&mut self, header: &BatchHeader, interval: u32) {
        let position = self.segment.size;
        if position == 0 {
            self.first.set(Some(header.max_timestamp));
        }
        self.index.note(header, position, interval);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Place::of(header, position));
        self.segment.size += header.size() as u64;
    }

    /// How old the segment is for a batch with that largest timestamp, in milliseconds.
    pub fn age(&self, files: &Files<S>, timestamp: Millis, now: Millis) -> io::Result<i64> {
        if self.segment.size == 0 {
            return Ok(0);
        }
        let first = match self.first.get() {
            Some(first) => first,
            None => {
                let found = walk::find(&*files.get(&self.segment.log)?, 0, self.segment.size, |_| true)?;
                let first = found.map_or(Millis(-1), |(header, _)| header.max_timestamp);
                self.first.set(Some(first));
                first
            }
        };
        Ok(if first.0 >= 0 { timestamp.since(first) } else { now.since(self.segment.created) })
    }

    /// The first batch that ends at or after `offset`.
    #[inline]
    pub fn find(&self, files: &Files<S>, offset: Offset) -> io::Result<Option<Place>> {
        if self.recent.front().is_some_and(|oldest| offset >= oldest.base || oldest.position == 0) {
            return Ok(self.recent.get(self.recent.partition_point(|place| place.last < offset)).copied());
        }
        if self.segment.size == 0 {
            return Ok(None);
        }
        let from = self.index.floor(offset);
        let found = walk::find_offset(&*files.get(&self.segment.log)?, from, self.segment.size, offset)?;
        Ok(found.map(|(header, position)| Place::of(&header, position)))
    }

    /// Cuts the segment at `position`, where the batch starts that `end` is to be the offset of: the log then ends there.
    pub fn cut(&mut self, files: &Files<S>, dir: &Path, position: u64, end: Offset) -> Result<(), LogError> {
        let path = path_of(dir, self.segment.base, "log");
        let file = files.get(&self.segment.log).map_err(|e| LogError::io("open", &path, e))?;
        file.set_len(position).map_err(|e| LogError::io("cut", &path, e))?;
        self.segment.size = position;
        while self.recent.back().is_some_and(|place| place.position >= position) {
            self.recent.pop_back();
        }
        if position == 0 {
            self.first.set(None);
        }
        self.index.truncate(end);
        self.scan_max(&*file).map_err(|e| LogError::io("read", &path, e))?;
        self.flush_index_cut(files, dir)
    }

    fn flush_index_cut(&mut self, files: &Files<S>, dir: &Path) -> Result<(), LogError> {
        let (offsets, times) = self.index_paths(dir);
        self.index.cut_files(files.storage(), &offsets, &times)
    }

    /// Looks for larger timestamps than the time index knows behind its last entry.
    fn scan_max(&mut self, file: &S::File) -> io::Result<()> {
        let mut max = self.index.last_time();
        let from = self.index.floor(max.offset);
        walk::find(file, from, self.segment.size, |header| {
            if header.max_timestamp > max.timestamp {
                max = TimeEntry { timestamp: header.max_timestamp, offset: header.last_offset() };
            }
            false
        })?;
        self.index.set_max(max);
        Ok(())
    }

    fn index_paths(&self, dir: &Path) -> (PathBuf, PathBuf) {
        (path_of(dir, self.segment.base, "index"), path_of(dir, self.segment.base, "timeindex"))
    }

    /// Writes index entries that are not in the files yet.
    pub fn flush_index(&mut self, files: &Files<S>, dir: &Path) -> Result<(), LogError> {
        let (offsets, times) = self.index_paths(dir);
        self.index.flush(files.storage(), &offsets, &times)
    }

    /// Brings the files in order for a segment that nothing is appended to any more: all index entries, among them the largest timestamp.
    pub fn seal(&mut self, files: &Files<S>, dir: &Path) -> Result<(), LogError> {
        self.index.note_time();
        self.flush_index(files, dir)?;
        self.segment.max.set(Some(self.index.max()));
        Ok(())
    }
}
