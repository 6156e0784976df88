//! JoinGroup (key 11), v0-9.
//!
//! Joins a classic group. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE. v0 is served because old clients judge by it
//! whether there are groups at all (KAFKA-19444).
//! * v1 rebalance timeout. v2 throttle time. v4 members get their id first (KIP-394). v5 static members (KIP-345).
//! * v7 protocol type (KIP-559). v8 reason (KIP-800). v9 the leader may skip assigning (KIP-814).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(11, "JoinGroup", 0, 9);

/// Joins a group.
pub fn handle(_: &Cx, call: &Rc<Call>, request: JoinGroupRequest) -> Outcome<JoinGroupResponse> {
    Outcome::Now(unavailable(call, request))
}

fn unavailable(call: &Call, request: JoinGroupRequest) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(call.error(ErrorCode::CoordinatorNotAvailable))
        .with_member_id(request.member_id)
        .with_protocol_name((call.version < 7).then(StrBytes::default))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn no_protocol_is_null_where_it_can_be() {
        let request = || JoinGroupRequest::default().with_member_id(text("m"));
        encodes(SPEC, |call| unavailable(call, request()));
        let answer = |version| unavailable(&call(SPEC, version), request());
        assert_eq!([6, 7].map(|version| answer(version).protocol_name), [Some(StrBytes::default()), None]);
        let answer = answer(9);
        assert_eq!((answer.error_code, answer.generation_id, answer.member_id.as_str()), (15, -1, "m"));
    }
}
