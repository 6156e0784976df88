//! OffsetForLeaderEpoch (key 23), v2-4.
//!
//! Where a leader epoch ends in this leader's log: consumers and followers find with it what they must forget (KIP-101, KIP-320).
//! * v2 the asker's own leader epoch is checked. v3 replica id, so that consumers may ask (KIP-392). v4 flexible.
//! * An epoch that is not known is no error: epoch -1 and offset -1.

use super::partitions::ask_named;
use super::{Call, Cx, Outcome, Spec};
use crate::actors::partition::messages::EpochEnd;
use crate::core::types::Epoch;
use kafka_protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(23, "OffsetForLeaderEpoch", 2, 4);

/// Asks every partition, then answers in the order of the request.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: OffsetForLeaderEpochRequest) -> Outcome<OffsetForLeaderEpochResponse> {
    let image = cx.image();
    let mut asked = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let ask = |row: &kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition| {
            let (current_epoch, epoch) = (Epoch(row.current_leader_epoch), Epoch(row.leader_epoch));
            ask_named(cx, &image, &topic.topic, row.partition, |reply| EpochEnd { current_epoch, epoch, reply })
        };
        let rows: Vec<_> = topic.partitions.iter().map(|row| (row.partition, ask(row))).collect();
        asked.push((topic.topic, rows));
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let mut topics = Vec::with_capacity(asked.len());
        for (name, rows) in asked {
            let mut partitions = Vec::with_capacity(rows.len());
            for (index, asked) in rows {
                let row = EpochEndOffset::default().with_partition(index);
                partitions.push(match asked.answer(&cx).await {
                    Ok(Some((epoch, end))) => row.with_leader_epoch(epoch.0).with_end_offset(end.0),
                    Ok(None) => row,
                    Err(code) => row.with_error_code(call.error(code)),
                });
            }
            topics.push(OffsetForLeaderTopicResult::default().with_topic(name).with_partitions(partitions));
        }
        OffsetForLeaderEpochResponse::default().with_topics(topics)
    })
}
