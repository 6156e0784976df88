//! This broker as the controller sees it: registers, says how it is, has itself unfenced when it has seen its own registration, and leaves in
//! order. One question is under way at a time; what changes meanwhile is said with the next.
//!
//! A heartbeat goes out every `broker.heartbeat.interval.ms`, and at once when another node leads, when the connection broke, when this broker has
//! caught up, and when another broker's state changed: a broker that stops waits until all have seen it go. A broker that is alone with its own
//! controller needs none.

use super::{Answered, Link, Unavailable};
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Answer, BrokerState, Heartbeat, Refusal, Registration, Request, Why};
use crate::core::types::Offset;
use crate::rt::{Gone, Reply};
use actix::prelude::*;
use std::time::Duration;

/// How long to wait before a controller is asked again that does not lead yet, or cannot be reached.
const RETRY: Duration = Duration::from_millis(20);
/// The same while the only voter is this node, which takes no longer than a sync.
const RETRY_ALONE: Duration = Duration::from_millis(1);
/// The same after a refusal that time may heal: another process of the same id is still thought alive.
const REFUSED_RETRY: Duration = Duration::from_millis(200);
/// How often a broker that wants to stop asks whether it may.
const LEAVING: Duration = Duration::from_millis(50);
/// Questions without an answer, from which on it is said that nobody answers, and how often.
const LOGGED_FROM: u32 = 100;
const LOGGED_EVERY: u32 = 1500;

/// See the module.
pub(super) struct Membership {
    interval: Duration,
    /// What this broker registers with; none if it is no broker.
    registration: Option<Registration>,
    epoch: Option<BrokerEpoch>,
    /// Fenced, as far as the controller has said.
    fenced: bool,
    /// What the last heartbeat said of the metadata.
    said: Offset,
    /// Counts questions; an answer to an earlier one is not waited for any more.
    attempt: u64,
    asking: bool,
    /// Questions in a row that nobody answered.
    unanswered: u32,
    /// Something changed while a question was under way.
    again: bool,
    timer: Option<SpawnHandle>,
    joining: Option<Reply<Result<BrokerEpoch, Refusal>>>,
    leaving: Option<Reply<()>>,
}

/// Join the cluster. From: the node, at start. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Join {
    /// What to register with.
    pub registration: Registration,
    /// Answered when this broker is unfenced, and every partition that it leads can be served.
    pub reply: Reply<Result<BrokerEpoch, Refusal>>,
}

/// Leave the cluster in order: hand leaderships over. From: the node, at the end. Lost: with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Leave {
    /// Answered when the broker may stop.
    pub reply: Reply<()>,
}

/// What the controller says to a registration or a heartbeat. From: the controller. Lost: `Gone`, and it is asked again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Beaten {
    attempt: u64,
    outcome: Result<Answered, Gone>,
}

impl Membership {
    pub(super) fn new(interval: Duration) -> Membership {
        Membership {
            interval,
            registration: None,
            epoch: None,
            fenced: true,
            said: Offset::NONE,
            attempt: 0,
            asking: false,
            unanswered: 0,
            again: false,
            timer: None,
            joining: None,
            leaving: None,
        }
    }

    /// The registration, once there is one.
    pub(super) fn epoch(&self) -> Option<BrokerEpoch> {
        self.epoch
    }
}

impl Link {
    /// Another node leads, or the connection broke: whatever was asked is asked again.
    pub(super) fn meet_controller(&mut self, ctx: &mut Context<Self>) {
        self.membership.attempt += 1;
        self.membership.asking = false;
        self.beat(ctx);
    }

    /// Says how this broker is.
    pub(super) fn beat(&mut self, ctx: &mut Context<Self>) {
        let metadata_offset = self.published.load().offset();
        let membership = &mut self.membership;
        let Some(registration) = &membership.registration else { return };
        if membership.asking {
            membership.again = true;
            return;
        }
        let request = match membership.epoch {
            None => Request::RegisterBroker(registration.clone()),
            Some(epoch) => {
                let want_shutdown = membership.leaving.is_some();
                membership.said = metadata_offset;
                Request::Heartbeat(Heartbeat { want_shutdown, ..Heartbeat::new(registration.broker, epoch, metadata_offset) })
            }
        };
        membership.asking = true;
        membership.again = false;
        membership.attempt += 1;
        let attempt = membership.attempt;
        let reply = Reply::to(ctx.address(), move |outcome| Beaten { attempt, outcome });
        self.ask(request, reply);
    }

    /// This broker has published more of the metadata. `brokers`: some broker's state is among it.
    pub(super) fn membership_follows(&mut self, brokers: bool, ctx: &mut Context<Self>) {
        self.finish_joining();
        let membership = &self.membership;
        let Some(epoch) = membership.epoch else { return };
        let seen = self.published.load().offset();
        let caught_up = membership.fenced && membership.said.0 < epoch.0 && seen.0 >= epoch.0;
        if caught_up || brokers && !self.is_alone() {
            self.beat(ctx);
        }
    }

    /// Joined: unfenced, by what this broker itself has published.
    fn finish_joining(&mut self) {
        let Some(epoch) = self.membership.epoch.filter(|_| self.membership.joining.is_some()) else { return };
        let image = self.published.load();
        if image.broker(self.node).is_some_and(|broker| !broker.fenced && broker.broker_epoch == epoch)
            && let Some(reply) = self.membership.joining.take()
        {
            reply.send(Ok(epoch));
        }
    }

    fn beat_in(&mut self, wait: Duration, ctx: &mut Context<Self>) {
        if let Some(timer) = self.membership.timer.take() {
            ctx.cancel_future(timer);
        }
        self.membership.timer = Some(ctx.run_later(wait, |link, ctx| {
            link.membership.timer = None;
            link.beat(ctx);
        }));
    }

    fn beaten(&mut self, state: BrokerState, ctx: &mut Context<Self>) {
        let alone = self.is_alone();
        let membership = &mut self.membership;
        if state.fenced != membership.fenced {
            tracing::info!(fenced = state.fenced, "the controller sees this broker");
        }
        membership.fenced = state.fenced;
        if state.may_stop
            && let Some(reply) = membership.leaving.take()
        {
            membership.registration = None;
            return reply.send(());
        }
        let wait = if membership.leaving.is_some() { LEAVING } else { membership.interval };
        if membership.leaving.is_some() || !alone || membership.fenced {
            self.beat_in(wait, ctx);
        }
        self.membership_follows(false, ctx);
    }

    /// Whether the broker is told that it has to be another, or to wait.
    fn refused(&mut self, refusal: Refusal, ctx: &mut Context<Self>) {
        let membership = &mut self.membership;
        match refusal.why {
            // Its registration is gone or another's: it needs a new one.
            Why::StaleBrokerEpoch | Why::BrokerIdNotRegistered => {
                if let Some(reply) = membership.leaving.take() {
                    return reply.send(());
                }
                tracing::warn!("the controller does not know this broker's registration, registering again: {refusal}");
                membership.epoch = None;
                membership.fenced = true;
                self.beat_in(RETRY, ctx);
            }
            Why::DuplicateBrokerRegistration => {
                tracing::warn!("{refusal}");
                self.beat_in(REFUSED_RETRY, ctx);
            }
            _ => match membership.joining.take() {
                Some(reply) => {
                    membership.registration = None;
                    reply.send(Err(refusal));
                }
                None => {
                    tracing::error!("the controller refuses this broker: {refusal}");
                    let interval = membership.interval;
                    self.beat_in(interval, ctx);
                }
            },
        }
    }
}

impl Handler<Join> for Link {
    type Result = ();
    fn handle(&mut self, m: Join, ctx: &mut Context<Self>) {
        self.membership.registration = Some(m.registration);
        self.membership.joining = Some(m.reply);
        self.beat(ctx);
    }
}

impl Handler<Leave> for Link {
    type Result = ();
    fn handle(&mut self, m: Leave, ctx: &mut Context<Self>) {
        if self.membership.epoch.is_none() {
            return m.reply.send(());
        }
        self.membership.leaving = Some(m.reply);
        self.beat(ctx);
    }
}

impl Handler<Beaten> for Link {
    type Result = ();
    fn handle(&mut self, m: Beaten, ctx: &mut Context<Self>) {
        if m.attempt != self.membership.attempt {
            return;
        }
        self.membership.asking = false;
        let answered = matches!(m.outcome, Ok(Ok(_)));
        self.membership.unanswered = if answered { 0 } else { self.membership.unanswered.wrapping_add(1) };
        if self.membership.unanswered % LOGGED_EVERY == LOGGED_FROM {
            tracing::warn!("no active controller answers: is a majority of the voters running, and are their addresses right?");
        }
        match m.outcome {
            Ok(Ok(Answer::RegisterBroker(Ok(epoch)))) => {
                self.membership.epoch = Some(epoch);
                self.membership.fenced = true;
                return self.beat(ctx);
            }
            Ok(Ok(Answer::Heartbeat(Ok(state)))) => self.beaten(state, ctx),
            Ok(Ok(Answer::RegisterBroker(Err(refusal)) | Answer::Heartbeat(Err(refusal)))) => self.refused(refusal, ctx),
            Ok(Ok(other)) => tracing::error!("the controller gave an answer to something else: {other:?}"),
            Ok(Err(Unavailable)) | Err(Gone) => self.beat_in(if self.sole { RETRY_ALONE } else { RETRY }, ctx),
        }
        if self.membership.again {
            self.beat(ctx);
        }
    }
}
