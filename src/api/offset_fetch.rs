//! OffsetFetch (key 9), v1-9.
//!
//! Groups' committed offsets; -1 where there is none.
//! * v1 an error of a group is in each row, v2 at the top; all partitions if none is named. v3 throttle time. v5 leader epochs (KIP-320).
//! * v7 only stable offsets, if asked for (KIP-447). v8 many groups (KIP-709). v9 members of the new protocol (KIP-848).
//! * v10, with topic ids, is not served: the message library lacks it.

use super::groups::{fetch, shared, shared_or_none};
use super::terms::{text, topic_name};
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::request::{Fetch, Rows};
use crate::core::group::{CommittedOffset, Why};
use crate::core::types::{Epoch, Offset};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(9, "OffsetFetch", 1, 9);

/// What became of a question about one group.
type Fetched = Result<Vec<Rows<Option<CommittedOffset>>>, Why>;

/// Fetches offsets.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: OffsetFetchRequest) -> Outcome<OffsetFetchResponse> {
    let questions = questions(call.version, &request);
    let asked: Vec<_> = questions.iter().map(|question| fetch(cx, &question.group, question.clone())).collect();
    let call = call.clone();
    Outcome::later(async move {
        let mut answers = Vec::with_capacity(questions.len());
        for (question, answer) in questions.into_iter().zip(asked) {
            answers.push((question, answer.await));
        }
        respond(&call, answers)
    })
}

/// One for each group that is asked about.
fn questions(version: i16, request: &OffsetFetchRequest) -> Vec<Fetch> {
    let rows = |name: &str, indexes: &[i32]| Rows {
        topic: shared(name),
        id: Default::default(),
        partitions: indexes.iter().map(|index| (*index, ())).collect(),
    };
    let require_stable = request.require_stable;
    if version >= 8 {
        let of = |group: &kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup| Fetch {
            group: shared(&group.group_id),
            topics: group.topics.as_ref().map(|topics| topics.iter().map(|topic| rows(&topic.name, &topic.partition_indexes)).collect()),
            require_stable,
            member: shared_or_none(group.member_id.as_ref()),
            epoch: group.member_epoch,
        };
        return request.groups.iter().map(of).collect();
    }
    let topics = request.topics.as_ref().map(|topics| topics.iter().map(|topic| rows(&topic.name, &topic.partition_indexes)).collect());
    vec![Fetch { group: shared(&request.group_id), topics, require_stable, member: None, epoch: -1 }]
}

/// Old consumers ask again after NOT_COORDINATOR, and do not know that a coordinator may be unavailable.
fn error(why: Why) -> ErrorCode {
    match why {
        Why::CoordinatorNotAvailable => ErrorCode::NotCoordinator,
        why => why.into(),
    }
}

/// Offset, leader epoch and metadata.
fn parts(committed: Option<&CommittedOffset>) -> (i64, i32, Option<StrBytes>) {
    match committed {
        Some(committed) => (committed.offset.0, committed.leader_epoch.0, Some(text(&committed.metadata))),
        None => (Offset::NONE.0, Epoch::NONE.0, Some(StrBytes::default())),
    }
}

fn respond(call: &Call, answers: Vec<(Fetch, Fetched)>) -> OffsetFetchResponse {
    if call.version < 8 {
        let mut answers = answers;
        let (question, fetched) = answers.pop().expect("one question for the one group of such a request");
        return respond_to_one(call, &question, fetched);
    }
    let groups = answers.into_iter().map(|(question, fetched)| {
        let group = OffsetFetchResponseGroup::default().with_group_id(text(&question.group).into());
        match fetched {
            Ok(topics) => group.with_topics(topics.iter().map(|rows| new_topic(call, rows)).collect()),
            Err(why) => group.with_error_code(call.error(error(why))),
        }
    });
    OffsetFetchResponse::default().with_groups(groups.collect())
}

fn new_topic(call: &Call, rows: &Rows<Option<CommittedOffset>>) -> OffsetFetchResponseTopics {
    let partitions = rows.partitions.iter().map(|(index, committed)| {
        let (offset, epoch, metadata) = parts(committed.as_ref());
        OffsetFetchResponsePartitions::default()
            .with_partition_index(*index)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(epoch)
            .with_metadata(metadata)
            .with_error_code(call.error(ErrorCode::None))
    });
    OffsetFetchResponseTopics::default().with_name(topic_name(&rows.topic)).with_partitions(partitions.collect())
}

fn respond_to_one(call: &Call, question: &Fetch, fetched: Fetched) -> OffsetFetchResponse {
    let (rows, failed) = match fetched {
        Ok(rows) => (rows, ErrorCode::None),
        Err(why) if call.version < 2 => {
            let asked = question.topics.iter().flatten();
            (asked.map(|rows| super::groups::each_row(rows, |()| None)).collect(), error(why))
        }
        Err(why) => return OffsetFetchResponse::default().with_error_code(call.error(error(why))),
    };
    let topics = rows.iter().map(|rows| {
        let partitions = rows.partitions.iter().map(|(index, committed)| {
            let (offset, epoch, metadata) = parts(committed.as_ref());
            OffsetFetchResponsePartition::default()
                .with_partition_index(*index)
                .with_committed_offset(offset)
                .with_committed_leader_epoch(if call.version >= 5 { epoch } else { Epoch::NONE.0 })
                .with_metadata(metadata)
                .with_error_code(call.error(failed))
        });
        OffsetFetchResponseTopic::default().with_name(topic_name(&rows.topic)).with_partitions(partitions.collect())
    });
    OffsetFetchResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::types::Millis;
    use std::sync::Arc;
    use kafka_protocol::messages::GroupId;
    use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics};

    fn request() -> OffsetFetchRequest {
        let topic = OffsetFetchRequestTopic::default().with_name(topic_name("t")).with_partition_indexes(vec![3]);
        let topics = OffsetFetchRequestTopics::default().with_name(topic_name("t")).with_partition_indexes(vec![3]);
        let group = |name| OffsetFetchRequestGroup::default().with_group_id(GroupId(text(name)));
        OffsetFetchRequest::default()
            .with_group_id(GroupId(text("g")))
            .with_topics(Some(vec![topic]))
            .with_groups(vec![group("g").with_topics(Some(vec![topics])), group("h").with_topics(None)])
    }

    fn answer(call: &Call, why: Option<Why>) -> OffsetFetchResponse {
        let committed = CommittedOffset {
            offset: Offset(9),
            leader_epoch: Epoch(2),
            metadata: Arc::from("note"),
            committed: Millis(0),
            expires: None,
            topic_id: Default::default(),
        };
        let rows = |question: &Fetch| question.topics.iter().flatten().map(|rows| super::super::groups::each_row(rows, |()| Some(committed.clone()))).collect();
        let answers = questions(call.version, &request()).into_iter();
        respond(call, answers.map(|question| (question.clone(), why.map_or_else(|| Ok(rows(&question)), Err))).collect())
    }

    #[test]
    fn the_error_is_where_the_version_has_it() {
        encodes(SPEC, |call| answer(call, Some(Why::LoadInProgress)));
        let answer = |version| answer(&call(SPEC, version), Some(Why::LoadInProgress));
        let row = answer(1).topics[0].partitions[0].clone();
        assert_eq!((row.partition_index, row.committed_offset, row.metadata.as_deref(), row.error_code), (3, -1, Some(""), 14));
        assert_eq!([1, 2, 7, 8].map(|version| answer(version).error_code), [0, 14, 14, 0]);
        assert_eq!([7, 8].map(|version| answer(version).groups.first().map(|group| group.error_code)), [None, Some(14)]);
    }

    #[test]
    fn offsets_are_in_every_version() {
        encodes(SPEC, |call| answer(call, None));
        for version in 1..=7 {
            let answer = answer(&call(SPEC, version), None);
            let row = &answer.topics[0].partitions[0];
            let epoch = if version >= 5 { 2 } else { -1 };
            assert_eq!((row.committed_offset, row.committed_leader_epoch, row.metadata.as_deref()), (9, epoch, Some("note")), "v{version}");
        }
        let answer = answer(&call(SPEC, 9), None);
        let rows = |at: usize| answer.groups[at].topics.iter().map(|topic| topic.partitions[0].committed_offset).collect::<Vec<_>>();
        assert_eq!((rows(0), rows(1)), (vec![9], vec![]));
    }

    #[test]
    fn a_coordinator_that_cannot_write_is_to_be_looked_for_again() {
        assert_eq!(error(Why::CoordinatorNotAvailable), ErrorCode::NotCoordinator);
    }
}
