//! DeleteRecords (key 21), v0-2.
//!
//! Raises the log start of partitions, at most to their high watermark (offset -1), and answers the new start (KIP-107).
//! * v1 throttle time is the client's to keep (KIP-219). v2 flexible.
//! * Not for coordinators' topics, nor for topics that are only compacted.
//! * A partition that is named more than once is answered once, for the last offset named.
//! * Followers do not exist yet, so nobody's log start is waited for and the timeout is moot.

use super::partitions::{Asked, ask_named};
use super::{Call, Cx, Outcome, Spec, terms};
use crate::actors::partition::messages::DeleteRecords;
use crate::core::types::Offset;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse, TopicName};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(21, "DeleteRecords", 0, 2);

/// Asks every partition, then answers by topic.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DeleteRecordsRequest) -> Outcome<DeleteRecordsResponse> {
    let image = cx.image();
    let mut topics: BTreeMap<TopicName, BTreeMap<i32, Offset>> = BTreeMap::new();
    for topic in request.topics {
        let offsets = topics.entry(topic.name).or_default();
        offsets.extend(topic.partitions.iter().map(|row| (row.partition_index, Offset(row.offset))));
    }
    let ask = |topic: &TopicName, index: i32, before: Offset| {
        let asked = || ask_named(cx, &image, topic, index, |reply| DeleteRecords { before, reply });
        match terms::is_internal(topic) && image.topic_by_name(topic).is_some_and(|topic| topic.partition(index).is_some()) {
            true => Asked::Refused(ErrorCode::InvalidTopicException),
            false => asked(),
        }
    };
    let mut asked = Vec::with_capacity(topics.len());
    for (topic, offsets) in topics {
        let rows: Vec<_> = offsets.into_iter().map(|(index, before)| (index, ask(&topic, index, before))).collect();
        asked.push((topic, rows));
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let mut topics = Vec::with_capacity(asked.len());
        for (name, rows) in asked {
            let mut partitions = Vec::with_capacity(rows.len());
            for (index, asked) in rows {
                let row = DeleteRecordsPartitionResult::default().with_partition_index(index);
                partitions.push(match asked.answer(&cx).await {
                    Ok(start) => row.with_low_watermark(start.0),
                    Err(code) => row.with_low_watermark(-1).with_error_code(call.error(code)),
                });
            }
            topics.push(DeleteRecordsTopicResult::default().with_name(name).with_partitions(partitions));
        }
        DeleteRecordsResponse::default().with_topics(topics)
    })
}
