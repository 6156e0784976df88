//! How a node starts: in which role, by what it finds on disk (`kraft.md` 1.7).

use super::records::ElectionState;
use super::role::Role;
use super::{Config, Cx, EpochsExhausted, LogView, Peers, Quorum, RecoveredLog, mutant};
use crate::core::types::{BrokerId, Epoch};

impl Quorum {
    /// The node starts. A node that led must not lead the same epoch again: it may have lost records that it showed, and no two records may share
    /// offset and epoch (KAFKA-10527). A node that was a candidate goes on being one. The only voter elects itself at once, in an epoch that
    /// neither its log nor its vote has seen.
    pub fn start(config: Config, log: RecoveredLog, stored: ElectionState, cx: &mut Cx) -> Result<Quorum, EpochsExhausted> {
        let mut quorum = Quorum {
            role: Role::Unattached { election: None },
            election: stored,
            log: LogView::new(log),
            committed: None,
            flushing: None,
            peers: Peers::default(),
            stopping: false,
            failed: false,
            config,
        };
        quorum.flush(cx);
        if quorum.config.is_voter() && quorum.config.voters.len() == 1 {
            quorum.lead_alone(cx)?;
            return Ok(quorum);
        }
        let last_epoch = quorum.log.last_epoch();
        if quorum.election.epoch < last_epoch {
            quorum.persist(ElectionState { epoch: last_epoch, leader: None, voted: None }, cx);
        }
        if quorum.election.leader == Some(quorum.config.me) && mutant!(LeadsAgain) {
            quorum.become_leader(Vec::new(), cx);
            return Ok(quorum);
        }
        quorum.role = quorum.first_role(cx);
        quorum.poll(cx);
        Ok(quorum)
    }

    fn first_role(&mut self, cx: &mut Cx) -> Role {
        let me = self.config.me;
        let is_voter = self.config.is_voter();
        match self.election {
            ElectionState { leader: Some(leader), .. } if leader == me => self.resigned(Vec::new(), Default::default(), cx),
            ElectionState { voted: Some((voted, _)), leader: None, .. } if voted == me && is_voter => self.candidate(cx),
            ElectionState { leader: Some(leader), .. } if self.may_lead(leader) => self.following(cx),
            _ => Role::Unattached { election: self.election_timer(cx) },
        }
    }

    /// Nobody else can vote, so candidacy and election are one write.
    fn lead_alone(&mut self, cx: &mut Cx) -> Result<(), EpochsExhausted> {
        let seen = self.log.last_epoch().max(self.election.epoch);
        let epoch = next_epoch(seen)?;
        self.election = ElectionState { epoch, leader: None, voted: None };
        self.become_leader(vec![self.config.me], cx);
        Ok(())
    }

    /// Whether a leader of that id can be followed: its address is known from the voters.
    pub(super) fn may_lead(&self, leader: BrokerId) -> bool {
        leader != self.config.me && self.config.voters.contains(&leader)
    }
}

/// The epoch after `epoch`.
pub(super) fn next_epoch(epoch: Epoch) -> Result<Epoch, EpochsExhausted> {
    epoch.0.checked_add(1).map(Epoch).ok_or(EpochsExhausted(epoch))
}
