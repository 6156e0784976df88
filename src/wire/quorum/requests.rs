//! Requests of the metadata quorum: ours as bytes, others' as values of the rules.

use super::{TOPIC, id, node, single, topic, uuid};
use crate::core::quorum::message::{BeginEpoch, EndEpoch, FetchRequest, Request, SnapshotRequest, VoteRequest};
use crate::core::quorum::records::SnapshotId;
use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, Offset};
use bytes::BytesMut;
use kafka_protocol::messages::{
    self, begin_quorum_epoch_request, end_quorum_epoch_request, fetch_request, fetch_snapshot_request, vote_request,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use std::ops::RangeInclusive;

/// Who asks, besides what the rules know: the cluster's id, and this node's listener for the quorum as others reach it.
#[derive(Debug, Clone)]
pub struct Asking {
    /// Id of the cluster.
    pub cluster_id: String,
    /// Name, host and port.
    pub listener: (String, String, u16),
}

/// The API key of a request.
pub fn key(request: &Request) -> i16 {
    match request {
        Request::Fetch(_) => 1,
        Request::Vote(_) => 52,
        Request::BeginEpoch(_) => 53,
        Request::EndEpoch(_) => 54,
        Request::FetchSnapshot(_) => 59,
    }
}

/// The versions in which a request can be said.
pub fn versions(request: &Request) -> RangeInclusive<i16> {
    match request {
        // Topics by id, which is how a quorum names its own.
        Request::Fetch(_) => 13..=18,
        Request::Vote(vote) if vote.pre_vote => 2..=2,
        Request::Vote(_) => 0..=2,
        _ => 0..=1,
    }
}

/// The body of a request. Errors: the message crate cannot say it in that version.
pub fn encode(request: &Request, version: i16, asking: &Asking) -> Result<BytesMut, String> {
    let mut out = BytesMut::new();
    let cluster = Some(StrBytes::from_string(asking.cluster_id.clone()));
    let done = match request {
        Request::Vote(vote) => vote_body(vote, version, cluster).encode(&mut out, version),
        Request::BeginEpoch(begin) => begin_body(begin, version, cluster, asking).encode(&mut out, version),
        Request::EndEpoch(end) => end_body(end, version, cluster).encode(&mut out, version),
        Request::Fetch(fetch) => fetch_body(fetch, version, cluster).encode(&mut out, version),
        Request::FetchSnapshot(fetch) => snapshot_body(fetch, version, cluster).encode(&mut out, version),
    };
    done.map(|()| out).map_err(|e| e.to_string())
}

fn vote_body(vote: &VoteRequest, version: i16, cluster: Option<StrBytes>) -> messages::VoteRequest {
    let mut partition = vote_request::PartitionData::default()
        .with_replica_epoch(vote.epoch.0)
        .with_replica_id(node(vote.candidate))
        .with_last_offset_epoch(vote.last_epoch.0)
        .with_last_offset(vote.log_end.0);
    if version >= 1 {
        let voter = vote.voter.map_or(Id::ZERO, |(_, directory)| directory);
        partition = partition.with_replica_directory_id(uuid(vote.directory)).with_voter_directory_id(uuid(voter));
    }
    if version >= 2 {
        partition = partition.with_pre_vote(vote.pre_vote);
    }
    let data = vote_request::TopicData::default().with_topic_name(topic()).with_partitions(vec![partition]);
    let body = messages::VoteRequest::default().with_cluster_id(cluster).with_topics(vec![data]);
    match vote.voter {
        Some((voter, _)) if version >= 1 => body.with_voter_id(node(voter)),
        _ => body,
    }
}

fn begin_body(begin: &BeginEpoch, version: i16, cluster: Option<StrBytes>, asking: &Asking) -> messages::BeginQuorumEpochRequest {
    let mut partition =
        begin_quorum_epoch_request::PartitionData::default().with_leader_id(node(begin.leader)).with_leader_epoch(begin.epoch.0);
    if let Some((_, directory)) = begin.voter.filter(|_| version >= 1) {
        partition = partition.with_voter_directory_id(uuid(directory));
    }
    let data = begin_quorum_epoch_request::TopicData::default().with_topic_name(topic()).with_partitions(vec![partition]);
    let mut body = messages::BeginQuorumEpochRequest::default().with_cluster_id(cluster).with_topics(vec![data]);
    if version >= 1 {
        let (name, host, port) = asking.listener.clone();
        let endpoint = begin_quorum_epoch_request::LeaderEndpoint::default()
            .with_name(StrBytes::from_string(name))
            .with_host(StrBytes::from_string(host))
            .with_port(port);
        body = body.with_leader_endpoints(vec![endpoint]);
        if let Some((voter, _)) = begin.voter {
            body = body.with_voter_id(node(voter));
        }
    }
    body
}

fn end_body(end: &EndEpoch, version: i16, cluster: Option<StrBytes>) -> messages::EndQuorumEpochRequest {
    let partition = end_quorum_epoch_request::PartitionData::default().with_leader_id(node(end.leader)).with_leader_epoch(end.epoch.0);
    let partition = if version == 0 {
        partition.with_preferred_successors(end.successors.iter().map(|(id, _)| id.0).collect())
    } else {
        let candidate = |(id, directory): &(BrokerId, DirectoryId)| {
            end_quorum_epoch_request::ReplicaInfo::default().with_candidate_id(node(*id)).with_candidate_directory_id(uuid(*directory))
        };
        partition.with_preferred_candidates(end.successors.iter().map(candidate).collect())
    };
    let data = end_quorum_epoch_request::TopicData::default().with_topic_name(topic()).with_partitions(vec![partition]);
    messages::EndQuorumEpochRequest::default().with_cluster_id(cluster).with_topics(vec![data])
}

fn fetch_body(fetch: &FetchRequest, version: i16, cluster: Option<StrBytes>) -> messages::FetchRequest {
    let mut partition = fetch_request::FetchPartition::default()
        .with_current_leader_epoch(fetch.epoch.0)
        .with_fetch_offset(fetch.offset.0)
        .with_last_fetched_epoch(fetch.last_epoch.0)
        .with_log_start_offset(-1)
        .with_partition_max_bytes(0);
    if version >= 17 {
        partition = partition.with_replica_directory_id(uuid(fetch.directory));
    }
    if let Some(known) = fetch.high_watermark.filter(|_| version >= 18) {
        partition = partition.with_high_watermark(known.0);
    }
    let wanted = fetch_request::FetchTopic::default().with_topic_id(uuid(Id::ONE)).with_partitions(vec![partition]);
    let body = messages::FetchRequest::default()
        .with_cluster_id(cluster)
        .with_max_wait_ms(fetch.max_wait as i32)
        .with_min_bytes(0)
        .with_max_bytes(fetch.max_bytes.min(i32::MAX as u32) as i32)
        .with_session_epoch(-1)
        .with_topics(vec![wanted]);
    if version >= 15 {
        body.with_replica_state(fetch_request::ReplicaState::default().with_replica_id(node(fetch.replica)))
    } else {
        body.with_replica_id(node(fetch.replica))
    }
}

fn snapshot_body(fetch: &SnapshotRequest, version: i16, cluster: Option<StrBytes>) -> messages::FetchSnapshotRequest {
    let named = fetch_snapshot_request::SnapshotId::default().with_end_offset(fetch.id.end.0).with_epoch(fetch.id.epoch.0);
    let mut partition = fetch_snapshot_request::PartitionSnapshot::default()
        .with_current_leader_epoch(fetch.epoch.0)
        .with_snapshot_id(named)
        .with_position(fetch.position as i64);
    if version >= 1 {
        partition = partition.with_replica_directory_id(uuid(fetch.directory));
    }
    let wanted = fetch_snapshot_request::TopicSnapshot::default().with_name(topic()).with_partitions(vec![partition]);
    messages::FetchSnapshotRequest::default()
        .with_cluster_id(cluster)
        .with_replica_id(node(fetch.replica))
        .with_max_bytes(fetch.max_bytes.min(i32::MAX as u32) as i32)
        .with_topics(vec![wanted])
}

fn voter(voter: messages::BrokerId, directory: uuid::Uuid) -> Option<(BrokerId, DirectoryId)> {
    (voter.0 >= 0).then(|| (BrokerId(voter.0), id(directory)))
}

/// A vote that is asked for; `None`: another topic, or several.
pub fn vote(request: messages::VoteRequest) -> Option<Request> {
    let data = single(request.topics).filter(|data| data.topic_name.as_str() == TOPIC)?;
    let partition = single(data.partitions).filter(|partition| partition.partition_index == 0)?;
    Some(Request::Vote(VoteRequest {
        voter: voter(request.voter_id, partition.voter_directory_id),
        candidate: BrokerId(partition.replica_id.0),
        directory: id(partition.replica_directory_id),
        epoch: Epoch(partition.replica_epoch),
        last_epoch: Epoch(partition.last_offset_epoch),
        log_end: Offset(partition.last_offset),
        pre_vote: partition.pre_vote,
    }))
}

/// A leader that shows itself; `None`: of another topic, or of several.
pub fn begin(request: messages::BeginQuorumEpochRequest) -> Option<Request> {
    let data = single(request.topics).filter(|data| data.topic_name.as_str() == TOPIC)?;
    let partition = single(data.partitions).filter(|partition| partition.partition_index == 0)?;
    let voter = voter(request.voter_id, partition.voter_directory_id);
    Some(Request::BeginEpoch(BeginEpoch { voter, leader: BrokerId(partition.leader_id.0), epoch: Epoch(partition.leader_epoch) }))
}

/// A leader that goes; `None`: of another topic, or of several.
pub fn end(request: messages::EndQuorumEpochRequest) -> Option<Request> {
    let data = single(request.topics).filter(|data| data.topic_name.as_str() == TOPIC)?;
    let partition = single(data.partitions).filter(|partition| partition.partition_index == 0)?;
    let candidates = partition.preferred_candidates.iter().map(|known| (BrokerId(known.candidate_id.0), id(known.candidate_directory_id)));
    let old = partition.preferred_successors.iter().map(|id| (BrokerId(*id), Id::ZERO));
    let successors = candidates.chain(old).collect();
    Some(Request::EndEpoch(EndEpoch { leader: BrokerId(partition.leader_id.0), epoch: Epoch(partition.leader_epoch), successors }))
}

/// A fetch of the metadata log; `None`: of something else. `version` says where the fetcher names itself.
pub fn fetch(request: messages::FetchRequest, version: i16) -> Option<Request> {
    let wanted = single(request.topics).filter(|wanted| id(wanted.topic_id) == Id::ONE)?;
    let partition = single(wanted.partitions).filter(|partition| partition.partition == 0)?;
    let replica = if version >= 15 { request.replica_state.replica_id } else { request.replica_id };
    Some(Request::Fetch(FetchRequest {
        replica: BrokerId(replica.0),
        directory: id(partition.replica_directory_id),
        epoch: Epoch(partition.current_leader_epoch),
        offset: Offset(partition.fetch_offset),
        last_epoch: Epoch(partition.last_fetched_epoch),
        max_wait: i64::from(request.max_wait_ms),
        max_bytes: request.max_bytes.max(0) as u32,
        high_watermark: (version >= 18 && partition.high_watermark != i64::MAX).then_some(Offset(partition.high_watermark)),
    }))
}

/// A part of a snapshot that is asked for; `None`: of another topic, or of several.
pub fn snapshot(request: messages::FetchSnapshotRequest) -> Option<Request> {
    let wanted = single(request.topics).filter(|wanted| wanted.name.as_str() == TOPIC)?;
    let partition = single(wanted.partitions).filter(|partition| partition.partition == 0)?;
    let named = &partition.snapshot_id;
    Some(Request::FetchSnapshot(SnapshotRequest {
        replica: BrokerId(request.replica_id.0),
        directory: id(partition.replica_directory_id),
        epoch: Epoch(partition.current_leader_epoch),
        id: SnapshotId { end: Offset(named.end_offset), epoch: Epoch(named.epoch) },
        // A negative position lies outside of every snapshot.
        position: u64::try_from(partition.position).unwrap_or(u64::MAX),
        max_bytes: request.max_bytes.max(0) as u32,
    }))
}
