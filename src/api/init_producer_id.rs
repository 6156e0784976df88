//! InitProducerId (key 22), v0-5.
//!
//! Gives an idempotent producer its id, at epoch 0; a new one for every request, as Kafka does.
//! * v1 throttle time. v2 flexible. v3 the producer's present id and epoch (KIP-360). v4 PRODUCER_FENCED. v5 TRANSACTION_ABORTABLE (KIP-890).
//! * Transactions are not coordinated here: a transactional id passes Kafka's checks and is then answered COORDINATOR_NOT_AVAILABLE.

use super::{Call, Cx, Outcome, Spec};
use crate::actors::link::{NextProducerId, Unavailable};
use crate::rt::{Gone, Tell, port};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(22, "InitProducerId", 0, 5);

/// Checks, then takes the next id.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: InitProducerIdRequest) -> Outcome<InitProducerIdResponse> {
    if let Some(code) = refused(&request, cx.broker.config.transaction_max_timeout_ms) {
        return Outcome::Now(failure(call, code));
    }
    let (reply, answer) = port();
    cx.broker.link.tell(NextProducerId { reply });
    let call = call.clone();
    Outcome::later(async move {
        match answer.await {
            Ok(Ok(id)) => InitProducerIdResponse::default().with_producer_id(ProducerId(id)).with_producer_epoch(0),
            // Retriable for every client, and what Kafka says while it waits for a block of ids.
            Ok(Err(Unavailable)) | Err(Gone) => failure(&call, ErrorCode::CoordinatorLoadInProgress),
        }
    })
}

/// Why no id is given. The order is Kafka's (semantics reference, 3.9).
fn refused(request: &InitProducerIdRequest, longest_timeout: i32) -> Option<ErrorCode> {
    if (request.producer_id.0 == -1) != (request.producer_epoch == -1) {
        return Some(ErrorCode::InvalidRequest);
    }
    let transactional = request.transactional_id.as_ref()?;
    if transactional.is_empty() {
        return Some(ErrorCode::InvalidRequest);
    }
    if !(1..=longest_timeout).contains(&request.transaction_timeout_ms) {
        return Some(ErrorCode::InvalidTransactionTimeout);
    }
    Some(ErrorCode::CoordinatorNotAvailable)
}

fn failure(call: &Call, code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse::default().with_error_code(call.error(code)).with_producer_id(ProducerId(-1)).with_producer_epoch(-1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::TransactionalId;
    use kafka_protocol::protocol::StrBytes;

    #[test]
    fn checks_come_in_kafkas_order() {
        let table = [
            (None, -1, -1, 0, None),
            (None, 5, 3, 0, None),
            (None, 5, -1, 0, Some(ErrorCode::InvalidRequest)),
            (None, -1, 0, 0, Some(ErrorCode::InvalidRequest)),
            (Some(""), -1, -1, 0, Some(ErrorCode::InvalidRequest)),
            (Some("t"), -1, 0, 0, Some(ErrorCode::InvalidRequest)),
            (Some("t"), -1, -1, 0, Some(ErrorCode::InvalidTransactionTimeout)),
            (Some("t"), -1, -1, 901, Some(ErrorCode::InvalidTransactionTimeout)),
            (Some("t"), -1, -1, 900, Some(ErrorCode::CoordinatorNotAvailable)),
        ];
        for (transactional, id, epoch, timeout, expected) in table {
            let request = InitProducerIdRequest::default()
                .with_transactional_id(transactional.map(|name| TransactionalId(StrBytes::from_static_str(name))))
                .with_producer_id(ProducerId(id))
                .with_producer_epoch(epoch)
                .with_transaction_timeout_ms(timeout);
            assert_eq!(refused(&request, 900), expected, "{request:?}");
        }
    }
}
