//! FindCoordinator (key 10), v0-6.
//!
//! Which broker coordinates a group, a transactional id or a share partition. Groups are looked after by the leader of their partition of
//! `__consumer_offsets`, which is made when first looked for: COORDINATOR_NOT_AVAILABLE meanwhile, upon which clients ask again. Nobody
//! coordinates the others yet.
//! * v0 groups only. v1 transactional ids, throttle time, messages.
//! * v4 many keys of one type (KIP-699). v5 TRANSACTION_ABORTABLE is understood (KIP-890). v6 share partitions (KIP-932).

use super::groups::{create_topic, partition};
use super::nodes::Nodes;
use super::terms::text;
use super::{Call, Cx, Outcome, Spec};
use crate::actors::groups::messages::TOPIC;
use crate::core::controller::Image;
use crate::core::controller::records::Endpoint;
use crate::core::types::{BrokerId, Id};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{self, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(10, "FindCoordinator", 0, 6);

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// Names coordinators, and has the topic of groups made.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: FindCoordinatorRequest) -> Outcome<FindCoordinatorResponse> {
    let image = cx.image();
    let is_wanted = request.key_type == GROUP && (call.version < 4 || !request.coordinator_keys.is_empty());
    if is_wanted && image.topic_by_name(TOPIC).is_none() {
        create_topic(cx);
    }
    Outcome::Now(respond(call, &View { image: &image, nodes: Nodes::new(&image, &cx.peer.listener) }, request))
}

/// Where coordinators are, for the clients of one listener.
struct View<'a> {
    image: &'a Image,
    nodes: Nodes<'a>,
}

/// A coordinator and where it is reached.
type Found<'a> = (BrokerId, &'a Endpoint);

impl<'a> View<'a> {
    fn find(&self, version: i16, key_type: i8, key: &str) -> Result<Found<'a>, ErrorCode> {
        match key_type {
            GROUP => self.group(key).ok_or(ErrorCode::CoordinatorNotAvailable),
            TRANSACTION => Err(ErrorCode::CoordinatorNotAvailable),
            SHARE if version >= 6 && is_share_partition(key) => Err(ErrorCode::CoordinatorNotAvailable),
            _ => Err(ErrorCode::InvalidRequest),
        }
    }

    fn group(&self, group: &str) -> Option<Found<'a>> {
        let topic = self.image.topic_by_name(TOPIC)?;
        let leader = topic.partition(partition(topic, group).partition)?.leader;
        let node = self.nodes.get(leader).filter(|node| node.is_alive())?;
        Some((leader, node.endpoint?))
    }
}

fn respond(call: &Call, view: &View<'_>, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    if call.version < 4 {
        let found = view.find(call.version, request.key_type, &request.key);
        let (node, host, port) = address(found.as_ref().ok());
        let error = found.err().unwrap_or(ErrorCode::None);
        let message = match error {
            // Kafka's word for no error, as its answers have it.
            ErrorCode::None if call.version >= 1 => Some(StrBytes::from_static_str("NONE")),
            error if call.version >= 1 => error.sentence().map(StrBytes::from_static_str),
            _ => Some(StrBytes::default()),
        };
        return FindCoordinatorResponse::default()
            .with_error_code(call.error(error))
            .with_error_message(message)
            .with_node_id(node)
            .with_host(host)
            .with_port(port);
    }
    // A type that there is not is an error of the whole request, which has its message; an error of a key has none.
    let message = match request.key_type {
        GROUP | TRANSACTION | SHARE => "",
        _ => ErrorCode::InvalidRequest.sentence().unwrap_or_default(),
    };
    let rows = request.coordinator_keys.into_iter().map(|key| {
        let found = view.find(call.version, request.key_type, &key);
        let (node, host, port) = address(found.as_ref().ok());
        Coordinator::default()
            .with_key(key)
            .with_error_code(call.error(found.err().unwrap_or(ErrorCode::None)))
            .with_error_message(Some(StrBytes::from_static_str(message)))
            .with_node_id(node)
            .with_host(host)
            .with_port(port)
    });
    FindCoordinatorResponse::default().with_coordinators(rows.collect())
}

/// Nobody is nowhere, at port -1.
fn address(found: Option<&Found<'_>>) -> (messages::BrokerId, StrBytes, i32) {
    match found {
        Some((node, endpoint)) => (messages::BrokerId(node.0), text(&endpoint.host), i32::from(endpoint.port)),
        None => (messages::BrokerId(-1), StrBytes::default(), -1),
    }
}

/// `group:topic id:partition`, where only the group may hold colons.
fn is_share_partition(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let (partition, topic, group) = (parts.next(), parts.next(), parts.next());
    partition.is_some_and(|partition| partition.parse::<i32>().is_ok())
        && topic.is_some_and(|topic| topic.parse::<Id>().is_ok())
        && group.is_some_and(|group| !group.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};

    fn request(version: i16, key_type: i8, key: &str) -> FindCoordinatorRequest {
        let key = StrBytes::from_string(key.into());
        let request = FindCoordinatorRequest::default().with_key_type(key_type);
        if version < 4 { request.with_key(key) } else { request.with_coordinator_keys(vec![key]) }
    }

    fn answer(call: &Call, image: &Image, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
        respond(call, &View { image, nodes: Nodes::new(image, "PLAINTEXT") }, request)
    }

    /// Error, message, node, host and port.
    fn outcome(version: i16, image: &Image, key_type: i8, key: &str) -> (i16, Option<String>, i32, String, i32) {
        let answer = answer(&call(SPEC, version), image, request(version, key_type, key));
        assert_eq!(answer.coordinators.len(), usize::from(version >= 4));
        let text = |text: Option<StrBytes>| text.map(|text| text.to_string());
        match answer.coordinators.into_iter().next() {
            Some(row) => (row.error_code, text(row.error_message), row.node_id.0, row.host.to_string(), row.port),
            None => (answer.error_code, text(answer.error_message), answer.node_id.0, answer.host.to_string(), answer.port),
        }
    }

    /// Group "a" is in partition 1 of these.
    fn image() -> Image {
        image_of([broker(1), broker(2)], [(TOPIC, vec![partition(1, &[1], &[1]), partition(2, &[2], &[2]), partition(-1, &[2], &[2])])])
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, |call| answer(call, &image(), request(call.version, 0, "a")));
        encodes(SPEC, |call| answer(call, &image_of([], []), request(call.version, 0, "a")));
    }

    #[test]
    fn a_group_is_where_its_partition_is_led() {
        let image = image();
        for (version, message) in [(0, ""), (1, "NONE"), (3, "NONE"), (4, ""), (6, "")] {
            assert_eq!(outcome(version, &image, 0, "a"), (0, Some(message.into()), 2, "host2".into(), 9092), "v{version}");
        }
        // Partition 2 has no leader.
        assert_eq!(outcome(6, &image, 0, "b"), (15, Some("".into()), -1, "".into(), -1));
    }

    #[test]
    fn keys_are_checked() {
        let share = format!("a:b:{}:3", Id(5));
        for (version, key_type, key, error, message) in [
            (0, 0, "g", 15, ""),
            (3, 1, "t", 15, "The coordinator is not available."),
            (6, 0, "g", 15, ""),
            (6, 2, share.as_str(), 15, ""),
            (5, 2, share.as_str(), 42, ""),
            (6, 2, "g:3", 42, ""),
            (6, 2, ":AAAAAAAAAAAAAAAAAAAAAQ:3", 42, ""),
            (6, 7, "g", 42, ErrorCode::InvalidRequest.sentence().unwrap()),
        ] {
            let got = outcome(version, &image_of([broker(1)], []), key_type, key);
            assert_eq!(got, (error, Some(message.into()), -1, "".into(), -1), "v{version} {key_type} {key}");
        }
    }
}
