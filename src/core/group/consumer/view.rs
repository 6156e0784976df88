//! A consumer group as operators see it.

use super::beat::without_epochs;
use super::{CONSUMER, Group};
use crate::core::group::records::EpochAssignment;
use crate::core::group::request::{DescribedConsumer, DescribedConsumerMember, GroupView, Kind, Listed};
use crate::core::group::writes::Cx;

/// Members that a view names at most.
const NAMED: usize = 5;

impl Group {
    /// A line of a list.
    pub(in crate::core::group) fn listed(&self) -> Listed {
        Listed { group: self.id.clone(), protocol_type: CONSUMER.into(), state: self.state(), kind: Kind::Consumer }
    }

    /// All there is to say to an operator.
    pub(in crate::core::group) fn described(&self, cx: &Cx<'_>) -> DescribedConsumer {
        let members = self.members.iter().map(|(id, member)| {
            // What it is to give up is its own until it has.
            let mut has: EpochAssignment = member.current.assigned.clone();
            for (topic, indexes) in &member.current.revoking {
                has.entry(*topic).or_default().extend(indexes);
            }
            DescribedConsumerMember {
                member: id.clone(),
                meta: member.meta.clone(),
                epoch: member.current.epoch,
                assigned: without_epochs(&has),
                target: self.target.get(id).cloned().unwrap_or_default(),
            }
        });
        DescribedConsumer {
            state: self.state(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            assignor: self.assignor_name(cx),
            members: members.collect(),
        }
    }

    /// What there is to say when something is stuck.
    pub(in crate::core::group) fn view(&self) -> GroupView<'_> {
        GroupView {
            group: &self.id,
            protocol_type: CONSUMER,
            kind: Kind::Consumer,
            state: self.state(),
            since: self.target_computed,
            generation: self.epoch,
            members: self.members.len(),
            reason: "",
            missing: self.behind().count(),
            awaited: self.behind().take(NAMED).map(|id| &**id).collect(),
        }
    }
}
