//! Resigned: tells the voters who had best follow, waits, and leaves the epoch it led to history (`kraft.md` 3.6, 5.4).

use super::message::{EndEpoch, Request};
use super::peers::Asked;
use super::role::{Resigned, Role};
use super::start::next_epoch;
use super::{Cx, Quorum};
use crate::core::types::{BrokerId, DirectoryId};
use std::collections::BTreeSet;

impl Quorum {
    pub(super) fn resigned(&self, successors: Vec<(BrokerId, DirectoryId)>, untold: BTreeSet<BrokerId>, cx: &mut Cx) -> Role {
        Role::Resigned(Resigned { untold, successors, election: self.campaign_timer(cx) })
    }

    pub(super) fn tell_of_resignation(&mut self, cx: &mut Cx) {
        let Role::Resigned(resigned) = &self.role else { return };
        let ready: Vec<BrokerId> = resigned.untold.iter().copied().filter(|id| self.peers.ready(*id)).collect();
        let end = EndEpoch { leader: self.config.me, epoch: self.election.epoch, successors: resigned.successors.clone() };
        for voter in ready {
            self.send(voter, Asked::EndEpoch, Request::EndEpoch(end.clone()), cx);
        }
    }

    pub(super) fn on_end_answer(&mut self, from: BrokerId) {
        if let Role::Resigned(resigned) = &mut self.role {
            resigned.untold.remove(&from);
        }
    }

    /// Nobody took over meanwhile. The next epoch has begun, so that no answer names this node as the leader of its old one, and this node may
    /// campaign again.
    pub(super) fn end_resigned(&mut self, cx: &mut Cx) {
        match next_epoch(self.election.epoch) {
            Ok(epoch) => {
                self.unattached(epoch, cx);
                if !self.config.is_voter() {
                    return;
                }
                self.prospective(cx);
            }
            Err(e) => self.fail(e.into(), cx),
        }
    }

    /// After [`Quorum::stop`]: whether the others can do without this node. A voter that led stays until another leads or all know.
    pub fn may_stop(&self) -> bool {
        match &self.role {
            Role::Resigned(resigned) => resigned.untold.is_empty(),
            Role::Leader(_) => false,
            _ => true,
        }
    }
}
