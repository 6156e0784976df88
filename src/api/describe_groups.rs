//! DescribeGroups (key 15), v0-6.
//!
//! Classic groups, their state and members. A group that there is not is dead.
//! * v1 throttle time. v3 authorized operations (KIP-430). v4 static members (KIP-345). v6 GROUP_ID_NOT_FOUND and messages (KIP-1043).

use super::groups::{describe, shared};
use super::terms::{GROUP_OPERATIONS, NOT_ASKED, text};
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::Why;
use crate::core::group::request::{Described, DescribedMember, State};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(15, "DescribeGroups", 0, 6);

/// Describes groups.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeGroupsRequest) -> Outcome<DescribeGroupsResponse> {
    let asked: Vec<_> = request.groups.iter().map(|group| describe(cx, group, vec![shared(group)])).collect();
    let call = call.clone();
    Outcome::later(async move {
        let mut rows = Vec::with_capacity(asked.len());
        for (group, answer) in request.groups.into_iter().zip(asked) {
            let outcome = answer.await.and_then(|mut groups| groups.pop().map_or(Err(Why::GroupIdNotFound), |(_, described)| described));
            rows.push(row(&call, request.include_authorized_operations, group, outcome));
        }
        DescribeGroupsResponse::default().with_groups(rows)
    })
}

fn row(call: &Call, operations_asked: bool, group: GroupId, outcome: Result<Described, Why>) -> DescribedGroup {
    let version = call.version;
    let dead = || text(State::Dead.name());
    let row = match outcome {
        Ok(described) => DescribedGroup::default()
            .with_error_code(call.error(ErrorCode::None))
            .with_group_state(text(described.state.name()))
            .with_protocol_type(text(&described.protocol_type))
            .with_protocol_data(described.protocol.as_deref().map(text).unwrap_or_default())
            .with_members(described.members.into_iter().map(|member| member_row(version, member)).collect()),
        Err(Why::GroupIdNotFound) if version >= 6 => DescribedGroup::default()
            .with_error_code(call.error(ErrorCode::GroupIdNotFound))
            .with_error_message(Some(StrBytes::from_string(format!("Group {} not found.", group.as_str()))))
            .with_group_state(dead()),
        Err(Why::GroupIdNotFound) => DescribedGroup::default().with_error_code(call.error(ErrorCode::None)).with_group_state(dead()),
        Err(why) => DescribedGroup::default().with_error_code(call.error(why.into())),
    };
    let operations = if version >= 3 && operations_asked && row.error_code == 0 { GROUP_OPERATIONS } else { NOT_ASKED };
    row.with_group_id(group).with_authorized_operations(operations)
}

fn member_row(version: i16, member: DescribedMember) -> DescribedGroupMember {
    DescribedGroupMember::default()
        .with_member_id(text(&member.member))
        .with_group_instance_id(if version >= 4 { member.instance.as_deref().map(text) } else { None })
        .with_client_id(text(&member.client_id))
        .with_client_host(text(&member.client_host))
        .with_member_metadata(member.metadata)
        .with_member_assignment(member.assignment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use bytes::Bytes;

    fn described() -> Described {
        let member = DescribedMember {
            member: "m".into(),
            instance: Some("i".into()),
            client_id: "c".into(),
            client_host: "/h".into(),
            metadata: Bytes::from_static(b"m"),
            assignment: Bytes::from_static(b"a"),
        };
        Described { state: State::Stable, protocol_type: "consumer".into(), protocol: Some("range".into()), members: vec![member] }
    }

    fn answer(call: &Call, outcome: Result<Described, Why>) -> DescribeGroupsResponse {
        DescribeGroupsResponse::default().with_groups(vec![row(call, true, GroupId(text("g")), outcome)])
    }

    #[test]
    fn a_group_has_members_and_operations() {
        encodes(SPEC, |call| answer(call, Ok(described())));
        let operations = |version| answer(&call(SPEC, version), Ok(described())).groups[0].authorized_operations;
        assert_eq!([2, 3, 6].map(operations), [i32::MIN, 3400, 3400]);
        let row = row(&call(SPEC, 6), false, GroupId(text("g")), Ok(described()));
        assert_eq!((row.group_state.as_str(), row.protocol_data.as_str(), row.authorized_operations), ("Stable", "range", i32::MIN));
    }

    #[test]
    fn a_missing_group_is_dead() {
        encodes(SPEC, |call| answer(call, Err(Why::GroupIdNotFound)));
        let row = |version, why| {
            let row = answer(&call(SPEC, version), Err(why)).groups.remove(0);
            (row.error_code, row.group_state.to_string(), row.error_message.map(|message| message.to_string()), row.authorized_operations)
        };
        assert_eq!(row(5, Why::GroupIdNotFound), (0, "Dead".into(), None, 3400));
        assert_eq!(row(6, Why::GroupIdNotFound), (69, "Dead".into(), Some("Group g not found.".into()), i32::MIN));
        assert_eq!(row(6, Why::NotCoordinator), (16, "".into(), None, i32::MIN));
    }
}
