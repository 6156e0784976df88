//! The topic keys: one row each, and what they come to for one topic. A row is the key's documentation, its field and type, Kafka's name,
//! Kafka's default, the values allowed, and the broker keys that give its default, the most specific first.

use super::broker::Config;
use super::key::{CleanupPolicy, CompressionType, TimestampType, TopicKey, Typed, default_text};
use super::value::Rule::{Any, AtLeast, Between, GzipLevel, ListOf, OneOf, ThrottledReplicas};
use super::value::{Value, read};
use std::collections::BTreeMap;

macro_rules! topic_keys {
    ($($(#[doc = $doc:literal])+ $field:ident: $ty:ty = $name:literal, $default:tt, $rule:expr, [$($synonym:literal),*] $(, $hidden:ident)?;)*) => {
        /// The effective configuration of one topic: its overrides over the broker's defaults.
        #[derive(Debug, Clone, PartialEq)]
        pub struct TopicConfig { $($(#[doc = $doc])+ pub $field: $ty,)* }

        /// Every topic key.
        pub const TOPIC_KEYS: &[TopicKey] = &[$(TopicKey {
            name: $name,
            kind: <$ty as Typed>::KIND,
            default: default_text!($default),
            rule: $rule,
            synonyms: &[$($synonym),*],
            hidden: topic_keys!(@hidden $($hidden)?),
            doc: concat!($($doc),+).trim_ascii(),
        },)*];

        impl TopicConfig {
            fn from_values(values: &BTreeMap<&'static str, Value>) -> TopicConfig {
                TopicConfig {
                    $($field: match values.get($name) {
                        Some(value) => <$ty>::from_value(value.clone()),
                        None => <$ty>::absent(),
                    }.expect(concat!("the row of ", $name, " has a type that its rule fits and a default that its type needs")),)*
                }
            }
        }
    };
    (@hidden) => { false };
    (@hidden hidden) => { true };
}

topic_keys! {
    /// What happens to old segments: `delete`, `compact`, or both; empty keeps all.
    cleanup_policy: CleanupPolicy = "cleanup.policy", "delete", ListOf(&["compact", "delete"]), ["log.cleanup.policy"];
    /// Codec of stored batches; `producer` keeps what the producer chose.
    compression_type: CompressionType = "compression.type", "producer", OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), ["compression.type"];
    /// Effort of gzip when the broker compresses; -1 is its default.
    compression_gzip_level: i32 = "compression.gzip.level", "-1", GzipLevel, ["compression.gzip.level"];
    /// Effort of lz4 when the broker compresses.
    compression_lz4_level: i32 = "compression.lz4.level", "9", Between(1, 17), ["compression.lz4.level"];
    /// Effort of zstd when the broker compresses.
    compression_zstd_level: i32 = "compression.zstd.level", "3", Between(-131072, 22), ["compression.zstd.level"];
    /// How long a compacted topic keeps tombstones, ms.
    delete_retention_ms: i64 = "delete.retention.ms", "86400000", AtLeast(0), ["log.cleaner.delete.retention.ms"];
    /// How long a deleted segment's files stay before they are unlinked, ms.
    file_delete_delay_ms: i64 = "file.delete.delay.ms", "60000", AtLeast(0), ["log.segment.delete.delay.ms"];
    /// Records after which the log is forced to disk; 1 forces every batch before it is acknowledged.
    flush_messages: i64 = "flush.messages", "9223372036854775807", AtLeast(1), ["log.flush.interval.messages"];
    /// Longest time a record waits to be forced to disk, ms.
    flush_ms: i64 = "flush.ms", "9223372036854775807", AtLeast(0), ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];
    /// Replicas whose copying is throttled on the follower: `partition:broker`, or `*` for all.
    follower_replication_throttled_replicas: Vec<String> = "follower.replication.throttled.replicas", "", ThrottledReplicas, [];
    /// Bytes of log between two index entries.
    index_interval_bytes: i32 = "index.interval.bytes", "4096", AtLeast(0), ["log.index.interval.bytes"];
    /// Replicas whose copying is throttled on the leader: `partition:broker`, or `*` for all.
    leader_replication_throttled_replicas: Vec<String> = "leader.replication.throttled.replicas", "", ThrottledReplicas, [];
    /// With tiered storage: bytes that stay on local disk; -2 as `retention.bytes`.
    local_retention_bytes: i64 = "local.retention.bytes", "-2", AtLeast(-2), ["log.local.retention.bytes"];
    /// With tiered storage: how long segments stay on local disk, ms; -2 as `retention.ms`.
    local_retention_ms: i64 = "local.retention.ms", "-2", AtLeast(-2), ["log.local.retention.ms"];
    /// Longest time a record stays uncompacted, ms.
    max_compaction_lag_ms: i64 = "max.compaction.lag.ms", "9223372036854775807", AtLeast(1), ["log.cleaner.max.compaction.lag.ms"];
    /// Largest record batch accepted, bytes.
    max_message_bytes: i32 = "max.message.bytes", "1048588", AtLeast(0), ["message.max.bytes"];
    /// How far a record's time may lie in the future, ms.
    message_timestamp_after_max_ms: i64 = "message.timestamp.after.max.ms", "3600000", AtLeast(0), ["log.message.timestamp.after.max.ms"];
    /// How far a record's time may lie in the past, ms.
    message_timestamp_before_max_ms: i64 = "message.timestamp.before.max.ms", "9223372036854775807", AtLeast(0), ["log.message.timestamp.before.max.ms"];
    /// Whether a record carries the producer's time (`CreateTime`) or the broker's (`LogAppendTime`).
    message_timestamp_type: TimestampType = "message.timestamp.type", "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]), ["log.message.timestamp.type"];
    /// Share of uncompacted log that makes a compaction worth it, 0 to 1.
    min_cleanable_dirty_ratio: f64 = "min.cleanable.dirty.ratio", "0.5", Between(0, 1), ["log.cleaner.min.cleanable.ratio"];
    /// Shortest time a record stays uncompacted, ms.
    min_compaction_lag_ms: i64 = "min.compaction.lag.ms", "0", AtLeast(0), ["log.cleaner.min.compaction.lag.ms"];
    /// In-sync replicas that an acks=all write needs, the leader among them.
    min_insync_replicas: i32 = "min.insync.replicas", "1", AtLeast(1), ["min.insync.replicas"];
    /// Whether a new segment takes its full size on disk at once.
    preallocate: bool = "preallocate", "false", Any, ["log.preallocate"];
    /// With tiered storage: stop copying segments away.
    remote_log_copy_disable: bool = "remote.log.copy.disable", "false", Any, [];
    /// With tiered storage: delete what was copied away when it is turned off.
    remote_log_delete_on_disable: bool = "remote.log.delete.on.disable", "false", Any, [];
    /// Tiered storage for this topic; this broker has none.
    remote_storage_enable: bool = "remote.storage.enable", "false", Any, [];
    /// Most bytes kept of one partition; -1 no limit.
    retention_bytes: i64 = "retention.bytes", "-1", Any, ["log.retention.bytes"];
    /// How long records are kept, ms; -1 for ever.
    retention_ms: i64 = "retention.ms", "604800000", AtLeast(-1), ["log.retention.ms", "log.retention.minutes", "log.retention.hours"];
    /// Size at which the log starts a new segment.
    segment_bytes: i32 = "segment.bytes", "1073741824", AtLeast(1048576), ["log.segment.bytes"];
    /// Largest index of a segment, bytes; a full index starts a new segment.
    segment_index_bytes: i32 = "segment.index.bytes", "10485760", AtLeast(4), ["log.index.size.max.bytes"];
    /// Most that is taken off the age at random so that logs do not roll together, ms.
    segment_jitter_ms: i64 = "segment.jitter.ms", "0", AtLeast(0), ["log.roll.jitter.ms", "log.roll.jitter.hours"];
    /// Age at which the log starts a new segment, ms.
    segment_ms: i64 = "segment.ms", "604800000", AtLeast(1), ["log.roll.ms", "log.roll.hours"];
    /// Whether a replica out of sync may lead when no other is left, losing what it lacks.
    unclean_leader_election_enable: bool = "unclean.leader.election.enable", "false", Any, ["unclean.leader.election.enable"];
    /// Segment size below the usual minimum, for tests; wins over `segment.bytes`.
    internal_segment_bytes: Option<i32> = "internal.segment.bytes", none, Any, [], hidden;
}

/// The topic key of that name.
pub fn topic_key(name: &str) -> Option<&'static TopicKey> {
    TOPIC_KEYS.iter().find(|key| key.name == name)
}

/// What topics without overrides have, by `config` (with its dynamic changes, `Config::with_dynamic`).
pub fn topic_defaults(config: &Config) -> BTreeMap<&'static str, Value> {
    TOPIC_KEYS.iter().filter_map(|key| Some((key.name, default_value(config, key)?))).collect()
}

fn default_value(config: &Config, key: &TopicKey) -> Option<Value> {
    for synonym in key.synonyms {
        match config.values.get(synonym) {
            Some(Value::Number(number)) => {
                let unit = if synonym.ends_with(".hours") {
                    3_600_000
                } else if synonym.ends_with(".minutes") {
                    60_000
                } else {
                    1
                };
                // However retention is given, anything negative keeps for ever.
                let number = if key.name == "retention.ms" { (*number).max(-1) } else { *number };
                return Some(Value::Number(if number < 0 { number } else { number.saturating_mul(unit) }));
            }
            Some(value) => return Some(value.clone()),
            None => {}
        }
    }
    let default = key.default?;
    Some(read(key.name, default, key.kind, Any).expect("the default of a row is a value of its type"))
}

impl TopicConfig {
    /// The effective configuration of a topic with these overrides. Overrides are checked when they are made (`alter`); one that
    /// is unknown or cannot be read all the same (a log written by another version) counts as not given.
    pub fn resolve(defaults: &BTreeMap<&'static str, Value>, overrides: &BTreeMap<String, String>) -> TopicConfig {
        TopicConfig::from_values(&effective(defaults, overrides))
    }

    /// Segment size: `internal.segment.bytes` if given, else `segment.bytes`.
    pub fn segment_size(&self) -> i32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }
}

/// `defaults` with those overrides that can be read.
pub(super) fn effective(defaults: &BTreeMap<&'static str, Value>, overrides: &BTreeMap<String, String>) -> BTreeMap<&'static str, Value> {
    let mut values = defaults.clone();
    for (name, text) in overrides {
        if let Some(key) = topic_key(name)
            && let Ok(value) = read(key.name, text, key.kind, key.rule)
        {
            values.insert(key.name, value);
        }
    }
    values
}
