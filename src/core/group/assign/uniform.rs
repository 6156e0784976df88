//! All members subscribe to the same: everybody gets the same number of partitions, give or take one, and keeps as many of its own as that
//! allows. No assignment that is as even moves fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Assignment, MemberSpec, count, in_order};
use crate::core::types::TopicId;

/// See the module. `members` subscribe to the same.
pub(super) fn assign(members: &BTreeMap<Arc<str>, MemberSpec>, partitions: &BTreeMap<TopicId, i32>) -> BTreeMap<Arc<str>, Assignment> {
    let Some(subscribed) = members.values().next().map(|member| &member.subscribed) else { return BTreeMap::new() };
    let mut free = Free::new(subscribed, partitions);
    let each = free.all / members.len();
    // How many members may still have one more.
    let mut extra = free.all % members.len();

    // Everybody keeps what it has, up to its share. The extra ones go first to those who have as many already.
    let mut given: Vec<(&Arc<str>, Vec<(TopicId, i32)>)> = Vec::with_capacity(members.len());
    for (id, member) in members {
        let mut kept = Vec::with_capacity(each + 1);
        let most = each + usize::from(extra > 0);
        'topics: for (topic, owned) in &member.assigned {
            for partition in owned {
                if kept.len() == most {
                    break 'topics;
                }
                if free.take(topic, *partition) {
                    kept.push((*topic, *partition));
                }
            }
        }
        if kept.len() > each {
            extra -= 1;
        }
        given.push((id, kept));
    }

    // What is free goes to whoever has less than its share, and then the extra ones to those who have none yet.
    let mut rest = free.iter();
    for full in [each, each + 1] {
        for (_, kept) in &mut given {
            if full > each && (extra == 0 || kept.len() >= full) {
                continue;
            }
            while kept.len() < full
                && let Some((topic, partition)) = rest.next()
            {
                kept.push((topic, partition));
                extra -= usize::from(kept.len() > each);
            }
        }
    }
    debug_assert!(rest.next().is_none(), "all partitions are given");
    given.into_iter().map(|(id, kept)| (id.clone(), in_order(kept))).collect()
}

/// The partitions that nobody has taken.
struct Free {
    topics: BTreeMap<TopicId, Vec<bool>>,
    /// How many there were.
    all: usize,
}

impl Free {
    fn new(subscribed: &BTreeSet<TopicId>, partitions: &BTreeMap<TopicId, i32>) -> Free {
        let topics: BTreeMap<_, _> = subscribed.iter().map(|topic| (*topic, vec![true; count(partitions, topic) as usize])).collect();
        let all = topics.values().map(Vec::len).sum();
        Free { topics, all }
    }

    /// Takes that partition, if it is there and free.
    fn take(&mut self, topic: &TopicId, partition: i32) -> bool {
        let free = self.topics.get_mut(topic).and_then(|topic| topic.get_mut(usize::try_from(partition).ok()?));
        free.is_some_and(std::mem::take)
    }

    fn iter(&self) -> impl Iterator<Item = (TopicId, i32)> {
        let each = self.topics.iter().flat_map(|(topic, free)| (0..).zip(free).map(|(partition, free)| (*topic, partition, *free)));
        each.filter_map(|(topic, partition, free)| free.then_some((topic, partition)))
    }
}
