//! Vote (key 52), v0-2 (KIP-595).
//!
//! A voter asks for this node's vote, or, in a pre-vote, what the answer would be.
//! * v1 directory ids of both (KIP-853). v2 pre-votes (KIP-996).

use super::quorum::{is_foreign, leader_of, serve};
use super::{Audience, Call, Cx, Outcome, Spec};
use crate::core::quorum::message::Response;
use crate::wire::quorum as wire;
use kafka_protocol::messages::{VoteRequest, VoteResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(52, "Vote", 0, 2).to(Audience::Controllers);

/// Asks the quorum.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: VoteRequest) -> Outcome<VoteResponse> {
    let foreign = is_foreign(cx, request.cluster_id.as_ref());
    let refused = |error| VoteResponse::default().with_error_code(error);
    serve(cx, call, foreign, wire::vote(request), refused, |cx, said, version| match said {
        Response::Vote { head, granted } => Some((head, wire::vote_answer(head, granted, leader_of(cx, head).as_ref(), version))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::encodes;
    use crate::core::quorum::message::Head;
    use crate::core::types::{BrokerId, Epoch};

    #[test]
    fn every_version_can_be_written() {
        let at = wire::Endpoint { node: BrokerId(1), host: "h".into(), port: 9093 };
        let head = Head { refused: None, epoch: Epoch(3), leader: Some(BrokerId(1)) };
        encodes(SPEC, |call| {
            let leader = Some(at.clone());
            wire::vote_answer(head, true, leader.as_ref(), call.version)
        });
    }
}
