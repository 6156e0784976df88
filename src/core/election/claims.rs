//! What replicas say their logs hold, and which of them holds the most.

use std::collections::HashMap;

use crate::core::types::{BrokerId, Epoch, Offset, TopicPartition};

/// The end of a replica's log. The order is that of completeness: of two replicas of a partition, the greater one has every record that
/// was committed and that the other one still has. Its last epoch's leader had everything committed before that epoch, and within an
/// epoch one log is a prefix of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The leader epoch of its last batch; -1 for an empty log.
    pub last_epoch: Epoch,
    /// Where its log ends.
    pub end: Offset,
}

/// What survivors said. At most one claim for each replica of the partitions that were asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(HashMap<(TopicPartition, BrokerId), Claim>);

impl Claims {
    /// Notes a claim.
    pub fn note(&mut self, at: TopicPartition, replica: BrokerId, claim: Claim) {
        self.0.insert((at, replica), claim);
    }

    /// The claim of a replica.
    pub fn of(&self, at: TopicPartition, replica: BrokerId) -> Option<Claim> {
        self.0.get(&(at, replica)).copied()
    }

    /// Forgets a replica's claim: it runs on, or its process is another one.
    pub fn forget(&mut self, at: TopicPartition, replica: BrokerId) {
        self.0.remove(&(at, replica));
    }
}

/// The one with the most complete log, the first of equals; whoever has not said anything comes last.
pub fn most_complete(replicas: impl Iterator<Item = BrokerId>, claim: impl Fn(BrokerId) -> Option<Claim>) -> Option<BrokerId> {
    let mut best: Option<(Option<Claim>, BrokerId)> = None;
    for replica in replicas {
        let claimed = claim(replica);
        if best.is_none_or(|(most, _)| claimed > most) {
            best = Some((claimed, replica));
        }
    }
    best.map(|(_, replica)| replica)
}

/// What an election costs in records of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// So many at most: what others have beyond it, acknowledged or not.
    Records(i64),
    /// Nobody can say: a log is unknown, or the most complete one went on in a later epoch, and where the two part is not known.
    Unknown,
}

/// What is lost when `chosen` leads, if these are the claims of all replicas that may hold more.
pub fn loss_of(chosen: Option<Claim>, others: impl Iterator<Item = Option<Claim>>) -> Loss {
    let Some(chosen) = chosen else { return Loss::Unknown };
    let mut lost = 0;
    for other in others {
        match other {
            None => return Loss::Unknown,
            Some(other) if other <= chosen => {}
            Some(other) if other.last_epoch == chosen.last_epoch => lost = lost.max(other.end - chosen.end),
            Some(_) => return Loss::Unknown,
        }
    }
    Loss::Records(lost)
}
