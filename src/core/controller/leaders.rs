//! Leaders: elected when brokers come and go, and when an operator asks. The choice itself is `core::election`.

use std::collections::BTreeMap;

use super::entities::{Partition, Topic};
use super::records::{Record, ResourceType};
use super::request::{ByPartition, ElectionType, Refusal, Why};
use super::{Controller, Image};
use crate::core::election::{Kind, change};
use crate::core::types::{BrokerId, TopicPartition};

const UNCLEAN_ELECTION: &str = "unclean.leader.election.enable";

impl Controller {
    /// The broker is fenced, replaced or forgotten: it leaves every ISR but those it is the last of, and its leaderships move or lapse.
    pub(super) fn broker_leaves(&self, id: BrokerId, records: &mut Vec<Record>) {
        for (topic, at, partition) in
            all_partitions(&self.image).filter(|(_, _, partition)| partition.isr.contains(&id) || partition.leader == id)
        {
            let isr = partition.isr.iter().copied().filter(|member| *member != id).collect();
            let change = change(at, partition, isr, self.kind(topic), |other| other != id && self.may_lead(partition, other));
            records.extend(change.map(Record::PartitionChange));
        }
    }

    /// The broker is unfenced: partitions that have no leader may have one now.
    pub(super) fn broker_joins(&self, id: BrokerId, records: &mut Vec<Record>) {
        for (topic, at, partition) in all_partitions(&self.image).filter(|(_, _, partition)| !partition.has_leader()) {
            let acceptable = |other| other == id || self.may_lead(partition, other);
            records.extend(change(at, partition, partition.isr.clone(), self.kind(topic), acceptable).map(Record::PartitionChange));
        }
    }

    /// Alive, and with the directory of this replica online, as far as both are known.
    fn may_lead(&self, partition: &Partition, id: BrokerId) -> bool {
        let Some(broker) = self.image.broker(id).filter(|broker| broker.is_active()) else { return false };
        let position = partition.replicas.iter().position(|replica| *replica == id);
        let directory = position.and_then(|position| partition.directories.get(position));
        directory.is_none_or(|directory| directory.0 <= 1 || broker.log_dirs.is_empty() || broker.log_dirs.contains(directory))
    }

    fn kind(&self, topic: &Topic) -> Kind {
        let set = |kind, name: &str| self.image.configs(kind, name).and_then(|configs| configs.get(UNCLEAN_ELECTION));
        let value = set(ResourceType::Topic, &topic.name).or_else(|| set(ResourceType::Broker, ""));
        let unclean = value.map_or(self.settings.unclean_election, |value| value.eq_ignore_ascii_case("true"));
        if unclean { Kind::Unclean } else { Kind::Online }
    }

    pub(super) fn elect_leaders(
        &self,
        election: ElectionType,
        partitions: Option<ByPartition<i32>>,
        records: &mut Vec<Record>,
    ) -> ByPartition<(i32, Result<(), Refusal>)> {
        match partitions {
            Some(topics) => {
                // Asked twice is answered twice, and elected once.
                let mut done: BTreeMap<(String, i32), Result<(), Refusal>> = BTreeMap::new();
                let mut answer = Vec::with_capacity(topics.len());
                for (name, indexes) in topics {
                    let topic = self.image.topic_by_name(&name).map(|topic| &**topic);
                    let mut results = Vec::with_capacity(indexes.len());
                    for index in indexes {
                        let result =
                            done.entry((name.clone(), index)).or_insert_with(|| self.elect(election, &name, topic, index, records));
                        results.push((index, result.clone()));
                    }
                    answer.push((name, results));
                }
                answer
            }
            None => self
                .image
                .topics()
                .map(|topic| {
                    let all =
                        topic.partitions.keys().map(|index| (*index, self.elect(election, &topic.name, Some(topic), *index, records)));
                    let needed = |result: &Result<(), Refusal>| !matches!(result, Err(refusal) if refusal.why == Why::ElectionNotNeeded);
                    (topic.name.to_string(), all.filter(|(_, result)| needed(result)).collect())
                })
                .collect(),
        }
    }

    fn elect(
        &self,
        election: ElectionType,
        name: &str,
        topic: Option<&Topic>,
        index: i32,
        records: &mut Vec<Record>,
    ) -> Result<(), Refusal> {
        let unknown = |message: String| Refusal::new(Why::UnknownTopicOrPartition, message);
        let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
        let partition = topic.partition(index).ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
        let (kind, impossible, needless) = match election {
            ElectionType::Preferred => (Kind::Preferred, Why::PreferredLeaderNotAvailable, partition.preferred() == Some(partition.leader)),
            ElectionType::Unclean => (Kind::Unclean, Why::EligibleLeadersNotAvailable, partition.has_leader()),
        };
        if needless {
            return Err(Why::ElectionNotNeeded.into());
        }
        let at = TopicPartition { topic: topic.id, partition: index };
        let change = change(at, partition, partition.isr.clone(), kind, |id| self.may_lead(partition, id));
        records.push(Record::PartitionChange(change.ok_or(impossible)?));
        Ok(())
    }
}

fn all_partitions(image: &Image) -> impl Iterator<Item = (&Topic, TopicPartition, &Partition)> {
    image.topics().flat_map(|topic| {
        topic
            .partitions
            .iter()
            .map(move |(index, partition)| (&**topic, TopicPartition { topic: topic.id, partition: *index }, &**partition))
    })
}
