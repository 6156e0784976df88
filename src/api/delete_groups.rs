//! DeleteGroups (key 42), v0-2.
//!
//! Deletes groups that have no members, with their offsets. A group that is named twice is answered once.

use super::groups::{delete_groups, shared};
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::Why;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId};
use std::collections::HashSet;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(42, "DeleteGroups", 0, 2);

/// Deletes groups.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DeleteGroupsRequest) -> Outcome<DeleteGroupsResponse> {
    let groups = each_once(request.groups_names);
    let asked: Vec<_> = groups.iter().map(|group| delete_groups(cx, group, vec![shared(group)])).collect();
    let call = call.clone();
    Outcome::later(async move {
        let mut rows = Vec::with_capacity(groups.len());
        for (group, answer) in groups.into_iter().zip(asked) {
            let outcome = answer.await.and_then(|mut groups| groups.pop().map_or(Err(Why::GroupIdNotFound), |(_, outcome)| outcome));
            rows.push(row(&call, group, outcome));
        }
        DeleteGroupsResponse::default().with_results(rows)
    })
}

fn each_once(mut groups: Vec<GroupId>) -> Vec<GroupId> {
    let mut seen = HashSet::new();
    groups.retain(|group| seen.insert(group.clone()));
    groups
}

fn row(call: &Call, group: GroupId, outcome: Result<(), Why>) -> DeletableGroupResult {
    let error = outcome.map_or_else(ErrorCode::from, |()| ErrorCode::None);
    DeletableGroupResult::default().with_group_id(group).with_error_code(call.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{call, encodes};

    fn group(name: &str) -> GroupId {
        GroupId(text(name))
    }

    #[test]
    fn each_group_has_one_row() {
        assert_eq!(each_once(["b", "a", "b"].map(group).to_vec()), ["b", "a"].map(group));
        encodes(SPEC, |call| DeleteGroupsResponse::default().with_results(vec![row(call, group("g"), Err(Why::NonEmptyGroup))]));
        let row = |outcome| row(&call(SPEC, 2), group("g"), outcome).error_code;
        assert_eq!((row(Ok(())), row(Err(Why::NonEmptyGroup)), row(Err(Why::GroupIdNotFound))), (0, 68, 69));
    }
}
