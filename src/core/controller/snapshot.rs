//! The image written out as records, in the order Kafka writes a snapshot: features, brokers, controllers, topics, settings, producer ids.

use std::sync::Arc;

use super::entities::{Broker, ControllerNode, Partition};
use super::features::METADATA_VERSION;
use super::image::Image;
use super::records::{self, BrokerEpoch, Record};
use crate::core::types::{BrokerId, TopicId};

impl Image {
    /// Records that make an empty image of this cluster equal to this one, but for the position. Lazy: a snapshot writer takes as many at
    /// a time as it has room for. Not to be called while a metadata transaction is open.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        debug_assert!(!self.in_transaction(), "half a transaction is no state");
        let level = |name: &Arc<str>, level: &i16| Record::FeatureLevel(records::FeatureLevel { name: name.to_string(), level: *level });
        // Readers learn from metadata.version how to read the rest.
        let version = self.features.iter().filter(|(name, _)| &***name == METADATA_VERSION);
        let features = self.features.iter().filter(|(name, _)| &***name != METADATA_VERSION);
        let configs = self.configs.iter().flat_map(|(kind, resources)| {
            resources.iter().flat_map(move |(resource, configs)| {
                configs.iter().map(move |(name, value)| {
                    Record::Config(records::Config {
                        resource_type: *kind,
                        resource_name: resource.to_string(),
                        name: name.to_string(),
                        value: Some(value.to_string()),
                    })
                })
            })
        });
        let topics = self.topics().flat_map(|topic| {
            let first = Record::Topic(records::Topic { name: topic.name.to_string(), topic_id: topic.id });
            let partitions = topic
                .partitions
                .iter()
                .map(|(index, partition)| Record::Partition(whole_partition(topic.id, *index, Partition::clone(partition))));
            std::iter::once(first).chain(partitions)
        });
        (version.chain(features).map(move |(name, number)| level(name, number)))
            .chain(self.brokers.values().map(|broker| Record::RegisterBroker(registration(broker))))
            .chain(self.controllers.values().map(|controller| Record::RegisterController(controller_registration(controller))))
            .chain(topics)
            .chain(configs)
            .chain(self.next_producer_id.map(producer_ids))
    }
}

/// The record that makes this partition.
pub(super) fn whole_partition(topic_id: TopicId, partition_id: i32, partition: Partition) -> records::Partition {
    let unless_empty = |members: Vec<BrokerId>| (!members.is_empty()).then_some(members);
    records::Partition {
        partition_id,
        topic_id,
        replicas: partition.replicas,
        isr: partition.isr,
        removing_replicas: partition.removing_replicas,
        adding_replicas: partition.adding_replicas,
        leader: partition.leader,
        leader_recovery: partition.leader_recovery,
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
        directories: partition.directories,
        elr: unless_empty(partition.elr),
        last_known_elr: unless_empty(partition.last_known_elr),
    }
}

fn registration(broker: &Broker) -> records::RegisterBroker {
    records::RegisterBroker {
        broker_id: broker.id,
        is_migrating_zk_broker: false,
        incarnation_id: broker.incarnation_id,
        broker_epoch: broker.broker_epoch,
        endpoints: broker.endpoints.clone(),
        features: broker.features.clone(),
        rack: broker.rack.as_deref().map(str::to_string),
        fenced: broker.fenced,
        in_controlled_shutdown: broker.in_controlled_shutdown,
        log_dirs: broker.log_dirs.clone(),
        cordoned_log_dirs: broker.cordoned_log_dirs.clone(),
    }
}

fn controller_registration(controller: &ControllerNode) -> records::RegisterController {
    records::RegisterController {
        controller_id: controller.id,
        incarnation_id: controller.incarnation_id,
        zk_migration_ready: false,
        endpoints: controller.endpoints.clone(),
        features: controller.features.clone(),
    }
}

/// Who got the last block is not kept.
fn producer_ids(next_producer_id: i64) -> Record {
    Record::ProducerIds(records::ProducerIds { broker_id: BrokerId::NONE, broker_epoch: BrokerEpoch::NONE, next_producer_id })
}
