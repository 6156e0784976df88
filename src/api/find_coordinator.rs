//! FindCoordinator (key 10), v0-6.
//!
//! Which broker coordinates a group, a transactional id or a share partition. None does yet: the answer is COORDINATOR_NOT_AVAILABLE,
//! upon which clients ask again later.
//! * v0 groups only. v1 transactional ids, throttle time, messages.
//! * v4 many keys of one type (KIP-699). v5 TRANSACTION_ABORTABLE is understood (KIP-890). v6 share partitions (KIP-932).

use super::{Call, Cx, Outcome, Spec};
use crate::core::types::Id;
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

/// Names coordinators.
pub fn handle(_: &Cx, call: &Rc<Call>, request: FindCoordinatorRequest) -> Outcome<FindCoordinatorResponse> {
    Outcome::Now(respond(call, request))
}

fn respond(call: &Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let nobody = messages::BrokerId(-1);
    if call.version < 4 {
        let error = find(call.version, request.key_type, &request.key);
        let message = if call.version >= 1 { error.sentence().map(StrBytes::from_static_str) } else { Some(StrBytes::default()) };
        return FindCoordinatorResponse::default()
            .with_error_code(call.error(error))
            .with_error_message(message)
            .with_node_id(nobody)
            .with_port(-1);
    }
    // A type that there is not is an error of the whole request, which has its message; an error of a key has none.
    let message = match request.key_type {
        GROUP | TRANSACTION | SHARE => "",
        _ => ErrorCode::InvalidRequest.sentence().unwrap_or_default(),
    };
    let rows = request.coordinator_keys.into_iter().map(|key| {
        let error = find(call.version, request.key_type, &key);
        Coordinator::default()
            .with_key(key)
            .with_error_code(call.error(error))
            .with_error_message(Some(StrBytes::from_static_str(message)))
            .with_node_id(nobody)
            .with_port(-1)
    });
    FindCoordinatorResponse::default().with_coordinators(rows.collect())
}

fn find(version: i16, key_type: i8, key: &str) -> ErrorCode {
    match key_type {
        GROUP | TRANSACTION => ErrorCode::CoordinatorNotAvailable,
        SHARE if version >= 6 && is_share_partition(key) => ErrorCode::CoordinatorNotAvailable,
        _ => ErrorCode::InvalidRequest,
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
    use crate::api::testkit::{call, encodes};

    fn request(version: i16, key_type: i8, key: &str) -> FindCoordinatorRequest {
        let key = StrBytes::from_string(key.into());
        let request = FindCoordinatorRequest::default().with_key_type(key_type);
        if version < 4 { request.with_key(key) } else { request.with_coordinator_keys(vec![key]) }
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, |call| respond(call, request(call.version, 0, "g")));
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
            let answer = respond(&call(SPEC, version), request(version, key_type, key));
            let row = answer.coordinators.first();
            let got = match row {
                Some(row) => (row.error_code, row.error_message.as_deref(), row.node_id.0, row.port),
                None => (answer.error_code, answer.error_message.as_deref(), answer.node_id.0, answer.port),
            };
            assert_eq!(got, (error, Some(message), -1, -1), "v{version} {key_type} {key}");
            assert_eq!(row.is_some(), version >= 4);
        }
    }
}
