//! What changed between two images: gathered while records are applied, handed to the shards with the newer image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::entities::{ConfigResource, Topic};
use crate::core::types::{BrokerId, TopicId, TopicPartition};

/// What one record changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing that anyone looks at.
    Nothing,
    /// A topic appeared; its partitions follow.
    TopicCreated(TopicId),
    /// A topic went away; this is how it last looked.
    TopicDeleted(Arc<Topic>),
    /// A partition appeared or changed.
    Partition(TopicPartition),
    /// Partitions lost their eligible leader replicas.
    Partitions(Vec<TopicPartition>),
    /// A setting of that resource changed.
    Config(ConfigResource),
    /// A broker registered, changed or left.
    Broker(BrokerId),
    /// A finalised feature level changed.
    Features,
    /// A metadata transaction began: what follows counts when it ends.
    Began,
    /// The open metadata transaction counts.
    Ended,
    /// The open metadata transaction never was.
    Aborted,
}

/// Everything that changed since an older image. Look the new state up in the newer one; what is not there any more is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// New topics.
    pub topics_created: BTreeSet<TopicId>,
    /// Topics that went away, as they last looked. A topic that came and went in between is not listed.
    pub topics_deleted: BTreeMap<TopicId, Arc<Topic>>,
    /// New and changed partitions of living topics.
    pub partitions: BTreeSet<TopicPartition>,
    /// Resources with changed settings. A deleted topic's settings go without being listed.
    pub configs: BTreeSet<ConfigResource>,
    /// Brokers that registered, changed or left.
    pub brokers: BTreeSet<BrokerId>,
    /// Whether a feature level changed.
    pub features: bool,
    before_transaction: Option<Box<Delta>>,
}

impl Delta {
    /// Adds what one more record changed.
    pub fn note(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::TopicCreated(id) => {
                self.topics_created.insert(id);
            }
            Change::TopicDeleted(topic) => {
                for index in topic.partitions.keys() {
                    self.partitions.remove(&TopicPartition { topic: topic.id, partition: *index });
                }
                self.configs.remove(&ConfigResource::topic(&topic.name));
                if !self.topics_created.remove(&topic.id) {
                    self.topics_deleted.insert(topic.id, topic);
                }
            }
            Change::Partition(at) => {
                self.partitions.insert(at);
            }
            Change::Partitions(all) => self.partitions.extend(all),
            Change::Config(resource) => {
                self.configs.insert(resource);
            }
            Change::Broker(id) => {
                self.brokers.insert(id);
            }
            Change::Features => self.features = true,
            Change::Began => self.before_transaction = Some(Box::new(self.clone())),
            Change::Ended => self.before_transaction = None,
            Change::Aborted => {
                if let Some(before) = self.before_transaction.take() {
                    *self = *before;
                }
            }
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Delta::default()
    }
}
