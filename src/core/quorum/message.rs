//! What nodes of a quorum say to each other, as plain values. Bytes, topics and cluster ids are the shell's business (`kraft.md` 3).

use super::records::SnapshotId;
use crate::core::types::{BrokerId, DirectoryId, Epoch, Offset};
use bytes::Bytes;

/// A request that came in and waits for its answer. The shell makes it up and finds the connection by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request that went out: the answer comes back with it. Never used twice by one [`Quorum`](super::Quorum).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub u64);

/// What one node asks another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A vote, or the promise of one (key 52).
    Vote(VoteRequest),
    /// The sender leads (key 53).
    BeginEpoch(BeginEpoch),
    /// The sender leads no more (key 54).
    EndEpoch(EndEpoch),
    /// Records of the metadata log; acknowledges all below the offset (key 1).
    Fetch(FetchRequest),
    /// A part of a snapshot (key 59).
    FetchSnapshot(SnapshotRequest),
}

/// See [`Request::Vote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoteRequest {
    /// Whose vote is wanted, if the request says so; a zero directory says nothing.
    pub voter: Option<(BrokerId, DirectoryId)>,
    /// Who wants it.
    pub candidate: BrokerId,
    /// The candidate's metadata directory; zero if unknown.
    pub directory: DirectoryId,
    /// The epoch to lead; that before it for a pre-vote.
    pub epoch: Epoch,
    /// Epoch of the candidate's last record.
    pub last_epoch: Epoch,
    /// Where its log ends.
    pub log_end: Offset,
    /// Whether it only asks what the answer would be (KIP-996).
    pub pre_vote: bool,
}

/// See [`Request::BeginEpoch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeginEpoch {
    /// Who is told, if the request says so.
    pub voter: Option<(BrokerId, DirectoryId)>,
    /// The leader.
    pub leader: BrokerId,
    /// Its epoch.
    pub epoch: Epoch,
}

/// See [`Request::EndEpoch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndEpoch {
    /// Who led.
    pub leader: BrokerId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Who had best campaign, first to last; a zero directory is any.
    pub successors: Vec<(BrokerId, DirectoryId)>,
}

/// See [`Request::Fetch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchRequest {
    /// Who fetches; negative for who is no node.
    pub replica: BrokerId,
    /// Its metadata directory; zero if unknown.
    pub directory: DirectoryId,
    /// The epoch it is in.
    pub epoch: Epoch,
    /// Where its log ends.
    pub offset: Offset,
    /// Epoch of its last record.
    pub last_epoch: Epoch,
    /// Milliseconds that an answer without news may take.
    pub max_wait: i64,
    /// Bytes of records wanted; at least one batch is sent.
    pub max_bytes: u32,
    /// What it knows to be committed: an answer that tells more is not held back (KIP-1166). `None`: the field was absent.
    pub high_watermark: Option<Offset>,
}

/// See [`Request::FetchSnapshot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// Who fetches.
    pub replica: BrokerId,
    /// Its metadata directory; zero if unknown.
    pub directory: DirectoryId,
    /// The epoch it is in.
    pub epoch: Epoch,
    /// Which snapshot.
    pub id: SnapshotId,
    /// From which byte on.
    pub position: u64,
    /// Bytes wanted.
    pub max_bytes: u32,
}

/// What every answer says about the one who gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Why it refuses, if it does.
    pub refused: Option<Problem>,
    /// The epoch it is in.
    pub epoch: Epoch,
    /// Who leads that, if it knows.
    pub leader: Option<BrokerId>,
}

/// Why a node refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The request's epoch is over.
    FencedEpoch,
    /// The request's epoch has not come here yet.
    UnknownEpoch,
    /// Ask the leader.
    NotLeader,
    /// The request contradicts itself.
    Invalid,
    /// The request is meant for another voter.
    InvalidVoterKey,
    /// There is no such snapshot (any more).
    SnapshotNotFound,
    /// The snapshot ends before that position.
    PositionOutOfRange,
    /// It is about to stop.
    Stopping,
    /// Anything else.
    Other,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// To [`Request::Vote`].
    Vote {
        /// Who answers.
        head: Head,
        /// Whether the vote is given.
        granted: bool,
    },
    /// To [`Request::BeginEpoch`].
    BeginEpoch(Head),
    /// To [`Request::EndEpoch`].
    EndEpoch(Head),
    /// To [`Request::Fetch`].
    Fetch(Fetched),
    /// To [`Request::FetchSnapshot`].
    FetchSnapshot(SnapshotPart),
}

impl Response {
    /// What it says about the one who gives it.
    pub fn head(&self) -> Head {
        match self {
            Response::Vote { head, .. } | Response::BeginEpoch(head) | Response::EndEpoch(head) => *head,
            Response::Fetch(fetched) => fetched.head,
            Response::FetchSnapshot(part) => part.head,
        }
    }
}

/// See [`Response::Fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Who answers.
    pub head: Head,
    /// Everything below is committed, if the leader knows.
    pub high_watermark: Option<Offset>,
    /// Where the leader's log starts.
    pub log_start: Offset,
    /// The fetcher's log is another than the leader's, or too old for it.
    pub detour: Option<Detour>,
    /// Batches from the offset on.
    pub records: Records,
}

/// What a follower is to do instead of appending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detour {
    /// In the leader's log the largest epoch not above the fetcher's last ends here: cut what lies behind.
    Diverging {
        /// That epoch.
        epoch: Epoch,
        /// The offset after its last record.
        end: Offset,
    },
    /// Load this snapshot.
    Snapshot(SnapshotId),
}

/// Batches as bytes, with what the rules must know of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    /// The batches, in order.
    pub batches: Vec<BatchMeta>,
    /// Their bytes, without a gap.
    pub bytes: Bytes,
}

/// What the rules know of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchMeta {
    /// Offset of its first record.
    pub base: Offset,
    /// Offset of its last.
    pub last: Offset,
    /// The epoch it was appended in.
    pub epoch: Epoch,
    /// Bytes.
    pub size: usize,
}

/// See [`Response::FetchSnapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPart {
    /// Who answers.
    pub head: Head,
    /// Of which snapshot.
    pub id: SnapshotId,
    /// Bytes of all of it.
    pub size: u64,
    /// Where the part begins.
    pub position: u64,
    /// The part.
    pub bytes: Bytes,
}

/// A request that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendFailed {
    /// The peer cannot be reached, or the connection broke.
    Disconnected,
    /// The peer does not speak that version: a pre-vote cannot be said to it.
    Unsupported,
    /// It answered with something that is none.
    Malformed,
}
