//! ConsumerGroupHeartbeat: who is let in, and how a member gets ahead with each heartbeat.

use std::sync::Arc;

use super::member::{Member, has_all};
use super::reconcile::Step;
use super::{Group, LEAVE_STATIC, no};
use crate::core::group::assign::Assignment;
use crate::core::group::pattern::TopicPattern;
use crate::core::group::records::{ConsumerMemberMetadata, ConsumerRecord, EpochAssignment, MemberState};
use crate::core::group::request::{Answer, Beat, ConsumerBeat, Refused, Ticket, Why};
use crate::core::group::timers::Alarm;
use crate::core::group::writes::Cx;
use crate::core::types::TopicId;

/// Whom a heartbeat comes from, once it is let in.
#[derive(Debug)]
pub(in crate::core::group) struct Admitted {
    /// The static member whose place it takes.
    replaces: Option<Arc<str>>,
}

impl Group {
    /// Whether that heartbeat is let in. Changes nothing.
    pub(in crate::core::group) fn admit(&self, beat: &ConsumerBeat, max_size: usize) -> Result<Admitted, Refused> {
        self.check_room(&beat.member, max_size)?;
        let joins = beat.epoch == 0;
        let mut replaces = None;
        let known = match &beat.instance {
            None => self.members.get(&beat.member).map(|member| (&beat.member, member)),
            Some(instance) => self.statics.get(instance).and_then(|id| Some((id, self.members.get(id)?))),
        };
        match (known, &beat.instance) {
            (None, _) if joins => {}
            (None, None) => return no(Why::UnknownMemberId, self.not_a_member(&beat.member)),
            (None, Some(instance)) => return no(Why::UnknownMemberId, format!("Instance id {instance} is unknown.")),
            (Some((_, member)), None) => check_epoch(member, beat)?,
            (Some((id, member)), Some(instance)) if joins => {
                // One of the new protocol has to say that it goes for a while, before another comes in its place.
                if !member.is_classic() && member.current.epoch != LEAVE_STATIC {
                    let who = format!("Static member {} with instance id {instance}", beat.member);
                    let message = format!("{who} cannot join the group because the instance id is owned by {id} member.");
                    return no(Why::UnreleasedInstanceId, message);
                }
                replaces = Some(id.clone());
            }
            (Some((id, member)), Some(instance)) => {
                self.check_owner(id, &beat.member, instance)?;
                check_epoch(member, beat)?;
            }
        }
        if let Some(regex) = beat.regex.as_ref().filter(|regex| !regex.is_empty() && !self.expressions.contains_key(*regex)) {
            TopicPattern::new(regex).or_else(|e| no(Why::InvalidRegularExpression, format!("SubscribedTopicRegex {e}.")))?;
        }
        if let Some((_, member)) = known
            && member.current.state == MemberState::Unknown
            && beat.owned.as_ref().is_none_or(|owned| !owned.is_empty())
        {
            let message = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.";
            return no(Why::FencedMemberEpoch, message);
        }
        Ok(Admitted { replaces })
    }

    pub(super) fn check_room(&self, member: &str, max: usize) -> Result<(), Refused> {
        if self.members.len() >= max && !self.members.contains_key(member) {
            let message = format!("The consumer group has reached its maximum capacity of {max} members.");
            return no(Why::GroupMaxSizeReached, message);
        }
        Ok(())
    }

    /// Whether `member` is the one that has the instance.
    pub(super) fn check_owner(&self, owner: &Arc<str>, member: &str, instance: &str) -> Result<(), Refused> {
        if **owner == *member {
            return Ok(());
        }
        no(Why::FencedInstanceId, format!("Static member {member} with instance id {instance} was fenced by member {owner}."))
    }

    pub(super) fn not_a_member(&self, member: &str) -> String {
        format!("Member {member} is not a member of group {}.", self.id)
    }

    /// A member that was let in is alive, and gets ahead if it can. `id` is its member id, new if it brought none.
    pub(in crate::core::group) fn beat(&mut self, ticket: Ticket, beat: &ConsumerBeat, id: Arc<str>, admitted: Admitted, cx: &mut Cx<'_>) {
        if let Some(old) = admitted.replaces {
            self.replace(&old, &id, cx);
        }
        let (mut meta, before) = self.so_far(&id);
        meta.instance = beat.instance.clone().or(meta.instance);
        meta.rack = beat.rack.clone().or(meta.rack);
        meta.rebalance_timeout = beat.rebalance_timeout.unwrap_or(meta.rebalance_timeout);
        meta.server_assignor = beat.assignor.clone().or(meta.server_assignor);
        if let Some(topics) = &beat.topics {
            meta.topics = topics.iter().cloned().collect();
        }
        if let Some(regex) = &beat.regex {
            meta.regex = Some(regex.clone()).filter(|regex| !regex.is_empty());
        }
        meta.client_id = beat.client_id.clone();
        meta.client_host = beat.client_host.clone();
        meta.classic = None;
        let changed = self.subscribe(&id, meta, cx);
        self.expect_no_sync(&id, cx);
        self.refresh_target(cx);
        self.reconcile(&id, changed, beat.owned.as_deref(), cx);
        self.heard(&id, cx);
        let Some(member) = self.members.get(&id) else {
            unreachable!("a member that was let in is there");
        };
        let current = &member.current;
        let is_full = beat.rebalance_timeout.is_some() && (beat.topics.is_some() || beat.regex.is_some()) && beat.owned.is_some();
        let tell = beat.epoch == 0 || is_full || before != current.assigned;
        let answer = Beat {
            member: id,
            epoch: current.epoch,
            interval: cx.own_or(&self.id, "consumer.heartbeat.interval.ms", cx.settings.consumer.heartbeat_interval),
            assignment: tell.then(|| without_epochs(&current.assigned)),
        };
        self.flush(Some((ticket, Answer::Beat(Ok(answer)))), cx);
    }

    /// What is known of a member, and what it has.
    pub(super) fn so_far(&self, id: &str) -> (ConsumerMemberMetadata, EpochAssignment) {
        match self.members.get(id) {
            Some(member) => (member.meta.clone(), member.current.assigned.clone()),
            None => (Member::new().meta, EpochAssignment::new()),
        }
    }

    /// A member says what it is, and what it reads. Bumps the group's epoch if it, or what it reads, has changed; true if it reads others.
    pub(super) fn subscribe(&mut self, id: &Arc<str>, meta: ConsumerMemberMetadata, cx: &mut Cx<'_>) -> bool {
        let (old, _) = self.so_far(id);
        let changed = old.topics != meta.topics || old.regex != meta.regex;
        if old != meta || !self.members.contains_key(id) {
            self.put(ConsumerRecord::Member { member: id.clone(), value: Some(Box::new(meta)) });
        }
        let matches_others = self.refresh_regexes(cx);
        self.refresh_epoch(changed || matches_others, cx);
        changed
    }

    /// A static member comes in the place of another.
    pub(super) fn replace(&mut self, old: &Arc<str>, new: &Arc<str>, cx: &mut Cx<'_>) {
        let Some(member) = self.members.get(old) else {
            return;
        };
        let (meta, mut current) = (member.meta.clone(), member.current.clone());
        let shall = self.target.get(old).cloned().unwrap_or_default();
        self.silence(old, cx);
        self.put_removal(old);
        (current.epoch, current.previous_epoch) = (0, 0);
        self.put(ConsumerRecord::Member { member: new.clone(), value: Some(Box::new(meta)) });
        self.put(ConsumerRecord::TargetMember { member: new.clone(), value: Some(shall) });
        self.put(ConsumerRecord::Current { member: new.clone(), value: Some(current) });
    }

    /// The next step of that member towards the target.
    pub(super) fn reconcile(&mut self, id: &Arc<str>, changed: bool, owned: Option<&[(TopicId, Vec<i32>)]>, cx: &mut Cx<'_>) {
        let Some(member) = self.members.get(id) else {
            return;
        };
        if !changed && member.is_reconciled_to(self.target_epoch) {
            return;
        }
        let nothing = Assignment::new();
        let step = Step {
            epoch: self.target_epoch,
            target: self.target.get(id).unwrap_or(&nothing),
            subscribed: &self.subscribed(&member.meta, cx.world),
            changed,
            owned,
            epochs: &self.owned,
        };
        let next = step.take(&member.current);
        if next != member.current {
            self.put(ConsumerRecord::Current { member: id.clone(), value: Some(next) });
            self.watch_revocation(id, cx);
        }
    }

    /// A member that has to give up partitions may take its rebalance timeout for it. Classic members are watched otherwise.
    pub(super) fn watch_revocation(&mut self, id: &Arc<str>, cx: &mut Cx<'_>) {
        let Some(member) = self.members.get_mut(id).filter(|member| !member.is_classic()) else {
            return;
        };
        let alarm = || Alarm::Progress(self.id.clone(), id.clone());
        if member.current.state == MemberState::UnrevokedPartitions {
            let due = cx.after(member.meta.rebalance_timeout);
            cx.timers.set(&mut member.progress, due, alarm);
        } else {
            cx.timers.cancel(&mut member.progress, alarm);
        }
    }
}

/// Partitions without the epochs at which they were assigned.
pub(super) fn without_epochs(assigned: &EpochAssignment) -> Assignment {
    assigned.iter().map(|(topic, indexes)| (*topic, indexes.keys().copied().collect())).collect()
}

fn check_epoch(member: &Member, beat: &ConsumerBeat) -> Result<(), Refused> {
    let (known, theirs) = (member.current.epoch, beat.epoch);
    // Zero: it was fenced, or has nothing any more for another reason.
    if theirs == 0 || theirs == known {
        return Ok(());
    }
    // The answer with the new epoch may have been lost.
    let owned_is_assigned = || beat.owned.as_ref().is_some_and(|owned| has_all(&member.current.assigned, owned));
    if theirs < known && theirs == member.current.previous_epoch && owned_is_assigned() {
        return Ok(());
    }
    let which = if theirs > known { "greater" } else { "smaller" };
    let epochs = format!("epoch ({theirs}) than the one known by the group coordinator ({known})");
    let message =
        format!("The consumer group member has a {which} member {epochs}. The member must abandon all its partitions and rejoin.");
    no(Why::FencedMemberEpoch, message)
}
