//! AlterReplicaLogDirs (key 34), v1-2.
//!
//! Moves replicas between the log directories of this broker (KIP-113).
//! * v1 throttle time is the client's to keep (KIP-219). v2 flexible.
//! * Checks what Kafka checks; a replica that is where it shall be is fine. Moving one is not done: KAFKA_STORAGE_ERROR, which Kafka answers
//!   when it cannot make the replica in the other directory.
//! * A partition that is named more than once is answered once, for the last directory named.

use super::{Call, Cx, Outcome, Spec};
use crate::core::types::TopicPartition;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::alter_replica_log_dirs_response::{AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult};
use kafka_protocol::messages::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(34, "AlterReplicaLogDirs", 1, 2);

/// Longest name of a directory, and what a replica on the move has behind topic and index: a dot, 32 digits and `-future`.
const DIR_NAME_MAX: usize = 255;
const FUTURE_SUFFIX: usize = 1 + 32 + 7;

/// Judges every partition.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: AlterReplicaLogDirsRequest) -> Outcome<AlterReplicaLogDirsResponse> {
    let mut topics: BTreeMap<TopicName, BTreeMap<i32, StrBytes>> = BTreeMap::new();
    for dir in request.dirs {
        for topic in dir.topics {
            let partitions = topics.entry(topic.name).or_default();
            partitions.extend(topic.partitions.iter().map(|index| (*index, dir.path.clone())));
        }
    }
    let results = topics.into_iter().map(|(name, partitions)| {
        let rows = partitions.into_iter().map(|(index, path)| {
            let code = judge(cx, &name, index, Path::new(path.as_str()));
            AlterReplicaLogDirPartitionResult::default().with_partition_index(index).with_error_code(call.error(code))
        });
        AlterReplicaLogDirTopicResult::default().with_partitions(rows.collect()).with_topic_name(name)
    });
    Outcome::Now(AlterReplicaLogDirsResponse::default().with_results(results.collect()))
}

fn judge(cx: &Cx, topic: &str, partition: i32, to: &Path) -> ErrorCode {
    if is_too_long(topic, partition) {
        return ErrorCode::InvalidTopicException;
    }
    let dirs = cx.broker.disk.for_partitions();
    let Some(to) = dirs.iter().position(|dir| dir.absolute() == to) else { return ErrorCode::LogDirNotFound };
    let image = cx.image();
    let Some(topic) = image.topic_by_name(topic).filter(|topic| topic.partition(partition).is_some()) else {
        return ErrorCode::UnknownTopicOrPartition;
    };
    match cx.broker.routes.with(TopicPartition { topic: topic.id, partition }, |route| route.dir) {
        Some(dir) if dir == to => ErrorCode::None,
        Some(_) => ErrorCode::KafkaStorageError,
        None => ErrorCode::ReplicaNotAvailable,
    }
}

/// Whether a replica on the move would have a directory name that file systems do not take.
fn is_too_long(topic: &str, partition: i32) -> bool {
    format!("{topic}-{partition}").len() + FUTURE_SUFFIX > DIR_NAME_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_no_room_for_the_suffix() {
        let table = [(213, 0, false), (214, 0, true), (212, 10, false), (213, 10, true)];
        for (length, partition, expected) in table {
            assert_eq!(is_too_long(&"t".repeat(length), partition), expected, "{length} and {partition}");
        }
    }
}
