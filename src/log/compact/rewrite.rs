//! What becomes of one batch: copied as it is, left out, left without records, or written anew with those that stay.

use std::path::Path;

use super::map::{Hash, OffsetMap};
use super::output::Output;
use super::run::Stats;
use super::txn::Transactions;
use super::{CompactError, LastRecord, Pace};
use crate::core::types::{Millis, Offset};
use crate::log::batch::{Batch, BatchHeader, Compression, HEADER_SIZE, LENGTH_OVERHEAD, TimestampType};
use crate::log::codec::{Codec, CodecError, inflate_into};
use crate::log::deflate::Deflater;
use crate::log::error::LogError;
use crate::log::records::{Record, Records, timestamp};
use crate::log::storage::Storage;
use crate::log::varint::{put_varint, varint, varint_size, varlong};

/// What a batch may inflate to. A larger one cannot be compacted, and its partition is not; see the text of the error.
const INFLATED_MAX: usize = 256 << 20;
/// Bytes of that that are kept for the next batch.
const INFLATED_KEPT: usize = 16 << 20;

fn corrupt(path: &Path, batch: &Batch<'_>, why: impl std::fmt::Display) -> CompactError {
    let why = format!("the batch at offset {}: {why}", batch.header.base_offset.0);
    LogError::Corrupt { path: path.to_owned(), position: batch.position as u64, why }.into()
}

/// Room for the records of one batch.
#[derive(Default)]
pub(super) struct Inflated(Vec<u8>);

impl Inflated {
    /// The records of a batch, uncompressed.
    pub fn of<'a>(&'a mut self, batch: &Batch<'a>, path: &Path) -> Result<&'a [u8], CompactError> {
        let codec = batch.header.compression().ok_or_else(|| corrupt(path, batch, CodecError::Broken))?;
        if codec == Compression::None {
            return Ok(batch.payload());
        }
        if self.0.capacity() > INFLATED_KEPT {
            self.0 = Vec::new();
        }
        inflate_into(codec, batch.payload(), INFLATED_MAX, &mut self.0).map_err(|e| corrupt(path, batch, e))?;
        Ok(&self.0)
    }

    /// Shows each record of a batch.
    pub fn each(&mut self, batch: &Batch<'_>, path: &Path, mut visit: impl FnMut(&Record<'_>)) -> Result<(), CompactError> {
        let payload = self.of(batch, path)?;
        for record in Records::new(&batch.header, payload) {
            visit(&record.map_err(|e| corrupt(path, batch, e))?);
        }
        Ok(())
    }
}

/// The key of a control batch's first record; None if it has no records.
pub(super) fn first_key<'a>(batch: &Batch<'a>, path: &Path) -> Result<Option<&'a [u8]>, CompactError> {
    match Records::new(&batch.header, batch.payload()).next() {
        Some(record) => Ok(Some(record.map_err(|e| corrupt(path, batch, e))?.key.unwrap_or_default())),
        None => Ok(None),
    }
}

/// Whether something of the batch must stay, if only its header; asked when nothing else does.
pub(super) type Stays<'a, S> = &'a dyn Fn(&Output<'_, S>) -> Result<bool, CompactError>;

/// The rules for batches and records, in the course of one task.
pub(super) struct Filter<'a> {
    pub map: &'a OffsetMap,
    /// The map knows the keys below; what lies beyond stays.
    pub end: Offset,
    pub now: Millis,
    pub delete_retention_ms: i64,
    /// By id.
    pub producers: &'a [LastRecord],
    pub transactions: Transactions<'a>,
    pub inflated: Inflated,
    /// Of the keys of one batch.
    pub hashes: Vec<Hash>,
    pub stats: Stats,
}

/// Runs of bytes that stay.
#[derive(Default)]
struct Kept {
    runs: Vec<(usize, usize)>,
    count: i32,
    /// Largest timestamp.
    newest: i64,
    tombstones: bool,
}

impl Filter<'_> {
    /// Writes what stays of a batch. Returns whether anything changed.
    pub fn pass<S: Storage>(
        &mut self,
        batch: &Batch<'_>,
        path: &Path,
        stays: Stays<'_, S>,
        output: &mut Output<'_, S>,
        pace: &mut dyn Pace,
    ) -> Result<bool, CompactError> {
        let header = &batch.header;
        self.stats.read_bytes += batch.bytes.len() as u64;
        let before = output.size();
        let done = if header.is_control() {
            let unneeded = self.transactions.marker(header, first_key(batch, path)?);
            self.marker(batch, path, stays, unneeded, output, pace)
        } else if self.transactions.records(header) {
            self.without_records(batch, stays, output, pace)
        } else if header.base_offset >= self.end || header.count == 0 {
            let empty = header.count == 0;
            if empty { self.without_records(batch, stays, output, pace) } else { as_it_is(batch, output, pace) }
        } else {
            self.records(batch, path, stays, output, pace)
        };
        self.stats.kept_bytes += output.size() - before;
        done
    }

    /// Whether the batch has the last sequence number, or epoch, of a producer that may go on.
    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        if !header.has_producer() {
            return false;
        }
        let Ok(at) = self.producers.binary_search_by_key(&header.producer_id, |last| last.producer_id) else { return false };
        match self.producers[at].last_offset {
            Some(last) => header.last_offset() == last,
            None => header.is_control() && header.producer_epoch == self.producers[at].epoch,
        }
    }

    fn marker<S: Storage>(
        &mut self,
        batch: &Batch<'_>,
        path: &Path,
        stays: Stays<'_, S>,
        unneeded: bool,
        output: &mut Output<'_, S>,
        pace: &mut dyn Pace,
    ) -> Result<bool, CompactError> {
        let header = &batch.header;
        if header.count == 0 || unneeded && header.delete_horizon().is_some_and(|horizon| horizon <= self.now) {
            return self.without_records(batch, stays, output, pace);
        }
        if !unneeded || header.delete_horizon().is_some() {
            return as_it_is(batch, output, pace);
        }
        let mut kept = Kept { newest: i64::MIN, ..Kept::default() };
        let all = (0, batch.payload().len());
        (kept.runs, kept.count, kept.newest) = (vec![all], header.count, header.max_timestamp.0);
        write_anew(batch, path, batch.payload(), &kept, Some(self.horizon()), output, pace)
    }

    fn horizon(&self) -> Millis {
        Millis(self.now.0.saturating_add(self.delete_retention_ms))
    }

    fn without_records<S: Storage>(
        &mut self,
        batch: &Batch<'_>,
        stays: Stays<'_, S>,
        output: &mut Output<'_, S>,
        pace: &mut dyn Pace,
    ) -> Result<bool, CompactError> {
        self.stats.read_records += batch.header.count.max(0) as u64;
        if !self.is_last_of_producer(&batch.header) && !stays(output)? {
            return Ok(true);
        }
        if batch.header.count == 0 {
            return as_it_is(batch, output, pace);
        }
        let header = emptied(&batch.header);
        output.push(&header, &header.encode(), &[], pace)?;
        Ok(true)
    }

    fn records<S: Storage>(
        &mut self,
        batch: &Batch<'_>,
        path: &Path,
        stays: Stays<'_, S>,
        output: &mut Output<'_, S>,
        pace: &mut dyn Pace,
    ) -> Result<bool, CompactError> {
        let header = &batch.header;
        let payload = self.inflated.of(batch, path)?;
        let tombstones_stay = header.delete_horizon().is_none_or(|horizon| self.now < horizon);
        let mut kept = Kept { newest: i64::MIN, ..Kept::default() };
        self.hashes.clear();
        for record in Records::new(header, payload) {
            let record = record.map_err(|e| corrupt(path, batch, e))?;
            self.hashes.extend(record.key.map(|key| self.map.hash(key)));
        }
        self.map.touch(self.hashes.iter().copied());
        let (mut at, mut hashes) = (0, self.hashes.iter());
        for record in Records::new(header, payload) {
            let record = record.map_err(|e| corrupt(path, batch, e))?;
            let hash = record.key.and_then(|_| hashes.next());
            let next = at + record.raw.len();
            let keep = record.offset >= self.end
                || match hash {
                    Some(hash) => {
                        self.map.get(*hash).is_none_or(|last| record.offset >= last) && (record.value.is_some() || tombstones_stay)
                    }
                    None => {
                        self.stats.keyless += 1;
                        false
                    }
                };
            if keep {
                kept.count += 1;
                kept.newest = kept.newest.max(record.timestamp.0);
                kept.tombstones |= record.value.is_none();
                match kept.runs.last_mut() {
                    Some((_, end)) if *end == at => *end = next,
                    _ => kept.runs.push((at, next)),
                }
            }
            at = next;
        }
        self.stats.kept_records += kept.count as u64;
        if kept.count == 0 {
            return self.without_records(batch, stays, output, pace);
        }
        self.stats.read_records += header.count as u64;
        let horizon = (kept.tombstones && header.delete_horizon().is_none()).then(|| self.horizon());
        if kept.count == header.count && horizon.is_none() {
            return as_it_is(batch, output, pace);
        }
        let payload = if header.compression() == Some(Compression::None) { batch.payload() } else { self.inflated.again() };
        write_anew(batch, path, payload, &kept, horizon, output, pace)
    }
}

impl Inflated {
    /// What [`Inflated::of`] gave for the last compressed batch.
    fn again(&self) -> &[u8] {
        &self.0
    }
}

fn as_it_is<S: Storage>(batch: &Batch<'_>, output: &mut Output<'_, S>, pace: &mut dyn Pace) -> Result<bool, CompactError> {
    output.push(&batch.header, batch.bytes, &[], pace)?;
    Ok(false)
}

/// A batch that says no more than which offsets and sequence numbers it had. As Kafka writes it: no codec, no horizon.
fn emptied(header: &BatchHeader) -> BatchHeader {
    let mut header = BatchHeader { length: (HEADER_SIZE - LENGTH_OVERHEAD) as i32, count: 0, ..*header };
    header.set_compression(Compression::None);
    header.set_delete_horizon(None);
    header.base_timestamp = Millis(-1);
    header.crc = header.crc_with(&[]);
    header
}

/// Writes a batch with the runs of `payload` (its records, uncompressed) that stay, in its own codec.
fn write_anew<S: Storage>(
    batch: &Batch<'_>,
    path: &Path,
    payload: &[u8],
    kept: &Kept,
    horizon: Option<Millis>,
    output: &mut Output<'_, S>,
    pace: &mut dyn Pace,
) -> Result<bool, CompactError> {
    let old = &batch.header;
    let mut header = BatchHeader { count: kept.count, ..*old };
    if let Some(horizon) = horizon {
        header.set_delete_horizon(Some(horizon));
    }
    if old.timestamp_type() == TimestampType::CreateTime {
        header.max_timestamp = Millis(kept.newest);
    }
    let codec = match old.compression() {
        Some(Compression::Gzip) => Codec::Gzip { level: -1 },
        Some(Compression::Snappy) => Codec::Snappy,
        Some(Compression::Lz4) => Codec::Lz4,
        Some(Compression::Zstd) => Codec::Zstd { level: 3 },
        Some(Compression::None) | None => Codec::None,
    };
    let fail = |e: CodecError| corrupt(path, batch, e);
    let mut out = Deflater::new(codec, HEADER_SIZE, i32::MAX as usize).map_err(fail)?;
    let mut moved = Vec::new();
    for (from, to) in &kept.runs {
        let mut run = &payload[*from..*to];
        if horizon.is_none() {
            out.write(run).map_err(fail)?;
            continue;
        }
        // Timestamps are relative to what is the horizon now.
        while !run.is_empty() {
            moved.clear();
            run = restamp(run, &mut moved, |delta| timestamp(old, delta).0.wrapping_sub(header.base_timestamp.0))
                .ok_or_else(|| corrupt(path, batch, "a record that was read before cannot be read again"))?;
            out.write(&moved).map_err(fail)?;
        }
    }
    let mut bytes = out.finish().map_err(fail)?;
    header.length = (bytes.len() - LENGTH_OVERHEAD) as i32;
    header.crc = header.crc_with(&bytes[HEADER_SIZE..]);
    bytes[..HEADER_SIZE].copy_from_slice(&header.encode());
    output.push(&header, &bytes, &[], pace)?;
    Ok(true)
}

/// Copies the first record of `records` with another timestamp delta; returns what follows it.
fn restamp<'a>(records: &'a [u8], out: &mut Vec<u8>, delta: impl Fn(i64) -> i64) -> Option<&'a [u8]> {
    let (length, at) = varint(records).ok()?;
    let (record, rest) = records[at..].split_at_checked(usize::try_from(length).ok()?)?;
    let (attributes, fields) = record.split_first()?;
    let (old, size) = varlong(fields).ok()?;
    let new = delta(old);
    put_varint(out, (record.len() - size + varint_size(new)) as i64);
    out.push(*attributes);
    put_varint(out, new);
    out.extend_from_slice(&fields[size..]);
    Some(rest)
}
