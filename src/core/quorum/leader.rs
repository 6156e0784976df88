//! Leading: the first record of the epoch, telling the voters, hearing from them, and what is committed (`kraft.md` 2.2, 3.5, 4.3).

use super::message::{BeginEpoch, Request};
use super::peers::Asked;
use super::records::{ElectionState, LeaderChange};
use super::role::{Leading, Replica, Role};
use super::{Cx, Effect, Quorum, mutant};
use crate::core::types::{BrokerId, DirectoryId, Id, Millis, Offset};
use std::collections::{BTreeMap, BTreeSet};

/// An observer that did not fetch for so long is forgotten, in milliseconds.
const OBSERVER_SESSION: i64 = 300_000;

/// Observers that are kept; more are served all the same.
const OBSERVERS_MAX: usize = 10_000;

impl Quorum {
    /// Elected by `granting` in the present epoch. Kafka's leaders store no vote; it would say nothing that the leader does not.
    pub(super) fn become_leader(&mut self, granting: Vec<BrokerId>, cx: &mut Cx) {
        let (me, epoch) = (self.config.me, self.election.epoch);
        self.persist(ElectionState { epoch, leader: Some(me), voted: None }, cx);
        let others: BTreeSet<BrokerId> = self.config.others().collect();
        let alone = others.is_empty();
        let timing = &self.config.timing;
        let start = self.log.end;
        let leading = Leading {
            epoch,
            start,
            confirmed: false,
            voters: others.iter().map(|id| (*id, Replica::default())).collect(),
            observers: BTreeMap::new(),
            heard: BTreeSet::new(),
            check: (!alone).then(|| Millis(cx.now.0 + timing.check())),
            untold: others,
            begin: (!alone).then(|| Millis(cx.now.0 + timing.begin())),
            parked: Vec::new(),
        };
        self.enter(Role::Leader(leading), cx);
        let record = LeaderChange { leader: me, voters: self.config.voters.clone(), granting };
        cx.fx.push(Effect::AppendLeaderChange { epoch, offset: start, record });
        self.log.append(super::message::BatchMeta { base: start, last: start, epoch, size: 0 });
        self.flush(cx);
    }

    /// The high watermark is what a majority has on disk. It counts from the leader's own first record on: older ones could still be replaced by
    /// another leader's, however many have them (Raft, figure 8; KAFKA-12619). It never goes back.
    pub(super) fn advance_as_leader(&mut self, cx: &mut Cx) {
        let Role::Leader(leading) = &mut self.role else { return };
        let mut ends: Vec<Option<Offset>> = leading.voters.values().map(|replica| replica.end).collect();
        ends.push(Some(if mutant!(UnflushedCounts) { self.log.end } else { self.log.durable }));
        ends.sort_by(|a, b| b.cmp(a));
        let Some(upto) = ends[ends.len() / 2] else { return };
        if upto <= leading.start && !mutant!(CommitWithoutLeaderChange) {
            return;
        }
        let announce = !std::mem::replace(&mut leading.confirmed, true);
        let epoch = self.election.epoch;
        if self.commit(upto, cx) || announce {
            self.release_all(cx);
        }
        if announce {
            cx.fx.push(Effect::BecameLeader { epoch });
        }
    }

    /// A replica fetched, or, with `offset` `None`, asked for a part of a snapshot.
    pub(super) fn note_fetch(&mut self, id: BrokerId, directory: DirectoryId, offset: Option<Offset>, cx: &mut Cx) {
        let majority = self.config.majority();
        let timing = self.config.timing;
        let leader_end = self.log.end;
        let Role::Leader(leading) = &mut self.role else { return };
        let voter = leading.voters.get_mut(&id);
        if voter.is_some() {
            leading.heard.insert(id);
            if leading.heard.len() + 1 >= majority {
                leading.heard.clear();
                leading.check = Some(Millis(cx.now.0 + timing.check()));
            }
        }
        let Some(offset) = offset else { return };
        let replica = match voter {
            Some(replica) => replica,
            None => {
                leading.observers.retain(|_, replica| replica.last_fetch.is_some_and(|at| cx.now.since(at) < OBSERVER_SESSION));
                if leading.observers.len() >= OBSERVERS_MAX {
                    return;
                }
                leading.observers.entry((id, directory)).or_default()
            }
        };
        replica.directory = directory;
        if offset >= leader_end {
            replica.caught_up = Some(cx.now);
        } else if offset >= replica.leader_end && replica.last_fetch.is_some() {
            replica.caught_up = replica.last_fetch;
        }
        replica.end = Some(offset);
        replica.last_fetch = Some(cx.now);
        replica.leader_end = leader_end;
    }

    /// Voters that have not fetched for a while are told who leads.
    pub(super) fn list_untold(&mut self, cx: &mut Cx) {
        let period = self.config.timing.begin().max(1);
        let Role::Leader(leading) = &mut self.role else { return };
        leading.begin = Some(Millis(cx.now.0 + period));
        let silent = |replica: &Replica| replica.last_fetch.is_none_or(|at| cx.now.since(at) >= period);
        leading.untold = leading.voters.iter().filter(|(_, replica)| silent(replica)).map(|(id, _)| *id).collect();
    }

    pub(super) fn tell_untold(&mut self, cx: &mut Cx) {
        let (leader, epoch) = (self.config.me, self.election.epoch);
        let Role::Leader(leading) = &mut self.role else { return };
        let ready: Vec<BrokerId> = leading.untold.iter().copied().filter(|id| self.peers.ready(*id)).collect();
        ready.iter().for_each(|id| {
            leading.untold.remove(id);
        });
        for voter in ready {
            let request = Request::BeginEpoch(BeginEpoch { voter: Some((voter, Id::ZERO)), leader, epoch });
            self.send(voter, Asked::BeginEpoch, request, cx);
        }
    }

    /// Leads no more, for a reason of its own or for want of a majority.
    pub(super) fn step_down(&mut self, cx: &mut Cx) {
        let Role::Leader(leading) = &self.role else { return };
        let mut successors: Vec<(Option<Offset>, BrokerId, DirectoryId)> =
            leading.voters.iter().map(|(id, replica)| (replica.end, *id, replica.directory)).collect();
        successors.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let successors = successors.into_iter().map(|(_, id, directory)| (id, directory)).collect();
        let role = self.resigned(successors, self.config.others().collect(), cx);
        self.enter(role, cx);
    }

    /// What ends with leadership. Every way out comes by here (KAFKA-20914).
    pub(super) fn leave_leading(&mut self, leading: Leading, cx: &mut Cx) {
        for parked in leading.parked {
            self.refuse_fetch(parked.ticket, super::message::Problem::NotLeader, cx);
        }
        cx.fx.push(Effect::Resigned { epoch: leading.epoch });
    }
}
