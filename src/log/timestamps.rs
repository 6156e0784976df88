//! Finding records by their timestamp: the first at or after one, and the one with the largest. The indexes lead to the batch; only that batch
//! is read.

use super::batch::{BatchHeader, HEADER_SIZE};
use super::codec::inflate;
use super::error::LogError;
use super::index::TimeEntry;
use super::partition_log::Log;
use super::records::Records;
use super::storage::{Storage, read_exact_at};
use super::walk;
use crate::core::types::{Epoch, Millis, Offset};

/// Bytes to which a batch is decompressed in search of a record, at most.
const INFLATE_LIMIT: usize = 256 << 20;

/// A record found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: Millis,
    /// Leader epoch of its batch.
    pub epoch: Epoch,
}

impl<S: Storage> Log<S> {
    /// The first record at or after the log start whose timestamp is `target` or later; None if there is none.
    pub fn offset_for_timestamp(&self, target: Millis) -> Result<Option<Stamped>, LogError> {
        for at in 0..self.segment_count() {
            if self.max_of(at)?.timestamp < target {
                continue;
            }
            let entry = self.floor_time(at, target)?;
            let Some(place) = self.find_in(at, entry.offset.max(self.start))? else { continue };
            let mut from = place.position;
            while let Some((header, position)) = self.find_batch(at, from, |header| header.max_timestamp >= target)? {
                let found = self.find_record(at, &header, position, |offset, stamp| stamp >= target && offset >= self.start)?;
                if found.is_some() {
                    return Ok(found);
                }
                from = position + header.size() as u64;
            }
        }
        Ok(None)
    }

    /// The first record with the largest timestamp of the log; None in an empty log, or if no record has one.
    pub fn max_timestamp(&self) -> Result<Option<Stamped>, LogError> {
        let mut best: Option<(usize, TimeEntry)> = None;
        for at in 0..self.segment_count() {
            let max = self.max_of(at)?;
            if best.is_none_or(|(_, b)| max.timestamp > b.timestamp) {
                best = Some((at, max));
            }
        }
        let Some((at, max)) = best.filter(|(_, max)| max.timestamp.0 >= 0) else { return Ok(None) };
        let Some(place) = self.find_in(at, max.offset)? else { return Ok(None) };
        match self.find_batch(at, place.position, |header| header.max_timestamp == max.timestamp)? {
            Some((header, position)) => self.find_record(at, &header, position, |_, stamp| stamp == max.timestamp),
            None => Ok(None),
        }
    }

    /// The largest timestamp of segment number `at`.
    pub(super) fn max_of(&self, at: usize) -> Result<TimeEntry, LogError> {
        match (self.closed.get(at), &self.active) {
            (Some(segment), _) => segment.max(&self.files, &self.dir).map_err(|e| self.read_error(e)),
            (None, Some(active)) => Ok(active.index.max()),
            (None, None) => Ok(TimeEntry::none(self.start)),
        }
    }

    fn floor_time(&self, at: usize, target: Millis) -> Result<TimeEntry, LogError> {
        match (self.closed.get(at), &self.active) {
            (Some(segment), _) => segment.floor_time(&self.files, &self.dir, target).map_err(|e| self.read_error(e)),
            (None, Some(active)) => Ok(active.index.floor_time(target)),
            (None, None) => Ok(TimeEntry::none(self.start)),
        }
    }

    fn find_batch(&self, at: usize, from: u64, found: impl Fn(&BatchHeader) -> bool) -> Result<Option<(BatchHeader, u64)>, LogError> {
        let Some(segment) = self.segment(at) else { return Ok(None) };
        let file = self.files.get(&segment.log).map_err(|e| self.read_error(e))?;
        walk::find(&*file, from, segment.size, found).map_err(|e| self.read_error(e))
    }

    /// The first record of a batch that `wanted` takes by offset and timestamp.
    fn find_record(
        &self,
        at: usize,
        header: &BatchHeader,
        position: u64,
        wanted: impl Fn(Offset, Millis) -> bool,
    ) -> Result<Option<Stamped>, LogError> {
        let Some(segment) = self.segment(at) else { return Ok(None) };
        let file = self.files.get(&segment.log).map_err(|e| self.read_error(e))?;
        let mut bytes = vec![0; header.size()];
        read_exact_at(&*file, position, &mut bytes).map_err(|e| self.read_error(e))?;
        let corrupt = |why: String| LogError::Corrupt { path: segment.log.path(), position, why };
        let codec = header.compression().ok_or_else(|| corrupt("unknown compression".into()))?;
        let payload = inflate(codec, &bytes[HEADER_SIZE..], INFLATE_LIMIT).map_err(|e| corrupt(e.to_string()))?;
        for record in Records::new(header, &payload) {
            let record = record.map_err(|e| corrupt(e.to_string()))?;
            if wanted(record.offset, record.timestamp) {
                return Ok(Some(Stamped { offset: record.offset, timestamp: record.timestamp, epoch: header.leader_epoch }));
            }
        }
        Ok(None)
    }
}
