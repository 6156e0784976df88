//! DescribeProducers (key 61), v0.
//!
//! The idempotent producers that a replica remembers, for finding transactions that hang (KIP-664). Any replica answers, also one that does
//! not lead. There are no transactions: no producer has a coordinator epoch or an open transaction.

use super::partitions::{Asked, ask_named};
use super::{Call, Cx, Outcome, Spec, terms};
use crate::actors::partition::messages::ListProducers;
use crate::core::controller::{Image, check_name};
use crate::core::producer::ProducerView;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(61, "DescribeProducers", 0, 0);

/// Asks every partition, then answers in the order of the request.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeProducersRequest) -> Outcome<DescribeProducersResponse> {
    let image = cx.image();
    let mut asked = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let refused = topic_error(&image, &topic.name);
        let ask = |index| match refused {
            Some((code, _)) => Asked::Refused(code),
            None => ask_named(cx, &image, &topic.name, index, |reply| ListProducers { reply }),
        };
        let rows: Vec<_> = topic.partition_indexes.iter().map(|index| (*index, ask(*index))).collect();
        asked.push((topic.name, refused.and_then(|(_, message)| message), rows));
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let mut topics = Vec::with_capacity(asked.len());
        for (name, message, rows) in asked {
            let mut partitions = Vec::with_capacity(rows.len());
            for (index, asked) in rows {
                let row = PartitionResponse::default().with_partition_index(index);
                partitions.push(match asked.answer(&cx).await {
                    Ok(producers) => row.with_active_producers(producers.into_iter().map(state).collect()),
                    Err(code) => row.with_error_code(call.error(code)).with_error_message(message.clone()),
                });
            }
            topics.push(TopicResponse::default().with_name(name).with_partitions(partitions));
        }
        DescribeProducersResponse::default().with_topics(topics)
    })
}

/// What is wrong with the topic as a whole.
fn topic_error(image: &Image, name: &str) -> Option<(ErrorCode, Option<StrBytes>)> {
    if let Err(refusal) = check_name(name) {
        return Some((refusal.why.into(), refusal.message.as_deref().map(terms::text)));
    }
    let unknown = ErrorCode::UnknownTopicOrPartition;
    image.topic_by_name(name).is_none().then(|| (unknown, unknown.sentence().map(StrBytes::from_static_str)))
}

fn state(producer: ProducerView) -> ProducerState {
    ProducerState::default()
        .with_producer_id(ProducerId(producer.producer_id))
        .with_producer_epoch(i32::from(producer.epoch))
        .with_last_sequence(producer.last_sequence)
        .with_last_timestamp(producer.last_timestamp.0)
        .with_coordinator_epoch(producer.coordinator_epoch)
        .with_current_txn_start_offset(producer.txn_first_offset.map_or(-1, |offset| offset.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{image_of, partition};

    #[test]
    fn a_topic_that_cannot_be_is_told_from_one_that_is_not() {
        let image = image_of([], [("here", vec![partition(1, &[1], &[1])])]);
        let code = |name| topic_error(&image, name).map(|(code, _)| code);
        assert_eq!(code("here"), None);
        assert_eq!(code("there"), Some(ErrorCode::UnknownTopicOrPartition));
        assert_eq!(code("a b"), Some(ErrorCode::InvalidTopicException));
        let message = topic_error(&image, "..").and_then(|(_, message)| message);
        assert_eq!(message.as_deref(), Some("Topic name is invalid: '..' is not allowed"));
    }
}
