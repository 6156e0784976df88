//! `Controller`: decides on requests while this node leads the metadata quorum. A shell around `core::controller`.
//!
//! * Lifecycle: one per controller node; active between `Lead` and the process's end. A panic ends the process: its state is its log.
//! * Thread: control. Asked by: `Link`. Tells: `Quorum` (records to append).
//! * Decisions build on records that are appended and not yet committed; answers wait until the records are applied on this broker.

use super::elections::{Before, Elections};
use super::quorum::{AppendRecords, Quorum};
use crate::core::chance::Chance;
use crate::core::controller::request::{Answer, Request};
use crate::core::controller::{self as rules, Image, Record, Settings};
use crate::core::election::{Claims, Election};
use crate::core::types::{Epoch, Millis, Offset};
use crate::rt::{Essential, Reply, Tell, clock};
use actix::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub struct Controller {
    settings: Settings,
    active: Option<Active>,
    /// What a new cluster's metadata begins with.
    bootstrap: Vec<Record>,
    published: Offset,
    waiting: VecDeque<Waiting>,
    chance: Random,
    elections: Elections,
    /// How often leaderships go back to preferred replicas; never if it is none.
    balance_every: Option<Duration>,
    _essential: Essential,
}

struct Active {
    quorum: Addr<Quorum>,
    rules: rules::Controller,
    epoch: Epoch,
    /// The offset that the next record gets.
    next: Offset,
}

struct Waiting {
    /// Offset of the last record that the answer depends on.
    upto: Offset,
    answer: Answer,
    reply: Reply<Result<Answer, NotActive>>,
}

/// This node is not the active controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node is not the active controller")]
pub struct NotActive;

/// The process's source of randomness.
pub struct Random;

impl Chance for Random {
    fn bits(&mut self) -> u64 {
        rand::random()
    }
}

/// Decide on a request. From: `Link`, the node. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Decide {
    /// The request.
    pub request: Request,
    /// Answered when the records are applied on this broker.
    pub reply: Reply<Result<Answer, NotActive>>,
}

/// Lead. From: `Quorum`, when everything before its epoch is committed. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Lead {
    /// The epoch.
    pub epoch: Epoch,
    /// The offset that the next record gets.
    pub next: Offset,
    /// All metadata below that.
    pub image: Image,
    /// Where to append.
    pub quorum: Addr<Quorum>,
}

/// Lead no more: what is not applied on this broker yet may never be. From: `Quorum`. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Renounce;

/// This broker has published the metadata up to here. From: `Link`. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Published {
    /// Offset of the last record applied.
    pub upto: Offset,
    /// When that was committed.
    pub committed: Millis,
}

impl Controller {
    /// A controller that waits for its quorum. `balance_every`: how often leaderships go back to preferred replicas.
    pub fn new(settings: Settings, bootstrap: Vec<Record>, elections: Elections, balance_every: Option<Duration>) -> Controller {
        Controller {
            settings,
            active: None,
            bootstrap,
            published: Offset::NONE,
            waiting: VecDeque::new(),
            chance: Random,
            elections,
            balance_every,
            _essential: Essential("controller"),
        }
    }

    /// Decides and appends; the answer is due when everything up to that offset is committed.
    fn decide(&mut self, request: Request) -> Option<(Offset, Answer)> {
        let active = self.active.as_mut()?;
        let detected = clock::now();
        let claims = Claims::default();
        let mut cx = rules::Context { next: active.next, chance: &mut self.chance, claims: &claims };
        let rules::Decision { records, answer, elections } = active.rules.decide(request, &mut cx);
        active.append(records, elections, &mut self.elections, detected);
        Some((active.next + -1, answer))
    }

    /// Rounds until no leadership is left to move.
    fn balance(&mut self) {
        while let Some((_, Answer::Balance(balanced))) = self.decide(Request::Balance) {
            if balanced.moved > 0 {
                tracing::info!(partitions = balanced.moved, "leaderships went back to their preferred replicas");
            }
            if !balanced.more {
                return;
            }
        }
    }

    fn answer_published(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.upto <= self.published) {
            let Some(Waiting { answer, reply, .. }) = self.waiting.pop_front() else { return };
            reply.send(Ok(answer));
        }
    }
}

impl Actor for Controller {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if let Some(every) = self.balance_every {
            ctx.run_interval(every, |controller, _| controller.balance());
        }
    }
}

impl Handler<Lead> for Controller {
    type Result = ();
    fn handle(&mut self, m: Lead, _: &mut Context<Self>) {
        tracing::info!(epoch = m.epoch.0, "active controller");
        let rules = rules::Controller::new(m.image, self.settings.clone());
        let mut active = Active { quorum: m.quorum, rules, epoch: m.epoch, next: m.next };
        if active.rules.image().features().next().is_none() {
            active.append(self.bootstrap.clone(), Vec::new(), &mut self.elections, clock::now());
        }
        self.active = Some(active);
    }
}

impl Handler<Renounce> for Controller {
    type Result = ();
    fn handle(&mut self, _: Renounce, _: &mut Context<Self>) {
        self.active = None;
        self.elections.resigned();
        self.waiting.drain(..).for_each(|waiting| waiting.reply.send(Err(NotActive)));
    }
}

impl Active {
    fn append(&mut self, records: Vec<Record>, elected: Vec<Election>, shown: &mut Elections, detected: Millis) {
        if records.is_empty() {
            return;
        }
        let (base, decided) = (self.next, clock::now());
        let changed: Vec<Before> = records.iter().filter_map(|record| Elections::before(self.rules.image(), record)).collect();
        for (at, record) in records.iter().enumerate() {
            self.rules.apply(base + at as i64, record).expect("a decision never contradicts the image it was made on");
        }
        self.next = base + records.len() as i64;
        self.rules.advance(self.next + -1, self.epoch);
        shown.decided(self.rules.image(), self.next + -1, elected, changed, detected, decided);
        self.quorum.tell(AppendRecords { epoch: self.epoch, base, records: Arc::new(records) });
    }
}

impl Handler<Decide> for Controller {
    type Result = ();
    fn handle(&mut self, m: Decide, _: &mut Context<Self>) {
        let Some((upto, answer)) = self.decide(m.request) else { return m.reply.send(Err(NotActive)) };
        self.waiting.push_back(Waiting { upto, answer, reply: m.reply });
        self.answer_published();
    }
}

impl Handler<Published> for Controller {
    type Result = ();
    fn handle(&mut self, m: Published, _: &mut Context<Self>) {
        self.published = self.published.max(m.upto);
        if let Some(active) = &self.active {
            self.elections.committed(active.epoch, m.upto, m.committed);
        }
        self.answer_published();
    }
}
