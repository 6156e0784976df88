//! The leader's view of one partition: who is in sync, what is on disk, and how far everyone agrees (semantics reference, 4.4 and 4.5).
//!
//! Followers report themselves from the replication issue on; until then the ISR is the leader alone, and the rules are already those.

use super::types::{BrokerId, Epoch, Offset};

/// What one leader knows in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    epoch: Epoch,
    isr: Vec<BrokerId>,
    /// `min.insync.replicas`, but never more than there are replicas.
    min_insync: usize,
    log_end: Offset,
    /// Everything below is on disk, as far as it was asked for.
    flushed: Offset,
    /// Nothing at or above may count before it is on disk: the end of the last append that asked for a flush.
    flush_due: Offset,
    /// Start of the records that no flush was asked for since the last one.
    unflushed_from: Offset,
    high_watermark: Offset,
}

impl Leader {
    /// A leader that begins its epoch with a log that ends at `log_end`. Its high watermark is what it was before, at most the log end.
    pub fn new(epoch: Epoch, isr: Vec<BrokerId>, replicas: usize, min_insync: usize, log_end: Offset, high_watermark: Offset) -> Leader {
        let mut leader = Leader {
            epoch,
            isr,
            min_insync: min_insync.min(replicas),
            log_end,
            flushed: log_end,
            flush_due: log_end,
            unflushed_from: log_end,
            high_watermark: high_watermark.min(log_end),
        };
        leader.advance();
        leader
    }

    /// The epoch it leads.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Everything below is committed.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// Whether acks=all may be taken: the committed ISR is as large as `min.insync.replicas` asks.
    pub fn has_enough_replicas(&self) -> bool {
        self.isr.len() >= self.min_insync
    }

    /// The controller decided on the ISR, or the configuration changed.
    pub fn set_isr(&mut self, isr: Vec<BrokerId>, replicas: usize, min_insync: usize) {
        self.isr = isr;
        self.min_insync = min_insync.min(replicas);
        self.advance();
    }

    /// The log now ends at `log_end`. `flush_after` is `flush.messages`: returns whether the log must be flushed now; what was appended
    /// then counts only when [`Leader::flushed`] says that it is on disk.
    pub fn appended(&mut self, log_end: Offset, flush_after: i64) -> bool {
        assert!(log_end >= self.log_end, "the log end of a leader moved back");
        self.log_end = log_end;
        let flush = log_end - self.unflushed_from >= flush_after;
        if flush {
            self.flush_due = log_end;
            self.unflushed_from = log_end;
        }
        self.advance();
        flush
    }

    /// Everything below `upto` is on disk.
    pub fn flushed(&mut self, upto: Offset) {
        self.flushed = self.flushed.max(upto);
        self.unflushed_from = self.unflushed_from.max(upto);
        self.advance();
    }

    /// How far this replica's own log counts: to its end, unless a flush is due; then only to what is on disk.
    pub fn counted(&self) -> Offset {
        if self.flushed >= self.flush_due { self.log_end } else { self.flushed }
    }

    /// Whether something waits for a flush.
    pub fn awaits_flush(&self) -> bool {
        self.flushed < self.flush_due
    }

    /// Moves the high watermark; it never moves while the ISR is too small (KIP-966), and never back.
    fn advance(&mut self) {
        if self.has_enough_replicas() {
            self.high_watermark = self.high_watermark.max(self.counted());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: i64 = i64::MAX;

    fn leader(min_insync: usize) -> Leader {
        Leader::new(Epoch(3), vec![BrokerId(1)], 1, min_insync, Offset(10), Offset(4))
    }

    #[test]
    fn a_lone_replica_commits_what_it_has() {
        let mut leader = leader(1);
        assert_eq!(leader.high_watermark(), Offset(10));
        assert!(!leader.appended(Offset(12), NEVER));
        assert_eq!(leader.high_watermark(), Offset(12));
    }

    #[test]
    fn a_minimum_beyond_the_replicas_counts_as_the_replicas() {
        assert!(leader(2).has_enough_replicas());
    }

    #[test]
    fn nothing_is_committed_below_the_minimum() {
        let mut leader = Leader::new(Epoch(3), vec![BrokerId(1)], 2, 2, Offset(10), Offset(4));
        leader.appended(Offset(12), NEVER);
        assert!(!leader.has_enough_replicas());
        assert_eq!(leader.high_watermark(), Offset(4));
        leader.set_isr(vec![BrokerId(1)], 2, 1);
        assert_eq!(leader.high_watermark(), Offset(12));
    }

    #[test]
    fn what_must_be_flushed_counts_when_it_is_on_disk() {
        let mut leader = leader(1);
        assert!(leader.appended(Offset(11), 1));
        assert_eq!((leader.counted(), leader.high_watermark()), (Offset(10), Offset(10)));
        assert!(leader.appended(Offset(15), 1), "and again while the first flush runs");
        leader.flushed(Offset(11));
        assert_eq!((leader.counted(), leader.high_watermark()), (Offset(11), Offset(11)));
        assert!(leader.awaits_flush());
        leader.flushed(Offset(15));
        assert_eq!((leader.counted(), leader.high_watermark()), (Offset(15), Offset(15)));
        assert!(!leader.awaits_flush());
    }

    #[test]
    fn a_flush_is_due_after_so_many_records() {
        let mut leader = leader(1);
        assert!(!leader.appended(Offset(12), 3));
        assert_eq!(leader.high_watermark(), Offset(12), "no flush is due yet");
        assert!(leader.appended(Offset(13), 3));
        assert_eq!(leader.high_watermark(), Offset(12), "the third record waits");
        leader.flushed(Offset(13));
        assert!(!leader.appended(Offset(15), 3));
        assert_eq!(leader.high_watermark(), Offset(15));
    }
}
