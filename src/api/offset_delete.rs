//! OffsetDelete (key 47), v0 (KIP-496).
//!
//! Deletes a group's committed offsets. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE.

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(47, "OffsetDelete", 0, 0);

/// Deletes offsets.
pub fn handle(_: &Cx, call: &Rc<Call>, _: OffsetDeleteRequest) -> Outcome<OffsetDeleteResponse> {
    Outcome::Now(unavailable(call))
}

fn unavailable(call: &Call) -> OffsetDeleteResponse {
    OffsetDeleteResponse::default().with_error_code(call.error(ErrorCode::CoordinatorNotAvailable))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_version_can_be_written() {
        crate::api::testkit::encodes(super::SPEC, super::unavailable);
    }
}
