//! DeleteAcls (key 31), v1-3.
//!
//! Deletes access control entries. There is no authorizer: SECURITY_DISABLED for each filter, as Kafka answers without one.
//! * v1 prefixed patterns (KIP-290). v3 user resources (KIP-373).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::delete_acls_response::DeleteAclsFilterResult;
use kafka_protocol::messages::{DeleteAclsRequest, DeleteAclsResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(31, "DeleteAcls", 1, 3);

/// Deletes access control.
pub fn handle(_: &Cx, call: &Rc<Call>, request: DeleteAclsRequest) -> Outcome<DeleteAclsResponse> {
    Outcome::Now(disabled(call, request.filters.len()))
}

fn disabled(call: &Call, filters: usize) -> DeleteAclsResponse {
    let row = || {
        DeleteAclsFilterResult::default()
            .with_error_code(call.error(ErrorCode::SecurityDisabled))
            .with_error_message(Some(StrBytes::from_static_str("No Authorizer is configured.")))
    };
    DeleteAclsResponse::default().with_filter_results((0..filters).map(|_| row()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn each_filter_is_refused() {
        encodes(SPEC, |call| disabled(call, 2));
        assert_eq!(disabled(&call(SPEC, 3), 2).filter_results.iter().map(|row| row.error_code).collect::<Vec<_>>(), [54, 54]);
    }
}
