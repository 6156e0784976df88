//! What is asked of consumer groups (KIP-848), what they answer, and how they are run.

use std::sync::Arc;

use super::{State, Why};
use crate::core::group::assign::{Assignment, Assignor};
use crate::core::group::records::ConsumerMemberMetadata;
use crate::core::types::TopicId;

/// ConsumerGroupHeartbeat: a member comes, goes, changes or is still there. What is `None` is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerBeat {
    /// The group.
    pub group: Arc<str>,
    /// The member id; empty if it is to be given one (v0).
    pub member: Arc<str>,
    /// The member's epoch; 0 joins, -1 leaves, -2 leaves for a while (static members).
    pub epoch: i32,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// `client.rack`.
    pub rack: Option<Arc<str>>,
    /// As in the request's header.
    pub client_id: Arc<str>,
    /// The client's address, as Kafka prints it: `/10.0.0.1`.
    pub client_host: Arc<str>,
    /// Milliseconds that it may take to give up partitions.
    pub rebalance_timeout: Option<i32>,
    /// The topics that it reads by name.
    pub topics: Option<Vec<Arc<str>>>,
    /// The expression for those that it reads besides; empty for none.
    pub regex: Option<Arc<str>>,
    /// `group.remote.assignor`.
    pub assignor: Option<Arc<str>>,
    /// The partitions that it has.
    pub owned: Option<Vec<(TopicId, Vec<i32>)>>,
}

/// A member is in the group, or out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Its member id.
    pub member: Arc<str>,
    /// Its epoch.
    pub epoch: i32,
    /// Milliseconds until it is to be heard of again; 0 if it has left.
    pub interval: i32,
    /// What it has, if it may not know.
    pub assignment: Option<Assignment>,
}

/// A refusal, with what it says to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: Why,
    /// In Kafka's words.
    pub message: String,
}

impl From<Why> for Refused {
    fn from(why: Why) -> Refused {
        Refused { why, message: why.to_string() }
    }
}

/// A consumer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedConsumer {
    /// Its state.
    pub state: State,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch of its target assignment.
    pub target_epoch: i32,
    /// Who assigns.
    pub assignor: &'static str,
    /// Its members.
    pub members: Vec<DescribedConsumerMember>,
}

/// A member of a consumer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedConsumerMember {
    /// Its id.
    pub member: Arc<str>,
    /// What it said of itself.
    pub meta: ConsumerMemberMetadata,
    /// Its epoch.
    pub epoch: i32,
    /// What it has.
    pub assigned: Assignment,
    /// What it shall have.
    pub target: Assignment,
}

/// How consumer groups are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// `group.consumer.session.timeout.ms`.
    pub session_timeout: i32,
    /// `group.consumer.heartbeat.interval.ms`.
    pub heartbeat_interval: i32,
    /// `group.consumer.max.size`.
    pub max_size: usize,
    /// `group.consumer.assignors`; the first is for groups whose members name none.
    pub assignors: Vec<Assignor>,
    /// `group.consumer.assignment.interval.ms`.
    pub assignment_interval: i32,
    /// `group.consumer.regex.refresh.interval.ms`.
    pub regex_refresh: i64,
    /// `group.consumer.migration.policy`: a classic group may become a consumer group.
    pub upgrade: bool,
    /// `group.consumer.migration.policy`: a consumer group may become a classic group.
    pub downgrade: bool,
}

impl ConsumerSettings {
    /// For groups whose members name none.
    pub fn assignor(&self) -> Assignor {
        self.assignors.first().copied().unwrap_or(Assignor::Uniform)
    }
}

impl Default for ConsumerSettings {
    /// Kafka's defaults.
    fn default() -> ConsumerSettings {
        ConsumerSettings {
            session_timeout: 45_000,
            heartbeat_interval: 5_000,
            max_size: i32::MAX as usize,
            assignors: vec![Assignor::Uniform, Assignor::Range],
            assignment_interval: 1_000,
            regex_refresh: 600_000,
            upgrade: true,
            downgrade: true,
        }
    }
}
