//! FetchSnapshot (key 59), v0-1 (KIP-630).
//!
//! A node of the metadata quorum asks its leader for a part of a snapshot, in bytes.
//! * v1 the node's directory id, and where the leader listens (KIP-853).

use super::quorum::{ask, is_foreign, leader_of};
use super::{Audience, Call, Cx, Outcome, Spec};
use crate::core::quorum::message::Response;
use crate::wire::error::ErrorCode;
use crate::wire::quorum as wire;
use kafka_protocol::messages::fetch_snapshot_response::{PartitionSnapshot, TopicSnapshot};
use kafka_protocol::messages::{FetchSnapshotRequest, FetchSnapshotResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(59, "FetchSnapshot", 0, 1).to(Audience::Controllers);

/// Asks the quorum.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: FetchSnapshotRequest) -> Outcome<FetchSnapshotResponse> {
    if is_foreign(cx, request.cluster_id.as_ref()) {
        let refused = FetchSnapshotResponse::default().with_error_code(call.error(ErrorCode::InconsistentClusterId));
        return Outcome::Now(refused);
    }
    let unknown = unknown(call, &request);
    let Some(request) = wire::snapshot(request) else { return Outcome::Now(unknown) };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask(&cx, request).await {
            Ok(Response::FetchSnapshot(part)) => {
                if let Some(problem) = part.head.refused {
                    call.error(problem.into());
                }
                let leader = leader_of(&cx, part.head);
                wire::snapshot_answer(part, leader.as_ref(), call.version)
            }
            _ => FetchSnapshotResponse::default().with_error_code(call.error(ErrorCode::UnknownServerError)),
        }
    })
}

/// The answer to who asks for another topic: each partition is unknown.
fn unknown(call: &Call, request: &FetchSnapshotRequest) -> FetchSnapshotResponse {
    let row = |index: i32| PartitionSnapshot::default().with_index(index).with_error_code(ErrorCode::UnknownTopicOrPartition as i16);
    let topics = request.topics.iter().map(|topic| {
        let rows = topic.partitions.iter().map(|partition| row(partition.partition)).collect();
        TopicSnapshot::default().with_name(topic.name.clone()).with_partitions(rows)
    });
    let topics: Vec<_> = topics.collect();
    let ours = topics.len() == 1 && topics[0].name.as_str() == wire::TOPIC;
    if !ours {
        call.error(ErrorCode::UnknownTopicOrPartition);
    }
    FetchSnapshotResponse::default().with_topics(topics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::quorum::message::{Head, SnapshotPart};
    use crate::core::quorum::records::SnapshotId;
    use crate::core::types::{BrokerId, Epoch, Offset};
    use bytes::Bytes;
    use kafka_protocol::messages::fetch_snapshot_request;

    #[test]
    fn every_version_can_be_written() {
        let head = Head { refused: None, epoch: Epoch(3), leader: Some(BrokerId(1)) };
        let id = SnapshotId { end: Offset(9), epoch: Epoch(2) };
        let part = SnapshotPart { head, id, size: 10, position: 3, bytes: Bytes::from_static(b"part") };
        let leader = wire::Endpoint { node: BrokerId(1), host: "h".into(), port: 9093 };
        encodes(SPEC, |call| wire::snapshot_answer(part.clone(), Some(&leader), call.version));
    }

    #[test]
    fn other_topics_are_unknown() {
        let partitions = vec![fetch_snapshot_request::PartitionSnapshot::default().with_partition(7)];
        let topic = fetch_snapshot_request::TopicSnapshot::default().with_partitions(partitions);
        let answer = unknown(&call(SPEC, 0), &FetchSnapshotRequest::default().with_topics(vec![topic]));
        assert_eq!((answer.topics[0].partitions[0].index, answer.topics[0].partitions[0].error_code), (7, 3));
    }
}
