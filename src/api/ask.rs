//! Requests to the controller, with an end to waiting: to the active one wherever it is, or to this node's own.

use super::Cx;
use crate::actors::controller::NotActive;
use crate::actors::link::{AskHere, Forward, Unavailable};
use crate::core::controller::{Answer, Refusal, Request};
use crate::rt::{Gone, Tell, clock, port};
use crate::wire::error::ErrorCode;
use kafka_protocol::protocol::StrBytes;
use std::time::Duration;

/// How long to wait before the controller is asked again while there is none.
const RETRY_BACKOFF: Duration = Duration::from_millis(20);

/// Nobody answered in time. The request may have been carried out all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

/// Asks the controller. While there is none, asks again until `timeout_ms` (a request's own; less than 0 counts as 0) or
/// `request.timeout.ms` is over, as Kafka's brokers do.
pub async fn controller(cx: &Cx, request: Request, timeout_ms: Option<i32>) -> Result<Answer, TimedOut> {
    let patience = i64::from(cx.broker.config.request_timeout_ms);
    let patience = timeout_ms.map_or(patience, |own| i64::from(own).min(patience)).max(0);
    let deadline = clock::moment().deadline(Duration::from_millis(patience as u64));
    loop {
        let (reply, answer) = port();
        cx.broker.link.tell(Forward { request: request.clone(), reply });
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(Ok(answer))) => return Ok(answer),
            Ok(Ok(Err(Unavailable)) | Err(Gone)) if cx.moved() => return Err(TimedOut),
            Ok(Ok(Err(Unavailable)) | Err(Gone)) => {
                if tokio::time::timeout_at(deadline, tokio::time::sleep(RETRY_BACKOFF)).await.is_err() {
                    return Err(TimedOut);
                }
            }
            Err(_) => return Err(TimedOut),
        }
    }
}

/// Asks this node's own controller, once: what brokers ask a controller is answered by the active one or refused.
pub async fn here(cx: &Cx, request: Request) -> Result<Answer, NotActive> {
    let (reply, answer) = port();
    cx.broker.link.tell(AskHere { request, reply });
    answer.await.unwrap_or(Err(NotActive))
}

/// Error and message of a refusal, where Kafka says the standard sentence of an error that has no details.
pub fn refused(refusal: Refusal) -> (ErrorCode, Option<StrBytes>) {
    let code = ErrorCode::from(refusal.why);
    let message = refusal.message.map(StrBytes::from_string);
    (code, message.or(code.sentence().map(StrBytes::from_static_str)))
}

/// Error and message of a result; none of either if it is good.
pub fn outcome<T>(result: Result<T, Refusal>) -> (ErrorCode, Option<StrBytes>) {
    match result {
        Ok(_) => (ErrorCode::None, None),
        Err(refusal) => refused(refusal),
    }
}
