//! The committed offsets of all groups: what is in the log and committed there. Which commits are allowed is the groups' business.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::request::{Commit, DeletedTopic, Fetch, NewOffset, Rows, Settings, Why};
use super::{CommittedOffset, GroupRecord};
use crate::core::types::Millis;

type Topics = BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>>;

/// All committed offsets, by group, topic and partition.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    groups: BTreeMap<Arc<str>, Topics>,
}

impl Offsets {
    /// Stores an offset, or forgets it.
    pub(super) fn apply(&mut self, group: &Arc<str>, topic: &Arc<str>, partition: i32, value: Option<CommittedOffset>) {
        match value {
            // Keys are cloned only if they are new: a partition's worth of offsets shares one.
            Some(value) => match self.groups.get_mut(group) {
                Some(topics) => match topics.get_mut(topic) {
                    Some(partitions) => _ = partitions.insert(partition, value),
                    None => _ = topics.insert(topic.clone(), BTreeMap::from([(partition, value)])),
                },
                None => {
                    let partitions = BTreeMap::from([(partition, value)]);
                    self.groups.insert(group.clone(), BTreeMap::from([(topic.clone(), partitions)]));
                }
            },
            None => {
                let Some(topics) = self.groups.get_mut(group) else {
                    return;
                };
                if let Some(partitions) = topics.get_mut(topic) {
                    partitions.remove(&partition);
                    if partitions.is_empty() {
                        topics.remove(topic);
                    }
                }
                if topics.is_empty() {
                    self.groups.remove(group);
                }
            }
        }
    }

    /// Whether the group has any.
    pub(super) fn has(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Answers a question.
    pub(super) fn fetch(&self, fetch: &Fetch) -> Vec<Rows<Option<CommittedOffset>>> {
        let stored = self.groups.get(&fetch.group);
        let Some(wanted) = &fetch.topics else {
            let all = stored.into_iter().flatten().map(|(topic, partitions)| Rows {
                topic: topic.clone(),
                id: Default::default(),
                partitions: partitions.iter().map(|(index, offset)| (*index, Some(offset.clone()))).collect(),
            });
            return all.collect();
        };
        let rows = wanted.iter().map(|rows| {
            let stored = stored.and_then(|topics| topics.get(&rows.topic));
            let find = |index: &i32| {
                let offset = stored?.get(index)?;
                // Committed in a topic of the same name that is no more.
                let other = !offset.topic_id.is_zero() && !rows.id.is_zero() && offset.topic_id != rows.id;
                (!other).then(|| offset.clone())
            };
            Rows {
                topic: rows.topic.clone(),
                id: rows.id,
                partitions: rows.partitions.iter().map(|(index, ())| (*index, find(index))).collect(),
            }
        });
        rows.collect()
    }

    /// The groups that have any.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.keys()
    }

    /// All offsets of a group.
    pub(super) fn of(&self, group: &str) -> impl Iterator<Item = (&Arc<str>, i32, &CommittedOffset)> {
        let topics = self.groups.get(group).into_iter().flatten();
        topics.flat_map(|(topic, partitions)| partitions.iter().map(move |(index, offset)| (topic, *index, offset)))
    }

    /// The offsets of a group that come after that one.
    pub(super) fn after(&self, group: &str, last: Option<&(Arc<str>, i32)>) -> impl Iterator<Item = (&Arc<str>, i32, &CommittedOffset)> {
        let start = last.map_or(Bound::Unbounded, |(topic, _)| Bound::Included(&**topic));
        let topics = self.groups.get(group).into_iter().flat_map(move |topics| topics.range::<str, _>((start, Bound::Unbounded)));
        topics.flat_map(move |(topic, partitions)| {
            let start = last.filter(|(last, _)| last == topic).map_or(Bound::Unbounded, |(_, index)| Bound::Excluded(*index));
            partitions.range((start, Bound::Unbounded)).map(move |(index, offset)| (topic, *index, offset))
        })
    }

    /// All offsets: group, topic, partition, offset.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, i32, &CommittedOffset)> {
        self.groups().flat_map(|group| self.of(group).map(move |(topic, index, offset)| (group, topic, index, offset)))
    }

    /// All that lie in those topics.
    pub(super) fn in_topics<'a>(
        &'a self,
        topics: &'a [DeletedTopic],
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>, i32, &'a CommittedOffset)> {
        self.groups.iter().flat_map(move |(group, stored)| {
            topics
                .iter()
                .filter_map(|topic| stored.get_key_value(&topic.name))
                .flat_map(move |(topic, partitions)| partitions.iter().map(move |(index, offset)| (group, topic, *index, offset)))
        })
    }
}

/// The record that forgets an offset.
pub(super) fn tombstone(group: &Arc<str>, topic: &Arc<str>, partition: i32) -> GroupRecord {
    GroupRecord::Offset { group: group.clone(), topic: topic.clone(), partition, value: None }
}

/// The records of a commit, and its answer's rows.
pub(super) fn commit(commit: Commit, settings: &Settings, now: Millis) -> (Vec<GroupRecord>, Vec<Rows<Result<(), Why>>>) {
    let mut records = Vec::with_capacity(commit.topics.iter().map(|rows| rows.partitions.len()).sum());
    let expires = commit.retention.map(|millis| Millis(now.0.saturating_add(millis)));
    let group = commit.from.group;
    let rows = commit.topics.into_iter().map(|rows| {
        let Rows { topic, id, partitions } = rows;
        let mut one = |index: i32, new: NewOffset| {
            if is_longer(&new.metadata, settings.offset_metadata_max) {
                return (index, Err(Why::OffsetMetadataTooLarge));
            }
            let value = CommittedOffset {
                offset: new.offset,
                leader_epoch: new.leader_epoch,
                metadata: new.metadata,
                committed: now,
                expires,
                topic_id: id,
            };
            records.push(GroupRecord::Offset { group: group.clone(), topic: topic.clone(), partition: index, value: Some(value) });
            (index, Ok(()))
        };
        let partitions = partitions.into_iter().map(|(index, new)| one(index, new)).collect();
        Rows { topic, id, partitions }
    });
    let rows = rows.collect();
    (records, rows)
}

/// Whether a text has more UTF-16 units than `max`, which is what Kafka counts.
fn is_longer(text: &str, max: usize) -> bool {
    text.len() > max && text.encode_utf16().count() > max
}

/// Whether an offset has expired. `start` says from when on its retention counts.
pub(super) fn is_expired(offset: &CommittedOffset, start: impl Fn(Millis) -> Millis, settings: &Settings, now: Millis) -> bool {
    match offset.expires {
        Some(expires) => now >= expires,
        None => now.since(start(offset.committed)) >= settings.offsets_retention,
    }
}

/// Offsets that are on their way into the log: group, topic, partition.
pub(super) type InFlight = BTreeSet<(Arc<str>, Arc<str>, i32)>;
