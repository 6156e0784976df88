//! CreatePartitions (key 37), v0-3.
//!
//! Gives topics more partitions, each topic all or nothing, or tells whether it could.
//! * v1 throttle time. v3 THROTTLING_QUOTA_EXCEEDED is understood (KIP-599; there are no such quotas here).

use super::terms::topic_name;
use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::request::MorePartitions;
use crate::core::controller::{Answer, Refusal, Request};
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(37, "CreatePartitions", 0, 3).carried();

/// Has the controller make partitions.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: CreatePartitionsRequest) -> Outcome<CreatePartitionsResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let topics = request.topics.iter().map(more_partitions).collect();
        let ask = Request::CreatePartitions { topics, validate_only: request.validate_only };
        match ask::controller(&cx, ask, Some(request.timeout_ms)).await {
            Ok(Answer::CreatePartitions(made)) => respond(&call, made),
            _ => timed_out(&call, request),
        }
    })
}

fn more_partitions(topic: &CreatePartitionsTopic) -> MorePartitions {
    let ids = |ids: &[kafka_protocol::messages::BrokerId]| ids.iter().map(|id| BrokerId(id.0)).collect();
    MorePartitions {
        name: topic.name.to_string(),
        count: topic.count,
        assignments: topic.assignments.as_ref().map(|all| all.iter().map(|replicas| ids(&replicas.broker_ids)).collect()),
    }
}

fn row(name: TopicName, code: i16, message: Option<StrBytes>) -> CreatePartitionsTopicResult {
    CreatePartitionsTopicResult::default().with_name(name).with_error_code(code).with_error_message(message)
}

fn timed_out(call: &Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
    let rows = request.topics.into_iter().map(|topic| row(topic.name, call.error(ErrorCode::RequestTimedOut), None));
    CreatePartitionsResponse::default().with_results(rows.collect())
}

fn respond(call: &Call, made: Vec<(String, Result<(), Refusal>)>) -> CreatePartitionsResponse {
    let rows = made.into_iter().map(|(name, result)| match result {
        Ok(()) => row(topic_name(&name), call.error(ErrorCode::None), None),
        // Only here Kafka leaves out the standard sentence.
        Err(refusal) => {
            let message = refusal.message.map(StrBytes::from_string);
            row(topic_name(&name), call.error(refusal.why.into()), message)
        }
    });
    CreatePartitionsResponse::default().with_results(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;

    #[test]
    fn rows_say_what_became_of_each_topic() {
        let made = || {
            let invalid = Refusal::new(Why::InvalidPartitions, "Topic already has 1 partition(s).");
            vec![("a".into(), Ok(())), ("b".into(), Err(invalid)), ("c".into(), Err(Why::UnknownTopicOrPartition.into()))]
        };
        encodes(SPEC, |call| respond(call, made()));
        let answer = respond(&call(SPEC, 3), made());
        let rows: Vec<_> = answer.results.iter().map(|row| (row.error_code, row.error_message.as_deref())).collect();
        assert_eq!(rows, [(0, None), (37, Some("Topic already has 1 partition(s).")), (3, None)]);
    }

    #[test]
    fn counts_and_assignments_reach_the_controller() {
        let topic = CreatePartitionsTopic::default().with_name(topic_name("t")).with_count(3).with_assignments(None);
        assert_eq!(more_partitions(&topic), MorePartitions { name: "t".into(), count: 3, assignments: None });
        encodes(SPEC, |call| timed_out(call, CreatePartitionsRequest::default().with_topics(vec![topic.clone()])));
    }
}
