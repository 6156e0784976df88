//! Members of a consumer group that speak the classic protocol, while a group moves from one to the other.
//!
//! Each is on its own: JoinGroup takes the next step towards the target and is answered at once, with the member's epoch as generation;
//! SyncGroup gets what it has; Heartbeat says REBALANCE_IN_PROGRESS where it is to join again. Nobody leads.

use std::sync::Arc;

use super::new_member_id;
use super::{CONSUMER, Group};
use crate::core::chance::Chance;
use crate::core::group::classic::kept;
use crate::core::group::embedded::{Assigned, Named, Subscription};
use crate::core::group::records::{ClassicMemberMetadata, MemberState};
use crate::core::group::request::{Answer, Join, JoinRefused, Joined, Leaver, Left, Membership, Protocol, Sync, Synced, Ticket, Why};
use crate::core::group::timers::Alarm;
use crate::core::group::topics::World;
use crate::core::group::writes::Cx;
use crate::core::types::TopicId;

use super::member::Member;

/// What became of a JoinGroup.
pub(in crate::core::group) enum JoinedAs {
    /// It is answered, or will be.
    Member,
    /// It took the place of the last member of the new protocol: the group is to become a classic one with it, and this is the answer.
    LastOne {
        /// To the member.
        answer: Joined,
        /// Members are to join again.
        rebalance: bool,
    },
}

impl Group {
    /// JoinGroup. `may_downgrade` says that the group may become a classic one.
    pub(in crate::core::group) fn join(
        &mut self,
        ticket: Ticket,
        join: &Join,
        may_downgrade: bool,
        chance: &mut dyn Chance,
        cx: &mut Cx<'_>,
    ) -> JoinedAs {
        let (id, replaces, subscription) = match self.let_in(join, chance, cx) {
            Ok(admitted) => admitted,
            Err(refused) => {
                cx.answer(ticket, Answer::Join(Err(refused)));
                return JoinedAs::Member;
            }
        };
        let downgrades = may_downgrade && replaces.as_ref().is_some_and(|old| self.is_last_consumer(std::slice::from_ref(old)));
        if let Some(old) = &replaces {
            self.replace(old, &id, cx);
        }
        let (mut meta, _) = self.so_far(&id);
        meta.instance = join.instance.clone().or(meta.instance);
        meta.rack = subscription.rack.or(meta.rack);
        meta.rebalance_timeout = join.rebalance_timeout;
        meta.topics = subscription.topics;
        meta.regex = None;
        meta.client_id = join.client_id.clone();
        meta.client_host = join.client_host.clone();
        let protocols = kept(&join.protocols);
        let protocol = protocols.first().map(|protocol| protocol.name.clone());
        meta.classic = Some(ClassicMemberMetadata { session_timeout: join.session_timeout, protocols });
        let changed = self.subscribe(&id, meta, cx);
        let rebalance = downgrades && self.target_epoch < self.epoch;
        if !downgrades {
            self.refresh_target(cx);
        }
        if !rebalance {
            let owned = ids_of(&subscription.owned, cx.world);
            self.reconcile(&id, changed, Some(&owned), cx);
        }
        self.heard(&id, cx);
        let alarm = (self.id.clone(), id.clone());
        if let Some(member) = self.members.get_mut(&id) {
            cx.timers.cancel(&mut member.progress, || Alarm::Progress(alarm.0.clone(), alarm.1.clone()));
            let due = cx.after(join.rebalance_timeout);
            cx.timers.set(&mut member.sync, due, || Alarm::MemberSync(alarm.0.clone(), alarm.1.clone()));
        }
        let answer = Joined {
            generation: self.members.get(&id).map_or(0, |member| member.current.epoch),
            member: id,
            protocol_type: Some(CONSUMER.into()),
            protocol,
            leader: "".into(),
            skip_assignment: false,
            members: Vec::new(),
        };
        if downgrades {
            return JoinedAs::LastOne { answer, rebalance };
        }
        self.flush(Some((ticket, Answer::Join(Ok(answer)))), cx);
        JoinedAs::Member
    }

    /// Whether a JoinGroup is let in: its member id, whose place it takes, and what it reads.
    fn let_in(&self, join: &Join, chance: &mut dyn Chance, cx: &Cx<'_>) -> Result<(Arc<str>, Option<Arc<str>>, Subscription), JoinRefused> {
        let refuse = |why: Why, member: &Arc<str>| JoinRefused { why, member: member.clone() };
        let member = &join.member;
        if !cx.settings.consumer.upgrade && !cx.settings.consumer.downgrade {
            return Err(refuse(Why::InconsistentGroupProtocol, member));
        }
        let is_new = member.is_empty();
        let id = if is_new { new_member_id(chance) } else { member.clone() };
        self.check_room(&id, cx.settings.consumer.max_size).map_err(|refused| refuse(refused.why, &"".into()))?;
        let common = |protocol: &Protocol| self.classic_protocols.get(&protocol.name).copied().unwrap_or(0) == self.classic_members;
        let subscription = join.protocols.first().and_then(|first| Subscription::read(&first.metadata));
        let Some(subscription) = subscription.filter(|_| &*join.protocol_type == CONSUMER && join.protocols.iter().any(common)) else {
            return Err(refuse(Why::InconsistentGroupProtocol, member));
        };
        if is_new && join.instance.is_none() && join.member_id_required {
            return Err(refuse(Why::MemberIdRequired, &id));
        }
        let owner = join.instance.as_ref().map(|instance| self.statics.get(instance));
        let replaces = match owner {
            None => None,
            Some(owner) if is_new => owner.cloned(),
            Some(None) => return Err(refuse(Why::UnknownMemberId, member)),
            Some(Some(owner)) if owner != member => return Err(refuse(Why::FencedInstanceId, member)),
            Some(Some(_)) => None,
        };
        Ok((id, replaces, subscription))
    }

    /// The classic member that sends a request.
    fn classic_member(&self, from: &Membership) -> Result<&Member, Why> {
        if let Some(instance) = &from.instance {
            let owner = self.statics.get(instance).ok_or(Why::UnknownMemberId)?;
            if *owner != from.member {
                return Err(Why::FencedInstanceId);
            }
        }
        let member = self.members.get(&from.member).filter(|member| member.is_classic()).ok_or(Why::UnknownMemberId)?;
        if from.generation == member.current.epoch { Ok(member) } else { Err(Why::IllegalGeneration) }
    }

    /// SyncGroup.
    pub(in crate::core::group) fn sync(&mut self, ticket: Ticket, sync: &Sync, cx: &mut Cx<'_>) {
        match self.synced(sync, cx) {
            Ok(synced) => self.answer_when_written(ticket, Answer::Sync(Ok(synced)), cx),
            Err(why) => cx.answer(ticket, Answer::Sync(Err(why))),
        }
    }

    fn synced(&mut self, sync: &Sync, cx: &mut Cx<'_>) -> Result<Synced, Why> {
        let id = sync.from.member.clone();
        let member = self.classic_member(&sync.from)?;
        let protocol = member.protocols().first();
        let differs = |own: Option<&str>, theirs: &Option<Arc<str>>| theirs.is_some() && own != theirs.as_deref();
        if differs(Some(CONSUMER), &sync.protocol_type) || differs(protocol.map(|p| &*p.name), &sync.protocol) {
            return Err(Why::InconsistentGroupProtocol);
        }
        if self.target_epoch > member.current.epoch && member.current.state != MemberState::UnrevokedPartitions {
            self.await_join(&id, cx);
            return Err(Why::RebalanceInProgress);
        }
        let version = protocol.and_then(|protocol| Subscription::read(&protocol.metadata)).map_or(0, |subscription| subscription.version);
        let has = member.current.assigned.iter().map(|(topic, indexes)| (*topic, indexes.keys().copied().collect()));
        let assignment = Assigned::write(version, &names_of(has, cx.world));
        self.heard(&id, cx);
        if let Some(member) = self.members.get_mut(&id) {
            cx.timers.cancel(&mut member.sync, || Alarm::MemberSync(self.id.clone(), id));
        }
        Ok(Synced { protocol_type: sync.protocol_type.clone(), protocol: sync.protocol.clone(), assignment })
    }

    /// That member has to join again in time.
    fn await_join(&mut self, id: &Arc<str>, cx: &mut Cx<'_>) {
        if let Some(member) = self.members.get_mut(id)
            && !member.progress.is_set()
        {
            let due = cx.after(member.meta.rebalance_timeout);
            cx.timers.set(&mut member.progress, due, || Alarm::Progress(self.id.clone(), id.clone()));
        }
    }

    /// Heartbeat.
    pub(in crate::core::group) fn heartbeat(&mut self, from: &Membership, cx: &mut Cx<'_>) -> Result<(), Why> {
        let member = self.classic_member(from)?;
        let state = member.current.state;
        let joins_again = member.current.epoch < self.target_epoch
            || state == MemberState::UnrevokedPartitions
            || state == MemberState::UnreleasedPartitions && !self.waits_for_others(&from.member);
        self.heard(&from.member, cx);
        if joins_again {
            self.await_join(&from.member, cx);
            return Err(Why::RebalanceInProgress);
        }
        Ok(())
    }

    /// LeaveGroup, by members of either protocol or for them: a row for each, and who goes.
    pub(in crate::core::group) fn leavers(&self, leavers: Vec<Leaver>) -> (Vec<Left>, Vec<Arc<str>>) {
        let mut go: Vec<Arc<str>> = Vec::new();
        let rows = leavers.into_iter().map(|leaver| {
            let found = match &leaver.instance {
                None => self.members.get_key_value(&leaver.member).map(|(id, _)| id).ok_or(Why::UnknownMemberId),
                Some(instance) => match self.statics.get(instance) {
                    None => Err(Why::UnknownMemberId),
                    Some(owner) if !leaver.member.is_empty() && *owner != leaver.member => Err(Why::FencedInstanceId),
                    Some(owner) => Ok(owner),
                },
            };
            let result = found.map(|id| {
                if !go.contains(id) {
                    go.push(id.clone());
                }
            });
            Left { member: leaver.member, instance: leaver.instance, result }
        });
        (rows.collect(), go)
    }
}

/// Partitions by topic id; those of topics that there are not are left out.
pub(super) fn ids_of(named: &Named, world: &World) -> Vec<(TopicId, Vec<i32>)> {
    named.iter().filter_map(|(name, indexes)| Some((world.topics.id(name)?, indexes.clone()))).collect()
}

/// Partitions by topic name; those of topics that there are not are left out.
pub(super) fn names_of(partitions: impl Iterator<Item = (TopicId, Vec<i32>)>, world: &World) -> Named {
    partitions.filter_map(|(topic, indexes)| Some((world.topics.name(topic)?.clone(), indexes))).collect()
}
