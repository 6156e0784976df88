//! SyncGroup, Heartbeat, and whether a member may commit offsets.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::Group;
use crate::core::group::GroupRecord;
use crate::core::group::request::{Answer, Membership, State, Sync, Synced, Ticket, Why};
use crate::core::group::timers::Alarm;
use crate::core::group::writes::{Cx, Then};

impl Group {
    /// A member asks for its assignment.
    pub(in crate::core::group) fn sync(&mut self, ticket: Ticket, sync: Sync, cx: &mut Cx<'_>) {
        if let Err(why) = self.check_sync(&sync) {
            cx.answer(ticket, Answer::Sync(Err(why)));
            return;
        }
        let id = &sync.from.member;
        self.unsynced.remove(id);
        if self.unsynced.is_empty() {
            cx.timers.cancel(&mut self.sync_alarm, || Alarm::Sync(self.id.clone()));
        }
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        if self.state == State::Stable {
            let synced = Synced {
                protocol_type: self.protocol_type.clone(),
                protocol: self.protocol.clone(),
                assignment: member.assignment.clone(),
            };
            cx.answer(ticket, Answer::Sync(Ok(synced)));
            return;
        }
        if let Some(earlier) = member.sync.replace(ticket) {
            cx.answer(earlier, Answer::Sync(Err(Why::RebalanceInProgress)));
        }
        if self.is_leader(id) {
            let known = sync.assignments.into_iter().filter(|(id, _)| self.members.contains_key(id));
            let assignment: BTreeMap<Arc<str>, Bytes> = known.map(|(id, bytes)| (id, Bytes::copy_from_slice(&bytes))).collect();
            let records: Vec<GroupRecord> = vec![self.record_of(|id, _| assignment.get(id).cloned().unwrap_or_default())];
            cx.write(records, Then::Assign { group: self.id.clone(), generation: self.generation, assignment });
        }
    }

    fn check_sync(&self, sync: &Sync) -> Result<(), Why> {
        let from = &sync.from;
        if self.state == State::Empty {
            return Err(Why::UnknownMemberId);
        }
        self.check(&from.member, from.instance.as_deref())?;
        let differs = |own: &Option<Arc<str>>, theirs: &Option<Arc<str>>| theirs.is_some() && own != theirs;
        if from.generation != self.generation {
            Err(Why::IllegalGeneration)
        } else if differs(&self.protocol_type, &sync.protocol_type) || differs(&self.protocol, &sync.protocol) {
            Err(Why::InconsistentGroupProtocol)
        } else if self.state == State::PreparingRebalance {
            Err(Why::RebalanceInProgress)
        } else {
            Ok(())
        }
    }

    /// The leader's assignment is in the log, or is not.
    pub(in crate::core::group) fn assigned(
        &mut self,
        generation: i32,
        mut assignment: BTreeMap<Arc<str>, Bytes>,
        result: Result<(), Why>,
        cx: &mut Cx<'_>,
    ) -> Option<GroupRecord> {
        // A rebalance may have begun meanwhile.
        if self.state != State::CompletingRebalance || self.generation != generation {
            return None;
        }
        for (id, member) in &mut self.members {
            member.assignment = assignment.remove(id).unwrap_or_default();
        }
        match result {
            Ok(()) => {
                self.hand_out(None, cx);
                self.go(State::Stable, cx.now);
                None
            }
            Err(why) => {
                self.hand_out(Some(why), cx);
                self.rebalance_or_complete(|| format!("the assignment could not be stored: {why}"), cx)
            }
        }
    }

    /// A member is alive.
    pub(in crate::core::group) fn heartbeat(&mut self, from: &Membership, cx: &mut Cx<'_>) -> Result<(), Why> {
        self.check(&from.member, from.instance.as_deref())?;
        if from.generation != self.generation {
            return Err(Why::IllegalGeneration);
        }
        self.heard(&from.member, cx);
        // It is alive all the same: it may only be slow to join again.
        if self.state == State::PreparingRebalance { Err(Why::RebalanceInProgress) } else { Ok(()) }
    }

    /// Whether those offsets may be stored. A commit shows that the member is alive.
    pub(in crate::core::group) fn may_commit(&mut self, from: &Membership, cx: &mut Cx<'_>) -> Result<(), Why> {
        if from.generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if from.generation < 0 && from.member.is_empty() && from.instance.is_none() {
            // Somebody without membership, while there are members.
            return Err(Why::UnknownMemberId);
        }
        self.check(&from.member, from.instance.as_deref())?;
        if from.generation != self.generation {
            return Err(Why::IllegalGeneration);
        }
        if self.state == State::CompletingRebalance {
            return Err(Why::RebalanceInProgress);
        }
        self.heard(&from.member, cx);
        Ok(())
    }
}
