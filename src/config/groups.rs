//! The keys of consumer groups (KIP-848), as the coordinator wants them.

use super::Config;
use crate::core::group::assign::Assignor;

/// Whether groups with members may change their protocol (`group.consumer.migration.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationPolicy {
    /// From classic to consumer.
    pub upgrade: bool,
    /// From consumer to classic.
    pub downgrade: bool,
}

impl Config {
    /// `group.consumer.assignors`.
    pub fn assignors(&self) -> Vec<Assignor> {
        self.group_consumer_assignors.iter().filter_map(|name| Assignor::from_name(name)).collect()
    }

    /// `group.consumer.migration.policy`.
    pub fn migration_policy(&self) -> MigrationPolicy {
        let is = |word: &str| self.group_consumer_migration_policy.eq_ignore_ascii_case(word);
        MigrationPolicy { upgrade: is("UPGRADE") || is("BIDIRECTIONAL"), downgrade: is("DOWNGRADE") || is("BIDIRECTIONAL") }
    }

    /// Whether `group.coordinator.rebalance.protocols` has the consumer protocol.
    pub fn has_consumer_protocol(&self) -> bool {
        self.group_coordinator_rebalance_protocols.iter().any(|protocol| protocol == "consumer")
    }

    /// Values of these keys that are right by themselves and wrong together.
    pub(super) fn group_conflicts(&self, require: &mut dyn FnMut(bool, &'static str, &str)) {
        let known = self.group_consumer_assignors.iter().all(|name| Assignor::from_name(name).is_some());
        require(known, "group.consumer.assignors", "this broker has the assignors uniform and range; classes cannot be loaded");
        for (key, value, min_key, min, max_key, max) in [
            (
                "group.consumer.session.timeout.ms",
                self.group_consumer_session_timeout_ms,
                "group.consumer.min.session.timeout.ms",
                self.group_consumer_min_session_timeout_ms,
                "group.consumer.max.session.timeout.ms",
                self.group_consumer_max_session_timeout_ms,
            ),
            (
                "group.consumer.heartbeat.interval.ms",
                self.group_consumer_heartbeat_interval_ms,
                "group.consumer.min.heartbeat.interval.ms",
                self.group_consumer_min_heartbeat_interval_ms,
                "group.consumer.max.heartbeat.interval.ms",
                self.group_consumer_max_heartbeat_interval_ms,
            ),
            (
                "group.consumer.assignment.interval.ms",
                self.group_consumer_assignment_interval_ms,
                "group.consumer.min.assignment.interval.ms",
                self.group_consumer_min_assignment_interval_ms,
                "group.consumer.max.assignment.interval.ms",
                self.group_consumer_max_assignment_interval_ms,
            ),
        ] {
            require(min <= max, max_key, &format!("must be at least {min_key}"));
            require((min..=max).contains(&value), key, &format!("must be between {min_key} and {max_key}"));
        }
        require(
            self.group_consumer_heartbeat_interval_ms < self.group_consumer_session_timeout_ms,
            "group.consumer.heartbeat.interval.ms",
            "must be less than group.consumer.session.timeout.ms",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies() {
        for (word, upgrade, downgrade) in
            [("bidirectional", true, true), ("UPGRADE", true, false), ("Downgrade", false, true), ("disabled", false, false)]
        {
            let config = Config { group_consumer_migration_policy: word.into(), ..Config::defaults() };
            assert_eq!(config.migration_policy(), MigrationPolicy { upgrade, downgrade }, "{word}");
        }
    }

    #[test]
    fn keys_that_do_not_go_together() {
        let conflicts = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::defaults();
            change(&mut config);
            let mut found = Vec::new();
            config.group_conflicts(&mut |holds, key, _| found.extend((!holds).then_some(key)));
            found
        };
        assert_eq!(conflicts(&|_| {}), Vec::<&str>::new());
        let (session, heartbeat) = ("group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms");
        assert_eq!(conflicts(&|config| config.group_consumer_session_timeout_ms = 6_000), [session]);
        assert_eq!(conflicts(&|config| config.group_consumer_heartbeat_interval_ms = 50_000), [heartbeat, heartbeat]);
        assert_eq!(conflicts(&|config| config.group_consumer_assignors = vec!["a.b.C".into()]), ["group.consumer.assignors"]);
        let max = "group.consumer.max.session.timeout.ms";
        assert_eq!(conflicts(&|config| config.group_consumer_max_session_timeout_ms = 1_000), [max, session]);
    }
}
