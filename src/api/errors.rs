//! Which of Kafka's errors the refusal of a question to a partition becomes (semantics reference, 3.2 to 3.4). Only names: the numbers are
//! `wire::error`'s.

use crate::actors::partition::messages::ReadRefused;
use crate::wire::error::ErrorCode;

impl From<&ReadRefused> for ErrorCode {
    fn from(refused: &ReadRefused) -> ErrorCode {
        match refused {
            ReadRefused::NotLeader(_) | ReadRefused::Gone => ErrorCode::NotLeaderOrFollower,
            ReadRefused::FencedEpoch(_) => ErrorCode::FencedLeaderEpoch,
            ReadRefused::UnknownEpoch => ErrorCode::UnknownLeaderEpoch,
            ReadRefused::OutOfRange => ErrorCode::OffsetOutOfRange,
            ReadRefused::OnlyCompacted => ErrorCode::PolicyViolation,
            ReadRefused::Storage(_) => ErrorCode::KafkaStorageError,
        }
    }
}
