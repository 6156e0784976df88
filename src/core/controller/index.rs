//! What would take a walk over all partitions to find: those without leader, and those led by another replica than the preferred one.
//! Made from the image, kept up with every record; it holds nothing that the image does not say.

use std::collections::BTreeSet;

use super::Image;
use super::delta::Change;
use super::entities::Partition;
use crate::core::types::TopicPartition;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// Partitions that nobody leads.
    pub leaderless: BTreeSet<TopicPartition>,
    /// Partitions that somebody else leads than the first replica of the assignment.
    pub imbalanced: BTreeSet<TopicPartition>,
}

impl Index {
    pub fn of(image: &Image) -> Index {
        let mut index = Index::default();
        for topic in image.topics() {
            for (partition, state) in &topic.partitions {
                index.note(TopicPartition { topic: topic.id, partition: *partition }, Some(state));
            }
        }
        index
    }

    /// Follows a change that `image` has taken.
    pub fn follow(&mut self, image: &Image, change: &Change) {
        match change {
            Change::Partition(at) => self.note(*at, image.partition(*at).map(|partition| &**partition)),
            Change::TopicDeleted(topic) => {
                topic.partitions.keys().for_each(|index| self.note(TopicPartition { topic: topic.id, partition: *index }, None));
            }
            Change::Aborted => *self = Index::of(image),
            _ => {}
        }
    }

    fn note(&mut self, at: TopicPartition, partition: Option<&Partition>) {
        put(&mut self.leaderless, at, partition.is_some_and(|partition| !partition.has_leader()));
        let away = |partition: &Partition| partition.has_leader() && partition.preferred() != Some(partition.leader);
        put(&mut self.imbalanced, at, partition.is_some_and(away));
    }
}

fn put(set: &mut BTreeSet<TopicPartition>, at: TopicPartition, belongs: bool) {
    // Nearly every partition is in neither, so most calls meet an empty or small set.
    if belongs {
        set.insert(at);
    } else if !set.is_empty() {
        set.remove(&at);
    }
}
