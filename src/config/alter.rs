//! Whether a topic or a broker may have proposed settings. Pure judgements with Kafka's words: what the metadata keeps is the
//! controller's matter, and which wire error a refusal is, the wire's.

use super::broker::Config;
use super::dynamic::{Settings, may_change, only_by_broker, only_by_listener};
use super::key::Update;
use super::load::{base_of_listener_key, key};
use super::topic::{TopicConfig, topic_defaults, topic_key};
use super::value::{BadValue, Kind, read};

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No topic key of that name.
    #[error("Unknown topic config name: {0}")]
    UnknownTopicKey(String),
    /// No key of groups of that name.
    #[error("Unknown group config name: {0}")]
    UnknownGroupKey(String),
    /// No broker key of that name, where its type is needed.
    #[error("Unknown config name: {0}")]
    UnknownBrokerKey(String),
    /// A value that its key does not allow.
    #[error(transparent)]
    Value(#[from] BadValue),
    /// A topic would have to be compacted later than it has to be compacted.
    #[error("conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms ({max})")]
    CompactionLag {
        /// `min.compaction.lag.ms`.
        min: i64,
        /// `max.compaction.lag.ms`.
        max: i64,
    },
    /// Tiered storage, which this broker has not.
    #[error("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")]
    NoTieredStorage,
    /// Keys that only a restart changes.
    #[error("Cannot update these configs dynamically: [{}]", .0.join(", "))]
    NotDynamic(Vec<String>),
    /// Keys that only a listener can have.
    #[error("These security configs can be dynamically updated only per-listener using the listener prefix: [{}]", .0.join(", "))]
    OnlyByListener(Vec<String>),
    /// Keys that only one broker can have.
    #[error("Cannot update these configs at default cluster level, broker id must be specified: [{}]", .0.join(", "))]
    OnlyByBroker(Vec<String>),
    /// Values that do not go together.
    #[error("{key} {reason}")]
    AtOdds {
        /// The key.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Appending to, or taking from, a key that is no list.
    #[error("Config value {operation} is not allowed for config key: {name}")]
    NotAList {
        /// `append` or `subtract`.
        operation: &'static str,
        /// The key.
        name: String,
    },
}

impl Refused {
    /// Whether Kafka answers INVALID_REQUEST, as it does to whatever a broker finds wrong with values of broker keys
    /// (KAFKA-13609); INVALID_CONFIG otherwise. `of_topic`: the settings were a topic's.
    pub fn is_invalid_request(&self, of_topic: bool) -> bool {
        !of_topic && !matches!(self, Refused::UnknownBrokerKey(_) | Refused::NotAList { .. })
    }
}

/// Whether a topic may have exactly these overrides on brokers with the configuration `config` (with its dynamic settings).
pub fn check_topic(config: &Config, overrides: &Settings) -> Result<(), Refused> {
    for name in overrides.keys() {
        topic_key(name).ok_or_else(|| Refused::UnknownTopicKey(name.clone()))?;
    }
    for (name, text) in overrides {
        let key = topic_key(name).ok_or_else(|| Refused::UnknownTopicKey(name.clone()))?;
        read(key.name, text, key.kind, key.rule)?;
    }
    let topic = TopicConfig::resolve(&topic_defaults(config), overrides);
    let (min, max) = (topic.min_compaction_lag_ms, topic.max_compaction_lag_ms);
    if min > max {
        return Err(Refused::CompactionLag { min, max });
    }
    if topic.remote_storage_enable {
        return Err(Refused::NoTieredStorage);
    }
    Ok(())
}

/// Whether the dynamic settings of one broker, or of all, may become exactly `proposed`. `config` is as the process was started
/// with; `other` is the other layer: that of all brokers where one is changed, that of this broker where all are.
pub fn check_broker(config: &Config, other: &Settings, proposed: &Settings, of_one_broker: bool) -> Result<(), Refused> {
    let those = |wrong: &dyn Fn(&str) -> bool| proposed.keys().filter(|name| wrong(name)).cloned().collect::<Vec<_>>();
    let refuse_if_any =
        |names: Vec<String>, refused: fn(Vec<String>) -> Refused| if names.is_empty() { Ok(()) } else { Err(refused(names)) };
    refuse_if_any(those(&|name| key(name).is_some_and(|key| key.update == Update::ReadOnly)), Refused::NotDynamic)?;
    refuse_if_any(those(&only_by_listener), Refused::OnlyByListener)?;
    for (name, text) in proposed {
        if let Some(key) = key(name).or_else(|| key(base_of_listener_key(name)?)) {
            read(name, text, key.kind, key.rule)?;
        }
    }
    if !of_one_broker {
        refuse_if_any(those(&only_by_broker), Refused::OnlyByBroker)?;
    }
    refuse_if_any(those(&|name| !may_change(name)), Refused::NotDynamic)?;
    let (all_brokers, this_broker) = if of_one_broker { (other, proposed) } else { (proposed, other) };
    let changed = config.with_settings(&super::dynamic::in_force(config, all_brokers, this_broker));
    match changed.conflicts().into_iter().next() {
        Some((key, reason)) => Err(Refused::AtOdds { key, reason }),
        None => Ok(()),
    }
}

/// What an AlterConfigs operation does to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChange {
    /// Entries are added that are not there yet.
    Append,
    /// Entries are taken away.
    Subtract,
}

/// The text of a broker's list key after `change` by `entries` (between commas), where it was `present`, or its default.
pub fn change_broker_list(name: &str, present: Option<&str>, change: ListChange, entries: &str) -> Result<String, Refused> {
    let key = key(name).ok_or_else(|| Refused::UnknownBrokerKey(name.into()))?;
    if key.kind != Kind::List {
        let operation = match change {
            ListChange::Append => "append",
            ListChange::Subtract => "subtract",
        };
        return Err(Refused::NotAList { operation, name: name.into() });
    }
    let present = present.or(key.default).unwrap_or("");
    let mut list: Vec<&str> = present.split(',').filter(|entry| !entry.is_empty()).collect();
    for entry in entries.split(',') {
        match change {
            ListChange::Append if !list.contains(&entry) => list.push(entry),
            ListChange::Append => {}
            ListChange::Subtract => list.retain(|known| *known != entry),
        }
    }
    Ok(list.join(","))
}

/// The default of a topic's list key; `None` if the key is no list. What the controller needs to append to one that is not set.
pub fn topic_list_default(name: &str) -> Option<&'static str> {
    topic_key(name).filter(|key| key.kind == Kind::List).and_then(|key| key.default)
}

/// The default of a broker's list key, empty if it has none; `None` if the key is no list.
pub fn broker_list_default(name: &str) -> Option<&'static str> {
    key(name).filter(|key| key.kind == Kind::List).map(|key| key.default.unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file;
    use std::path::Path;

    /// Where our answer is another, on purpose or because what Kafka looks at is not there.
    const DIFFERENT: &[(&str, &str)] = &[
        // Kafka divides by the number of threads.
        ("log.cleaner.threads", "0"),
        // Thread pools that this broker has not: their size may change by any amount.
        ("log.cleaner.threads", "50"),
        ("num.io.threads", "50"),
        ("num.io.threads", "1"),
        // Sockets stay bound: always "Cannot update these configs dynamically".
        ("listeners", "PLAINTEXT://127.0.0.1:1"),
        // The controller's rule, not the config's: eligible leader replicas.
        ("min.insync.replicas", "2"),
    ];

    /// Every change that Kafka 4.3.1 was asked for, on the same configuration, with its answer.
    #[test]
    fn refusals_are_those_of_kafka() {
        let given = file::from_properties(include_bytes!("testdata/kafka-4.3.1-server.properties"), Path::new("f")).unwrap();
        let config = Config::load(given).unwrap();
        let mut compared = 0;
        for line in include_str!("testdata/kafka-4.3.1-alter.tsv").lines() {
            let [resource, operation, name, text, error, message] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if DIFFERENT.contains(&(name, text)) {
                continue;
            }
            let of_topic = resource == "TOPIC";
            let change = match operation {
                "APPEND" => Some(ListChange::Append),
                "SUBTRACT" => Some(ListChange::Subtract),
                _ => None,
            };
            // Topic lists are changed by the controller.
            if of_topic && change.is_some() {
                assert_eq!(topic_list_default(name).is_some(), error == "ok", "{line}");
                continue;
            }
            let mut proposed = Settings::new();
            if name == "min.compaction.lag.ms" && error != "ok" {
                proposed.insert("max.compaction.lag.ms".into(), "5".into());
            }
            let value = change.map_or(Ok(text.to_owned()), |change| change_broker_list(name, None, change, text));
            let answer = value.and_then(|value| {
                if operation != "DELETE" {
                    proposed.insert(name.into(), value);
                }
                match of_topic {
                    true => check_topic(&config, &proposed),
                    false => check_broker(&config, &Settings::new(), &proposed, resource == "BROKER"),
                }
            });
            compared += 1;
            match answer {
                Ok(()) => assert_eq!(error, "ok", "{line}"),
                Err(refused) => {
                    let kind =
                        if refused.is_invalid_request(of_topic) { "InvalidRequestException" } else { "InvalidConfigurationException" };
                    assert_eq!(error, kind, "{line} but {refused}");
                    // Of values at odds we speak in our own words.
                    if !message.starts_with("requirement failed") {
                        assert_eq!(refused.to_string(), message, "{line}");
                    }
                }
            }
        }
        assert!(compared > 70, "{compared}");
    }

    #[test]
    fn bound_addresses_do_not_change() {
        let proposed = Settings::from([("listeners".into(), "PLAINTEXT://h:1".into())]);
        let refused = check_broker(&Config::defaults(), &Settings::new(), &proposed, true).unwrap_err();
        assert_eq!(refused.to_string(), "Cannot update these configs dynamically: [listeners]");
    }

    #[test]
    fn lists_grow_and_shrink() {
        for (present, change, entries, expected) in [
            (None, ListChange::Append, "compact", "delete,compact"),
            (Some("compact"), ListChange::Append, "compact,delete", "compact,delete"),
            (Some("compact,delete"), ListChange::Subtract, "delete,x", "compact"),
            (Some("delete"), ListChange::Subtract, "delete", ""),
        ] {
            assert_eq!(change_broker_list("log.cleanup.policy", present, change, entries).as_deref(), Ok(expected));
        }
        assert_eq!((broker_list_default("log.dirs"), broker_list_default("num.partitions")), (Some(""), None));
    }

    #[test]
    fn defaults_of_the_broker_count_in_a_topics_conflicts() {
        let given = file::from_properties(b"log.cleaner.max.compaction.lag.ms=5\n", Path::new("f")).unwrap();
        let overrides = Settings::from([("min.compaction.lag.ms".into(), "10".into())]);
        assert_eq!(check_topic(&Config::load(given).unwrap(), &overrides), Err(Refused::CompactionLag { min: 10, max: 5 }));
        assert_eq!(check_topic(&Config::defaults(), &overrides), Ok(()));
    }
}
