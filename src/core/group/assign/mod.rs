//! Who of a group reads which partitions, where the broker decides it (KIP-848). Kafka's two assignors: same rules, same outcomes up to ties.
//!
//! Pure functions of who is there, who has what, and how many partitions there are. When they are called is the group's business.

mod heterogeneous;
mod range;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::types::TopicId;

/// Partitions by topic. Topics of which there are none are not in it.
pub type Assignment = BTreeMap<TopicId, BTreeSet<i32>>;

/// How partitions are given out (`group.consumer.assignors`, `group.remote.assignor`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Assignor {
    /// As evenly as possible over all topics, and what a member has stays where it is.
    Uniform,
    /// Of each topic a range, the n-th to the n-th member: topics with as many partitions are read side by side.
    Range,
}

impl Assignor {
    /// Its name on the wire and in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Assignor::Uniform => "uniform",
            Assignor::Range => "range",
        }
    }

    /// The one with that name.
    pub fn from_name(name: &str) -> Option<Assignor> {
        [Assignor::Uniform, Assignor::Range].into_iter().find(|assignor| assignor.name() == name)
    }
}

/// What is known of a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberSpec {
    /// The topics that it reads.
    pub subscribed: BTreeSet<TopicId>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// `client.rack`. Kafka's assignors do not look at it either.
    pub rack: Option<Arc<str>>,
    /// What it was given last; no partition is given to two.
    pub assigned: Assignment,
}

/// Gives all partitions of all topics that somebody subscribes to, each to one of the subscribers. `partitions` is how many each topic
/// has; a topic that is not in it has none. Every member is in the result. The outcome depends on nothing but the arguments.
pub fn assign(
    assignor: Assignor,
    members: &BTreeMap<Arc<str>, MemberSpec>,
    partitions: &BTreeMap<TopicId, i32>,
) -> BTreeMap<Arc<str>, Assignment> {
    match assignor {
        Assignor::Range => range::assign(members, partitions),
        Assignor::Uniform if is_homogeneous(members) => uniform::assign(members, partitions),
        Assignor::Uniform => heterogeneous::assign(members, partitions),
    }
}

/// Whether all subscribe to the same.
fn is_homogeneous(members: &BTreeMap<Arc<str>, MemberSpec>) -> bool {
    let mut subscriptions = members.values().map(|member| &member.subscribed);
    subscriptions.next().is_none_or(|first| subscriptions.all(|other| other == first))
}

/// How many partitions a topic has.
fn count(partitions: &BTreeMap<TopicId, i32>, topic: &TopicId) -> i32 {
    partitions.get(topic).copied().unwrap_or(0).max(0)
}

/// Partitions in any order, each once, as an assignment.
fn in_order(mut partitions: Vec<(TopicId, i32)>) -> Assignment {
    partitions.sort_unstable();
    let topics = partitions.chunk_by(|a, b| a.0 == b.0);
    topics.map(|of_one| (of_one[0].0, of_one.iter().map(|(_, partition)| *partition).collect())).collect()
}

#[cfg(test)]
mod tests;
