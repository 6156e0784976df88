//! Samples that are read when somebody scrapes: what the image says, and how full the edge is.

use crate::api::Broker;
use crate::core::types::BrokerId;
use crate::net::admission::{Admission, Connections};
use std::sync::Arc;
use understudy_metrics::{Family, Sink, Source};

/// See the module.
pub struct BrokerSource {
    broker: Arc<Broker>,
    admission: Arc<Admission>,
    connections: Arc<Connections>,
}

impl BrokerSource {
    /// Reads from these.
    pub fn new(broker: Arc<Broker>, admission: Arc<Admission>, connections: Arc<Connections>) -> BrokerSource {
        BrokerSource { broker, admission, connections }
    }

    /// Whether this node is the active controller; and the cluster's counts, shown by that one alone so that sums over nodes are right.
    fn cluster(&self, out: &mut Sink) {
        let active = self.broker.leads();
        out.put(Family::ActiveControllerCount, &[], f64::from(u8::from(active)));
        if !active {
            return;
        }
        let image = self.broker.image.load();
        let (mut partitions, mut leaderless, mut imbalanced) = (0u64, 0u64, 0u64);
        for partition in image.topics().flat_map(|topic| topic.partitions.values()) {
            partitions += 1;
            leaderless += u64::from(partition.leader == BrokerId::NONE);
            imbalanced += u64::from(partition.preferred().is_some_and(|preferred| preferred != partition.leader));
        }
        let fenced = image.brokers().filter(|broker| broker.fenced).count();
        out.put(Family::GlobalTopicCount, &[], image.topic_count() as f64);
        out.put(Family::GlobalPartitionCount, &[], partitions as f64);
        out.put(Family::OfflinePartitionsCount, &[], leaderless as f64);
        out.put(Family::PreferredReplicaImbalanceCount, &[], imbalanced as f64);
        out.put(Family::ActiveBrokerCount, &[], (image.brokers().count() - fenced) as f64);
        out.put(Family::FencedBrokerCount, &[], fenced as f64);
    }
}

impl Source for BrokerSource {
    fn collect(&self, out: &mut Sink) {
        self.broker.metrics.edge.admitted_bytes.set(self.admission.held() as i64);
        self.broker.metrics.edge.connections.set(self.connections.total() as i64);
        self.cluster(out);
    }
}
