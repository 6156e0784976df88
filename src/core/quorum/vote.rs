//! Answering those who want to lead, who lead, and who led: Vote, BeginQuorumEpoch, EndQuorumEpoch (`kraft.md` 2.5, 2.6, 3.4 to 3.6, 5).

use super::message::{BeginEpoch, EndEpoch, Problem, Response, Ticket, VoteRequest};
use super::role::{Following, Role};
use super::{Cx, Effect, Quorum, mutant};
use crate::core::types::{BrokerId, DirectoryId, Epoch, Millis, Offset};

impl Quorum {
    pub(super) fn on_vote(&mut self, ticket: Ticket, request: &VoteRequest, cx: &mut Cx) {
        let outcome = self.judge_vote(request, cx);
        let (refused, granted) = match outcome {
            Ok(granted) => (None, granted),
            Err(problem) => (Some(problem), false),
        };
        cx.fx.push(Effect::Answer { ticket, response: Response::Vote { head: self.head(refused), granted } });
    }

    fn judge_vote(&mut self, request: &VoteRequest, cx: &mut Cx) -> Result<bool, Problem> {
        let too_new = if request.pre_vote { request.last_epoch > request.epoch } else { request.last_epoch >= request.epoch };
        if too_new || request.last_epoch < Epoch(0) || request.log_end < Offset(0) {
            return Err(Problem::Invalid);
        }
        self.check_sender(request.candidate, request.epoch)?;
        if request.epoch > self.election.epoch {
            self.unattached(request.epoch, cx);
        }
        self.check_addressee(request.voter)?;
        Ok(if request.pre_vote { self.judge_pre_vote(request) } else { self.judge_standard_vote(request, cx) })
    }

    /// One vote for each epoch, and that only for a log that holds all of this one (`kraft.md` 5.2).
    fn judge_standard_vote(&mut self, request: &VoteRequest, cx: &mut Cx) -> bool {
        if !matches!(self.role, Role::Unattached { .. } | Role::Prospective(_)) {
            return false;
        }
        if let Some((voted, directory)) = self.election.voted {
            return voted == request.candidate && (directory.is_zero() || directory == request.directory) || mutant!(VoteTwice);
        }
        let granted = self.election.leader.is_none() && self.has_all_of_mine(request);
        if granted {
            self.give_vote(request, cx);
        }
        granted
    }

    /// Changes nothing. Who knows that its leader lives sees no need for another (`kraft.md` 5.3).
    fn judge_pre_vote(&mut self, request: &VoteRequest) -> bool {
        let good = self.has_all_of_mine(request);
        match &self.role {
            Role::Leader(_) => false,
            Role::Follower(following) => good && !following.fetched,
            Role::Prospective(_) => {
                if !good {
                    self.ask_again(request.candidate);
                }
                good
            }
            _ => good,
        }
    }

    fn has_all_of_mine(&self, request: &VoteRequest) -> bool {
        self.log.is_behind(request.last_epoch, request.log_end) || mutant!(VoteForAnyLog)
    }

    fn check_sender(&self, sender: BrokerId, epoch: Epoch) -> Result<(), Problem> {
        if epoch < self.election.epoch && !mutant!(DeadEpochAccepted) {
            return Err(Problem::FencedEpoch);
        }
        if sender.0 < 0 { Err(Problem::Invalid) } else { Ok(()) }
    }

    /// The request is meant for this node, as far as it says.
    fn check_addressee(&self, voter: Option<(BrokerId, DirectoryId)>) -> Result<(), Problem> {
        match voter {
            Some((id, directory)) if id != self.config.me || !directory.is_zero() && directory != self.config.directory => {
                Err(Problem::InvalidVoterKey)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn on_begin_epoch(&mut self, ticket: Ticket, request: &BeginEpoch, cx: &mut Cx) {
        let outcome = self.hear_leader(request.leader, request.epoch, cx).and_then(|()| self.check_addressee(request.voter));
        let head = self.head(outcome.err());
        cx.fx.push(Effect::Answer { ticket, response: Response::BeginEpoch(head) });
    }

    pub(super) fn on_end_epoch(&mut self, ticket: Ticket, request: &EndEpoch, cx: &mut Cx) {
        let outcome = self.hear_leader(request.leader, request.epoch, cx);
        if outcome.is_ok() {
            let wait = self.succession(&request.successors);
            if let Role::Follower(Following { deadline: Some(deadline), fetched, .. }) = &mut self.role {
                *deadline = Millis(cx.now.0 + wait);
                // It leads no more, and says so itself: who asks for pre-votes may have them (KAFKA-20895).
                *fetched = false;
            }
        }
        let head = self.head(outcome.err());
        cx.fx.push(Effect::Answer { ticket, response: Response::EndEpoch(head) });
    }

    /// A node says that it leads, or led, that epoch.
    fn hear_leader(&mut self, leader: BrokerId, epoch: Epoch, cx: &mut Cx) -> Result<(), Problem> {
        if epoch < self.election.epoch && mutant!(DeadEpochAccepted) {
            self.follow(epoch, leader, cx);
        }
        self.check_sender(leader, epoch)?;
        // Its address comes from the voters: an outsider cannot be followed.
        if !self.may_lead(leader) {
            return Err(Problem::Invalid);
        }
        // A voter that asked for pre-votes hears from the leader that it had given up.
        let doubted = matches!(self.role, Role::Prospective(_)) && epoch == self.election.epoch && self.election.leader == Some(leader);
        if doubted {
            self.follow(epoch, leader, cx);
        }
        if self.saw(epoch, Some(leader), cx) { Ok(()) } else { Err(Problem::Other) }
    }

    /// How long this node leaves a resigned leader's other successors time to campaign (`kraft.md` 2.6).
    fn succession(&self, successors: &[(BrokerId, DirectoryId)]) -> i64 {
        let longest = self.config.timing.succession;
        let is_me = |(id, directory): &(BrokerId, DirectoryId)| {
            *id == self.config.me && (directory.is_zero() || *directory == self.config.directory)
        };
        match successors.iter().position(is_me) {
            Some(0) => 0,
            Some(at) => {
                let first = longest.checked_shr(successors.len() as u32 - 1).unwrap_or(0);
                first.checked_shl(at as u32 - 1).filter(|wait| *wait <= longest).unwrap_or(longest)
            }
            None => longest,
        }
    }
}
