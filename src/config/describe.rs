//! What DescribeConfigs says of a topic, of this broker, and of all brokers: every key with its value, where that comes from, and
//! the settings it hides (Kafka's `ConfigHelper`, its quirks included: clients compare).

use super::broker::Config;
use super::dynamic::{Settings, in_force, synonyms};
use super::file::Setting;
use super::group_keys::{GROUP_KEYS, group_key};
use super::key::Update;
use super::load::{base_of_listener_key, file_key, key, keys};
use super::topic::{TOPIC_KEYS, effective, topic_defaults, topic_key};
use super::value::{Kind, Value};
use std::collections::BTreeMap;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An override of the topic.
    Topic,
    /// A setting of the group.
    Group,
    /// Dynamic configuration of one broker.
    DynamicBroker,
    /// Dynamic configuration of all brokers.
    DynamicDefaultBroker,
    /// What the broker was started with.
    StaticBroker,
    /// Nobody set it.
    Default,
}

impl Source {
    /// Number in a DescribeConfigs answer.
    pub fn id(self) -> i8 {
        match self {
            Source::Topic => 1,
            Source::Group => 8,
            Source::DynamicBroker => 2,
            Source::DynamicDefaultBroker => 3,
            Source::StaticBroker => 4,
            Source::Default => 5,
        }
    }

    /// Kafka's tools' name of it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Topic => "DYNAMIC_TOPIC_CONFIG",
            Source::Group => "DYNAMIC_GROUP_CONFIG",
            Source::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
            Source::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER_CONFIG",
            Source::StaticBroker => "STATIC_BROKER_CONFIG",
            Source::Default => "DEFAULT_CONFIG",
        }
    }
}

/// A setting that gives a key its value, or would if an earlier one were not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    /// The key it was set by.
    pub name: String,
    /// Its text; none if it is a secret.
    pub value: Option<String>,
    /// Where it was set.
    pub source: Source,
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// Its value; none if it has none, or if it is a secret.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: Source,
    /// Whether it cannot be changed at run time.
    pub read_only: bool,
    /// Whether it is a secret. A key of unknown type counts as one.
    pub sensitive: bool,
    /// Type of the value, if the key is known.
    pub config_type: Option<Kind>,
    /// What the key is for, if it is known.
    pub documentation: Option<&'static str>,
    /// The settings behind the value, the one in force first.
    pub synonyms: Vec<Synonym>,
}

/// Describes by one state of the configuration; made once for all resources of a request.
#[derive(Debug)]
pub struct Describer<'a> {
    config: &'a Config,
    all_brokers: &'a Settings,
    this_broker: &'a Settings,
    in_force: Settings,
    current: Config,
    topic_defaults: BTreeMap<&'static str, Value>,
}

impl<'a> Describer<'a> {
    /// `config` as the process was started with, and the dynamic settings of all brokers and of this one.
    pub fn new(config: &'a Config, all_brokers: &'a Settings, this_broker: &'a Settings) -> Describer<'a> {
        let current = config.with_dynamic(all_brokers, this_broker);
        let topic_defaults = topic_defaults(&current);
        Describer { config, all_brokers, this_broker, in_force: in_force(config, all_brokers, this_broker), current, topic_defaults }
    }

    /// A topic with these overrides: all topic keys, by name.
    pub fn topic(&self, overrides: &Settings) -> Vec<ConfigEntry> {
        let values = effective(&self.topic_defaults, overrides);
        let shown = TOPIC_KEYS.iter().filter(|key| !key.hidden).map(|key| key.name);
        sorted(shown.chain(overrides.keys().map(String::as_str)), |name| {
            let key = topic_key(name);
            let value = values.get(name).map(Value::to_string).filter(|_| key.is_some());
            let mut synonyms = match key.and_then(|key| key.synonyms.first()) {
                Some(broker_name) => self.settings_of(broker_name, false),
                None => Vec::new(),
            };
            if overrides.contains_key(name) {
                synonyms.insert(0, Synonym { name: name.into(), value: value.clone(), source: Source::Topic });
            }
            entry(name, value, key.map(|key| (key.kind, key.doc)), synonyms)
        })
    }

    /// A group with these settings: all keys of groups that are known here, by name.
    pub fn group(&self, own: &Settings) -> Vec<ConfigEntry> {
        sorted(GROUP_KEYS.iter().map(|key| key.name).chain(own.keys().map(String::as_str)), |name| {
            let key = group_key(name);
            let of_broker = key.and_then(|key| self.current.values.get(key.broker_name)).map(Value::to_string);
            let value = own.get(name).cloned().or(of_broker).filter(|_| key.is_some());
            let mut synonyms = key.map(|key| self.settings_of(key.broker_name, false)).unwrap_or_default();
            if own.contains_key(name) {
                synonyms.insert(0, Synonym { name: name.into(), value: value.clone(), source: Source::Group });
            }
            entry(name, value, key.map(|key| (Kind::Int, key.doc)), synonyms)
        })
    }

    /// This broker: all broker keys, and whatever else was given, by name.
    pub fn broker(&self) -> Vec<ConfigEntry> {
        let shown = keys().filter(|key| !key.hidden).map(|key| key.name);
        sorted(shown.chain(self.in_force.keys().map(String::as_str)), |name| {
            let value = match self.current.values.get(name) {
                Some(value) => Some(value.to_string()),
                None => self.in_force.get(name).cloned(),
            };
            self.broker_entry(name, value, true)
        })
    }

    /// What is set for all brokers, by name.
    pub fn all_brokers(&self) -> Vec<ConfigEntry> {
        self.all_brokers.iter().map(|(name, text)| self.broker_entry(name, Some(text.clone()), false)).collect()
    }

    fn broker_entry(&self, name: &str, value: Option<String>, of_one_broker: bool) -> ConfigEntry {
        let known = key(name);
        let config_type = known.or_else(|| key(base_of_listener_key(name)?)).map(|key| key.kind);
        let sensitive = matches!(config_type, None | Some(Kind::Password));
        let mut synonyms = self.settings_of(name, sensitive);
        if !of_one_broker {
            synonyms.retain(|synonym| synonym.source == Source::DynamicDefaultBroker);
        }
        ConfigEntry {
            name: name.into(),
            value: value.filter(|_| !sensitive),
            source: synonyms.first().map_or(Source::Default, |synonym| synonym.source),
            read_only: known.is_none_or(|key| key.update == Update::ReadOnly),
            sensitive,
            config_type,
            documentation: file_key(name).map(|key| key.doc),
            synonyms,
        }
    }

    /// The settings behind a broker key, layer by layer. As in Kafka those before the first one by the key's own name are left
    /// out: a retention given in hours only appears as a default.
    fn settings_of(&self, name: &str, sensitive: bool) -> Vec<Synonym> {
        let names = synonyms(name);
        let given = |name: &str| self.config.given.get(name).map(|Setting { value, .. }| value.as_str());
        let mut found = Vec::new();
        let mut layer = |source: Source, text: &dyn Fn(&str) -> Option<String>| {
            let synonym = |name: &&str| Some(Synonym { name: (*name).into(), value: text(name), source }).filter(|s| s.value.is_some());
            found.extend(names.iter().filter_map(synonym));
        };
        layer(Source::DynamicBroker, &|name| self.this_broker.get(name).cloned());
        layer(Source::DynamicDefaultBroker, &|name| self.all_brokers.get(name).cloned());
        layer(Source::StaticBroker, &|name| given(name).map(str::to_owned));
        layer(Source::Default, &|name| file_key(name).and_then(|key| key.default).map(str::to_owned));
        let mut found: Vec<Synonym> = found.into_iter().skip_while(|synonym| synonym.name != name).collect();
        if sensitive {
            found.iter_mut().for_each(|synonym| synonym.value = None);
        }
        found
    }
}

/// A setting that can be changed at run time, of a key of that type and use, if it is known.
fn entry(name: &str, value: Option<String>, known: Option<(Kind, &'static str)>, synonyms: Vec<Synonym>) -> ConfigEntry {
    ConfigEntry {
        name: name.into(),
        value,
        source: synonyms.first().map_or(Source::Default, |synonym| synonym.source),
        read_only: false,
        sensitive: known.is_none(),
        config_type: known.map(|(kind, _)| kind),
        documentation: known.map(|(_, doc)| doc),
        synonyms,
    }
}

fn sorted<'n>(names: impl Iterator<Item = &'n str>, entry: impl FnMut(&str) -> ConfigEntry) -> Vec<ConfigEntry> {
    names.collect::<std::collections::BTreeSet<_>>().into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file;
    use std::path::Path;

    /// Our defaults, where Kafka has none or another.
    const OWN: &[&str] = &["node.id", "process.roles", "listeners", "log.dir", "controller.listener.names"];

    /// A line as the files in `testdata` have it: what Kafka 4.3.1 answered.
    fn line(entry: &ConfigEntry) -> String {
        let own = OWN.contains(&entry.name.as_str());
        let synonyms: Vec<String> = entry
            .synonyms
            .iter()
            .filter(|synonym| !(own && synonym.source == Source::Default))
            .map(|s| format!("{}:{}={}", s.source.name(), s.name, s.value.as_deref().unwrap_or("null")))
            .collect();
        [
            entry.name.as_str(),
            entry.value.as_deref().unwrap_or("null"),
            entry.source.name(),
            entry.config_type.map_or("UNKNOWN", Kind::name),
            if entry.read_only { "read-only" } else { "-" },
            if entry.sensitive { "sensitive" } else { "-" },
            if entry.documentation.is_some() { "doc" } else { "nodoc" },
            &synonyms.join(" | "),
        ]
        .join("\t")
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    fn compare(answer: Vec<ConfigEntry>, kafka: &str) {
        let mine = answer.iter().filter(|entry| key(&entry.name).is_none_or(|key| !key.is_ours())).map(line);
        let theirs = kafka.lines().map(|line| match line.split('\t').next() {
            Some(name) if OWN.contains(&name) => {
                let (entry, synonyms) = line
                    .replace("/tmp/kafka-logs", "understudy-data")
                    .rsplit_once('\t')
                    .map(|(a, b)| (a.to_owned(), b.to_owned()))
                    .unwrap();
                let kept: Vec<&str> = synonyms.split(" | ").filter(|synonym| !synonym.starts_with("DEFAULT_CONFIG")).collect();
                format!("{entry}\t{}", kept.join(" | "))
            }
            _ => line.to_owned(),
        });
        let (mine, theirs): (Vec<_>, Vec<_>) = (mine.collect(), theirs.collect());
        for (mine, theirs) in mine.iter().zip(&theirs) {
            assert_eq!(mine, theirs);
        }
        assert_eq!(mine.len(), theirs.len());
    }

    #[test]
    fn answers_are_those_of_kafka() {
        let given = file::from_properties(include_bytes!("testdata/kafka-4.3.1-server.properties"), Path::new("f")).unwrap();
        let config = Config::load(given).unwrap();
        let none = Settings::new();
        // Kafka's metadata begins with this setting: it was formatted with eligible leader replicas on.
        let formatted = settings(&[("min.insync.replicas", "1")]);
        let at_start = Describer::new(&config, &formatted, &none);
        compare(at_start.broker(), include_str!("testdata/kafka-4.3.1-broker-static.tsv"));
        compare(at_start.topic(&none), include_str!("testdata/kafka-4.3.1-topic-static.tsv"));

        let all = settings(&[
            ("min.insync.replicas", "1"),
            ("log.retention.ms", "500000"),
            ("log.segment.bytes", "2000000"),
            ("message.max.bytes", "3000000"),
            ("num.io.threads", "4"),
            ("leader.replication.throttled.rate", "77"),
            ("some.own.key", "v"),
        ]);
        let one = settings(&[
            ("log.segment.bytes", "4000000"),
            ("log.cleaner.threads", "2"),
            ("compression.type", "lz4"),
            ("log.cleanup.policy", "compact"),
            ("listener.name.plaintext.ssl.keystore.location", ""),
            ("follower.replication.throttled.rate", "9"),
        ]);
        let overrides = settings(&[
            ("retention.ms", "1000"),
            ("cleanup.policy", "compact, delete"),
            ("max.message.bytes", " 2000 "),
            ("min.insync.replicas", "1"),
            ("segment.jitter.ms", "3"),
        ]);
        let changed = Describer::new(&config, &all, &one);
        compare(changed.broker(), include_str!("testdata/kafka-4.3.1-broker-dynamic.tsv"));
        compare(changed.all_brokers(), include_str!("testdata/kafka-4.3.1-broker-defaults.tsv"));
        compare(changed.topic(&none), include_str!("testdata/kafka-4.3.1-topic-dynamic.tsv"));
        compare(changed.topic(&overrides), include_str!("testdata/kafka-4.3.1-topic-set.tsv"));
    }

    #[test]
    fn secrets_and_strangers_show_no_value() {
        let given = file::from_properties(b"ssl.key.password=secret\nwho.knows=secret\n", Path::new("f")).unwrap();
        let config = Config::load(given).unwrap();
        let none = Settings::new();
        let describer = Describer::new(&config, &none, &none);
        for name in ["ssl.key.password", "who.knows"] {
            let entry = describer.broker().into_iter().find(|entry| entry.name == name).unwrap();
            assert!(entry.sensitive && entry.value.is_none() && entry.source == Source::StaticBroker, "{entry:?}");
        }
        let odd = settings(&[("not.a.topic.key", "secret"), ("internal.segment.bytes", "5")]);
        let topic = describer.topic(&odd);
        assert!(!topic.iter().any(|entry| format!("{entry:?}").contains("secret")));
        assert!(topic.iter().any(|entry| entry.name == "internal.segment.bytes" && entry.value.as_deref() == Some("5")));
    }
}
