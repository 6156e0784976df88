//! From one role to another (`kraft.md` 2.3). What is durable is on disk first; then the role changes, and what the old one had under way ends.

use super::message::{Head, Problem};
use super::peers::Asked;
use super::records::ElectionState;
use super::role::{Campaign, Following, Role};
use super::start::next_epoch;
use super::{Contradiction, Cx, Effect, Quorum};
use crate::core::types::{BrokerId, Epoch, Millis};

impl Quorum {
    /// Makes `state` what is remembered, on disk first.
    pub(super) fn persist(&mut self, state: ElectionState, cx: &mut Cx) {
        if state != self.election {
            self.election = state;
            cx.fx.push(Effect::PersistState(state));
        }
    }

    /// Takes a role. Everything in flight belongs to the old one.
    pub(super) fn enter(&mut self, role: Role, cx: &mut Cx) {
        self.peers.reset();
        match std::mem::replace(&mut self.role, role) {
            Role::Leader(leading) => self.leave_leading(leading, cx),
            Role::Follower(Following { download: Some((id, _)), .. }) => cx.fx.push(Effect::DropSnapshot { id }),
            _ => {}
        }
    }

    /// An election timer, drawn anew; `None` for who never campaigns.
    pub(super) fn election_timer(&self, cx: &mut Cx) -> Option<Millis> {
        self.config.is_voter().then(|| self.campaign_timer(cx))
    }

    pub(super) fn campaign_timer(&self, cx: &mut Cx) -> Millis {
        let election = self.config.timing.election.max(1);
        Millis(cx.now.0 + election + cx.chance.below(election as usize) as i64)
    }

    pub(super) fn candidate(&self, cx: &mut Cx) -> Role {
        Role::Candidate(Campaign::new(self.config.me, &self.config.voters, self.campaign_timer(cx)))
    }

    pub(super) fn following(&self, cx: &mut Cx) -> Role {
        let deadline = self.config.is_voter().then(|| Millis(cx.now.0 + self.config.timing.fetch));
        Role::Follower(Following { deadline, fetched: false, leader_watermark: None, download: None })
    }

    /// Into a newer epoch whose leader is not known. A timer that runs goes on, so that who campaigns in vain cannot keep others from it.
    pub(super) fn unattached(&mut self, epoch: Epoch, cx: &mut Cx) {
        let fresh = self.election_timer(cx);
        let majority = self.config.majority();
        let election = match &self.role {
            Role::Unattached { election } => election.or(fresh),
            Role::Prospective(campaign) if !campaign.is_lost(majority) => Some(campaign.election),
            Role::Candidate(campaign) => Some(campaign.election),
            Role::Resigned(resigned) => Some(resigned.election),
            _ => fresh,
        };
        let election = if self.config.is_voter() { election } else { None };
        self.persist(ElectionState { epoch, leader: None, voted: None }, cx);
        self.enter(Role::Unattached { election }, cx);
    }

    /// Follows `leader`; within an epoch the vote stays.
    pub(super) fn follow(&mut self, epoch: Epoch, leader: BrokerId, cx: &mut Cx) {
        let voted = if epoch == self.election.epoch { self.election.voted } else { None };
        self.persist(ElectionState { epoch, leader: Some(leader), voted }, cx);
        let role = self.following(cx);
        self.enter(role, cx);
    }

    /// Asks for pre-votes.
    pub(super) fn prospective(&mut self, cx: &mut Cx) {
        let election = self.campaign_timer(cx);
        self.enter(Role::Prospective(Campaign::new(self.config.me, &self.config.voters, election)), cx);
    }

    /// Asks for votes, in the next epoch.
    pub(super) fn campaign(&mut self, cx: &mut Cx) {
        let epoch = match next_epoch(self.election.epoch) {
            Ok(epoch) => epoch,
            Err(e) => return self.fail(e.into(), cx),
        };
        let voted = Some((self.config.me, self.config.directory));
        self.persist(ElectionState { epoch, leader: None, voted }, cx);
        let role = self.candidate(cx);
        self.enter(role, cx);
    }

    /// Another node is in `epoch` and knows that leader. Returns whether both are of the same epoch and of one mind.
    pub(super) fn saw(&mut self, epoch: Epoch, leader: Option<BrokerId>, cx: &mut Cx) -> bool {
        let mine = self.election;
        if epoch < mine.epoch {
            return false;
        }
        let leader = leader.filter(|leader| leader.0 >= 0);
        if epoch > mine.epoch {
            match leader.filter(|leader| self.may_lead(*leader)) {
                Some(leader) => self.follow(epoch, leader, cx),
                None => self.unattached(epoch, cx),
            }
            return true;
        }
        match (mine.leader, leader) {
            (Some(known), Some(other)) if known != other => {
                self.fail(Contradiction::TwoLeaders { epoch, known, other }, cx);
                false
            }
            (None, Some(leader)) if self.may_lead(leader) => {
                self.follow(epoch, leader, cx);
                true
            }
            // Who is told that it leads, and does not know: its disk forgot.
            (None, Some(leader)) if leader == self.config.me => {
                self.fail(Contradiction::TwoLeaders { epoch, known: BrokerId::NONE, other: leader }, cx);
                false
            }
            (None, Some(_)) => false,
            _ => true,
        }
    }

    /// The part that all answers have in common (`kraft.md` 3.3). Returns whether the rest counts.
    pub(super) fn heed(&mut self, from: BrokerId, head: Head, cx: &mut Cx) -> bool {
        let before = self.election.epoch;
        if head.epoch < before {
            self.back_off(from, cx);
            return false;
        }
        let agreed = self.saw(head.epoch, head.leader, cx);
        if agreed && head.epoch == before && head.refused.is_none() {
            return true;
        }
        // Nothing is asked again at the speed of the network: whoever refuses does so for a while.
        if head.epoch == before {
            self.back_off(from, cx);
            if head.refused == Some(Problem::NotLeader) {
                self.peers.doubt(from);
            }
        }
        false
    }

    pub(super) fn back_off(&mut self, from: BrokerId, cx: &mut Cx) {
        self.peers.back_off(from, Millis(cx.now.0 + self.config.timing.backoff.max(1)));
    }

    pub(super) fn on_response(&mut self, from: BrokerId, asked: Asked, response: super::Response, cx: &mut Cx) {
        use super::Response;
        let head = response.head();
        let agreed = self.heed(from, head, cx);
        match (asked, response) {
            (Asked::Vote, Response::Vote { granted, .. }) if agreed => self.on_vote_answer(from, granted, cx),
            (Asked::EndEpoch, Response::EndEpoch(_)) if agreed => self.on_end_answer(from),
            (Asked::Fetch, Response::Fetch(fetched)) if agreed => self.on_fetched(from, fetched, cx),
            (Asked::Snapshot { id, position }, Response::FetchSnapshot(part)) => {
                let lost = matches!(head.refused, Some(Problem::SnapshotNotFound | Problem::PositionOutOfRange));
                if agreed {
                    self.on_snapshot_part(from, id, position, part, cx);
                } else if lost && head.epoch == self.election.epoch {
                    self.drop_download(cx);
                }
            }
            (Asked::BeginEpoch, Response::BeginEpoch(_)) => {}
            _ if agreed => self.back_off(from, cx),
            _ => {}
        }
    }
}
