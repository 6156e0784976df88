//! DescribeQuorum (key 55), v0-2 (KIP-595).
//!
//! How the metadata quorum stands: leader, epoch, high watermark, voters and where their logs end.
//! * v1 when a voter fetched last and was caught up (KIP-836). v2 directories, controllers' listeners, messages (KIP-853).

use super::terms::{text, topic_name, uuid};
use super::{Audience, Call, Cx, Outcome, Spec};
use crate::actors::quorum::{Describe, QuorumView};
use crate::config::Config;
use crate::core::controller::Image;
use crate::core::quorum::ReplicaView;
use crate::core::types::BrokerId;
use crate::rt::{Gone, Tell, port};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_quorum_response::{Listener, Node, PartitionData, ReplicaState, TopicData};
use kafka_protocol::messages::{self, DescribeQuorumRequest, DescribeQuorumResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(55, "DescribeQuorum", 0, 2).to(Audience::Everybody).carried();

const METADATA_TOPIC: &str = "__cluster_metadata";

/// Describes the quorum.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeQuorumRequest) -> Outcome<DescribeQuorumResponse> {
    if !names_the_metadata_log(&request) {
        return Outcome::Now(unknown(call, request));
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let (reply, answer) = port();
        cx.broker.quorum.tell(Describe { reply });
        match answer.await {
            Ok(view) => {
                if view.leader != Some(cx.broker.node) {
                    cx.moved();
                }
                let mut answer = respond(&call, &cx.image(), cx.broker.node, &view);
                name_static_voters(&mut answer, &cx.broker.config);
                answer
            }
            Err(Gone) => DescribeQuorumResponse::default()
                .with_error_code(call.error(ErrorCode::UnknownServerError))
                .with_error_message(sentence(ErrorCode::UnknownServerError)),
        }
    })
}

fn names_the_metadata_log(request: &DescribeQuorumRequest) -> bool {
    let [topic] = request.topics.as_slice() else { return false };
    let [partition] = topic.partitions.as_slice() else { return false };
    topic.topic_name.as_str() == METADATA_TOPIC && partition.partition_index == 0
}

fn sentence(error: ErrorCode) -> Option<StrBytes> {
    error.sentence().map(StrBytes::from_static_str)
}

fn unknown(call: &Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
    let error = ErrorCode::UnknownTopicOrPartition;
    let topics = request.topics.into_iter().map(|topic| {
        let rows = topic.partitions.iter().map(|partition| {
            PartitionData::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(call.error(error))
                .with_error_message(sentence(error))
        });
        let rows = rows.collect();
        TopicData::default().with_topic_name(topic.topic_name).with_partitions(rows)
    });
    DescribeQuorumResponse::default().with_topics(topics.collect())
}

fn of_the_metadata_log(partition: PartitionData) -> DescribeQuorumResponse {
    let topic = TopicData::default().with_topic_name(topic_name(METADATA_TOPIC)).with_partitions(vec![partition]);
    DescribeQuorumResponse::default().with_topics(vec![topic])
}

fn respond(call: &Call, image: &Image, node: BrokerId, view: &QuorumView) -> DescribeQuorumResponse {
    // Only the leader knows how far the others are.
    if view.leader != Some(node) {
        let error = ErrorCode::NotLeaderOrFollower;
        return of_the_metadata_log(PartitionData::default().with_error_code(call.error(error)).with_error_message(sentence(error)));
    }
    let state = |seen: &ReplicaView| {
        let ReplicaView { replica, last_fetch, caught_up } = seen;
        let state = ReplicaState::default()
            .with_replica_id(messages::BrokerId(replica.id.0))
            .with_log_end_offset(replica.log_end.0)
            .with_last_fetch_timestamp(last_fetch.map_or(-1, |at| at.0))
            .with_last_caught_up_timestamp(caught_up.map_or(-1, |at| at.0));
        if call.version >= 2 { state.with_replica_directory_id(uuid(replica.directory)) } else { state }
    };
    let partition = PartitionData::default()
        .with_leader_id(messages::BrokerId(node.0))
        .with_leader_epoch(view.epoch.0)
        .with_high_watermark(view.high_watermark.0)
        .with_current_voters(view.voters.iter().map(state).collect())
        .with_observers(view.observers.iter().map(state).collect());
    let answer = of_the_metadata_log(partition);
    if call.version < 2 {
        return answer;
    }
    let nodes = view.voters.iter().map(|voter| {
        let controller = image.controllers().find(|controller| controller.id == voter.replica.id);
        let listeners = controller
            .into_iter()
            .flat_map(|controller| &controller.endpoints)
            .map(|endpoint| Listener::default().with_name(text(&endpoint.name)).with_host(text(&endpoint.host)).with_port(endpoint.port));
        Node::default().with_node_id(messages::BrokerId(voter.replica.id.0)).with_listeners(listeners.collect())
    });
    answer.with_nodes(nodes.collect())
}

/// Controllers that are not in the metadata are where the static configuration says.
fn name_static_voters(answer: &mut DescribeQuorumResponse, config: &Config) {
    let Some(name) = config.endpoints.controller_listeners.first().map(|listener| &listener.name) else { return };
    for node in answer.nodes.iter_mut().filter(|node| node.listeners.is_empty()) {
        let voter = config.endpoints.voters.iter().find(|voter| voter.id == node.node_id.0);
        let listener = voter.map(|voter| Listener::default().with_name(text(name)).with_host(text(&voter.host)).with_port(voter.port));
        node.listeners.extend(listener);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of};
    use crate::core::quorum::VoterView;
    use crate::core::types::{Epoch, Id, Millis, Offset};
    use kafka_protocol::messages::describe_quorum_request;

    fn view(leader: Option<BrokerId>) -> QuorumView {
        let replica = VoterView { id: BrokerId(1), directory: Id(9), log_end: Offset(30) };
        let voters = vec![ReplicaView { replica, last_fetch: Some(Millis(77)), caught_up: Some(Millis(77)) }];
        QuorumView { leader, epoch: Epoch(3), high_watermark: Offset(29), voters, observers: Vec::new() }
    }

    fn answer(call: &Call, leader: Option<BrokerId>) -> DescribeQuorumResponse {
        respond(call, &image_of([broker(1)], []), BrokerId(1), &view(leader))
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, |call| answer(call, Some(BrokerId(1))));
        encodes(SPEC, |call| answer(call, None));
    }

    #[test]
    fn the_leader_tells_how_the_quorum_stands() {
        let answer = answer(&call(SPEC, 2), Some(BrokerId(1)));
        let row = &answer.topics[0].partitions[0];
        assert_eq!((row.leader_id.0, row.leader_epoch, row.high_watermark, row.observers.len()), (1, 3, 29, 0));
        let voter = &row.current_voters[0];
        assert_eq!((voter.replica_id.0, voter.replica_directory_id.as_u128(), voter.log_end_offset), (1, 9, 30));
        assert_eq!((voter.last_fetch_timestamp, voter.last_caught_up_timestamp), (77, 77));
        assert_eq!(answer.nodes[0].node_id.0, 1);
    }

    #[test]
    fn others_refuse() {
        let row = |leader| answer(&call(SPEC, 2), leader).topics[0].partitions[0].clone();
        assert_eq!([row(None), row(Some(BrokerId(2)))].map(|row| row.error_code), [6, 6]);
    }

    #[test]
    fn only_the_metadata_log_has_a_quorum() {
        let request = |topic: &str, partitions: &[i32]| {
            let partition = |index: &i32| describe_quorum_request::PartitionData::default().with_partition_index(*index);
            let partitions = partitions.iter().map(partition).collect();
            let topic = describe_quorum_request::TopicData::default().with_topic_name(topic_name(topic)).with_partitions(partitions);
            DescribeQuorumRequest::default().with_topics(vec![topic])
        };
        assert!(names_the_metadata_log(&request(METADATA_TOPIC, &[0])));
        for bad in [request("t", &[0]), request(METADATA_TOPIC, &[1]), request(METADATA_TOPIC, &[0, 0])] {
            assert!(!names_the_metadata_log(&bad));
            assert!(unknown(&call(SPEC, 0), bad).topics[0].partitions.iter().all(|row| row.error_code == 3));
        }
    }
}
