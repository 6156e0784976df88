//! BrokerRegistration (key 62), v0-4 (KIP-631).
//!
//! A broker joins the cluster, or comes back.
//! * v1 migration from ZooKeeper, ignored. v2 log directories (KIP-858). v3 the epoch of the broker's last clean stop (KIP-966). v4 features
//!   from level 0 on (KIP-1022).

use super::{Audience, Call, Cx, Outcome, Spec, ask};
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Answer, Refusal, Request};
use crate::wire::controller::registration;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(62, "BrokerRegistration", 0, 4).to(Audience::Controllers);

/// Asks the controller.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: BrokerRegistrationRequest) -> Outcome<BrokerRegistrationResponse> {
    let Some(registration) = registration(request) else {
        return Outcome::Now(refused(call, ErrorCode::InvalidRequest));
    };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::here(&cx, Request::RegisterBroker(registration)).await {
            Ok(Answer::RegisterBroker(outcome)) => respond(&call, outcome),
            _ => refused(&call, ErrorCode::NotController),
        }
    })
}

fn respond(call: &Call, outcome: Result<BrokerEpoch, Refusal>) -> BrokerRegistrationResponse {
    match outcome {
        Ok(epoch) => BrokerRegistrationResponse::default().with_broker_epoch(epoch.0),
        Err(refusal) => {
            tracing::info!("a broker's registration is refused: {refusal}");
            refused(call, refusal.why.into())
        }
    }
}

fn refused(call: &Call, error: ErrorCode) -> BrokerRegistrationResponse {
    BrokerRegistrationResponse::default().with_error_code(call.error(error)).with_broker_epoch(BrokerEpoch::NONE.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;

    #[test]
    fn an_epoch_or_an_error() {
        encodes(SPEC, |call| respond(call, Ok(BrokerEpoch(7))));
        encodes(SPEC, |call| respond(call, Err(Why::DuplicateBrokerRegistration.into())));
        let answer = respond(&call(SPEC, 4), Err(Why::DuplicateBrokerRegistration.into()));
        assert_eq!((answer.error_code, answer.broker_epoch), (101, -1));
    }
}
