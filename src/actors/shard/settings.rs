//! The effective configuration of topics, resolved when it changes and shared by their partitions.

use crate::actors::partition::messages::PartitionConfig;
use crate::config::{CompressionType, Config, RecordValidation, TimestampType, TopicConfig, Value, topic_defaults};
use crate::core::controller::{Delta, Image, ResourceType};
use crate::core::group;
use crate::core::group::request::ConsumerSettings;
use crate::core::types::{BrokerId, TopicId};
use crate::log::LogConfig;
use crate::log::codec::Codec;
use crate::log::validate::{Rules, TopicCompression};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Shortest interval at which `flush.ms` is looked at.
const FLUSH_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The interval at which nothing with `flush.ms` is looked for anew.
const FLUSH_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Resolves and remembers.
pub struct Settings {
    node: BrokerId,
    fixed: Arc<Config>,
    /// The static configuration with the dynamic broker settings over it.
    current: Config,
    defaults: BTreeMap<&'static str, Value>,
    /// For topics without settings of their own.
    plain: Arc<PartitionConfig>,
    special: FxHashMap<TopicId, Arc<PartitionConfig>>,
}

impl Settings {
    /// Nothing resolved yet but the static configuration.
    pub fn new(node: BrokerId, config: Arc<Config>) -> Settings {
        let current = (*config).clone();
        let defaults = topic_defaults(&current);
        let plain = Arc::new(resolve(&current, &defaults, &BTreeMap::new()));
        Settings { node, fixed: config, current, defaults, plain, special: FxHashMap::default() }
    }

    /// The configuration of a topic.
    pub fn of(&mut self, image: &Image, id: TopicId, name: &str) -> Arc<PartitionConfig> {
        let Some(own) = image.configs(ResourceType::Topic, name).filter(|own| !own.is_empty()) else { return self.plain.clone() };
        let (current, defaults) = (&self.current, &self.defaults);
        let entry = self.special.entry(id);
        entry.or_insert_with(|| Arc::new(resolve(current, defaults, &plain_map(own)))).clone()
    }

    /// A topic is gone.
    pub fn forget(&mut self, id: TopicId) {
        self.special.remove(&id);
    }

    /// Forgets what a delta changed. `None`: no topic is touched; `Some(None)`: all are; else these.
    pub fn changed(&mut self, image: &Image, delta: &Delta) -> Option<Option<FxHashSet<TopicId>>> {
        let mut topics = FxHashSet::default();
        let mut broker = false;
        for resource in &delta.configs {
            match resource.kind {
                ResourceType::Topic => topics.extend(image.topic_by_name(&resource.name).map(|topic| topic.id)),
                ResourceType::Broker => broker = true,
                ResourceType::BrokerLogger | ResourceType::ClientMetrics | ResourceType::Group => {}
            }
        }
        if broker {
            self.current = current(&self.fixed, image, self.node);
            self.defaults = topic_defaults(&self.current);
            self.plain = Arc::new(resolve(&self.current, &self.defaults, &BTreeMap::new()));
            self.special.clear();
            return Some(None);
        }
        topics.iter().for_each(|id| {
            self.special.remove(id);
        });
        (!topics.is_empty()).then_some(Some(topics))
    }

    /// `log.retention.check.interval.ms`.
    pub fn retention_check_interval(&self) -> Duration {
        Duration::from_millis(self.current.log_retention_check_interval_ms as u64)
    }

    /// How groups are run, with that metadata.
    pub fn groups_in(&self, image: &Image) -> group::Settings {
        groups(&current(&self.fixed, image, self.node))
    }

    /// How groups are run.
    pub fn groups(&self) -> group::Settings {
        groups(&self.current)
    }

    /// `offsets.load.buffer.size`.
    pub fn load_bytes(&self) -> u32 {
        self.current.offsets_load_buffer_size as u32
    }

    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub fn checkpoint_interval(&self) -> Duration {
        Duration::from_millis(self.current.replica_high_watermark_checkpoint_interval_ms.max(1) as u64)
    }

    /// `log.initial.task.delay.ms`.
    pub fn initial_task_delay(&self) -> Duration {
        Duration::from_millis(self.current.log_initial_task_delay_ms as u64)
    }

    /// How often to look for logs whose `flush.ms` has passed: as often as the shortest of them.
    pub fn flush_interval(&self) -> Duration {
        let shortest = self.special.values().chain([&self.plain]).map(|config| config.flush_ms).min().unwrap_or(i64::MAX);
        Duration::from_millis(shortest.max(0) as u64).clamp(FLUSH_INTERVAL_MIN, FLUSH_INTERVAL_MAX)
    }
}

fn groups(config: &Config) -> group::Settings {
    group::Settings {
        min_session_timeout: config.group_min_session_timeout_ms,
        max_session_timeout: config.group_max_session_timeout_ms,
        initial_rebalance_delay: config.group_initial_rebalance_delay_ms,
        max_size: config.group_max_size as usize,
        offset_metadata_max: config.offset_metadata_max_bytes as usize,
        offsets_retention: i64::from(config.offsets_retention_minutes) * 60_000,
        retention_check_interval: config.offsets_retention_check_interval_ms,
        write_timeout: i64::from(config.offsets_commit_timeout_ms),
        consumer: ConsumerSettings {
            session_timeout: config.group_consumer_session_timeout_ms,
            heartbeat_interval: config.group_consumer_heartbeat_interval_ms,
            max_size: config.group_consumer_max_size as usize,
            assignors: config.assignors(),
            assignment_interval: config.group_consumer_assignment_interval_ms,
            upgrade: config.migration_policy().upgrade,
            downgrade: config.migration_policy().downgrade,
            ..ConsumerSettings::default()
        },
    }
}

/// The broker's configuration with the dynamic settings of the image over it.
pub fn current(fixed: &Config, image: &Image, node: BrokerId) -> Config {
    let of = |name: &str| image.configs(ResourceType::Broker, name).map(plain_map).unwrap_or_default();
    fixed.with_dynamic(&of(""), &of(&node.0.to_string()))
}

/// A resource's settings in the config layer's terms.
pub fn plain_map(configs: &crate::core::controller::Configs) -> BTreeMap<String, String> {
    configs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn resolve(config: &Config, defaults: &BTreeMap<&'static str, Value>, own: &BTreeMap<String, String>) -> PartitionConfig {
    let topic = TopicConfig::resolve(defaults, own);
    PartitionConfig {
        rules: Rules {
            max_message_bytes: topic.max_message_bytes as usize,
            compacted: topic.cleanup_policy.compact,
            compression: compression(&topic),
            log_append_time: topic.message_timestamp_type == TimestampType::LogAppendTime,
            timestamp_before_max_ms: topic.message_timestamp_before_max_ms,
            timestamp_after_max_ms: topic.message_timestamp_after_max_ms,
            walk: config.understudy_record_validation == RecordValidation::Full,
        },
        log: Arc::new(log_config(&topic)),
        min_insync_replicas: topic.min_insync_replicas as usize,
        replica_lag_max_ms: config.replica_lag_time_max_ms,
        flush_messages: topic.flush_messages,
        flush_ms: topic.flush_ms,
        producer_id_expiration_ms: i64::from(config.producer_id_expiration_ms),
        deletes: topic.cleanup_policy.delete,
        compacts: topic.cleanup_policy.compact,
    }
}

fn compression(topic: &TopicConfig) -> TopicCompression {
    match topic.compression_type {
        CompressionType::Producer => TopicCompression::Producer,
        CompressionType::Uncompressed => TopicCompression::Codec(Codec::None),
        CompressionType::Gzip => TopicCompression::Codec(Codec::Gzip { level: topic.compression_gzip_level }),
        CompressionType::Snappy => TopicCompression::Codec(Codec::Snappy),
        CompressionType::Lz4 => TopicCompression::Codec(Codec::Lz4),
        CompressionType::Zstd => TopicCompression::Codec(Codec::Zstd { level: topic.compression_zstd_level }),
    }
}

fn log_config(topic: &TopicConfig) -> LogConfig {
    LogConfig {
        segment_bytes: topic.segment_size() as u64,
        segment_ms: topic.segment_ms,
        segment_jitter_ms: topic.segment_jitter_ms,
        segment_index_bytes: topic.segment_index_bytes as u32,
        index_interval_bytes: topic.index_interval_bytes as u32,
        retention_ms: topic.retention_ms,
        retention_bytes: topic.retention_bytes,
        delete: topic.cleanup_policy.delete,
        compact: topic.cleanup_policy.compact,
        min_cleanable_dirty_ratio: topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms: topic.min_compaction_lag_ms,
        max_compaction_lag_ms: topic.max_compaction_lag_ms,
        delete_retention_ms: topic.delete_retention_ms,
        file_delete_delay_ms: topic.file_delete_delay_ms,
        preallocate: topic.preallocate,
    }
}
