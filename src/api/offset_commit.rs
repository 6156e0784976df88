//! OffsetCommit (key 8), v2-9.
//!
//! Commits a group's offsets. This broker coordinates none yet: partitions that there are get COORDINATOR_NOT_AVAILABLE, others
//! UNKNOWN_TOPIC_OR_PARTITION.
//! * v3 throttle time. v5 no retention time (KIP-211). v6 leader epochs (KIP-320). v7 static members (KIP-345).
//! * v9 members of the new protocol (KIP-848). v10, with topic ids, is not served: the message library lacks it.

use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::Image;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(8, "OffsetCommit", 2, 9);

/// Commits offsets.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: OffsetCommitRequest) -> Outcome<OffsetCommitResponse> {
    Outcome::Now(unavailable(call, &cx.image(), request))
}

fn unavailable(call: &Call, image: &Image, request: OffsetCommitRequest) -> OffsetCommitResponse {
    let topics = request.topics.into_iter().map(|asked| {
        let topic = image.topic_by_name(&asked.name);
        let partitions = asked.partitions.iter().map(|partition| {
            let index = partition.partition_index;
            let error = match topic.and_then(|topic| topic.partition(index)) {
                Some(_) => ErrorCode::CoordinatorNotAvailable,
                None => ErrorCode::UnknownTopicOrPartition,
            };
            OffsetCommitResponsePartition::default().with_partition_index(index).with_error_code(call.error(error))
        });
        let partitions = partitions.collect();
        OffsetCommitResponseTopic::default().with_name(asked.name).with_partitions(partitions)
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::topic_name;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};
    use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};

    #[test]
    fn what_there_is_not_is_unknown_whoever_coordinates() {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1], &[1])])]);
        let topic = |name: &str| {
            let partitions = [0, 1].map(|index| OffsetCommitRequestPartition::default().with_partition_index(index)).to_vec();
            OffsetCommitRequestTopic::default().with_name(topic_name(name)).with_partitions(partitions)
        };
        let request = || OffsetCommitRequest::default().with_topics(vec![topic("t"), topic("none")]);
        encodes(SPEC, |call| unavailable(call, &image, request()));
        let answer = unavailable(&call(SPEC, 9), &image, request());
        let errors: Vec<Vec<i16>> = answer.topics.iter().map(|topic| topic.partitions.iter().map(|p| p.error_code).collect()).collect();
        assert_eq!(errors, [[15, 3], [3, 3]]);
    }
}
