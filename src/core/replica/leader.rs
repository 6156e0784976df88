//! The leader's view of one partition: who is in sync, what is on disk, and how far everyone agrees (semantics reference, 4.3 to 4.5).

use super::isr::{Answered, Isr, ProposalRefused};
use super::progress::{Behind, Progress};
use crate::core::controller::records::BrokerEpoch;
use crate::core::types::{BrokerId, Epoch, Millis, Offset};

/// What one leader knows in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    me: BrokerId,
    epoch: Epoch,
    /// Where the log ended when the epoch began.
    epoch_start: Offset,
    partition_epoch: Epoch,
    isr: Isr,
    /// Every other replica, in assignment order.
    followers: Vec<(BrokerId, Progress)>,
    rules: Rules,
    log_end: Offset,
    /// Everything below is on disk, as far as it was asked for.
    flushed: Offset,
    /// Nothing at or above may count before it is on disk: the end of the last append that asked for a flush.
    flush_due: Offset,
    /// Start of the records that no flush was asked for since the last one.
    unflushed_from: Offset,
    high_watermark: Offset,
}

/// What is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `min.insync.replicas`; it counts as the number of replicas if there are fewer.
    pub min_insync: usize,
    /// `replica.lag.time.max.ms`.
    pub lag_max: i64,
}

/// What the controller decided about a partition, for its leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Rises with every decision about the partition.
    pub partition_epoch: Epoch,
    /// All replicas, in assignment order.
    pub replicas: Vec<BrokerId>,
    /// Those in sync.
    pub isr: Vec<BrokerId>,
}

/// How an epoch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// This broker.
    pub me: BrokerId,
    /// The leader epoch.
    pub epoch: Epoch,
    /// The partition.
    pub view: View,
    /// What is configured.
    pub rules: Rules,
    /// Where this replica's log ends.
    pub log_end: Offset,
    /// The high watermark it knew before, as follower or as leader.
    pub high_watermark: Offset,
}

/// A follower fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerFetch {
    /// Who.
    pub replica: BrokerId,
    /// Its incarnation, `NONE` if it does not say.
    pub broker_epoch: BrokerEpoch,
    /// The offset it asks for, which is where its log ends.
    pub from: Offset,
    /// Where its log starts.
    pub log_start: Offset,
    /// Where the leader's log ended just before it was read for this fetch.
    pub leader_end: Offset,
}

/// A fetch that says nothing of a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    /// It is not among the replicas.
    #[error("broker {} is not a replica of this partition", .0.0)]
    NotReplica(BrokerId),
    /// An incarnation that is gone (KIP-903).
    #[error("broker {} fetches with the epoch of an earlier start", .0.0)]
    StaleBroker(BrokerId),
}

/// A change of the ISR that the controller is to decide on (AlterPartition).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// The partition epoch that it knows.
    pub partition_epoch: Epoch,
    /// The ISR it wants, and the incarnations it means; `NONE` where it has not seen one.
    pub isr: Vec<(BrokerId, BrokerEpoch)>,
    /// Who leaves with it, and why.
    pub leaving: Vec<(BrokerId, Behind)>,
}

impl Leader {
    /// A leader that begins its epoch. It goes on from the high watermark that it knew, never from its log end: what lies between may be
    /// on nobody else. What followers hold is unknown until they fetch.
    pub fn new(begin: Begin, now: Millis) -> Leader {
        let Begin { me, epoch, view, rules, log_end, high_watermark } = begin;
        let mut leader = Leader {
            me,
            epoch,
            epoch_start: log_end,
            partition_epoch: view.partition_epoch,
            followers: Vec::new(),
            isr: Isr::new(view.isr),
            rules,
            log_end,
            flushed: log_end,
            flush_due: log_end,
            unflushed_from: log_end,
            high_watermark: high_watermark.min(log_end),
        };
        leader.follow(&view.replicas, now);
        leader.advance(now);
        leader
    }

    fn follow(&mut self, replicas: &[BrokerId], now: Millis) {
        let others = replicas.iter().filter(|id| **id != self.me);
        self.followers = others
            .map(|id| {
                let known = self.followers.iter().find(|(known, _)| known == id).map(|(_, progress)| progress.clone());
                (*id, known.unwrap_or_else(|| Progress::begin(self.isr.committed().contains(id), now)))
            })
            .collect();
    }

    /// The epoch it leads.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The partition epoch it knows.
    pub fn partition_epoch(&self) -> Epoch {
        self.partition_epoch
    }

    /// Everything below is committed.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// Whether the high watermark is beyond all that leaders before may have committed. Until then the latest offset is not known.
    pub fn knows_latest(&self) -> bool {
        self.high_watermark >= self.epoch_start
    }

    /// The ISR that the controller has decided on.
    pub fn isr(&self) -> &[BrokerId] {
        self.isr.committed()
    }

    /// The other replicas.
    pub fn followers(&self) -> &[(BrokerId, Progress)] {
        &self.followers
    }

    fn min_insync(&self) -> usize {
        self.rules.min_insync.min(self.followers.len() + 1)
    }

    /// Whether acks=all may be taken: the committed ISR is as large as `min.insync.replicas` asks.
    pub fn has_enough_replicas(&self) -> bool {
        self.isr.committed().len() >= self.min_insync()
    }

    /// Whether what was committed just now is on as many replicas as `min.insync.replicas` asks; else
    /// NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    pub fn had_enough_replicas(&self) -> bool {
        self.isr.maximal_len() >= self.min_insync()
    }

    /// The configuration changed.
    pub fn set_rules(&mut self, rules: Rules, now: Millis) {
        self.rules = rules;
        self.advance(now);
    }

    /// The metadata has news of the partition in this epoch. Older than what is known: nothing changes.
    pub fn decided(&mut self, view: View, now: Millis) {
        if view.partition_epoch > self.partition_epoch {
            self.partition_epoch = view.partition_epoch;
            self.isr.commit(view.isr);
        }
        if view.partition_epoch == self.partition_epoch {
            self.follow(&view.replicas, now);
            self.advance(now);
        }
    }

    /// Brokers came or went: `registered` tells the incarnation of a broker that is alive and willing, `None` of any other.
    pub fn brokers(&mut self, registered: impl Fn(BrokerId) -> Option<BrokerEpoch>) {
        self.followers.iter_mut().for_each(|(id, progress)| progress.register(registered(*id)));
    }

    /// A follower fetches: it holds everything below the offset that it asks for. Returns the proposal to take it into the ISR, if it is
    /// time for that. To be called once per fetch, when it arrives; not for one that is told of a divergence.
    pub fn fetched(&mut self, fetch: FollowerFetch, now: Millis) -> Result<Option<Proposal>, NotFollowed> {
        let at = self.followers.iter().position(|(id, _)| *id == fetch.replica).ok_or(NotFollowed::NotReplica(fetch.replica))?;
        let progress = &mut self.followers[at].1;
        if progress.is_stale(fetch.broker_epoch) {
            return Err(NotFollowed::StaleBroker(fetch.replica));
        }
        let moved = progress.fetched(fetch.from, fetch.log_start, fetch.broker_epoch, fetch.leader_end, now);
        let proposal = self.expand(at);
        if moved {
            self.advance(now);
        }
        Ok(proposal)
    }

    /// Proposes to take a follower into the ISR that has all that is committed and all of the epochs before.
    fn expand(&mut self, at: usize) -> Option<Proposal> {
        let (id, progress) = &self.followers[at];
        let holds = progress.log_end().is_some_and(|end| end >= self.high_watermark && end >= self.epoch_start);
        if self.isr.proposed().is_some() || self.isr.committed().contains(id) || !holds || !progress.eligible() {
            return None;
        }
        let isr = self.isr.committed().iter().copied().chain([*id]).collect();
        self.isr.propose(isr);
        self.proposal(Vec::new())
    }

    /// Proposes to take those out of the ISR who have not been caught up for `replica.lag.time.max.ms`. To be asked every half of that.
    pub fn shrink(&mut self, now: Millis) -> Option<Proposal> {
        if self.isr.proposed().is_some() {
            return None;
        }
        let leaving: Vec<(BrokerId, Behind)> = self
            .followers
            .iter()
            .filter(|(id, _)| self.isr.committed().contains(id))
            .filter_map(|(id, progress)| Some((*id, progress.behind(self.log_end, now, self.rules.lag_max)?)))
            .collect();
        if leaving.is_empty() {
            return None;
        }
        let stays = |id: &BrokerId| !leaving.iter().any(|(gone, _)| gone == id);
        self.isr.propose(self.isr.committed().iter().copied().filter(stays).collect());
        self.proposal(leaving)
    }

    fn proposal(&self, leaving: Vec<(BrokerId, Behind)>) -> Option<Proposal> {
        let epoch_of = |id: BrokerId| {
            let progress = self.followers.iter().find(|(known, _)| *known == id);
            progress.map_or(BrokerEpoch::NONE, |(_, progress)| progress.broker_epoch())
        };
        let isr = self.isr.proposed()?.iter().map(|id| (*id, epoch_of(*id))).collect();
        Some(Proposal { epoch: self.epoch, partition_epoch: self.partition_epoch, isr, leaving })
    }

    /// The controller answered a proposal. Returns it once more if it must be asked again. An answer that metadata has overtaken changes
    /// nothing.
    pub fn answered(&mut self, proposal: Proposal, answer: Answered, now: Millis) -> Option<Proposal> {
        if proposal.epoch != self.epoch || proposal.partition_epoch != self.partition_epoch || self.isr.proposed().is_none() {
            return None;
        }
        match answer {
            Answered::Decided { epoch, partition_epoch, isr } => {
                if epoch == self.epoch && partition_epoch >= self.partition_epoch {
                    self.partition_epoch = partition_epoch;
                    self.isr.commit(isr);
                    self.advance(now);
                }
                None
            }
            Answered::Refused(ProposalRefused::Dropped) => {
                self.isr.drop_proposal();
                self.advance(now);
                None
            }
            Answered::Refused(ProposalRefused::Outdated) => None,
            Answered::Refused(ProposalRefused::Again) => Some(proposal),
        }
    }

    /// The log now ends at `log_end`. `flush_after` is `flush.messages`: returns whether the log must be flushed now; what was appended
    /// then counts only when [`Leader::flushed`] says that it is on disk.
    pub fn appended(&mut self, log_end: Offset, flush_after: i64, now: Millis) -> bool {
        assert!(log_end >= self.log_end, "the log end of a leader moved back");
        self.log_end = log_end;
        let flush = log_end - self.unflushed_from >= flush_after;
        if flush {
            self.flush_due = log_end;
            self.unflushed_from = log_end;
        }
        self.advance(now);
        flush
    }

    /// Everything below `upto` is on disk.
    pub fn flushed(&mut self, upto: Offset, now: Millis) {
        self.flushed = self.flushed.max(upto);
        self.unflushed_from = self.unflushed_from.max(upto);
        self.advance(now);
    }

    /// How far this replica's own log counts: to its end, unless a flush is due; then only to what is on disk.
    pub fn counted(&self) -> Offset {
        if self.flushed >= self.flush_due { self.log_end } else { self.flushed }
    }

    /// Whether something waits for a flush.
    pub fn awaits_flush(&self) -> bool {
        self.flushed < self.flush_due
    }

    /// Moves the high watermark to what everyone holds who may be in the ISR; it never moves while the ISR is too small (KIP-966), and
    /// never back. A follower that is about to join is waited for, or it would never reach it.
    fn advance(&mut self, now: Millis) {
        if !self.has_enough_replicas() {
            return;
        }
        let mut common = self.counted();
        for (id, progress) in &self.followers {
            let joins = || progress.eligible() && progress.caught_up(self.log_end, now, self.rules.lag_max);
            if self.isr.in_maximal(*id) || joins() {
                // One that has not fetched yet is known to hold what was committed before, and no more.
                common = common.min(progress.log_end().unwrap_or(self.high_watermark));
            }
        }
        self.high_watermark = self.high_watermark.max(common);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: i64 = i64::MAX;

    const NOW: Millis = Millis(1_000);

    /// Epoch 3, log end 10, high watermark 4.
    fn of(replicas: &[i32], isr: &[i32], min_insync: usize) -> Leader {
        let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect();
        let view = View { partition_epoch: Epoch(7), replicas: ids(replicas), isr: ids(isr) };
        let rules = Rules { min_insync, lag_max: 30_000 };
        Leader::new(Begin { me: BrokerId(1), epoch: Epoch(3), view, rules, log_end: Offset(10), high_watermark: Offset(4) }, NOW)
    }

    fn leader(min_insync: usize) -> Leader {
        of(&[1], &[1], min_insync)
    }

    #[test]
    fn a_lone_replica_commits_what_it_has() {
        let mut leader = leader(1);
        assert_eq!(leader.high_watermark(), Offset(10));
        assert!(!leader.appended(Offset(12), NEVER, NOW));
        assert_eq!(leader.high_watermark(), Offset(12));
    }

    #[test]
    fn a_minimum_beyond_the_replicas_counts_as_the_replicas() {
        assert!(leader(2).has_enough_replicas());
    }

    #[test]
    fn nothing_is_committed_below_the_minimum() {
        let mut leader = of(&[1, 2], &[1], 2);
        leader.appended(Offset(12), NEVER, NOW);
        assert!(!leader.has_enough_replicas());
        assert_eq!(leader.high_watermark(), Offset(4));
        leader.set_rules(Rules { min_insync: 1, lag_max: 30_000 }, NOW);
        assert_eq!(leader.high_watermark(), Offset(12));
    }

    #[test]
    fn what_must_be_flushed_counts_when_it_is_on_disk() {
        let mut leader = leader(1);
        assert!(leader.appended(Offset(11), 1, NOW));
        assert_eq!((leader.counted(), leader.high_watermark()), (Offset(10), Offset(10)));
        assert!(leader.appended(Offset(15), 1, NOW), "and again while the first flush runs");
        leader.flushed(Offset(11), NOW);
        assert_eq!((leader.counted(), leader.high_watermark()), (Offset(11), Offset(11)));
        assert!(leader.awaits_flush());
        leader.flushed(Offset(15), NOW);
        assert_eq!((leader.counted(), leader.high_watermark()), (Offset(15), Offset(15)));
        assert!(!leader.awaits_flush());
    }

    #[test]
    fn a_flush_is_due_after_so_many_records() {
        let mut leader = leader(1);
        assert!(!leader.appended(Offset(12), 3, NOW));
        assert_eq!(leader.high_watermark(), Offset(12), "no flush is due yet");
        assert!(leader.appended(Offset(13), 3, NOW));
        assert_eq!(leader.high_watermark(), Offset(12), "the third record waits");
        leader.flushed(Offset(13), NOW);
        assert!(!leader.appended(Offset(15), 3, NOW));
        assert_eq!(leader.high_watermark(), Offset(15));
    }
}
