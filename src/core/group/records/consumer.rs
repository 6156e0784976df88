//! What is written of a group of the consumer protocol (KIP-848): itself, its members, what they shall have and what they have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::group::assign::Assignment;
use crate::core::group::request::Protocol;
use crate::core::types::{Millis, TopicId};

/// One record of a group. Without a value it is a tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsumerRecord {
    /// The group itself (type 3).
    Group(Option<ConsumerGroupMetadata>),
    /// The topics of the group as Kafka 3.7 to 4.0 noted them (type 4). Nobody reads what it says; it is only to be got rid of.
    LegacyTopics {
        /// Whether there is such a record: `false` is the tombstone.
        present: bool,
    },
    /// A member and its subscription (type 5).
    Member {
        /// The member's id.
        member: Arc<str>,
        /// What it said.
        value: Option<Box<ConsumerMemberMetadata>>,
    },
    /// The epoch of the target assignment (type 6). Written after the members' records of that epoch.
    Target(Option<TargetMetadata>),
    /// What a member shall have (type 7).
    TargetMember {
        /// The member's id.
        member: Arc<str>,
        /// The partitions.
        value: Option<Assignment>,
    },
    /// What a member has (type 8).
    Current {
        /// The member's id.
        member: Arc<str>,
        /// Where it stands.
        value: Option<CurrentAssignment>,
    },
    /// The topics that a regular expression matches (type 16).
    Regex {
        /// The expression.
        pattern: Arc<str>,
        /// What it matches.
        value: Option<ResolvedRegex>,
    },
}

impl ConsumerRecord {
    /// Whether both have the same key, within a group.
    pub fn says_the_same_thing(&self, other: &ConsumerRecord) -> bool {
        use ConsumerRecord::*;
        match (self, other) {
            (Group(_), Group(_)) | (LegacyTopics { .. }, LegacyTopics { .. }) | (Target(_), Target(_)) => true,
            (Member { member, .. }, Member { member: other, .. })
            | (TargetMember { member, .. }, TargetMember { member: other, .. })
            | (Current { member, .. }, Current { member: other, .. }) => member == other,
            (Regex { pattern, .. }, Regex { pattern: other, .. }) => pattern == other,
            _ => false,
        }
    }

    /// Whether it only says that something is no more.
    pub fn is_tombstone(&self) -> bool {
        matches!(
            self,
            ConsumerRecord::Group(None)
                | ConsumerRecord::LegacyTopics { present: false }
                | ConsumerRecord::Member { value: None, .. }
                | ConsumerRecord::Target(None)
                | ConsumerRecord::TargetMember { value: None, .. }
                | ConsumerRecord::Current { value: None, .. }
                | ConsumerRecord::Regex { value: None, .. }
        )
    }
}

/// A consumer group as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerGroupMetadata {
    /// The group's epoch: rises with each change of members, subscriptions or topics.
    pub epoch: i32,
    /// A hash of the topics that are read; another one means that they changed (KIP-1101). 0: not known.
    pub metadata_hash: i64,
}

/// A member as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMemberMetadata {
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// `client.rack`.
    pub rack: Option<Arc<str>>,
    /// Of the client that joined.
    pub client_id: Arc<str>,
    /// Of the client that joined.
    pub client_host: Arc<str>,
    /// The topics that it subscribes to by name.
    pub topics: BTreeSet<Arc<str>>,
    /// The regular expression that it subscribes to.
    pub regex: Option<Arc<str>>,
    /// Milliseconds that it may take to give up partitions.
    pub rebalance_timeout: i32,
    /// `group.remote.assignor`.
    pub server_assignor: Option<Arc<str>>,
    /// Set while the member speaks the classic protocol.
    pub classic: Option<ClassicMemberMetadata>,
}

/// What is needed besides to serve a member that speaks the classic protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicMemberMetadata {
    /// Milliseconds.
    pub session_timeout: i32,
    /// Its protocols, in its order.
    pub protocols: Vec<Protocol>,
}

/// When the target assignment was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetMetadata {
    /// The group's epoch that it was made for.
    pub epoch: i32,
    /// When that was done (KIP-1263); `None` if the record does not say.
    pub computed: Option<Millis>,
}

/// Partitions with the member's epoch at which each was assigned: commits from before it are refused.
pub type EpochAssignment = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// Where a member stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentAssignment {
    /// The member's epoch.
    pub epoch: i32,
    /// The one before, which a member may still send that has not heard of the last one.
    pub previous_epoch: i32,
    /// How far it is on its way to the target.
    pub state: MemberState,
    /// What it has.
    pub assigned: EpochAssignment,
    /// What it is to give up.
    pub revoking: EpochAssignment,
}

/// How far a member is on its way to its target assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It has what it shall have, as far as it is free.
    Stable,
    /// It has to give up partitions before it can go to the next epoch.
    UnrevokedPartitions,
    /// It is in the last epoch but waits for partitions that others still have.
    UnreleasedPartitions,
    /// A state of a later version.
    Unknown,
}

/// The topics that matched a regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRegex {
    /// Their names.
    pub topics: BTreeSet<Arc<str>>,
    /// The offset of the metadata that was looked at.
    pub version: i64,
    /// When it was looked at.
    pub resolved: Millis,
}
