//! Of each topic a range of partitions to each subscriber, in one order of the members for all topics: if all subscribe to the same, topics
//! with as many partitions are split at the same places, so joins over them find both sides at one member.
//!
//! It looks at nobody's old assignment. What little stickiness there is comes from the order: static members first, by their instance id,
//! which outlives their member id.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Assignment, MemberSpec, count};
use crate::core::types::TopicId;

/// What is left of a topic.
struct Topic {
    partitions: i32,
    subscribers: i32,
    /// The first that nobody has.
    next: i32,
    /// Members that have had theirs.
    served: i32,
}

/// See the module.
pub(super) fn assign(members: &BTreeMap<Arc<str>, MemberSpec>, partitions: &BTreeMap<TopicId, i32>) -> BTreeMap<Arc<str>, Assignment> {
    let mut order: Vec<(&Arc<str>, &MemberSpec)> = members.iter().collect();
    // Members of the same instance, and those without, stay in the order of their ids.
    order.sort_by_key(|(_, member)| (member.instance.is_none(), member.instance.as_ref()));
    let mut topics: BTreeMap<TopicId, Topic> = BTreeMap::new();
    for topic in members.values().flat_map(|member| &member.subscribed) {
        let new = || Topic { partitions: count(partitions, topic), subscribers: 0, next: 0, served: 0 };
        topics.entry(*topic).or_insert_with(new).subscribers += 1;
    }
    let given = order.into_iter().map(|(id, member)| {
        let ranges = member.subscribed.iter().filter_map(|id| {
            let topic = topics.get_mut(id)?;
            // The first so many have one more.
            let more = topic.served < topic.partitions % topic.subscribers;
            let (start, end) = (topic.next, topic.next + topic.partitions / topic.subscribers + i32::from(more));
            (topic.next, topic.served) = (end, topic.served + 1);
            (start < end).then(|| (*id, (start..end).collect()))
        });
        (id.clone(), ranges.collect())
    });
    given.collect()
}
