//! From a classic group to a consumer group and back, with members in it: the first member of the new protocol brings the change, and the
//! departure of the last one takes it back.

use std::sync::Arc;

use super::classic::{ids_of, names_of};
use super::member::Member;
use super::{Group, no};
use crate::core::group::assign::Assignment;
use crate::core::group::classic::{Group as ClassicGroup, Migrant};
use crate::core::group::embedded::{Assigned, Subscription};
use crate::core::group::records::{ClassicMemberMetadata, ConsumerMemberMetadata, EpochAssignment};
use crate::core::group::records::{ConsumerGroupMetadata, ConsumerRecord, CurrentAssignment, MemberState, TargetMetadata};
use crate::core::group::request::{Refused, Why};
use crate::core::group::topics::World;
use crate::core::types::Millis;

impl Group {
    /// The consumer group that a classic group becomes: what its members have is what they shall have, until the next target. Its records
    /// wait to be written.
    pub(in crate::core::group) fn from_classic(classic: &ClassicGroup, max_size: usize, world: &mut World) -> Result<Group, Refused> {
        let cannot = |why: &str| {
            let message = format!("Cannot upgrade classic group {} to consumer group because {why}.", classic.id);
            no(Why::GroupIdNotFound, message)
        };
        if !classic.is_consumer() {
            return cannot("the group does not use the consumer embedded protocol");
        }
        if classic.size() > max_size {
            return cannot("the group size exceeds the consumer group maximum size");
        }
        let (generation, migrants) = classic.migrants();
        let mut group = Group::new(classic.id.clone());
        let mut places = Vec::new();
        for migrant in migrants {
            let (Some(subscription), Some(assigned)) = (Subscription::read(&migrant.metadata), Assigned::read(&migrant.assignment)) else {
                return cannot("the embedded consumer protocol is malformed");
            };
            if assigned.has_user_data {
                let what = "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor \
                            before re-attempting the upgrade";
                return cannot(what);
            }
            let mut has = Assignment::new();
            for (topic, indexes) in ids_of(&assigned.partitions, world) {
                has.entry(topic).or_default().extend(indexes);
            }
            places.push((migrant.id.clone(), has));
            let value = Some(Box::new(member_of(migrant, subscription)));
            let id = places.last().map_or_else(|| "".into(), |(id, _)| id.clone());
            group.put(ConsumerRecord::Member { member: id, value });
        }
        group.seen = world.changes;
        let metadata_hash = world.hash(group.read_topics().into_iter());
        group.put(ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch: generation, metadata_hash })));
        for (member, has) in &places {
            group.put(ConsumerRecord::TargetMember { member: member.clone(), value: Some(has.clone()) });
        }
        group.put(ConsumerRecord::Target(Some(TargetMetadata { epoch: generation, computed: None })));
        for (member, has) in places {
            let epochs = |indexes: std::collections::BTreeSet<i32>| indexes.into_iter().map(|index| (index, generation)).collect();
            let value = CurrentAssignment {
                epoch: generation,
                previous_epoch: generation,
                state: MemberState::Stable,
                assigned: has.into_iter().map(|(topic, indexes)| (topic, epochs(indexes))).collect(),
                revoking: EpochAssignment::new(),
            };
            group.put(ConsumerRecord::Current { member, value: Some(value) });
        }
        Ok(group)
    }

    /// Whether nobody of the new protocol is left without those.
    pub(in crate::core::group) fn is_last_consumer(&self, without: &[Arc<str>]) -> bool {
        let classic = without.iter().filter(|id| self.members.get(*id).is_some_and(|member| member.is_classic())).count();
        self.classic_members - classic == self.members.len() - without.len()
    }

    /// How many members it has.
    pub(in crate::core::group) fn size(&self) -> usize {
        self.members.len()
    }

    /// The classic group that it becomes without those members. Each of the others speaks the classic protocol and has what it shall have.
    pub(in crate::core::group) fn to_classic(&self, without: &[Arc<str>], world: &World, now: Millis) -> ClassicGroup {
        let stay = self.members.iter().filter(|(id, _)| !without.contains(id));
        let migrants = stay.filter_map(|(id, member)| {
            let classic = member.meta.classic.as_ref()?;
            Some(self.migrant(id, member, classic, world))
        });
        ClassicGroup::from_migrants(self.id.clone(), self.epoch, migrants.collect(), now)
    }

    fn migrant(&self, id: &Arc<str>, member: &Member, classic: &ClassicMemberMetadata, world: &World) -> Migrant {
        let first = classic.protocols.first().and_then(|protocol| Subscription::read(&protocol.metadata));
        let shall = self.target.get(id).into_iter().flatten().map(|(topic, indexes)| (*topic, indexes.iter().copied().collect()));
        Migrant {
            id: id.clone(),
            instance: member.meta.instance.clone(),
            client_id: member.meta.client_id.clone(),
            client_host: member.meta.client_host.clone(),
            session_timeout: classic.session_timeout,
            rebalance_timeout: member.meta.rebalance_timeout,
            protocols: classic.protocols.clone(),
            metadata: Default::default(),
            assignment: Assigned::write(first.map_or(0, |subscription| subscription.version), &names_of(shall, world)),
        }
    }
}

fn member_of(migrant: Migrant, subscription: Subscription) -> ConsumerMemberMetadata {
    ConsumerMemberMetadata {
        instance: migrant.instance,
        rack: subscription.rack,
        client_id: migrant.client_id,
        client_host: migrant.client_host,
        topics: subscription.topics,
        regex: None,
        rebalance_timeout: migrant.rebalance_timeout,
        server_assignor: None,
        classic: Some(ClassicMemberMetadata { session_timeout: migrant.session_timeout, protocols: migrant.protocols }),
    }
}
