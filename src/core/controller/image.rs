//! The image: all metadata at one offset of the metadata log, as a value that costs nothing to clone and to publish.
//!
//! Maps share structure between versions, so a change costs O(log n) and what it touches, also in a topic of 10,000 partitions.
//! Lookups live here; `replay` applies records, `snapshot` writes the image out as records.

use std::sync::Arc;

use super::entities::{Broker, Configs, ControllerNode, Partition, Topic};
use super::records::ResourceType;
use crate::core::types::{BrokerId, Epoch, Offset, TopicId, TopicPartition};

/// All metadata of the cluster at one position of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub(super) cluster_id: Arc<str>,
    pub(super) offset: Offset,
    pub(super) epoch: Epoch,
    pub(super) topics: imbl::HashMap<TopicId, Arc<Topic>>,
    pub(super) names: imbl::OrdMap<Arc<str>, TopicId>,
    pub(super) brokers: imbl::OrdMap<BrokerId, Arc<Broker>>,
    pub(super) controllers: imbl::OrdMap<BrokerId, Arc<ControllerNode>>,
    pub(super) configs: imbl::OrdMap<ResourceType, imbl::OrdMap<Arc<str>, Configs>>,
    pub(super) features: imbl::OrdMap<Arc<str>, i16>,
    /// First id of the next block, once a block was given away.
    pub(super) next_producer_id: Option<i64>,
    /// The image as it was when the open metadata transaction (KIP-868) began.
    pub(super) before_transaction: Option<Arc<Image>>,
}

impl Image {
    /// The metadata of a cluster whose log is empty.
    pub fn empty(cluster_id: &str) -> Image {
        Image {
            cluster_id: cluster_id.into(),
            offset: Offset::NONE,
            epoch: Epoch::NONE,
            topics: imbl::HashMap::new(),
            names: imbl::OrdMap::new(),
            brokers: imbl::OrdMap::new(),
            controllers: imbl::OrdMap::new(),
            configs: imbl::OrdMap::new(),
            features: imbl::OrdMap::new(),
            next_producer_id: None,
            before_transaction: None,
        }
    }

    /// The cluster this is the metadata of. It is not in the log: `meta.properties` holds it.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Offset of the last record (data or control) that this image contains; -1 for none.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Quorum epoch of that record.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The topic of that id.
    pub fn topic(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics.get(&id)
    }

    /// The topic of that name.
    pub fn topic_by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(self.names.get(name)?)
    }

    /// Every topic, in name order.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.names.values().filter_map(|id| self.topics.get(id))
    }

    /// Topics in name order from `name` on: pages of DescribeTopicPartitions.
    pub fn topics_from<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Topic>> {
        self.names.range::<_, str>((std::ops::Bound::Included(name), std::ops::Bound::Unbounded)).filter_map(|(_, id)| self.topics.get(id))
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// One partition.
    pub fn partition(&self, at: TopicPartition) -> Option<&Arc<Partition>> {
        self.topics.get(&at.topic)?.partition(at.partition)
    }

    /// Every registered broker, fenced ones too, in id order.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.brokers.values()
    }

    /// The broker of that id.
    pub fn broker(&self, id: BrokerId) -> Option<&Arc<Broker>> {
        self.brokers.get(&id)
    }

    /// Whether that broker is registered and neither fenced nor on its way out.
    pub fn is_active(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_active())
    }

    /// Every registered controller, in id order.
    pub fn controllers(&self) -> impl Iterator<Item = &Arc<ControllerNode>> {
        self.controllers.values()
    }

    /// What was set on that resource; `None` if nothing is. The empty broker name is the default of all brokers.
    pub fn configs(&self, kind: ResourceType, name: &str) -> Option<&Configs> {
        self.configs.get(&kind)?.get(name)
    }

    /// Every resource of that kind with settings, in name order.
    pub fn configured(&self, kind: ResourceType) -> impl Iterator<Item = (&Arc<str>, &Configs)> {
        self.configs.get(&kind).into_iter().flat_map(|resources| resources.iter())
    }

    /// Finalised feature levels, by name. What is not listed is at level 0.
    pub fn features(&self) -> impl Iterator<Item = (&str, i16)> {
        self.features.iter().map(|(name, level)| (&**name, *level))
    }

    /// The finalised level of a feature, 0 if it is off.
    pub fn feature(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// First id of the next producer-id block.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id.unwrap_or(0)
    }

    /// Whether a metadata transaction is open: then this is not to be published or written to a snapshot.
    pub fn in_transaction(&self) -> bool {
        self.before_transaction.is_some()
    }
}
