//! Reading: from an offset and a limit to a range of a file. The bytes themselves are the caller's to send or to read.

use std::io;
use std::sync::Arc;

use super::error::{LogError, ReadError};
use super::partition_log::Log;
use super::segment::Place;
use super::storage::Storage;
use crate::core::types::Offset;

/// A range of a segment's file that starts with a batch.
pub struct Range<S: Storage> {
    /// Keeps the bytes readable also if the segment is deleted meanwhile.
    pub file: Arc<S::File>,
    /// Where it starts.
    pub position: u64,
    /// Bytes that may be sent: up to the limit that was asked for, but at least the whole first batch. May end inside a batch.
    pub len: u32,
    /// Bytes of the first batch.
    pub first_batch_len: u32,
    /// Base offset of the first batch; at or below the offset that was asked for.
    pub base_offset: Offset,
    /// Base offset of the segment.
    pub segment: Offset,
    /// There is more to read in a later segment: who waits for bytes behind this range waits in vain.
    pub continues: bool,
}

impl<S: Storage> std::fmt::Debug for Range<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {} of segment {}, from offset {}", self.len, self.position, self.segment.0, self.base_offset.0)
    }
}

impl<S: Storage> Log<S> {
    /// Where to read from `from` on: the file range that starts with the batch that holds it (or the next one, if compaction took it), of about
    /// `max_bytes`, and without any batch that ends at or after `upto` (high watermark, last stable offset or log end). None if there is nothing.
    ///
    /// Errors: [`ReadError::OutOfRange`] outside `[start, end]`.
    pub fn read(&self, from: Offset, max_bytes: u32, upto: Offset) -> Result<Option<Range<S>>, ReadError> {
        if from < self.start || from > self.end {
            return Err(ReadError::OutOfRange { from, start: self.start, end: self.end });
        }
        if from >= upto || from == self.end {
            return Ok(None);
        }
        let mut at = self.closed.partition_point(|s| s.base <= from).saturating_sub(1);
        // In the last segment that starts at or before `from`, or in a later one if its end was compacted away.
        if self.active.as_ref().is_some_and(|a| a.segment.base <= from) {
            at = self.closed.len();
        }
        while at <= self.closed.len() {
            let Some(segment) = self.segment(at) else { break };
            if segment.base >= upto && segment.base > from {
                break;
            }
            if let Some(place) = self.find_in(at, from)? {
                let bound = self.bound(at, upto)?;
                if place.position >= bound {
                    return Ok(None);
                }
                let file = self.files.get(&segment.log).map_err(|e| LogError::io("open", &segment.log.path(), e))?;
                let continues = at < self.closed.len() && self.segment(at + 1).is_some_and(|next| next.base < upto);
                let len = (bound - place.position).min(u64::from(max_bytes.max(place.size))) as u32;
                return Ok(Some(Range {
                    file,
                    position: place.position,
                    len,
                    first_batch_len: place.size,
                    base_offset: place.base,
                    segment: segment.base,
                    continues,
                }));
            }
            at += 1;
        }
        Ok(None)
    }

    /// The first batch in segment number `at` that ends at or after `offset`.
    pub(super) fn find_in(&self, at: usize, offset: Offset) -> Result<Option<Place>, LogError> {
        let found = match (self.closed.get(at), &self.active) {
            (Some(segment), _) => segment.find(&self.files, &self.dir, offset),
            (None, Some(active)) => active.find(&self.files, offset),
            (None, None) => Ok(None),
        };
        found.map_err(|e| self.read_error(e))
    }

    pub(super) fn read_error(&self, e: io::Error) -> LogError {
        LogError::io("read the log in", &self.dir, e)
    }

    /// Where in segment number `at` the batches end that end below `upto`.
    fn bound(&self, at: usize, upto: Offset) -> Result<u64, LogError> {
        let (size, next) = match self.closed.get(at) {
            Some(segment) => (segment.size, self.closed.get(at + 1).map(|s| s.base).or(self.active.as_ref().map(|a| a.segment.base))),
            None => (self.active.as_ref().map_or(0, |a| a.segment.size), None),
        };
        if upto >= next.unwrap_or(self.end) {
            return Ok(size);
        }
        Ok(self.find_in(at, upto)?.map_or(size, |place| place.position))
    }
}
