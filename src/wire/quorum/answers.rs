//! Answers of the metadata quorum: ours as messages, others' as values of the rules.

use super::{TOPIC, code, id, leader, node, problem, single, topic, uuid};
use crate::core::quorum::message::{Detour, Fetched, Head, Problem, Records, Response, SnapshotPart};
use crate::core::quorum::records::SnapshotId;
use crate::core::types::{BrokerId, Epoch, Id, Offset};
use crate::wire::guard;
use bytes::Bytes;
use kafka_protocol::messages::{
    self, BeginQuorumEpochResponse, EndQuorumEpochResponse, FetchResponse, FetchSnapshotResponse, VoteResponse,
    begin_quorum_epoch_response, end_quorum_epoch_response, fetch_response, fetch_snapshot_response, vote_response,
};
use kafka_protocol::protocol::{Decodable, StrBytes};

/// Where the leader listens, for who does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The leader.
    pub node: BrokerId,
    /// Its host on the listener that the request came in by.
    pub host: String,
    /// And its port.
    pub port: u16,
}

/// The leader's id as answers name it.
fn named(head: Head) -> messages::BrokerId {
    node(head.leader.unwrap_or(BrokerId::NONE))
}

fn host(endpoint: &Endpoint) -> StrBytes {
    StrBytes::from_string(endpoint.host.clone())
}

/// Answers a Vote.
pub fn vote_answer(head: Head, granted: bool, endpoint: Option<&Endpoint>, version: i16) -> VoteResponse {
    let partition = vote_response::PartitionData::default()
        .with_error_code(code(head.refused))
        .with_leader_id(named(head))
        .with_leader_epoch(head.epoch.0)
        .with_vote_granted(granted);
    let data = vote_response::TopicData::default().with_topic_name(topic()).with_partitions(vec![partition]);
    let endpoints = endpoint
        .filter(|_| version >= 1)
        .map(|at| vote_response::NodeEndpoint::default().with_node_id(node(at.node)).with_host(host(at)).with_port(at.port));
    VoteResponse::default().with_topics(vec![data]).with_node_endpoints(endpoints.into_iter().collect())
}

/// Answers a BeginQuorumEpoch.
pub fn begin_answer(head: Head, endpoint: Option<&Endpoint>, version: i16) -> BeginQuorumEpochResponse {
    let partition = begin_quorum_epoch_response::PartitionData::default()
        .with_error_code(code(head.refused))
        .with_leader_id(named(head))
        .with_leader_epoch(head.epoch.0);
    let data = begin_quorum_epoch_response::TopicData::default().with_topic_name(topic()).with_partitions(vec![partition]);
    let endpoints = endpoint
        .filter(|_| version >= 1)
        .map(|at| begin_quorum_epoch_response::NodeEndpoint::default().with_node_id(node(at.node)).with_host(host(at)).with_port(at.port));
    BeginQuorumEpochResponse::default().with_topics(vec![data]).with_node_endpoints(endpoints.into_iter().collect())
}

/// Answers an EndQuorumEpoch.
pub fn end_answer(head: Head, endpoint: Option<&Endpoint>, version: i16) -> EndQuorumEpochResponse {
    let partition = end_quorum_epoch_response::PartitionData::default()
        .with_error_code(code(head.refused))
        .with_leader_id(named(head))
        .with_leader_epoch(head.epoch.0);
    let data = end_quorum_epoch_response::TopicData::default().with_topic_name(topic()).with_partitions(vec![partition]);
    let endpoints = endpoint
        .filter(|_| version >= 1)
        .map(|at| end_quorum_epoch_response::NodeEndpoint::default().with_node_id(node(at.node)).with_host(host(at)).with_port(at.port));
    EndQuorumEpochResponse::default().with_topics(vec![data]).with_node_endpoints(endpoints.into_iter().collect())
}

/// Answers a Fetch.
pub fn fetch_answer(fetched: Fetched, endpoint: Option<&Endpoint>, version: i16) -> FetchResponse {
    let head = fetched.head;
    let current = fetch_response::LeaderIdAndEpoch::default().with_leader_id(named(head)).with_leader_epoch(head.epoch.0);
    let partition = fetch_response::PartitionData::default()
        .with_error_code(code(head.refused))
        .with_high_watermark(fetched.high_watermark.unwrap_or(Offset::NONE).0)
        .with_last_stable_offset(-1)
        .with_log_start_offset(fetched.log_start.0)
        .with_current_leader(current)
        .with_records(Some(fetched.records.bytes));
    let partition = match fetched.detour {
        None => partition,
        Some(Detour::Diverging { epoch, end }) => {
            partition.with_diverging_epoch(fetch_response::EpochEndOffset::default().with_epoch(epoch.0).with_end_offset(end.0))
        }
        Some(Detour::Snapshot(id)) => {
            partition.with_snapshot_id(fetch_response::SnapshotId::default().with_end_offset(id.end.0).with_epoch(id.epoch.0))
        }
    };
    let topic = fetch_response::FetchableTopicResponse::default().with_topic_id(uuid(Id::ONE)).with_partitions(vec![partition]);
    let endpoints = endpoint
        .filter(|_| version >= 16)
        .map(|at| fetch_response::NodeEndpoint::default().with_node_id(node(at.node)).with_host(host(at)).with_port(i32::from(at.port)));
    FetchResponse::default().with_responses(vec![topic]).with_node_endpoints(endpoints.into_iter().collect())
}

/// Answers a FetchSnapshot.
pub fn snapshot_answer(part: SnapshotPart, endpoint: Option<&Endpoint>, version: i16) -> FetchSnapshotResponse {
    let head = part.head;
    let current = fetch_snapshot_response::LeaderIdAndEpoch::default().with_leader_id(named(head)).with_leader_epoch(head.epoch.0);
    let partition = fetch_snapshot_response::PartitionSnapshot::default()
        .with_error_code(code(head.refused))
        .with_snapshot_id(fetch_snapshot_response::SnapshotId::default().with_end_offset(part.id.end.0).with_epoch(part.id.epoch.0))
        .with_current_leader(current)
        .with_size(part.size as i64)
        .with_position(part.position as i64)
        .with_unaligned_records(part.bytes);
    let data = fetch_snapshot_response::TopicSnapshot::default().with_name(topic()).with_partitions(vec![partition]);
    let endpoints = endpoint
        .filter(|_| version >= 1)
        .map(|at| fetch_snapshot_response::NodeEndpoint::default().with_node_id(node(at.node)).with_host(host(at)).with_port(at.port));
    FetchSnapshotResponse::default().with_topics(vec![data]).with_node_endpoints(endpoints.into_iter().collect())
}

/// Another node's answer to a request of that key and version. The batches of a Fetch are left as bytes. Errors: it is none, or refuses the
/// request as a whole.
pub fn decode(key: i16, version: i16, body: Bytes) -> Result<Response, String> {
    guard::check_answer(key, version, &body).map_err(|e| e.to_string())?;
    match key {
        1 => decode_fetch(read(body, version)?),
        52 => decode_vote(read(body, version)?),
        53 => decode_begin(read(body, version)?),
        54 => decode_end(read(body, version)?),
        59 => decode_snapshot(read(body, version)?),
        _ => Err(format!("nobody asks for key {key}")),
    }
}

fn read<T: Decodable>(mut body: Bytes, version: i16) -> Result<T, String> {
    T::decode(&mut body, version).map_err(|e| e.to_string())
}

fn whole(code: i16) -> Result<(), String> {
    match problem(code) {
        None => Ok(()),
        Some(_) => Err(match crate::wire::error::ErrorCode::from_code(code) {
            Some(known) => known.name().to_owned(),
            None => format!("error {code}"),
        }),
    }
}

const OTHER: &str = "an answer about another topic";

fn head(error: i16, id: messages::BrokerId, epoch: i32) -> Head {
    Head { refused: problem(error), epoch: Epoch(epoch), leader: leader(id) }
}

fn decode_vote(answer: VoteResponse) -> Result<Response, String> {
    whole(answer.error_code)?;
    let data = single(answer.topics).filter(|data| data.topic_name.as_str() == TOPIC).ok_or(OTHER)?;
    let partition = single(data.partitions).ok_or(OTHER)?;
    let head = head(partition.error_code, partition.leader_id, partition.leader_epoch);
    Ok(Response::Vote { head, granted: partition.vote_granted && head.refused.is_none() })
}

fn decode_begin(answer: BeginQuorumEpochResponse) -> Result<Response, String> {
    whole(answer.error_code)?;
    let data = single(answer.topics).filter(|data| data.topic_name.as_str() == TOPIC).ok_or(OTHER)?;
    let partition = single(data.partitions).ok_or(OTHER)?;
    Ok(Response::BeginEpoch(head(partition.error_code, partition.leader_id, partition.leader_epoch)))
}

fn decode_end(answer: EndQuorumEpochResponse) -> Result<Response, String> {
    whole(answer.error_code)?;
    let data = single(answer.topics).filter(|data| data.topic_name.as_str() == TOPIC).ok_or(OTHER)?;
    let partition = single(data.partitions).ok_or(OTHER)?;
    Ok(Response::EndEpoch(head(partition.error_code, partition.leader_id, partition.leader_epoch)))
}

fn decode_fetch(answer: FetchResponse) -> Result<Response, String> {
    whole(answer.error_code)?;
    let data = single(answer.responses).filter(|data| id(data.topic_id) == Id::ONE).ok_or(OTHER)?;
    let partition = single(data.partitions).ok_or(OTHER)?;
    let (diverging, snapshot) = (&partition.diverging_epoch, &partition.snapshot_id);
    let detour = if diverging.epoch >= 0 {
        Some(Detour::Diverging { epoch: Epoch(diverging.epoch), end: Offset(diverging.end_offset) })
    } else if snapshot.epoch >= 0 && snapshot.end_offset >= 0 {
        Some(Detour::Snapshot(SnapshotId { end: Offset(snapshot.end_offset), epoch: Epoch(snapshot.epoch) }))
    } else {
        None
    };
    Ok(Response::Fetch(Fetched {
        head: head(partition.error_code, partition.current_leader.leader_id, partition.current_leader.leader_epoch),
        high_watermark: (partition.high_watermark >= 0).then_some(Offset(partition.high_watermark)),
        log_start: Offset(partition.log_start_offset),
        detour,
        records: Records { batches: Vec::new(), bytes: partition.records.unwrap_or_default() },
    }))
}

fn decode_snapshot(answer: FetchSnapshotResponse) -> Result<Response, String> {
    whole(answer.error_code)?;
    let data = single(answer.topics).filter(|data| data.name.as_str() == TOPIC).ok_or(OTHER)?;
    let partition = single(data.partitions).ok_or(OTHER)?;
    let head = head(partition.error_code, partition.current_leader.leader_id, partition.current_leader.leader_epoch);
    let (Ok(size), Ok(position)) = (u64::try_from(partition.size), u64::try_from(partition.position)) else {
        return Ok(Response::FetchSnapshot(SnapshotPart {
            head: Head { refused: head.refused.or(Some(Problem::Other)), ..head },
            id: SnapshotId { end: Offset::NONE, epoch: Epoch::NONE },
            size: 0,
            position: 0,
            bytes: Bytes::new(),
        }));
    };
    let named = &partition.snapshot_id;
    let id = SnapshotId { end: Offset(named.end_offset), epoch: Epoch(named.epoch) };
    Ok(Response::FetchSnapshot(SnapshotPart { head, id, size, position, bytes: partition.unaligned_records }))
}
