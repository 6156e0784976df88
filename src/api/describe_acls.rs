//! DescribeAcls (key 29), v1-3.
//!
//! Access control entries. There is no authorizer: SECURITY_DISABLED, as Kafka answers without one.
//! * v1 prefixed patterns (KIP-290). v3 user resources (KIP-373).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{DescribeAclsRequest, DescribeAclsResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(29, "DescribeAcls", 1, 3);

/// Describes access control.
pub fn handle(_: &Cx, call: &Rc<Call>, _: DescribeAclsRequest) -> Outcome<DescribeAclsResponse> {
    Outcome::Now(disabled(call))
}

fn disabled(call: &Call) -> DescribeAclsResponse {
    DescribeAclsResponse::default()
        .with_error_code(call.error(ErrorCode::SecurityDisabled))
        .with_error_message(Some(StrBytes::from_static_str("No Authorizer is configured on the broker")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_version_can_be_written() {
        crate::api::testkit::encodes(super::SPEC, super::disabled);
    }
}
