//! LeaveGroup (key 13), v0-5.
//!
//! Takes members out of a classic group.
//! * v1 throttle time. v3 many members, static ones too (KIP-345), each with its own error. v5 reason (KIP-800).

use super::groups::{leave, shared, shared_or_none};
use super::terms::text;
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::Why;
use crate::core::group::request::{Leave, Leaver, Left};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(13, "LeaveGroup", 0, 5);

/// Leaves a group.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: LeaveGroupRequest) -> Outcome<LeaveGroupResponse> {
    if request.group_id.is_empty() {
        return Outcome::Now(respond(call, Err(Why::InvalidGroupId)));
    }
    let members = leavers(call.version, &request);
    let question = Leave { group: shared(&request.group_id), members: members.clone() };
    let (call, answer) = (call.clone(), leave(cx, &request.group_id, question));
    Outcome::later(async move {
        let outcome = match answer.await {
            // There is no such group: an error of every member.
            Err(Why::UnknownMemberId) => Ok(members.into_iter().map(unknown).collect()),
            outcome => outcome,
        };
        respond(&call, outcome)
    })
}

fn leavers(version: i16, request: &LeaveGroupRequest) -> Vec<Leaver> {
    if version < 3 {
        return vec![Leaver { member: shared(&request.member_id), instance: None, reason: None }];
    }
    let leaver = |member: &kafka_protocol::messages::leave_group_request::MemberIdentity| Leaver {
        member: shared(&member.member_id),
        instance: shared_or_none(member.group_instance_id.as_ref()),
        reason: shared_or_none(member.reason.as_ref()),
    };
    request.members.iter().map(leaver).collect()
}

fn unknown(leaver: Leaver) -> Left {
    Left { member: leaver.member, instance: leaver.instance, result: Err(Why::UnknownMemberId) }
}

fn respond(call: &Call, outcome: Result<Vec<Left>, Why>) -> LeaveGroupResponse {
    let code = |result: Result<(), Why>| call.error(result.map_or_else(ErrorCode::from, |()| ErrorCode::None));
    match outcome {
        Err(why) => LeaveGroupResponse::default().with_error_code(call.error(why.into())),
        Ok(members) if call.version < 3 => {
            let only = members.first().map_or(Ok(()), |member| member.result);
            LeaveGroupResponse::default().with_error_code(code(only))
        }
        Ok(members) => {
            let rows = members.into_iter().map(|member| {
                MemberResponse::default()
                    .with_member_id(text(&member.member))
                    .with_group_instance_id(member.instance.as_deref().map(text))
                    .with_error_code(code(member.result))
            });
            LeaveGroupResponse::default().with_members(rows.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn the_error_of_one_member_is_that_of_an_old_request() {
        let left = || Ok(vec![Left { member: "m".into(), instance: Some("i".into()), result: Err(Why::UnknownMemberId) }]);
        encodes(SPEC, |call| respond(call, left()));
        let errors = |version| {
            let answer = respond(&call(SPEC, version), left());
            (answer.error_code, answer.members.iter().map(|row| row.error_code).collect::<Vec<_>>())
        };
        assert_eq!((errors(2), errors(3)), ((25, vec![]), (0, vec![25])));
        assert_eq!(respond(&call(SPEC, 5), Err(Why::NotCoordinator)).error_code, 16);
    }

    #[test]
    fn old_requests_name_one_member() {
        let request = LeaveGroupRequest::default().with_member_id(text("m"));
        assert_eq!(leavers(2, &request), [Leaver { member: "m".into(), instance: None, reason: None }]);
        assert_eq!(leavers(3, &request), []);
    }
}
