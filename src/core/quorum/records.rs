//! What the quorum itself writes, as plain values: control records in the metadata log and its snapshots, and the vote on disk. Their bytes
//! are `wire::records`' business.

use crate::core::types::{BrokerId, DirectoryId, Epoch, Millis, Offset};

/// A record that the quorum wrote between those of its users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRecord {
    /// First record of every epoch.
    LeaderChange(LeaderChange),
    /// First record of a snapshot: append time of the last log record that it contains.
    SnapshotHeader(Millis),
    /// Last record of a snapshot.
    SnapshotFooter,
    /// The version of the quorum's own protocol: 0 has voters from the configuration, 1 has them from the log (KIP-853).
    KRaftVersion(i16),
    /// All the voters.
    Voters(Vec<Voter>),
}

/// Who leads an epoch, and by whose votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderChange {
    /// The leader.
    pub leader: BrokerId,
    /// Who could vote.
    pub voters: Vec<BrokerId>,
    /// Who voted for the leader.
    pub granting: Vec<BrokerId>,
}

/// A voter of the quorum (KIP-853).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// Its node id.
    pub id: BrokerId,
    /// The directory that its log is in.
    pub directory: DirectoryId,
    /// Where it listens as a controller.
    pub endpoints: Vec<VoterEndpoint>,
    /// Lowest version of the quorum's protocol that it supports.
    pub min_version: i16,
    /// Highest.
    pub max_version: i16,
}

/// Where a voter listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoterEndpoint {
    /// Listener name.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// What a node must not forget about an election: the content of the `quorum-state` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElectionState {
    /// The newest epoch it has seen.
    pub epoch: Epoch,
    /// Leader of that epoch, if known.
    pub leader: Option<BrokerId>,
    /// Whom it voted for in that epoch, if it did; the zero directory means that the directory is not known.
    pub voted: Option<(BrokerId, DirectoryId)>,
}

impl Default for ElectionState {
    /// That of a node without the file.
    fn default() -> ElectionState {
        ElectionState { epoch: Epoch(0), leader: None, voted: None }
    }
}

/// A snapshot by its name: everything below `end` is in it; `epoch` is that of the last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// Offset after the last record that it covers.
    pub end: Offset,
    /// Epoch of that record.
    pub epoch: Epoch,
}
