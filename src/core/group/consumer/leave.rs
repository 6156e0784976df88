//! Members go: by themselves, for a while, or because nothing is heard of them.

use std::sync::Arc;

use super::beat::without_epochs;
use super::{Group, LEAVE_STATIC, no};
use crate::core::group::records::{ConsumerRecord, EpochAssignment, MemberState};
use crate::core::group::request::{Answer, Beat, ConsumerBeat, Refused, Ticket, Why};
use crate::core::group::timers::Alarm;
use crate::core::group::writes::Cx;

impl Group {
    /// The member that leaves with that heartbeat.
    pub(in crate::core::group) fn leaver(&self, beat: &ConsumerBeat) -> Result<Arc<str>, Refused> {
        let Some(instance) = &beat.instance else {
            return match self.members.get_key_value(&beat.member) {
                Some((id, _)) => Ok(id.clone()),
                None => no(Why::UnknownMemberId, self.not_a_member(&beat.member)),
            };
        };
        let Some(id) = self.statics.get(instance) else {
            return no(Why::UnknownMemberId, format!("Instance id {instance} is unknown."));
        };
        self.check_owner(id, &beat.member, instance)?;
        Ok(id.clone())
    }

    /// A static member goes for a while: what it has stays its own until its session ends.
    pub(in crate::core::group) fn leave_for_a_while(&mut self, ticket: Ticket, id: &Arc<str>, cx: &mut Cx<'_>) {
        if let Some(member) = self.members.get(id) {
            let mut current = member.current.clone();
            current.epoch = LEAVE_STATIC;
            current.revoking = EpochAssignment::new();
            // Whoever comes back has another id, and has it all from its first epoch on.
            current.assigned.values_mut().for_each(|indexes| indexes.values_mut().for_each(|epoch| *epoch = 0));
            self.put(ConsumerRecord::Current { member: id.clone(), value: Some(current) });
        }
        if let Some(member) = self.members.get_mut(id) {
            cx.timers.cancel(&mut member.progress, || Alarm::Progress(self.id.clone(), id.clone()));
        }
        self.flush(Some((ticket, Answer::Beat(Ok(left(id.clone(), LEAVE_STATIC))))), cx);
    }

    /// Takes members out. Not for the last ones of the new protocol where classic ones stay: see [`migrate`](super::migrate).
    pub(in crate::core::group) fn remove(&mut self, ids: &[Arc<str>], cx: &mut Cx<'_>) {
        for id in ids {
            self.silence(id, cx);
            self.put_removal(id);
        }
        if !ids.is_empty() {
            self.refresh_regexes(cx);
            self.refresh_epoch(true, cx);
        }
    }

    /// The tombstones of a member. Their order matters to Kafka.
    pub(super) fn put_removal(&mut self, id: &Arc<str>) {
        self.put(ConsumerRecord::Current { member: id.clone(), value: None });
        self.put(ConsumerRecord::TargetMember { member: id.clone(), value: None });
        self.put(ConsumerRecord::Member { member: id.clone(), value: None });
    }

    /// An alarm about a member came up. True if the member is to go.
    pub(in crate::core::group) fn rings(&mut self, alarm: &Alarm, cx: &mut Cx<'_>) -> bool {
        let (Alarm::Session(_, id) | Alarm::Progress(_, id) | Alarm::MemberSync(_, id)) = alarm else {
            return false;
        };
        let Some(member) = self.members.get_mut(id) else {
            return false;
        };
        let slot = match alarm {
            Alarm::Progress(..) => &mut member.progress,
            Alarm::MemberSync(..) => &mut member.sync,
            _ => &mut member.session,
        };
        cx.timers.ring(slot, cx.now, || alarm.clone())
    }

    /// How many members have not come to the target, and some of them.
    pub(super) fn behind(&self) -> impl Iterator<Item = &Arc<str>> {
        self.members.iter().filter(|(_, member)| !member.is_reconciled_to(self.target_epoch)).map(|(id, _)| id)
    }

    /// Whether a member waits for partitions that somebody else still has.
    pub(super) fn waits_for_others(&self, id: &str) -> bool {
        let Some(member) = self.members.get(id).filter(|member| member.current.state == MemberState::UnreleasedPartitions) else {
            return false;
        };
        let has = without_epochs(&member.current.assigned);
        let target = self.target.get(id).into_iter().flatten();
        target.into_iter().any(|(topic, indexes)| {
            let missing = indexes.iter().filter(|index| !has.get(topic).is_some_and(|has| has.contains(index)));
            let owned = self.owned.get(topic);
            missing.into_iter().any(|index| owned.is_some_and(|owned| owned.contains_key(index)))
        })
    }
}

/// The answer to a member that has left.
pub(in crate::core::group) fn left(member: Arc<str>, epoch: i32) -> Beat {
    Beat { member, epoch, interval: 0, assignment: None }
}
