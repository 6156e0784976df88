//! SyncGroup (key 14), v0-5.
//!
//! Hands out a classic group's assignments. The answer comes when the leader has assigned.
//! * v1 throttle time. v3 static members (KIP-345). v5 protocol type and name, both needed (KIP-559).

use super::groups::{shared, shared_or_none, sync};
use super::terms::text;
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::Why;
use crate::core::group::request::{Membership, Sync, Synced};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(14, "SyncGroup", 0, 5);

/// Asks for an assignment.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: SyncGroupRequest) -> Outcome<SyncGroupResponse> {
    if let Some(why) = refusal(call.version, &request) {
        return Outcome::Now(respond(call, Err(why)));
    }
    let assignments = request.assignments.iter().map(|row| (shared(&row.member_id), row.assignment.clone()));
    let question = Sync {
        from: Membership {
            group: shared(&request.group_id),
            member: shared(&request.member_id),
            instance: shared_or_none(request.group_instance_id.as_ref()),
            generation: request.generation_id,
        },
        protocol_type: shared_or_none(request.protocol_type.as_ref()),
        protocol: shared_or_none(request.protocol_name.as_ref()),
        assignments: assignments.collect(),
    };
    let (call, answer) = (call.clone(), sync(cx, &request.group_id, question));
    Outcome::later(async move { respond(&call, answer.await) })
}

/// What is wrong with the request itself.
fn refusal(version: i16, request: &SyncGroupRequest) -> Option<Why> {
    let named = request.protocol_type.is_some() && request.protocol_name.is_some();
    if version >= 5 && !named {
        return Some(Why::InconsistentGroupProtocol);
    }
    request.group_id.is_empty().then_some(Why::InvalidGroupId)
}

fn respond(call: &Call, outcome: Result<Synced, Why>) -> SyncGroupResponse {
    match outcome {
        Ok(synced) => {
            let named = |name: Option<&str>| name.filter(|_| call.version >= 5).map(text);
            SyncGroupResponse::default()
                .with_error_code(call.error(ErrorCode::None))
                .with_protocol_type(named(synced.protocol_type.as_deref()))
                .with_protocol_name(named(synced.protocol.as_deref()))
                .with_assignment(synced.assignment)
        }
        Err(why) => SyncGroupResponse::default().with_error_code(call.error(why.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use bytes::Bytes;
    use kafka_protocol::messages::GroupId;

    #[test]
    fn the_protocol_must_be_named_from_version_5_on() {
        let bare = SyncGroupRequest::default().with_group_id(GroupId(text("g")));
        let whole = bare.clone().with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")));
        assert_eq!((refusal(4, &bare), refusal(5, &bare), refusal(5, &whole)), (None, Some(Why::InconsistentGroupProtocol), None));
        assert_eq!(refusal(4, &SyncGroupRequest::default()), Some(Why::InvalidGroupId));
    }

    #[test]
    fn every_version_can_be_written() {
        let synced = || Synced { protocol_type: Some("consumer".into()), protocol: Some("range".into()), assignment: Bytes::from_static(b"a") };
        encodes(SPEC, |call| respond(call, Ok(synced())));
        encodes(SPEC, |call| respond(call, Err(Why::RebalanceInProgress)));
        assert_eq!(respond(&call(SPEC, 4), Err(Why::IllegalGeneration)).error_code, 22);
    }
}
