//! Requests that are the active controller's to answer: served here if this node leads, else carried to the node that does, in an Envelope, and
//! the answer brought back as it is (KIP-590). When another node takes over meanwhile, that one is asked.

use super::{Call, Cx, Dispatched, Response, Step};
use crate::actors::link::Carry;
use crate::rt::{Tell, clock, port};
use crate::wire::error::ErrorCode;
use crate::wire::{guard, header};
use bytes::{BufMut, Bytes, BytesMut};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// How long to wait before asking again while nobody leads.
const RETRY_BACKOFF: Duration = Duration::from_millis(20);

/// Has the request answered within `request.timeout.ms`; then the handler says that nobody did.
pub(super) fn to_controller(cx: &Cx, call: &Rc<Call>, frame: Bytes, body: Bytes) -> Dispatched {
    let (cx, call) = (cx.clone(), call.clone());
    Dispatched::Later(Box::pin(async move {
        let deadline = call.received.deadline(Duration::from_millis(cx.broker.config.request_timeout_ms.max(0) as u64));
        loop {
            if cx.broker.leads() {
                let (step, moved) = serve(&cx, &call, body.clone()).await;
                if !moved {
                    return step;
                }
            } else if let Some(answer) = carry(&cx, frame.clone(), deadline).await {
                return take(&call, &answer);
            }
            if tokio::time::timeout_at(deadline, tokio::time::sleep(RETRY_BACKOFF)).await.is_err() {
                return serve(&cx, &call, body).await.0;
            }
        }
    }))
}

/// Runs the handler here. Also returns whether it found no active controller.
async fn serve(cx: &Cx, call: &Rc<Call>, body: Bytes) -> (Step, bool) {
    let moved = Rc::new(Cell::new(false));
    let cx = Cx { moved: Some(moved.clone()), ..cx.clone() };
    let step = match super::run(&cx, call, body) {
        Ok(Dispatched::Done(step)) => step,
        Ok(Dispatched::Later(future)) => future.await,
        Err(refusal) => {
            tracing::debug!(api = call.key, "connection closed: {refusal}");
            Step::Close
        }
    };
    (step, moved.get())
}

async fn carry(cx: &Cx, frame: Bytes, deadline: tokio::time::Instant) -> Option<Bytes> {
    let (reply, answer) = port();
    cx.broker.link.tell(Carry { frame, from: cx.peer.address.ip(), reply });
    tokio::time::timeout_at(deadline, answer).await.ok()?.ok()?.ok()
}

/// The answer as the controller wrote it, if it is one to this request.
fn take(call: &Call, answer: &Bytes) -> Step {
    if answer.get(..4) != Some(&call.correlation.to_be_bytes()[..]) {
        tracing::error!(api = call.key, "the controller answered something else, closing the client's connection");
        return Step::Close;
    }
    let mut bytes = BytesMut::with_capacity(answer.len() + 4);
    bytes.put_u32(0);
    bytes.put_slice(answer);
    Step::Respond(Response { bytes, splices: Vec::new() }.seal())
}

/// Serves a request that was carried here; the answer has its header, and no size before it.
pub(super) async fn unpack(cx: &Cx, frame: Bytes) -> Result<Bytes, ErrorCode> {
    let (call, body) = open(cx, &frame)?;
    let (step, moved) = serve(cx, &call, body).await;
    call.answered();
    match step {
        _ if moved => Err(ErrorCode::NotController),
        Step::Respond(response) if response.splices.is_empty() => Ok(response.bytes.freeze().slice(4..)),
        _ => Err(ErrorCode::InvalidRequest),
    }
}

fn open(cx: &Cx, frame: &Bytes) -> Result<(Rc<Call>, Bytes), ErrorCode> {
    let (head, body) = header::parse(frame).map_err(|_| ErrorCode::InvalidRequest)?;
    let spec = super::spec(head.key).filter(|spec| spec.carried).ok_or(ErrorCode::InvalidRequest)?;
    if !(spec.min..=spec.max).contains(&head.version) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    guard::check(head.key, head.version, body).map_err(|_| ErrorCode::InvalidRequest)?;
    let metrics = cx.broker.api_metrics(head.key).ok_or(ErrorCode::InvalidRequest)?;
    let body = frame.slice(frame.len() - body.len()..);
    let call = Call::new(head.key, head.version, head.correlation_id, head.client_id.into(), clock::moment(), metrics.clone());
    Ok((Rc::new(call), body))
}
