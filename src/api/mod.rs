//! What clients may ask: one file per API key, named as Kafka names it, and the table made of them.
//!
//! A handler gets a typed request that `wire::guard` has passed, runs to its end on the connection's thread (stage one), and returns
//! an [`Outcome`]. What must wait is a future (stage two). [`TABLE`] is what ApiVersions advertises, what labels metrics and what the
//! README lists; a key that is not in `apis!` can be neither served nor advertised.

mod ask;
pub mod cx;
mod dispatch;
mod errors;
mod groups;
mod nodes;
mod partitions;
mod quorum;
mod resources;
pub mod response;
mod settings;
mod terms;
#[cfg(test)]
pub(crate) mod testkit;

pub use cx::{Broker, Call, Cx, Peer};
pub use dispatch::{Dispatched, Refusal, Respond, Step, dispatch};
pub use response::Response;

use futures_util::future::LocalBoxFuture;

/// What a handler serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Kafka's number of the API.
    pub key: i16,
    /// Kafka's name of it.
    pub name: &'static str,
    /// Lowest version served.
    pub min: i16,
    /// Highest version served.
    pub max: i16,
    /// Lowest version advertised: below `min` only for Produce, where old clients judge the broker by it (KAFKA-18659).
    pub advertised_min: i16,
    /// Whether the next request of the same kind may begin before this one is answered. Only where stage one keeps the order.
    pub pipelined: bool,
    /// Who may ask.
    pub audience: Audience,
}

/// On which listeners an API is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Those for clients and brokers.
    Clients,
    /// Those of the metadata quorum (`controller.listener.names`).
    Controllers,
    /// All.
    Everybody,
}

impl Audience {
    /// Whether a listener of the quorum, or of clients, serves it.
    pub fn includes(self, quorum: bool) -> bool {
        match self {
            Audience::Clients => !quorum,
            Audience::Controllers => quorum,
            Audience::Everybody => true,
        }
    }
}

impl Spec {
    /// A key served from `min` to `max`.
    pub const fn new(key: i16, name: &'static str, min: i16, max: i16) -> Spec {
        Spec { key, name, min, max, advertised_min: min, pipelined: false, audience: Audience::Clients }
    }

    /// Advertises a lower minimum than is served.
    pub const fn advertised_from(mut self, min: i16) -> Spec {
        self.advertised_min = min;
        self
    }

    /// Serves it to others than clients, or to others as well.
    pub const fn to(mut self, audience: Audience) -> Spec {
        self.audience = audience;
        self
    }

    /// Lets requests of this kind follow each other without waiting.
    pub const fn pipelined(mut self) -> Spec {
        self.pipelined = true;
        self
    }
}

/// What a handler decided.
pub enum Outcome<T> {
    /// The answer.
    Now(T),
    /// The answer comes later; nothing else of this connection that must keep order starts before.
    Later(LocalBoxFuture<'static, T>),
    /// No answer at all, unless it resolves to `false`: then the connection is closed (acks=0 that failed).
    Silent(LocalBoxFuture<'static, bool>),
}

impl<T> Outcome<T> {
    /// An answer that waits for `future`.
    pub fn later(future: impl Future<Output = T> + 'static) -> Outcome<T> {
        Outcome::Later(Box::pin(future))
    }
}

/// Declares the handlers' modules and builds the table and the dispatch over them.
macro_rules! apis {
    ($($module:ident: $request:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Every API served, by key.
        pub const TABLE: &[Spec] = &[$($module::SPEC),*];

        /// Decodes the body for its handler and runs it. The caller has checked key, version and shape.
        fn run(cx: &Cx, call: &std::rc::Rc<Call>, body: bytes::Bytes) -> Result<Dispatched, Refusal> {
            match call.key {
                $(key if key == $module::SPEC.key => dispatch::typed::<kafka_protocol::messages::$request, _>(cx, call, body, $module::handle),)*
                _ => Err(Refusal::UnknownApi),
            }
        }
    };
}

apis! {
    produce: ProduceRequest,
    fetch: FetchRequest,
    list_offsets: ListOffsetsRequest,
    metadata: MetadataRequest,
    offset_commit: OffsetCommitRequest,
    offset_fetch: OffsetFetchRequest,
    find_coordinator: FindCoordinatorRequest,
    join_group: JoinGroupRequest,
    heartbeat: HeartbeatRequest,
    leave_group: LeaveGroupRequest,
    sync_group: SyncGroupRequest,
    describe_groups: DescribeGroupsRequest,
    list_groups: ListGroupsRequest,
    api_versions: ApiVersionsRequest,
    create_topics: CreateTopicsRequest,
    delete_topics: DeleteTopicsRequest,
    delete_records: DeleteRecordsRequest,
    init_producer_id: InitProducerIdRequest,
    offset_for_leader_epoch: OffsetForLeaderEpochRequest,
    describe_acls: DescribeAclsRequest,
    create_acls: CreateAclsRequest,
    delete_acls: DeleteAclsRequest,
    describe_configs: DescribeConfigsRequest,
    alter_configs: AlterConfigsRequest,
    alter_replica_log_dirs: AlterReplicaLogDirsRequest,
    describe_log_dirs: DescribeLogDirsRequest,
    create_partitions: CreatePartitionsRequest,
    delete_groups: DeleteGroupsRequest,
    elect_leaders: ElectLeadersRequest,
    incremental_alter_configs: IncrementalAlterConfigsRequest,
    alter_partition_reassignments: AlterPartitionReassignmentsRequest,
    list_partition_reassignments: ListPartitionReassignmentsRequest,
    offset_delete: OffsetDeleteRequest,
    describe_client_quotas: DescribeClientQuotasRequest,
    vote: VoteRequest,
    begin_quorum_epoch: BeginQuorumEpochRequest,
    end_quorum_epoch: EndQuorumEpochRequest,
    describe_quorum: DescribeQuorumRequest,
    update_features: UpdateFeaturesRequest,
    fetch_snapshot: FetchSnapshotRequest,
    describe_cluster: DescribeClusterRequest,
    describe_producers: DescribeProducersRequest,
    unregister_broker: UnregisterBrokerRequest,
    consumer_group_heartbeat: ConsumerGroupHeartbeatRequest,
    consumer_group_describe: ConsumerGroupDescribeRequest,
    list_config_resources: ListConfigResourcesRequest,
    describe_topic_partitions: DescribeTopicPartitionsRequest,
}

/// The row of a key.
pub fn spec(key: i16) -> Option<&'static Spec> {
    TABLE.iter().find(|spec| spec.key == key)
}
