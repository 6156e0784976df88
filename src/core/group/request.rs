//! What a group coordinator is asked, and what it answers. Values of its own: the API handlers translate from and to the wire.

mod answers;
mod consumer;

use std::sync::Arc;

use bytes::Bytes;

use crate::core::types::{Epoch, Offset, TopicId};
pub use answers::*;
pub use consumer::*;

/// Names one request that waits for its answer. The shell gives them out, keeps the reply port under the number, and never reuses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names one append that a coordinator asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// Why a request, or one row of it, was refused. `wire::error` knows Kafka's number for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Why {
    /// The group's partition is led by another broker.
    #[error("another broker coordinates this group")]
    NotCoordinator,
    /// The coordinator cannot write at the moment.
    #[error("the coordinator is not available")]
    CoordinatorNotAvailable,
    /// The coordinator is still reading its partition.
    #[error("the coordinator is loading")]
    LoadInProgress,
    /// A group id that is empty where one is needed.
    #[error("the group id must not be empty")]
    InvalidGroupId,
    /// No such member, or no such group to be a member of.
    #[error("the coordinator does not know this member")]
    UnknownMemberId,
    /// Another member has taken over this `group.instance.id`.
    #[error("another member has this group.instance.id")]
    FencedInstanceId,
    /// A generation that is not the group's.
    #[error("the generation is not the group's current one")]
    IllegalGeneration,
    /// The group rebalances; members are to join again.
    #[error("the group is rebalancing")]
    RebalanceInProgress,
    /// Protocol type or protocols that do not go with the group's.
    #[error("the member's protocols do not go with the group's")]
    InconsistentGroupProtocol,
    /// The member is to join again with the member id in the answer (KIP-394).
    #[error("join again with the member id in the answer")]
    MemberIdRequired,
    /// `group.max.size` members are in the group already.
    #[error("the group is full")]
    GroupMaxSizeReached,
    /// A session timeout outside `group.min.session.timeout.ms` to `group.max.session.timeout.ms`.
    #[error("the session timeout is out of bounds")]
    InvalidSessionTimeout,
    /// More than `offset.metadata.max.bytes` of text with an offset.
    #[error("the metadata of the offset is too long")]
    OffsetMetadataTooLarge,
    /// The member's epoch is not the one that the coordinator knows: it is to give up all it has and come again (KIP-848).
    #[error("the member's epoch is not the one that the coordinator knows")]
    FencedMemberEpoch,
    /// The member's epoch is not the one that the coordinator knows: it is to ask again with the new one (KIP-848).
    #[error("the member's epoch is stale")]
    StaleMemberEpoch,
    /// Another member has this `group.instance.id` and has not left (KIP-848).
    #[error("another member still has this group.instance.id")]
    UnreleasedInstanceId,
    /// `group.consumer.assignors` does not have that assignor.
    #[error("there is no such assignor")]
    UnsupportedAssignor,
    /// No regular expression.
    #[error("the regular expression is not valid")]
    InvalidRegularExpression,
    /// A request that makes no sense.
    #[error("the request is not valid")]
    InvalidRequest,
    /// A version of the request that knows no member epochs, from a member that has one.
    #[error("members of the consumer protocol are to use a newer version of the request")]
    UnsupportedVersion,
    /// No such group. Old versions of some requests have another error for it.
    #[error("there is no such group")]
    GroupIdNotFound,
    /// The group has members.
    #[error("the group has members")]
    NonEmptyGroup,
    /// The group's members read the topic.
    #[error("the group reads the topic")]
    GroupSubscribedToTopic,
    /// What was to be written is larger than a batch may be, or cannot be encoded.
    #[error("the coordinator could not write what was asked")]
    UnknownServerError,
}

/// A request to a coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// JoinGroup.
    Join(Join),
    /// SyncGroup.
    Sync(Sync),
    /// Heartbeat.
    Heartbeat(Membership),
    /// LeaveGroup.
    Leave(Leave),
    /// OffsetCommit.
    Commit(Commit),
    /// OffsetFetch of one group.
    Fetch(Fetch),
    /// OffsetDelete.
    DeleteOffsets(DeleteOffsets),
    /// DescribeGroups: the groups of this partition.
    Describe(Vec<Arc<str>>),
    /// ListGroups.
    List(List),
    /// DeleteGroups: the groups of this partition.
    DeleteGroups(Vec<Arc<str>>),
    /// ConsumerGroupHeartbeat.
    Beat(ConsumerBeat),
    /// ConsumerGroupDescribe: the groups of this partition.
    DescribeConsumers(Vec<Arc<str>>),
}

/// One assignment strategy that a member could follow, with what it says to the one who assigns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Its name, such as `range`.
    pub name: Arc<str>,
    /// The member's metadata for it. Copied where it is kept.
    pub metadata: Bytes,
}

/// A member wants to be in the next generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The group.
    pub group: Arc<str>,
    /// The member id; empty if it has none yet.
    pub member: Arc<str>,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// As in the request's header; part of new member ids.
    pub client_id: Arc<str>,
    /// The client's address, as Kafka prints it: `/10.0.0.1`.
    pub client_host: Arc<str>,
    /// Milliseconds without a heartbeat after which the member is out.
    pub session_timeout: i32,
    /// Milliseconds that the member may take to join again; v0 has none and sends the session timeout.
    pub rebalance_timeout: i32,
    /// `consumer`, `connect`, ...
    pub protocol_type: Arc<str>,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    /// Why, in the client's words (KIP-800).
    pub reason: Option<Arc<str>>,
    /// The client understands MEMBER_ID_REQUIRED (v4).
    pub member_id_required: bool,
    /// The client understands that it leads but is not to assign (v9, KIP-814).
    pub skip_assignment: bool,
}

/// Who sends a request as a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The group.
    pub group: Arc<str>,
    /// The member id.
    pub member: Arc<str>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// The generation it believes in; negative if it has none.
    pub generation: i32,
}

/// A member asks for its assignment; the leader brings everybody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    /// Who.
    pub from: Membership,
    /// What the member believes the group's protocol type to be (v5).
    pub protocol_type: Option<Arc<str>>,
    /// What the member believes the group's protocol to be (v5).
    pub protocol: Option<Arc<str>>,
    /// From the leader: member id and assignment.
    pub assignments: Vec<(Arc<str>, Bytes)>,
}

/// Members leave, or an operator removes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// The group.
    pub group: Arc<str>,
    /// Who.
    pub members: Vec<Leaver>,
}

/// One that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaver {
    /// The member id; empty if only the instance is given.
    pub member: Arc<str>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Why, in the client's words (KIP-800).
    pub reason: Option<Arc<str>>,
}

/// What concerns some partitions of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<T> {
    /// The topic's name.
    pub topic: Arc<str>,
    /// Its id, zero if not known or not given.
    pub id: TopicId,
    /// Partition index, and what there is to say of it.
    pub partitions: Vec<(i32, T)>,
}

/// Offsets to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Who. A consumer without membership sends an empty member id and a negative generation; its group may be empty too.
    pub from: Membership,
    /// The offsets.
    pub topics: Vec<Rows<NewOffset>>,
    /// Milliseconds for which to keep them (v2 to v4), if not by `offsets.retention.minutes`.
    pub retention: Option<i64>,
    /// The request's version knows member epochs (v9, KIP-848).
    pub knows_epochs: bool,
}

/// An offset to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOffset {
    /// The next record to be read.
    pub offset: Offset,
    /// Epoch of the last record read, or `NONE`.
    pub leader_epoch: Epoch,
    /// The client's note.
    pub metadata: Arc<str>,
}

/// A question for offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The group.
    pub group: Arc<str>,
    /// Which partitions; `None`: all there are.
    pub topics: Option<Vec<Rows<()>>>,
    /// Wait for commits that are under way (KIP-447).
    pub require_stable: bool,
    /// The member that asks (v9, KIP-848); `None` for operators and old versions.
    pub member: Option<Arc<str>>,
    /// Its epoch; negative if it has none.
    pub epoch: i32,
}

/// Offsets to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteOffsets {
    /// The group.
    pub group: Arc<str>,
    /// Which.
    pub topics: Vec<Rows<()>>,
}

/// Which groups to list: those that match both, each of which matches all if it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// Names of states, in any case.
    pub states: Vec<String>,
    /// Names of types, in any case.
    pub kinds: Vec<String>,
}

impl Request {
    /// The answer to this request that refuses all of it.
    pub fn refusal(&self, why: Why) -> Answer {
        match self {
            Request::Join(join) => Answer::Join(Err(JoinRefused { why, member: join.member.clone() })),
            Request::Sync(_) => Answer::Sync(Err(why)),
            Request::Heartbeat(_) => Answer::Heartbeat(Err(why)),
            Request::Leave(_) => Answer::Leave(Err(why)),
            Request::Commit(_) => Answer::Commit(Err(why)),
            Request::Fetch(_) => Answer::Fetch(Err(why)),
            Request::DeleteOffsets(_) => Answer::DeleteOffsets(Err(why)),
            Request::Describe(_) => Answer::Describe(Err(why)),
            Request::List(_) => Answer::List(Err(why)),
            Request::DeleteGroups(_) => Answer::DeleteGroups(Err(why)),
            Request::Beat(_) => Answer::Beat(Err(why.into())),
            Request::DescribeConsumers(_) => Answer::DescribeConsumers(Err(why)),
        }
    }
}

/// What a coordinator is configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout: i32,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: i32,
    /// `group.max.size`.
    pub max_size: usize,
    /// `offset.metadata.max.bytes`; Kafka counts UTF-16 units.
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention: i64,
    /// `offsets.retention.check.interval.ms`.
    pub retention_check_interval: i64,
    /// `offsets.commit.timeout.ms`: how long an append may take before who waits for it is answered.
    pub write_timeout: i64,
    /// `group.consumer.*`.
    pub consumer: ConsumerSettings,
}

impl Default for Settings {
    /// Kafka's defaults.
    fn default() -> Settings {
        Settings {
            min_session_timeout: 6_000,
            max_session_timeout: 1_800_000,
            initial_rebalance_delay: 3_000,
            max_size: i32::MAX as usize,
            offset_metadata_max: 4_096,
            offsets_retention: 7 * 24 * 3_600_000,
            retention_check_interval: 600_000,
            write_timeout: 5_000,
            consumer: ConsumerSettings::default(),
        }
    }
}

/// What the shell is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer that ticket. Each is answered exactly once.
    Answer(Ticket, Answer),
    /// Append these records to the partition with acks=all, in one batch (which may hold several writes) after those of all earlier
    /// writes, and say what became of them with [`Coordinator::committed`](super::Coordinator::committed) or
    /// [`Coordinator::failed`](super::Coordinator::failed).
    Append(WriteId, Arc<[super::GroupRecord]>),
}

/// A topic that is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTopic {
    /// Its name.
    pub name: Arc<str>,
    /// Its id.
    pub id: TopicId,
}
