//! ElectLeaders (key 43), v0-2.
//!
//! Elects the preferred replicas of partitions, or anyone alive where nobody leads.
//! * v0 preferred elections only (KIP-183). v1 the kind of election, and an error of the whole request (KIP-460).

use super::terms::topic_name;
use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::request::{ByPartition, ElectionType};
use crate::core::controller::{Answer, Refusal, Request, Why};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(43, "ElectLeaders", 0, 2).carried();

/// Has the controller elect leaders.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ElectLeadersRequest) -> Outcome<ElectLeadersResponse> {
    let election = match request.election_type {
        0 => ElectionType::Preferred,
        1 => ElectionType::Unclean,
        other => {
            let refusal = Refusal::new(Why::InvalidRequest, format!("Unknown election type {other}"));
            let (code, message) = ask::refused(refusal);
            return Outcome::Now(all(call, request, code, message));
        }
    };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let by_topic = |topics: &Vec<kafka_protocol::messages::elect_leaders_request::TopicPartitions>| -> ByPartition<i32> {
            topics.iter().map(|topic| (topic.topic.to_string(), topic.partitions.clone())).collect()
        };
        let ask = Request::ElectLeaders { election, partitions: request.topic_partitions.as_ref().map(by_topic) };
        match ask::controller(&cx, ask, Some(request.timeout_ms)).await {
            Ok(Answer::ElectLeaders(elected)) => respond(&call, elected),
            _ => all(&call, request, ErrorCode::RequestTimedOut, None),
        }
    })
}

fn row(index: i32, code: i16, message: Option<StrBytes>) -> PartitionResult {
    PartitionResult::default().with_partition_id(index).with_error_code(code).with_error_message(message)
}

fn topic(name: TopicName, rows: Vec<PartitionResult>) -> ReplicaElectionResult {
    ReplicaElectionResult::default().with_topic(name).with_partition_result(rows)
}

/// The same error for all that was asked for, and for the request where the version has room for that.
fn all(call: &Call, request: ElectLeadersRequest, error: ErrorCode, message: Option<StrBytes>) -> ElectLeadersResponse {
    let topics = request.topic_partitions.unwrap_or_default().into_iter().map(|asked| {
        let rows = asked.partitions.into_iter().map(|index| row(index, call.error(error), message.clone())).collect();
        topic(asked.topic, rows)
    });
    let topics = topics.collect();
    let whole = if call.version >= 1 { call.error(error) } else { 0 };
    ElectLeadersResponse::default().with_error_code(whole).with_replica_election_results(topics)
}

fn respond(call: &Call, elected: ByPartition<(i32, Result<(), Refusal>)>) -> ElectLeadersResponse {
    let topics = elected.into_iter().map(|(name, results)| {
        let rows = results.into_iter().map(|(index, result)| {
            let (code, message) = ask::outcome(result);
            row(index, call.error(code), message)
        });
        topic(topic_name(&name), rows.collect())
    });
    ElectLeadersResponse::default().with_replica_election_results(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use kafka_protocol::messages::elect_leaders_request::TopicPartitions;

    #[test]
    fn refusals_say_the_standard_sentence() {
        let elected = || vec![("t".to_owned(), vec![(0, Ok(())), (1, Err(Why::ElectionNotNeeded.into()))])];
        encodes(SPEC, |call| respond(call, elected()));
        let answer = respond(&call(SPEC, 2), elected());
        let rows = &answer.replica_election_results[0].partition_result;
        assert_eq!((rows[0].error_code, &rows[0].error_message), (0, &None));
        let said = rows[1].error_message.as_deref();
        assert_eq!((rows[1].error_code, said), (84, Some("Leader election not needed for topic partition.")));
    }

    #[test]
    fn an_error_of_all_is_in_each_row() {
        let request = || {
            let asked = TopicPartitions::default().with_topic(topic_name("t")).with_partitions(vec![0, 4]);
            ElectLeadersRequest::default().with_topic_partitions(Some(vec![asked]))
        };
        encodes(SPEC, |call| all(call, request(), ErrorCode::RequestTimedOut, None));
        for (version, top) in [(0, 0), (1, 7)] {
            let answer = all(&call(SPEC, version), request(), ErrorCode::RequestTimedOut, None);
            let rows = &answer.replica_election_results[0].partition_result;
            assert_eq!(
                (answer.error_code, rows.iter().map(|row| (row.partition_id, row.error_code)).collect::<Vec<_>>()),
                (top, vec![(0, 7), (4, 7)])
            );
        }
    }
}
