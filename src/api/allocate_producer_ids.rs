//! AllocateProducerIds (key 67), v0 (KIP-730).
//!
//! A block of producer ids for one broker to hand out.

use super::{Audience, Call, Cx, Outcome, Spec, ask};
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Answer, ProducerIdBlock, Refusal, Request};
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerId};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(67, "AllocateProducerIds", 0, 0).to(Audience::Controllers);

/// Asks the controller.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: AllocateProducerIdsRequest) -> Outcome<AllocateProducerIdsResponse> {
    let (broker, broker_epoch) = (BrokerId(request.broker_id.0), BrokerEpoch(request.broker_epoch));
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::here(&cx, Request::AllocateProducerIds { broker, broker_epoch }).await {
            Ok(Answer::AllocateProducerIds(outcome)) => respond(&call, outcome),
            _ => refused(&call, ErrorCode::NotController),
        }
    })
}

fn respond(call: &Call, outcome: Result<ProducerIdBlock, Refusal>) -> AllocateProducerIdsResponse {
    match outcome {
        Ok(block) => {
            AllocateProducerIdsResponse::default().with_producer_id_start(ProducerId(block.first)).with_producer_id_len(block.count)
        }
        Err(refusal) => refused(call, refusal.why.into()),
    }
}

fn refused(call: &Call, error: ErrorCode) -> AllocateProducerIdsResponse {
    AllocateProducerIdsResponse::default().with_error_code(call.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;

    #[test]
    fn a_block_or_an_error() {
        let block = ProducerIdBlock { first: 3000, count: 1000 };
        encodes(SPEC, |call| respond(call, Ok(block)));
        let answer = respond(&call(SPEC, 0), Ok(block));
        assert_eq!((answer.producer_id_start.0, answer.producer_id_len), (3000, 1000));
        assert_eq!(respond(&call(SPEC, 0), Err(Why::StaleBrokerEpoch.into())).error_code, 77);
    }
}
