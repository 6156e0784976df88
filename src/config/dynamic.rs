//! Dynamic configuration of brokers laid over what a process was started with. Later layers win: all brokers, then this one.
//! Names are Kafka's; which of them may change, and what is done with others found in the metadata, are its rules (KIP-226).

use super::broker::Config;
use super::key::Update;
use super::load::{base_of_listener_key, default, key, keys};
use super::value::read;
use std::collections::BTreeMap;

/// Settings as the metadata keeps them: name to text.
pub type Settings = BTreeMap<String, String>;

/// Keys that other keys can stand for, the finest unit first: of several given in one layer the first counts.
const SYNONYMS: &[&[&str]] = &[
    &["log.roll.ms", "log.roll.hours"],
    &["log.roll.jitter.ms", "log.roll.jitter.hours"],
    &["log.retention.ms", "log.retention.minutes", "log.retention.hours"],
];

/// Security keys: dynamic, but only for a listener (`listener.name.<listener>.`).
const ONLY_BY_LISTENER: &[&str] = &[
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
];

/// The keys that can stand for the broker key `name`, itself among them, in Kafka's order.
pub(super) fn synonyms(name: &str) -> Vec<&str> {
    // A timed flush falls back to the scheduler's interval; not the other way round.
    if name == "log.flush.interval.ms" {
        return vec![name, "log.flush.scheduler.interval.ms"];
    }
    match SYNONYMS.iter().find(|group| group.contains(&name)) {
        Some(group) => group.to_vec(),
        None => std::iter::once(name).chain(base_of_listener_key(name)).collect(),
    }
}

/// Whether the key may be changed at run time. Bound addresses may not here, though Kafka's may.
pub(super) fn may_change(name: &str) -> bool {
    const BOUND_AT_START: &[&str] = &["listeners", "listener.security.protocol.map"];
    key(name).is_none_or(|key| key.update != Update::ReadOnly) && !BOUND_AT_START.contains(&name)
}

/// Whether the key may only be set for a listener.
pub(super) fn only_by_listener(name: &str) -> bool {
    ONLY_BY_LISTENER.contains(&name)
}

/// Whether the key may be set for one broker but not for all.
pub(super) fn only_by_broker(name: &str) -> bool {
    const ALSO_FOR_ALL: &[&str] = &["max.connections", "max.connection.creation.rate", "num.network.threads"];
    match base_of_listener_key(name) {
        Some(base) => !ALSO_FOR_ALL.contains(&base),
        None => key(name).is_some_and(|key| key.update == Update::PerBroker),
    }
}

/// What counts of a layer found in the metadata: neither what may not change there nor what cannot be read. Such settings
/// can be there because another version of Kafka, or of us, put them there.
fn usable(layer: &Settings, of_one_broker: bool) -> impl Iterator<Item = (&str, &str)> {
    layer.iter().map(|(name, text)| (name.as_str(), text.as_str())).filter(move |(name, text)| {
        let readable = match key(name).or_else(|| key(base_of_listener_key(name)?)) {
            Some(key) => read(key.name, text, key.kind, key.rule).is_ok(),
            None => true,
        };
        may_change(name) && !only_by_listener(name) && (of_one_broker || !only_by_broker(name)) && readable
    })
}

/// The settings in force: those given at start, under those of all brokers, under those of this one. A setting of a later layer
/// puts out its synonyms in the earlier ones, so that a dynamic `log.retention.ms` wins over a given `log.retention.hours`.
pub(super) fn in_force(config: &Config, all_brokers: &Settings, this_broker: &Settings) -> Settings {
    let mut settings: Settings = config.given.iter().map(|(name, setting)| (name.clone(), setting.value.clone())).collect();
    for (name, text) in usable(all_brokers, false).chain(usable(this_broker, true)) {
        if base_of_listener_key(name).is_none() {
            for synonym in synonyms(name) {
                settings.remove(synonym);
            }
        }
        settings.insert(name.into(), text.into());
    }
    settings
}

impl Config {
    /// This configuration with dynamic settings over it. `given` and `endpoints` stay what they were at start. Settings that are
    /// at odds with each other count not at all, as in Kafka.
    pub fn with_dynamic(&self, all_brokers: &Settings, this_broker: &Settings) -> Config {
        let changed = self.with_settings(&in_force(self, all_brokers, this_broker));
        if changed.conflicts().is_empty() { changed } else { self.clone() }
    }

    /// The typed fields from `settings`, each of which can be read, and defaults.
    pub(super) fn with_settings(&self, settings: &Settings) -> Config {
        let value = |key: &'static super::Key| {
            let given = settings.get(key.name).and_then(|text| read(key.name, text, key.kind, key.rule).ok());
            Some((key.name, given.or_else(|| default(key))?))
        };
        Config::from_values(keys().filter_map(value).collect(), self.endpoints.clone(), self.given.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{TopicConfig, file, topic_defaults};
    use std::path::Path;

    fn settings(text: &str) -> Settings {
        text.split_whitespace().map(|pair| pair.split_once('=').unwrap()).map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn layers_win_in_order_and_put_out_synonyms() {
        for (given, all, one, retention) in [
            ("log.retention.ms=1000", "", "", 1000),
            ("log.retention.hours=1", "log.retention.ms=2000", "", 2000),
            ("log.retention.ms=1000", "log.retention.ms=2000", "log.retention.ms=3000", 3000),
            ("log.retention.ms=1000", "log.retention.ms=soon", "", 1000),
            ("log.retention.ms=1000", "log.retention.ms=0", "", 1000),
            ("log.retention.ms=1000", "log.retention.hours=1", "", 1000),
        ] {
            let given = file::from_properties(given.as_bytes(), Path::new("f")).unwrap();
            let config = Config::load(given).unwrap().with_dynamic(&settings(all), &settings(one));
            let topic = TopicConfig::resolve(&topic_defaults(&config), &Settings::new());
            assert_eq!(topic.retention_ms, retention, "{all} {one}");
        }
    }

    #[test]
    fn what_may_not_change_does_not() {
        let config = Config::defaults();
        let layer = settings("num.partitions=9 listeners=PLAINTEXT://h:1 node.id=7 max.connections=5 own.key=1 ssl.key.password=x");
        let changed = config.with_dynamic(&layer, &Settings::new());
        assert_eq!((changed.num_partitions, changed.node_id, changed.max_connections), (1, 1, 5));
        assert_eq!((&changed.endpoints, &changed.listeners), (&config.endpoints, &config.listeners));
    }
}
