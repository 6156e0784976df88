//! DescribeGroups (key 15), v0-6.
//!
//! Classic groups, their state and members. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE in each row.
//! * v1 throttle time. v3 authorized operations (KIP-430). v4 static members (KIP-345). v6 GROUP_ID_NOT_FOUND and messages (KIP-1043).

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(15, "DescribeGroups", 0, 6);

/// Describes groups.
pub fn handle(_: &Cx, call: &Rc<Call>, request: DescribeGroupsRequest) -> Outcome<DescribeGroupsResponse> {
    Outcome::Now(unavailable(call, request))
}

fn unavailable(call: &Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let rows = request
        .groups
        .into_iter()
        .map(|group| DescribedGroup::default().with_group_id(group).with_error_code(call.error(ErrorCode::CoordinatorNotAvailable)));
    DescribeGroupsResponse::default().with_groups(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{call, encodes};
    use kafka_protocol::messages::GroupId;

    #[test]
    fn each_group_has_its_row() {
        let request = || DescribeGroupsRequest::default().with_groups(vec![GroupId(text("a")), GroupId(text("b"))]);
        encodes(SPEC, |call| unavailable(call, request()));
        let answer = unavailable(&call(SPEC, 6), request());
        let rows: Vec<_> = answer.groups.iter().map(|row| (row.group_id.as_str(), row.error_code, row.authorized_operations)).collect();
        assert_eq!(rows, [("a", 15, i32::MIN), ("b", 15, i32::MIN)]);
    }
}
