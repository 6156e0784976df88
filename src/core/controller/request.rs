//! What the controller is asked and what it answers. Values of its own: the API handlers translate from and to the wire.

use super::directories::ByDirectory;
use super::entities::ConfigResource;
use super::reassign::Target;
use super::records::{BrokerEpoch, Endpoint, Feature, LeaderRecovery};
use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, Offset, TopicId, TopicPartition};

/// Why one item of a request was refused. `wire::error` knows Kafka's number for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// A request for that broker id carried an outdated registration, or none.
    StaleBrokerEpoch,
    /// No broker of that id is registered.
    BrokerIdNotRegistered,
    /// Another process with that broker id is alive.
    DuplicateBrokerRegistration,
    /// The broker belongs to another cluster.
    InconsistentClusterId,
    /// The registration contradicts itself or another one.
    InvalidRegistration,
    /// The broker cannot run at a finalised feature level.
    UnsupportedVersion,
    /// All of the 63-bit producer ids are given away.
    ProducerIdsExhausted,
    /// The name is taken.
    TopicAlreadyExists,
    /// The name breaks a rule.
    InvalidTopic,
    /// The request contradicts itself.
    InvalidRequest,
    /// More than one request may ask for.
    PolicyViolation,
    /// A partition count that makes no sense.
    InvalidPartitions,
    /// A replication factor that makes no sense or cannot be reached.
    InvalidReplicationFactor,
    /// A manual assignment that cannot be used.
    InvalidReplicaAssignment,
    /// A setting with a bad name or value.
    InvalidConfig,
    /// No topic of that name, or no partition of that index.
    UnknownTopicOrPartition,
    /// No topic of that id.
    UnknownTopicId,
    /// A feature level that cannot be had.
    InvalidUpdateVersion,
    /// The wanted leader leads already.
    ElectionNotNeeded,
    /// The preferred replica is dead or out of sync.
    PreferredLeaderNotAvailable,
    /// No replica is alive.
    EligibleLeadersNotAvailable,
    /// More records may be lost than the operator accepted.
    LossNotAccepted,
    /// The sender knows a newer state of a partition than this controller: it is not the active one any more.
    NotController,
    /// The sender led the partition in an epoch that is over.
    FencedLeaderEpoch,
    /// A replica may not join the ISR: it is fenced, shutting down, or another process than was meant.
    IneligibleReplica,
    /// It is done, and with it the leadership of the sender ended.
    NewLeaderElected,
    /// There is nothing to cancel.
    NoReassignmentInProgress,
    /// The broker holds no such replica, or does not lead it.
    NotLeaderOrFollower,
}

/// One item of a request refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why:?}: {}", message.as_deref().unwrap_or("no details"))]
pub struct Refusal {
    /// The kind of error.
    pub why: Why,
    /// Details for people; `None`: the standard sentence of the error says it all.
    pub message: Option<String>,
}

impl Refusal {
    /// A refusal with details.
    pub fn new(why: Why, message: impl Into<String>) -> Refusal {
        Refusal { why, message: Some(message.into()) }
    }
}

impl From<Why> for Refusal {
    fn from(why: Why) -> Refusal {
        Refusal { why, message: None }
    }
}

/// A topic to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; -1 for `num.partitions`, and with a manual assignment.
    pub partitions: i32,
    /// How many replicas of each; -1 for `default.replication.factor`, and with a manual assignment.
    pub replication_factor: i16,
    /// The replicas of each partition by index, if they are not left to the controller. Empty: they are.
    pub assignments: Vec<(i32, Vec<BrokerId>)>,
    /// Settings; a value of `None` is an error to be answered.
    pub configs: Vec<(String, Option<String>)>,
}

/// How CreateTopics answers for a topic it made, or would make if it were not only asked to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its new identity.
    pub id: TopicId,
    /// Its partitions.
    pub partitions: i32,
    /// Replicas of each.
    pub replication_factor: i16,
}

/// A topic to be deleted: by name or by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicRef {
    /// Its name, if that is known.
    pub name: Option<String>,
    /// Its id; zero if the name is given.
    pub id: TopicId,
}

/// A topic that is to have more partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MorePartitions {
    /// Its name.
    pub name: String,
    /// How many partitions it is to have in all.
    pub count: i32,
    /// The replicas of each new one, if they are not left to the controller.
    pub assignments: Option<Vec<Vec<BrokerId>>>,
}

/// What an incremental change does to one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigOp {
    /// Sets it.
    Set,
    /// Back to the default.
    Delete,
    /// Adds elements to a list.
    Append,
    /// Takes elements out of a list.
    Subtract,
}

/// Changes of the settings of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterConfigs {
    /// Whose settings.
    pub resource: ConfigResource,
    /// (name, what to do, value).
    pub changes: Vec<(String, ConfigOp, Option<String>)>,
}

/// All the settings one resource is to have (the old AlterConfigs): those not named are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaceConfigs {
    /// Whose settings.
    pub resource: ConfigResource,
    /// (name, value).
    pub configs: Vec<(String, Option<String>)>,
}

/// A broker that joins, or comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The cluster it belongs to.
    pub cluster_id: String,
    /// Its `node.id`.
    pub broker: BrokerId,
    /// Identity of the process.
    pub incarnation_id: Id,
    /// Its advertised listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<Feature>,
    /// Its rack.
    pub rack: Option<String>,
    /// Its log directories.
    pub log_dirs: Vec<DirectoryId>,
    /// The registration that the last process on these directories had when it stopped in good order; `None` if it did not.
    pub previous_epoch: Option<BrokerEpoch>,
    /// Whether the process that holds the present registration of this id is known to be alive. Liveness is not in the log: whoever
    /// watches the sessions says so. False when the broker proves that it is the same machine come back, by its locked directories.
    pub session_alive: bool,
}

/// A registered broker says where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The broker.
    pub broker: BrokerId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
    /// The last offset of the metadata log that it has applied.
    pub metadata_offset: Offset,
    /// Whether it wants to be, or stay, fenced.
    pub want_fence: bool,
    /// Whether it wants to stop.
    pub want_shutdown: bool,
    /// Its log directories that failed.
    pub offline_dirs: Vec<DirectoryId>,
    /// Its log directories that take no new replicas (KIP-1066); `None` if it does not say.
    pub cordoned_dirs: Option<Vec<DirectoryId>>,
    /// The end of the log when its shutdown was agreed to, and how far the slowest active broker has applied the log. Neither is in the
    /// log: whoever watches the sessions says so (`Sessions::shutdown`).
    pub shutdown_from: Option<Offset>,
    /// See `shutdown_from`.
    pub others_have_seen: Offset,
}

impl Heartbeat {
    /// A broker is well and wants to serve.
    pub fn new(broker: BrokerId, broker_epoch: BrokerEpoch, metadata_offset: Offset) -> Heartbeat {
        Heartbeat {
            broker,
            broker_epoch,
            metadata_offset,
            want_fence: false,
            want_shutdown: false,
            offline_dirs: Vec::new(),
            cordoned_dirs: None,
            shutdown_from: None,
            others_have_seen: Offset(i64::MAX),
        }
    }
}

/// What a heartbeat is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerState {
    /// It has seen its own registration.
    pub caught_up: bool,
    /// It is fenced.
    pub fenced: bool,
    /// Its leaderships are on their way to others.
    pub shutting_down: bool,
    /// It may stop.
    pub may_stop: bool,
}

/// Which way a feature level may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeType {
    /// Up only.
    Upgrade,
    /// Down, if nothing is lost.
    SafeDowngrade,
    /// Down, whatever is lost.
    UnsafeDowngrade,
}

/// The wanted level of one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureUpdate {
    /// The feature.
    pub name: String,
    /// Its new level; 0 turns it off.
    pub level: i16,
    /// Which way it may go.
    pub upgrade: UpgradeType,
}

/// Producer ids for one broker to hand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdBlock {
    /// The first.
    pub first: i64,
    /// How many.
    pub count: i32,
}

/// Which elections an operator can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionType {
    /// Back to the first replica of the assignment.
    Preferred,
    /// Anyone alive, for a partition that has no leader.
    Unclean,
}

/// What an operator is ready to lose of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedLoss {
    /// So many records, acknowledged or not; 0 for none.
    Records(i64),
    /// Whatever it is.
    Any,
}

/// What one round of moving leaderships to preferred replicas did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balanced {
    /// Partitions that are led by their preferred replica again.
    pub moved: usize,
    /// Whether there may be more to do at once.
    pub more: bool,
}

/// A leader's proposal of who is in sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterPartition {
    /// Index of the partition.
    pub partition: i32,
    /// The epoch in which the sender leads it.
    pub leader_epoch: Epoch,
    /// The partition epoch that it knows.
    pub partition_epoch: Epoch,
    /// The members, each with the registration that is meant; `BrokerEpoch::NONE` if the sender does not say.
    pub isr: Vec<(BrokerId, BrokerEpoch)>,
    /// Whether the leader has recovered from an unclean election.
    pub recovery: LeaderRecovery,
}

/// A partition as it is after AlterPartition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// Who leads.
    pub leader: BrokerId,
    /// In which epoch.
    pub leader_epoch: Epoch,
    /// Rises with every change.
    pub partition_epoch: Epoch,
    /// Who is in sync.
    pub isr: Vec<BrokerId>,
    /// Whether the leader has recovered.
    pub recovery: LeaderRecovery,
}

/// Partitions by topic name, and something for each.
pub type ByPartition<T> = Vec<(String, Vec<T>)>;

/// Partitions by topic id, and something for each.
pub type ByTopicId<T> = Vec<(TopicId, Vec<T>)>;

/// A question to the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Make topics, or find out whether they could be made.
    CreateTopics {
        /// The topics.
        topics: Vec<NewTopic>,
        /// Change nothing.
        validate_only: bool,
    },
    /// Delete topics.
    DeleteTopics(Vec<TopicRef>),
    /// Give topics more partitions.
    CreatePartitions {
        /// The topics.
        topics: Vec<MorePartitions>,
        /// Change nothing.
        validate_only: bool,
    },
    /// Change settings.
    AlterConfigs {
        /// The resources.
        resources: Vec<AlterConfigs>,
        /// Change nothing.
        validate_only: bool,
    },
    /// Replace settings.
    ReplaceConfigs {
        /// The resources.
        resources: Vec<ReplaceConfigs>,
        /// Change nothing.
        validate_only: bool,
    },
    /// Join the cluster.
    RegisterBroker(Registration),
    /// Say where a broker stands.
    Heartbeat(Heartbeat),
    /// Forget a broker.
    UnregisterBroker(BrokerId),
    /// Change feature levels: all or none.
    UpdateFeatures {
        /// The features.
        updates: Vec<FeatureUpdate>,
        /// Change nothing.
        validate_only: bool,
    },
    /// Give a broker producer ids.
    AllocateProducerIds {
        /// The broker.
        broker: BrokerId,
        /// Its registration.
        broker_epoch: BrokerEpoch,
    },
    /// Elect leaders.
    ElectLeaders {
        /// Which kind.
        election: ElectionType,
        /// Which partitions; `None`: all, and those that need none are left out of the answer.
        partitions: Option<ByPartition<i32>>,
    },
    /// Have the replica that an operator named lead.
    Designate {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The replica.
        leader: BrokerId,
        /// What may be lost.
        accepted: AcceptedLoss,
    },
    /// Take leaderships off a broker that can go on with them no longer.
    Resign {
        /// The broker.
        broker: BrokerId,
        /// Its registration.
        broker_epoch: BrokerEpoch,
        /// What it gives up.
        partitions: Vec<TopicPartition>,
    },
    /// Move leaderships back to preferred replicas, one round (`auto.leader.rebalance.enable`).
    Balance,
    /// Decide about partitions whose survivors have said what they hold.
    Recover(Vec<TopicPartition>),
    /// Fence brokers whose sessions ended.
    Fence(Vec<(BrokerId, BrokerEpoch)>),
    /// Change who is in sync.
    AlterPartitions {
        /// The leader of all of them.
        broker: BrokerId,
        /// Its registration.
        broker_epoch: BrokerEpoch,
        /// The partitions.
        topics: ByTopicId<AlterPartition>,
    },
    /// Move replicas, or stop moving them.
    AlterReassignments {
        /// The partitions.
        topics: ByPartition<Target>,
        /// Whether a partition may end up with more or fewer replicas than it has (KIP-860).
        allow_factor_change: bool,
    },
    /// Note where a broker's replicas are.
    AssignDirectories {
        /// The broker.
        broker: BrokerId,
        /// Its registration.
        broker_epoch: BrokerEpoch,
        /// Its directories and what is in them.
        directories: ByDirectory<i32>,
    },
}

/// How the controller answers, item by item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One entry per name.
    CreateTopics(Vec<(String, Result<CreatedTopic, Refusal>)>),
    /// One entry per topic; name and id as far as they are known.
    DeleteTopics(Vec<(TopicRef, Result<(), Refusal>)>),
    /// One entry per name.
    CreatePartitions(Vec<(String, Result<(), Refusal>)>),
    /// One entry per resource of AlterConfigs or ReplaceConfigs, in order.
    Configs(Vec<(ConfigResource, Result<(), Refusal>)>),
    /// The identity of the registration.
    RegisterBroker(Result<BrokerEpoch, Refusal>),
    /// Where the controller sees the broker.
    Heartbeat(Result<BrokerState, Refusal>),
    /// Whether it is forgotten.
    UnregisterBroker(Result<(), Refusal>),
    /// Whether the levels are set.
    UpdateFeatures(Result<(), Refusal>),
    /// The ids.
    AllocateProducerIds(Result<ProducerIdBlock, Refusal>),
    /// One entry per partition.
    ElectLeaders(ByPartition<(i32, Result<(), Refusal>)>),
    /// Whether the named replica leads.
    Designate(Result<(), Refusal>),
    /// One entry per partition.
    Resign(Result<Vec<(TopicPartition, Result<(), Refusal>)>, Refusal>),
    /// What the round did.
    Balance(Balanced),
    /// Partitions that got a leader.
    Recover(usize),
    /// Brokers that are fenced now and were not.
    Fence(Vec<BrokerId>),
    /// One entry per partition.
    AlterPartitions(Result<ByTopicId<(i32, Result<PartitionState, Why>)>, Refusal>),
    /// One entry per partition.
    AlterReassignments(ByPartition<(i32, Result<(), Refusal>)>),
    /// One entry per replica.
    AssignDirectories(Result<ByDirectory<(i32, Result<(), Why>)>, Refusal>),
}
