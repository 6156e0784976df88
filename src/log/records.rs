//! Records inside a batch, read where they lie: a walk that checks every length without keeping anything, and an iterator that lends
//! key and value. Both read through `source::Source`, so that uncompressed bytes and a small window over a decompressor obey the same rules.
//! What a topic demands of its records is `validate`'s business.
//!
//! Record: varint length of the rest, attributes byte, varlong timestamp delta, varint offset delta, key, value (varint length, -1 null),
//! varint header count, headers (key, value). All varints are zigzag.

use super::batch::{BatchHeader, TimestampType};
use super::codec::CodecError;
use super::source::{Parts, Slice, Source};
use crate::core::types::{Millis, Offset};
use std::ops::ControlFlow;

pub use super::window::visit;

/// Why the bytes of a record cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The records end in the middle of one, or before all are there.
    #[error("the records end too early")]
    Short,
    /// More bytes follow the last record.
    #[error("bytes follow the last record")]
    Trailing,
    /// A variable-length integer is longer or larger than its type.
    #[error("a variable-length integer is too long")]
    Varint,
    /// A record length that no record can have, or that reaches beyond the batch.
    #[error("a record length of {0} is impossible")]
    Length(i32),
    /// A key length below -1 or beyond the record.
    #[error("a key length of {0} is impossible")]
    KeyLength(i32),
    /// A value length below -1 or beyond the record.
    #[error("a value length of {0} is impossible")]
    ValueLength(i32),
    /// More headers than the record has room for, or less than none.
    #[error("a header count of {0} is impossible")]
    HeaderCount(i32),
    /// A header key that is null or reaches beyond the record.
    #[error("a header key length of {0} is impossible")]
    HeaderKey(i32),
    /// A header value length below -1 or beyond the record.
    #[error("a header value length of {0} is impossible")]
    HeaderValue(i32),
    /// The fields take another number of bytes than the record length says.
    #[error("a record says it has {said} bytes, its fields take {took}")]
    Size {
        /// The record length.
        said: i32,
        /// What the fields took.
        took: i64,
    },
    /// An offset delta that is not the next one.
    #[error("an offset delta of {found} where {expected} is due")]
    OffsetDelta {
        /// The delta that is due, or the least possible one.
        expected: i32,
        /// What the record says.
        found: i32,
    },
    /// The compressed form is broken.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// A broken record and its index in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("record {index}: {fault}")]
pub struct RecordError {
    /// From 0.
    pub index: i32,
    /// What is wrong.
    pub fault: Fault,
}

/// A length of -1 (null) or more that fits into what is left of the record.
#[inline(always)]
fn nullable<S: Source>(s: &mut S, end: u64, fault: fn(i32) -> Fault) -> Result<Option<S::Span>, Fault> {
    let n = s.varint()?;
    if n >= 0 && n as u64 <= end.saturating_sub(s.position()) {
        return Ok(Some(s.take(n as u32)?));
    }
    if n == -1 { Ok(None) } else { Err(fault(n)) }
}

/// Least bytes of a record after its length: one for each of its fields.
const LEAST_RECORD: i32 = 6;
/// Least bytes of a header: an empty key and a null value.
const LEAST_HEADER: u64 = 2;

/// Reads the record at the source's position and checks all its lengths.
#[inline(always)]
fn record<S: Source>(s: &mut S) -> Result<Parts<S::Span>, Fault> {
    match s.quick() {
        Some(parts) => Ok(parts),
        None => any_record(s),
    }
}

/// [`record`] of any shape.
#[inline(never)]
fn any_record<S: Source>(s: &mut S) -> Result<Parts<S::Span>, Fault> {
    let length = s.varint()?;
    if length < LEAST_RECORD || length as u64 > s.left() {
        return Err(Fault::Length(length));
    }
    let start = s.position();
    let end = start + length as u64;
    s.byte()?; // attributes: none is defined
    let timestamp_delta = s.varlong()?;
    let offset_delta = s.varint()?;
    let key = nullable(s, end, Fault::KeyLength)?;
    let value = nullable(s, end, Fault::ValueLength)?;
    let headers = s.varint()?;
    if headers != 0 {
        if headers < 0 || headers as u64 * LEAST_HEADER > end.saturating_sub(s.position()) {
            return Err(Fault::HeaderCount(headers));
        }
        for _ in 0..headers {
            nullable(s, end, Fault::HeaderKey)?.ok_or(Fault::HeaderKey(-1))?;
            nullable(s, end, Fault::HeaderValue)?;
        }
    }
    if s.position() != end {
        return Err(Fault::Size { said: length, took: (s.position() - start) as i64 });
    }
    Ok(Parts { timestamp_delta, offset_delta, key, value })
}

/// Which offset deltas a batch may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deltas {
    /// 0, 1, 2, ...: a batch from a producer.
    Dense,
    /// Each larger than the one before, none above the header's last: a batch that compaction may have thinned.
    Ascending,
}

/// What a walk sees of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Index in the batch, from 0.
    pub index: i32,
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// Timestamp minus the batch's base timestamp, as the producer wrote it; see [`timestamp`].
    pub timestamp_delta: i64,
    /// Whether the key is not null.
    pub has_key: bool,
}

/// The timestamp of a record: the batch's if the broker's clock counts, else base plus delta (which `validate` has found in range).
#[inline]
pub fn timestamp(header: &BatchHeader, delta: i64) -> Millis {
    match header.timestamp_type() {
        TimestampType::CreateTime => Millis(header.base_timestamp.0.wrapping_add(delta)),
        TimestampType::LogAppendTime => header.max_timestamp,
    }
}

/// The rule for offset deltas, as state over one batch.
#[derive(Debug, Clone, Copy)]
struct Order {
    deltas: Deltas,
    next: i32,
    last: i32,
}

impl Order {
    fn new(header: &BatchHeader, deltas: Deltas) -> Order {
        Order { deltas, next: 0, last: header.last_offset_delta }
    }

    #[inline(always)]
    fn check(&mut self, found: i32) -> Result<(), Fault> {
        let right = match self.deltas {
            Deltas::Dense => found == self.next,
            Deltas::Ascending => found >= self.next && found <= self.last,
        };
        if !right {
            return Err(Fault::OffsetDelta { expected: self.next, found });
        }
        self.next = found.saturating_add(1);
        Ok(())
    }
}

/// Reads all `header.count` records of a source in order and shows each to `visit`, which may stop it; then nothing may be left.
#[inline(always)]
pub(super) fn walk<S: Source>(
    source: &mut S,
    header: &BatchHeader,
    deltas: Deltas,
    mut visit: impl FnMut(Seen) -> ControlFlow<()>,
) -> Result<(), RecordError> {
    let mut order = Order::new(header, deltas);
    for index in 0..header.count {
        let seen = record(source).and_then(|r| {
            order.check(r.offset_delta)?;
            Ok(Seen { index, offset_delta: r.offset_delta, timestamp_delta: r.timestamp_delta, has_key: r.key.is_some() })
        });
        match seen {
            Ok(seen) => {
                if visit(seen).is_break() {
                    return Ok(());
                }
            }
            Err(fault) => return Err(RecordError { index, fault }),
        }
    }
    source.finish().map_err(|fault| RecordError { index: header.count, fault })
}

/// One record, lent from the batch's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset in the partition.
    pub offset: Offset,
    /// Its timestamp, by the batch's timestamp type.
    pub timestamp: Millis,
    /// None: null.
    pub key: Option<&'a [u8]>,
    /// None: null, a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// All its bytes, length prefix and headers included.
    pub raw: &'a [u8],
}

/// The records of a batch whose payload is not compressed (or inflated by `codec::inflate`). Ends after the first error.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    source: Slice<'a>,
    header: BatchHeader,
    order: Order,
    index: i32,
    done: bool,
}

impl<'a> Records<'a> {
    /// `payload`: the bytes after the header, inflated. Offset deltas may have gaps, as compaction leaves them.
    pub fn new(header: &BatchHeader, payload: &'a [u8]) -> Records<'a> {
        Records { source: Slice::new(payload), header: *header, order: Order::new(header, Deltas::Ascending), index: 0, done: false }
    }

    fn read(&mut self) -> Result<Record<'a>, Fault> {
        let start = self.source.position();
        let r = record(&mut self.source)?;
        self.order.check(r.offset_delta)?;
        Ok(Record {
            offset: self.header.base_offset + i64::from(r.offset_delta),
            timestamp: timestamp(&self.header, r.timestamp_delta),
            key: r.key,
            value: r.value,
            raw: self.source.since(start),
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let index = self.index;
        let found = if index < self.header.count {
            self.read()
        } else {
            self.done = true;
            match self.source.finish() {
                Ok(()) => return None,
                Err(fault) => Err(fault),
            }
        };
        self.index += 1;
        self.done |= found.is_err();
        Some(found.map_err(|fault| RecordError { index, fault }))
    }
}
