//! From settings to a `Config`: every value read and checked, keys checked against each other, all errors at once.

use super::broker::{Config, KEYS};
use super::endpoints::{self, Endpoints, Wanted, host_and_port};
use super::file::{Given, Origin, Setting};
use super::key::Key;
use super::known::{DYNAMIC_ONLY, KNOWN};
use super::standing::{Standing, not_acted_on};
use super::value::{Rule, Value, read};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Every broker key, Kafka's and ours, by name.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Key>> = LazyLock::new(|| keys().map(|key| (key.name, key)).collect());

/// Every key that a file may have, Kafka's and ours.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(KNOWN)
}

/// The key of that name that a file may have.
pub(super) fn file_key(name: &str) -> Option<&'static Key> {
    BY_NAME.get(name).copied()
}

/// The broker key of that name, those that are only dynamic included.
pub fn key(name: &str) -> Option<&'static Key> {
    file_key(name).or_else(|| DYNAMIC_ONLY.iter().find(|key| key.name == name))
}

/// The key behind `listener.name.<listener>.<key>` or `listener.name.<listener>.<mechanism>.<key>`.
pub(super) fn base_of_listener_key(name: &str) -> Option<&str> {
    const OF_MECHANISMS: &[&str] = &[
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.server.callback.handler.class",
        "connections.max.reauth.ms",
    ];
    let (_, base) = name.strip_prefix("listener.name.")?.split_once('.')?;
    Some(OF_MECHANISMS.iter().find(|key| base.ends_with(**key)).copied().unwrap_or(base))
}

/// A setting that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The key.
    pub key: String,
    /// The text as given; None if the default is at odds with another key.
    pub value: Option<String>,
    /// What is wrong with it.
    pub reason: String,
    /// What it may be, in Kafka's notation; empty if that says nothing.
    pub allowed: String,
    /// Where it was given.
    pub origin: Option<Origin>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(value) = &self.value {
            write!(f, "={value}")?;
        }
        if let Some(origin) = &self.origin {
            write!(f, " ({origin})")?;
        }
        write!(f, ": {}", self.reason)?;
        if !self.allowed.is_empty() {
            write!(f, "; allowed: {}", self.allowed)?;
        }
        Ok(())
    }
}

/// Settings with which nothing can start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl Config {
    /// Reads and checks everything that was given; what was not given has its default.
    pub fn load(mut given: Given) -> Result<Config, ConfigErrors> {
        same_id(&mut given);
        let mut errors = Vec::new();
        let mut values = BTreeMap::new();
        for key in keys() {
            match given.get(key.name).map(|setting| (setting, read(key.name, &setting.value, key.kind, key.rule))) {
                Some((_, Ok(value))) => _ = values.insert(key.name, value),
                Some((setting, Err(e))) => errors.push(error(key, Some(setting), e.reason())),
                None => _ = default(key).and_then(|value| values.insert(key.name, value)),
            }
        }
        if !errors.is_empty() {
            return Err(ConfigErrors(errors));
        }
        let mut config = Config::from_values(values, Endpoints::NONE, given);
        let conflicts = match config.find_endpoints() {
            Ok(endpoints) => {
                config.endpoints = endpoints;
                config.conflicts()
            }
            Err(conflict) => [vec![(conflict.key, conflict.reason)], config.conflicts()].concat(),
        };
        if conflicts.is_empty() {
            return Ok(config);
        }
        let at_odds = |(name, reason): (&'static str, String)| match key(name) {
            Some(key) => ConfigError { allowed: String::new(), ..error(key, config.given.get(name), &reason) },
            None => ConfigError { key: name.into(), value: None, reason, allowed: String::new(), origin: None },
        };
        Err(ConfigErrors(conflicts.into_iter().map(at_odds).collect()))
    }

    /// The configuration with nothing given.
    pub fn defaults() -> Config {
        Config::load(Given::new()).expect("the defaults are a configuration")
    }

    /// Whether this process is a broker.
    pub fn is_broker(&self) -> bool {
        self.process_roles.iter().any(|role| role == "broker")
    }

    /// Whether this process is a controller.
    pub fn is_controller(&self) -> bool {
        self.process_roles.iter().any(|role| role == "controller")
    }

    /// The log directories: `log.dirs`, or `log.dir`.
    pub fn log_directories(&self) -> Vec<PathBuf> {
        self.log_dirs.as_ref().unwrap_or(&self.log_dir).iter().map(PathBuf::from).collect()
    }

    /// The directory of the metadata log.
    pub fn metadata_directory(&self) -> PathBuf {
        self.metadata_log_dir.as_ref().map(PathBuf::from).unwrap_or_else(|| self.log_directories().swap_remove(0))
    }

    /// Host and port of the HTTP server; none if it is turned off.
    pub fn http_address(&self) -> Option<(String, u16)> {
        host_and_port(&self.http_listen).map(|(host, port)| (host.to_owned(), port))
    }

    /// Settings that nothing acts on, with what is known of each.
    pub fn not_acted_on(&self) -> impl Iterator<Item = (&str, &Setting, Standing)> {
        not_acted_on(&self.given)
    }

    /// Text of a key's value, given or default; none if it has none, or nobody knows the key.
    pub fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).map(Value::to_string)
    }

    fn find_endpoints(&self) -> Result<Endpoints, endpoints::Conflict> {
        let given = |name: &str| self.given.contains_key(name);
        endpoints::resolve(&Wanted {
            listeners: &self.listeners,
            advertised: self.advertised_listeners.as_deref(),
            protocols: (&self.listener_security_protocol_map, given("listener.security.protocol.map")),
            controller_names: &self.controller_listener_names,
            inter_broker_name: self.inter_broker_listener_name.as_deref(),
            inter_broker_protocol: (&self.security_inter_broker_protocol, given("security.inter.broker.protocol")),
            voters: &self.controller_quorum_voters,
            bootstrap_servers: &self.controller_quorum_bootstrap_servers,
            node_id: self.node_id,
            is_broker: self.is_broker(),
            is_controller: self.is_controller(),
        })
    }

    /// Values that are right by themselves and wrong together (Kafka's checks, and ours).
    pub(super) fn conflicts(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut require = |holds: bool, key: &'static str, reason: &str| {
            if !holds {
                found.push((key, reason.to_owned()));
            }
        };
        require(self.node_id == self.broker_id || self.broker_id == -1, "broker.id", "must be the same as node.id");
        require(self.log_roll_ms.is_none_or(|ms| ms >= 1), "log.roll.ms", "must be at least 1");
        require(self.log_roll_jitter_ms.is_none_or(|ms| ms >= 0), "log.roll.jitter.ms", "must be at least 0");
        let retention = |value: Option<i64>| value.is_none_or(|value| value != 0);
        require(retention(self.log_retention_ms), "log.retention.ms", "must be unlimited (-1) or at least 1");
        require(retention(self.log_retention_minutes.map(i64::from)), "log.retention.minutes", "must be unlimited (-1) or at least 1");
        require(retention(Some(self.log_retention_hours.into())), "log.retention.hours", "must be unlimited (-1) or at least 1");
        require(
            self.log_cleaner_min_compaction_lag_ms <= self.log_cleaner_max_compaction_lag_ms,
            "log.cleaner.min.compaction.lag.ms",
            "must not be more than log.cleaner.max.compaction.lag.ms",
        );
        require(
            self.replica_fetch_wait_max_ms <= self.replica_socket_timeout_ms
                && i64::from(self.replica_fetch_wait_max_ms) <= self.replica_lag_time_max_ms,
            "replica.fetch.wait.max.ms",
            "must not be more than replica.socket.timeout.ms or replica.lag.time.max.ms",
        );
        require(
            self.max_connections_per_ip > 0 || !self.max_connections_per_ip_overrides.is_empty(),
            "max.connections.per.ip",
            "can be 0 only if max.connections.per.ip.overrides is set",
        );
        if let Err(entry) = self.connection_limits() {
            require(false, "max.connections.per.ip.overrides", &format!("{entry:?} is not host:count"));
        }
        require(
            self.understudy_admitted_bytes_max >= self.socket_request_max_bytes.into(),
            "understudy.admitted.bytes.max",
            "must be at least socket.request.max.bytes",
        );
        require(
            self.http_listen.is_empty() || self.http_address().is_some_and(|(host, _)| !host.is_empty()),
            "http.listen",
            "is not host:port; write 0.0.0.0:port for every interface",
        );
        self.group_conflicts(&mut require);
        found
    }

    /// Limits of single addresses in `max.connections.per.ip.overrides`; the entry that is none, otherwise.
    pub fn connection_limits(&self) -> Result<BTreeMap<String, i32>, String> {
        let entries = self.max_connections_per_ip_overrides.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let limit = |entry: &str| {
            let (host, count) = entry.rsplit_once(':')?;
            Some((host.trim().to_owned(), count.trim().parse().ok()?))
        };
        entries.map(|entry| limit(entry).ok_or_else(|| entry.to_owned())).collect()
    }
}

impl Endpoints {
    /// Before they are resolved.
    const NONE: Endpoints = Endpoints {
        listeners: Vec::new(),
        controller_listeners: Vec::new(),
        advertised: Vec::new(),
        inter_broker: String::new(),
        voters: Vec::new(),
    };
}

/// `node.id` and `broker.id` are one: each stands for the other where only one is given.
fn same_id(given: &mut Given) {
    for (one, other) in [("node.id", "broker.id"), ("broker.id", "node.id")] {
        if let (Some(setting), None) = (given.get(one), given.get(other)) {
            let copy = Setting { value: setting.value.clone(), origin: Origin::Synonym(one) };
            given.insert(other.into(), copy);
        }
    }
}

pub(super) fn default(key: &Key) -> Option<Value> {
    let text = key.default?;
    Some(read(key.name, text, key.kind, Rule::Any).expect("the default of a row is a value of its type"))
}

fn error(key: &Key, setting: Option<&Setting>, reason: &str) -> ConfigError {
    ConfigError {
        key: key.name.into(),
        value: setting.map(|setting| if key.kind == super::value::Kind::Password { "[hidden]".into() } else { setting.value.clone() }),
        reason: reason.into(),
        allowed: key.rule.to_string(),
        origin: setting.map(|setting| setting.origin.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CompressionType, LogFormat, TopicConfig, file, topic_defaults};
    use std::path::Path;

    fn load(text: &str) -> Result<Config, Vec<String>> {
        let given = file::from_properties(text.replace(' ', "\n").as_bytes(), Path::new("f")).unwrap();
        Config::load(given).map_err(|errors| errors.0.iter().map(|e| e.to_string()).collect())
    }

    #[test]
    fn nothing_given_is_one_node_on_this_machine() {
        let config = Config::defaults();
        assert_eq!((config.node_id, config.is_broker(), config.is_controller()), (1, true, true));
        assert_eq!(config.endpoints.listeners[0].to_string(), "PLAINTEXT://localhost:9092");
        assert_eq!((config.endpoints.controller_listeners.len(), config.endpoints.voters.len()), (0, 0));
        assert_eq!(config.log_directories(), [Path::new("understudy-data")]);
        assert_eq!(config.metadata_directory(), Path::new("understudy-data"));
        assert_eq!(config.http_address(), Some(("127.0.0.1".into(), 9404)));
        assert_eq!((config.num_partitions, config.message_max_bytes, config.log_format), (1, 1_048_588, LogFormat::Human));
        assert!(config.not_acted_on().next().is_none());
    }

    #[test]
    fn a_file_as_tests_write_it_loads() {
        let config = load(
            "process.roles=broker,controller node.id=3 controller.quorum.voters=3@127.0.0.1:19893 \
             listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:19893 advertised.listeners=PLAINTEXT://127.0.0.1:19792 \
             controller.listener.names=CONTROLLER listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT \
             log.dirs=/a,/b num.partitions=4 transaction.state.log.min.isr=1 http.listen=127.0.0.1:0 compression.type=zstd",
        )
        .unwrap();
        assert_eq!((config.node_id, config.broker_id, config.num_partitions), (3, 3, 4));
        assert_eq!(config.log_directories(), [Path::new("/a"), Path::new("/b")]);
        assert_eq!(config.endpoints.controller_listeners[0].port, 19893);
        assert_eq!(config.compression_type, CompressionType::Zstd);
        assert_eq!(config.not_acted_on().map(|row| row.0).collect::<Vec<_>>(), ["transaction.state.log.min.isr"]);
    }

    #[test]
    fn errors_say_key_value_range_and_origin() {
        for (text, expected) in [
            ("num.partitions=0", "num.partitions=0 (f line 1): Value must be at least 1; allowed: [1,...]"),
            ("a=b log.segment.bytes=1x", "log.segment.bytes=1x (f line 2): Not a number of type INT; allowed: [1048576,...]"),
            (
                "compression.type=br",
                "compression.type=br (f line 1): String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer; \
                                     allowed: [uncompressed, zstd, lz4, snappy, gzip, producer]",
            ),
            ("node.id=1 broker.id=2", "broker.id=2 (f line 2): must be the same as node.id"),
            ("log.retention.ms=0", "log.retention.ms=0 (f line 1): must be unlimited (-1) or at least 1"),
            ("http.listen=:80", "http.listen=:80 (f line 1): is not host:port; write 0.0.0.0:port for every interface"),
            ("max.connections.per.ip=0", "max.connections.per.ip=0 (f line 1): can be 0 only if max.connections.per.ip.overrides is set"),
            ("max.connections.per.ip.overrides=h", "max.connections.per.ip.overrides=h (f line 1): \"h\" is not host:count"),
            ("group.share.max.size=5000", "group.share.max.size=5000 (f line 1): Value must be no more than 1000; allowed: [1,...,1000]"),
            (
                "process.roles=broker",
                "controller.quorum.voters: a broker without the controller role needs the addresses of the controllers",
            ),
            ("process.roles=x", "process.roles=x (f line 1): String must be one of: broker, controller; allowed: [broker, controller]"),
        ] {
            assert_eq!(load(text).unwrap_err(), [expected], "{text}");
        }
        assert_eq!(load("num.partitions=0 log.roll.hours=0").unwrap_err().len(), 2, "all errors at once");
        let secret = load("ssl.key.password=s sasl.login.connect.timeout.ms=x").unwrap_err();
        assert!(!secret[0].contains("=s "), "{secret:?}");
    }

    #[test]
    fn unit_aliases_reach_topics_and_the_finest_wins() {
        for (text, retention, roll) in [
            ("", 604_800_000, 604_800_000),
            ("log.retention.hours=1 log.roll.hours=2", 3_600_000, 7_200_000),
            ("log.retention.hours=1 log.retention.minutes=2", 120_000, 604_800_000),
            ("log.retention.minutes=2 log.retention.ms=3 log.roll.ms=4", 3, 4),
            ("log.retention.hours=-1", -1, 604_800_000),
            ("log.retention.ms=-5", -1, 604_800_000),
        ] {
            let topic = TopicConfig::resolve(&topic_defaults(&load(text).unwrap()), &BTreeMap::new());
            assert_eq!((topic.retention_ms, topic.segment_ms), (retention, roll), "{text}");
        }
        let config = load("log.flush.scheduler.interval.ms=7 message.max.bytes=9 log.cleanup.policy=compact,delete").unwrap();
        let overrides = [("max.message.bytes", "10"), ("retention.ms", "soon"), ("x", "1")].map(|(k, v)| (k.into(), v.into()));
        let topic = TopicConfig::resolve(&topic_defaults(&config), &overrides.into());
        assert_eq!((topic.flush_ms, topic.max_message_bytes, topic.retention_ms), (7, 10, 604_800_000));
        assert!(topic.cleanup_policy.compact && topic.cleanup_policy.delete);
        assert_eq!(topic.segment_size(), 1 << 30);
    }
}
