//! What a leader checks of records before it appends them, and what it changes: exactly one batch, its checksum, every record's lengths,
//! offsets, key and timestamp, the topic's codec. Knows no log and no producers.
//!
//! Order of checks: reference section 3.1. Where Apache Kafka answers UNKNOWN_SERVER_ERROR or stores what no consumer can read (offset
//! deltas that are not 0, 1, 2, ...; rubbish instead of compressed data), the batch is refused as invalid.

use super::batch::{BatchError, BatchHeader, Compression, HEADER_SIZE, MAGIC, TimestampType};
use super::codec::{Codec, CodecError};
use super::deflate::Deflater;
use super::inflate::Inflater;
use super::records::{self, Deltas, Fault, RecordError, Seen};
use super::window::{Tee, Window};
use crate::core::types::Millis;
use std::ops::ControlFlow;

/// Errors of single records that an answer names; a batch may have more.
pub const RECORD_ERRORS_MAX: usize = 1000;
/// "No timestamp" in a record.
const NO_TIMESTAMP: i64 = -1;

/// `compression.type` of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicCompression {
    /// Whatever the producer used.
    Producer,
    /// Always this one ([`Codec::None`]: `uncompressed`). Its level matters only for what must be compressed anew.
    Codec(Codec),
}

/// A topic's demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes`: of a whole batch, compressed, as sent and as written.
    pub max_message_bytes: usize,
    /// `cleanup.policy` has `compact`: every record needs a key.
    pub compacted: bool,
    /// `compression.type`.
    pub compression: TopicCompression,
    /// `message.timestamp.type` is LogAppendTime.
    pub log_append_time: bool,
    /// `message.timestamp.before.max.ms`: how much older than now a record may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how much later.
    pub timestamp_after_max_ms: i64,
    /// `understudy.record.validation`: `full` walks all records; `header` trusts the header where nothing else makes a walk necessary.
    pub walk: bool,
}

/// Who sends the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// A client: base offset 0, no control records, a count that fits. False for the broker's own coordinators.
    pub client: bool,
    /// Whether the request's version knows zstd (Produce 7 and later).
    pub zstd_allowed: bool,
}

/// Exactly one batch, ready to be written as `header.encode()` and then [`Prepared::payload`]. Base offset and leader epoch are the log's
/// to set; they lie outside the checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared<'a> {
    /// The records as they were sent.
    AsSent {
        /// May differ from the bytes in timestamp type, max timestamp and checksum.
        header: BatchHeader,
        /// The whole batch as it came.
        bytes: &'a [u8],
    },
    /// The records in the topic's codec.
    Rewritten {
        /// Same as the first bytes of `bytes`.
        header: BatchHeader,
        /// The whole new batch.
        bytes: Vec<u8>,
    },
}

impl Prepared<'_> {
    /// The header to be written.
    pub fn header(&self) -> &BatchHeader {
        match self {
            Prepared::AsSent { header, .. } | Prepared::Rewritten { header, .. } => header,
        }
    }

    /// The bytes that follow the header.
    pub fn payload(&self) -> &[u8] {
        match self {
            Prepared::AsSent { bytes, .. } => &bytes[HEADER_SIZE..],
            Prepared::Rewritten { bytes, .. } => &bytes[HEADER_SIZE..],
        }
    }
}

/// Why a batch is not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchRefused {
    /// No whole batch, or bytes after it.
    #[error("a produce request must have exactly one record batch per partition; {0}")]
    NotOneBatch(&'static str),
    /// An old message format.
    #[error("only record batches of format 2 are taken, not of format {0}")]
    WrongMagic(i8),
    /// zstd from a request that is too old for it.
    #[error("zstd needs version 7 of the produce request")]
    UnsupportedCompression,
    /// Length or checksum are wrong.
    #[error(transparent)]
    Corrupt(BatchError),
    /// Above `max.message.bytes`.
    #[error("the record batch has {} bytes, at most {max} are allowed", size.map_or("too many".to_owned(), |s| s.to_string()))]
    TooLarge {
        /// Its size as sent; None if it would exceed the limit only when written in the topic's codec.
        size: Option<usize>,
        /// `max.message.bytes`.
        max: usize,
    },
    /// A rule of the batch or of some records is broken.
    #[error("{message}")]
    Invalid {
        /// For the whole batch.
        message: String,
        /// Index and message of each record, at most [`RECORD_ERRORS_MAX`]; empty if it is not about single records.
        record_errors: Vec<(i32, String)>,
    },
    /// Records too old or too new, or a batch that claims the broker's clock.
    #[error("{message}")]
    InvalidTimestamp {
        /// For the whole batch.
        message: String,
        /// As in [`BatchRefused::Invalid`].
        record_errors: Vec<(i32, String)>,
    },
}

fn invalid(message: impl Into<String>) -> BatchRefused {
    BatchRefused::Invalid { message: message.into(), record_errors: Vec::new() }
}

/// Checks `records` (the bytes a request has for one partition) and makes them ready for the log.
pub fn prepare<'a>(records: &'a [u8], rules: &Rules, origin: Origin, now: Millis) -> Result<Prepared<'a>, BatchRefused> {
    let (sent, bytes) = one_batch(records, origin)?;
    let max = rules.max_message_bytes;
    if origin.client && sent.base_offset.0 != 0 {
        return Err(invalid(format!("the base offset of a batch from a client must be 0, not {}", sent.base_offset.0)));
    }
    if bytes.len() > max {
        return Err(BatchRefused::TooLarge { size: Some(bytes.len()), max });
    }
    sent.check_crc(bytes).map_err(BatchRefused::Corrupt)?;
    check_header(&sent, origin)?;

    let from = sent.compression().ok_or_else(|| invalid(format!("no codec has the number {}", sent.attributes & 7)))?;
    let to = target(&sent, from, rules);
    let mut header = sent;
    let mut rewritten = None;
    let max_timestamp = if rules.walk || rules.compacted || to.is_some() {
        let (summary, written) = walk(&sent, from, to, &bytes[HEADER_SIZE..], max)?;
        rewritten = written;
        if summary.breaks(&sent, rules, now)? {
            refuse_records(&sent, &bytes[HEADER_SIZE..], rules, now)?;
        }
        summary.max_timestamp(&sent)
    } else {
        trust_header(&sent, rules, now)?;
        sent.max_timestamp
    };

    if rules.log_append_time {
        header.set_timestamp_type(TimestampType::LogAppendTime);
        header.max_timestamp = now;
    } else {
        header.set_timestamp_type(TimestampType::CreateTime);
        header.max_timestamp = max_timestamp;
    }
    match (rewritten, to) {
        (Some(mut bytes), Some(codec)) => {
            header.set_compression(codec.compression());
            // At most max.message.bytes, which is an i32.
            header.length = (bytes.len() - super::batch::LENGTH_OVERHEAD) as i32;
            header.crc = header.crc_with(&bytes[HEADER_SIZE..]);
            bytes[..HEADER_SIZE].copy_from_slice(&header.encode());
            Ok(Prepared::Rewritten { header, bytes })
        }
        _ => {
            if header != sent {
                header.crc = header.crc_with(&bytes[HEADER_SIZE..]);
            }
            Ok(Prepared::AsSent { header, bytes })
        }
    }
}

/// The one batch that `records` must be. Old formats and zstd are looked for before a second batch, as Apache Kafka does.
fn one_batch(records: &[u8], origin: Origin) -> Result<(BatchHeader, &[u8]), BatchRefused> {
    let header = BatchHeader::parse(records).map_err(|e| match e {
        BatchError::Short { have: 0, .. } => BatchRefused::NotOneBatch("there is none"),
        BatchError::Short { .. } => BatchRefused::NotOneBatch("it is cut off"),
        BatchError::Magic(magic @ 0..MAGIC) => BatchRefused::WrongMagic(magic),
        other => BatchRefused::Corrupt(other),
    })?;
    let bytes = header.whole(records).map_err(|_| BatchRefused::NotOneBatch("it is cut off"))?;
    if header.compression() == Some(Compression::Zstd) && !origin.zstd_allowed {
        return Err(BatchRefused::UnsupportedCompression);
    }
    if bytes.len() < records.len() {
        return Err(BatchRefused::NotOneBatch("more bytes follow the first"));
    }
    Ok((header, bytes))
}

fn check_header(header: &BatchHeader, origin: Origin) -> Result<(), BatchRefused> {
    if header.count < 0 {
        return Err(invalid(format!("a record count of {} is impossible", header.count)));
    }
    if !origin.client {
        return Ok(());
    }
    if header.count == 0 || i64::from(header.last_offset_delta) + 1 != i64::from(header.count) {
        return Err(invalid(format!(
            "a batch of {} records cannot have a last offset delta of {}",
            header.count, header.last_offset_delta
        )));
    }
    if header.is_control() {
        return Err(invalid("clients may not write control records"));
    }
    if header.has_producer() && header.base_sequence < 0 {
        return Err(invalid(format!("a sequence number of {} is impossible for producer {}", header.base_sequence, header.producer_id)));
    }
    Ok(())
}

/// The codec that the records must be rewritten in, if any. Control records stay as they are.
fn target(header: &BatchHeader, from: Compression, rules: &Rules) -> Option<Codec> {
    match rules.compression {
        TopicCompression::Codec(codec) if codec.compression() != from && !header.is_control() => Some(codec),
        _ => None,
    }
}

/// What the rules need to know of all records of a batch.
#[derive(Debug, Clone, Copy)]
struct Summary {
    min_delta: i64,
    max_delta: i64,
    keyless: bool,
}

impl Summary {
    const NOTHING: Summary = Summary { min_delta: i64::MAX, max_delta: i64::MIN, keyless: false };

    #[inline(always)]
    fn add(&mut self, seen: Seen) {
        self.min_delta = self.min_delta.min(seen.timestamp_delta);
        self.max_delta = self.max_delta.max(seen.timestamp_delta);
        self.keyless |= !seen.has_key;
    }

    /// Whether some record may break a rule; which one, [`refuse_records`] finds out.
    fn breaks(&self, header: &BatchHeader, rules: &Rules, now: Millis) -> Result<bool, BatchRefused> {
        if self.min_delta > self.max_delta {
            return Ok(false); // no records
        }
        for delta in [self.min_delta, self.max_delta] {
            if header.base_timestamp.0.checked_add(delta).is_none() {
                return Err(invalid(format!("a timestamp of {} plus {delta} is impossible", header.base_timestamp.0)));
            }
        }
        let flagged = header.timestamp_type() == TimestampType::LogAppendTime;
        let (oldest, newest) = (records::timestamp(header, self.min_delta), records::timestamp(header, self.max_delta));
        Ok(self.keyless && rules.compacted
            || flagged && (rules.log_append_time || header.max_timestamp.0 == NO_TIMESTAMP)
            || !rules.log_append_time && (out_of_range(oldest, rules, now) || out_of_range(newest, rules, now)))
    }

    fn max_timestamp(&self, header: &BatchHeader) -> Millis {
        if self.min_delta > self.max_delta {
            header.max_timestamp
        } else {
            records::timestamp(header, self.max_delta).max(Millis(NO_TIMESTAMP))
        }
    }
}

fn out_of_range(timestamp: Millis, rules: &Rules, now: Millis) -> bool {
    let age = now.0.saturating_sub(timestamp.0);
    timestamp.0 != NO_TIMESTAMP && (age > rules.timestamp_before_max_ms || age.saturating_neg() > rules.timestamp_after_max_ms)
}

/// Walks all records and, if `to` is given, writes them in that codec behind room for a header.
fn walk(
    header: &BatchHeader,
    from: Compression,
    to: Option<Codec>,
    payload: &[u8],
    max: usize,
) -> Result<(Summary, Option<Vec<u8>>), BatchRefused> {
    let refuse = |e: RecordError| match e.fault {
        Fault::Codec(codec) => refuse_codec(codec, max),
        _ => invalid(e.to_string()),
    };
    let codec = |e: CodecError| refuse_codec(e, max);
    let mut summary = Summary::NOTHING;
    let add = |seen| {
        summary.add(seen);
        ControlFlow::Continue(())
    };
    let Some(to) = to else {
        records::visit(header, payload, Deltas::Dense, add).map_err(refuse)?;
        return Ok((summary, None));
    };
    let mut deflater = Deflater::new(to, HEADER_SIZE, max).map_err(codec)?;
    if from == Compression::None {
        records::visit(header, payload, Deltas::Dense, add).map_err(refuse)?;
        deflater.write(payload).map_err(codec)?;
    } else {
        let mut window = Window::new(Tee { from: Inflater::new(from, payload).map_err(codec)?, to: deflater });
        records::walk(&mut window, header, Deltas::Dense, add).map_err(refuse)?;
        deflater = window.feed.to;
    }
    Ok((summary, Some(deflater.finish().map_err(codec)?)))
}

fn refuse_codec(e: CodecError, max: usize) -> BatchRefused {
    match e {
        CodecError::OverLimit => BatchRefused::TooLarge { size: None, max },
        other => invalid(other.to_string()),
    }
}

/// What can be said of timestamps without looking at the records.
fn trust_header(header: &BatchHeader, rules: &Rules, now: Millis) -> Result<(), BatchRefused> {
    let flagged = header.timestamp_type() == TimestampType::LogAppendTime;
    let wrong = flagged && (rules.log_append_time || header.max_timestamp.0 == NO_TIMESTAMP)
        || !rules.log_append_time && (out_of_range(header.base_timestamp, rules, now) || out_of_range(header.max_timestamp, rules, now));
    if wrong {
        let message = "the timestamps of the batch are out of range, or claim to be the broker's".to_owned();
        return Err(BatchRefused::InvalidTimestamp { message, record_errors: Vec::new() });
    }
    Ok(())
}

/// Walks once more and names the records that break a rule. Ok if none does after all.
fn refuse_records(header: &BatchHeader, payload: &[u8], rules: &Rules, now: Millis) -> Result<(), BatchRefused> {
    let flagged = header.timestamp_type() == TimestampType::LogAppendTime;
    let mut errors = Vec::new();
    let mut bad_time = false;
    let visit = |seen: Seen| {
        let timestamp = records::timestamp(header, seen.timestamp_delta);
        let message = if rules.compacted && !seen.has_key {
            Some("a compacted topic takes no record without key".to_owned())
        } else if !rules.log_append_time && out_of_range(timestamp, rules, now) {
            bad_time = true;
            let (least, most) = (now.0.saturating_sub(rules.timestamp_before_max_ms), now.0.saturating_add(rules.timestamp_after_max_ms));
            Some(format!("timestamp {} is not between {least} and {most}", timestamp.0))
        } else if flagged && (rules.log_append_time || timestamp.0 == NO_TIMESTAMP) {
            bad_time = true;
            Some("a producer may not set the timestamp type to LogAppendTime".to_owned())
        } else {
            None
        };
        errors.extend(message.map(|m| (seen.index, m)));
        if errors.len() < RECORD_ERRORS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    records::visit(header, payload, Deltas::Dense, visit).map_err(|e| invalid(e.to_string()))?;
    match errors.as_slice() {
        [] => Ok(()),
        [(index, first), ..] if bad_time => {
            Err(BatchRefused::InvalidTimestamp { message: format!("record {index}: {first}"), record_errors: errors })
        }
        [(index, first), ..] => Err(BatchRefused::Invalid { message: format!("record {index}: {first}"), record_errors: errors }),
    }
}
