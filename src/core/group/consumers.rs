//! Consumer groups as a coordinator keeps them: made, changed into classic groups and back, and left by their members.

use std::sync::Arc;

use super::any::Group;
use super::consumer::{self, JoinedAs, LEAVE, LEAVE_STATIC};
use super::coordinator::{Coordinator, GROUPS_MAX};
use super::request::{Answer, Beat, ConsumerBeat, DescribedConsumer, Effect, Join, Refused, Ticket, Why};
use super::writes::Then;
use crate::core::chance::Chance;
use crate::core::types::Millis;

impl Coordinator {
    /// ConsumerGroupHeartbeat.
    pub(super) fn beat(&mut self, ticket: Ticket, beat: ConsumerBeat, now: Millis, chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        let outcome = match beat.epoch {
            LEAVE | LEAVE_STATIC => self.beat_out(ticket, &beat, now, fx),
            _ => self.beat_in(ticket, &beat, now, chance, fx),
        };
        if let Err(refused) = outcome {
            fx.push(Effect::Answer(ticket, Answer::Beat(Err(refused))));
        }
    }

    /// A member comes, or is still there.
    fn beat_in(
        &mut self,
        ticket: Ticket,
        beat: &ConsumerBeat,
        now: Millis,
        chance: &mut dyn Chance,
        fx: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let (id, joins) = (&beat.group, beat.epoch == 0);
        let full = self.groups.len() >= GROUPS_MAX;
        let (groups, mut cx) = self.parts(now, fx);
        let max_size = cx.settings.consumer.max_size;
        let mut made = match groups.get(id) {
            Some(Group::Consumer(_)) => None,
            Some(Group::Classic(_)) if !joins => return not_found(format!("Group {id} is not a consumer group.")),
            Some(Group::Classic(classic)) if classic.is_empty() => Some(consumer::Group::new(id.clone())),
            Some(Group::Classic(_)) if !cx.settings.consumer.upgrade => {
                return not_found(format!("Cannot upgrade classic group {id} to consumer group because online upgrade is disabled."));
            }
            Some(Group::Classic(classic)) => Some(consumer::Group::from_classic(classic, max_size, cx.world)?),
            None if !joins => return not_found(format!("Consumer group {id} not found.")),
            None if full => return Err(Why::CoordinatorNotAvailable.into()),
            None => Some(consumer::Group::new(id.clone())),
        };
        let group = match (&mut made, groups.get(id)) {
            (Some(made), _) => &*made,
            (None, Some(Group::Consumer(group))) => group,
            (None, _) => return not_found(format!("Group {id} not found.")),
        };
        let admitted = group.admit(beat, max_size)?;
        if let Some(mut made) = made {
            let mut records = Vec::new();
            if let Some(mut classic) = groups.remove(id) {
                // Its members are to join again, and find the new group.
                classic.close(Why::RebalanceInProgress, &mut cx);
                records = classic.tombstones();
                made.loaded(&mut cx);
            }
            made.begin_with(records);
            groups.insert(id.clone(), made.into());
        }
        let member = if beat.member.is_empty() { consumer::new_member_id(chance) } else { beat.member.clone() };
        if let Some(group) = groups.get_mut(id).and_then(Group::as_consumer) {
            group.beat(ticket, beat, member, admitted, &mut cx);
        }
        Ok(())
    }

    /// A member goes.
    fn beat_out(&mut self, ticket: Ticket, beat: &ConsumerBeat, now: Millis, fx: &mut Vec<Effect>) -> Result<(), Refused> {
        let (groups, mut cx) = self.parts(now, fx);
        let group = match groups.get_mut(&beat.group) {
            None => return not_found(format!("Group {} not found.", beat.group)),
            Some(Group::Classic(_)) => return not_found(format!("Group {} is not a consumer group.", beat.group)),
            Some(Group::Consumer(group)) => group,
        };
        let member = group.leaver(beat)?;
        if beat.epoch == LEAVE_STATIC && beat.instance.is_some() {
            group.leave_for_a_while(ticket, &member, &mut cx);
            return Ok(());
        }
        let answer = Answer::Beat(Ok(Beat { member: beat.member.clone(), epoch: beat.epoch, interval: 0, assignment: None }));
        self.remove_members(&beat.group, &[member], Some((ticket, answer)), now, fx);
        Ok(())
    }

    /// Takes members out of a consumer group. If only classic ones are left, it becomes a classic group and they are to join again.
    pub(super) fn remove_members(
        &mut self,
        id: &Arc<str>,
        members: &[Arc<str>],
        answer: Option<(Ticket, Answer)>,
        now: Millis,
        fx: &mut Vec<Effect>,
    ) {
        let (groups, mut cx) = self.parts(now, fx);
        let Some(group) = groups.get_mut(id).and_then(Group::as_consumer) else {
            return;
        };
        let left = group.size().saturating_sub(members.len());
        let fits = cx.settings.consumer.downgrade && (1..=cx.settings.max_size).contains(&left);
        if !members.is_empty() && fits && group.is_last_consumer(members) {
            let then = answer.map_or(Then::Nothing, |(ticket, answer)| Then::Answer(ticket, answer));
            return self.downgrade(id, members, then, Some("the last member of the consumer protocol left"), now, fx);
        }
        group.remove(members, &mut cx);
        group.flush(answer, &mut cx);
    }

    /// Makes a classic group of a consumer group, without those members. With a reason the others are to join again.
    fn downgrade(&mut self, id: &Arc<str>, without: &[Arc<str>], then: Then, reason: Option<&str>, now: Millis, fx: &mut Vec<Effect>) {
        let (groups, mut cx) = self.parts(now, fx);
        let Some(Group::Consumer(mut group)) = groups.remove(id) else {
            return;
        };
        group.close(&mut cx);
        let mut classic = group.to_classic(without, cx.world, now);
        let mut records = group.take_records();
        records.extend(group.tombstones());
        records.push(classic.stable_record());
        cx.write(records, then);
        let mut record = classic.loaded(&mut cx);
        if let Some(reason) = reason {
            record = classic.rebalance(reason, &mut cx).or(record);
        }
        groups.insert(id.clone(), classic.into());
        cx.write(Vec::from_iter(record), Then::Nothing);
    }

    /// JoinGroup, to a consumer group that has members.
    pub(super) fn join_consumers(&mut self, ticket: Ticket, join: Join, now: Millis, chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        let (groups, mut cx) = self.parts(now, fx);
        let Some(group) = groups.get_mut(&join.group).and_then(Group::as_consumer) else {
            return;
        };
        let may_downgrade = cx.settings.consumer.downgrade && group.size() <= cx.settings.max_size;
        match group.join(ticket, &join, may_downgrade, chance, &mut cx) {
            JoinedAs::Member => {}
            JoinedAs::LastOne { answer, rebalance } => {
                let then = Then::Answer(ticket, Answer::Join(Ok(answer)));
                let reason = rebalance.then_some("a static member of the classic protocol came back to the group");
                self.downgrade(&join.group, &[], then, reason, now, fx);
            }
        }
    }

    pub(super) fn describe_consumers(
        &mut self,
        ids: Vec<Arc<str>>,
        now: Millis,
        fx: &mut Vec<Effect>,
    ) -> Vec<(Arc<str>, Result<DescribedConsumer, Refused>)> {
        let (groups, cx) = self.parts(now, fx);
        let one = |id: Arc<str>| {
            let described = match groups.get(&id) {
                Some(Group::Consumer(group)) => Ok(group.described(&cx)),
                Some(Group::Classic(_)) => not_found(format!("Group {id} is not a consumer group.")),
                None => not_found(format!("Group {id} not found.")),
            };
            (id, described)
        };
        ids.into_iter().map(one).collect()
    }
}

fn not_found<T>(message: String) -> Result<T, Refused> {
    Err(Refused { why: Why::GroupIdNotFound, message })
}
