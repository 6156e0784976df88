//! ConsumerGroupHeartbeat (key 68), v0-1.
//!
//! A member of a consumer group comes, goes, changes what it reads, or is still there; the broker assigns (KIP-848).
//! * v1 subscriptions by regular expression, and members bring their own ids (KIP-1082).

use super::groups::{beat, client_host, shared, shared_or_none};
use super::terms::{text, topic_id, uuid};
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::check_beat;
use crate::core::group::request::{Beat, ConsumerBeat, Refused, Why};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;
use std::sync::Arc;

/// The row.
pub const SPEC: Spec = Spec::new(68, "ConsumerGroupHeartbeat", 0, 1);

/// The feature that has to be on.
const FEATURE: &str = "group.version";

/// Keeps a member in its group.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ConsumerGroupHeartbeatRequest) -> Outcome<ConsumerGroupHeartbeatResponse> {
    if !is_on(cx) {
        return Outcome::Now(ConsumerGroupHeartbeatResponse::default().with_error_code(call.error(ErrorCode::UnsupportedVersion)));
    }
    let question = question(&call.client_id, client_host(cx.peer.address.ip()), &request);
    if let Err(refused) = check_beat(&question, call.version >= 1, &cx.broker.config.assignors()) {
        return Outcome::Now(respond(call, Err(refused)));
    }
    let (call, answer) = (call.clone(), beat(cx, &request.group_id, question));
    Outcome::later(async move { respond(&call, answer.await) })
}

/// Whether this cluster has consumer groups.
pub fn is_on(cx: &Cx) -> bool {
    cx.image().feature(FEATURE) >= 1 && cx.broker.config.has_consumer_protocol()
}

fn question(client_id: &str, client_host: Arc<str>, request: &ConsumerGroupHeartbeatRequest) -> ConsumerBeat {
    let texts = |texts: &Option<StrBytes>| shared_or_none(texts.as_ref());
    let owned = request.topic_partitions.as_ref();
    ConsumerBeat {
        group: shared(&request.group_id),
        member: shared(&request.member_id),
        epoch: request.member_epoch,
        instance: texts(&request.instance_id),
        rack: texts(&request.rack_id),
        client_id: shared(client_id),
        client_host,
        rebalance_timeout: Some(request.rebalance_timeout_ms).filter(|millis| *millis != -1),
        topics: request.subscribed_topic_names.as_ref().map(|names| names.iter().map(|name| shared(name)).collect()),
        regex: texts(&request.subscribed_topic_regex),
        assignor: texts(&request.server_assignor),
        owned: owned.map(|owned| owned.iter().map(|topic| (topic_id(topic.topic_id), topic.partitions.clone())).collect()),
    }
}

fn respond(call: &Call, outcome: Result<Beat, Refused>) -> ConsumerGroupHeartbeatResponse {
    let beat = match outcome {
        Ok(beat) => beat,
        Err(Refused { why, message }) => {
            let message = Some(text(&message)).filter(|_| has_words(why));
            return ConsumerGroupHeartbeatResponse::default().with_error_code(call.error(why.into())).with_error_message(message);
        }
    };
    let assignment = beat.assignment.map(|assignment| {
        let topics = assignment.into_iter().map(|(topic, partitions)| {
            TopicPartitions::default().with_topic_id(uuid(topic)).with_partitions(partitions.into_iter().collect())
        });
        Assignment::default().with_topic_partitions(topics.collect())
    });
    ConsumerGroupHeartbeatResponse::default()
        .with_error_code(call.error(ErrorCode::None))
        .with_member_id(Some(text(&beat.member)))
        .with_member_epoch(beat.epoch)
        .with_heartbeat_interval_ms(beat.interval)
        .with_assignment(assignment)
}

/// Errors of the coordinator itself say nothing besides.
fn has_words(why: Why) -> bool {
    !matches!(why, Why::NotCoordinator | Why::CoordinatorNotAvailable | Why::LoadInProgress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::topic_name;
    use crate::api::testkit::{call, encodes};
    use crate::core::types::Id;
    use kafka_protocol::messages::GroupId;
    use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions as Owned;

    #[test]
    fn what_is_not_sent_is_as_it_was() {
        let request = ConsumerGroupHeartbeatRequest::default().with_group_id(GroupId(text("g"))).with_member_id(text("m")).with_member_epoch(3);
        let question = |request| question("c", "/h".into(), &request);
        let least = question(request.clone());
        assert_eq!((&*least.group, &*least.member, least.epoch, &*least.client_id), ("g", "m", 3, "c"));
        assert_eq!((least.rebalance_timeout, &least.topics, &least.owned, &least.regex), (None, &None, &None, &None));
        let full = question(
            request
                .with_rebalance_timeout_ms(9)
                .with_subscribed_topic_names(Some(vec![topic_name("t")]))
                .with_subscribed_topic_regex(Some(text("a.*")))
                .with_topic_partitions(Some(vec![Owned::default().with_topic_id(uuid(Id(5))).with_partitions(vec![1, 2])])),
        );
        assert_eq!((full.rebalance_timeout, full.regex.as_deref()), (Some(9), Some("a.*")));
        assert_eq!((full.topics, full.owned), (Some(vec!["t".into()]), Some(vec![(Id(5), vec![1, 2])])));
    }

    #[test]
    fn answers() {
        let assignment = [(Id(5), [0, 2].into())].into();
        let beat = |assignment| Ok(Beat { member: "m".into(), epoch: 4, interval: 5_000, assignment });
        encodes(SPEC, |call| respond(call, beat(Some([(Id(5), [0, 2].into())].into()))));
        let answer = respond(&call(SPEC, 1), beat(Some(assignment)));
        let topics = answer.assignment.expect("it was given").topic_partitions;
        assert_eq!((topics[0].topic_id, &topics[0].partitions), (uuid(Id(5)), &vec![0, 2]));
        assert_eq!(respond(&call(SPEC, 1), beat(None)).assignment, None);
        let refused = |why: Why| respond(&call(SPEC, 1), Err(Refused { why, message: "words".into() }));
        let answer = refused(Why::FencedMemberEpoch);
        assert_eq!((answer.error_code, answer.error_message.as_deref()), (110, Some("words")));
        assert_eq!((refused(Why::NotCoordinator).error_code, refused(Why::NotCoordinator).error_message), (16, None));
    }
}
