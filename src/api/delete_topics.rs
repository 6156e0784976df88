//! DeleteTopics (key 20), v1-6.
//!
//! Deletes topics, all that can be deleted of a request in one append.
//! * v1 throttle time. v3 TOPIC_DELETION_DISABLED is understood, INVALID_REQUEST before. v5 messages and quotas (KIP-599).
//! * v6 topics by id or by name (KIP-516).

use super::terms::{topic_id, topic_name, uuid};
use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::request::TopicRef;
use crate::core::controller::{Answer, Refusal, Request};
use crate::core::types::TopicId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(20, "DeleteTopics", 1, 6).carried();

/// Has the controller delete topics.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DeleteTopicsRequest) -> Outcome<DeleteTopicsResponse> {
    let topics = topics(&request, call.version);
    if !cx.broker.config.delete_topic_enable {
        let error = if call.version < 3 { ErrorCode::InvalidRequest } else { ErrorCode::TopicDeletionDisabled };
        return Outcome::Now(all(call, topics, error));
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::controller(&cx, Request::DeleteTopics(topics.clone()), Some(request.timeout_ms)).await {
            Ok(Answer::DeleteTopics(deleted)) => respond(&call, deleted),
            _ => all(&call, topics, ErrorCode::RequestTimedOut),
        }
    })
}

fn topics(request: &DeleteTopicsRequest, version: i16) -> Vec<TopicRef> {
    if version >= 6 {
        let by_either = request.topics.iter();
        return by_either.map(|t| TopicRef { name: t.name.as_ref().map(|n| n.to_string()), id: topic_id(t.topic_id) }).collect();
    }
    request.topic_names.iter().map(|name| TopicRef { name: Some(name.to_string()), id: TopicId::ZERO }).collect()
}

fn row(topic: TopicRef, code: i16) -> DeletableTopicResult {
    DeletableTopicResult::default()
        .with_name(topic.name.as_deref().map(topic_name))
        .with_topic_id(uuid(topic.id))
        .with_error_code(code)
        .with_error_message(None)
}

fn all(call: &Call, topics: Vec<TopicRef>, error: ErrorCode) -> DeleteTopicsResponse {
    DeleteTopicsResponse::default().with_responses(topics.into_iter().map(|topic| row(topic, call.error(error))).collect())
}

fn respond(call: &Call, deleted: Vec<(TopicRef, Result<(), Refusal>)>) -> DeleteTopicsResponse {
    let rows = deleted.into_iter().map(|(topic, result)| {
        let (code, message) = ask::outcome(result);
        row(topic, call.error(code)).with_error_message(message)
    });
    DeleteTopicsResponse::default().with_responses(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;
    use crate::core::types::Id;

    #[test]
    fn every_version_can_be_written() {
        let topic = |name: &str| TopicRef { name: Some(name.into()), id: Id(3) };
        encodes(SPEC, |call| respond(call, vec![(topic("a"), Ok(())), (topic("b"), Err(Why::UnknownTopicOrPartition.into()))]));
        encodes(SPEC, |call| all(call, vec![topic("a")], ErrorCode::RequestTimedOut));
    }

    #[test]
    fn a_refusal_without_details_says_what_the_error_means() {
        let unknown = TopicRef { name: None, id: Id(8) };
        let answer = respond(&call(SPEC, 6), vec![(unknown, Err(Why::UnknownTopicId.into()))]);
        let row = &answer.responses[0];
        assert_eq!((row.error_code, row.error_message.as_deref()), (100, Some("This server does not host this topic ID.")));
        assert_eq!((&row.name, row.topic_id.as_u128()), (&None, 8));
    }

    #[test]
    fn names_come_in_the_field_of_the_version() {
        let old = DeleteTopicsRequest::default().with_topic_names(vec![topic_name("a")]);
        assert_eq!(topics(&old, 5), [TopicRef { name: Some("a".into()), id: Id::ZERO }]);
        assert_eq!(topics(&old, 6), []);
    }
}
