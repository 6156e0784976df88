//! What the rules know of this node's metadata log: where it starts and ends, what of it is on disk, which epoch began where, which
//! snapshots there are. Decides whether another node's log is a prefix of it, and what to cut to agree with a leader.
//!
//! Epochs are those of records. Kafka also notes an epoch that has no record yet; here an epoch's first record is appended in the same
//! step in which its leader is elected, so there is none.

use super::message::{BatchMeta, Detour};
use super::records::SnapshotId;
use crate::core::epochs::EpochCache;
use crate::core::types::{Epoch, Offset};
use std::collections::BTreeMap;

/// What the node finds in its metadata directory when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredLog {
    /// Where the log starts.
    pub start: Offset,
    /// Where it ends.
    pub end: Offset,
    /// Everything below is known to be on disk.
    pub durable: Offset,
    /// Epoch of the record before `start`, if a snapshot that ends there says it; 0 for a log that starts at 0.
    pub base_epoch: Option<Epoch>,
    /// Epochs and the offset where each begins.
    pub epochs: Vec<(Epoch, Offset)>,
    /// Snapshots with their sizes in bytes.
    pub snapshots: Vec<(SnapshotId, u64)>,
}

impl RecoveredLog {
    /// A log without a record.
    pub fn empty() -> RecoveredLog {
        let zero = Offset(0);
        RecoveredLog { start: zero, end: zero, durable: zero, base_epoch: Some(Epoch(0)), epochs: Vec::new(), snapshots: Vec::new() }
    }
}

#[derive(Debug)]
pub(super) struct LogView {
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) durable: Offset,
    /// Counts cuts: a flush that began before a cut says nothing about what is appended after it.
    pub(super) generation: u64,
    base_epoch: Option<Epoch>,
    epochs: EpochCache,
    snapshots: BTreeMap<SnapshotId, u64>,
}

impl LogView {
    pub(super) fn new(log: RecoveredLog) -> LogView {
        LogView {
            start: log.start,
            end: log.end,
            durable: log.durable.min(log.end),
            generation: 0,
            base_epoch: log.base_epoch,
            epochs: EpochCache::from_entries(log.epochs),
            snapshots: log.snapshots.into_iter().collect(),
        }
    }

    /// Epoch of the last record, or of the last one in the snapshot that the log starts from.
    pub(super) fn last_epoch(&self) -> Epoch {
        self.epochs.latest().or(self.base_epoch).unwrap_or(Epoch(0))
    }

    /// Whether a log that ends so holds at least as much as this one.
    pub(super) fn is_behind(&self, last_epoch: Epoch, end: Offset) -> bool {
        (last_epoch, end) >= (self.last_epoch(), self.end)
    }

    pub(super) fn append(&mut self, batch: BatchMeta) {
        self.epochs.assign(batch.epoch, batch.base);
        self.end = batch.last + 1;
    }

    pub(super) fn truncate(&mut self, to: Offset) {
        self.generation += 1;
        self.end = to;
        self.durable = self.durable.min(to);
        self.epochs.truncate_to(to);
    }

    /// The log starts anew behind a snapshot that was loaded.
    pub(super) fn restart_at(&mut self, id: SnapshotId, size: u64) {
        self.generation += 1;
        (self.start, self.end, self.durable) = (id.end, id.end, id.end);
        self.base_epoch = Some(id.epoch);
        self.epochs = EpochCache::default();
        self.snapshots = BTreeMap::from([(id, size)]);
    }

    pub(super) fn snapshot_made(&mut self, id: SnapshotId, size: u64) {
        self.snapshots.insert(id, size);
    }

    /// The log starts at `start` now, and older snapshots than that are gone.
    pub(super) fn advance_start(&mut self, start: Offset) {
        if start <= self.start {
            return;
        }
        self.base_epoch = self.snapshots.keys().find(|id| id.end == start).map(|id| id.epoch);
        self.start = start;
        self.snapshots.retain(|id, _| id.end >= start);
        self.epochs.advance_start(start);
    }

    pub(super) fn snapshot_size(&self, id: SnapshotId) -> Option<u64> {
        self.snapshots.get(&id).copied()
    }

    pub(super) fn latest_snapshot(&self) -> Option<SnapshotId> {
        self.snapshots.keys().next_back().copied()
    }

    /// Whether a log that ends at `offset` with `last_epoch` is a prefix of this one; else what its owner is to do (`kraft.md` 4.1).
    pub(super) fn check_prefix(&self, offset: Offset, last_epoch: Epoch) -> Option<Detour> {
        if offset == Offset(0)
            && let Some(id) = self.latest_snapshot()
        {
            return Some(Detour::Snapshot(id));
        }
        let covered = offset < self.start || offset == self.start && self.start > Offset(0) && self.base_epoch != Some(last_epoch);
        let end = if covered { None } else { self.end_of(last_epoch) };
        match (end, self.latest_snapshot()) {
            (Some((epoch, end)), _) if epoch == last_epoch && end >= offset => None,
            (Some((epoch, end)), _) => Some(Detour::Diverging { epoch, end }),
            (None, Some(id)) => Some(Detour::Snapshot(id)),
            // A log that starts above 0 has the snapshot it starts from; without one it has everything.
            (None, None) => Some(Detour::Diverging { epoch: Epoch(0), end: Offset(0) }),
        }
    }

    /// Where to cut this log when the leader's last epoch not above ours ends at `end` (`kraft.md` 4.2).
    pub(super) fn truncation_for(&self, epoch: Epoch, end: Offset) -> Offset {
        if epoch == Epoch(0) {
            return end.min(self.end);
        }
        match self.end_of(epoch) {
            Some((known, mine)) if known == epoch => mine.min(end),
            Some((_, mine)) => mine,
            None => self.start,
        }
    }

    /// The largest epoch not above `epoch`, and where it ends. `None`: that lies below this log.
    fn end_of(&self, epoch: Epoch) -> Option<(Epoch, Offset)> {
        if epoch >= self.last_epoch() {
            return Some((self.last_epoch(), self.end));
        }
        let entries = self.epochs.entries();
        let after = entries.partition_point(|(known, _)| *known <= epoch);
        let end = entries.get(after)?.1;
        match after.checked_sub(1) {
            Some(at) => Some((entries[at].0, end)),
            None => self.base_epoch.filter(|base| *base <= epoch).map(|base| (base, end)),
        }
    }
}
