//! The broker keys that have a typed field: one row each. A row is the key's documentation, its field and type, Kafka's name, its default,
//! the values allowed, when it may change, and whether this broker acts on it yet. A new key is a new row and nothing else.
//! Keys that Kafka has and no field stands for are in `known`.

use super::endpoints::Endpoints;
use super::file::Given;
use super::key::Status::{Later, Now};
use super::key::Update::{ClusterWide, PerBroker, ReadOnly};
use super::key::{CleanupPolicy, CompressionType, Key, LogFormat, RecordValidation, TimestampType, Typed, default_text};
use super::value::Rule::{Addresses, Any, AtLeast, Between, GzipLevel, ListOf, OneOf, OneOfAnyCase, SomeList, SomeOf};
use super::value::Value;
use std::collections::BTreeMap;

macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $field:ident: $ty:ty = $name:literal, $default:tt, $rule:expr, $update:ident, $status:ident $($hidden:ident)?;)*) => {
        /// The configuration of this process: every key with its value, given or default.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            $($(#[doc = $doc])+ pub $field: $ty,)*
            /// What the listener keys and the quorum keys come to.
            pub endpoints: Endpoints,
            /// The settings that were given, and where.
            pub given: Given,
            /// Value of every key that has one, typed field or not.
            pub(super) values: BTreeMap<&'static str, Value>,
        }

        /// The keys of `Config`'s fields.
        pub(super) const KEYS: &[Key] = &[$(Key {
            name: $name,
            kind: <$ty as Typed>::KIND,
            default: default_text!($default),
            rule: $rule,
            update: $update,
            status: $status,
            hidden: keys!(@hidden $($hidden)?),
            doc: concat!($($doc),+).trim_ascii(),
        },)*];

        impl Config {
            /// From values that were read by the rows' types and rules.
            pub(super) fn from_values(values: BTreeMap<&'static str, Value>, endpoints: Endpoints, given: Given) -> Config {
                Config {
                    $($field: match values.get($name) {
                        Some(value) => <$ty>::from_value(value.clone()),
                        None => <$ty>::absent(),
                    }.expect(concat!("the row of ", $name, " has a type that its rule fits and a default that its type needs")),)*
                    endpoints,
                    given,
                    values,
                }
            }
        }
    };
    (@hidden) => { false };
    (@hidden hidden) => { true };
}

keys! {
    // Identity and roles.
    /// Id of this node: unique in the cluster, kept in `meta.properties`. `broker.id` is an older name of the same value.
    node_id: i32 = "node.id", "1", AtLeast(0), ReadOnly, Now;
    /// Older name of `node.id`; if both are given they must agree.
    broker_id: i32 = "broker.id", "-1", Any, ReadOnly, Now;
    /// What this process is: `broker`, `controller`, or both.
    process_roles: Vec<String> = "process.roles", "broker,controller", SomeOf(&["broker", "controller"]), ReadOnly, Now;
    /// Rack, zone or room of this broker, for spreading replicas and for reads from the nearest one.
    broker_rack: Option<String> = "broker.rack", none, Any, ReadOnly, Now;

    // Listeners.
    /// Addresses to bind, `NAME://host:port`. No host binds every interface; port 0 takes a free one.
    listeners: Vec<String> = "listeners", "PLAINTEXT://localhost:9092", SomeList, PerBroker, Now;
    /// Addresses told to clients and other brokers, where they differ from `listeners`.
    advertised_listeners: Option<Vec<String>> = "advertised.listeners", none, SomeList, ReadOnly, Now;
    /// Which protocol each listener name speaks: `NAME:PLAINTEXT`, SSL, SASL_PLAINTEXT or SASL_SSL.
    listener_security_protocol_map: String = "listener.security.protocol.map", "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Any, PerBroker, Now;
    /// Names of the listeners that only the metadata quorum uses.
    controller_listener_names: Vec<String> = "controller.listener.names", "", SomeList, ReadOnly, Now;
    /// Listener that brokers use among themselves; absent: the one of `security.inter.broker.protocol`.
    inter_broker_listener_name: Option<String> = "inter.broker.listener.name", none, Any, ReadOnly, Now;
    /// Protocol among brokers if `inter.broker.listener.name` is not given.
    security_inter_broker_protocol: String = "security.inter.broker.protocol", "PLAINTEXT", OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), ReadOnly, Now;

    // Metadata quorum.
    /// Voters of a static metadata quorum, `id@host:port`. Empty on a node that is its own quorum.
    controller_quorum_voters: Vec<String> = "controller.quorum.voters", "", Addresses, ReadOnly, Now;
    /// Addresses at which to find a dynamic metadata quorum, `host:port`.
    controller_quorum_bootstrap_servers: Vec<String> = "controller.quorum.bootstrap.servers", "", Addresses, ReadOnly, Later;
    /// How long a candidate waits for votes before it tries again, ms.
    controller_quorum_election_timeout_ms: i32 = "controller.quorum.election.timeout.ms", "1000", AtLeast(0), ReadOnly, Now;
    /// How long without a fetch a quorum member keeps its leader, and a leader its followers, ms.
    controller_quorum_fetch_timeout_ms: i32 = "controller.quorum.fetch.timeout.ms", "2000", AtLeast(0), ReadOnly, Now;
    /// Longest random pause before a new candidacy, ms.
    controller_quorum_election_backoff_max_ms: i32 = "controller.quorum.election.backoff.max.ms", "1000", AtLeast(0), ReadOnly, Now;
    /// How long the quorum leader gathers records before it writes them, ms.
    controller_quorum_append_linger_ms: i32 = "controller.quorum.append.linger.ms", "25", AtLeast(0), ReadOnly, Later;
    /// How long a request to another quorum member may take, ms.
    controller_quorum_request_timeout_ms: i32 = "controller.quorum.request.timeout.ms", "2000", AtLeast(0), ReadOnly, Now;
    /// Pause after a failed request to another quorum member, ms.
    controller_quorum_retry_backoff_ms: i32 = "controller.quorum.retry.backoff.ms", "20", AtLeast(0), ReadOnly, Now;
    /// Most bytes of metadata log in one answer to a quorum member.
    controller_quorum_fetch_max_bytes: i32 = "controller.quorum.fetch.max.bytes", "1048576", AtLeast(1), ReadOnly, Now;
    /// Most bytes of a snapshot in one answer to a quorum member.
    controller_quorum_fetch_snapshot_max_bytes: i32 = "controller.quorum.fetch.snapshot.max.bytes", "1048576", AtLeast(1), ReadOnly, Now;
    /// Directory of the metadata log; absent: the first log directory.
    metadata_log_dir: Option<String> = "metadata.log.dir", none, Any, ReadOnly, Now;
    /// Size at which the metadata log starts a new segment.
    metadata_log_segment_bytes: i32 = "metadata.log.segment.bytes", "1073741824", AtLeast(8388608), ReadOnly, Now;
    /// Age at which the metadata log starts a new segment, ms.
    metadata_log_segment_ms: i64 = "metadata.log.segment.ms", "604800000", Any, ReadOnly, Now;
    /// Metadata log and snapshots kept beyond the newest snapshot, bytes.
    metadata_max_retention_bytes: i64 = "metadata.max.retention.bytes", "104857600", Any, ReadOnly, Later;
    /// How long metadata log and snapshots older than the newest snapshot are kept, ms.
    metadata_max_retention_ms: i64 = "metadata.max.retention.ms", "604800000", Any, ReadOnly, Later;
    /// How often an idle controller writes an empty record, ms; 0 never.
    metadata_max_idle_interval_ms: i32 = "metadata.max.idle.interval.ms", "500", AtLeast(0), ReadOnly, Later;
    /// Bytes of metadata records after which a snapshot is made.
    metadata_log_max_record_bytes_between_snapshots: i64 = "metadata.log.max.record.bytes.between.snapshots", "20971520", AtLeast(1), ReadOnly, Now;
    /// Longest time without a snapshot if anything changed, ms; 0 no limit.
    metadata_log_max_snapshot_interval_ms: i64 = "metadata.log.max.snapshot.interval.ms", "3600000", AtLeast(0), ReadOnly, Now;

    // Log directories.
    /// The log directory if `log.dirs` is not given.
    log_dir: Vec<String> = "log.dir", "understudy-data", SomeList, ReadOnly, Now;
    /// Directories that hold the partitions; a new partition goes to the one with the fewest.
    log_dirs: Option<Vec<String>> = "log.dirs", none, SomeList, ReadOnly, Now;
    /// Threads that recover the logs of one directory after a crash.
    num_recovery_threads_per_data_dir: i32 = "num.recovery.threads.per.data.dir", "2", AtLeast(1), ClusterWide, Now;
    /// How long a broker may fail to report a broken directory before it stops, ms.
    log_dir_failure_timeout_ms: i64 = "log.dir.failure.timeout.ms", "30000", AtLeast(1), ReadOnly, Later;

    // Topics by default.
    /// Partitions of a topic that is made without a count.
    num_partitions: i32 = "num.partitions", "1", AtLeast(1), ReadOnly, Now;
    /// Replicas of a topic that is made without a count.
    default_replication_factor: i32 = "default.replication.factor", "1", Any, ReadOnly, Now;
    /// Whether a client's question for an unknown topic makes it.
    auto_create_topics_enable: bool = "auto.create.topics.enable", "true", Any, ReadOnly, Now;
    /// Whether topics may be deleted.
    delete_topic_enable: bool = "delete.topic.enable", "true", Any, ReadOnly, Now;
    /// In-sync replicas that an acks=all write needs, the leader among them.
    min_insync_replicas: i32 = "min.insync.replicas", "1", AtLeast(1), ClusterWide, Now;
    /// Largest record batch accepted, bytes; topics: `max.message.bytes`.
    message_max_bytes: i32 = "message.max.bytes", "1048588", AtLeast(0), ClusterWide, Now;
    /// Codec of stored batches; `producer` keeps what the producer chose.
    compression_type: CompressionType = "compression.type", "producer", OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), ClusterWide, Now;
    /// Effort of gzip when the broker compresses; -1 is its default.
    compression_gzip_level: i32 = "compression.gzip.level", "-1", GzipLevel, ClusterWide, Now;
    /// Effort of lz4 when the broker compresses.
    compression_lz4_level: i32 = "compression.lz4.level", "9", Between(1, 17), ClusterWide, Now;
    /// Effort of zstd when the broker compresses.
    compression_zstd_level: i32 = "compression.zstd.level", "3", Between(-131072, 22), ClusterWide, Now;
    /// Whether a replica out of sync may lead when no other is left, losing what it lacks.
    unclean_leader_election_enable: bool = "unclean.leader.election.enable", "false", Any, ClusterWide, Now;
    /// How often leaderless partitions that allow unclean election are tried again, ms.
    unclean_leader_election_interval_ms: i64 = "unclean.leader.election.interval.ms", "300000", AtLeast(1), ReadOnly, Later hidden;

    // Segments.
    /// Size at which a log starts a new segment.
    log_segment_bytes: i32 = "log.segment.bytes", "1073741824", AtLeast(1048576), ClusterWide, Now;
    /// Age at which a log starts a new segment, ms; absent: `log.roll.hours`.
    log_roll_ms: Option<i64> = "log.roll.ms", none, Any, ClusterWide, Now;
    /// Age at which a log starts a new segment, hours.
    log_roll_hours: i32 = "log.roll.hours", "168", AtLeast(1), ReadOnly, Now;
    /// Most that is taken off the age at random so that logs do not roll together, ms.
    log_roll_jitter_ms: Option<i64> = "log.roll.jitter.ms", none, Any, ClusterWide, Now;
    /// The same in hours, if `log.roll.jitter.ms` is absent.
    log_roll_jitter_hours: i32 = "log.roll.jitter.hours", "0", AtLeast(0), ReadOnly, Now;
    /// Largest index of a segment, bytes; a full index starts a new segment.
    log_index_size_max_bytes: i32 = "log.index.size.max.bytes", "10485760", AtLeast(4), ClusterWide, Now;
    /// Bytes of log between two index entries.
    log_index_interval_bytes: i32 = "log.index.interval.bytes", "4096", AtLeast(0), ClusterWide, Now;
    /// Whether a new segment takes its full size on disk at once.
    log_preallocate: bool = "log.preallocate", "false", Any, ClusterWide, Now;
    /// How long a deleted segment's files stay before they are unlinked, ms.
    log_segment_delete_delay_ms: i64 = "log.segment.delete.delay.ms", "60000", AtLeast(0), ClusterWide, Now;

    // Retention and flush.
    /// How long records are kept, ms; -1 for ever; absent: `log.retention.minutes`.
    log_retention_ms: Option<i64> = "log.retention.ms", none, Any, ClusterWide, Now;
    /// How long records are kept, minutes; absent: `log.retention.hours`.
    log_retention_minutes: Option<i32> = "log.retention.minutes", none, Any, ReadOnly, Now;
    /// How long records are kept, hours.
    log_retention_hours: i32 = "log.retention.hours", "168", Any, ReadOnly, Now;
    /// Most bytes kept of one partition; -1 no limit.
    log_retention_bytes: i64 = "log.retention.bytes", "-1", Any, ClusterWide, Now;
    /// How often retention looks for segments to delete, ms.
    log_retention_check_interval_ms: i64 = "log.retention.check.interval.ms", "300000", AtLeast(1), ReadOnly, Now;
    /// What happens to old segments: `delete`, `compact`, or both; empty keeps all.
    log_cleanup_policy: CleanupPolicy = "log.cleanup.policy", "delete", ListOf(&["compact", "delete"]), ClusterWide, Now;
    /// How long after start retention and checkpoints begin, ms.
    log_initial_task_delay_ms: i64 = "log.initial.task.delay.ms", "30000", AtLeast(0), ReadOnly, Now hidden;
    /// Records after which a log is forced to disk.
    log_flush_interval_messages: i64 = "log.flush.interval.messages", "9223372036854775807", AtLeast(1), ClusterWide, Now;
    /// Longest time a record waits to be forced to disk, ms; absent: `log.flush.scheduler.interval.ms`.
    log_flush_interval_ms: Option<i64> = "log.flush.interval.ms", none, Any, ClusterWide, Now;
    /// How often logs are looked at for a timed flush, ms.
    log_flush_scheduler_interval_ms: i64 = "log.flush.scheduler.interval.ms", "9223372036854775807", Any, ReadOnly, Now;
    /// How often recovery points are written down, ms.
    log_flush_offset_checkpoint_interval_ms: i32 = "log.flush.offset.checkpoint.interval.ms", "60000", AtLeast(0), ReadOnly, Later;
    /// How often log start offsets are written down, ms.
    log_flush_start_offset_checkpoint_interval_ms: i32 = "log.flush.start.offset.checkpoint.interval.ms", "60000", AtLeast(0), ReadOnly, Later;
    /// Whether a record carries the producer's time (`CreateTime`) or the broker's (`LogAppendTime`).
    log_message_timestamp_type: TimestampType = "log.message.timestamp.type", "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]), ClusterWide, Now;
    /// How far a record's time may lie in the past, ms.
    log_message_timestamp_before_max_ms: i64 = "log.message.timestamp.before.max.ms", "9223372036854775807", AtLeast(0), ClusterWide, Now;
    /// How far a record's time may lie in the future, ms.
    log_message_timestamp_after_max_ms: i64 = "log.message.timestamp.after.max.ms", "3600000", AtLeast(0), ClusterWide, Now;

    // Compaction.
    /// Whether logs are compacted at all.
    log_cleaner_enable: bool = "log.cleaner.enable", "true", Any, ReadOnly, Now;
    /// Threads that compact logs.
    log_cleaner_threads: i32 = "log.cleaner.threads", "1", AtLeast(0), ClusterWide, Now;
    /// Memory for the keys of one compaction, over all threads, bytes.
    log_cleaner_dedupe_buffer_size: i64 = "log.cleaner.dedupe.buffer.size", "134217728", Any, ClusterWide, Now;
    /// Read and write buffers of compaction, over all threads, bytes.
    log_cleaner_io_buffer_size: i32 = "log.cleaner.io.buffer.size", "524288", AtLeast(0), ClusterWide, Now;
    /// How full the key table of a compaction may get, 0 to 1.
    log_cleaner_io_buffer_load_factor: f64 = "log.cleaner.io.buffer.load.factor", "0.9", Any, ClusterWide, Now;
    /// Most bytes a second that compaction reads and writes.
    log_cleaner_io_max_bytes_per_second: f64 = "log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", Any, ClusterWide, Now;
    /// Pause of the compactor when nothing is to be done, ms.
    log_cleaner_backoff_ms: i64 = "log.cleaner.backoff.ms", "15000", AtLeast(0), ClusterWide, Now;
    /// How long a compacted topic keeps tombstones, ms.
    log_cleaner_delete_retention_ms: i64 = "log.cleaner.delete.retention.ms", "86400000", AtLeast(0), ClusterWide, Now;
    /// Share of uncompacted log that makes a compaction worth it, 0 to 1.
    log_cleaner_min_cleanable_ratio: f64 = "log.cleaner.min.cleanable.ratio", "0.5", Between(0, 1), ClusterWide, Now;
    /// Shortest time a record stays uncompacted, ms.
    log_cleaner_min_compaction_lag_ms: i64 = "log.cleaner.min.compaction.lag.ms", "0", AtLeast(0), ClusterWide, Now;
    /// Longest time a record stays uncompacted, ms.
    log_cleaner_max_compaction_lag_ms: i64 = "log.cleaner.max.compaction.lag.ms", "9223372036854775807", AtLeast(1), ClusterWide, Now;
    /// With tiered storage: how long segments stay on local disk, ms; -2 as `log.retention.ms`.
    log_local_retention_ms: i64 = "log.local.retention.ms", "-2", AtLeast(-2), ClusterWide, Later;
    /// With tiered storage: bytes that stay on local disk; -2 as `log.retention.bytes`.
    log_local_retention_bytes: i64 = "log.local.retention.bytes", "-2", AtLeast(-2), ClusterWide, Later;

    // Replication.
    /// How long a follower may be behind before the leader proposes it out of the ISR, ms.
    replica_lag_time_max_ms: i64 = "replica.lag.time.max.ms", "30000", Any, ReadOnly, Later;
    /// Bytes of one partition that a follower asks for at a time.
    replica_fetch_max_bytes: i32 = "replica.fetch.max.bytes", "1048576", AtLeast(0), ReadOnly, Later;
    /// Bytes that a follower takes in one answer.
    replica_fetch_response_max_bytes: i32 = "replica.fetch.response.max.bytes", "10485760", AtLeast(0), ReadOnly, Later;
    /// How long a follower's fetch waits for data, ms.
    replica_fetch_wait_max_ms: i32 = "replica.fetch.wait.max.ms", "500", Any, ReadOnly, Later;
    /// Bytes worth answering a follower's fetch before its wait ends.
    replica_fetch_min_bytes: i32 = "replica.fetch.min.bytes", "1", Any, ReadOnly, Later;
    /// Pause of a follower's partition after an error, ms.
    replica_fetch_backoff_ms: i32 = "replica.fetch.backoff.ms", "1000", AtLeast(0), ReadOnly, Later;
    /// Connections per leader that this broker replicates with.
    num_replica_fetchers: i32 = "num.replica.fetchers", "1", AtLeast(1), ClusterWide, Later;
    /// How long a request to a leader may take, ms.
    replica_socket_timeout_ms: i32 = "replica.socket.timeout.ms", "30000", Any, ReadOnly, Later;
    /// Socket receive buffer of replication connections.
    replica_socket_receive_buffer_bytes: i32 = "replica.socket.receive.buffer.bytes", "65536", Any, ReadOnly, Later;
    /// How often high watermarks are written down, ms.
    replica_high_watermark_checkpoint_interval_ms: i64 = "replica.high.watermark.checkpoint.interval.ms", "5000", Any, ReadOnly, Now;
    /// How consumers are sent to a nearer replica.
    replica_selector_class: Option<String> = "replica.selector.class", none, Any, ReadOnly, Later;
    /// Whether leadership goes back to preferred replicas by itself.
    auto_leader_rebalance_enable: bool = "auto.leader.rebalance.enable", "true", Any, ReadOnly, Now;
    /// How often preferred leadership is looked at, seconds.
    leader_imbalance_check_interval_seconds: i64 = "leader.imbalance.check.interval.seconds", "300", AtLeast(1), ReadOnly, Now;
    /// Whether a stopping broker hands over its leaderships first.
    controlled_shutdown_enable: bool = "controlled.shutdown.enable", "true", Any, ReadOnly, Later;
    /// How often a broker tells the controller that it lives, ms.
    broker_heartbeat_interval_ms: i32 = "broker.heartbeat.interval.ms", "2000", Any, ReadOnly, Later;
    /// How long a silent broker is believed alive, ms.
    broker_session_timeout_ms: i32 = "broker.session.timeout.ms", "9000", Any, ReadOnly, Later;
    /// How long a starting broker tries to register before it gives up, ms.
    initial_broker_registration_timeout_ms: i32 = "initial.broker.registration.timeout.ms", "60000", Any, ReadOnly, Later;

    // Connections and requests.
    /// Kafka's network threads; here `understudy.shards` decides.
    num_network_threads: i32 = "num.network.threads", "3", AtLeast(1), ClusterWide, Later;
    /// Kafka's request threads; here `understudy.shards` decides.
    num_io_threads: i32 = "num.io.threads", "8", AtLeast(1), ClusterWide, Later;
    /// Kafka's threads for background work; here each log directory has one.
    background_threads: i32 = "background.threads", "10", AtLeast(1), ClusterWide, Later;
    /// Kafka's queue between network and request threads; here `understudy.admitted.bytes.max` bounds the same.
    queued_max_requests: i32 = "queued.max.requests", "500", AtLeast(1), ReadOnly, Later;
    /// Largest request frame accepted.
    socket_request_max_bytes: i32 = "socket.request.max.bytes", "104857600", AtLeast(1), ReadOnly, Now;
    /// Socket send buffer of a connection; -1 leaves it to the system.
    socket_send_buffer_bytes: i32 = "socket.send.buffer.bytes", "102400", Any, ReadOnly, Later;
    /// Socket receive buffer of a connection; -1 leaves it to the system.
    socket_receive_buffer_bytes: i32 = "socket.receive.buffer.bytes", "102400", Any, ReadOnly, Later;
    /// Connections that may wait to be accepted.
    socket_listen_backlog_size: i32 = "socket.listen.backlog.size", "50", AtLeast(1), ReadOnly, Later;
    /// Connections without a request for that long are closed, ms; negative: never.
    connections_max_idle_ms: i64 = "connections.max.idle.ms", "600000", Any, ReadOnly, Now;
    /// Most connections to this broker.
    max_connections: i32 = "max.connections", "2147483647", AtLeast(0), ClusterWide, Now;
    /// Most connections from one address.
    max_connections_per_ip: i32 = "max.connections.per.ip", "2147483647", AtLeast(0), ClusterWide, Now;
    /// Other limits for single addresses, `host:count`.
    max_connections_per_ip_overrides: String = "max.connections.per.ip.overrides", "", Any, ClusterWide, Now;
    /// Most new connections a second.
    max_connection_creation_rate: i32 = "max.connection.creation.rate", "2147483647", AtLeast(0), ClusterWide, Later;
    /// How long a request that this broker sends, or waits for on a client's behalf, may take, ms.
    request_timeout_ms: i32 = "request.timeout.ms", "30000", Any, ReadOnly, Now;
    /// Most bytes in one answer to a fetch.
    fetch_max_bytes: i32 = "fetch.max.bytes", "57671680", AtLeast(1024), ReadOnly, Now;
    /// Fetch sessions kept.
    max_incremental_fetch_session_cache_slots: i32 = "max.incremental.fetch.session.cache.slots", "1000", AtLeast(0), ReadOnly, Now;
    /// Most partitions in one page of DescribeTopicPartitions.
    max_request_partition_size_limit: i32 = "max.request.partition.size.limit", "2000", AtLeast(1), ReadOnly, Now;

    // Groups.
    /// Partitions of `__consumer_offsets`; not to be changed once it exists.
    offsets_topic_num_partitions: i32 = "offsets.topic.num.partitions", "50", AtLeast(1), ReadOnly, Now;
    /// Replicas of `__consumer_offsets`, at most the number of brokers.
    offsets_topic_replication_factor: i16 = "offsets.topic.replication.factor", "3", AtLeast(1), ReadOnly, Now;
    /// Segment size of `__consumer_offsets`.
    offsets_topic_segment_bytes: i32 = "offsets.topic.segment.bytes", "104857600", AtLeast(1), ReadOnly, Now;
    /// How long an empty group's offsets are kept, minutes.
    offsets_retention_minutes: i32 = "offsets.retention.minutes", "10080", AtLeast(1), ReadOnly, Now;
    /// How often expired offsets are looked for, ms.
    offsets_retention_check_interval_ms: i64 = "offsets.retention.check.interval.ms", "600000", AtLeast(1), ReadOnly, Now;
    /// How long a commit waits for its replicas, ms.
    offsets_commit_timeout_ms: i32 = "offsets.commit.timeout.ms", "5000", AtLeast(1), ReadOnly, Now;
    /// Longest text that a commit may carry.
    offset_metadata_max_bytes: i32 = "offset.metadata.max.bytes", "4096", Any, ReadOnly, Now;
    /// Bytes read at a time when a group partition is loaded.
    offsets_load_buffer_size: i32 = "offsets.load.buffer.size", "5242880", AtLeast(1), ReadOnly, Now;
    /// Shortest session that a member may ask for, ms.
    group_min_session_timeout_ms: i32 = "group.min.session.timeout.ms", "6000", Any, ReadOnly, Now;
    /// Longest session that a member may ask for, ms.
    group_max_session_timeout_ms: i32 = "group.max.session.timeout.ms", "1800000", Any, ReadOnly, Now;
    /// How long a new group waits for more members, ms.
    group_initial_rebalance_delay_ms: i32 = "group.initial.rebalance.delay.ms", "3000", Any, ReadOnly, Now;
    /// Most members of a classic group.
    group_max_size: i32 = "group.max.size", "2147483647", AtLeast(1), ReadOnly, Now;
    /// The protocols that groups may follow: `classic` always, `consumer` if it is named.
    group_coordinator_rebalance_protocols: Vec<String> = "group.coordinator.rebalance.protocols", "classic,consumer,streams", SomeOf(&["consumer", "classic", "share", "streams"]), ReadOnly, Now;
    /// How long a member of a consumer group may be silent, ms.
    group_consumer_session_timeout_ms: i32 = "group.consumer.session.timeout.ms", "45000", AtLeast(1), ReadOnly, Now;
    /// The shortest session that a consumer group may have, ms.
    group_consumer_min_session_timeout_ms: i32 = "group.consumer.min.session.timeout.ms", "45000", AtLeast(1), ReadOnly, Now;
    /// The longest session that a consumer group may have, ms.
    group_consumer_max_session_timeout_ms: i32 = "group.consumer.max.session.timeout.ms", "60000", AtLeast(1), ReadOnly, Now;
    /// How often members of a consumer group are to be heard of, ms.
    group_consumer_heartbeat_interval_ms: i32 = "group.consumer.heartbeat.interval.ms", "5000", AtLeast(1), ReadOnly, Now;
    /// The shortest such interval that a consumer group may have, ms.
    group_consumer_min_heartbeat_interval_ms: i32 = "group.consumer.min.heartbeat.interval.ms", "5000", AtLeast(1), ReadOnly, Now;
    /// The longest such interval that a consumer group may have, ms.
    group_consumer_max_heartbeat_interval_ms: i32 = "group.consumer.max.heartbeat.interval.ms", "15000", AtLeast(1), ReadOnly, Now;
    /// Most members of a consumer group.
    group_consumer_max_size: i32 = "group.consumer.max.size", "2147483647", AtLeast(1), ReadOnly, Now;
    /// The assignors that members of consumer groups may name: `uniform`, `range`. The first is the default.
    group_consumer_assignors: Vec<String> = "group.consumer.assignors", "uniform,range", SomeList, ReadOnly, Now;
    /// Whether groups with members may go from the classic protocol to the consumer protocol and back.
    group_consumer_migration_policy: String = "group.consumer.migration.policy", "bidirectional", OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]), ReadOnly, Now;
    /// The least time between two assignments of a consumer group, ms.
    group_consumer_assignment_interval_ms: i32 = "group.consumer.assignment.interval.ms", "1000", AtLeast(0), ClusterWide, Now;
    /// The shortest such time that a consumer group may have, ms.
    group_consumer_min_assignment_interval_ms: i32 = "group.consumer.min.assignment.interval.ms", "0", AtLeast(0), ReadOnly, Now;
    /// The longest such time that a consumer group may have, ms.
    group_consumer_max_assignment_interval_ms: i32 = "group.consumer.max.assignment.interval.ms", "15000", AtLeast(0), ReadOnly, Now;

    // Transactions and producers.
    /// Partitions of `__transaction_state`; not to be changed once it exists.
    transaction_state_log_num_partitions: i32 = "transaction.state.log.num.partitions", "50", AtLeast(1), ReadOnly, Later;
    /// Replicas of `__transaction_state`, at most the number of brokers.
    transaction_state_log_replication_factor: i16 = "transaction.state.log.replication.factor", "3", AtLeast(1), ReadOnly, Later;
    /// `min.insync.replicas` of `__transaction_state`.
    transaction_state_log_min_isr: i32 = "transaction.state.log.min.isr", "2", AtLeast(1), ReadOnly, Later;
    /// Segment size of `__transaction_state`.
    transaction_state_log_segment_bytes: i32 = "transaction.state.log.segment.bytes", "104857600", AtLeast(1), ReadOnly, Later;
    /// Longest transaction that a producer may ask for, ms.
    transaction_max_timeout_ms: i32 = "transaction.max.timeout.ms", "900000", AtLeast(1), ReadOnly, Later;
    /// How long an unused transactional id is kept, ms.
    transactional_id_expiration_ms: i32 = "transactional.id.expiration.ms", "604800000", AtLeast(1), ReadOnly, Later;
    /// Whether a transactional write asks the coordinator first.
    transaction_partition_verification_enable: bool = "transaction.partition.verification.enable", "true", Any, ClusterWide, Later;
    /// How long a partition remembers a silent producer, ms.
    producer_id_expiration_ms: i32 = "producer.id.expiration.ms", "86400000", AtLeast(1), ClusterWide, Now;
    /// How often expired producers are looked for, ms.
    producer_id_expiration_check_interval_ms: i32 = "producer.id.expiration.check.interval.ms", "600000", AtLeast(1), ReadOnly, Later hidden;

    // Ours.
    /// Address of the HTTP server for metrics and health, `host:port`; port 0 takes a free one, empty turns it off.
    http_listen: String = "http.listen", "127.0.0.1:9404", Any, ReadOnly, Now;
    /// How log lines look: `human` or `json`. Which lines appear is `RUST_LOG`'s matter.
    log_format: LogFormat = "log.format", "human", OneOf(&["human", "json"]), ReadOnly, Now;
    /// Cluster id for directories that are formatted at start; absent: a random one. `CLUSTER_ID` in the environment sets it.
    understudy_cluster_id: Option<String> = "understudy.cluster.id", none, Any, ReadOnly, Now;
    /// `full` walks the records of every batch; `header` trusts producers and checks only the batch.
    understudy_record_validation: RecordValidation = "understudy.record.validation", "full", OneOf(&["full", "header"]), ReadOnly, Now;
    /// Threads that carry partitions and connections; 0: half the cores, at least one.
    understudy_shards: i32 = "understudy.shards", "0", AtLeast(0), ReadOnly, Now;
    /// Most log files held open; 0: half of what the process may open.
    understudy_open_files_max: i32 = "understudy.open.files.max", "0", AtLeast(0), ReadOnly, Now;
    /// From the close of a broker's last connection to the controller until it counts as dead, unless it is heard again, ms.
    understudy_broker_disconnect_grace_ms: i32 = "understudy.broker.disconnect.grace.ms", "250", AtLeast(0), ReadOnly, Later;
    /// Requests of one connection that may be in work at once; more wait in its socket.
    understudy_connection_requests_max: i32 = "understudy.connection.requests.max", "128", AtLeast(1), ReadOnly, Now;
    /// Bytes of requests held in memory over all connections; beyond it reading pauses.
    understudy_admitted_bytes_max: i64 = "understudy.admitted.bytes.max", "268435456", AtLeast(1048576), ReadOnly, Now;
}
