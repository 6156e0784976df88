//! Applying records to the image. The one place where metadata changes, on a live controller, on a broker and at start alike.

use std::sync::Arc;

use super::delta::Change;
use super::entities::{Broker, ConfigResource, Configs, ControllerNode, Partition, Topic};
use super::features::KRAFT_VERSION;
use super::image::Image;
use super::records::{self, BrokerEpoch, Record, ResourceType};
use crate::core::types::{BrokerId, Epoch, Offset, TopicId, TopicPartition};

/// A record that cannot follow the ones before it: the log is damaged or was written by something else. The node must not go on from here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the metadata record at offset {} contradicts the log before it: {what}", .offset.0)]
pub struct Contradiction {
    /// Where.
    pub offset: Offset,
    /// What does not fit.
    pub what: String,
}

impl Image {
    /// Applies the record at `offset`. On an error the image is as before.
    pub fn apply(&mut self, offset: Offset, record: &Record) -> Result<Change, Contradiction> {
        let change = self.change(record).map_err(|what| Contradiction { offset, what })?;
        self.offset = offset;
        Ok(change)
    }

    /// Moves on to the end of a batch: `offset` is that of its last record, which may be a control record.
    pub fn advance(&mut self, offset: Offset, epoch: Epoch) {
        self.offset = offset;
        self.epoch = epoch;
    }

    fn change(&mut self, record: &Record) -> Result<Change, String> {
        Ok(match record {
            Record::RegisterBroker(record) => {
                self.brokers.insert(record.broker_id, Arc::new(registered(record)));
                Change::Broker(record.broker_id)
            }
            Record::UnregisterBroker(record) => {
                self.registration(record.broker_id, record.broker_epoch)?;
                self.brokers.remove(&record.broker_id);
                Change::Broker(record.broker_id)
            }
            Record::Topic(record) => self.add_topic(record)?,
            Record::Partition(record) => {
                let topic = self.topics.get_mut(&record.topic_id).ok_or_else(|| unknown_topic(record.topic_id))?;
                Arc::make_mut(topic).partitions.insert(record.partition_id, Arc::new(partition(record)));
                Change::Partition(TopicPartition { topic: record.topic_id, partition: record.partition_id })
            }
            Record::Config(record) => self.set_config(record),
            Record::PartitionChange(record) => {
                let at = TopicPartition { topic: record.topic_id, partition: record.partition_id };
                let topic = self.topics.get_mut(&at.topic).ok_or_else(|| unknown_topic(at.topic))?;
                let old =
                    topic.partitions.get(&at.partition).ok_or_else(|| format!("topic {} has no partition {}", at.topic, at.partition))?;
                let new = Arc::new(changed(old, record));
                Arc::make_mut(topic).partitions.insert(at.partition, new);
                Change::Partition(at)
            }
            Record::FenceBroker(record) => self.change_broker(record.broker_id, record.broker_epoch, |broker| broker.fenced = true)?,
            Record::UnfenceBroker(record) => self.change_broker(record.broker_id, record.broker_epoch, |broker| broker.fenced = false)?,
            Record::BrokerRegistrationChange(record) => self.change_broker(record.broker_id, record.broker_epoch, |broker| {
                broker.fenced = record.fenced.unwrap_or(broker.fenced);
                broker.in_controlled_shutdown |= record.in_controlled_shutdown;
                if !record.log_dirs.is_empty() {
                    broker.log_dirs.clone_from(&record.log_dirs);
                }
                if let Some(dirs) = &record.cordoned_log_dirs {
                    broker.cordoned_log_dirs = Some(dirs.clone());
                }
            })?,
            Record::RemoveTopic(record) => {
                let topic = self.topics.remove(&record.topic_id).ok_or_else(|| unknown_topic(record.topic_id))?;
                self.names.remove(&topic.name);
                self.replace_configs(ResourceType::Topic, topic.name.clone(), Configs::new());
                Change::TopicDeleted(topic)
            }
            Record::FeatureLevel(record) => self.set_feature(record),
            Record::ProducerIds(record) => {
                if let Some(next) = self.next_producer_id.filter(|next| record.next_producer_id <= *next) {
                    return Err(format!("producer ids go back from {next} to {}", record.next_producer_id));
                }
                self.next_producer_id = Some(record.next_producer_id);
                Change::Nothing
            }
            Record::RegisterController(record) => {
                let controller = ControllerNode {
                    id: record.controller_id,
                    incarnation_id: record.incarnation_id,
                    endpoints: record.endpoints.clone(),
                    features: record.features.clone(),
                };
                self.controllers.insert(record.controller_id, Arc::new(controller));
                Change::Nothing
            }
            Record::ClearElr(topic) => self.clear_elr(topic)?,
            Record::NoOp => Change::Nothing,
            Record::BeginTransaction(_) => {
                if self.in_transaction() {
                    return Err("a transaction begins inside another".into());
                }
                self.before_transaction = Some(Arc::new(self.clone()));
                Change::Began
            }
            Record::EndTransaction => {
                self.before_transaction.take().ok_or("a transaction ends that never began")?;
                Change::Ended
            }
            Record::AbortTransaction(_) => {
                let before = self.before_transaction.take().ok_or("a transaction is aborted that never began")?;
                *self = Image { epoch: self.epoch, ..Arc::unwrap_or_clone(before) };
                Change::Aborted
            }
        })
    }

    fn registration(&self, id: BrokerId, epoch: BrokerEpoch) -> Result<&Arc<Broker>, String> {
        match self.brokers.get(&id) {
            Some(broker) if broker.broker_epoch == epoch => Ok(broker),
            Some(broker) => Err(format!("broker {} is registered with epoch {}, not {}", id.0, broker.broker_epoch.0, epoch.0)),
            None => Err(format!("broker {} is not registered", id.0)),
        }
    }

    fn change_broker(&mut self, id: BrokerId, epoch: BrokerEpoch, change: impl FnOnce(&mut Broker)) -> Result<Change, String> {
        let mut broker = Broker::clone(self.registration(id, epoch)?);
        change(&mut broker);
        self.brokers.insert(id, Arc::new(broker));
        Ok(Change::Broker(id))
    }

    fn add_topic(&mut self, record: &records::Topic) -> Result<Change, String> {
        let (name, id): (Arc<str>, TopicId) = (record.name.as_str().into(), record.topic_id);
        if let Some(other) = self.names.get(&name) {
            return Err(format!("topic {name} exists already, with id {other}"));
        }
        if self.topics.contains_key(&id) {
            return Err(format!("a topic with id {id} exists already"));
        }
        self.names.insert(name.clone(), id);
        self.topics.insert(id, Arc::new(Topic { id, name, partitions: imbl::OrdMap::new() }));
        Ok(Change::TopicCreated(id))
    }

    fn set_config(&mut self, record: &records::Config) -> Change {
        let name: Arc<str> = record.resource_name.as_str().into();
        let mut configs = self.configs(record.resource_type, &name).cloned().unwrap_or_default();
        match &record.value {
            Some(value) => configs.insert(record.name.as_str().into(), value.as_str().into()),
            None => configs.remove(record.name.as_str()),
        };
        self.replace_configs(record.resource_type, name.clone(), configs);
        Change::Config(ConfigResource { kind: record.resource_type, name })
    }

    /// A resource without settings is as one that never had any, so that a snapshot loses nothing.
    fn replace_configs(&mut self, kind: ResourceType, name: Arc<str>, configs: Configs) {
        let resources = self.configs.entry(kind).or_default();
        if configs.is_empty() {
            resources.remove(&name);
        } else {
            resources.insert(name, configs);
        }
        if resources.is_empty() {
            self.configs.remove(&kind);
        }
    }

    fn set_feature(&mut self, record: &records::FeatureLevel) -> Change {
        if record.name == KRAFT_VERSION {
            return Change::Nothing;
        }
        if record.level == 0 {
            self.features.remove(record.name.as_str());
        } else {
            self.features.insert(record.name.as_str().into(), record.level);
        }
        Change::Features
    }

    fn clear_elr(&mut self, topic: &str) -> Result<Change, String> {
        let ids: Vec<TopicId> = if topic.is_empty() {
            self.names.values().copied().collect()
        } else {
            vec![*self.names.get(topic).ok_or_else(|| format!("no topic is called {topic}"))?]
        };
        let mut cleared = Vec::new();
        for id in ids {
            let Some(topic) = self.topics.get_mut(&id) else { continue };
            let has_elr = |partition: &Partition| !partition.elr.is_empty() || !partition.last_known_elr.is_empty();
            let stale: Vec<i32> = topic.partitions.iter().filter(|(_, partition)| has_elr(partition)).map(|(index, _)| *index).collect();
            for index in stale {
                if let Some(partition) = Arc::make_mut(topic).partitions.get_mut(&index) {
                    let partition = Arc::make_mut(partition);
                    partition.elr.clear();
                    partition.last_known_elr.clear();
                    partition.partition_epoch = Epoch(partition.partition_epoch.0 + 1);
                    cleared.push(TopicPartition { topic: id, partition: index });
                }
            }
        }
        Ok(Change::Partitions(cleared))
    }
}

fn unknown_topic(id: TopicId) -> String {
    format!("no topic has id {id}")
}

fn registered(record: &records::RegisterBroker) -> Broker {
    Broker {
        id: record.broker_id,
        broker_epoch: record.broker_epoch,
        incarnation_id: record.incarnation_id,
        endpoints: record.endpoints.clone(),
        features: record.features.clone(),
        rack: record.rack.as_deref().map(Arc::from),
        fenced: record.fenced,
        in_controlled_shutdown: record.in_controlled_shutdown,
        log_dirs: record.log_dirs.clone(),
        cordoned_log_dirs: record.cordoned_log_dirs.clone(),
    }
}

fn partition(record: &records::Partition) -> Partition {
    Partition {
        replicas: record.replicas.clone(),
        directories: record.directories.clone(),
        isr: record.isr.clone(),
        removing_replicas: record.removing_replicas.clone(),
        adding_replicas: record.adding_replicas.clone(),
        elr: record.elr.clone().unwrap_or_default(),
        last_known_elr: record.last_known_elr.clone().unwrap_or_default(),
        leader: record.leader,
        leader_epoch: record.leader_epoch,
        partition_epoch: record.partition_epoch,
        leader_recovery: record.leader_recovery,
    }
}

/// A change record counts one up on the partition epoch, and on the leader epoch when it names a leader, be it the same one.
fn changed(old: &Partition, record: &records::PartitionChange) -> Partition {
    let or = |new: &Option<Vec<BrokerId>>, old: &Vec<BrokerId>| new.as_ref().unwrap_or(old).clone();
    Partition {
        replicas: or(&record.replicas, &old.replicas),
        directories: record.directories.as_ref().unwrap_or(&old.directories).clone(),
        isr: or(&record.isr, &old.isr),
        removing_replicas: or(&record.removing_replicas, &old.removing_replicas),
        adding_replicas: or(&record.adding_replicas, &old.adding_replicas),
        elr: or(&record.elr, &old.elr),
        last_known_elr: or(&record.last_known_elr, &old.last_known_elr),
        leader: record.leader.unwrap_or(old.leader),
        leader_epoch: if record.leader.is_some() { Epoch(old.leader_epoch.0 + 1) } else { old.leader_epoch },
        partition_epoch: Epoch(old.partition_epoch.0 + 1),
        leader_recovery: record.leader_recovery.unwrap_or(old.leader_recovery),
    }
}

#[cfg(test)]
mod tests;
