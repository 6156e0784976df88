//! What the metadata log talks about: topics, partitions, brokers, controllers, configuration. Values only; `replay` changes them.

use std::sync::Arc;

use super::records::{BrokerEpoch, Endpoint, Feature, LeaderRecovery, ResourceType};
use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, TopicId};

/// The settings of one resource, by name. Only what somebody set: defaults are the config layer's.
pub type Configs = imbl::OrdMap<Arc<str>, Arc<str>>;

/// A topic and its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Identity of this incarnation of the name.
    pub id: TopicId,
    /// Its name, unique among living topics.
    pub name: Arc<str>,
    /// Partitions by index. Indexes are 0..n without gaps once the records of one append are applied.
    pub partitions: imbl::OrdMap<i32, Arc<Partition>>,
}

impl Topic {
    /// The partition with that index.
    pub fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(&index)
    }
}

/// What the controller knows of one partition (`kafka-semantics` 4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The replicas in assignment order; the first is the preferred leader.
    pub replicas: Vec<BrokerId>,
    /// The log directory of each replica, in the same order; `UNASSIGNED` until its broker has reported.
    pub directories: Vec<DirectoryId>,
    /// The in-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Replicas that a running reassignment takes away.
    pub removing_replicas: Vec<BrokerId>,
    /// Replicas that a running reassignment adds.
    pub adding_replicas: Vec<BrokerId>,
    /// Eligible leader replicas (KIP-966): out of the ISR, but known to hold everything committed.
    pub elr: Vec<BrokerId>,
    /// The leader when the partition became leaderless (KIP-966).
    pub last_known_elr: Vec<BrokerId>,
    /// Who leads; `BrokerId::NONE` when nobody does.
    pub leader: BrokerId,
    /// Rises with every change of the leader.
    pub leader_epoch: Epoch,
    /// Rises with every change record of the partition.
    pub partition_epoch: Epoch,
    /// Whether the leader has yet to recover from an unclean election.
    pub leader_recovery: LeaderRecovery,
}

impl Partition {
    /// Whether anyone leads.
    pub fn has_leader(&self) -> bool {
        self.leader != BrokerId::NONE
    }

    /// The replica that leads when it can: the first of the assignment.
    pub fn preferred(&self) -> Option<BrokerId> {
        self.replicas.first().copied()
    }
}

/// A registered broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// `node.id`.
    pub id: BrokerId,
    /// Identity of this registration.
    pub broker_epoch: BrokerEpoch,
    /// Identity of the process.
    pub incarnation_id: Id,
    /// Advertised listeners, in the order they were registered.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<Feature>,
    /// `broker.rack`.
    pub rack: Option<Arc<str>>,
    /// A fenced broker leads nothing and is in no ISR.
    pub fenced: bool,
    /// On its way out: may lead until its partitions are moved, and joins no ISR.
    pub in_controlled_shutdown: bool,
    /// Its log directories that are online. Empty: not said (old registrations).
    pub log_dirs: Vec<DirectoryId>,
    /// Its log directories that take no new replicas (KIP-1066); `None` before it has said so.
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

impl Broker {
    /// Whether new leaderships and ISR memberships may be given to it.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// The endpoint of that listener.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.name == listener)
    }
}

/// A registered controller (KIP-919).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerNode {
    /// `node.id`.
    pub id: BrokerId,
    /// Identity of the process.
    pub incarnation_id: Id,
    /// Advertised controller listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<Feature>,
}

/// One thing that has settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// What it is.
    pub kind: ResourceType,
    /// Its name; empty for the default of all brokers.
    pub name: Arc<str>,
}

impl ConfigResource {
    /// The settings of a topic.
    pub fn topic(name: &str) -> Self {
        ConfigResource { kind: ResourceType::Topic, name: name.into() }
    }

    /// The settings of one broker.
    pub fn broker(id: BrokerId) -> Self {
        ConfigResource { kind: ResourceType::Broker, name: id.0.to_string().into() }
    }

    /// The dynamic defaults of all brokers.
    pub fn broker_default() -> Self {
        ConfigResource { kind: ResourceType::Broker, name: "".into() }
    }
}
