//! CreateAcls (key 30), v1-3.
//!
//! Adds access control entries. There is no authorizer: SECURITY_DISABLED for each, as Kafka answers without one.
//! * v1 prefixed patterns (KIP-290). v3 user resources (KIP-373).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::create_acls_response::AclCreationResult;
use kafka_protocol::messages::{CreateAclsRequest, CreateAclsResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(30, "CreateAcls", 1, 3);

/// Adds access control.
pub fn handle(_: &Cx, call: &Rc<Call>, request: CreateAclsRequest) -> Outcome<CreateAclsResponse> {
    Outcome::Now(disabled(call, request.creations.len()))
}

fn disabled(call: &Call, creations: usize) -> CreateAclsResponse {
    let row = || {
        AclCreationResult::default()
            .with_error_code(call.error(ErrorCode::SecurityDisabled))
            .with_error_message(Some(StrBytes::from_static_str("No Authorizer is configured.")))
    };
    CreateAclsResponse::default().with_results((0..creations).map(|_| row()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn each_entry_is_refused() {
        encodes(SPEC, |call| disabled(call, 2));
        assert_eq!(disabled(&call(SPEC, 3), 2).results.iter().map(|row| row.error_code).collect::<Vec<_>>(), [54, 54]);
    }
}
