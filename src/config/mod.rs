//! Configuration: Kafka's keys with Kafka's defaults, a few of our own, where they come from, and what they come to for this
//! process and for a topic. One table of keys makes the typed structs, the checks, the documentation and DescribeConfigs.
//!
//! Order, the later wins: defaults, properties file, `KAFKA_*` environment, `--override`, dynamic configuration of all brokers, of
//! one broker, of a topic. Only `file::gather` touches the file system; the rest is pure.

pub mod alter;
mod broker;
mod describe;
mod dynamic;
mod endpoints;
pub mod file;
mod group_keys;
mod groups;
pub mod key;
mod known;
mod load;
mod rules;
mod standing;
#[cfg(test)]
mod tables;
mod topic;
mod value;

pub use broker::Config;
pub use describe::{ConfigEntry, Describer, Source, Synonym};
pub use dynamic::Settings;
pub use endpoints::{Endpoint, Endpoints, SecurityProtocol, Voter};
pub use file::{Given, Origin, Setting, SourceError};
pub use key::{CleanupPolicy, CompressionType, Key, LogFormat, RecordValidation, Status, TimestampType, TopicKey, Update};
pub use load::{ConfigError, ConfigErrors, key, keys};
pub use rules::Rules;
pub use standing::{Standing, not_acted_on, standing};
pub use topic::{TOPIC_KEYS, TopicConfig, topic_defaults, topic_key};
pub use value::{BadValue, Kind, Rule, Value};
