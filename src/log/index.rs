//! The sparse indexes of a segment: offset to position, timestamp to offset. In memory for the segment that is appended to; its files get the
//! new entries when the segment is closed, when the log is closed and when asked. Closed segments are searched in their files.
//!
//! Formats (reference section 5.1): `.index` has 8 bytes an entry, offset of the last record of a batch less the segment's base, and the
//! position where that batch starts. `.timeindex` has 12: the largest timestamp so far, and the last offset of the first batch that has it.

use std::path::Path;

use super::batch::BatchHeader;
use super::error::LogError;
use super::storage::{File, Storage, read_exact_at, write_at};
use crate::core::types::{Millis, Offset};

/// Bytes of an entry of `.index`.
pub const OFFSET_ENTRY: usize = 8;
/// Bytes of an entry of `.timeindex`.
pub const TIME_ENTRY: usize = 12;
/// Entries of a file that are searched in one read.
const BLOCK: usize = 512;

/// A timestamp, and the last offset of the first batch whose largest timestamp it is. Timestamp -1: no record has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeEntry {
    /// The largest timestamp so far.
    pub timestamp: Millis,
    /// Last offset of its batch.
    pub offset: Offset,
}

impl TimeEntry {
    /// What a segment that starts at `base` has before any batch.
    pub(super) fn none(base: Offset) -> TimeEntry {
        TimeEntry { timestamp: Millis(-1), offset: base }
    }
}

/// Both indexes of a segment in memory.
#[derive(Debug)]
pub(super) struct Index {
    base: Offset,
    /// (last offset of a batch less base, position).
    offsets: Vec<(u32, u32)>,
    /// (timestamp, offset less base).
    times: Vec<(i64, u32)>,
    /// How many entries of each are in the files.
    written: (usize, usize),
    bytes_since: u64,
    max: TimeEntry,
}

fn offset_bytes(entry: &(u32, u32)) -> [u8; OFFSET_ENTRY] {
    let mut out = [0; OFFSET_ENTRY];
    out[..4].copy_from_slice(&entry.0.to_be_bytes());
    out[4..].copy_from_slice(&entry.1.to_be_bytes());
    out
}

fn offset_entry(b: [u8; OFFSET_ENTRY]) -> (u32, u32) {
    (u32::from_be_bytes([b[0], b[1], b[2], b[3]]), u32::from_be_bytes([b[4], b[5], b[6], b[7]]))
}

fn time_bytes(entry: &(i64, u32)) -> [u8; TIME_ENTRY] {
    let mut out = [0; TIME_ENTRY];
    out[..8].copy_from_slice(&entry.0.to_be_bytes());
    out[8..].copy_from_slice(&entry.1.to_be_bytes());
    out
}

fn time_entry(b: [u8; TIME_ENTRY]) -> (i64, u32) {
    (i64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]), u32::from_be_bytes([b[8], b[9], b[10], b[11]]))
}

impl Index {
    pub fn new(base: Offset) -> Index {
        Index { base, offsets: Vec::new(), times: Vec::new(), written: (0, 0), bytes_since: 0, max: TimeEntry::none(base) }
    }

    /// Takes note of a batch that starts at `position`. Kafka's rule: an entry for the first batch after more than `interval` bytes.
    #[inline]
    pub fn note(&mut self, header: &BatchHeader, position: u64, interval: u32) {
        // A batch that compaction emptied has no record with its timestamp any more.
        if header.max_timestamp > self.max.timestamp && header.count > 0 {
            self.max = TimeEntry { timestamp: header.max_timestamp, offset: header.last_offset() };
        }
        if self.bytes_since > u64::from(interval) {
            self.offsets.push(((header.last_offset() - self.base) as u32, position as u32));
            self.note_time();
            self.bytes_since = 0;
        }
        self.bytes_since += header.size() as u64;
    }

    /// Adds the largest timestamp to the time index, if it is new.
    pub fn note_time(&mut self) {
        if self.max.timestamp.0 > self.times.last().map_or(-1, |e| e.0) {
            self.times.push((self.max.timestamp.0, (self.max.offset - self.base) as u32));
        }
    }

    /// The largest timestamp.
    pub fn max(&self) -> TimeEntry {
        self.max
    }

    /// Bytes of the two files, when all entries are in them.
    pub fn bytes(&self) -> (u64, u64) {
        ((self.offsets.len() * OFFSET_ENTRY) as u64, (self.times.len() * TIME_ENTRY) as u64)
    }

    /// Whether one of the indexes has as many entries as its file may have.
    pub fn is_full(&self, offset_entries: usize, time_entries: usize) -> bool {
        self.offsets.len() >= offset_entries || self.times.len() >= time_entries
    }

    /// Where to start looking for the batch that holds `offset`: a batch starts there, and none before it ends at or after `offset`.
    pub fn floor(&self, offset: Offset) -> u64 {
        let n = self.offsets.partition_point(|e| i64::from(e.0) <= offset - self.base);
        n.checked_sub(1).map_or(0, |i| u64::from(self.offsets[i].1))
    }

    /// The last entry at or before `timestamp`: no batch that ends before its offset has a timestamp as large.
    pub fn floor_time(&self, timestamp: Millis) -> TimeEntry {
        let n = self.times.partition_point(|e| e.0 <= timestamp.0);
        n.checked_sub(1).map_or(TimeEntry::none(self.base), |i| self.time(i))
    }

    /// The last entry of the time index, and where to start looking for larger timestamps.
    fn time(&self, i: usize) -> TimeEntry {
        TimeEntry { timestamp: Millis(self.times[i].0), offset: self.base + i64::from(self.times[i].1) }
    }

    /// The last entry of the time index.
    pub fn last_time(&self) -> TimeEntry {
        self.times.len().checked_sub(1).map_or(TimeEntry::none(self.base), |i| self.time(i))
    }

    /// Where the last entry of the offset index points; 0 without entries.
    pub fn last_position(&self) -> u64 {
        self.offsets.last().map_or(0, |e| u64::from(e.1))
    }

    /// Sets the largest timestamp after entries were loaded or cut.
    pub fn set_max(&mut self, max: TimeEntry) {
        self.max = max;
    }

    /// Forgets entries for offsets from `end` on. The caller sets the largest timestamp, then calls [`Index::cut_files`].
    pub fn truncate(&mut self, end: Offset) {
        let keep = |rel: u32| i64::from(rel) < end - self.base;
        self.offsets.truncate(self.offsets.partition_point(|e| keep(e.0)));
        self.times.truncate(self.times.partition_point(|e| keep(e.1)));
        self.bytes_since = 0;
        self.max = self.last_time();
    }

    /// Cuts entries that were forgotten out of the files.
    pub fn cut_files<S: Storage>(&mut self, storage: &S, offsets: &Path, times: &Path) -> Result<(), LogError> {
        for (path, have, written, size) in
            [(offsets, self.offsets.len(), &mut self.written.0, OFFSET_ENTRY), (times, self.times.len(), &mut self.written.1, TIME_ENTRY)]
        {
            if *written > have {
                storage.open(path).and_then(|f| f.set_len((have * size) as u64)).map_err(|e| LogError::io("cut", path, e))?;
                *written = have;
            }
        }
        Ok(())
    }

    /// Writes the entries that are not in the files yet.
    pub fn flush<S: Storage>(&mut self, storage: &S, offsets: &Path, times: &Path) -> Result<(), LogError> {
        if self.written.0 < self.offsets.len() {
            let bytes: Vec<u8> = self.offsets[self.written.0..].iter().flat_map(offset_bytes).collect();
            put(storage, offsets, self.written.0 * OFFSET_ENTRY, &bytes)?;
            self.written.0 = self.offsets.len();
        }
        if self.written.1 < self.times.len() {
            let bytes: Vec<u8> = self.times[self.written.1..].iter().flat_map(time_bytes).collect();
            put(storage, times, self.written.1 * TIME_ENTRY, &bytes)?;
            self.written.1 = self.times.len();
        }
        Ok(())
    }

    /// Writes files that hold these entries and nothing else.
    pub fn rewrite<S: Storage>(&mut self, storage: &S, offsets: &Path, times: &Path) -> Result<(), LogError> {
        for path in [offsets, times] {
            storage.create(path).map_err(|e| LogError::io("create", path, e))?;
        }
        self.written = (0, 0);
        self.flush(storage, offsets, times)
    }

    /// Reads the files of a segment whose `.log` has `size` bytes. None if they cannot be right, and have to be made anew from the log.
    pub fn load<S: Storage>(storage: &S, base: Offset, size: u64, offsets: &Path, times: &Path) -> Result<Option<Index>, LogError> {
        // More entries than a file of 2 GiB can need are no index.
        const LIMIT: u64 = 64 << 20;
        let read = |path: &Path| match super::storage::read_file(storage, path, LIMIT) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData) => Ok(None),
            Err(e) => Err(LogError::io("read", path, e)),
        };
        let (Some(by_offset), Some(by_time)) = (read(offsets)?, read(times)?) else { return Ok(None) };
        let (by_offset, odd_offset) = by_offset.as_chunks::<OFFSET_ENTRY>();
        let (by_time, odd_time) = by_time.as_chunks::<TIME_ENTRY>();
        let offsets: Vec<_> = by_offset.iter().map(|b| offset_entry(*b)).collect();
        let times: Vec<_> = by_time.iter().map(|b| time_entry(*b)).collect();
        let rising = offsets.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1) && times.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
        let inside = offsets.last().is_none_or(|e| u64::from(e.1) < size) && offsets.first().is_none_or(|e| e.1 > 0);
        if !odd_offset.is_empty() || !odd_time.is_empty() || !rising || !inside {
            return Ok(None);
        }
        let mut index = Index { written: (offsets.len(), times.len()), offsets, times, ..Index::new(base) };
        index.max = index.last_time();
        Ok(Some(index))
    }
}

fn put<S: Storage>(storage: &S, path: &Path, at: usize, bytes: &[u8]) -> Result<(), LogError> {
    storage.open(path).and_then(|f| write_at(&f, at as u64, bytes, &[])).map_err(|e| LogError::io("write", path, e))
}

/// The last of `n` entries of an index file for which `before` holds; the entries it holds for come first.
fn search<const SIZE: usize, F: File>(file: &F, n: u64, before: impl Fn([u8; SIZE]) -> bool) -> std::io::Result<Option<[u8; SIZE]>> {
    let (mut low, mut high) = (0, n);
    let mut found = None;
    while high - low > BLOCK as u64 {
        let middle = low + (high - low) / 2;
        let mut entry = [0; SIZE];
        read_exact_at(file, middle * SIZE as u64, &mut entry)?;
        if before(entry) {
            found = Some(entry);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut block = [0; BLOCK * TIME_ENTRY];
    let block = &mut block[..(high - low) as usize * SIZE];
    read_exact_at(file, low * SIZE as u64, block)?;
    let (entries, _) = block.as_chunks::<SIZE>();
    Ok(entries.partition_point(|e| before(*e)).checked_sub(1).map(|i| entries[i]).or(found))
}

/// [`Index::floor`] in the file of a closed segment.
pub(super) fn floor_in<F: File>(file: &F, base: Offset, offset: Offset) -> std::io::Result<u64> {
    let n = file.len()? / OFFSET_ENTRY as u64;
    Ok(search(file, n, |b| i64::from(offset_entry(b).0) <= offset - base)?.map_or(0, |b| u64::from(offset_entry(b).1)))
}

/// [`Index::floor_time`] in the file of a closed segment; its last entry for a timestamp of `i64::MAX`.
pub(super) fn floor_time_in<F: File>(file: &F, base: Offset, timestamp: Millis) -> std::io::Result<TimeEntry> {
    let n = file.len()? / TIME_ENTRY as u64;
    let found = search(file, n, |b| time_entry(b).0 <= timestamp.0)?.map(time_entry);
    Ok(found.map_or(TimeEntry::none(base), |e| TimeEntry { timestamp: Millis(e.0), offset: base + i64::from(e.1) }))
}
