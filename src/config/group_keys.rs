//! The keys that a single group may have (ConfigResource GROUP), over the broker's: those of consumer groups. Kafka's keys for share groups
//! and Streams groups are not known here, as there are no such groups.

use super::alter::Refused;
use super::broker::Config;
use super::dynamic::Settings;
use super::value::Rule::{self, AtLeast};
use super::value::{Kind, Value, read};

/// A key of a group. All are whole numbers of milliseconds.
#[derive(Debug)]
pub struct GroupKey {
    /// Its name.
    pub name: &'static str,
    /// The broker key with the value of groups that do not have it.
    pub broker_name: &'static str,
    /// The broker key with the least value that a group may have.
    pub min: &'static str,
    /// The broker key with the greatest value that a group may have.
    pub max: &'static str,
    /// What it may be, whatever the broker says.
    pub rule: Rule,
    /// What it is for.
    pub doc: &'static str,
}

const SESSION: &str = "consumer.session.timeout.ms";
const HEARTBEAT: &str = "consumer.heartbeat.interval.ms";

/// Every key of a group.
pub const GROUP_KEYS: [GroupKey; 3] = [
    GroupKey {
        name: SESSION,
        broker_name: "group.consumer.session.timeout.ms",
        min: "group.consumer.min.session.timeout.ms",
        max: "group.consumer.max.session.timeout.ms",
        rule: AtLeast(1),
        doc: "How long a member of the group may be silent, ms.",
    },
    GroupKey {
        name: HEARTBEAT,
        broker_name: "group.consumer.heartbeat.interval.ms",
        min: "group.consumer.min.heartbeat.interval.ms",
        max: "group.consumer.max.heartbeat.interval.ms",
        rule: AtLeast(1),
        doc: "How often members of the group are to be heard of, ms.",
    },
    GroupKey {
        name: "consumer.assignment.interval.ms",
        broker_name: "group.consumer.assignment.interval.ms",
        min: "group.consumer.min.assignment.interval.ms",
        max: "group.consumer.max.assignment.interval.ms",
        rule: AtLeast(0),
        doc: "The least time between two assignments of the group, ms.",
    },
];

/// The row of a key.
pub fn group_key(name: &str) -> Option<&'static GroupKey> {
    GROUP_KEYS.iter().find(|key| key.name == name)
}

/// Whether a group may have exactly these settings on brokers with the configuration `config` (with its dynamic settings).
pub fn check_group(config: &Config, overrides: &Settings) -> Result<(), Refused> {
    for name in overrides.keys() {
        group_key(name).ok_or_else(|| Refused::UnknownGroupKey(name.clone()))?;
    }
    let number = |name: &str| match config.values.get(name) {
        Some(Value::Number(number)) => *number,
        _ => 0,
    };
    let mut in_force = std::collections::BTreeMap::new();
    for key in &GROUP_KEYS {
        let own = overrides.get(key.name).map(|text| read(key.name, text, Kind::Int, key.rule)).transpose()?;
        let value = match own {
            Some(Value::Number(number)) => number,
            _ => number(key.broker_name),
        };
        let (min, max) = (number(key.min), number(key.max));
        if value < min {
            return Err(Refused::AtOdds { key: key.name, reason: format!("must be greater than or equal to {}", key.min) });
        }
        if value > max {
            return Err(Refused::AtOdds { key: key.name, reason: format!("must be less than or equal to {}", key.max) });
        }
        in_force.insert(key.name, value);
    }
    if in_force.get(SESSION) <= in_force.get(HEARTBEAT) {
        return Err(Refused::AtOdds { key: SESSION, reason: format!("must be greater than {HEARTBEAT}") });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_group() {
        let check = |settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            check_group(&Config::defaults(), &settings).map_err(|refused| refused.to_string())
        };
        let is = |settings: &[(&str, &str)], words: &str| assert_eq!(check(settings), Err(words.to_owned()));
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[(SESSION, "50000"), (HEARTBEAT, "6000"), ("consumer.assignment.interval.ms", "0")]), Ok(()));
        is(&[("share.session.timeout.ms", "50000")], "Unknown group config name: share.session.timeout.ms");
        is(&[(SESSION, "44999")], "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms");
        is(
            &[(HEARTBEAT, "15001")],
            "consumer.heartbeat.interval.ms must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        );
        assert!(check(&[(HEARTBEAT, "soon")]).is_err_and(|words| words.contains("soon")));
    }
}
