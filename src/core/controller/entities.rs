//! What the metadata log talks about: topics, partitions, brokers, controllers, configuration. Values only; `replay` changes them.

use std::sync::Arc;

use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, TopicId};

/// Identity of one registration of a broker: the offset of its registration record. Requests that carry an older one are refused.
pub type BrokerEpoch = i64;

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

/// Where a partition stands after an unclean election: until its leader has recovered it, nobody may join it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecoveryState {
    /// Nothing to do.
    #[default]
    Recovered,
    /// The leader was elected uncleanly and has not said yet that it is ready.
    Recovering,
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
    pub removing: Vec<BrokerId>,
    /// Replicas that a running reassignment adds.
    pub adding: Vec<BrokerId>,
    /// Eligible leader replicas (KIP-966): out of the ISR, but known to hold everything committed.
    pub elr: Vec<BrokerId>,
    /// The leader when the partition became leaderless (KIP-966).
    pub last_known_elr: Vec<BrokerId>,
    /// Who leads; `BrokerId::NONE` when nobody does.
    pub leader: BrokerId,
    /// Rises with every change of the leader.
    pub leader_epoch: Epoch,
    /// Rises with every change record of the partition.
    pub partition_epoch: i32,
    /// Whether the leader has yet to recover from an unclean election.
    pub recovery: RecoveryState,
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

/// Where a listener can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Listener name, such as `PLAINTEXT`.
    pub listener: Arc<str>,
    /// Advertised host.
    pub host: Arc<str>,
    /// Advertised port.
    pub port: u16,
    /// Kafka's number of the security protocol (0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL).
    pub security_protocol: i16,
}

/// The levels of one feature that a node can live with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportedFeature {
    /// Feature name, such as `metadata.version`.
    pub name: Arc<str>,
    /// Lowest level.
    pub min: i16,
    /// Highest level.
    pub max: i16,
}

/// A registered broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// `node.id`.
    pub id: BrokerId,
    /// Identity of this registration.
    pub epoch: BrokerEpoch,
    /// Identity of the process.
    pub incarnation: Id,
    /// Advertised listeners, in the order they were registered.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<SupportedFeature>,
    /// `broker.rack`.
    pub rack: Option<Arc<str>>,
    /// A fenced broker leads nothing and is in no ISR.
    pub fenced: bool,
    /// On its way out: may lead until its partitions are moved, and joins no ISR.
    pub in_controlled_shutdown: bool,
    /// Its log directories that are online. Empty: not said (old registrations).
    pub directories: Vec<DirectoryId>,
    /// Directories that take no new partitions.
    pub cordoned: Vec<DirectoryId>,
}

impl Broker {
    /// Whether new leaderships and ISR memberships may be given to it.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// The endpoint of that listener.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| &*endpoint.listener == listener)
    }
}

/// A registered controller (KIP-919).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerNode {
    /// `node.id`.
    pub id: BrokerId,
    /// Identity of the process.
    pub incarnation: Id,
    /// Advertised controller listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<SupportedFeature>,
}

/// What a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// A topic, by name.
    Topic,
    /// A broker, by id in digits; the empty name is the default of all brokers.
    Broker,
    /// A client-metrics subscription, by name.
    ClientMetrics,
    /// A group, by id.
    Group,
}

impl ResourceKind {
    /// Kafka's number of the kind, as config records and requests carry it.
    pub fn number(self) -> i8 {
        match self {
            ResourceKind::Topic => 2,
            ResourceKind::Broker => 4,
            ResourceKind::ClientMetrics => 16,
            ResourceKind::Group => 32,
        }
    }

    /// The kind with that number; `None` for numbers that store no settings here.
    pub fn from_number(number: i8) -> Option<ResourceKind> {
        [ResourceKind::Topic, ResourceKind::Broker, ResourceKind::ClientMetrics, ResourceKind::Group]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

/// One thing that has settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its name; empty for the default of all brokers.
    pub name: Arc<str>,
}

impl ConfigResource {
    /// The settings of a topic.
    pub fn topic(name: &str) -> Self {
        ConfigResource { kind: ResourceKind::Topic, name: name.into() }
    }

    /// The settings of one broker.
    pub fn broker(id: BrokerId) -> Self {
        ConfigResource { kind: ResourceKind::Broker, name: id.0.to_string().into() }
    }

    /// The dynamic defaults of all brokers.
    pub fn broker_default() -> Self {
        ConfigResource { kind: ResourceKind::Broker, name: "".into() }
    }
}
