//! What time brings: each role's timer, and the requests that a role sends when it may (`kraft.md` 2.4).

use super::message::{Request, SendFailed};
use super::peers::Asked;
use super::role::Role;
use super::{Cx, Effect, Quorum};
use crate::core::types::{BrokerId, Millis};

impl Quorum {
    /// When [`Quorum::tick`] is to be called at the latest; `None` if nothing ever happens by itself.
    pub fn next_deadline(&self) -> Option<Millis> {
        let role = match &self.role {
            Role::Unattached { election } => *election,
            Role::Prospective(campaign) | Role::Candidate(campaign) => Some(campaign.election),
            Role::Follower(following) => following.deadline,
            Role::Leader(leading) => {
                leading.check.into_iter().chain(leading.begin).chain(leading.parked.iter().map(|parked| parked.deadline)).min()
            }
            Role::Resigned(resigned) => Some(resigned.election),
        };
        // A node that stops does not campaign: its timers ring for nothing.
        let idle = self.failed || self.stopping && !self.is_leader();
        role.filter(|_| !idle).into_iter().chain(self.peers.next_deadline()).min()
    }

    /// Acts on all that is due, then sends what can be sent.
    pub(super) fn poll(&mut self, cx: &mut Cx) {
        self.peers.expire(cx.now);
        while !self.failed && self.act_on_timer(cx) {}
        if !self.failed {
            self.send_what_is_due(cx);
        }
    }

    /// One step; whether there was one.
    fn act_on_timer(&mut self, cx: &mut Cx) -> bool {
        let due = |deadline: Option<Millis>| deadline.is_some_and(|deadline| deadline <= cx.now);
        match &self.role {
            Role::Unattached { election } if due(*election) && !self.stopping => self.prospective(cx),
            Role::Prospective(campaign) if due(Some(campaign.election)) && !self.stopping => self.give_up_pre_votes(cx),
            Role::Candidate(campaign) if due(Some(campaign.election)) && !self.stopping => self.prospective(cx),
            Role::Follower(following) if due(following.deadline) && !self.stopping => self.prospective(cx),
            Role::Leader(leading) if due(leading.check) => self.step_down(cx),
            Role::Leader(leading) if due(leading.begin) => self.list_untold(cx),
            Role::Leader(leading) if leading.parked.iter().any(|parked| parked.deadline <= cx.now) => self.release_expired(cx),
            Role::Resigned(resigned) if due(Some(resigned.election)) && !self.stopping => self.end_resigned(cx),
            _ => return self.is_elected(cx),
        }
        true
    }

    fn send_what_is_due(&mut self, cx: &mut Cx) {
        match &self.role {
            Role::Unattached { .. } => {
                if !self.peers.busy() {
                    self.fetch_from_anyone(None, cx);
                }
            }
            Role::Prospective(_) | Role::Candidate(_) => self.ask_for_votes(cx),
            Role::Follower(_) => self.fetch_next(cx),
            Role::Leader(_) => self.tell_untold(cx),
            Role::Resigned(_) => self.tell_of_resignation(cx),
        }
    }

    pub(super) fn send(&mut self, to: BrokerId, asked: Asked, request: Request, cx: &mut Cx) {
        let deadline = Millis(cx.now.0 + self.config.timing.request.max(1));
        let serial = self.peers.begin(to, asked, deadline);
        cx.fx.push(Effect::Send { to, serial, request });
    }

    pub(super) fn on_failure(&mut self, from: BrokerId, asked: Asked, failed: SendFailed, cx: &mut Cx) {
        self.back_off(from, cx);
        match failed {
            // A peer without pre-votes: this attempt goes without, too.
            SendFailed::Unsupported if asked == Asked::Vote && matches!(self.role, Role::Prospective(_)) => self.campaign(cx),
            SendFailed::Disconnected => {
                self.peers.doubt(from);
                self.hint(from, cx);
            }
            _ => {}
        }
    }

    /// The leader may be gone. It gets a grace to be reached again; meanwhile this node no longer vouches for it, so that others who lost it can
    /// have pre-votes from here.
    pub(super) fn hint(&mut self, peer: BrokerId, cx: &mut Cx) {
        let grace = self.config.timing.grace;
        if self.election.leader != Some(peer) || grace <= 0 {
            return;
        }
        let before_me = self.config.others().filter(|id| *id < self.config.me && *id != peer).count() as i64;
        let Role::Follower(following) = &mut self.role else { return };
        following.fetched = false;
        if let Some(deadline) = &mut following.deadline {
            // One follower after the other: two that campaign at once share the votes, and both wait for another election.
            let wait = grace * (1 + before_me) + cx.chance.below((grace as usize).div_ceil(2)) as i64;
            *deadline = (*deadline).min(Millis(cx.now.0 + wait));
        }
    }
}
