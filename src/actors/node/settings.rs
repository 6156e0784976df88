//! What the configuration comes to for the parts of a node: the quorum, the metadata log, sessions, threads, open files.

use super::{ELR_LEVEL, GROUP_LEVEL, METADATA_LEVEL};
use crate::actors::link::Speaking;
use crate::actors::quorum::Voter;
use crate::config::Config;
use crate::core::controller as rules;
use crate::core::controller::records::Feature;
use crate::core::controller::sessions::SessionTimes;
use crate::core::quorum;
use crate::core::quorum::snapshots::SnapshotRule;
use crate::core::types::{BrokerId, DirectoryId};
use crate::log::LogConfig;
use crate::rt::clock;
use std::time::Duration;

/// What brokers have to come to a controller that has just taken over, in milliseconds: they hear of it within a fetch or two.
const CHANCE: i64 = 1000;

/// The feature levels that this broker can run at. What is listed with a highest level of 0 exists by name only.
pub(super) fn features() -> Vec<Feature> {
    let rows = [
        ("metadata.version", 7, METADATA_LEVEL),
        ("group.version", 0, GROUP_LEVEL),
        ("transaction.version", 0, 0),
        ("kraft.version", 0, 0),
        (rules::ELR_VERSION, 0, ELR_LEVEL),
    ];
    rows.into_iter().map(|(name, min, max)| Feature { name: name.into(), min, max }).collect()
}

/// How many files may stay open: as configured, else most of what the system allows.
pub(super) fn open_files(config: &Config) -> usize {
    match config.understudy_open_files_max {
        0 => {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let allowed = limit.current.unwrap_or(u64::MAX).min(1 << 20) as usize;
            crate::log::files::DEFAULT_OPEN_FILES.min(allowed / 2)
        }
        configured => configured as usize,
    }
}

/// The voters of the quorum, in id order, and where they listen; this node alone if none are configured.
pub(super) fn voters(config: &Config) -> (Vec<BrokerId>, Vec<Voter>) {
    let configured = &config.endpoints.voters;
    let mut ids: Vec<BrokerId> = configured.iter().map(|voter| BrokerId(voter.id)).collect();
    if ids.is_empty() {
        ids.push(BrokerId(config.node_id));
    }
    ids.sort();
    let address = |voter: &crate::config::Voter| Voter { id: BrokerId(voter.id), host: voter.host.clone(), port: voter.port };
    (ids, configured.iter().map(address).collect())
}

pub(super) fn quorum_config(config: &Config, voters: Vec<BrokerId>, directory: DirectoryId) -> quorum::Config {
    let millis = i64::from;
    let timing = quorum::Timing {
        election: millis(config.controller_quorum_election_timeout_ms),
        fetch: millis(config.controller_quorum_fetch_timeout_ms),
        request: millis(config.controller_quorum_request_timeout_ms),
        backoff: millis(config.controller_quorum_retry_backoff_ms),
        succession: millis(config.controller_quorum_election_backoff_max_ms),
        fetch_bytes: config.controller_quorum_fetch_max_bytes as u32,
        snapshot_bytes: config.controller_quorum_fetch_snapshot_max_bytes as u32,
        ..quorum::Timing::default()
    };
    quorum::Config { me: BrokerId(config.node_id), directory, voters, timing }
}

pub(super) fn millis(millis: i32) -> Duration {
    Duration::from_millis(millis.max(1) as u64)
}

pub(super) fn session_times(config: &Config) -> SessionTimes {
    SessionTimes {
        timeout: i64::from(config.broker_session_timeout_ms),
        grace: i64::from(config.understudy_broker_disconnect_grace_ms),
        chance: CHANCE.min(i64::from(config.broker_session_timeout_ms)),
    }
}

pub(super) fn speaking(config: &Config, voters: &[Voter]) -> Speaking {
    // An answer that takes half a session is not worth waiting for: another connection may do better.
    let session = millis(config.broker_session_timeout_ms / 2);
    Speaking {
        voters: voters.to_vec(),
        connect: millis(config.controller_quorum_request_timeout_ms),
        session,
        request: millis(config.request_timeout_ms),
    }
}

pub(super) fn metadata_log(config: &Config) -> LogConfig {
    LogConfig {
        segment_bytes: config.metadata_log_segment_bytes as u64,
        segment_ms: config.metadata_log_segment_ms,
        delete: false,
        ..LogConfig::default()
    }
}

pub(super) fn snapshot_rule(config: &Config) -> SnapshotRule {
    let bytes = config.metadata_log_max_record_bytes_between_snapshots as u64;
    SnapshotRule::new(bytes, config.metadata_log_max_snapshot_interval_ms, clock::now())
}

/// One data thread for two cores, unless configured: a hop between threads costs more than anything a request does.
pub(super) fn shard_count(config: &Config) -> usize {
    match config.understudy_shards {
        0 => std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)),
        configured => configured as usize,
    }
}
