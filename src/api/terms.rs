//! Between the wire's types and ours, and what is the same in many answers.

use crate::actors::groups::messages as groups;
use crate::core::types::{Id, TopicId};
use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::TopicName;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

/// What everybody may do to a topic where nobody is refused anything: read, write, create, delete, alter, describe, and describe and
/// alter its configuration (Kafka's bit field of `AclOperation`s).
pub const TOPIC_OPERATIONS: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);

/// The same for a group: read, delete, describe, and its configuration.
pub const GROUP_OPERATIONS: i32 = bits(&[3, 6, 8, 10, 11]);

/// The same for the cluster: create, alter, describe, cluster actions, its configuration, idempotent writes.
pub const CLUSTER_OPERATIONS: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

/// An authorized-operations field that nobody asked for.
pub const NOT_ASKED: i32 = i32::MIN;

const fn bits(operations: &[u32]) -> i32 {
    let (mut field, mut at) = (0, 0);
    while at < operations.len() {
        field |= 1 << operations[at];
        at += 1;
    }
    field
}

/// Topics that coordinators keep their state in.
const INTERNAL_TOPICS: [&str; 3] = [groups::TOPIC, "__transaction_state", "__share_group_state"];

/// Whether the name is that of a coordinator's topic.
pub fn is_internal(topic: &str) -> bool {
    INTERNAL_TOPICS.contains(&topic)
}

/// A text for an answer.
pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A topic's name for an answer.
pub fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

/// An id for an answer.
pub fn uuid(id: Id) -> Uuid {
    Uuid::from_u128(id.0)
}

/// An id from a request.
pub fn topic_id(id: Uuid) -> TopicId {
    Id(id.as_u128())
}

/// Appends an unsigned varint, as compact lengths are written.
pub fn put_uvarint(bytes: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        bytes.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_numbers_kafka_answers() {
        assert_eq!((TOPIC_OPERATIONS, GROUP_OPERATIONS, CLUSTER_OPERATIONS), (3576, 3400, 8096));
    }
}
