//! The records of the metadata log as plain values. Their bytes, and the numbers on the wire, are `wire::records`' business.
//!
//! The names and meanings are those of Kafka's `common/metadata/*.json` schemas. Where a schema says "this value means no change", the
//! field here is an `Option` and `None` means no change.

use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, TopicId};

/// Identity of one registration of a broker: the offset of its RegisterBroker record. -1 means "none": a record the controller wrote itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BrokerEpoch(pub i64);

impl BrokerEpoch {
    /// No broker's epoch.
    pub const NONE: BrokerEpoch = BrokerEpoch(-1);
}

/// How bytes travel on a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecurityProtocol {
    /// Nothing added.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without TLS.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

/// What a dynamic configuration belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceType {
    /// One topic, by name.
    Topic,
    /// One broker by its id in decimal, or every broker: the empty name.
    Broker,
    /// A log level of a broker. Never in a record, only in requests.
    BrokerLogger,
    /// A client metrics subscription (KIP-714).
    ClientMetrics,
    /// One group, by group id.
    Group,
}

/// Whether a leader was elected cleanly (KIP-704).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LeaderRecovery {
    /// Elected from the ISR, or recovered since.
    #[default]
    Recovered,
    /// Elected uncleanly and not yet recovered.
    Recovering,
}

/// Where a broker or controller listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Listener name.
    pub name: String,
    /// Host name or address that peers use.
    pub host: String,
    /// Port.
    pub port: u16,
    /// How bytes travel there.
    pub security_protocol: SecurityProtocol,
}

/// Levels of one feature that a node can run at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Feature name, such as `metadata.version`.
    pub name: String,
    /// Lowest level.
    pub min: i16,
    /// Highest level.
    pub max: i16,
}

/// A broker process joined the cluster (type 0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterBroker {
    /// The broker.
    pub broker_id: BrokerId,
    /// Whether it still ran on ZooKeeper; always false since Kafka 4.0.
    pub is_migrating_zk_broker: bool,
    /// Identity of the process.
    pub incarnation_id: Id,
    /// Identity of this registration.
    pub broker_epoch: BrokerEpoch,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// The features it supports.
    pub features: Vec<Feature>,
    /// Its rack.
    pub rack: Option<String>,
    /// Whether it starts fenced.
    pub fenced: bool,
    /// Whether it is in controlled shutdown.
    pub in_controlled_shutdown: bool,
    /// Its log directories that are online.
    pub log_dirs: Vec<DirectoryId>,
    /// Its log directories that get no new replicas (KIP-1066); `None` before it has said so.
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

/// A broker left for good (type 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnregisterBroker {
    /// The broker.
    pub broker_id: BrokerId,
    /// The registration that ends.
    pub broker_epoch: BrokerEpoch,
}

/// A topic came into being (type 2). Its partitions are records of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Name.
    pub name: String,
    /// Identity.
    pub topic_id: TopicId,
}

/// A partition, whole (type 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Index in the topic.
    pub partition_id: i32,
    /// The topic.
    pub topic_id: TopicId,
    /// Replicas, the preferred leader first.
    pub replicas: Vec<BrokerId>,
    /// In-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Replicas on their way out (KIP-455).
    pub removing_replicas: Vec<BrokerId>,
    /// Replicas on their way in (KIP-455).
    pub adding_replicas: Vec<BrokerId>,
    /// Leader, or `BrokerId::NONE`.
    pub leader: BrokerId,
    /// Whether the leader was elected cleanly.
    pub leader_recovery: LeaderRecovery,
    /// Epoch of the leader.
    pub leader_epoch: Epoch,
    /// Bumped by every change of the partition.
    pub partition_epoch: Epoch,
    /// Log directory of each replica, in the order of `replicas`.
    pub directories: Vec<DirectoryId>,
    /// Eligible leader replicas (KIP-966); `None` and empty mean the same.
    pub elr: Option<Vec<BrokerId>>,
    /// Last known eligible leader replicas (KIP-966); `None` and empty mean the same.
    pub last_known_elr: Option<Vec<BrokerId>>,
}

/// A dynamic configuration key was set or deleted (type 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Kind of resource.
    pub resource_type: ResourceType,
    /// Name of the resource; empty for the default of every broker.
    pub resource_name: String,
    /// Key.
    pub name: String,
    /// Value; `None` deletes the key.
    pub value: Option<String>,
}

/// Some fields of a partition changed (type 5). `None` means no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionChange {
    /// Index in the topic.
    pub partition_id: i32,
    /// The topic.
    pub topic_id: TopicId,
    /// New in-sync replicas.
    pub isr: Option<Vec<BrokerId>>,
    /// New leader; `Some(BrokerId::NONE)` if there is none now.
    pub leader: Option<BrokerId>,
    /// New replicas.
    pub replicas: Option<Vec<BrokerId>>,
    /// New removing replicas.
    pub removing_replicas: Option<Vec<BrokerId>>,
    /// New adding replicas.
    pub adding_replicas: Option<Vec<BrokerId>>,
    /// New recovery state.
    pub leader_recovery: Option<LeaderRecovery>,
    /// New directories.
    pub directories: Option<Vec<DirectoryId>>,
    /// New eligible leader replicas.
    pub elr: Option<Vec<BrokerId>>,
    /// New last known eligible leader replicas.
    pub last_known_elr: Option<Vec<BrokerId>>,
}

impl PartitionChange {
    /// A change of nothing, to be filled in.
    pub fn new(topic_id: TopicId, partition_id: i32) -> PartitionChange {
        PartitionChange {
            partition_id,
            topic_id,
            isr: None,
            leader: None,
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery: None,
            directories: None,
            elr: None,
            last_known_elr: None,
        }
    }
}

/// A broker was fenced or unfenced by the records that Kafka 3.2 and before wrote (types 7 and 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerFence {
    /// The broker.
    pub broker_id: BrokerId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
}

/// A topic and all its partitions are gone (type 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoveTopic {
    /// The topic.
    pub topic_id: TopicId,
}

/// A feature's finalized level changed (type 12). `metadata.version` is the first record of every log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureLevel {
    /// Feature name.
    pub name: String,
    /// New level; 0 means the feature is off.
    pub level: i16,
}

/// A block of producer ids was given away (type 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIds {
    /// Who got it.
    pub broker_id: BrokerId,
    /// Under which registration.
    pub broker_epoch: BrokerEpoch,
    /// First id of the next block.
    pub next_producer_id: i64,
}

/// A registered broker was fenced, unfenced, began to shut down, or its directories changed (type 17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRegistrationChange {
    /// The broker.
    pub broker_id: BrokerId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
    /// `Some(true)` fences, `Some(false)` unfences.
    pub fenced: Option<bool>,
    /// Whether it entered controlled shutdown; there is no way back but to register again.
    pub in_controlled_shutdown: bool,
    /// New online log directories; empty means no change.
    pub log_dirs: Vec<DirectoryId>,
    /// New cordoned log directories (KIP-1066).
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

impl BrokerRegistrationChange {
    /// A change of nothing, to be filled in.
    pub fn new(broker_id: BrokerId, broker_epoch: BrokerEpoch) -> BrokerRegistrationChange {
        BrokerRegistrationChange {
            broker_id,
            broker_epoch,
            fenced: None,
            in_controlled_shutdown: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
    }
}

/// A controller said who it is (type 27, KIP-919).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterController {
    /// The controller.
    pub controller_id: BrokerId,
    /// Identity of the process.
    pub incarnation_id: Id,
    /// Whether it was ready to migrate from ZooKeeper; always false since Kafka 4.0.
    pub zk_migration_ready: bool,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// The features it supports.
    pub features: Vec<Feature>,
}

/// A record of the metadata log. The numbers are Kafka's record types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// 0: a broker joined.
    RegisterBroker(RegisterBroker),
    /// 1: a broker left for good.
    UnregisterBroker(UnregisterBroker),
    /// 2: a topic was made.
    Topic(Topic),
    /// 3: a partition was made, or is told whole in a snapshot.
    Partition(Partition),
    /// 4: a configuration key changed.
    Config(Config),
    /// 5: a partition changed.
    PartitionChange(PartitionChange),
    /// 7: a broker was fenced (old logs).
    FenceBroker(BrokerFence),
    /// 8: a broker was unfenced (old logs).
    UnfenceBroker(BrokerFence),
    /// 9: a topic was deleted.
    RemoveTopic(RemoveTopic),
    /// 12: a feature level changed.
    FeatureLevel(FeatureLevel),
    /// 15: a block of producer ids was given away.
    ProducerIds(ProducerIds),
    /// 17: a broker's registration changed.
    BrokerRegistrationChange(BrokerRegistrationChange),
    /// 20: nothing; keeps the log moving.
    NoOp,
    /// 23: records from here on count only if an EndTransaction follows (KIP-868). The text says what it is for.
    BeginTransaction(Option<String>),
    /// 24: the records since BeginTransaction count.
    EndTransaction,
    /// 25: the records since BeginTransaction do not count. The text says why.
    AbortTransaction(Option<String>),
    /// 27: a controller registered.
    RegisterController(RegisterController),
    /// 28: the named topic's ELR sets are emptied, or with an empty name those of all topics.
    ClearElr(String),
}
