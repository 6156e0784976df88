//! What a group coordinator answers.

use std::sync::Arc;

use bytes::Bytes;

use super::{Beat, DescribedConsumer, Refused, Rows, Why};
use crate::core::group::CommittedOffset;
use crate::core::types::Millis;

/// An answer. Of the same name as its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To `Join`.
    Join(Result<Joined, JoinRefused>),
    /// To `Sync`.
    Sync(Result<Synced, Why>),
    /// To `Heartbeat`.
    Heartbeat(Result<(), Why>),
    /// To `Leave`: one row for each.
    Leave(Result<Vec<Left>, Why>),
    /// To `Commit`: each row of the request, and whether it was stored.
    Commit(Result<Vec<Rows<Result<(), Why>>>, Why>),
    /// To `Fetch`: `None` where nothing is stored.
    Fetch(Result<Vec<Rows<Option<CommittedOffset>>>, Why>),
    /// To `DeleteOffsets`.
    DeleteOffsets(Result<Vec<Rows<Result<(), Why>>>, Why>),
    /// To `Describe`: each group of the request.
    Describe(Result<Vec<(Arc<str>, Result<Described, Why>)>, Why>),
    /// To `List`.
    List(Result<Vec<Listed>, Why>),
    /// To `DeleteGroups`: each group of the request.
    DeleteGroups(Result<Vec<(Arc<str>, Result<(), Why>)>, Why>),
    /// To `Beat`.
    Beat(Result<Beat, Refused>),
    /// To `DescribeConsumers`: each group of the request.
    DescribeConsumers(Result<Vec<(Arc<str>, Result<DescribedConsumer, Refused>)>, Why>),
}

/// A member is in a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its member id, new if it had none.
    pub member: Arc<str>,
    /// The generation.
    pub generation: i32,
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The protocol that was chosen.
    pub protocol: Option<Arc<str>>,
    /// The member id of the one who assigns.
    pub leader: Arc<str>,
    /// The leader is not to assign: what was assigned stays (KIP-814).
    pub skip_assignment: bool,
    /// To the leader: all members. To others: none.
    pub members: Vec<JoinedMember>,
}

/// A member, as its leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member: Arc<str>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Its metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// A member could not join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRefused {
    /// Why.
    pub why: Why,
    /// The member id to be answered; with `MemberIdRequired` the new one.
    pub member: Arc<str>,
}

/// A member's assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The protocol that was chosen.
    pub protocol: Option<Arc<str>>,
    /// What the leader assigned; empty if it forgot the member.
    pub assignment: Bytes,
}

/// What became of one that was to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// As in the request.
    pub member: Arc<str>,
    /// As in the request.
    pub instance: Option<Arc<str>>,
    /// Whether it is out.
    pub result: Result<(), Why>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its state.
    pub state: State,
    /// Its protocol type; empty if it has none.
    pub protocol_type: Arc<str>,
    /// The protocol that was chosen; only of a stable group.
    pub protocol: Option<Arc<str>>,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// A member, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member: Arc<str>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Of the client that joined.
    pub client_id: Arc<str>,
    /// Of the client that joined.
    pub client_host: Arc<str>,
    /// Its metadata for the chosen protocol; empty unless the group is stable.
    pub metadata: Bytes,
    /// Its assignment.
    pub assignment: Bytes,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub group: Arc<str>,
    /// Its protocol type; empty if it has none.
    pub protocol_type: Arc<str>,
    /// Its state.
    pub state: State,
    /// Its type.
    pub kind: Kind,
}

/// State of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No members; perhaps offsets.
    Empty,
    /// Members are to join.
    PreparingRebalance,
    /// All have joined; the leader assigns.
    CompletingRebalance,
    /// Everybody has an assignment.
    Stable,
    /// A consumer group whose target assignment is to be made.
    Assigning,
    /// A consumer group some of whose members are not at the target.
    Reconciling,
    /// There is no such group. Only in answers.
    Dead,
}

impl State {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
            State::Assigning => "Assigning",
            State::Reconciling => "Reconciling",
            State::Dead => "Dead",
        }
    }
}

/// Type of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Its members assign (or it has none).
    Classic,
    /// The broker assigns (KIP-848).
    Consumer,
}

impl Kind {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Classic => "classic",
            Kind::Consumer => "consumer",
        }
    }
}

/// A group as metrics and operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView<'a> {
    /// Its id.
    pub group: &'a str,
    /// Its protocol type; empty if it has none.
    pub protocol_type: &'a str,
    /// Its type.
    pub kind: Kind,
    /// Its state.
    pub state: State,
    /// When it came into that state, if that is known.
    pub since: Option<Millis>,
    /// Its generation, or its epoch.
    pub generation: i32,
    /// How many members it has.
    pub members: usize,
    /// What began its last rebalance, for people; empty if nothing did since it was loaded.
    pub reason: &'a str,
    /// How many members it waits for: to join while it prepares, to sync after that; in a consumer group, to come to the target.
    pub missing: usize,
    /// The first few of them.
    pub awaited: Vec<&'a str>,
}
