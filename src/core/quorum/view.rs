//! What others may see of the quorum: DescribeQuorum, metrics, tests.

use super::Quorum;
use super::role::{Replica, Role};
use crate::core::types::{BrokerId, DirectoryId, Epoch, Id, Millis, Offset};

/// A voter as its leader sees it (DescribeQuorum).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterView {
    /// Its node id.
    pub id: BrokerId,
    /// Its metadata directory; zero if it is not known.
    pub directory: DirectoryId,
    /// Where its log ends; -1 if it is not known.
    pub log_end: Offset,
}

/// A voter or observer with the times that its leader keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaView {
    /// Who, and how far.
    pub replica: VoterView,
    /// When it fetched last; `None` if never.
    pub last_fetch: Option<Millis>,
    /// When it last had all that the leader had.
    pub caught_up: Option<Millis>,
}

/// A role by name, as Kafka's metrics have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoleName {
    /// Knows no leader.
    Unattached,
    /// Asks for pre-votes.
    Prospective,
    /// Asks for votes.
    Candidate,
    /// Follows, with a vote.
    Follower,
    /// Follows, without a vote.
    Observer,
    /// Leads.
    Leader,
    /// Leads no more.
    Resigned,
}

impl RoleName {
    /// The name in `current-state`.
    pub fn name(self) -> &'static str {
        match self {
            RoleName::Unattached => "unattached",
            RoleName::Prospective => "prospective",
            RoleName::Candidate => "candidate",
            RoleName::Follower => "follower",
            RoleName::Observer => "observer",
            RoleName::Leader => "leader",
            RoleName::Resigned => "resigned",
        }
    }
}

impl Quorum {
    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.election.epoch
    }

    /// Who leads the epoch, if known and not known to have resigned.
    pub fn leader(&self) -> Option<BrokerId> {
        match self.role {
            Role::Resigned(_) => None,
            _ => self.election.leader,
        }
    }

    /// Whether this node leads.
    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// The role.
    pub fn role(&self) -> RoleName {
        match self.role {
            Role::Unattached { .. } => RoleName::Unattached,
            Role::Prospective(_) => RoleName::Prospective,
            Role::Candidate(_) => RoleName::Candidate,
            Role::Follower(_) if self.config.is_voter() => RoleName::Follower,
            Role::Follower(_) => RoleName::Observer,
            Role::Leader(_) => RoleName::Leader,
            Role::Resigned(_) => RoleName::Resigned,
        }
    }

    /// Everything below is committed. A leader does not know until its own first record is.
    pub fn high_watermark(&self) -> Option<Offset> {
        match &self.role {
            Role::Leader(leading) if !leading.confirmed => None,
            _ => self.committed,
        }
    }

    /// Where the log ends.
    pub fn log_end(&self) -> Offset {
        self.log.end
    }

    /// The voters, in id order. Only a leader knows how far the others are.
    pub fn voters(&self) -> Vec<VoterView> {
        self.voter_views(Millis(0)).into_iter().map(|view| view.replica).collect()
    }

    /// The voters with times, in id order; `now` is what the leader says of itself.
    pub fn voter_views(&self, now: Millis) -> Vec<ReplicaView> {
        let of = |id: &BrokerId| {
            if *id == self.config.me {
                let replica = VoterView { id: *id, directory: self.config.directory, log_end: self.log.end };
                return ReplicaView { replica, last_fetch: Some(now), caught_up: Some(now) };
            }
            let Role::Leader(leading) = &self.role else { return view(*id, Id::ZERO, &Replica::default()) };
            let replica = leading.voters.get(id).copied().unwrap_or_default();
            view(*id, replica.directory, &replica)
        };
        self.config.voters.iter().map(of).collect()
    }

    /// Who else has fetched from this leader lately.
    pub fn observer_views(&self) -> Vec<ReplicaView> {
        let Role::Leader(leading) = &self.role else { return Vec::new() };
        leading.observers.iter().map(|((id, directory), replica)| view(*id, *directory, replica)).collect()
    }
}

fn view(id: BrokerId, directory: DirectoryId, replica: &Replica) -> ReplicaView {
    let log_end = replica.end.unwrap_or(Offset::NONE);
    ReplicaView { replica: VoterView { id, directory, log_end }, last_fetch: replica.last_fetch, caught_up: replica.caught_up }
}
