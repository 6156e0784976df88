//! The text of the `quorum-state` file: one line of JSON. Not the writing of the file.
//!
//! Version 0 belongs to `kraft.version` 0 and also names the voters, which nobody reads; version 1 adds the directory of the voted-for.
//! `appliedOffset` and `clusterId` are relics that Kafka writes as 0 and empty.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::core::quorum::records::ElectionState;
use crate::core::types::{BrokerId, Epoch, Id};

/// Why the file's text is not an election state. A node does not start then: guessing could vote twice in an epoch.
#[derive(Debug, Error)]
pub enum BadQuorumState {
    /// Not JSON, or a field is missing or of another type.
    #[error("quorum-state is not what Kafka writes: {0}")]
    Json(#[from] serde_json::Error),
    /// A version that this broker does not know.
    #[error("quorum-state has data_version {0}; this broker reads 0 and 1")]
    Version(i64),
    /// The directory id is not an id.
    #[error("quorum-state: votedDirectoryId is not an id: {0:?}")]
    Directory(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version0 {
    #[serde(default)]
    cluster_id: String,
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    #[serde(default)]
    applied_offset: i64,
    #[serde(default)]
    current_voters: Option<Vec<CurrentVoter>>,
    #[serde(rename = "data_version")]
    data_version: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CurrentVoter {
    voter_id: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version1 {
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    voted_directory_id: String,
    #[serde(rename = "data_version")]
    data_version: i64,
}

#[derive(Deserialize)]
struct Versioned {
    data_version: i64,
}

fn known(id: i32) -> Option<BrokerId> {
    (id >= 0).then_some(BrokerId(id))
}

fn wire(id: Option<BrokerId>) -> i32 {
    id.unwrap_or(BrokerId::NONE).0
}

/// Reads the file's text; only its first line counts.
pub fn decode(text: &str) -> Result<ElectionState, BadQuorumState> {
    let line = text.lines().next().unwrap_or_default();
    match serde_json::from_str::<Versioned>(line)?.data_version {
        0 => {
            let file: Version0 = serde_json::from_str(line)?;
            let voted = known(file.voted_id).map(|id| (id, Id::ZERO));
            Ok(ElectionState { epoch: Epoch(file.leader_epoch), leader: known(file.leader_id), voted })
        }
        1 => {
            let file: Version1 = serde_json::from_str(line)?;
            let directory = file.voted_directory_id.parse().map_err(|_| BadQuorumState::Directory(file.voted_directory_id.clone()))?;
            let voted = known(file.voted_id).map(|id| (id, directory));
            Ok(ElectionState { epoch: Epoch(file.leader_epoch), leader: known(file.leader_id), voted })
        }
        other => Err(BadQuorumState::Version(other)),
    }
}

/// The file's text at `kraft.version` 0. The directory of the voted-for is lost.
pub fn encode_v0(state: &ElectionState, voters: &[BrokerId]) -> Result<String, BadQuorumState> {
    Ok(serde_json::to_string(&Version0 {
        cluster_id: String::new(),
        leader_id: wire(state.leader),
        leader_epoch: state.epoch.0,
        voted_id: wire(state.voted.map(|(id, _)| id)),
        applied_offset: 0,
        current_voters: Some(voters.iter().map(|id| CurrentVoter { voter_id: id.0 }).collect()),
        data_version: 0,
    })?)
}

/// The file's text at `kraft.version` 1.
pub fn encode_v1(state: &ElectionState) -> Result<String, BadQuorumState> {
    Ok(serde_json::to_string(&Version1 {
        leader_id: wire(state.leader),
        leader_epoch: state.epoch.0,
        voted_id: wire(state.voted.map(|(id, _)| id)),
        voted_directory_id: state.voted.map_or(Id::ZERO, |(_, directory)| directory).to_string(),
        data_version: 1,
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kafka_wrote_is_read_and_written_the_same() {
        let text = include_str!("../testdata/quorum-state");
        let state = decode(text).unwrap();
        assert_eq!(state, ElectionState { epoch: Epoch(2), leader: Some(BrokerId(1)), voted: None });
        assert_eq!(encode_v0(&state, &[BrokerId(1)]).unwrap(), text);
    }

    #[test]
    fn version_1_keeps_the_directory() {
        let text = r#"{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"JEXY6aqzQY-32P5TStzaFg","data_version":1}"#;
        let state = decode(text).unwrap();
        let directory = "JEXY6aqzQY-32P5TStzaFg".parse().unwrap();
        assert_eq!(state, ElectionState { epoch: Epoch(7), leader: None, voted: Some((BrokerId(2), directory)) });
        assert_eq!(encode_v1(&state).unwrap(), text);
        assert!(encode_v1(&ElectionState::default()).unwrap().contains(r#""votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA""#));
    }

    #[test]
    fn a_leader_and_a_vote_for_another_are_both_kept() {
        let state = ElectionState { epoch: Epoch(3), leader: Some(BrokerId(1)), voted: Some((BrokerId(2), Id::ZERO)) };
        assert_eq!(decode(&(encode_v0(&state, &[]).unwrap() + "\nanything")).unwrap(), state);
    }

    #[test]
    fn what_is_not_a_state_is_refused() {
        let table = [
            "",
            "{}",
            r#"{"data_version":0}"#,
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}"#,
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":1}"#,
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":1,"votedDirectoryId":"x","data_version":1}"#,
            r#"{"leaderId":1,"leaderEpoch":4294967296,"votedId":-1,"data_version":0}"#,
        ];
        for text in table {
            assert!(decode(text).is_err(), "{text}");
        }
        let newer = decode(table[3]).unwrap_err().to_string();
        assert_eq!(newer, "quorum-state has data_version 2; this broker reads 0 and 1");
    }
}
