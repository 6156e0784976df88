//! `Controller`: decides on requests while this node leads the metadata quorum. A shell around `core::controller`.
//!
//! * Lifecycle: one per controller node; active between `Lead` and the process's end. A panic ends the process: its state is its log.
//! * Thread: control. Asked by: `Link`. Tells: `Quorum` (records to append).
//! * Decisions build on records that are appended and not yet committed; answers wait until the records are applied on this broker.
//! * Brokers whose sessions are over (`actors/sessions.rs`) are fenced, several in one batch.

use super::elections::{Before, Elections};
use super::quorum::{AppendRecords, Quorum};
use super::sessions::{Due, Watch, Watching};
use crate::core::chance::Chance;
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Answer, Request};
use crate::core::controller::{self as rules, Delta, Image, Record, Settings};
use crate::core::election::{Claims, Election};
use crate::core::types::{BrokerId, Epoch, Millis, Offset};
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
    watching: Watching,
    /// The timer of the sessions, and for when it is set.
    timer: Option<(Millis, SpawnHandle)>,
    _essential: Essential,
}

struct Active {
    quorum: Addr<Quorum>,
    rules: rules::Controller,
    watch: Watch,
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

/// A broker's last connection to this node is closed. From: `Link`. Lost: the broker is fenced for silence, later.
#[derive(Message)]
#[rtype(result = "()")]
pub struct SessionEnded {
    /// The broker.
    pub broker: BrokerId,
    /// Its registration.
    pub epoch: BrokerEpoch,
    /// When.
    pub at: Millis,
}

/// Nobody listens where a broker should. From: a task that has tried. Lost: the broker is fenced for silence, later.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PortRefused {
    broker: BrokerId,
    epoch: BrokerEpoch,
}

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
    pub fn new(
        settings: Settings,
        bootstrap: Vec<Record>,
        elections: Elections,
        balance_every: Option<Duration>,
        watching: Watching,
    ) -> Controller {
        Controller {
            settings,
            active: None,
            bootstrap,
            published: Offset::NONE,
            waiting: VecDeque::new(),
            chance: Random,
            elections,
            balance_every,
            watching,
            timer: None,
            _essential: Essential("controller"),
        }
    }

    /// Decides and appends; the answer is due when everything up to that offset is committed.
    fn decide(&mut self, mut request: Request) -> Option<(Offset, Answer)> {
        let active = self.active.as_mut()?;
        let detected = clock::now();
        let mut beating = None;
        match &mut request {
            Request::RegisterBroker(registration) => active.watch.registers(registration, active.rules.image()),
            Request::Heartbeat(heartbeat) => {
                active.watch.heard(heartbeat);
                beating = Some((heartbeat.broker, heartbeat.broker_epoch));
            }
            _ => {}
        }
        let claims = Claims::default();
        let mut cx = rules::Context { next: active.next, chance: &mut self.chance, claims: &claims };
        let rules::Decision { records, answer, elections } = active.rules.decide(request, &mut cx);
        active.append(records, elections, &mut self.elections, detected);
        if let (Some((broker, epoch)), Answer::Heartbeat(Ok(state))) = (beating, &answer)
            && state.shutting_down
        {
            active.watch.shuts_down(broker, epoch, active.next + -1);
        }
        Some((active.next + -1, answer))
    }

    /// Sets the timer for the session that ends first.
    fn wind(&mut self, ctx: &mut Context<Self>) {
        let next = self.active.as_mut().and_then(|active| active.watch.next(active.rules.image()));
        match (next, &self.timer) {
            // It rings early at worst, and is then set anew.
            (Some((_, at)), Some((set, _))) if *set <= at => {}
            (Some((now, at)), _) => self.ring_in(at.since(now).max(0), at, ctx),
            (None, _) => {
                if let Some((_, timer)) = self.timer.take() {
                    ctx.cancel_future(timer);
                }
            }
        }
    }

    fn ring_in(&mut self, millis: i64, at: Millis, ctx: &mut Context<Self>) {
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        // A millisecond more: a timer that rings within the last one would find nothing due.
        let wait = Duration::from_millis(millis as u64 + 1);
        let timer = ctx.run_later(wait, |controller, ctx| controller.ring(ctx));
        self.timer = Some((at, timer));
    }

    /// Fences whose sessions are over.
    fn ring(&mut self, ctx: &mut Context<Self>) {
        let Some((at, _)) = self.timer.take() else { return };
        let Some(active) = &mut self.active else { return };
        match active.watch.due(at, active.rules.image()) {
            Due::Again(millis) => return self.ring_in(millis, Millis(self.watching.arrivals.now().0 + millis), ctx),
            Due::Expired(gone) if !gone.is_empty() => {
                if let Some((_, Answer::Fence(fenced))) = self.decide(Request::Fence(gone)) {
                    let ids: Vec<i32> = fenced.iter().map(|id| id.0).collect();
                    tracing::warn!(brokers = ?ids, "fenced: their sessions are over");
                }
            }
            Due::Expired(_) => {}
        }
        self.wind(ctx);
    }

    /// Asks each broker's port whether anybody is there: who died with the last controller need not be waited for.
    fn knock(&self, ctx: &mut Context<Self>) {
        let Some(active) = &self.active else { return };
        for broker in active.watch.watched(active.rules.image()) {
            let Some(endpoint) = broker.endpoints.first() else { continue };
            let (id, epoch, controller) = (broker.id, broker.broker_epoch, ctx.address());
            let address = format!("{}:{}", endpoint.host, endpoint.port);
            actix::spawn(async move {
                let refused = tokio::net::TcpStream::connect(&address).await.err();
                if refused.is_some_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused) {
                    controller.tell(PortRefused { broker: id, epoch });
                }
            });
        }
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
    fn handle(&mut self, m: Lead, ctx: &mut Context<Self>) {
        tracing::info!(epoch = m.epoch.0, "active controller");
        let rules = rules::Controller::new(m.image, self.settings.clone());
        let watch = Watch::new(self.watching.clone(), rules.image());
        let mut active = Active { quorum: m.quorum, rules, watch, epoch: m.epoch, next: m.next };
        if active.rules.image().features().next().is_none() {
            active.append(self.bootstrap.clone(), Vec::new(), &mut self.elections, clock::now());
        }
        self.active = Some(active);
        self.knock(ctx);
        self.wind(ctx);
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
        let mut delta = Delta::default();
        for (at, record) in records.iter().enumerate() {
            delta.note(self.rules.apply(base + at as i64, record).expect("a decision never contradicts the image it was made on"));
        }
        self.watch.follow(self.rules.image(), &delta);
        self.next = base + records.len() as i64;
        self.rules.advance(self.next + -1, self.epoch);
        shown.decided(self.rules.image(), self.next + -1, elected, changed, detected, decided);
        self.quorum.tell(AppendRecords { epoch: self.epoch, base, records: Arc::new(records) });
    }
}

impl Handler<Decide> for Controller {
    type Result = ();
    fn handle(&mut self, m: Decide, ctx: &mut Context<Self>) {
        let Some((upto, answer)) = self.decide(m.request) else { return m.reply.send(Err(NotActive)) };
        self.waiting.push_back(Waiting { upto, answer, reply: m.reply });
        self.answer_published();
        self.wind(ctx);
    }
}

impl Handler<SessionEnded> for Controller {
    type Result = ();
    fn handle(&mut self, m: SessionEnded, ctx: &mut Context<Self>) {
        if let Some(active) = &mut self.active {
            active.watch.closed(m.broker, m.epoch, m.at);
            self.wind(ctx);
        }
    }
}

impl Handler<PortRefused> for Controller {
    type Result = ();
    fn handle(&mut self, m: PortRefused, ctx: &mut Context<Self>) {
        if let Some(active) = &mut self.active {
            active.watch.refused(m.broker, m.epoch);
            self.wind(ctx);
        }
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
