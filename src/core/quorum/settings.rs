//! What a node is told about its quorum before it starts: who it is, who votes, how long to wait. Names of keys are Kafka's.

use crate::core::types::{BrokerId, DirectoryId};

/// Who this node is and who votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// This node.
    pub me: BrokerId,
    /// The directory of its metadata log.
    pub directory: DirectoryId,
    /// The static voters (`controller.quorum.voters`), in id order.
    pub voters: Vec<BrokerId>,
    /// How long everything takes.
    pub timing: Timing,
}

impl Config {
    /// Whether this node votes; who does not is an observer.
    pub fn is_voter(&self) -> bool {
        self.voters.contains(&self.me)
    }

    /// How many voters decide.
    pub(super) fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// The voters without this node.
    pub(super) fn others(&self) -> impl Iterator<Item = BrokerId> + '_ {
        self.voters.iter().copied().filter(|id| *id != self.me)
    }
}

/// Times in milliseconds, sizes in bytes (`kraft.md` 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// `controller.quorum.election.timeout.ms`: a campaign takes this long, and up to as long again by chance.
    pub election: i64,
    /// `controller.quorum.fetch.timeout.ms`: a voter that got nothing from its leader for so long campaigns.
    pub fetch: i64,
    /// `controller.quorum.request.timeout.ms`: a request is given up.
    pub request: i64,
    /// `controller.quorum.retry.backoff.ms`: pause after a request failed.
    pub backoff: i64,
    /// `controller.quorum.election.backoff.max.ms`: the last of a resigned leader's successors waits so long.
    pub succession: i64,
    /// How long a follower whose connection to the leader closed tries to reach it again before it asks for pre-votes.
    pub grace: i64,
    /// How long a leader may hold back an answer to Fetch that has nothing to tell.
    pub fetch_wait: i64,
    /// `controller.quorum.fetch.max.bytes`.
    pub fetch_bytes: u32,
    /// `controller.quorum.fetch.snapshot.max.bytes`.
    pub snapshot_bytes: u32,
}

impl Default for Timing {
    /// Kafka's defaults; the grace, which Kafka does not have, is ours.
    fn default() -> Timing {
        Timing {
            election: 1000,
            fetch: 2000,
            request: 2000,
            backoff: 20,
            succession: 1000,
            grace: 150,
            fetch_wait: 500,
            fetch_bytes: 1 << 20,
            snapshot_bytes: 1 << 20,
        }
    }
}

impl Timing {
    /// A leader that has not heard from a majority for so long resigns.
    pub(super) fn check(&self) -> i64 {
        self.fetch + self.fetch / 2
    }

    /// A leader tells a voter that it leads this often while the voter does not fetch.
    pub(super) fn begin(&self) -> i64 {
        self.fetch / 2
    }
}
