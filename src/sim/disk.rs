//! A node's disk: `quorum-state`, the log, snapshots. A power cut loses what was not flushed, all or part of it, and may bring back what was
//! cut and not yet overwritten; a killed process loses nothing, but what it had not flushed is still at risk.

use crate::core::chance::Chance;
use crate::core::epochs::EpochCache;
use crate::core::quorum::RecoveredLog;
use crate::core::quorum::message::BatchMeta;
use crate::core::quorum::records::{ElectionState, SnapshotId};
use crate::core::types::{Epoch, Offset};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of an encoded batch.
pub const BATCH_BYTES: usize = 28;

/// Bytes of an encoded snapshot.
pub const SNAPSHOT_BYTES: usize = 64;

/// A batch: a number stands for its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Offset of the first record.
    pub base: Offset,
    /// Offset of the last.
    pub last: Offset,
    /// The epoch it was appended in.
    pub epoch: Epoch,
    /// Its content; every append has another.
    pub value: u64,
}

impl Batch {
    /// What the rules know of it.
    pub fn meta(&self) -> BatchMeta {
        BatchMeta { base: self.base, last: self.last, epoch: self.epoch, size: BATCH_BYTES }
    }

    /// As bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.base.0.to_be_bytes());
        out.extend(self.last.0.to_be_bytes());
        out.extend(self.epoch.0.to_be_bytes());
        out.extend(self.value.to_be_bytes());
    }

    /// From the bytes of one batch.
    pub fn decode(bytes: &[u8]) -> Batch {
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let epoch = i32::from_be_bytes(bytes[16..20].try_into().expect("four bytes"));
        Batch { base: Offset(long(0) as i64), last: Offset(long(8) as i64), epoch: Epoch(epoch), value: long(20) }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Content of `quorum-state`.
    pub state: ElectionState,
    /// The log as a reader sees it.
    pub log: Vec<Batch>,
    /// How many of its batches are on the platter.
    pub synced: usize,
    /// What the platter holds behind them: batches that were cut and not overwritten.
    ghost: Vec<Batch>,
    /// Where the log starts.
    pub start: Offset,
    /// Where it ends; above `start` also if it holds nothing.
    pub end: Offset,
    /// Snapshots with the hash of what they hold.
    pub snapshots: BTreeMap<SnapshotId, u64>,
    /// Counts cuts.
    pub generation: u64,
    /// What has come of a snapshot that is being loaded.
    pub download: Vec<u8>,
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        Disk {
            state: ElectionState::default(),
            log: Vec::new(),
            synced: 0,
            ghost: Vec::new(),
            start: Offset(0),
            end: Offset(0),
            snapshots: BTreeMap::new(),
            generation: 0,
            download: Vec::new(),
        }
    }

    /// Appends to what readers see.
    pub fn append(&mut self, batch: Batch) {
        assert_eq!(batch.base, self.end, "a batch continues the log");
        self.end = batch.last + 1;
        self.log.push(batch);
    }

    /// The epoch of the record before `offset`, if it is known.
    pub fn epoch_before(&self, offset: Offset) -> Option<Epoch> {
        match self.position(offset) {
            0 if offset == Offset(0) => Some(Epoch(0)),
            0 => self.snapshots.keys().find(|id| id.end == offset).map(|id| id.epoch),
            at => Some(self.log[at - 1].epoch),
        }
    }

    /// How many batches end below `offset`.
    pub fn position(&self, offset: Offset) -> usize {
        self.log.partition_point(|batch| batch.last < offset)
    }

    /// The batch that ends right before `end`.
    pub fn batch_ending_at(&self, end: Offset) -> Option<(usize, Batch)> {
        let at = self.position(end).checked_sub(1)?;
        (self.log[at].last + 1 == end).then_some((at, self.log[at]))
    }

    /// Cuts the log.
    pub fn truncate(&mut self, to: Offset) {
        let keep = self.position(to);
        if keep < self.synced {
            let mut ghost = self.log[keep..self.synced].to_vec();
            ghost.append(&mut self.ghost);
            (self.ghost, self.synced) = (ghost, keep);
        }
        self.log.truncate(keep);
        self.end = to;
        self.generation += 1;
    }

    /// A flush of everything below `upto`, begun at `generation`, is done.
    pub fn flushed(&mut self, upto: Offset, generation: u64) {
        if generation == self.generation {
            let synced = self.position(upto);
            if synced >= self.synced {
                self.synced = synced;
                self.ghost.clear();
            }
        }
    }

    /// Drops everything and starts at the end of a snapshot.
    pub fn restart_at(&mut self, id: SnapshotId) {
        self.log.clear();
        self.ghost.clear();
        (self.synced, self.start, self.end) = (0, id.end, id.end);
        self.snapshots.retain(|known, _| *known >= id);
        self.generation += 1;
    }

    /// The log starts at `start`: older batches and snapshots go.
    pub fn advance_start(&mut self, start: Offset) {
        let gone = self.position(start);
        self.log.drain(..gone);
        self.synced = self.synced.saturating_sub(gone);
        self.start = start;
        self.snapshots.retain(|id, _| id.end >= start);
    }

    /// The power fails. Returns how many batches are lost.
    pub fn power_cut(&mut self, chance: &mut dyn Chance) -> usize {
        let before = self.log.len();
        if !self.ghost.is_empty() && chance.below(2) == 0 {
            self.log.truncate(self.synced);
            self.log.append(&mut self.ghost);
        } else {
            let kept = self.synced + chance.below(before - self.synced + 1);
            self.log.truncate(kept);
        }
        self.ghost.clear();
        self.synced = self.log.len();
        self.end = self.log.last().map_or(self.start, |batch| batch.last + 1);
        before.saturating_sub(self.log.len())
    }

    /// What a start finds. A snapshot beyond the log was loaded by a process that died before it had dropped the log.
    pub fn recover(&mut self) -> RecoveredLog {
        self.download.clear();
        self.generation = 0;
        let last_epoch = self.log.last().map(|batch| batch.epoch).or(self.epoch_before(self.start)).unwrap_or(Epoch(0));
        if let Some(id) = self.snapshots.keys().next_back().copied()
            && (id.epoch, id.end) > (last_epoch, self.end)
        {
            self.restart_at(id);
            self.generation = 0;
        }
        let mut epochs = EpochCache::default();
        self.log.iter().for_each(|batch| {
            epochs.assign(batch.epoch, batch.base);
        });
        let durable = if self.synced == self.log.len() { self.end } else { self.log[self.synced].base };
        RecoveredLog {
            start: self.start,
            end: self.end,
            durable,
            base_epoch: self.epoch_before(self.start),
            epochs: epochs.entries().to_vec(),
            snapshots: self.snapshots.keys().map(|id| (*id, SNAPSHOT_BYTES as u64)).collect(),
        }
    }
}

/// A snapshot as bytes.
pub fn encode_snapshot(id: SnapshotId, hash: u64) -> Bytes {
    let mut out = Vec::with_capacity(SNAPSHOT_BYTES);
    out.extend(id.end.0.to_be_bytes());
    out.extend(i64::from(id.epoch.0).to_be_bytes());
    out.extend(hash.to_be_bytes());
    out.resize(SNAPSHOT_BYTES, 0x5a);
    out.into()
}

/// The hash in it, if the bytes are that snapshot's.
pub fn decode_snapshot(id: SnapshotId, bytes: &[u8]) -> Option<u64> {
    let hash = u64::from_be_bytes(bytes.get(16..24)?.try_into().ok()?);
    (encode_snapshot(id, hash) == bytes).then_some(hash)
}
