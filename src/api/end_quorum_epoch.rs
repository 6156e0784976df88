//! EndQuorumEpoch (key 54), v0-1 (KIP-595).
//!
//! A leader that resigns tells the voters, and who had best campaign first.
//! * v1 directory ids of the candidates, and endpoints (KIP-853).

use super::quorum::{is_foreign, leader_of, serve};
use super::{Audience, Call, Cx, Outcome, Spec};
use crate::core::quorum::message::Response;
use crate::wire::quorum as wire;
use kafka_protocol::messages::{EndQuorumEpochRequest, EndQuorumEpochResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(54, "EndQuorumEpoch", 0, 1).to(Audience::Controllers);

/// Tells the quorum.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: EndQuorumEpochRequest) -> Outcome<EndQuorumEpochResponse> {
    let foreign = is_foreign(cx, request.cluster_id.as_ref());
    let refused = |error| EndQuorumEpochResponse::default().with_error_code(error);
    serve(cx, call, foreign, wire::end(request), refused, |cx, said, version| match said {
        Response::EndEpoch(head) => Some((head, wire::end_answer(head, leader_of(cx, head).as_ref(), version))),
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
            wire::end_answer(head, leader.as_ref(), call.version)
        });
    }
}
