//! Asking for votes: first for pre-votes, which change nothing (KIP-996), then for real ones (`kraft.md` 2.3, 3.4).

use super::message::{Request, VoteRequest};
use super::peers::Asked;
use super::records::ElectionState;
use super::role::Role;
use super::{Cx, Quorum};
use crate::core::types::{BrokerId, Id};

impl Quorum {
    /// Asks every voter whose answer is missing. A vote is given for a log, so all of that is on disk first.
    pub(super) fn ask_for_votes(&mut self, cx: &mut Cx) {
        if !self.is_settled() {
            return;
        }
        let (campaign, pre_vote) = match &self.role {
            Role::Prospective(campaign) => (campaign, true),
            Role::Candidate(campaign) => (campaign, false),
            _ => return,
        };
        if campaign.is_lost(self.config.majority()) {
            return;
        }
        // This node's own vote is there from the beginning.
        let missing: Vec<BrokerId> = campaign.tally.iter().filter(|(_, vote)| vote.is_none()).map(|(id, _)| *id).collect();
        for voter in missing {
            if self.peers.ready(voter) {
                let request = VoteRequest {
                    voter: Some((voter, Id::ZERO)),
                    candidate: self.config.me,
                    directory: self.config.directory,
                    epoch: self.election.epoch,
                    last_epoch: self.log.last_epoch(),
                    log_end: self.log.end,
                    pre_vote,
                };
                self.send(voter, Asked::Vote, Request::Vote(request), cx);
            }
        }
    }

    pub(super) fn on_vote_answer(&mut self, from: BrokerId, granted: bool, cx: &mut Cx) {
        let majority = self.config.majority();
        let (Role::Prospective(campaign) | Role::Candidate(campaign)) = &mut self.role else { return };
        if let Some(vote) = campaign.tally.get_mut(&from) {
            *vote = Some(granted);
        }
        if campaign.is_lost(majority) && matches!(self.role, Role::Prospective(_)) {
            self.give_up_pre_votes(cx);
        }
    }

    /// Whether the votes so far are enough, which has its consequence at once.
    pub(super) fn is_elected(&mut self, cx: &mut Cx) -> bool {
        let (campaign, pre_vote) = match &self.role {
            Role::Prospective(campaign) => (campaign, true),
            Role::Candidate(campaign) => (campaign, false),
            _ => return false,
        };
        let granting = campaign.granting();
        if granting.len() < self.config.majority() || self.stopping {
            return false;
        }
        if pre_vote {
            self.campaign(cx);
        } else {
            self.become_leader(granting, cx);
        }
        true
    }

    /// Nobody would be elected: back to the leader if there is one, else wait. The timer is a fresh one, so that there is time to look for a
    /// leader before the next attempt.
    pub(super) fn give_up_pre_votes(&mut self, cx: &mut Cx) {
        match self.election.leader.filter(|leader| self.may_lead(*leader)) {
            Some(leader) => self.follow(self.election.epoch, leader, cx),
            None => {
                let election = self.election_timer(cx);
                self.enter(Role::Unattached { election }, cx);
            }
        }
    }

    /// A voter that refused its pre-vote asks for one itself and has the lesser log: it has lost its leader since, so it is asked again. Without
    /// this two voters that refused each other would wait out a whole election timer (`kraft.md` 5.5).
    pub(super) fn ask_again(&mut self, voter: BrokerId) {
        if let Role::Prospective(campaign) = &mut self.role
            && let Some(vote @ Some(false)) = campaign.tally.get_mut(&voter)
        {
            *vote = None;
        }
    }

    /// Gives the vote of this epoch, which is on disk before anybody hears of it.
    pub(super) fn give_vote(&mut self, request: &VoteRequest, cx: &mut Cx) {
        let voted = Some((request.candidate, request.directory));
        self.persist(ElectionState { voted, ..self.election }, cx);
        match self.role {
            Role::Prospective(_) => self.prospective(cx),
            _ => {
                let election = self.election_timer(cx);
                self.enter(Role::Unattached { election }, cx);
            }
        }
    }
}
