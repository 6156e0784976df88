//! Members subscribe to different topics: what a member has stays; what is free goes to the least loaded of its subscribers; then
//! partitions move from members with more to members with less until no single move helps.
//!
//! That is as even as it can be where the subscribers of a topic all subscribe to the same. Where subscriptions overlap it is only close:
//! a chain of moves might still do better, and nobody looks for those.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Assignment, MemberSpec, count, in_order};
use crate::core::types::TopicId;

/// Rounds over all topics at most. Each leaves about half of the unevenness, most need two.
const ROUNDS_MAX: usize = 16;

/// Number of a member, in the order of their ids.
type Number = u32;
/// Nobody.
const NONE: Number = Number::MAX;

struct Topic {
    id: TopicId,
    /// Those who may have its partitions, in order.
    subscribers: Vec<Number>,
    /// Who has each partition.
    owners: Vec<Number>,
    /// Who had it before.
    before: Vec<Number>,
}

/// See the module.
pub(super) fn assign(members: &BTreeMap<Arc<str>, MemberSpec>, partitions: &BTreeMap<TopicId, i32>) -> BTreeMap<Arc<str>, Assignment> {
    let mut topics = topics(members, partitions);
    let mut loads = keep(members, &mut topics);
    // Topics that weigh most on their subscribers come first, while there is most choice; those with the same subscribers follow each other.
    let weight = |topic: &Topic| (topic.owners.len() as u64, topic.subscribers.len() as u64);
    topics.sort_by(|a, b| {
        let ((a_count, a_members), (b_count, b_members)) = (weight(a), weight(b));
        let heavier = (b_count * a_members).cmp(&(a_count * b_members));
        heavier.then(a_members.cmp(&b_members)).then_with(|| a.subscribers.cmp(&b.subscribers)).then(a.id.cmp(&b.id))
    });
    give(&mut topics, &mut loads);
    for _ in 0..ROUNDS_MAX {
        let mut moved = false;
        for topic in &mut topics {
            moved |= level(topic, &mut loads);
        }
        if !moved {
            break;
        }
    }
    let mut given: Vec<Vec<(TopicId, i32)>> = loads.iter().map(|load| Vec::with_capacity(*load as usize)).collect();
    for topic in &topics {
        for (partition, owner) in (0..).zip(&topic.owners) {
            given[*owner as usize].push((topic.id, partition));
        }
    }
    members.keys().cloned().zip(given.into_iter().map(in_order)).collect()
}

fn topics(members: &BTreeMap<Arc<str>, MemberSpec>, partitions: &BTreeMap<TopicId, i32>) -> Vec<Topic> {
    let mut subscribers: BTreeMap<TopicId, Vec<Number>> = BTreeMap::new();
    for (number, member) in (0..).zip(members.values()) {
        for topic in &member.subscribed {
            subscribers.entry(*topic).or_default().push(number);
        }
    }
    let topics = subscribers.into_iter().map(|(id, subscribers)| {
        let nobody = vec![NONE; count(partitions, &id) as usize];
        Topic { id, subscribers, owners: nobody.clone(), before: nobody }
    });
    topics.collect()
}

/// Leaves with each member what it has and still subscribes to. Returns how much each has. `topics` are in the order of their ids.
fn keep(members: &BTreeMap<Arc<str>, MemberSpec>, topics: &mut [Topic]) -> Vec<u32> {
    let mut loads = vec![0; members.len()];
    for (number, member) in (0..).zip(members.values()) {
        for (id, owned) in member.assigned.iter().filter(|(id, _)| member.subscribed.contains(id)) {
            let Ok(at) = topics.binary_search_by_key(id, |topic| topic.id) else { continue };
            let topic = &mut topics[at];
            for partition in owned {
                let owner = usize::try_from(*partition).ok().and_then(|partition| topic.owners.get_mut(partition));
                if let Some(owner) = owner.filter(|owner| **owner == NONE) {
                    *owner = number;
                    topic.before[*partition as usize] = number;
                    loads[number as usize] += 1;
                }
            }
        }
    }
    loads
}

/// Gives what nobody has to the least loaded of those who may have it.
fn give(topics: &mut [Topic], loads: &mut [u32]) {
    for alike in topics.chunk_by_mut(|a, b| a.subscribers == b.subscribers) {
        let mut by_load = by_load(&alike[0].subscribers, loads);
        for owner in alike.iter_mut().flat_map(|topic| &mut topic.owners).filter(|owner| **owner == NONE) {
            let (load, least) = by_load.pop_first().expect("a topic is here because somebody subscribes to it");
            *owner = least;
            loads[least as usize] += 1;
            by_load.insert((load + 1, least));
        }
    }
}

fn by_load(subscribers: &[Number], loads: &[u32]) -> BTreeSet<(u32, Number)> {
    subscribers.iter().map(|number| (loads[*number as usize], *number)).collect()
}

/// Moves partitions of one topic from those with most to those with least, while that makes it more even. Whether any moved.
fn level(topic: &mut Topic, loads: &mut [u32]) -> bool {
    let load = |loads: &[u32], number: &Number| loads[*number as usize];
    let least = topic.subscribers.iter().map(|number| load(loads, number)).min();
    let most = topic.owners.iter().map(|number| load(loads, number)).max();
    if most <= least.map(|least| least + 1) {
        return false;
    }
    // What each has of this topic; what it had before comes first, as the last ones go first.
    let mut owned: Vec<(Number, bool, usize)> =
        topic.owners.iter().enumerate().map(|(partition, owner)| (*owner, topic.before[partition] != *owner, partition)).collect();
    owned.sort_unstable();
    let mut givers: BTreeSet<(u32, Reverse<Number>, usize, usize)> = BTreeSet::new();
    let mut start = 0;
    for of_one in owned.chunk_by(|a, b| a.0 == b.0) {
        let end = start + of_one.len();
        givers.insert((load(loads, &of_one[0].0), Reverse(of_one[0].0), start, end));
        start = end;
    }
    let mut takers = by_load(&topic.subscribers, loads);
    let mut moved = false;
    while let (Some((most, Reverse(giver), start, end)), Some((least, taker))) = (givers.pop_last(), takers.first().copied())
        && most > least + 1
    {
        topic.owners[owned[end - 1].2] = taker;
        (loads[giver as usize], loads[taker as usize]) = (most - 1, least + 1);
        for (number, old, new) in [(giver, most, most - 1), (taker, least, least + 1)] {
            takers.remove(&(old, number));
            takers.insert((new, number));
        }
        if start < end - 1 {
            givers.insert((most - 1, Reverse(giver), start, end - 1));
        }
        moved = true;
    }
    moved
}
