//! What the nodes of the metadata quorum say to each other, between Kafka's messages and the values of `core::quorum`. Which is right and which
//! is not is the rules' business; here only shape counts: one topic, one partition, the right name.

mod answers;
mod requests;
#[cfg(test)]
mod tests;

pub use answers::{Endpoint, begin_answer, decode, end_answer, fetch_answer, snapshot_answer, vote_answer};
pub use requests::{Asking, begin, encode, end, fetch, key, snapshot, versions, vote};

use super::error::ErrorCode;
use crate::core::quorum::message::Problem;
use crate::core::types::{BrokerId, Id};
use kafka_protocol::messages::TopicName;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

/// The topic of the metadata log.
pub const TOPIC: &str = "__cluster_metadata";

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str(TOPIC))
}

/// The only element of a list.
fn single<T>(mut list: Vec<T>) -> Option<T> {
    if list.len() == 1 { list.pop() } else { None }
}

fn node(id: BrokerId) -> kafka_protocol::messages::BrokerId {
    kafka_protocol::messages::BrokerId(id.0)
}

fn leader(id: kafka_protocol::messages::BrokerId) -> Option<BrokerId> {
    (id.0 >= 0).then_some(BrokerId(id.0))
}

fn uuid(id: Id) -> Uuid {
    Uuid::from_u128(id.0)
}

fn id(uuid: Uuid) -> Id {
    Id(uuid.as_u128())
}

fn code(refused: Option<Problem>) -> i16 {
    refused.map_or(ErrorCode::None, ErrorCode::from) as i16
}

fn problem(code: i16) -> Option<Problem> {
    match ErrorCode::from_code(code) {
        Some(ErrorCode::None) => None,
        Some(ErrorCode::FencedLeaderEpoch) => Some(Problem::FencedEpoch),
        Some(ErrorCode::UnknownLeaderEpoch) => Some(Problem::UnknownEpoch),
        Some(ErrorCode::NotLeaderOrFollower) => Some(Problem::NotLeader),
        Some(ErrorCode::InvalidRequest) => Some(Problem::Invalid),
        Some(ErrorCode::InvalidVoterKey) => Some(Problem::InvalidVoterKey),
        Some(ErrorCode::SnapshotNotFound) => Some(Problem::SnapshotNotFound),
        Some(ErrorCode::PositionOutOfRange) => Some(Problem::PositionOutOfRange),
        Some(ErrorCode::BrokerNotAvailable) => Some(Problem::Stopping),
        _ => Some(Problem::Other),
    }
}
