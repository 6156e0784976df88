//! Producer ids: this broker has a block of them from the controller, and asks for another when it is used up.

use super::{Answered, Link, Unavailable};
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Answer, ProducerIdBlock, Refusal, Request};
use crate::rt::{Gone, Reply};
use actix::prelude::*;
use std::collections::VecDeque;

/// The block, and who waits for the next one.
#[derive(Default)]
pub(super) struct Ids {
    block: Option<ProducerIdBlock>,
    waiters: VecDeque<Reply<Result<i64, Unavailable>>>,
}

impl Ids {
    fn next(&mut self) -> Option<i64> {
        let ProducerIdBlock { first, count } = self.block.filter(|block| block.count > 0)?;
        self.block = Some(ProducerIdBlock { first: first + 1, count: count - 1 });
        Some(first)
    }
}

/// One producer id, never given before. From: `api::init_producer_id`. Lost: answered `Gone`; the client repeats.
#[derive(Message)]
#[rtype(result = "()")]
pub struct NextProducerId {
    /// The answer.
    pub reply: Reply<Result<i64, Unavailable>>,
}

/// A block of producer ids, or not. From: the controller. Lost: waiters are answered `Gone` with it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct GotProducerIds {
    outcome: Result<Answered, Gone>,
}

impl Link {
    fn ask_for_ids(&mut self, ctx: &mut Context<Self>) {
        let request =
            Request::AllocateProducerIds { broker: self.node, broker_epoch: self.membership.epoch().unwrap_or(BrokerEpoch::NONE) };
        let reply = Reply::to(ctx.address(), |outcome| GotProducerIds { outcome });
        self.ask(request, reply);
    }
}

impl Handler<NextProducerId> for Link {
    type Result = ();
    fn handle(&mut self, m: NextProducerId, ctx: &mut Context<Self>) {
        if let Some(id) = self.ids.next() {
            return m.reply.send(Ok(id));
        }
        self.ids.waiters.push_back(m.reply);
        if self.ids.waiters.len() == 1 {
            self.ask_for_ids(ctx);
        }
    }
}

impl Handler<GotProducerIds> for Link {
    type Result = ();
    fn handle(&mut self, m: GotProducerIds, ctx: &mut Context<Self>) {
        let ids = &mut self.ids;
        match m.outcome {
            Ok(Ok(Answer::AllocateProducerIds(Ok(block)))) => ids.block = Some(block),
            Ok(Ok(Answer::AllocateProducerIds(Err(Refusal { why, message })))) => {
                tracing::error!("the controller gave no producer ids: {why:?} {}", message.unwrap_or_default());
                return ids.waiters.drain(..).for_each(|reply| reply.send(Err(Unavailable)));
            }
            _ => return ids.waiters.drain(..).for_each(|reply| reply.send(Err(Unavailable))),
        }
        while let Some(reply) = ids.waiters.pop_front() {
            match ids.next() {
                Some(id) => reply.send(Ok(id)),
                None => {
                    ids.waiters.push_front(reply);
                    return self.ask_for_ids(ctx);
                }
            }
        }
    }
}
