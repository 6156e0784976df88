//! Questions carry their reply: `Reply` is the answering end, `Answer` the asking end.

use actix::prelude::*;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use tokio::sync::oneshot;

/// The answering end of a question carried inside a message. Dropping it unanswered answers [`Gone`].
#[must_use = "a dropped Reply answers Gone"]
pub struct Reply<T>(Option<Way<T>>);

enum Way<T> {
    Port(oneshot::Sender<T>),
    Mailbox(Box<dyn FnOnce(Result<T, Gone>) + Send>),
}

/// The asking end; resolves once, to `Gone` if whoever was asked died.
pub struct Answer<T>(oneshot::Receiver<T>);

/// Whoever was asked is gone without an answer.
#[derive(Debug, PartialEq, Eq, Clone, Copy, thiserror::Error)]
#[error("whoever was asked is gone")]
pub struct Gone;

/// A question and its answer, for tasks, which may await.
pub fn port<T>() -> (Reply<T>, Answer<T>) {
    let (tx, rx) = oneshot::channel();
    (Reply(Some(Way::Port(tx))), Answer(rx))
}

impl<T> Reply<T> {
    /// For actors, which may not await: the answer comes back as one of their own messages.
    pub fn to<A, M>(asker: Addr<A>, wrap: impl FnOnce(Result<T, Gone>) -> M + Send + 'static) -> Self
    where
        A: Actor<Context = Context<A>> + Handler<M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        Reply::with(move |answer| asker.do_send(wrap(answer)))
    }

    /// Calls `then` with the answer, on the answering thread; for threads that collect answers of their own.
    pub fn with(then: impl FnOnce(Result<T, Gone>) + Send + 'static) -> Self {
        Reply(Some(Way::Mailbox(Box::new(then))))
    }

    /// Answers. An asker that has gone away is no error.
    pub fn send(mut self, value: T) {
        match self.0.take() {
            Some(Way::Port(tx)) => {
                let _ = tx.send(value);
            }
            Some(Way::Mailbox(tell)) => tell(Ok(value)),
            None => {}
        }
    }

    /// True when nobody waits for the answer any more: the client is gone or its time is up.
    pub fn is_abandoned(&self) -> bool {
        matches!(&self.0, Some(Way::Port(tx)) if tx.is_closed())
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(Way::Mailbox(tell)) = self.0.take() {
            tell(Err(Gone));
        }
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, Gone>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_dropped_reply_answers_gone_once() {
        let (tx, rx) = mpsc::channel();
        drop(Reply::<u32>::with(move |answer| tx.send(answer).expect("the test listens")));
        assert_eq!(rx.iter().collect::<Vec<_>>(), [Err(Gone)]);

        let (tx, rx) = mpsc::channel();
        Reply::with(move |answer| tx.send(answer).expect("the test listens")).send(7);
        assert_eq!(rx.iter().collect::<Vec<_>>(), [Ok(7)]);
    }

    #[test]
    fn a_reply_knows_when_nobody_waits() {
        let (reply, answer) = port::<u32>();
        assert!(!reply.is_abandoned());
        drop(answer);
        assert!(reply.is_abandoned());
    }
}
