//! DeleteGroups (key 42), v0-2.
//!
//! Deletes groups that have no members. This broker coordinates none yet: COORDINATOR_NOT_AVAILABLE in each row.

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(42, "DeleteGroups", 0, 2);

/// Deletes groups.
pub fn handle(_: &Cx, call: &Rc<Call>, request: DeleteGroupsRequest) -> Outcome<DeleteGroupsResponse> {
    Outcome::Now(unavailable(call, request))
}

fn unavailable(call: &Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut seen = BTreeSet::new();
    let groups = request.groups_names.into_iter().filter(|group| seen.insert(group.clone()));
    let rows = groups
        .map(|group| DeletableGroupResult::default().with_group_id(group).with_error_code(call.error(ErrorCode::CoordinatorNotAvailable)));
    DeleteGroupsResponse::default().with_results(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{call, encodes};
    use kafka_protocol::messages::GroupId;

    #[test]
    fn each_group_has_one_row() {
        let request = || DeleteGroupsRequest::default().with_groups_names(["b", "a", "b"].map(|group| GroupId(text(group))).to_vec());
        encodes(SPEC, |call| unavailable(call, request()));
        let answer = unavailable(&call(SPEC, 2), request());
        let rows: Vec<_> = answer.results.iter().map(|row| (row.group_id.as_str(), row.error_code)).collect();
        assert_eq!(rows, [("b", 15), ("a", 15)]);
    }
}
