//! ListGroups (key 16), v0-5.
//!
//! The groups that this broker coordinates. It coordinates none yet: COORDINATOR_NOT_AVAILABLE.
//! * v1 throttle time. v4 filter by state (KIP-518). v5 filter by type (KIP-848).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(16, "ListGroups", 0, 5);

/// Lists groups.
pub fn handle(_: &Cx, call: &Rc<Call>, _: ListGroupsRequest) -> Outcome<ListGroupsResponse> {
    Outcome::Now(unavailable(call))
}

fn unavailable(call: &Call) -> ListGroupsResponse {
    ListGroupsResponse::default().with_error_code(call.error(ErrorCode::CoordinatorNotAvailable))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_version_can_be_written() {
        crate::api::testkit::encodes(super::SPEC, super::unavailable);
    }
}
