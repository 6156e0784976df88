//! Heartbeat (key 12), v0-4.
//!
//! A member of a classic group is alive. Where the coordinator is still loading, so is the member's session, and there is no error.
//! * v1 throttle time. v3 static members (KIP-345).

use super::groups::{heartbeat, shared, shared_or_none};
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::Why;
use crate::core::group::request::Membership;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(12, "Heartbeat", 0, 4);

/// Keeps a member alive.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: HeartbeatRequest) -> Outcome<HeartbeatResponse> {
    if request.group_id.is_empty() {
        return Outcome::Now(respond(call, Err(Why::InvalidGroupId)));
    }
    let question = Membership {
        group: shared(&request.group_id),
        member: shared(&request.member_id),
        instance: shared_or_none(request.group_instance_id.as_ref()),
        generation: request.generation_id,
    };
    let (call, answer) = (call.clone(), heartbeat(cx, &request.group_id, question));
    Outcome::later(async move { respond(&call, answer.await) })
}

fn respond(call: &Call, outcome: Result<(), Why>) -> HeartbeatResponse {
    let error = match outcome {
        Ok(()) | Err(Why::LoadInProgress) => ErrorCode::None,
        Err(why) => why.into(),
    };
    HeartbeatResponse::default().with_error_code(call.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn a_coordinator_that_loads_knows_of_no_error() {
        encodes(SPEC, |call| respond(call, Err(Why::RebalanceInProgress)));
        for (outcome, error) in [(Ok(()), 0), (Err(Why::LoadInProgress), 0), (Err(Why::RebalanceInProgress), 27), (Err(Why::NotCoordinator), 16)] {
            assert_eq!(respond(&call(SPEC, 4), outcome).error_code, error, "{outcome:?}");
        }
    }
}
