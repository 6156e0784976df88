//! ListOffsets (key 2), v1-10.
//!
//! Finds the offset at a timestamp, or one of the special ones: latest (-1), earliest (-2), of the largest timestamp (-3).
//! * v2 isolation level, throttle time (KIP-98). v4 leader epochs both ways (KIP-320). v5 OFFSET_NOT_AVAILABLE (KIP-207). v6 flexible.
//! * v7 largest timestamp (KIP-734). v8 earliest local (-4, KIP-405). v9 latest tiered (-5, KIP-1005). v10 timeout (KIP-1075).
//! * Nothing is tiered here: -4 is the log start, -5 answers -1 as Kafka does for a topic without remote storage, and the timeout is moot.
//! * A partition that is named twice is answered once, with INVALID_REQUEST.

use super::partitions::{Asked, ask_named};
use super::{Call, Cx, Outcome, Spec};
use crate::actors::partition::messages::{FoundOffset, ListOffset, OffsetQuery};
use crate::core::types::{BrokerId, Epoch, Isolation, Millis, Offset, Reader};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::list_offsets_request::ListOffsetsTopic;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse, TopicName};
use std::collections::HashMap;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(2, "ListOffsets", 1, 10);

/// What one row asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// The partition knows.
    Ask(OffsetQuery),
    /// -5: nothing is tiered.
    Tiered,
    /// A special timestamp that this version does not have.
    Unsupported,
}

/// Index of a partition, whether it was asked about the tier, and the question to it.
type Row = (i32, bool, Asked<Option<FoundOffset>>);

fn question(timestamp: i64, version: i16) -> Question {
    match timestamp {
        0.. => Question::Ask(OffsetQuery::At(Millis(timestamp))),
        -1 => Question::Ask(OffsetQuery::Latest),
        -2 => Question::Ask(OffsetQuery::Earliest),
        -3 if version >= 7 => Question::Ask(OffsetQuery::MaxTimestamp),
        -4 if version >= 8 => Question::Ask(OffsetQuery::Earliest),
        -5 if version >= 9 => Question::Tiered,
        _ => Question::Unsupported,
    }
}

/// Asks every partition, then answers in the order of the request.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ListOffsetsRequest) -> Outcome<ListOffsetsResponse> {
    let image = cx.image();
    let isolation = if request.isolation_level == 1 { Isolation::ReadCommitted } else { Isolation::ReadUncommitted };
    let reader = match request.replica_id.0 {
        -1 => Reader::Consumer(isolation),
        replica => Reader::Follower(BrokerId(replica)),
    };
    let mut seen = times_named(&request.topics);
    let mut asked: Vec<(TopicName, Vec<Row>)> = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut rows = Vec::with_capacity(topic.partitions.len());
        for row in topic.partitions {
            let index = row.partition_index;
            let times = seen.get_mut(&(topic.name.clone(), index)).map_or(1, |times| std::mem::replace(times, 0));
            let ask = |query| {
                let current_epoch = Epoch(row.current_leader_epoch);
                ask_named(cx, &image, &topic.name, index, |reply| ListOffset { query, reader, current_epoch, reply })
            };
            match (times, question(row.timestamp, call.version)) {
                (0, _) => {}
                (1, Question::Ask(query)) => rows.push((index, false, ask(query))),
                // The leadership is checked all the same.
                (1, Question::Tiered) => rows.push((index, true, ask(OffsetQuery::Earliest))),
                (1, Question::Unsupported) => rows.push((index, false, Asked::Refused(ErrorCode::UnsupportedVersion))),
                _ => rows.push((index, false, Asked::Refused(ErrorCode::InvalidRequest))),
            }
        }
        asked.push((topic.name, rows));
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let mut topics = Vec::with_capacity(asked.len());
        for (name, rows) in asked {
            let mut partitions = Vec::with_capacity(rows.len());
            for (index, tiered, asked) in rows {
                let found = asked.answer(&cx).await.map(|found| found.filter(|_| !tiered));
                partitions.push(row(&call, index, found));
            }
            if !partitions.is_empty() {
                topics.push(ListOffsetsTopicResponse::default().with_name(name).with_partitions(partitions));
            }
        }
        ListOffsetsResponse::default().with_topics(topics)
    })
}

/// How often each partition is named.
fn times_named(topics: &[ListOffsetsTopic]) -> HashMap<(TopicName, i32), u32> {
    let mut times = HashMap::new();
    for topic in topics {
        for row in &topic.partitions {
            *times.entry((topic.name.clone(), row.partition_index)).or_insert(0) += 1;
        }
    }
    times
}

fn row(call: &Call, index: i32, found: Result<Option<FoundOffset>, ErrorCode>) -> ListOffsetsPartitionResponse {
    let row = ListOffsetsPartitionResponse::default().with_partition_index(index);
    match found {
        Ok(found) => {
            let found = found.unwrap_or(FoundOffset { offset: Offset::NONE, timestamp: Millis(-1), epoch: Epoch::NONE });
            let epoch = if call.version >= 4 { found.epoch } else { Epoch::NONE };
            row.with_timestamp(found.timestamp.0).with_offset(found.offset.0).with_leader_epoch(epoch.0)
        }
        Err(code) => row.with_error_code(call.error(code)).with_timestamp(-1).with_offset(-1).with_leader_epoch(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_timestamps_need_their_version() {
        let table = [
            (0, 1, Question::Ask(OffsetQuery::At(Millis(0)))),
            (-1, 1, Question::Ask(OffsetQuery::Latest)),
            (-2, 1, Question::Ask(OffsetQuery::Earliest)),
            (-3, 6, Question::Unsupported),
            (-3, 7, Question::Ask(OffsetQuery::MaxTimestamp)),
            (-4, 7, Question::Unsupported),
            (-4, 8, Question::Ask(OffsetQuery::Earliest)),
            (-5, 8, Question::Unsupported),
            (-5, 9, Question::Tiered),
            (-6, 10, Question::Unsupported),
            (i64::MIN, 10, Question::Unsupported),
        ];
        for (timestamp, version, expected) in table {
            assert_eq!(question(timestamp, version), expected, "{timestamp} in v{version}");
        }
    }
}
