//! AlterPartitionReassignments (key 45), v0-1 (KIP-455).
//!
//! Moves replicas to other brokers, or stops moving them.
//! * v1 whether the number of replicas may change (KIP-860).

use super::terms::topic_name;
use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::request::ByPartition;
use crate::core::controller::{Answer, Refusal, Request};
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::alter_partition_reassignments_response::{ReassignablePartitionResponse, ReassignableTopicResponse};
use kafka_protocol::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(45, "AlterPartitionReassignments", 0, 1);

/// Has the controller move replicas.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: AlterPartitionReassignmentsRequest) -> Outcome<AlterPartitionReassignmentsResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        // Version 0 has no such field, and is decoded to what it always allowed.
        let allow_factor_change = request.allow_replication_factor_change;
        let timeout = request.timeout_ms;
        let ask = Request::AlterReassignments { topics: asked(request), allow_factor_change };
        match ask::controller(&cx, ask, Some(timeout)).await {
            Ok(Answer::AlterReassignments(results)) => respond(&call, allow_factor_change, results),
            _ => response(allow_factor_change).with_error_code(call.error(ErrorCode::RequestTimedOut)),
        }
    })
}

fn asked(request: AlterPartitionReassignmentsRequest) -> ByPartition<(i32, Option<Vec<BrokerId>>)> {
    let topics = request.topics.into_iter().map(|topic| {
        let rows = topic.partitions.into_iter().map(|row| {
            let replicas = row.replicas.map(|ids| ids.into_iter().map(|id| BrokerId(id.0)).collect());
            (row.partition_index, replicas)
        });
        (topic.name.to_string(), rows.collect())
    });
    topics.collect()
}

fn response(allow_factor_change: bool) -> AlterPartitionReassignmentsResponse {
    AlterPartitionReassignmentsResponse::default().with_error_message(None).with_allow_replication_factor_change(allow_factor_change)
}

fn respond(
    call: &Call,
    allow_factor_change: bool,
    results: ByPartition<(i32, Result<(), Refusal>)>,
) -> AlterPartitionReassignmentsResponse {
    let topics = results.into_iter().map(|(name, rows)| {
        let rows = rows.into_iter().map(|(index, result)| {
            let (code, message) = ask::outcome(result);
            ReassignablePartitionResponse::default()
                .with_partition_index(index)
                .with_error_code(call.error(code))
                .with_error_message(message)
        });
        ReassignableTopicResponse::default().with_name(topic_name(&name)).with_partitions(rows.collect())
    });
    response(allow_factor_change).with_responses(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;
    use kafka_protocol::messages::alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic};

    #[test]
    fn a_target_or_none_reaches_the_controller() {
        let moves = ReassignablePartition::default().with_partition_index(3).with_replicas(Some(vec![2.into(), 1.into()]));
        let stops = ReassignablePartition::default().with_partition_index(4).with_replicas(None);
        let topic = ReassignableTopic::default().with_name(topic_name("t")).with_partitions(vec![moves, stops]);
        let request = AlterPartitionReassignmentsRequest::default().with_topics(vec![topic]);
        assert_eq!(asked(request), [("t".to_owned(), vec![(3, Some(vec![BrokerId(2), BrokerId(1)])), (4, None)])]);
    }

    #[test]
    fn each_partition_has_its_outcome() {
        let results = || vec![("t".to_owned(), vec![(0, Ok(())), (1, Err(Refusal::from(Why::NoReassignmentInProgress)))])];
        encodes(SPEC, |call| respond(call, true, results()));
        encodes(SPEC, |_| response(true));
        let answer = respond(&call(SPEC, 1), false, results());
        let rows = &answer.responses[0].partitions;
        assert_eq!((rows[0].error_code, rows[1].error_code, answer.allow_replication_factor_change), (0, 85, false));
        assert_eq!(rows[1].error_message.as_deref(), Some("No partition reassignment is in progress."));
    }
}
