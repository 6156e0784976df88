//! Topics: made, deleted, and given more partitions. Checks in Kafka's order (`kafka-semantics` 3.6).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::configs::is_too_long;
use super::draft::Sink;
use super::entities::{ConfigResource, Configs, Partition};
use super::records::{self, LeaderRecovery, Record, RemoveTopic, ResourceType};
use super::request::{CreatedTopic, MorePartitions, NewTopic, Refusal, TopicRef, Why};
use super::snapshot::whole_partition;
use super::{Controller, Image};
use crate::core::chance::Chance;
use crate::core::placement::{Candidate, CannotPlace, place};
use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, TopicId};

/// Partitions that one request may make: its records must fit one append.
pub const MAX_PARTITIONS_PER_REQUEST: i64 = 10_000;
const MAX_NAME_LENGTH: usize = 249;
/// The directories of a replica that its broker has not reported yet: MIGRATING (0) where brokers name no directories, and this.
pub(super) const UNASSIGNED: DirectoryId = Id::ONE;
const METADATA_TOPIC: &str = "__cluster_metadata";

type Named<T> = (String, Result<T, Refusal>);

impl Controller {
    pub(super) fn create_topics(&self, topics: Vec<NewTopic>, mut sink: Sink<'_>, chance: &mut dyn Chance) -> Vec<Named<CreatedTopic>> {
        let (topics, doubled) = without_doubles(topics, |topic| &topic.name);
        let asked: i64 = topics.iter().map(|topic| self.asked_partitions(topic)).sum();
        if asked > MAX_PARTITIONS_PER_REQUEST {
            let refusal = Refusal::new(Why::PolicyViolation, "Excessively large number of partitions per request.");
            return topics.into_iter().map(|topic| topic.name).chain(doubled).map(|name| (name, Err(refusal.clone()))).collect();
        }
        let mut answers: Vec<Named<CreatedTopic>> = topics
            .into_iter()
            .map(|topic| {
                let made = self.create_topic(&topic, chance).map(|(made, records)| {
                    sink.extend(records);
                    made
                });
                (topic.name, made)
            })
            .collect();
        answers.extend(doubled.into_iter().map(|name| (name, Err(Refusal::new(Why::InvalidRequest, "Duplicate topic name.")))));
        answers
    }

    fn asked_partitions(&self, topic: &NewTopic) -> i64 {
        match (topic.assignments.len(), topic.partitions) {
            (0, -1) => i64::from(self.settings.default_partitions),
            (0, count) => i64::from(count.max(0)),
            (assigned, _) => assigned as i64,
        }
    }

    fn create_topic(&self, topic: &NewTopic, chance: &mut dyn Chance) -> Result<(CreatedTopic, Vec<Record>), Refusal> {
        let name = &topic.name;
        if name == METADATA_TOPIC {
            return Err(Refusal::new(Why::InvalidRequest, format!("Creation of internal topic {METADATA_TOPIC} is prohibited.")));
        }
        check_name(name)?;
        if self.image.topic_by_name(name).is_some() {
            return Err(Refusal::new(Why::TopicAlreadyExists, format!("Topic '{name}' already exists.")));
        }
        if let Some(other) = self.lookalikes.get(&unified(name)).filter(|_| has_lookalikes(name)).and_then(BTreeSet::first) {
            return Err(Refusal::new(Why::InvalidTopic, format!("Topic '{name}' collides with existing topic: {other}")));
        }
        let configs = self.new_configs(topic)?;
        let assignment = self.assignment_of(topic, chance)?;

        let id = chance.id();
        let count = assignment.len() as i32;
        let replication_factor = assignment.first().map_or(0, |replicas| replicas.len() as i16);
        // The topic, then its settings, then its partitions: nobody sees the partition without the settings.
        let mut records = Vec::with_capacity(1 + configs.len() + assignment.len());
        records.push(Record::Topic(records::Topic { name: name.clone(), topic_id: id }));
        for (key, value) in &configs {
            records.push(Record::Config(records::Config {
                resource_type: ResourceType::Topic,
                resource_name: name.clone(),
                name: key.to_string(),
                value: Some(value.to_string()),
            }));
        }
        for (index, replicas) in assignment.into_iter().enumerate() {
            records.push(self.new_partition(id, index as i32, replicas));
        }
        Ok((CreatedTopic { id, partitions: count, replication_factor }, records))
    }

    fn new_configs(&self, topic: &NewTopic) -> Result<Configs, Refusal> {
        let unset: Vec<&str> = topic.configs.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str()).collect();
        if !unset.is_empty() {
            return Err(Refusal::new(Why::InvalidConfig, format!("Null value not supported for topic configs: {}", unset.join(","))));
        }
        let configs: Configs =
            topic.configs.iter().filter_map(|(name, value)| Some((Arc::from(name.as_str()), Arc::from(value.as_deref()?)))).collect();
        if configs.values().any(|value| is_too_long(value)) {
            return Err(super::configs::too_long());
        }
        if !configs.is_empty() {
            self.settings.rules.check(&self.image, &ConfigResource::topic(&topic.name), &configs)?;
        }
        Ok(configs)
    }

    /// The replicas of each partition, each list with somebody active in it.
    fn assignment_of(&self, topic: &NewTopic, chance: &mut dyn Chance) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        if !topic.assignments.is_empty() {
            return self.manual_assignment(topic);
        }
        if topic.replication_factor < -1 || topic.replication_factor == 0 {
            let message = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(Why::InvalidReplicationFactor, message));
        }
        if topic.partitions < -1 || topic.partitions == 0 {
            return Err(Refusal::new(Why::InvalidPartitions, "Number of partitions was set to an invalid non-positive value."));
        }
        let count = if topic.partitions == -1 { self.settings.default_partitions } else { topic.partitions };
        let replicas = if topic.replication_factor == -1 { self.settings.default_replication_factor } else { topic.replication_factor };
        let cannot = |why: String| {
            Refusal::new(Why::InvalidReplicationFactor, format!("Unable to replicate the partition {replicas} time(s): {why}"))
        };
        let placed = self.place(count as usize, replicas, chance).map_err(|why| cannot(why.to_string()))?;
        if placed.iter().any(|replicas| !self.anyone_active(replicas)) {
            return Err(cannot("All brokers are currently fenced or in controlled shutdown.".into()));
        }
        Ok(placed)
    }

    fn manual_assignment(&self, topic: &NewTopic) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        let contradiction =
            |what| Refusal::new(Why::InvalidRequest, format!("A manual partition assignment was specified, but {what} was not set to -1."));
        if topic.replication_factor != -1 {
            return Err(contradiction("replication factor"));
        }
        if topic.partitions != -1 {
            return Err(contradiction("numPartitions"));
        }
        let bad = |message: String| Refusal::new(Why::InvalidReplicaAssignment, message);
        let mut by_index: Vec<Option<&Vec<BrokerId>>> = vec![None; topic.assignments.len()];
        let mut beyond = BTreeSet::new();
        let mut replication_factor = None;
        for (index, replicas) in &topic.assignments {
            let slot = usize::try_from(*index).ok().and_then(|index| by_index.get_mut(index));
            let doubled = match slot {
                Some(slot) => slot.replace(replicas).is_some(),
                None => !beyond.insert(*index),
            };
            if doubled {
                return Err(bad(format!("Found multiple manual partition assignments for partition {index}")));
            }
            self.check_assignment(replicas, replication_factor)?;
            replication_factor = Some(replicas.len());
            if !self.anyone_active(replicas) {
                return Err(bad(all_fenced(*index)));
            }
        }
        let consecutive: Option<Vec<Vec<BrokerId>>> = by_index.into_iter().map(Option::<&Vec<BrokerId>>::cloned).collect();
        consecutive.ok_or_else(|| bad("partitions should be a consecutive 0-based integer sequence".into()))
    }

    pub(super) fn check_assignment(&self, replicas: &[BrokerId], replication_factor: Option<usize>) -> Result<(), Refusal> {
        let bad = |message: String| Err(Refusal::new(Why::InvalidReplicaAssignment, message));
        if replicas.is_empty() {
            return bad("The manual partition assignment includes an empty replica list.".into());
        }
        let mut sorted = replicas.to_vec();
        sorted.sort();
        for (i, id) in sorted.iter().enumerate() {
            if self.image.broker(*id).is_none() {
                return bad(format!("The manual partition assignment includes broker {}, but no such broker is registered.", id.0));
            }
            if i > 0 && sorted[i - 1] == *id {
                return bad(format!("The manual partition assignment includes the broker {} more than once.", id.0));
            }
        }
        if let Some(others) = replication_factor.filter(|others| *others != replicas.len()) {
            return bad(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with previous \
                 partitions, which have {others} replica(s).",
                replicas.len()
            ));
        }
        Ok(())
    }

    fn place(&self, partitions: usize, replicas: i16, chance: &mut dyn Chance) -> Result<Vec<Vec<BrokerId>>, CannotPlace> {
        let usable = self.image.brokers().filter(|broker| {
            let all_cordoned = |cordoned: &Vec<DirectoryId>| broker.log_dirs.iter().all(|dir| cordoned.contains(dir));
            !broker.in_controlled_shutdown && !broker.cordoned_log_dirs.as_ref().is_some_and(all_cordoned)
        });
        let candidates: Vec<Candidate> =
            usable.map(|broker| Candidate { id: broker.id, rack: broker.rack.clone(), fenced: broker.fenced }).collect();
        place(&candidates, partitions, replicas, chance)
    }

    fn anyone_active(&self, replicas: &[BrokerId]) -> bool {
        replicas.iter().any(|id| self.image.is_active(*id))
    }

    /// A new partition: the active replicas are its ISR, and the first of them leads (the election at creation).
    fn new_partition(&self, topic: TopicId, index: i32, replicas: Vec<BrokerId>) -> Record {
        let isr: Vec<BrokerId> = replicas.iter().copied().filter(|id| self.image.is_active(*id)).collect();
        let partition = Partition {
            directories: replicas.iter().map(|id| self.default_directory(*id)).collect(),
            replicas,
            leader: isr.first().copied().unwrap_or(BrokerId::NONE),
            isr,
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            leader_epoch: Epoch(0),
            partition_epoch: Epoch(0),
            leader_recovery: LeaderRecovery::Recovered,
        };
        Record::Partition(whole_partition(topic, index, partition))
    }

    /// The directory a new replica on that broker is in: known if it has only one.
    pub(super) fn default_directory(&self, broker: BrokerId) -> DirectoryId {
        match self.image.broker(broker).map(|broker| broker.log_dirs.as_slice()) {
            Some([]) => Id::ZERO,
            Some([only]) => *only,
            _ => UNASSIGNED,
        }
    }

    pub(super) fn delete_topics(&self, topics: Vec<TopicRef>, records: &mut Vec<Record>) -> Vec<(TopicRef, Result<(), Refusal>)> {
        let invalid = |message: &str| Err(Refusal::new(Why::InvalidRequest, message));
        let mut answers = Vec::with_capacity(topics.len());
        let mut asked = Vec::with_capacity(topics.len());
        for topic in topics {
            match (&topic.name, topic.id.is_zero()) {
                (None, true) => answers.push((topic, invalid("Neither topic name nor id were specified."))),
                (Some(_), false) => answers.push((topic, invalid("You may not specify both topic name and topic id."))),
                _ => asked.push(topic),
            }
        }
        let (asked, doubled) = without_doubles(asked, |topic| topic);
        for topic in doubled {
            let message = if topic.name.is_some() { "Duplicate topic name." } else { "Duplicate topic id." };
            answers.push((topic, invalid(message)));
        }
        let (by_id, by_name): (Vec<TopicRef>, Vec<TopicRef>) = asked.into_iter().partition(|topic| topic.name.is_none());
        // Ids first: a name that means one of them is refused, and takes the id with it.
        let mut found: Vec<(TopicId, String)> = Vec::new();
        for topic in by_id {
            match self.image.topic(topic.id) {
                Some(known) => found.push((known.id, known.name.to_string())),
                None => answers.push((topic, Err(Why::UnknownTopicId.into()))),
            }
        }
        let mut positions: HashMap<TopicId, usize> = found.iter().enumerate().map(|(i, (id, _))| (*id, i)).collect();
        let mut refused = BTreeSet::new();
        for topic in by_name {
            let Some(known) = topic.name.as_deref().and_then(|name| self.image.topic_by_name(name)) else {
                answers.push((topic, Err(Why::UnknownTopicOrPartition.into())));
                continue;
            };
            if positions.insert(known.id, found.len()).is_some() {
                refused.insert(known.id);
                let both = TopicRef { id: known.id, ..topic };
                answers.push((both, invalid("The provided topic name maps to an ID that was already supplied.")));
            } else {
                found.push((known.id, known.name.to_string()));
            }
        }
        for (id, name) in found.into_iter().filter(|(id, _)| !refused.contains(id)) {
            records.push(Record::RemoveTopic(RemoveTopic { topic_id: id }));
            answers.push((TopicRef { name: Some(name), id }, Ok(())));
        }
        answers
    }

    pub(super) fn create_partitions(&self, topics: Vec<MorePartitions>, mut sink: Sink<'_>, chance: &mut dyn Chance) -> Vec<Named<()>> {
        let (topics, doubled) = without_doubles(topics, |topic| &topic.name);
        let doubled = doubled.into_iter().map(|name| (name, Err(Refusal::new(Why::InvalidRequest, "Duplicate topic name."))));
        let mut answers: Vec<Named<()>> = doubled.collect();
        let mut left = MAX_PARTITIONS_PER_REQUEST;
        for topic in topics {
            let made = self.more_partitions(&topic, &mut left, chance).map(|records| sink.extend(records));
            answers.push((topic.name, made));
        }
        answers
    }

    fn more_partitions(&self, topic: &MorePartitions, left: &mut i64, chance: &mut dyn Chance) -> Result<Vec<Record>, Refusal> {
        let known = self.image.topic_by_name(&topic.name).ok_or(Why::UnknownTopicOrPartition)?;
        let present = known.partitions.len() as i32;
        let additional = i64::from(topic.count) - i64::from(present);
        let invalid = |message: String| Err(Refusal::new(Why::InvalidPartitions, message));
        if additional == 0 {
            return invalid(format!("Topic already has {present} partition(s)."));
        }
        if additional < 0 {
            let (name, count) = (&topic.name, topic.count);
            return invalid(format!("The topic {name} currently has {present} partition(s); {count} would not be an increase."));
        }
        if let Some(assigned) = topic.assignments.as_ref().map(Vec::len).filter(|assigned| *assigned as i64 != additional) {
            let message =
                format!("Attempted to add {additional} additional partition(s), but only {assigned} assignment(s) were specified.");
            return Err(Refusal::new(Why::InvalidReplicaAssignment, message));
        }
        if additional > *left {
            return Err(Refusal::new(Why::PolicyViolation, "Excessively large number of partitions per request."));
        }
        let replication_factor = known.partitions.values().next().map_or(0, |partition| partition.replicas.len());
        let assignment = match &topic.assignments {
            Some(assignment) => {
                for (i, replicas) in assignment.iter().enumerate() {
                    self.check_assignment(replicas, Some(replication_factor))?;
                    if !self.anyone_active(replicas) {
                        return Err(Refusal::new(Why::InvalidReplicaAssignment, all_fenced(present + i as i32)));
                    }
                }
                assignment.clone()
            }
            None => self
                .place(additional as usize, replication_factor as i16, chance)
                .map_err(|why| Refusal::new(Why::InvalidReplicationFactor, why.to_string()))?,
        };
        if assignment.iter().any(|replicas| !self.anyone_active(replicas)) {
            let message = format!(
                "Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced or in controlled shutdown."
            );
            return Err(Refusal::new(Why::InvalidReplicationFactor, message));
        }
        *left -= additional;
        let indexes = present..topic.count;
        Ok(indexes.zip(assignment).map(|(index, replicas)| self.new_partition(known.id, index, replicas)).collect())
    }
}

fn all_fenced(index: i32) -> String {
    format!("All brokers specified in the manual partition assignment for partition {index} are fenced or in controlled shutdown.")
}

/// The items that are there once, in order, and each key that is there more often, once.
fn without_doubles<T, K: Clone + Ord>(all: Vec<T>, key: impl for<'a> Fn(&'a T) -> &'a K) -> (Vec<T>, Vec<K>) {
    let (mut seen, mut doubled) = (BTreeSet::new(), BTreeSet::new());
    for item in &all {
        if !seen.insert(key(item)) {
            doubled.insert(key(item).clone());
        }
    }
    (all.into_iter().filter(|item| !doubled.contains(key(item))).collect(), doubled.into_iter().collect())
}

/// Whether a topic may be called that: 1 to 249 of `[A-Za-z0-9._-]`, and neither `.` nor `..`.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let reason = match name {
        "" => "the empty string is not allowed".to_string(),
        "." | ".." => format!("'{name}' is not allowed"),
        _ if name.len() > MAX_NAME_LENGTH && name.encode_utf16().count() > MAX_NAME_LENGTH => {
            format!("the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}")
        }
        _ if !name.chars().all(legal) => {
            format!("'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
        }
        _ => return Ok(()),
    };
    Err(Refusal::new(Why::InvalidTopic, format!("Topic name is invalid: {reason}")))
}

fn has_lookalikes(name: &str) -> bool {
    name.contains(['.', '_'])
}

fn unified(name: &str) -> String {
    name.replace('.', "_")
}

pub(super) fn lookalikes(image: &Image) -> HashMap<String, BTreeSet<Arc<str>>> {
    let mut all = HashMap::new();
    image.topics().for_each(|topic| add_lookalike(&mut all, &topic.name));
    all
}

pub(super) fn add_lookalike(all: &mut HashMap<String, BTreeSet<Arc<str>>>, name: &Arc<str>) {
    if has_lookalikes(name) {
        all.entry(unified(name)).or_default().insert(name.clone());
    }
}

pub(super) fn remove_lookalike(all: &mut HashMap<String, BTreeSet<Arc<str>>>, name: &Arc<str>) {
    let key = unified(name);
    if let Some(names) = all.get_mut(&key) {
        names.remove(name);
        if names.is_empty() {
            all.remove(&key);
        }
    }
}
