//! What brokers ask their controller, between Kafka's messages and the values of `core::controller`. Both sides: a broker writes requests and reads
//! answers, a controller reads requests. What administrators ask travels in envelopes, as it came; of that only CreateTopics is written here,
//! for topics that brokers need themselves.

mod brokers;
mod partitions;
#[cfg(test)]
mod tests;
mod topics;

pub use brokers::{envelope, heartbeat, opened, registration};
pub use partitions::{alter_partitions, assign_directories};

use super::error::ErrorCode;
use super::guard;
use crate::core::controller::records::SecurityProtocol;
use crate::core::controller::request::{Answer, Refusal, Request};
use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};
use std::ops::RangeInclusive;

/// Key of Envelope.
pub const ENVELOPE: i16 = 58;

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Who was asked is not the active controller.
    #[error("not the active controller")]
    NotController,
    /// An error that says nothing about what was asked.
    #[error("the controller answers {}", .0.name())]
    Other(ErrorCode),
    /// It is not an answer of that version.
    #[error("malformed: {0}")]
    Malformed(String),
}

/// The API key and the versions in which a request can be said; `None` if only administrators ask that.
pub fn say(request: &Request) -> Option<(i16, RangeInclusive<i16>)> {
    Some(match request {
        Request::CreateTopics { .. } => (19, 7..=7),
        // With a leader's members by registration (KIP-903).
        Request::AlterPartitions { .. } => (56, 3..=3),
        // With directories (KIP-858), and features from 0 on (KIP-1022).
        Request::RegisterBroker(_) => (62, 4..=4),
        Request::Heartbeat(_) => (63, 1..=1),
        Request::AllocateProducerIds { .. } => (67, 0..=0),
        Request::AssignDirectories { .. } => (73, 0..=0),
        _ => return None,
    })
}

/// The body of a request that can be said. Errors: the message crate cannot write it.
pub fn encode(request: &Request, version: i16) -> Result<BytesMut, String> {
    match request {
        Request::CreateTopics { topics, validate_only } => bytes(&topics::create(topics, *validate_only), version),
        Request::AlterPartitions { broker, broker_epoch, topics } => bytes(&partitions::alter(*broker, *broker_epoch, topics), version),
        Request::RegisterBroker(registration) => bytes(&brokers::register(registration), version),
        Request::Heartbeat(heartbeat) => bytes(&brokers::beat(heartbeat), version),
        Request::AllocateProducerIds { broker, broker_epoch } => bytes(&brokers::allocate(*broker, *broker_epoch), version),
        Request::AssignDirectories { broker, broker_epoch, directories } => {
            bytes(&partitions::assign(*broker, *broker_epoch, directories), version)
        }
        other => Err(format!("brokers do not ask this: {other:?}")),
    }
}

/// An answer to a request of that key and version.
pub fn decode(key: i16, version: i16, body: Bytes) -> Result<Answer, NoAnswer> {
    guard::check_answer(key, version, &body).map_err(|e| NoAnswer::Malformed(e.to_string()))?;
    match key {
        19 => topics::created(read(body, version)?),
        56 => partitions::altered(read(body, version)?),
        62 => brokers::registered(read(body, version)?),
        63 => brokers::beaten(read(body, version)?),
        67 => brokers::allocated(read(body, version)?),
        73 => partitions::assigned(read(body, version)?),
        _ => Err(NoAnswer::Malformed(format!("nobody asks for key {key}"))),
    }
}

fn bytes<T: Encodable>(message: &T, version: i16) -> Result<BytesMut, String> {
    let mut out = BytesMut::new();
    message.encode(&mut out, version).map_err(|e| e.to_string())?;
    Ok(out)
}

fn read<T: Decodable>(mut body: Bytes, version: i16) -> Result<T, NoAnswer> {
    T::decode(&mut body, version).map_err(|e| NoAnswer::Malformed(e.to_string()))
}

/// Nothing, a refusal, or something that is no answer.
fn outcome(code: i16) -> Result<Result<(), Refusal>, NoAnswer> {
    match ErrorCode::from_code(code) {
        Some(ErrorCode::None) => Ok(Ok(())),
        Some(ErrorCode::NotController) => Err(NoAnswer::NotController),
        Some(error) => error.why().map(|why| Err(why.into())).ok_or(NoAnswer::Other(error)),
        None => Err(NoAnswer::Malformed(format!("error {code}"))),
    }
}

fn protocol(code: i16) -> Option<SecurityProtocol> {
    Some(match code {
        0 => SecurityProtocol::Plaintext,
        1 => SecurityProtocol::Ssl,
        2 => SecurityProtocol::SaslPlaintext,
        3 => SecurityProtocol::SaslSsl,
        _ => return None,
    })
}

fn number(protocol: SecurityProtocol) -> i16 {
    match protocol {
        SecurityProtocol::Plaintext => 0,
        SecurityProtocol::Ssl => 1,
        SecurityProtocol::SaslPlaintext => 2,
        SecurityProtocol::SaslSsl => 3,
    }
}
