//! Heartbeat (key 12), v0-4.
//!
//! A member of a classic group is alive. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE.
//! * v1 throttle time. v3 static members (KIP-345).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(12, "Heartbeat", 0, 4);

/// Keeps a member alive.
pub fn handle(_: &Cx, call: &Rc<Call>, _: HeartbeatRequest) -> Outcome<HeartbeatResponse> {
    Outcome::Now(unavailable(call))
}

fn unavailable(call: &Call) -> HeartbeatResponse {
    HeartbeatResponse::default().with_error_code(call.error(ErrorCode::CoordinatorNotAvailable))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_version_can_be_written() {
        crate::api::testkit::encodes(super::SPEC, super::unavailable);
    }
}
