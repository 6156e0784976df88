//! Who leads a partition: one function from what is known of it to a change of it, or to whom it waits for.
//!
//! Rules: `kafka-semantics` 4.9 and 4.10, KIP-966. A dead replica is never elected. Nothing but an election that allows loss goes outside
//! the ISR, and when that is empty, the eligible leader replicas (ELR).
//!
//! One rule is ours. When every member of ISR and ELR stopped uncleanly, what their logs hold is all there is. Kafka then elects the last
//! leader by name, though the topic may forbid unclean elections. Here the members are remembered as last known ELR and waited for, and
//! the most complete log of them leads ([`Kind::Claimed`]).

mod claims;
mod proposal;

use super::types::{BrokerId, Epoch, TopicPartition};

pub use claims::{Claim, Claims, Loss, loss_of, most_complete};
pub use proposal::{Known, Proposal};

use super::controller::records::PartitionChange;

/// What kind of leader is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first replica of the assignment if it can lead; else as `Online`.
    Preferred,
    /// Any replica that may lead without loss; the present leader if it is one.
    Online,
    /// As `Online`, and if there is none that living replica whose log is known to be the most complete: records may be lost.
    Unclean,
    /// Exactly this one. From the ISR (or, when that is empty, the ELR) it costs nothing; from elsewhere records may be lost.
    Designated(BrokerId),
    /// As `Online`, and if ISR and ELR are empty this one: of all that could hold what was committed it has the most complete log.
    Claimed(BrokerId),
}

/// What made the controller decide about a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The partition is new.
    Created,
    /// A broker is fenced, forgotten, or replaced by another process of the same id.
    Fenced,
    /// A broker is shutting down in good order.
    ControlledShutdown,
    /// An operator wants the preferred replicas back.
    Preferred,
    /// The controller wants them back by itself (`auto.leader.rebalance.enable`).
    Balanced,
    /// The replicas of the partition change.
    Reassignment,
    /// An operator allows the loss of records.
    Manual,
    /// An operator named the replica.
    Designated,
    /// A setting that allows unclean elections came into force.
    ConfigChange,
    /// The leader's log directory failed.
    LogDir,
    /// The leader gave up its leadership.
    Resigned,
    /// The survivors told what their logs hold.
    UncleanRecovery,
    /// A replica that may lead came back.
    Returned,
}

impl Trigger {
    /// Its name in logs and in the election book.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Created => "created",
            Trigger::Fenced => "fenced",
            Trigger::ControlledShutdown => "controlled_shutdown",
            Trigger::Preferred => "preferred",
            Trigger::Balanced => "balanced",
            Trigger::Reassignment => "reassignment",
            Trigger::Manual => "manual",
            Trigger::Designated => "designated",
            Trigger::ConfigChange => "config_change",
            Trigger::LogDir => "log_dir",
            Trigger::Resigned => "resigned",
            Trigger::UncleanRecovery => "unclean_recovery",
            Trigger::Returned => "returned",
        }
    }
}

/// What the cluster's settings say about the elections of one topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `min.insync.replicas`, but never more than the topic has replicas.
    pub min_isr: usize,
    /// Whether `eligible.leader.replicas.version` is at 1.
    pub elr: bool,
}

/// Where a leader was found, so what its election may have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the ISR.
    Isr,
    /// In the ELR: it has everything that was committed.
    Eligible,
    /// Among the last known members: it has the most of what they still have.
    LastKnown,
    /// Elsewhere: acknowledged records may be lost.
    Outside,
}

/// Whom a partition without leader waits for. A member is waited for until it lives, unless an operator or a setting allows loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// Any of these: each has everything that was committed.
    AnyOf(Vec<BrokerId>),
    /// What the logs of all of these hold: between them they have what is left of what was committed.
    ClaimsOf(Vec<BrokerId>),
    /// Any living replica: loss is allowed, and nobody lives.
    Anyone,
}

/// What an election comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The record to write; `None` if nothing changes.
    pub change: Option<PartitionChange>,
    /// Who leads from then on and where it was found, or whom the partition waits for.
    pub leader: Result<(BrokerId, Source), WaitsFor>,
}

/// What is known of a replica when an election is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The replica.
    pub id: BrokerId,
    /// Whether its broker may lead: registered, not fenced, not shutting down, its directory online.
    pub alive: bool,
    /// Whether it was in the ISR.
    pub in_sync: bool,
    /// Whether it was an eligible leader replica.
    pub eligible: bool,
    /// What its log holds, if it has said so.
    pub claim: Option<Claim>,
}

/// An election: a partition that got a leader, another leader, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// Why.
    pub trigger: Trigger,
    /// The partition.
    pub at: TopicPartition,
    /// Its leader before; `NONE` if it had none.
    pub old_leader: BrokerId,
    /// Its leader after; `NONE` if it has none.
    pub new_leader: BrokerId,
    /// The leader epoch before.
    pub old_epoch: Epoch,
    /// The leader epoch after.
    pub new_epoch: Epoch,
    /// The ISR before.
    pub old_isr: Vec<BrokerId>,
    /// The ISR after.
    pub new_isr: Vec<BrokerId>,
    /// Where the leader was found, or whom the partition waits for.
    pub outcome: Result<Source, WaitsFor>,
    /// The replicas, in assignment order.
    pub candidates: Vec<Candidate>,
}

impl Election {
    /// Whether acknowledged records may be lost by it.
    pub fn is_unclean(&self) -> bool {
        self.outcome == Ok(Source::Outside)
    }

    /// Whether another replica leads than did: what the metrics count.
    pub fn moved(&self) -> bool {
        self.new_leader != BrokerId::NONE && self.new_leader != self.old_leader
    }
}

#[cfg(test)]
mod tests;
