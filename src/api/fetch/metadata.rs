//! Fetch on a listener of the metadata quorum: batches of the metadata log for its other nodes, and nothing else.

use super::reply::FetchReply;
use crate::api::quorum::{ask, is_foreign, leader_of};
use crate::api::{Call, Cx, Outcome};
use crate::core::quorum::message::Response;
use crate::wire::error::ErrorCode;
use crate::wire::quorum as wire;
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use std::rc::Rc;

/// Asks the quorum.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: FetchRequest) -> Outcome<FetchReply> {
    call.count_also_as(cx.broker.metrics.api("FetchFollower", super::SPEC.min..=super::SPEC.max, &[]));
    if is_foreign(cx, request.cluster_id.as_ref()) {
        return Outcome::Now(refused(call, ErrorCode::InconsistentClusterId));
    }
    let Some(request) = wire::fetch(request, call.version) else { return Outcome::Now(refused(call, ErrorCode::InvalidRequest)) };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask(&cx, request).await {
            Ok(Response::Fetch(fetched)) => {
                if let Some(problem) = fetched.head.refused {
                    call.error(problem.into());
                }
                let leader = leader_of(&cx, fetched.head);
                FetchReply::of_quorum(&call, wire::fetch_answer(fetched, leader.as_ref(), call.version))
            }
            _ => refused(&call, ErrorCode::UnknownServerError),
        }
    })
}

fn refused(call: &Rc<Call>, error: ErrorCode) -> FetchReply {
    FetchReply::of_quorum(call, FetchResponse::default().with_error_code(call.error(error)))
}
