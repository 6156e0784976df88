//! `Controller`: decides on requests while this node leads the metadata quorum. A shell around `core::controller`.
//!
//! * Lifecycle: one per controller node; active between `Lead` and the process's end. A panic ends the process: its state is its log.
//! * Thread: control. Asked by: `Link`. Tells: `Quorum` (records to append).
//! * Decisions build on records that are appended and not yet committed; answers wait until the records are applied on this broker.

use super::quorum::{AppendRecords, Quorum};
use crate::core::chance::Chance;
use crate::core::controller::request::{Answer, Request};
use crate::core::controller::{self as rules, Image, Record, Settings};
use crate::core::types::{Epoch, Offset};
use crate::rt::{Essential, Reply, Tell};
use actix::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module.
pub struct Controller {
    settings: Settings,
    active: Option<Active>,
    /// What a new cluster's metadata begins with.
    bootstrap: Vec<Record>,
    published: Offset,
    waiting: VecDeque<Waiting>,
    chance: Random,
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
}

impl Controller {
    /// A controller that waits for its quorum.
    pub fn new(settings: Settings, bootstrap: Vec<Record>) -> Controller {
        Controller {
            settings,
            active: None,
            bootstrap,
            published: Offset::NONE,
            waiting: VecDeque::new(),
            chance: Random,
            _essential: Essential("controller"),
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
}

impl Handler<Lead> for Controller {
    type Result = ();
    fn handle(&mut self, m: Lead, _: &mut Context<Self>) {
        tracing::info!(epoch = m.epoch.0, "active controller");
        let rules = rules::Controller::new(m.image, self.settings.clone());
        let mut active = Active { quorum: m.quorum, rules, epoch: m.epoch, next: m.next };
        if active.rules.image().features().next().is_none() {
            active.append(self.bootstrap.clone());
        }
        self.active = Some(active);
    }
}

impl Handler<Renounce> for Controller {
    type Result = ();
    fn handle(&mut self, _: Renounce, _: &mut Context<Self>) {
        self.active = None;
        self.waiting.drain(..).for_each(|waiting| waiting.reply.send(Err(NotActive)));
    }
}

impl Active {
    fn append(&mut self, records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        let base = self.next;
        for (at, record) in records.iter().enumerate() {
            self.rules.apply(base + at as i64, record).expect("a decision never contradicts the image it was made on");
        }
        self.next = base + records.len() as i64;
        self.rules.advance(self.next + -1, self.epoch);
        self.quorum.tell(AppendRecords { epoch: self.epoch, base, records: Arc::new(records) });
    }
}

impl Handler<Decide> for Controller {
    type Result = ();
    fn handle(&mut self, m: Decide, _: &mut Context<Self>) {
        let Some(active) = &mut self.active else { return m.reply.send(Err(NotActive)) };
        let mut cx = rules::Context { next: active.next, chance: &mut self.chance };
        let rules::Decision { records, answer } = active.rules.decide(m.request, &mut cx);
        active.append(records);
        let upto = active.next + -1;
        self.waiting.push_back(Waiting { upto, answer, reply: m.reply });
        self.answer_published();
    }
}

impl Handler<Published> for Controller {
    type Result = ();
    fn handle(&mut self, m: Published, _: &mut Context<Self>) {
        self.published = self.published.max(m.upto);
        self.answer_published();
    }
}
