//! OffsetFetch (key 9), v1-9.
//!
//! A group's committed offsets. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE, where the version has its errors.
//! * v1 an error of a group is in each row, v2 at the top; all partitions if none is named. v3 throttle time. v5 leader epochs (KIP-320).
//! * v7 only stable offsets, if asked for (KIP-447). v8 many groups (KIP-709). v9 members of the new protocol (KIP-848).
//! * v10, with topic ids, is not served: the message library lacks it.

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::offset_fetch_response::{OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponseTopic};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(9, "OffsetFetch", 1, 9);

/// Fetches offsets.
pub fn handle(_: &Cx, call: &Rc<Call>, request: OffsetFetchRequest) -> Outcome<OffsetFetchResponse> {
    Outcome::Now(unavailable(call, request))
}

fn unavailable(call: &Call, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let error = || call.error(ErrorCode::CoordinatorNotAvailable);
    match call.version {
        0..=1 => {
            let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
                let partitions = topic.partition_indexes.iter().map(|index| {
                    OffsetFetchResponsePartition::default().with_partition_index(*index).with_committed_offset(-1).with_error_code(error())
                });
                let partitions = partitions.collect();
                OffsetFetchResponseTopic::default().with_name(topic.name).with_partitions(partitions)
            });
            OffsetFetchResponse::default().with_topics(topics.collect())
        }
        2..=7 => OffsetFetchResponse::default().with_error_code(error()),
        _ => {
            let groups = request.groups.into_iter();
            let rows = groups.map(|group| OffsetFetchResponseGroup::default().with_group_id(group.group_id).with_error_code(error()));
            OffsetFetchResponse::default().with_groups(rows.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::{text, topic_name};
    use crate::api::testkit::{call, encodes};
    use kafka_protocol::messages::GroupId;
    use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic};

    #[test]
    fn the_error_is_where_the_version_has_it() {
        let request = || {
            let topic = OffsetFetchRequestTopic::default().with_name(topic_name("t")).with_partition_indexes(vec![3]);
            let group = OffsetFetchRequestGroup::default().with_group_id(GroupId(text("g")));
            OffsetFetchRequest::default().with_topics(Some(vec![topic])).with_groups(vec![group])
        };
        encodes(SPEC, |call| unavailable(call, request()));
        let answer = |version| unavailable(&call(SPEC, version), request());
        let row = answer(1).topics[0].partitions[0].clone();
        assert_eq!((row.partition_index, row.committed_offset, row.metadata.as_deref(), row.error_code), (3, -1, Some(""), 15));
        assert_eq!([1, 2, 7, 8].map(|version| answer(version).error_code), [0, 15, 15, 0]);
        assert_eq!([7, 8].map(|version| answer(version).groups.first().map(|group| group.error_code)), [None, Some(15)]);
    }
}
