//! OffsetCommit (key 8), v2-9.
//!
//! Commits a group's offsets. Partitions that there are not are refused with UNKNOWN_TOPIC_OR_PARTITION, whoever coordinates.
//! * v3 throttle time. v5 no retention time (KIP-211). v6 leader epochs (KIP-320). v7 static members (KIP-345).
//! * v9 members of the new protocol (KIP-848). v10, with topic ids, is not served: the message library lacks it.

use super::groups::{commit, each_row, shared, shared_or_none};
use super::terms::topic_name;
use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::Image;
use crate::core::group::Why;
use crate::core::group::request::{Commit, Membership, NewOffset, Rows};
use crate::core::types::{Epoch, Offset};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use std::collections::HashMap;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(8, "OffsetCommit", 2, 9);

/// Commits offsets.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: OffsetCommitRequest) -> Outcome<OffsetCommitResponse> {
    let (known, unknown) = sort(&cx.image(), &request);
    if known.is_empty() {
        return Outcome::Now(respond(call, unknown, Vec::new()));
    }
    let named = known.iter().map(|rows| each_row(rows, |_| ())).collect::<Vec<_>>();
    let question = Commit {
        from: Membership {
            group: shared(&request.group_id),
            member: shared(&request.member_id),
            instance: shared_or_none(request.group_instance_id.as_ref()),
            generation: request.generation_id_or_member_epoch,
        },
        topics: known,
        knows_epochs: call.version >= 9,
        retention: (2..=4).contains(&call.version).then_some(request.retention_time_ms).filter(|ms| *ms >= 0),
    };
    let (call, answer) = (call.clone(), commit(cx, &request.group_id, question));
    Outcome::later(async move {
        let rows = match answer.await {
            Ok(rows) => rows,
            Err(why) => named.iter().map(|rows| each_row(rows, |()| Err(why))).collect(),
        };
        respond(&call, unknown, rows)
    })
}

/// What there is, for the coordinator; and what there is not.
fn sort(image: &Image, request: &OffsetCommitRequest) -> (Vec<Rows<NewOffset>>, Vec<Rows<()>>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for asked in &request.topics {
        let topic = image.topic_by_name(&asked.name);
        let exists = |index: i32| topic.is_some_and(|topic| topic.partition(index).is_some());
        let (good, bad): (Vec<_>, Vec<_>) = asked.partitions.iter().partition(|partition| exists(partition.partition_index));
        let (name, id) = (shared(&asked.name), topic.map(|topic| topic.id).unwrap_or_default());
        if !bad.is_empty() || asked.partitions.is_empty() && topic.is_none() {
            let partitions = bad.iter().map(|partition| (partition.partition_index, ())).collect();
            unknown.push(Rows { topic: name.clone(), id, partitions });
        }
        if !good.is_empty() {
            known.push(Rows { topic: name, id, partitions: good.into_iter().map(new_offset).collect() });
        }
    }
    (known, unknown)
}

fn new_offset(partition: &OffsetCommitRequestPartition) -> (i32, NewOffset) {
    let offset = NewOffset {
        offset: Offset(partition.committed_offset),
        leader_epoch: Epoch(partition.committed_leader_epoch.max(-1)),
        metadata: shared(partition.committed_metadata.as_deref().unwrap_or_default()),
    };
    (partition.partition_index, offset)
}

/// A member of a group that there is not has a wrong generation, as far as old clients know.
fn error(version: i16, why: Why) -> ErrorCode {
    match why {
        Why::GroupIdNotFound if version < 9 => ErrorCode::IllegalGeneration,
        why => why.into(),
    }
}

/// What was unknown comes first, and the rest of such a topic with it.
fn respond(call: &Call, unknown: Vec<Rows<()>>, rows: Vec<Rows<Result<(), Why>>>) -> OffsetCommitResponse {
    let mut topics: Vec<OffsetCommitResponseTopic> = Vec::new();
    let mut by_name: HashMap<_, usize> = HashMap::new();
    let joined = !unknown.is_empty();
    let unknown = unknown.iter().map(|rows| each_row(rows, |()| ErrorCode::UnknownTopicOrPartition));
    let rows = rows.iter().map(|rows| each_row(rows, |result| result.map_or_else(|why| error(call.version, why), |()| ErrorCode::None)));
    for rows in unknown.chain(rows) {
        let partitions = rows.partitions.iter().map(|(index, error)| {
            OffsetCommitResponsePartition::default().with_partition_index(*index).with_error_code(call.error(*error))
        });
        let partitions = partitions.collect();
        match by_name.get(&rows.topic) {
            Some(at) if joined => topics[*at].partitions.extend::<Vec<_>>(partitions),
            _ => {
                by_name.insert(rows.topic.clone(), topics.len());
                topics.push(OffsetCommitResponseTopic::default().with_name(topic_name(&rows.topic)).with_partitions(partitions));
            }
        }
    }
    OffsetCommitResponse::default().with_topics(topics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};
    use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;

    fn topic(name: &str) -> OffsetCommitRequestTopic {
        let partitions = [0, 1].map(|index| OffsetCommitRequestPartition::default().with_partition_index(index).with_committed_offset(7)).to_vec();
        OffsetCommitRequestTopic::default().with_name(topic_name(name)).with_partitions(partitions)
    }

    #[test]
    fn what_there_is_not_is_unknown_whoever_coordinates() {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1], &[1])])]);
        let request = OffsetCommitRequest::default().with_topics(vec![topic("t"), topic("none")]);
        let (known, unknown) = sort(&image, &request);
        let new = NewOffset { offset: Offset(7), leader_epoch: Epoch::NONE, metadata: "".into() };
        assert_eq!(known, [Rows { topic: "t".into(), id: crate::core::types::Id(100), partitions: vec![(0, new)] }]);
        let rows = || known.iter().map(|rows| each_row(rows, |_| Err(Why::RebalanceInProgress))).collect::<Vec<_>>();
        encodes(SPEC, |call| respond(call, unknown.clone(), rows()));
        let answer = respond(&call(SPEC, 9), unknown.clone(), rows());
        let errors: Vec<(&str, Vec<(i32, i16)>)> = answer
            .topics
            .iter()
            .map(|topic| (topic.name.as_str(), topic.partitions.iter().map(|p| (p.partition_index, p.error_code)).collect()))
            .collect();
        assert_eq!(errors, [("t", vec![(1, 3), (0, 27)]), ("none", vec![(0, 3), (1, 3)])]);
    }

    #[test]
    fn without_unknown_partitions_the_answer_has_the_shape_of_the_request() {
        let rows = |error: Option<Why>| Rows { topic: "t".into(), id: Default::default(), partitions: vec![(0, error.map_or(Ok(()), Err))] };
        let answer = respond(&call(SPEC, 9), Vec::new(), vec![rows(None), rows(Some(Why::UnknownMemberId))]);
        assert_eq!(answer.topics.iter().map(|topic| topic.partitions[0].error_code).collect::<Vec<_>>(), [0, 25]);
        assert_eq!([8, 9].map(|version| error(version, Why::GroupIdNotFound)), [ErrorCode::IllegalGeneration, ErrorCode::GroupIdNotFound]);
    }
}
