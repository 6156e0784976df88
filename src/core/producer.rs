//! Idempotent producers of one partition: what each appended last, so that a batch sent twice is stored once and none is left out.
//! Transactions are not decided here; the fields of a snapshot that belong to them are kept.
//!
//! Rules: KIP-98 and reference section 3.1; snapshot: section 5.2.

use super::types::{Millis, Offset};
use std::collections::BTreeMap;

/// Batches of a producer that are recognised when they come again: as many as a client may have in flight.
pub const BATCHES_KEPT: usize = 5;
/// Producers that a partition remembers at most. Beyond it the longest idle eighth is forgotten, as if it had expired.
pub const PRODUCERS_MAX: usize = 1 << 20;
/// Ids of clients come from the controller and are at least 0.
const NO_OFFSET: i64 = -1;

/// The sequence number `by` records after `sequence`: after 2^31-1 comes 0.
pub fn advance(sequence: i32, by: i32) -> i32 {
    sequence.wrapping_add(by) & i32::MAX
}

/// What the header of a batch says of its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerBatch {
    /// At least 0.
    pub producer_id: i64,
    /// Epoch of that id; a higher one starts at sequence 0.
    pub epoch: i16,
    /// Sequence number of the first record; -1 in batches of coordinators.
    pub base_sequence: i32,
    /// Last offset minus base offset.
    pub offset_delta: i32,
}

impl ProducerBatch {
    fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { advance(self.base_sequence, self.offset_delta) }
    }
}

/// What is to be done with a client's batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Append it.
    Fresh,
    /// It was appended before: answer with this, append nothing.
    Duplicate {
        /// Where it was appended.
        base_offset: Offset,
        /// Its last record.
        last_offset: Offset,
        /// Its max timestamp as stored (the append time, if the topic uses that).
        timestamp: Millis,
    },
    /// Do not append it.
    Refused(ProducerRefused),
}

/// Why a batch must not be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProducerRefused {
    /// Another process has taken over this producer.
    #[error("epoch {sent} of producer {producer_id} is over, the current one is {current}")]
    StaleEpoch {
        /// Of the batch.
        producer_id: i64,
        /// Of the batch.
        sent: i16,
        /// The last seen here.
        current: i16,
    },
    /// Records before this batch are missing, or it is older than the batches that are remembered.
    #[error("sequence number {sent} of producer {producer_id} where {expected} is due")]
    OutOfOrder {
        /// Of the batch.
        producer_id: i64,
        /// Its first sequence number.
        sent: i32,
        /// The one that is due.
        expected: i32,
    },
}

/// A batch that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Appended {
    last_offset: i64,
    timestamp: i64,
    last_sequence: i32,
    offset_delta: i32,
}

impl Appended {
    /// No batch yet.
    const NONE: Appended = Appended { last_offset: NO_OFFSET, timestamp: -1, last_sequence: -1, offset_delta: 0 };

    fn is(&self, batch: &ProducerBatch) -> bool {
        self.last_offset >= 0 && self.last_sequence == batch.last_sequence() && self.offset_delta == batch.offset_delta
    }
}

/// One producer. Most have appended one batch long ago, so what only busy ones need is boxed.
#[derive(Debug, Clone)]
struct Entry {
    last: Appended,
    /// Those before the last, newest first.
    older: Option<Box<[Appended; BATCHES_KEPT - 1]>>,
    /// For the snapshot: of the last batch or marker, by the records' clock.
    timestamp: i64,
    /// For expiry: when it last appended here, by our clock.
    active: i64,
    txn_first_offset: i64,
    coordinator_epoch: i32,
    epoch: i16,
}

impl Entry {
    fn batches(&self) -> impl Iterator<Item = &Appended> {
        std::iter::once(&self.last).chain(self.older.iter().flat_map(|o| o.iter()))
    }

    fn push(&mut self, batch: Appended) {
        if self.last.last_offset >= 0 {
            let older = self.older.get_or_insert_with(|| Box::new([Appended::NONE; BATCHES_KEPT - 1]));
            older.rotate_right(1);
            older[0] = self.last;
        }
        self.last = batch;
    }
}

/// What DescribeProducers tells of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerView {
    /// Its id.
    pub producer_id: i64,
    /// The last epoch seen.
    pub epoch: i16,
    /// Sequence number of its last record, -1 if none is known.
    pub last_sequence: i32,
    /// Of its last batch.
    pub last_timestamp: Millis,
    /// Of the last transaction marker, -1 if none.
    pub coordinator_epoch: i32,
    /// Where its open transaction began, if it has one.
    pub txn_first_offset: Option<Offset>,
}

/// A snapshot that cannot be read: fall back to an older one, or to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Written by something else.
    #[error("version {0} of a producer snapshot is unknown; delete the file to have it rebuilt from the log")]
    Version(i16),
    /// Cut off, or its count is wrong.
    #[error("the producer snapshot has {have} bytes instead of {need}; delete the file to have it rebuilt from the log")]
    Size {
        /// Bytes by its count.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Damaged.
    #[error("the producer snapshot has checksum {computed:#010x} but says {stored:#010x}; delete the file to have it rebuilt from the log")]
    Crc {
        /// As written.
        stored: u32,
        /// As computed.
        computed: u32,
    },
}

const SNAPSHOT_VERSION: i16 = 1;
const SNAPSHOT_CRC_START: usize = 6;
const SNAPSHOT_HEADER: usize = 10;
const SNAPSHOT_ENTRY: usize = 46;

/// The producers of one partition, by id.
#[derive(Debug, Clone, Default)]
pub struct Producers {
    // Ordered: ids come from clients, so nothing that can be made to collide; and snapshots are the same for the same content.
    entries: BTreeMap<i64, Entry>,
    /// How many entries have an open transaction.
    open: usize,
}

impl Producers {
    /// No producer is known.
    pub fn new() -> Producers {
        Producers::default()
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Judges a batch that a client wants to append. Of a producer that is not known (new, expired, or its records deleted) any start is
    /// taken.
    pub fn check(&self, batch: &ProducerBatch) -> Verdict {
        let Some(entry) = self.entries.get(&batch.producer_id) else { return Verdict::Fresh };
        let producer_id = batch.producer_id;
        if batch.epoch == entry.epoch
            && let Some(known) = entry.batches().find(|known| known.is(batch))
        {
            return Verdict::Duplicate {
                base_offset: Offset(known.last_offset - i64::from(known.offset_delta)),
                last_offset: Offset(known.last_offset),
                timestamp: Millis(known.timestamp),
            };
        }
        if batch.epoch < entry.epoch {
            return Verdict::Refused(ProducerRefused::StaleEpoch { producer_id, sent: batch.epoch, current: entry.epoch });
        }
        // -1, no sequence, is followed by 0 as well.
        let expected = if batch.epoch == entry.epoch { advance(entry.last.last_sequence, 1) } else { 0 };
        if batch.base_sequence == expected {
            Verdict::Fresh
        } else {
            Verdict::Refused(ProducerRefused::OutOfOrder { producer_id, sent: batch.base_sequence, expected })
        }
    }

    /// Takes note of a batch that was appended, by a client or a leader, or found in the log. `timestamp` is the batch's max timestamp.
    pub fn appended(&mut self, batch: &ProducerBatch, base_offset: Offset, timestamp: Millis, now: Millis) {
        if self.entries.len() >= PRODUCERS_MAX && !self.entries.contains_key(&batch.producer_id) {
            self.forget_idle();
        }
        let fresh = Entry {
            last: Appended::NONE,
            older: None,
            timestamp: timestamp.0,
            active: now.0,
            txn_first_offset: NO_OFFSET,
            coordinator_epoch: -1,
            epoch: batch.epoch,
        };
        let entry = self.entries.entry(batch.producer_id).or_insert(fresh);
        if entry.epoch != batch.epoch {
            entry.epoch = batch.epoch;
            (entry.last, entry.older) = (Appended::NONE, None);
        }
        entry.push(Appended {
            last_offset: base_offset.0 + i64::from(batch.offset_delta),
            timestamp: timestamp.0,
            last_sequence: batch.last_sequence(),
            offset_delta: batch.offset_delta,
        });
        (entry.timestamp, entry.active) = (timestamp.0, now.0);
    }

    /// Forgets the longest idle eighth of the producers without open transaction.
    fn forget_idle(&mut self) {
        let mut times: Vec<i64> = self.entries.values().map(|e| e.active).collect();
        let at = times.len() / 8;
        let limit = *times.select_nth_unstable(at).1;
        let mut quota = at + 1;
        self.entries.retain(|_, e| {
            let goes = quota > 0 && e.active <= limit && e.txn_first_offset < 0;
            quota -= usize::from(goes);
            !goes
        });
    }

    /// Forgets producers that have appended nothing for `after_ms` (`producer.id.expiration.ms`) and have no open transaction; returns how
    /// many. Unlike Apache Kafka this counts from the append, not from the records' timestamps: a producer of old records is not forgotten
    /// while it writes.
    pub fn expire(&mut self, now: Millis, after_ms: i64) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, e| e.txn_first_offset >= 0 || now.0.saturating_sub(e.active) < after_ms);
        before - self.entries.len()
    }

    /// Forgets all, before the log is truncated or read anew.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.open = 0;
    }

    /// Every known producer, by id.
    pub fn producers(&self) -> impl Iterator<Item = ProducerView> {
        self.entries.iter().map(|(id, e)| ProducerView {
            producer_id: *id,
            epoch: e.epoch,
            last_sequence: e.last.last_sequence,
            last_timestamp: Millis(e.timestamp),
            coordinator_epoch: e.coordinator_epoch,
            txn_first_offset: (e.txn_first_offset >= 0).then_some(Offset(e.txn_first_offset)),
        })
    }

    /// What known producers appended last below an offset: id, epoch, and the last offset of that batch, None if nothing was appended in this
    /// epoch. What lies beyond may still be cut, so it does not stand for what lies below; of who has appended all that is remembered beyond,
    /// nothing is said.
    pub fn last_records(&self, below: Offset) -> impl Iterator<Item = (i64, i16, Option<Offset>)> {
        self.entries.iter().filter_map(move |(id, e)| {
            if e.last.last_offset < 0 {
                return Some((*id, e.epoch, None));
            }
            let last = e.batches().find(|batch| (0..below.0).contains(&batch.last_offset))?;
            Some((*id, e.epoch, Some(Offset(last.last_offset))))
        })
    }

    /// Where the earliest open transaction began: readers of committed records stop there.
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        if self.open == 0 {
            return None;
        }
        self.entries.values().map(|e| e.txn_first_offset).filter(|o| *o >= 0).min().map(Offset)
    }

    /// The content of a `.snapshot` file. Only the last batch of each producer goes into it.
    pub fn encode_snapshot(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SNAPSHOT_HEADER + SNAPSHOT_ENTRY * self.entries.len());
        out.extend_from_slice(&SNAPSHOT_VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.entries.len() as i32).to_be_bytes());
        for (id, e) in &self.entries {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&e.epoch.to_be_bytes());
            out.extend_from_slice(&e.last.last_sequence.to_be_bytes());
            out.extend_from_slice(&e.last.last_offset.to_be_bytes());
            out.extend_from_slice(&e.last.offset_delta.to_be_bytes());
            out.extend_from_slice(&e.timestamp.to_be_bytes());
            out.extend_from_slice(&e.coordinator_epoch.to_be_bytes());
            out.extend_from_slice(&e.txn_first_offset.to_be_bytes());
        }
        let crc = crc32c::crc32c(&out[SNAPSHOT_CRC_START..]);
        out[2..SNAPSHOT_CRC_START].copy_from_slice(&crc.to_be_bytes());
        out
    }

    /// Reads a `.snapshot` file, without the producers whose records are older than `after_ms` (when they appended is not in the file).
    pub fn decode_snapshot(bytes: &[u8], now: Millis, after_ms: i64) -> Result<Producers, SnapshotError> {
        let size = |need| SnapshotError::Size { need, have: bytes.len() };
        let mut r = Fields(bytes);
        let version = i16::from_be_bytes(r.next().ok_or(size(SNAPSHOT_HEADER))?);
        if version != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version(version));
        }
        let stored = u32::from_be_bytes(r.next().ok_or(size(SNAPSHOT_HEADER))?);
        let computed = crc32c::crc32c(r.0);
        if stored != computed {
            return Err(SnapshotError::Crc { stored, computed });
        }
        let count = i32::from_be_bytes(r.next().ok_or(size(SNAPSHOT_HEADER))?);
        let need = usize::try_from(count).map_or(usize::MAX, |n| SNAPSHOT_HEADER.saturating_add(n.saturating_mul(SNAPSHOT_ENTRY)));
        if need != bytes.len() {
            return Err(size(need));
        }
        let mut producers = Producers::new();
        while let Some((id, entry)) = r.entry() {
            if entry.txn_first_offset >= 0 || now.0.saturating_sub(entry.timestamp) < after_ms {
                producers.open += usize::from(entry.txn_first_offset >= 0);
                producers.entries.insert(id, entry);
            }
        }
        Ok(producers)
    }
}

/// Big-endian fields, front to back.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn entry(&mut self) -> Option<(i64, Entry)> {
        let id = i64::from_be_bytes(self.next()?);
        let epoch = i16::from_be_bytes(self.next()?);
        let last_sequence = i32::from_be_bytes(self.next()?);
        let last_offset = i64::from_be_bytes(self.next()?);
        let offset_delta = i32::from_be_bytes(self.next()?);
        let timestamp = i64::from_be_bytes(self.next()?);
        let coordinator_epoch = i32::from_be_bytes(self.next()?);
        let txn_first_offset = i64::from_be_bytes(self.next()?).max(NO_OFFSET);
        let last = if last_offset < 0 { Appended::NONE } else { Appended { last_offset, timestamp, last_sequence, offset_delta } };
        Some((id, Entry { last, older: None, timestamp, active: timestamp, txn_first_offset, coordinator_epoch, epoch }))
    }
}

#[cfg(test)]
mod tests;
