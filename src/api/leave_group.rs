//! LeaveGroup (key 13), v0-5.
//!
//! Takes members out of a classic group. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE.
//! * v1 throttle time. v3 many members, static ones too (KIP-345). v5 reason (KIP-800).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(13, "LeaveGroup", 0, 5);

/// Leaves a group.
pub fn handle(_: &Cx, call: &Rc<Call>, _: LeaveGroupRequest) -> Outcome<LeaveGroupResponse> {
    Outcome::Now(unavailable(call))
}

fn unavailable(call: &Call) -> LeaveGroupResponse {
    LeaveGroupResponse::default().with_error_code(call.error(ErrorCode::CoordinatorNotAvailable))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_version_can_be_written() {
        crate::api::testkit::encodes(super::SPEC, super::unavailable);
    }
}
