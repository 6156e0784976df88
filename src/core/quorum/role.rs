//! The roles of a node in its quorum, and what each remembers (`kraft.md` 2.1). Epoch, leader and vote belong to all of them and are kept
//! beside the role, because they are what `quorum-state` holds.

use super::fetch::Parked;
use super::records::SnapshotId;
use crate::core::types::{BrokerId, DirectoryId, Epoch, Millis, Offset};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) enum Role {
    /// Knows no leader it could follow; a voter campaigns at `election`, an observer never does.
    Unattached {
        election: Option<Millis>,
    },
    /// Asks whether it would be elected, without changing anything (pre-vote).
    Prospective(Campaign),
    /// Asks for votes; its own is given to itself.
    Candidate(Campaign),
    Follower(Following),
    Leader(Leading),
    /// Has led this epoch and must neither lead nor vote in it again.
    Resigned(Resigned),
}

/// Votes asked for, `None` while there is no answer.
#[derive(Debug)]
pub(super) struct Campaign {
    pub(super) tally: BTreeMap<BrokerId, Option<bool>>,
    pub(super) election: Millis,
}

impl Campaign {
    pub(super) fn new(me: BrokerId, voters: &[BrokerId], election: Millis) -> Campaign {
        Campaign { tally: voters.iter().map(|id| (*id, (*id == me).then_some(true))).collect(), election }
    }

    pub(super) fn granting(&self) -> Vec<BrokerId> {
        self.tally.iter().filter(|(_, vote)| **vote == Some(true)).map(|(id, _)| *id).collect()
    }

    /// Whether so many votes cannot be reached any more.
    pub(super) fn is_lost(&self, majority: usize) -> bool {
        self.tally.values().filter(|vote| **vote != Some(false)).count() < majority
    }
}

#[derive(Debug)]
pub(super) struct Following {
    /// When it gives its leader up; never for an observer.
    pub(super) deadline: Option<Millis>,
    /// Whether this leader has answered since it is followed, and its connection has not broken since: it is known to live.
    pub(super) fetched: bool,
    /// What the leader says is committed. It counts here only as far as this node's log has it on disk.
    pub(super) leader_watermark: Option<Offset>,
    /// The snapshot that is being loaded, and how many of its bytes are here.
    pub(super) download: Option<(SnapshotId, u64)>,
}

#[derive(Debug)]
pub(super) struct Leading {
    pub(super) epoch: Epoch,
    /// Offset of its LeaderChange. Nothing counts as committed until that is.
    pub(super) start: Offset,
    /// Whether it is.
    pub(super) confirmed: bool,
    /// The other voters.
    pub(super) voters: BTreeMap<BrokerId, Replica>,
    pub(super) observers: BTreeMap<(BrokerId, DirectoryId), Replica>,
    /// Voters heard from since `check` was set.
    pub(super) heard: BTreeSet<BrokerId>,
    /// When it resigns for want of a majority; never if it is one alone.
    pub(super) check: Option<Millis>,
    /// Voters to tell that it leads, as soon as a request may go there.
    pub(super) untold: BTreeSet<BrokerId>,
    /// When voters that do not fetch are told again.
    pub(super) begin: Option<Millis>,
    /// Fetches that wait for news.
    pub(super) parked: Vec<Parked>,
}

/// A replica as its leader sees it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Replica {
    pub(super) directory: DirectoryId,
    /// Below this it has everything, on disk if it votes.
    pub(super) end: Option<Offset>,
    pub(super) last_fetch: Option<Millis>,
    /// Where the leader's log ended at that fetch.
    pub(super) leader_end: Offset,
    pub(super) caught_up: Option<Millis>,
}

#[derive(Debug)]
pub(super) struct Resigned {
    /// Voters that do not know yet.
    pub(super) untold: BTreeSet<BrokerId>,
    /// Who had best campaign, first to last.
    pub(super) successors: Vec<(BrokerId, DirectoryId)>,
    pub(super) election: Millis,
}
