//! From one generation to the next.

use std::sync::Arc;

use super::{Group, JoinRefused, Joined};
use crate::core::group::GroupRecord;
use crate::core::group::request::{JoinedMember, State, Why};
use crate::core::group::timers::Alarm;
use crate::core::group::writes::Cx;

/// The wait for more members of a group that was empty. Goes on as long as some come, within the rebalance timeout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    now: i32,
    left: i32,
    /// Somebody came since this piece of it began.
    pub(super) somebody_came: bool,
}

impl Group {
    /// Begins a rebalance, or sees whether the one that is under way is over.
    pub(super) fn rebalance_or_complete(&mut self, reason: impl FnOnce() -> String, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        match self.state {
            State::Stable | State::CompletingRebalance | State::Empty => self.prepare(reason(), cx),
            State::PreparingRebalance | State::Dead | State::Assigning | State::Reconciling => self.maybe_complete(cx),
        }
    }

    /// Ends the rebalance if everybody has joined, unless it waits for more first members.
    pub(super) fn maybe_complete(&mut self, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        let over = self.state == State::PreparingRebalance && self.previous != State::Empty && self.all_joined();
        if over { self.complete(cx) } else { None }
    }

    /// Begins a rebalance: members are to join again.
    pub(super) fn prepare(&mut self, reason: String, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        if self.state == State::CompletingRebalance {
            self.members.values_mut().for_each(|member| member.assignment.clear());
            self.hand_out(Some(Why::RebalanceInProgress), cx);
        }
        self.unsynced.clear();
        cx.timers.cancel(&mut self.sync_alarm, || Alarm::Sync(self.id.clone()));
        self.reason = reason.into();
        let first = self.state == State::Empty;
        self.go(State::PreparingRebalance, cx.now);
        if first {
            let now = cx.settings.initial_rebalance_delay;
            self.delay = Some(Delay { now, left: self.rebalance_timeout().saturating_sub(now).max(0), somebody_came: false });
            self.set_join_alarm(now, cx);
            return None;
        }
        if self.all_joined() {
            return self.complete(cx);
        }
        self.set_join_alarm(self.rebalance_timeout(), cx);
        None
    }

    fn set_join_alarm(&mut self, millis: i32, cx: &mut Cx<'_>) {
        let due = cx.after(millis);
        cx.timers.set(&mut self.join_alarm, due, || Alarm::Join(self.id.clone()));
    }

    /// The alarm of the join phase came up.
    pub(in crate::core::group) fn join_alarm(&mut self, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        if !cx.timers.ring(&mut self.join_alarm, cx.now, || Alarm::Join(self.id.clone())) {
            return None;
        }
        match &mut self.delay {
            Some(delay) if delay.somebody_came && delay.left > 0 => {
                let passed = delay.now;
                delay.somebody_came = false;
                delay.now = cx.settings.initial_rebalance_delay.min(delay.left);
                delay.left = (delay.left - passed).max(0);
                let next = delay.now;
                self.set_join_alarm(next, cx);
                None
            }
            _ => self.complete(cx),
        }
    }

    /// Ends the join phase with those who have joined. If nobody is left, the record to write is returned.
    pub(super) fn complete(&mut self, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        self.delay = None;
        cx.timers.cancel(&mut self.join_alarm, || Alarm::Join(self.id.clone()));
        if self.joining < self.members.len() {
            let late = self.members.iter().filter(|(_, member)| member.join.is_none() && member.instance.is_none());
            let late: Vec<Arc<str>> = late.map(|(id, _)| id.clone()).collect();
            late.iter().for_each(|id| self.remove(id, cx));
        }
        if !self.elect_leader() {
            // Only static members are left and none of them has come. They stay until their sessions end.
            self.set_join_alarm(self.rebalance_timeout(), cx);
            return None;
        }
        self.generation = if self.generation == i32::MAX { 1 } else { self.generation + 1 };
        self.unsynced.clear();
        if self.members.is_empty() {
            self.protocol = None;
            self.subscribed = self.subscriptions();
            self.go(State::Empty, cx.now);
            return Some(self.record(|_| Default::default()));
        }
        self.protocol = self.elect_protocol();
        self.subscribed = self.subscriptions();
        self.go(State::CompletingRebalance, cx.now);
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in &ids {
            let joined = self.joined(id, false);
            self.answer_join(id, Ok(joined), cx);
            self.set_session(id, None, cx);
            if let Some(member) = self.members.get_mut(id) {
                member.is_new = false;
            }
        }
        self.unsynced.extend(ids);
        let due = cx.after(self.rebalance_timeout());
        cx.timers.set(&mut self.sync_alarm, due, || Alarm::Sync(self.id.clone()));
        None
    }

    /// Makes sure that the leader is one who has joined. False: there are members, but none has.
    fn elect_leader(&mut self) -> bool {
        let leads = |id: &Arc<str>| self.members.get(id).is_some_and(|member| member.join.is_some());
        if self.members.is_empty() || self.leader.as_ref().is_some_and(leads) {
            return true;
        }
        match self.members.iter().find(|(_, member)| member.join.is_some()) {
            Some((id, _)) => {
                self.leader = Some(id.clone());
                true
            }
            None => false,
        }
    }

    /// The answer to a member of the current generation.
    pub(super) fn joined(&self, id: &Arc<str>, skip_assignment: bool) -> Joined {
        let members = if self.is_leader(id) { self.roster() } else { Vec::new() };
        Joined {
            member: id.clone(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment,
            members,
        }
    }

    fn roster(&self) -> Vec<JoinedMember> {
        let members = self.members.iter().map(|(id, member)| JoinedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            metadata: member.metadata(self.protocol.as_deref()),
        });
        members.collect()
    }

    /// The alarm of a member's session came up, or of a member id that was given out.
    pub(in crate::core::group) fn session_alarm(&mut self, id: &Arc<str>, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        let alarm = || Alarm::Session(self.id.clone(), id.clone());
        if let Some(slot) = self.pending.get_mut(id) {
            if cx.timers.ring(slot, cx.now, alarm) {
                self.pending.remove(id);
                return self.complete_if_all_joined(cx);
            }
        } else if let Some(member) = self.members.get_mut(id)
            && cx.timers.ring(&mut member.session, cx.now, alarm)
            && member.is_silent()
        {
            let silent = member.session_timeout;
            self.remove(id, cx);
            return match self.state {
                State::Stable | State::CompletingRebalance => {
                    self.rebalance_or_complete(|| format!("nothing heard of member {id} for {silent} ms"), cx)
                }
                _ => self.complete_if_all_joined(cx),
            };
        }
        None
    }

    fn complete_if_all_joined(&mut self, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        if self.state == State::PreparingRebalance && self.all_joined() { self.complete(cx) } else { None }
    }

    /// The alarm of the sync phase came up: members that did not ask for their assignment are out.
    pub(in crate::core::group) fn sync_alarm(&mut self, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        let rings = cx.timers.ring(&mut self.sync_alarm, cx.now, || Alarm::Sync(self.id.clone()));
        if !rings || self.unsynced.is_empty() || !matches!(self.state, State::CompletingRebalance | State::Stable) {
            return None;
        }
        let late = std::mem::take(&mut self.unsynced);
        late.iter().for_each(|id| self.remove(id, cx));
        let names: Vec<&str> = late.iter().take(3).map(|id| &**id).collect();
        self.prepare(format!("no SyncGroup from {} member(s), such as {}", late.len(), names.join(", ")), cx)
    }

    /// A refusal to join.
    pub(super) fn no(why: Why, member: &Arc<str>) -> Result<Joined, JoinRefused> {
        Err(JoinRefused { why, member: member.clone() })
    }
}
