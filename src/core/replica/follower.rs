//! What a follower cuts off so that its log agrees with its leader's (KIP-101, KIP-279, KIP-595; semantics reference, 4.6 and 4.7).
//!
//! Everything follows the chain of epochs. The high watermark is no measure: a follower learns it one fetch late, and cutting there loses
//! records that were acknowledged.

use crate::core::epochs::EpochCache;
use crate::core::types::{Epoch, Offset};

/// What to do when the leader has no such offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfRange {
    /// The leader's log ends before ours, as after an unclean election: cut ours to that end.
    TruncateTo(Offset),
    /// The leader's log begins after ours ends: nothing we hold joins up with it. Start an empty log there.
    StartOverAt(Offset),
    /// The ranges overlap after all: keep what we have and fetch from here.
    FetchFrom(Offset),
}

/// Where a follower that begins to follow must cut before its first fetch. A log without epochs can be compared with nobody's: only what
/// is below the high watermark is known to be common.
pub fn cut_before_following(epochs: &EpochCache, log_end: Offset, high_watermark: Offset) -> Option<Offset> {
    (epochs.latest().is_none() && high_watermark < log_end).then_some(high_watermark)
}

/// The leader's largest epoch that is not above our last is `epoch`, and it ends at `end`: where to cut a log that ends at `log_end`.
/// The next fetch may diverge again, at a lower epoch, until both have met.
pub fn cut_at_divergence(epochs: &EpochCache, (epoch, end): (Epoch, Offset), log_end: Offset) -> Offset {
    match epochs.end_offset_for(epoch, log_end) {
        Some((own, own_end)) if own == epoch => own_end.min(end).min(log_end),
        // We lack that epoch: what we have after the one below it is of epochs that the leader has not.
        Some((_, own_end)) => own_end.min(log_end),
        None => end.min(log_end),
    }
}

/// What to do about a leader whose log is `leader_start..leader_end` when it refused our offset `log_end`.
pub fn out_of_range(log_end: Offset, leader_start: Offset, leader_end: Offset) -> OutOfRange {
    if leader_end < log_end {
        OutOfRange::TruncateTo(leader_end)
    } else if leader_start > log_end {
        OutOfRange::StartOverAt(leader_start)
    } else {
        OutOfRange::FetchFrom(log_end)
    }
}

/// The follower's high watermark after an answer of its leader: never beyond what it holds, never back. A leader that has just been
/// elected may not know the newest yet.
pub fn high_watermark(own: Offset, leaders: Offset, log_end: Offset) -> Offset {
    own.max(leaders.min(log_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(i32, i64)]) -> EpochCache {
        EpochCache::from_entries(entries.iter().map(|(epoch, start)| (Epoch(*epoch), Offset(*start))))
    }

    #[test]
    fn divergence_is_cut_by_the_chain_of_epochs() {
        // Our log: epoch 1 from 0, 3 from 20, 5 from 30, end 40.
        let ours = cache(&[(1, 0), (3, 20), (5, 30)]);
        let table = [
            ((5, 35), 35, "same epoch, the leader's is shorter"),
            ((5, 50), 40, "same epoch, ours is shorter: nothing to cut"),
            ((3, 25), 25, "the leader has less of 3 than we have"),
            ((3, 28), 28, "and cannot know our 5"),
            ((3, 33), 30, "it has more of 3: our 5 goes"),
            ((4, 33), 30, "we have no 4: what comes after our 3 goes"),
            ((2, 18), 20, "we have no 2: all after our 1 goes, and we ask again"),
            ((0, 7), 0, "nothing below 1: all of ours goes"),
            ((9, 12), 12, "above all of ours, which no leader answers: the end it names"),
        ];
        for ((epoch, end), cut, why) in table {
            assert_eq!(cut_at_divergence(&ours, (Epoch(epoch), Offset(end)), Offset(40)), Offset(cut), "{why}");
        }
        assert_eq!(cut_at_divergence(&EpochCache::default(), (Epoch(3), Offset(12)), Offset(40)), Offset(12));
    }

    #[test]
    fn only_a_log_without_epochs_is_cut_at_its_high_watermark() {
        assert_eq!(cut_before_following(&EpochCache::default(), Offset(10), Offset(4)), Some(Offset(4)));
        assert_eq!(cut_before_following(&EpochCache::default(), Offset(10), Offset(10)), None);
        assert_eq!(cut_before_following(&cache(&[(0, 0)]), Offset(10), Offset(4)), None);
    }

    #[test]
    fn out_of_range_both_ways() {
        assert_eq!(out_of_range(Offset(40), Offset(0), Offset(30)), OutOfRange::TruncateTo(Offset(30)));
        assert_eq!(out_of_range(Offset(40), Offset(60), Offset(90)), OutOfRange::StartOverAt(Offset(60)));
        assert_eq!(out_of_range(Offset(40), Offset(10), Offset(90)), OutOfRange::FetchFrom(Offset(40)), "it has grown past us since");
        assert_eq!(out_of_range(Offset(40), Offset(40), Offset(40)), OutOfRange::FetchFrom(Offset(40)));
    }

    #[test]
    fn the_high_watermark_of_a_follower_is_what_it_holds_of_the_leaders() {
        assert_eq!(high_watermark(Offset(3), Offset(8), Offset(6)), Offset(6));
        assert_eq!(high_watermark(Offset(3), Offset(5), Offset(6)), Offset(5));
        assert_eq!(high_watermark(Offset(5), Offset(3), Offset(6)), Offset(5), "a new leader does not know better");
    }
}
