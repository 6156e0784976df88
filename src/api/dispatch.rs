//! From a frame to a handler and from its answer back to a frame.

use super::{Call, Cx, Outcome, Response};
use crate::rt::clock;
use crate::wire::{guard, header};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use kafka_protocol::protocol::{Decodable, Encodable};
use std::rc::Rc;

/// What became of a frame.
pub enum Dispatched {
    /// Answered at once.
    Done(Step),
    /// Answered when the future is done.
    Later(LocalBoxFuture<'static, Step>),
}

/// What the connection does next about one request.
pub enum Step {
    /// Send this.
    Respond(Response),
    /// Nothing to send (acks=0).
    Silent,
    /// Close the connection: an acks=0 produce failed, or the answer could not be written.
    Close,
}

/// Why a frame cannot be answered. Kafka closes the connection in all these cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The header cannot be read.
    #[error("the request header cannot be read: {0}")]
    Header(header::BadHeader),
    /// No such key here.
    #[error("unknown API key")]
    UnknownApi,
    /// The key, but not this version.
    #[error("unsupported version")]
    UnsupportedVersion,
    /// The body is not what the version's schema says.
    #[error("malformed request body: {0}")]
    Body(guard::Malformed),
    /// The body passed the guard but the decoder refused it.
    #[error("undecodable request body: {0}")]
    Decode(String),
}

/// Answers in the layout of the request's version.
pub trait Respond {
    /// Writes the body, and where file ranges go.
    fn respond(&self, version: i16, into: &mut Response) -> Result<(), String>;
}

impl<T: Encodable> Respond for T {
    fn respond(&self, version: i16, into: &mut Response) -> Result<(), String> {
        self.encode(&mut into.bytes, version).map_err(|e| e.to_string())
    }
}

/// Runs one frame (without its size prefix). Stage one of the handler is done when this returns.
pub fn dispatch(cx: &Cx, frame: Bytes) -> Result<(Rc<Call>, Dispatched), Refusal> {
    let (head, body) = header::parse(&frame).map_err(Refusal::Header)?;
    let (Some(spec), Some(metrics)) = (super::spec(head.key), cx.broker.api_metrics(head.key)) else {
        return Err(Refusal::UnknownApi);
    };
    if !spec.audience.includes(cx.peer.quorum) {
        return Err(Refusal::UnknownApi);
    }
    let supported = (spec.min..=spec.max).contains(&head.version);
    let is_api_versions = head.key == header::API_VERSIONS;
    let version = if is_api_versions && !supported { 0 } else { head.version };
    let body = frame.slice(frame.len() - body.len()..);
    let call = Rc::new(Call::new(head.key, version, head.correlation_id, head.client_id.into(), clock::moment(), metrics.clone()));
    if !supported {
        if !is_api_versions {
            return Err(Refusal::UnsupportedVersion);
        }
        let step = encode(&call, &super::api_versions::unsupported_version(&call));
        return Ok((call, Dispatched::Done(step)));
    }
    guard::check(call.key, call.version, &body).map_err(Refusal::Body)?;
    let dispatched = super::run(cx, &call, body)?;
    Ok((call, dispatched))
}

/// Decodes, handles, and encodes what can be encoded now.
pub(super) fn typed<Q: Decodable, R: Respond + 'static>(
    cx: &Cx,
    call: &Rc<Call>,
    mut body: Bytes,
    handle: fn(&Cx, &Rc<Call>, Q) -> Outcome<R>,
) -> Result<Dispatched, Refusal> {
    let request = Q::decode(&mut body, call.version).map_err(|e| Refusal::Decode(e.to_string()))?;
    Ok(match handle(cx, call, request) {
        Outcome::Now(answer) => Dispatched::Done(encode(call, &answer)),
        Outcome::Later(future) => {
            let call = call.clone();
            Dispatched::Later(Box::pin(async move { encode(&call, &future.await) }))
        }
        Outcome::Silent(fine) => Dispatched::Later(Box::pin(async move { if fine.await { Step::Silent } else { Step::Close } })),
    })
}

/// Frames an answer: size, correlation id, tag buffer where the version has one, body.
fn encode<R: Respond>(call: &Call, answer: &R) -> Step {
    let mut response = Response { bytes: BytesMut::with_capacity(256), splices: Vec::new() };
    response.bytes.put_u32(0);
    response.bytes.put_i32(call.correlation);
    if header::response_header_version(call.key, call.version) == 1 {
        response.bytes.put_u8(0);
    }
    match answer.respond(call.version, &mut response) {
        Ok(()) => Step::Respond(response.seal()),
        Err(e) => {
            tracing::error!(api = call.key, version = call.version, "an answer could not be written, closing the connection: {e}");
            Step::Close
        }
    }
}
