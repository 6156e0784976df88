//! What a coordinator writes to its partition of `__consumer_offsets`, as values. The bytes are the wire's business.

use std::sync::Arc;

use bytes::Bytes;

use crate::core::types::{Epoch, Millis, Offset, TopicId};
pub use consumer::*;

mod consumer;

/// One record. Without a value it is a tombstone: what its key names is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupRecord {
    /// A group's offset in a partition.
    Offset {
        /// The group.
        group: Arc<str>,
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The offset.
        value: Option<CommittedOffset>,
    },
    /// A classic group.
    Group {
        /// The group.
        group: Arc<str>,
        /// Its state.
        value: Option<GroupMetadata>,
    },
    /// Something of a group of the consumer protocol.
    Consumer {
        /// The group.
        group: Arc<str>,
        /// What of it.
        record: ConsumerRecord,
    },
}

impl GroupRecord {
    /// The group that it is about.
    pub fn group(&self) -> &Arc<str> {
        match self {
            GroupRecord::Offset { group, .. } | GroupRecord::Group { group, .. } | GroupRecord::Consumer { group, .. } => group,
        }
    }
}

impl GroupRecord {
    /// Whether the later of the two takes the place of the other: they have the same key.
    pub fn says_the_same_thing(&self, other: &GroupRecord) -> bool {
        let of_one_group = self.group() == other.group();
        of_one_group
            && match (self, other) {
                (GroupRecord::Offset { topic, partition, .. }, GroupRecord::Offset { topic: t, partition: p, .. }) => {
                    topic == t && partition == p
                }
                (GroupRecord::Group { .. }, GroupRecord::Group { .. }) => true,
                (GroupRecord::Consumer { record: a, .. }, GroupRecord::Consumer { record: b, .. }) => a.says_the_same_thing(b),
                _ => false,
            }
    }
}

/// An offset as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next record to be read.
    pub offset: Offset,
    /// Epoch of the last record read, or `NONE`.
    pub leader_epoch: Epoch,
    /// The client's note.
    pub metadata: Arc<str>,
    /// When it was committed.
    pub committed: Millis,
    /// When it expires, if that does not depend on `offsets.retention.minutes`.
    pub expires: Option<Millis>,
    /// The topic's id; zero if it was not known.
    pub topic_id: TopicId,
}

/// A classic group as it is stored: when a generation is complete, or when it becomes empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetadata {
    /// `consumer`, `connect`, ...; `None` if it never had members.
    pub protocol_type: Option<Arc<str>>,
    /// The generation.
    pub generation: i32,
    /// The chosen protocol; `None` without members.
    pub protocol: Option<Arc<str>>,
    /// The member id of the leader.
    pub leader: Option<Arc<str>>,
    /// When the group came into its state.
    pub since: Option<Millis>,
    /// Its members.
    pub members: Vec<MemberMetadata>,
}

/// A member as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberMetadata {
    /// Its id.
    pub member: Arc<str>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Of the client that joined.
    pub client_id: Arc<str>,
    /// Of the client that joined.
    pub client_host: Arc<str>,
    /// Milliseconds; what old records lack is read as the session timeout.
    pub rebalance_timeout: i32,
    /// Milliseconds.
    pub session_timeout: i32,
    /// Its metadata for the chosen protocol.
    pub subscription: Bytes,
    /// What it was assigned.
    pub assignment: Bytes,
}
