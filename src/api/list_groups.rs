//! ListGroups (key 16), v0-5.
//!
//! The groups that this broker coordinates. A coordinator that is loading makes it an error of the whole; one that has just gone has none.
//! * v1 throttle time. v4 state, and filter by state (KIP-518). v5 type, and filter by type (KIP-848).

use super::groups::ask_one;
use super::terms::text;
use super::{Call, Cx, Outcome, Spec};
use crate::core::group::request::{List, Listed};
use crate::core::group::{Answer, Request, Why};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(16, "ListGroups", 0, 5);

/// Lists groups.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ListGroupsRequest) -> Outcome<ListGroupsResponse> {
    let texts = |list: &[StrBytes]| list.iter().map(|text| text.to_string()).collect();
    let list = List { states: texts(&request.states_filter), kinds: texts(&request.types_filter) };
    let coordinators = cx.broker.routes.all_groups();
    let asked: Vec<_> = coordinators.into_iter().map(|groups| ask_one(Some(groups), Request::List(list.clone()))).collect();
    let call = call.clone();
    Outcome::later(async move {
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(match answer.await {
                Answer::List(listed) => listed,
                other => unreachable!("an answer has the name of its request, not {other:?}"),
            });
        }
        respond(&call, answers)
    })
}

fn respond(call: &Call, answers: Vec<Result<Vec<Listed>, Why>>) -> ListGroupsResponse {
    let mut groups = Vec::new();
    for answer in answers {
        match answer {
            Ok(listed) => groups.extend(listed.into_iter().map(|listed| row(call.version, &listed))),
            Err(Why::NotCoordinator) => {}
            Err(why) => return ListGroupsResponse::default().with_error_code(call.error(why.into())),
        }
    }
    ListGroupsResponse::default().with_error_code(call.error(ErrorCode::None)).with_groups(groups)
}

fn row(version: i16, listed: &Listed) -> ListedGroup {
    let row = ListedGroup::default().with_group_id(GroupId(text(&listed.group))).with_protocol_type(text(&listed.protocol_type));
    let row = if version >= 4 { row.with_group_state(StrBytes::from_static_str(listed.state.name())) } else { row };
    if version >= 5 { row.with_group_type(StrBytes::from_static_str(listed.kind.name())) } else { row }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::group::request::{Kind, State};

    fn listed(group: &str) -> Listed {
        Listed { group: group.into(), protocol_type: "consumer".into(), state: State::Stable, kind: Kind::Classic }
    }

    #[test]
    fn coordinators_that_are_gone_have_no_groups_and_loading_ones_are_an_error() {
        let good = || vec![Ok(vec![listed("a")]), Err(Why::NotCoordinator), Ok(vec![listed("b"), listed("c")])];
        encodes(SPEC, |call| respond(call, good()));
        let answer = respond(&call(SPEC, 5), good());
        let rows: Vec<_> = answer.groups.iter().map(|row| (row.group_id.as_str(), row.group_state.as_str(), row.group_type.as_str())).collect();
        assert_eq!(rows, [("a", "Stable", "classic"), ("b", "Stable", "classic"), ("c", "Stable", "classic")]);
        let answer = respond(&call(SPEC, 5), vec![Ok(vec![listed("a")]), Err(Why::LoadInProgress)]);
        assert_eq!((answer.error_code, answer.groups.len()), (14, 0));
    }
}
