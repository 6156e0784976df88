//! The leader-epoch cache of one partition: which epoch starts at which offset. Decides what a replica must cut off to agree with a leader.
//!
//! Never reads the log: the caller passes log start and end. (KIP-101, KIP-279, semantics reference 4.6 and 3.4.)

use super::types::{Epoch, Offset};

/// Entries (epoch, offset of its first record), both rising.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochCache {
    entries: Vec<(Epoch, Offset)>,
}

impl EpochCache {
    /// From the lines of `leader-epoch-checkpoint`. Lines that contradict later ones are dropped, as [`EpochCache::assign`] would.
    pub fn from_entries(entries: impl IntoIterator<Item = (Epoch, Offset)>) -> EpochCache {
        let mut cache = EpochCache::default();
        for (epoch, start) in entries {
            cache.assign(epoch, start);
        }
        cache
    }

    /// The entries, for the checkpoint file.
    pub fn entries(&self) -> &[(Epoch, Offset)] {
        &self.entries
    }

    /// The newest epoch.
    pub fn latest(&self) -> Option<Epoch> {
        self.entries.last().map(|(epoch, _)| *epoch)
    }

    /// Records of `epoch` begin at `start`. Entries that contradict this (a higher or equal epoch, or the same or a later start) go. Returns
    /// whether anything changed; an epoch that is already known to have begun earlier changes nothing.
    pub fn assign(&mut self, epoch: Epoch, start: Offset) -> bool {
        if let Some((latest, begun)) = self.entries.last()
            && *latest == epoch
            && *begun <= start
        {
            return false;
        }
        self.entries.retain(|(known, begun)| *known < epoch && *begun < start);
        self.entries.push((epoch, start));
        true
    }

    /// Where `epoch` ends in a log that ends at `log_end`: the largest known epoch not above it, and the offset after its last record.
    /// `None` is Kafka's "undefined": nothing is known, or the epoch is above all that are.
    pub fn end_offset_for(&self, epoch: Epoch, log_end: Offset) -> Option<(Epoch, Offset)> {
        let (latest, _) = self.entries.last()?;
        if epoch == *latest {
            return Some((epoch, log_end));
        }
        if epoch > *latest {
            return None;
        }
        let after = self.entries.partition_point(|(known, _)| *known <= epoch);
        let end = self.entries[after].1;
        match after.checked_sub(1) {
            Some(at) => Some((self.entries[at].0, end)),
            None => Some((epoch, end)),
        }
    }

    /// The epoch of the record at `offset`; `None` below the first entry.
    pub fn epoch_for(&self, offset: Offset) -> Option<Epoch> {
        let after = self.entries.partition_point(|(_, start)| *start <= offset);
        after.checked_sub(1).map(|at| self.entries[at].0)
    }

    /// The log was cut: it ends at `end` now. Returns whether anything changed.
    pub fn truncate_to(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(_, start)| *start < end);
        self.entries.len() != before
    }

    /// The log starts at `start` now: what began at or before it is one entry, its epoch the last of them. Returns whether anything changed.
    pub fn advance_start(&mut self, start: Offset) -> bool {
        let covered = self.entries.partition_point(|(_, begun)| *begun <= start);
        let Some(last) = covered.checked_sub(1) else { return false };
        let changed = last > 0 || self.entries[last].1 != start;
        self.entries[last].1 = start;
        self.entries.drain(..last);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cache(entries: &[(i32, i64)]) -> EpochCache {
        EpochCache::from_entries(entries.iter().map(|(epoch, start)| (Epoch(*epoch), Offset(*start))))
    }

    #[test]
    fn an_entry_removes_those_that_contradict_it() {
        let table: &[(i32, i64, bool, &[(i32, i64)])] = &[
            (4, 30, true, &[(0, 0), (2, 10), (3, 20), (4, 30)]),
            (3, 25, false, &[(0, 0), (2, 10), (3, 20)]),
            (3, 15, true, &[(0, 0), (2, 10), (3, 15)]),
            (2, 5, true, &[(0, 0), (2, 5)]),
            (5, 10, true, &[(0, 0), (5, 10)]),
            (5, 0, true, &[(5, 0)]),
        ];
        for (epoch, start, changed, after) in table {
            let mut cache = cache(&[(0, 0), (2, 10), (3, 20)]);
            assert_eq!(cache.assign(Epoch(*epoch), Offset(*start)), *changed, "epoch {epoch} at {start}");
            assert_eq!(cache, self::cache(after), "epoch {epoch} at {start}");
        }
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next() {
        let cache = cache(&[(1, 5), (3, 20), (4, 30)]);
        let end = |epoch| cache.end_offset_for(Epoch(epoch), Offset(42)).map(|(epoch, end)| (epoch.0, end.0));
        assert_eq!(end(0), Some((0, 5)), "below the first");
        assert_eq!(end(1), Some((1, 20)));
        assert_eq!(end(2), Some((1, 20)), "unknown in between: the one before");
        assert_eq!(end(3), Some((3, 30)));
        assert_eq!(end(4), Some((4, 42)), "the newest ends with the log");
        assert_eq!(end(5), None);
        assert_eq!(EpochCache::default().end_offset_for(Epoch(0), Offset(42)), None);
    }

    #[test]
    fn raising_the_log_start_folds_what_lies_below() {
        let mut cache = cache(&[(1, 5), (3, 20), (4, 30)]);
        assert!(!cache.advance_start(Offset(3)));
        assert!(cache.advance_start(Offset(25)));
        assert_eq!(cache, self::cache(&[(3, 25), (4, 30)]));
        assert!(!cache.advance_start(Offset(25)));
        assert!(cache.truncate_to(Offset(30)));
        assert_eq!(cache, self::cache(&[(3, 25)]));
    }

    proptest! {
        /// Against a log that remembers the epoch of each of its records.
        #[test]
        fn agrees_with_a_log_of_epochs(runs in prop::collection::vec((1i32..3, 1usize..5), 1..8), start in 0usize..20, ask in -1i32..30) {
            let (mut log, mut cache, mut epoch) = (Vec::new(), EpochCache::default(), 0);
            for (step, count) in runs {
                epoch += step;
                cache.assign(Epoch(epoch), Offset(log.len() as i64));
                log.extend(std::iter::repeat_n(epoch, count));
            }
            let start = start.min(log.len() - 1);
            cache.advance_start(Offset(start as i64));
            for (offset, epoch) in log.iter().enumerate().skip(start) {
                prop_assert_eq!(cache.epoch_for(Offset(offset as i64)), Some(Epoch(*epoch)));
            }
            let end = log.iter().enumerate().skip(start).find(|(_, epoch)| **epoch > ask).map_or(log.len(), |(offset, _)| offset) as i64;
            let expected = (ask <= epoch).then_some(end);
            prop_assert_eq!(cache.end_offset_for(Epoch(ask), Offset(log.len() as i64)).map(|(_, end)| end.0), expected);
        }
    }
}
