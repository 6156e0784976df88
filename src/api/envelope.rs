//! Envelope (key 58), v0 (KIP-590).
//!
//! A broker carries a client's request to the active controller. Who the client is, is not asked: nobody is refused anything here.

use super::{Audience, Call, Cx, Outcome, Spec, carry};
use crate::wire::error::ErrorCode;
use bytes::Bytes;
use kafka_protocol::messages::{EnvelopeRequest, EnvelopeResponse};
use std::rc::Rc;

/// The row. Requests in envelopes are several clients': none waits for the one before it.
pub const SPEC: Spec = Spec::new(58, "Envelope", 0, 0).to(Audience::Controllers).pipelined();

/// Serves what is inside.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: EnvelopeRequest) -> Outcome<EnvelopeResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    // On its way at once: an answer is polled for only when those before it are out.
    let served = tokio::task::spawn_local(async move { carry::unpack(&cx, request.request_data).await });
    Outcome::later(async move { respond(&call, served.await.unwrap_or(Err(ErrorCode::UnknownServerError))) })
}

fn respond(call: &Call, served: Result<Bytes, ErrorCode>) -> EnvelopeResponse {
    match served {
        Ok(answer) => EnvelopeResponse::default().with_response_data(Some(answer)),
        Err(error) => EnvelopeResponse::default().with_response_data(None).with_error_code(call.error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};

    #[test]
    fn an_answer_or_an_error() {
        encodes(SPEC, |call| respond(call, Ok(Bytes::from_static(b"answer"))));
        encodes(SPEC, |call| respond(call, Err(ErrorCode::NotController)));
        let refused = respond(&call(SPEC, 0), Err(ErrorCode::NotController));
        assert_eq!((refused.error_code, refused.response_data), (41, None));
    }
}
