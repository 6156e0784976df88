//! The topics that there are, as group coordinators see them: one view for each version of the metadata, shared by all.

use std::collections::BTreeMap;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::core::controller::{Image, ResourceType};
use crate::core::types::TopicId;

/// A view of the cluster's topics.
pub trait Topics: std::fmt::Debug + Send + Sync {
    /// Where in the metadata log it stands.
    fn version(&self) -> i64;
    /// The topic of that name.
    fn id(&self, name: &str) -> Option<TopicId>;
    /// The name of that topic.
    fn name(&self, id: TopicId) -> Option<&Arc<str>>;
    /// How many partitions it has; none if there is no such topic.
    fn partitions(&self, id: TopicId) -> i32;
    /// The racks of a partition's replicas, where they are known.
    fn racks(&self, id: TopicId, partition: i32) -> Vec<&str>;
    /// What is set for that group by that key, if anything is: milliseconds.
    fn group_setting(&self, group: &str, key: &str) -> Option<i32>;
    /// All names, in order.
    fn names(&self) -> Box<dyn Iterator<Item = &Arc<str>> + '_>;
}

impl Topics for Image {
    fn version(&self) -> i64 {
        self.offset().0
    }

    fn id(&self, name: &str) -> Option<TopicId> {
        self.topic_by_name(name).map(|topic| topic.id)
    }

    fn name(&self, id: TopicId) -> Option<&Arc<str>> {
        self.topic(id).map(|topic| &topic.name)
    }

    fn partitions(&self, id: TopicId) -> i32 {
        self.topic(id).map_or(0, |topic| topic.partitions.len() as i32)
    }

    fn racks(&self, id: TopicId, partition: i32) -> Vec<&str> {
        let partition = self.topic(id).and_then(|topic| topic.partition(partition));
        let replicas = partition.into_iter().flat_map(|partition| &partition.replicas);
        replicas.filter_map(|replica| self.broker(*replica)?.rack.as_deref()).collect()
    }

    fn group_setting(&self, group: &str, key: &str) -> Option<i32> {
        self.configs(ResourceType::Group, group)?.get(key)?.parse().ok()
    }

    fn names(&self) -> Box<dyn Iterator<Item = &Arc<str>> + '_> {
        Box::new(self.topics().map(|topic| &topic.name))
    }
}

/// The view of a coordinator, with what it has worked out of it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) topics: Arc<dyn Topics>,
    /// Rises with each change of a topic. Groups compare it with the one they know, so a change costs an idle group nothing.
    pub(super) changes: u64,
    /// The version that last brought new topics.
    pub(super) created: i64,
    hashes: BTreeMap<Arc<str>, i64>,
}

impl World {
    /// Those topics.
    pub(super) fn new(topics: Arc<dyn Topics>) -> World {
        World { created: topics.version(), topics, changes: 1, hashes: BTreeMap::new() }
    }

    /// Other topics: `changed` came, went, or have other partitions, and some are new or not.
    pub(super) fn update(&mut self, topics: Arc<dyn Topics>, changed: &[Arc<str>], some_new: bool) {
        self.topics = topics;
        self.changes += 1;
        changed.iter().for_each(|name| _ = self.hashes.remove(name));
        if some_new {
            self.created = self.topics.version();
        }
    }

    /// Kafka's hash of those topics, each named once and in order: another one means that a group that reads them is to be assigned anew
    /// (KIP-1101). Topics that there are not do not count.
    pub(super) fn hash<'a>(&mut self, names: impl Iterator<Item = &'a Arc<str>>) -> i64 {
        let mut bytes = Vec::new();
        for name in names {
            if let Some(id) = self.topics.id(name) {
                let hash = match self.hashes.get(name) {
                    Some(hash) => *hash,
                    None => {
                        let hash = topic_hash(&*self.topics, name, id);
                        self.hashes.insert(name.clone(), hash);
                        hash
                    }
                };
                bytes.extend_from_slice(&hash.to_le_bytes());
            }
        }
        if bytes.is_empty() { 0 } else { XxHash3_64::oneshot(&bytes) as i64 }
    }
}

/// The first byte of what is hashed of a topic: the version of the rule.
const MAGIC: u8 = 0;

/// Kafka's hash of a topic: id, name, and where its partitions are.
fn topic_hash(topics: &dyn Topics, name: &str, id: TopicId) -> i64 {
    let mut bytes = vec![MAGIC];
    let [high, low] = [(id.0 >> 64) as u64, id.0 as u64];
    bytes.extend_from_slice(&high.to_le_bytes());
    bytes.extend_from_slice(&low.to_le_bytes());
    put_text(&mut bytes, name);
    let count = topics.partitions(id);
    bytes.extend_from_slice(&count.to_le_bytes());
    for partition in 0..count {
        bytes.extend_from_slice(&partition.to_le_bytes());
        let mut racks = topics.racks(id, partition);
        racks.sort_unstable();
        for rack in racks {
            bytes.extend_from_slice(&(rack.encode_utf16().count() as i32).to_le_bytes());
            put_text(&mut bytes, rack);
        }
    }
    XxHash3_64::oneshot(&bytes) as i64
}

/// As Java's hash library puts a text: its UTF-16 units, then how many they are.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let start = bytes.len();
    text.encode_utf16().for_each(|unit| bytes.extend_from_slice(&unit.to_le_bytes()));
    let units = ((bytes.len() - start) / 2) as i32;
    bytes.extend_from_slice(&units.to_le_bytes());
}
