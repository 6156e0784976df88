//! JoinGroup (key 11), v0-9.
//!
//! Joins a classic group. The answer comes when the group's next generation is complete. v0 is served because old clients judge by it
//! whether there are groups at all (KAFKA-19444).
//! * v1 rebalance timeout. v2 throttle time. v4 members get their id first (KIP-394). v5 static members (KIP-345).
//! * v7 protocol type (KIP-559). v8 reason (KIP-800). v9 the leader may skip assigning (KIP-814).

use super::groups::{client_host, join, shared, shared_or_none};
use super::terms::text;
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::Why;
use crate::core::group::request::{Join, JoinRefused, Joined, Protocol};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;
use std::sync::Arc;

/// The row.
pub const SPEC: Spec = Spec::new(11, "JoinGroup", 0, 9);

/// Joins a group.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: JoinGroupRequest) -> Outcome<JoinGroupResponse> {
    if request.group_id.is_empty() {
        let refused = JoinRefused { why: Why::InvalidGroupId, member: shared(&request.member_id) };
        return Outcome::Now(respond(call, Err(refused)));
    }
    let question = question(call.version, &call.client_id, client_host(cx.peer.address.ip()), &request);
    let (call, answer) = (call.clone(), join(cx, &request.group_id, question));
    Outcome::later(async move { respond(&call, answer.await) })
}

fn question(version: i16, client_id: &str, client_host: Arc<str>, request: &JoinGroupRequest) -> Join {
    let protocol = |p: &kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol| Protocol {
        name: shared(&p.name),
        metadata: p.metadata.clone(),
    };
    Join {
        group: shared(&request.group_id),
        member: shared(&request.member_id),
        instance: shared_or_none(request.group_instance_id.as_ref()),
        client_id: shared(client_id),
        client_host,
        session_timeout: request.session_timeout_ms,
        rebalance_timeout: if version == 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms },
        protocol_type: shared(&request.protocol_type),
        protocols: request.protocols.iter().map(protocol).collect(),
        reason: shared_or_none(request.reason.as_ref()),
        member_id_required: version >= 4,
        skip_assignment: version >= 9,
    }
}

/// No protocol is null where it can be, and empty before.
fn protocol_name(version: i16, protocol: Option<&str>) -> Option<StrBytes> {
    match protocol {
        Some(name) if !name.is_empty() => Some(text(name)),
        _ => (version < 7).then(StrBytes::default),
    }
}

fn respond(call: &Call, outcome: Result<Joined, JoinRefused>) -> JoinGroupResponse {
    let version = call.version;
    match outcome {
        Ok(joined) => {
            let members = joined.members.into_iter().map(|member| {
                JoinGroupResponseMember::default()
                    .with_member_id(text(&member.member))
                    .with_group_instance_id(if version >= 5 { member.instance.as_deref().map(text) } else { None })
                    .with_metadata(member.metadata)
            });
            JoinGroupResponse::default()
                .with_error_code(call.error(ErrorCode::None))
                .with_generation_id(joined.generation)
                .with_protocol_type(if version >= 7 { joined.protocol_type.as_deref().map(text) } else { None })
                .with_protocol_name(protocol_name(version, joined.protocol.as_deref()))
                .with_leader(text(&joined.leader))
                .with_skip_assignment(version >= 9 && joined.skip_assignment)
                .with_member_id(text(&joined.member))
                .with_members(members.collect())
        }
        Err(JoinRefused { why, member }) => {
            // Whoever is not heard by a group's coordinator is not told who he is.
            let unheard = matches!(why, Why::NotCoordinator | Why::LoadInProgress | Why::CoordinatorNotAvailable | Why::UnknownServerError);
            JoinGroupResponse::default()
                .with_error_code(call.error(why.into()))
                .with_protocol_name(protocol_name(version, None))
                .with_member_id(if unheard { StrBytes::default() } else { text(&member) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::group::request::JoinedMember;
    use bytes::Bytes;
    use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;

    fn refused(why: Why) -> JoinRefused {
        JoinRefused { why, member: "m".into() }
    }

    fn joined() -> Joined {
        Joined {
            member: "m".into(),
            generation: 3,
            protocol_type: Some("consumer".into()),
            protocol: Some("range".into()),
            leader: "m".into(),
            skip_assignment: true,
            members: vec![JoinedMember { member: "m".into(), instance: Some("i".into()), metadata: Bytes::from_static(b"x") }],
        }
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, |call| respond(call, Ok(joined())));
        encodes(SPEC, |call| respond(call, Err(refused(Why::MemberIdRequired))));
        let answer = respond(&call(SPEC, 9), Ok(joined()));
        assert_eq!((answer.generation_id, answer.skip_assignment, answer.protocol_name.as_deref()), (3, true, Some("range")));
    }

    #[test]
    fn a_refusal_names_the_member_only_where_a_group_refused() {
        let answer = |version, why| respond(&call(SPEC, version), Err(refused(why)));
        assert_eq!([6, 7].map(|version| answer(version, Why::NotCoordinator).protocol_name), [Some(StrBytes::default()), None]);
        for (why, code, member) in [(Why::NotCoordinator, 16, ""), (Why::LoadInProgress, 14, ""), (Why::MemberIdRequired, 79, "m")] {
            let answer = answer(9, why);
            assert_eq!((answer.error_code, answer.generation_id, answer.member_id.as_str()), (code, -1, member));
        }
    }

    #[test]
    fn what_old_versions_lack_is_filled_in() {
        let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
        let request = JoinGroupRequest::default().with_session_timeout_ms(7).with_rebalance_timeout_ms(-1).with_protocols(vec![protocol]);
        let ask = |version| question(version, "c", "/h".into(), &request);
        assert_eq!([0, 1].map(|version| ask(version).rebalance_timeout), [7, -1]);
        assert_eq!([3, 4].map(|version| ask(version).member_id_required), [false, true]);
        assert_eq!([8, 9].map(|version| ask(version).skip_assignment), [false, true]);
    }
}
