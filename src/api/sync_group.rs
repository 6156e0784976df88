//! SyncGroup (key 14), v0-5.
//!
//! Hands out a classic group's assignments. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE.
//! * v1 throttle time. v3 static members (KIP-345). v5 protocol type and name, both needed (KIP-559).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(14, "SyncGroup", 0, 5);

/// Asks for an assignment.
pub fn handle(_: &Cx, call: &Rc<Call>, request: SyncGroupRequest) -> Outcome<SyncGroupResponse> {
    Outcome::Now(unavailable(call, &request))
}

fn unavailable(call: &Call, request: &SyncGroupRequest) -> SyncGroupResponse {
    let whole = call.version < 5 || (request.protocol_type.is_some() && request.protocol_name.is_some());
    let error = if whole { ErrorCode::CoordinatorNotAvailable } else { ErrorCode::InconsistentGroupProtocol };
    SyncGroupResponse::default().with_error_code(call.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn the_protocol_must_be_named_from_version_5_on() {
        let bare = SyncGroupRequest::default();
        let whole = bare.clone().with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")));
        encodes(SPEC, |call| unavailable(call, &bare));
        let error = |version, request| unavailable(&call(SPEC, version), request).error_code;
        assert_eq!((error(4, &bare), error(5, &bare), error(5, &whole)), (15, 23, 15));
    }
}
