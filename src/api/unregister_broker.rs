//! UnregisterBroker (key 64), v0 (KIP-631).
//!
//! Forgets a broker that is gone for good.

use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::{Answer, Refusal, Request};
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(64, "UnregisterBroker", 0, 0).carried();

/// Has the controller forget a broker.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: UnregisterBrokerRequest) -> Outcome<UnregisterBrokerResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::controller(&cx, Request::UnregisterBroker(BrokerId(request.broker_id.0)), None).await {
            Ok(Answer::UnregisterBroker(result)) => respond(&call, result),
            _ => UnregisterBrokerResponse::default().with_error_code(call.error(ErrorCode::RequestTimedOut)).with_error_message(None),
        }
    })
}

fn respond(call: &Call, result: Result<(), Refusal>) -> UnregisterBrokerResponse {
    match result {
        Ok(()) => UnregisterBrokerResponse::default(),
        Err(refusal) => {
            let (code, message) = ask::refused(refusal);
            UnregisterBrokerResponse::default().with_error_code(call.error(code)).with_error_message(message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;

    #[test]
    fn a_refusal_has_its_message() {
        let refused = || Err(Refusal::new(Why::BrokerIdNotRegistered, "Broker ID 7 is not currently registered"));
        encodes(SPEC, |call| respond(call, refused()));
        let answer = respond(&call(SPEC, 0), refused());
        assert_eq!((answer.error_code, answer.error_message.as_deref()), (102, Some("Broker ID 7 is not currently registered")));
        assert_eq!(respond(&call(SPEC, 0), Ok(())).error_code, 0);
    }
}
