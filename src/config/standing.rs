//! What is known of keys that were given: who acts on them, and what was meant by those that nobody knows.

use super::file::{Given, Origin, Setting};
use super::key::{Key, Status};
use super::known::{OF_PLUGINS, PREFIXES};
use super::load::{base_of_listener_key, key, keys};

/// What is known of a key that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This broker acts on it.
    ActedOn,
    /// Apache Kafka acts on it, this broker does not yet.
    NotYet,
    /// It belongs to a plug-in or another product.
    Foreign,
    /// Nobody's; perhaps this one was meant.
    Unknown {
        /// The nearest key, if one is near.
        nearest: Option<&'static str>,
    },
}

/// What is known of the key `name`.
pub fn standing(name: &str) -> Standing {
    match key(name).or_else(|| key(base_of_listener_key(name)?)) {
        Some(Key { status: Status::Now, .. }) => Standing::ActedOn,
        Some(_) => Standing::NotYet,
        None if OF_PLUGINS.contains(&name) => Standing::NotYet,
        None if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) => Standing::Foreign,
        None => Standing::Unknown { nearest: nearest(name) },
    }
}

/// The key whose name differs least from `name`, if by no more than a few letters.
fn nearest(name: &str) -> Option<&'static str> {
    let distance = |key: &'static Key| (strsim::damerau_levenshtein(key.name, name), key.name);
    let bound = (name.len() / 4).clamp(2, 6);
    keys().filter(|key| key.name.len().abs_diff(name.len()) <= bound).map(distance).min().filter(|(d, _)| *d <= bound).map(|(_, key)| key)
}

/// Settings that nothing acts on, with what is known of each.
pub fn not_acted_on(given: &Given) -> impl Iterator<Item = (&str, &Setting, Standing)> {
    let rows = given.iter().map(|(name, setting)| (name.as_str(), setting, standing(name)));
    rows.filter(|(_, setting, standing)| *standing != Standing::ActedOn && !matches!(setting.origin, Origin::Synonym(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standings() {
        for (name, expected) in [
            ("num.partitions", Standing::ActedOn),
            ("group.share.max.size", Standing::NotYet),
            ("listener.name.internal.ssl.keystore.location", Standing::NotYet),
            ("listener.name.x.plain.sasl.jaas.config", Standing::NotYet),
            ("super.users", Standing::NotYet),
            ("confluent.license", Standing::Foreign),
            ("num.partition", Standing::Unknown { nearest: Some("num.partitions") }),
            ("log.retention.hour", Standing::Unknown { nearest: Some("log.retention.hours") }),
            ("default.replication.facotr", Standing::Unknown { nearest: Some("default.replication.factor") }),
            ("something.else.entirely", Standing::Unknown { nearest: None }),
        ] {
            assert_eq!(standing(name), expected, "{name}");
        }
    }
}
