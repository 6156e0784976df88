//! Which of Kafka's errors a refusal of a partition becomes. Only names: the numbers are `wire::error`'s. Rules: semantics reference, 3.1 to 3.4.

use crate::actors::partition::messages::{AppendRefused, ReadRefused};
use crate::core::producer::ProducerRefused;
use crate::log::validate::BatchRefused;
use crate::wire::error::ErrorCode;

impl From<&ReadRefused> for ErrorCode {
    fn from(refused: &ReadRefused) -> ErrorCode {
        match refused {
            ReadRefused::NotLeader(_) | ReadRefused::Gone => ErrorCode::NotLeaderOrFollower,
            ReadRefused::FencedEpoch(_) => ErrorCode::FencedLeaderEpoch,
            ReadRefused::UnknownEpoch => ErrorCode::UnknownLeaderEpoch,
            ReadRefused::OutOfRange => ErrorCode::OffsetOutOfRange,
            ReadRefused::Storage(_) => ErrorCode::KafkaStorageError,
        }
    }
}

impl From<&AppendRefused> for ErrorCode {
    fn from(refused: &AppendRefused) -> ErrorCode {
        match refused {
            AppendRefused::NotLeader(_) | AppendRefused::Gone => ErrorCode::NotLeaderOrFollower,
            AppendRefused::NotEnoughReplicas => ErrorCode::NotEnoughReplicas,
            AppendRefused::NotEnoughReplicasAfterAppend => ErrorCode::NotEnoughReplicasAfterAppend,
            AppendRefused::Batch(refused) => refused.into(),
            AppendRefused::Producer(ProducerRefused::StaleEpoch { .. }) => ErrorCode::InvalidProducerEpoch,
            AppendRefused::Producer(ProducerRefused::OutOfOrder { .. }) => ErrorCode::OutOfOrderSequenceNumber,
            AppendRefused::LargerThanSegment => ErrorCode::RecordListTooLarge,
            AppendRefused::Storage(_) => ErrorCode::KafkaStorageError,
        }
    }
}

impl From<&BatchRefused> for ErrorCode {
    fn from(refused: &BatchRefused) -> ErrorCode {
        match refused {
            BatchRefused::NotOneBatch(_) | BatchRefused::WrongMagic(_) | BatchRefused::Invalid { .. } => ErrorCode::InvalidRecord,
            BatchRefused::UnsupportedCompression => ErrorCode::UnsupportedCompressionType,
            BatchRefused::Corrupt(_) => ErrorCode::CorruptMessage,
            BatchRefused::TooLarge { .. } => ErrorCode::MessageTooLarge,
            BatchRefused::InvalidTimestamp { .. } => ErrorCode::InvalidTimestamp,
        }
    }
}
