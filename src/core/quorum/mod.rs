//! The metadata quorum (KRaft): who leads the metadata log, and how much of it is committed. A pure state machine with effects.
//!
//! This is a quorum of one: its voter elects itself at once, without a message. What more voters add are roles and messages; the inputs
//! and effects here stay, and so do the rules behind them (`kraft.md` 1.7, 2.3, 4.3 and 4.4): an epoch is persisted before it shows, a
//! leader's first record is its LeaderChange, and nothing counts, not even on its own disk, before it is flushed.
//!
//! No NoOp records: Kafka's leader writes one every `metadata.max.idle.interval.ms` to keep the high watermark of its followers moving. A
//! quorum of one has none, and an idle node is to use neither CPU nor disk.

pub mod records;
pub mod snapshots;

use std::collections::BTreeMap;

use super::types::{BrokerId, DirectoryId, Epoch, Offset};
use records::{ElectionState, LeaderChange};

/// What the node finds in its metadata log when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveredLog {
    /// Where the log ends.
    pub end: Offset,
    /// Epoch of its last record, or of the snapshot it starts from; 0 for none.
    pub last_epoch: Epoch,
}

/// What the shell does, strictly in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make this the content of `quorum-state`, on disk, before anything else happens.
    PersistState(ElectionState),
    /// Append this control record as a batch of its own at that offset.
    AppendLeaderChange {
        /// Epoch of the batch.
        epoch: Epoch,
        /// Its offset, which is where the log ends.
        offset: Offset,
        /// The record.
        record: LeaderChange,
    },
    /// Flush the log and report with [`Quorum::flushed`]. One flush at a time: the next takes all that came in between.
    Flush {
        /// Everything below is to be on disk.
        upto: Offset,
    },
    /// Everything below is committed.
    Committed {
        /// The new high watermark.
        upto: Offset,
    },
    /// This node leads, and everything before its epoch is committed: the controller may begin.
    BecameLeader {
        /// Its epoch.
        epoch: Epoch,
    },
    /// This node leads no more: what is not committed may never be.
    Resigned {
        /// The epoch it led.
        epoch: Epoch,
    },
}

/// An append to a log that others lead, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("node does not lead the metadata quorum in epoch {}", .epoch.0)]
pub struct NotLeader {
    /// The epoch it is in.
    pub epoch: Epoch,
    /// Who leads it, if known.
    pub leader: Option<BrokerId>,
}

/// The stored state leaves no epoch to elect a leader in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the metadata quorum is in epoch {}, the last there is: quorum-state or the metadata log is damaged", .0.0)]
pub struct EpochsExhausted(pub Epoch);

/// A voter as its leader sees it (DescribeQuorum).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterView {
    /// Its node id.
    pub id: BrokerId,
    /// Its metadata directory; zero if it is not known.
    pub directory: DirectoryId,
    /// Where its log ends.
    pub log_end: Offset,
}

enum Role {
    /// Leads since `start`, the offset of its LeaderChange.
    Leader { start: Offset, announced: bool },
    /// Has led this epoch, or was told to stop: it must never lead it again.
    Resigned,
}

/// The quorum as one of its voters sees it.
pub struct Quorum {
    me: BrokerId,
    directory: DirectoryId,
    epoch: Epoch,
    role: Role,
    log_end: Offset,
    /// How much of each voter's log is on its disk, as far as this leader knows.
    durable: BTreeMap<BrokerId, Offset>,
    high_watermark: Option<Offset>,
    /// The flush that runs.
    flushing: Option<Offset>,
}

impl Quorum {
    /// The only voter starts. It elects itself in an epoch that neither its log nor its vote has seen: the one it was in before may hold
    /// records that the crash took, and no two records may share offset and epoch (KAFKA-10527).
    pub fn start(
        me: BrokerId,
        directory: DirectoryId,
        log: RecoveredLog,
        stored: ElectionState,
        fx: &mut Vec<Effect>,
    ) -> Result<Quorum, EpochsExhausted> {
        let seen = log.last_epoch.max(stored.epoch);
        let epoch = Epoch(seen.0.checked_add(1).ok_or(EpochsExhausted(seen))?);
        let mut quorum = Quorum {
            me,
            directory,
            epoch,
            role: Role::Leader { start: log.end, announced: false },
            log_end: log.end,
            durable: BTreeMap::from([(me, log.end)]),
            high_watermark: None,
            flushing: None,
        };
        // Nobody else can vote, so candidacy and election are one write. Kafka's leaders store no vote either.
        fx.push(Effect::PersistState(ElectionState { epoch, leader: Some(me), voted: None }));
        let record = LeaderChange { leader: me, voters: vec![me], granting: vec![me] };
        fx.push(Effect::AppendLeaderChange { epoch, offset: log.end, record });
        quorum.log_end = log.end + 1;
        quorum.flush(fx);
        Ok(quorum)
    }

    /// Takes the next `count` offsets (at least one) for a batch that the shell appends now. Returns its epoch and base offset.
    pub fn append(&mut self, count: i64, fx: &mut Vec<Effect>) -> Result<(Epoch, Offset), NotLeader> {
        assert!(count > 0, "a batch holds records");
        if !self.is_leader() {
            return Err(NotLeader { epoch: self.epoch, leader: self.leader() });
        }
        let base = self.log_end;
        self.log_end = base + count;
        self.flush(fx);
        Ok((self.epoch, base))
    }

    /// Everything of the log below `upto` is on this node's disk.
    pub fn flushed(&mut self, upto: Offset, fx: &mut Vec<Effect>) {
        assert!(upto <= self.log_end, "more was flushed than was appended");
        if self.flushing.is_some_and(|flushing| flushing <= upto) {
            self.flushing = None;
        }
        let mine = self.durable.entry(self.me).or_insert(upto);
        *mine = upto.max(*mine);
        self.advance(fx);
        if self.is_leader() {
            self.flush(fx);
        }
    }

    /// Stops leading, for a shutdown. What was appended and not committed stays in the log, and the next leader may commit it.
    pub fn resign(&mut self, fx: &mut Vec<Effect>) {
        if self.is_leader() {
            self.role = Role::Resigned;
            fx.push(Effect::Resigned { epoch: self.epoch });
        }
    }

    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Who leads the epoch, if known.
    pub fn leader(&self) -> Option<BrokerId> {
        self.is_leader().then_some(self.me)
    }

    /// Whether this node leads.
    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader { .. })
    }

    /// Everything below is committed; unknown until the leader's first record is.
    pub fn high_watermark(&self) -> Option<Offset> {
        self.high_watermark
    }

    /// Where the log ends.
    pub fn log_end(&self) -> Offset {
        self.log_end
    }

    /// The voters, in id order.
    pub fn voters(&self) -> Vec<VoterView> {
        vec![VoterView { id: self.me, directory: self.directory, log_end: self.log_end }]
    }

    fn flush(&mut self, fx: &mut Vec<Effect>) {
        let durable = self.durable.get(&self.me).copied().unwrap_or(Offset(0));
        if self.flushing.is_none() && durable < self.log_end {
            self.flushing = Some(self.log_end);
            fx.push(Effect::Flush { upto: self.log_end });
        }
    }

    /// The high watermark is what a majority has on disk. It counts from the leader's own first record on, and never goes back.
    fn advance(&mut self, fx: &mut Vec<Effect>) {
        let Role::Leader { start, announced } = &mut self.role else { return };
        let mut ends: Vec<Offset> = self.durable.values().copied().collect();
        ends.sort_by(|a, b| b.cmp(a));
        let upto = ends[ends.len() / 2];
        if upto > *start && self.high_watermark.is_none_or(|present| upto > present) {
            self.high_watermark = Some(upto);
            fx.push(Effect::Committed { upto });
            if !*announced {
                *announced = true;
                fx.push(Effect::BecameLeader { epoch: self.epoch });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::types::Id;

    const ME: BrokerId = BrokerId(1);

    fn stored(epoch: i32, leader: Option<BrokerId>, voted: Option<BrokerId>) -> ElectionState {
        ElectionState { epoch: Epoch(epoch), leader, voted: voted.map(|id| (id, Id::ZERO)) }
    }

    fn start(end: i64, last_epoch: i32, stored: ElectionState) -> (Quorum, Vec<Effect>) {
        let mut fx = Vec::new();
        let log = RecoveredLog { end: Offset(end), last_epoch: Epoch(last_epoch) };
        (Quorum::start(ME, Id(500), log, stored, &mut fx).unwrap(), fx)
    }

    fn leader_change() -> LeaderChange {
        LeaderChange { leader: ME, voters: vec![ME], granting: vec![ME] }
    }

    #[test]
    fn the_only_voter_leads_when_its_first_record_is_on_disk() {
        let (mut quorum, mut fx) = start(0, 0, ElectionState::default());
        let epoch = Epoch(1);
        let elected = [
            Effect::PersistState(stored(1, Some(ME), None)),
            Effect::AppendLeaderChange { epoch, offset: Offset(0), record: leader_change() },
            Effect::Flush { upto: Offset(1) },
        ];
        assert_eq!(fx, elected);
        assert_eq!((quorum.high_watermark(), quorum.log_end(), quorum.leader()), (None, Offset(1), Some(ME)));
        fx.clear();
        quorum.flushed(Offset(1), &mut fx);
        assert_eq!(fx, [Effect::Committed { upto: Offset(1) }, Effect::BecameLeader { epoch }]);
    }

    #[test]
    fn every_start_has_an_epoch_of_its_own() {
        let cases = [
            (stored(4, Some(ME), None), 4, 5),
            (stored(4, None, Some(ME)), 3, 5),
            (stored(4, Some(BrokerId(9)), Some(BrokerId(9))), 4, 5),
            (stored(4, None, None), 7, 8),
            (ElectionState::default(), 3, 4),
        ];
        for (state, last_epoch, expected) in cases {
            let (quorum, fx) = start(10, last_epoch, state);
            assert_eq!(quorum.epoch(), Epoch(expected), "{state:?}");
            assert_eq!(fx[0], Effect::PersistState(stored(expected, Some(ME), None)), "persisted before it shows");
        }
        let log = RecoveredLog { end: Offset(0), last_epoch: Epoch(0) };
        let last = Quorum::start(ME, Id(500), log, stored(i32::MAX, None, None), &mut Vec::new());
        assert_eq!(last.err(), Some(EpochsExhausted(Epoch(i32::MAX))));
    }

    #[test]
    fn one_flush_at_a_time_takes_all_that_came_in_between() {
        let (mut quorum, mut fx) = start(0, 0, ElectionState::default());
        fx.clear();
        assert_eq!(quorum.append(3, &mut fx), Ok((Epoch(1), Offset(1))));
        assert_eq!(quorum.append(2, &mut fx), Ok((Epoch(1), Offset(4))));
        assert_eq!(fx, [], "the flush of the LeaderChange still runs");
        quorum.flushed(Offset(1), &mut fx);
        let first = [Effect::Committed { upto: Offset(1) }, Effect::BecameLeader { epoch: Epoch(1) }, Effect::Flush { upto: Offset(6) }];
        assert_eq!(fx, first);
        fx.clear();
        quorum.flushed(Offset(6), &mut fx);
        assert_eq!(fx, [Effect::Committed { upto: Offset(6) }]);
        assert_eq!(quorum.voters(), [VoterView { id: ME, directory: Id(500), log_end: Offset(6) }]);
    }

    #[test]
    fn who_resigned_takes_no_more_and_commits_no_more() {
        let (mut quorum, mut fx) = start(0, 0, ElectionState::default());
        quorum.flushed(Offset(1), &mut fx);
        quorum.append(1, &mut fx).unwrap();
        fx.clear();
        quorum.resign(&mut fx);
        quorum.resign(&mut fx);
        assert_eq!(fx, [Effect::Resigned { epoch: Epoch(1) }]);
        assert_eq!(quorum.append(1, &mut fx), Err(NotLeader { epoch: Epoch(1), leader: None }));
        fx.clear();
        quorum.flushed(Offset(2), &mut fx);
        assert_eq!((fx.as_slice(), quorum.high_watermark()), (&[] as &[Effect], Some(Offset(1))));
    }

    proptest! {
        /// Appends and flushes in any order: only what is on disk is committed, all of it is in the end, and one flush runs at a time.
        #[test]
        fn committed_is_what_is_on_disk(begin in 0i64..50, steps in proptest::collection::vec(proptest::option::of(1i64..5), 0..60)) {
            let (mut quorum, mut fx) = start(begin, 1, ElectionState::default());
            let (mut end, mut on_disk, mut committed) = (begin + 1, begin, 0);
            let mut asked: Vec<Offset> = Vec::new();
            let drain = std::iter::repeat_n(None, 3);
            for step in std::iter::once(None).chain(steps).chain(drain) {
                for effect in fx.drain(..) {
                    match effect {
                        Effect::Flush { upto } => asked.push(upto),
                        Effect::Committed { upto } => {
                            prop_assert!(upto.0 > committed && upto.0 <= on_disk);
                            committed = upto.0;
                        }
                        _ => {}
                    }
                }
                prop_assert!(asked.len() <= 1);
                match step {
                    Some(count) => {
                        prop_assert_eq!(quorum.append(count, &mut fx), Ok((Epoch(2), Offset(end))));
                        end += count;
                    }
                    None => if let Some(upto) = asked.pop() {
                        on_disk = upto.0;
                        quorum.flushed(upto, &mut fx);
                    }
                }
            }
            prop_assert_eq!((on_disk, quorum.high_watermark()), (end, Some(Offset(end))));
        }
    }
}
