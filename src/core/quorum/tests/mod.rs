//! The quorum's rules as tables and timelines. What many nodes do to each other is `src/sim`'s.

mod alone;
mod elections;
mod logs;
mod votes;

use super::message::*;
use super::records::*;
use super::*;
use crate::core::chance::Seeded;
use crate::core::types::Id;

/// A node with its time and its chance.
struct Node {
    quorum: Quorum,
    now: i64,
    chance: Seeded,
}

impl std::ops::Deref for Node {
    type Target = Quorum;
    fn deref(&self) -> &Quorum {
        &self.quorum
    }
}

fn config(me: i32, voters: &[i32]) -> Config {
    let voters = voters.iter().map(|id| BrokerId(*id)).collect();
    Config { me: BrokerId(me), directory: Id(500), voters, timing: Timing::default() }
}

/// A log from 0 that is on disk, with one epoch.
fn log(end: i64, last_epoch: i32) -> RecoveredLog {
    let epochs = if end > 0 { vec![(Epoch(last_epoch), Offset(0))] } else { Vec::new() };
    let base_epoch = Some(Epoch(if end > 0 { 0 } else { last_epoch }));
    RecoveredLog { end: Offset(end), durable: Offset(end), base_epoch, epochs, ..RecoveredLog::empty() }
}

impl Node {
    fn start(config: Config, log: RecoveredLog, stored: ElectionState) -> (Node, Vec<Effect>) {
        let (mut chance, mut fx) = (Seeded(1), Vec::new());
        let quorum = Quorum::start(config, log, stored, &mut Cx { now: Millis(0), chance: &mut chance, fx: &mut fx }).unwrap();
        (Node { quorum, now: 0, chance }, fx)
    }

    fn with<T>(&mut self, fx: &mut Vec<Effect>, what: impl FnOnce(&mut Quorum, &mut Cx) -> T) -> T {
        what(&mut self.quorum, &mut Cx { now: Millis(self.now), chance: &mut self.chance, fx })
    }

    fn append(&mut self, count: i64, fx: &mut Vec<Effect>) -> Result<(Epoch, Offset), NotLeader> {
        self.with(fx, |quorum, cx| quorum.append(count, cx))
    }

    fn flushed(&mut self, upto: i64, fx: &mut Vec<Effect>) {
        let generation = self.quorum.log.generation;
        self.with(fx, |quorum, cx| quorum.flushed(Offset(upto), generation, cx));
    }

    fn resign(&mut self, fx: &mut Vec<Effect>) {
        self.with(fx, |quorum, cx| quorum.resign(cx));
    }
}

/// A voter among 1, 2, 3 (and 4, 5), in epoch 3, with ten records of epochs 1 and 3, which knows no leader.
fn idle(me: i32, voters: &[i32], stored: ElectionState) -> (Node, Vec<Effect>) {
    let epochs = vec![(Epoch(1), Offset(0)), (Epoch(3), Offset(6))];
    Node::start(config(me, voters), RecoveredLog { epochs, ..log(10, 3) }, stored)
}

fn state(epoch: i32, leader: Option<i32>, voted: Option<i32>) -> ElectionState {
    ElectionState { epoch: Epoch(epoch), leader: leader.map(BrokerId), voted: voted.map(|id| (BrokerId(id), Id::ZERO)) }
}

fn vote(candidate: i32, epoch: i32, log: (i32, i64), pre_vote: bool) -> VoteRequest {
    VoteRequest {
        voter: None,
        candidate: BrokerId(candidate),
        directory: Id::ZERO,
        epoch: Epoch(epoch),
        last_epoch: Epoch(log.0),
        log_end: Offset(log.1),
        pre_vote,
    }
}

impl Node {
    fn ask(&mut self, request: Request) -> Vec<Effect> {
        let mut fx = Vec::new();
        self.with(&mut fx, |quorum, cx| quorum.request(Ticket(1), request, cx));
        fx
    }

    /// Lets time pass; what happens then.
    fn after(&mut self, millis: i64) -> Vec<Effect> {
        let mut fx = Vec::new();
        self.now += millis;
        self.with(&mut fx, |quorum, cx| quorum.tick(cx));
        fx
    }

    /// The answer to the request among `sent` that went to `from`.
    fn answered(&mut self, from: i32, sent: &[Effect], outcome: Result<Response, SendFailed>) -> Vec<Effect> {
        let mut fx = Vec::new();
        let serial = sent.iter().rev().find_map(|effect| match effect {
            Effect::Send { to, serial, .. } if to.0 == from => Some(*serial),
            _ => None,
        });
        self.with(&mut fx, |quorum, cx| quorum.response(BrokerId(from), serial.expect("was asked"), outcome, cx));
        fx
    }
}

fn head(epoch: i32, leader: Option<i32>) -> Head {
    Head { refused: None, epoch: Epoch(epoch), leader: leader.map(BrokerId) }
}

fn ballot(epoch: i32, granted: bool) -> Result<Response, SendFailed> {
    Ok(Response::Vote { head: head(epoch, None), granted })
}

/// Whom requests went to, and what they were.
fn sent(fx: &[Effect]) -> Vec<(i32, &'static str)> {
    let of = |effect: &Effect| match effect {
        Effect::Send { to, request, .. } => {
            let what = match request {
                Request::Vote(vote) if vote.pre_vote => "pre-vote",
                Request::Vote(_) => "vote",
                Request::BeginEpoch(_) => "begin",
                Request::EndEpoch(_) => "end",
                Request::Fetch(_) => "fetch",
                Request::FetchSnapshot(_) => "snapshot",
            };
            Some((to.0, what))
        }
        _ => None,
    };
    fx.iter().filter_map(of).collect()
}

fn persisted(fx: &[Effect]) -> Vec<ElectionState> {
    fx.iter().filter_map(|effect| if let Effect::PersistState(state) = effect { Some(*state) } else { None }).collect()
}

fn answer(fx: &[Effect]) -> Response {
    let found = fx.iter().find_map(|effect| if let Effect::Answer { response, .. } = effect { Some(response.clone()) } else { None });
    found.expect("an answer at once")
}
