//! The one way to send a message to an actor.

use actix::prelude::*;

/// Sends without blocking and without refusing; keeps order per sender. Work is bounded where it enters the process, not here.
pub trait Tell<M> {
    /// Puts the message into the mailbox. To a dead actor it is lost, and a `Reply` inside answers `Gone`.
    fn tell(&self, message: M);
}

impl<A, M> Tell<M> for Addr<A>
where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn tell(&self, message: M) {
        self.do_send(message);
    }
}
