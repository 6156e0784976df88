//! The tables against Apache Kafka's own (read out of 4.3.1's `ConfigDef`s into `testdata`): nothing missing, nothing twice, the
//! same types, defaults, ranges and modes.

use super::{TOPIC_KEYS, key, keys};
use std::collections::BTreeSet;

/// Keys whose default is ours: a node must start with nothing given, in the directory it is started in, for this machine only.
const OWN_DEFAULTS: &[&str] = &["node.id", "process.roles", "listeners", "log.dir", "controller.listener.names"];

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().map(|line| line.split('\t').collect())
}

#[test]
fn every_broker_key_of_kafka_is_there_once_and_as_kafka_has_it() {
    let mut seen = BTreeSet::new();
    for key in keys() {
        assert!(seen.insert(key.name), "{} is in the tables twice", key.name);
    }
    for row in rows(include_str!("testdata/kafka-4.3.1-broker-keys.tsv")) {
        let [name, kind, default, rule, internal, update] = row[..] else { panic!("{row:?}") };
        let key = key(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(seen.remove(name), "{name} is only a dynamic key");
        assert_eq!((key.kind.name(), key.update.name(), key.hidden), (kind, update, internal == "internal"), "{name}");
        assert_eq!(key.rule.to_string(), rule, "{name}");
        if !OWN_DEFAULTS.contains(&name) {
            assert_eq!(key.default, (!matches!(default, "<null>" | "<none>")).then_some(default), "{name}");
        }
        assert!(!key.is_ours(), "{name}");
    }
    let ours: Vec<_> = seen.iter().map(|name| key(name).unwrap()).collect();
    assert!(!ours.is_empty() && ours.iter().all(|key| key.is_ours()), "{seen:?}");
}

#[test]
fn every_topic_key_of_kafka_is_there_once_and_as_kafka_has_it() {
    let kafka: Vec<_> = rows(include_str!("testdata/kafka-4.3.1-topic-keys.tsv")).collect();
    assert_eq!(kafka.len(), TOPIC_KEYS.len());
    for row in kafka {
        let [name, kind, default, rule, internal] = row[..] else { panic!("{row:?}") };
        let key = super::topic_key(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!((key.kind.name(), key.hidden, key.rule.to_string().as_str()), (kind, internal == "internal", rule), "{name}");
        assert_eq!(key.default, (default != "<null>").then_some(default), "{name}");
        for synonym in key.synonyms {
            let broker = super::key(synonym).unwrap_or_else(|| panic!("{synonym} is no broker key"));
            assert_eq!(broker.kind.name() == "LIST", key.kind.name() == "LIST", "{synonym}");
        }
    }
}

#[test]
fn every_key_says_what_it_is_for() {
    let docs = keys().map(|key| (key.name, key.doc)).chain(TOPIC_KEYS.iter().map(|key| (key.name, key.doc)));
    for (name, doc) in docs {
        assert!(doc.len() > 15 && doc.ends_with('.') && doc.trim() == doc, "{name}: {doc:?}");
    }
}
