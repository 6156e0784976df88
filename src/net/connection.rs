//! One client connection: frames in, handlers run in order, answers out in the order of their requests.
//!
//! A request starts when all before it are answered, except that produce requests may follow each other: their stage one is done when
//! `dispatch` returns, and it is stage one that keeps the order. While a request waits, nothing more is read: the socket's own buffers
//! hold the peer back.

use super::admission::{Admission, Seat};
use super::inbox::{Arrived, Inbox};
use super::outbox::Outbox;
use crate::api::{self, Call, Cx, Dispatched, Refusal, Step};
use crate::rt::clock;
use crate::wire::frame::BadFrame;
use bytes::{Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use understudy_metrics::Spent;

/// The bounds on one connection. Each has a configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// `socket.request.max.bytes`.
    pub max_frame: usize,
    /// `understudy.connection.requests.max`: produce requests begun and not answered.
    pub in_flight: usize,
    /// `connections.max.idle.ms`.
    pub idle: Duration,
}

/// What the connections of one shard share.
pub struct Shared {
    /// What they read into.
    pub buffer: RefCell<BytesMut>,
    /// Bytes in the process.
    pub admission: Arc<Admission>,
    /// Bounds.
    pub limits: Limits,
    /// When strangers were last logged: those that speak TLS, those that speak HTTP, others.
    pub strangers_logged: Cell<[Option<clock::Moment>; 3]>,
}

/// Strangers of one kind are logged at most once in this time.
const STRANGER_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Why a connection ended, for the log.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("closed by the peer")]
    Peer,
    #[error("idle for longer than connections.max.idle.ms")]
    Idle,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Stranger(#[from] BadFrame),
    #[error("{0}")]
    Refused(Refusal),
    #[error("an acks=0 produce failed, or an answer could not be written")]
    Step,
}

enum Pending {
    Done(Step),
    Later(LocalBoxFuture<'static, Step>),
}

struct Request {
    call: Rc<Call>,
    bytes: usize,
    pipelined: bool,
    /// Time that stage one took.
    local: Duration,
    state: Pending,
}

/// A request whose answer goes out with the next flush.
struct Answered {
    call: Rc<Call>,
    bytes: usize,
    local: Duration,
    ready: Duration,
}

/// Serves the connection until it ends.
pub async fn serve(stream: TcpStream, cx: Cx, shared: Rc<Shared>, seat: Seat) {
    let mut connection = Connection {
        inbox: Inbox::new(shared.admission.clone(), shared.limits.max_frame),
        outbox: Outbox::default(),
        requests: VecDeque::new(),
        held: None,
        answered: Vec::new(),
        peer_closed: false,
        active: clock::moment(),
        stream,
        cx,
        shared,
    };
    let ended = connection.run().await;
    connection.log(&ended);
    drop(seat);
}

struct Connection {
    stream: TcpStream,
    cx: Cx,
    shared: Rc<Shared>,
    inbox: Inbox,
    outbox: Outbox,
    requests: VecDeque<Request>,
    /// A frame that may not begin yet.
    held: Option<Bytes>,
    /// What is counted, and whose bytes are given back, once the answers are written.
    answered: Vec<Answered>,
    peer_closed: bool,
    active: clock::Moment,
}

enum Event {
    Answers,
    Readable,
    Idle,
}

impl Connection {
    async fn run(&mut self) -> Ended {
        let mut idle = Box::pin(tokio::time::sleep(self.shared.limits.idle));
        loop {
            if let Err(ended) = self.begin_requests() {
                // What was asked before the offence is still answered.
                return match self.finish(idle.as_mut()).await {
                    Ok(()) => ended,
                    Err(e) => e,
                };
            }
            if self.requests.is_empty() && self.peer_closed {
                return Ended::Peer;
            }
            let event = match self.next_event(idle.as_mut()).await {
                Ok(event) => event,
                Err(ended) => return ended,
            };
            match event {
                Event::Answers => {
                    if let Err(ended) = self.flush(idle.as_mut()).await {
                        return ended;
                    }
                }
                Event::Readable => match self.inbox.read(&self.stream, &self.shared.buffer) {
                    Ok(Arrived::Bytes(_)) => self.active = clock::moment(),
                    Ok(Arrived::Nothing) => {}
                    Ok(Arrived::Closed) => self.peer_closed = true,
                    Err(e) => return e.into(),
                },
                Event::Idle => return Ended::Idle,
            }
        }
    }

    /// Starts every request that has arrived and may start.
    fn begin_requests(&mut self) -> Result<(), Ended> {
        loop {
            let frame = match self.held.take() {
                Some(frame) => frame,
                None => match self.inbox.next_frame()? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            if !self.may_begin(&frame) {
                self.held = Some(frame);
                return Ok(());
            }
            self.begin(frame)?;
        }
        self.inbox.settle();
        Ok(())
    }

    fn may_begin(&self, frame: &Bytes) -> bool {
        self.requests.is_empty()
            || self.requests.len() < self.shared.limits.in_flight && self.requests.iter().all(|r| r.pipelined) && is_pipelined(frame)
    }

    fn begin(&mut self, frame: Bytes) -> Result<(), Ended> {
        let bytes = frame.len() + 4;
        let pipelined = is_pipelined(&frame);
        let (call, dispatched) = api::dispatch(&self.cx, frame).map_err(|refusal| {
            self.shared.admission.give(bytes);
            Ended::Refused(refusal)
        })?;
        let state = match dispatched {
            Dispatched::Done(step) => Pending::Done(step),
            Dispatched::Later(future) => Pending::Later(future),
        };
        let local = call.received.elapsed();
        self.requests.push_back(Request { call, bytes, pipelined, local, state });
        Ok(())
    }

    /// Waits for answers, bytes or the end of patience. Answers that are ready together go out together.
    async fn next_event(&mut self, mut idle: Pin<&mut tokio::time::Sleep>) -> Result<Event, Ended> {
        loop {
            let wants_bytes = self.held.is_none() && !self.peer_closed && self.inbox.may_read();
            let starved = self.held.is_none() && !self.peer_closed && !wants_bytes && self.requests.is_empty();
            let admission = self.shared.admission.clone();
            let mut freed = starved.then(|| Box::pin(admission.freed()));
            let event = poll_fn(|cx| {
                let mut answers = false;
                while let Some(request) = self.requests.front_mut() {
                    let step = match &mut request.state {
                        Pending::Later(future) => match future.as_mut().poll(cx) {
                            Poll::Ready(step) => step,
                            Poll::Pending => break,
                        },
                        Pending::Done(step) => std::mem::replace(step, Step::Silent),
                    };
                    answers = true;
                    let request = self.requests.pop_front().expect("the front was just polled");
                    request.call.answered();
                    let ready = request.call.received.elapsed();
                    self.answered.push(Answered { call: request.call, bytes: request.bytes, local: request.local, ready });
                    match step {
                        Step::Respond(response) => self.outbox.push(response),
                        Step::Silent => {}
                        Step::Close => return Poll::Ready(Err(Ended::Step)),
                    }
                }
                if answers {
                    return Poll::Ready(Ok(Some(Event::Answers)));
                }
                if wants_bytes && self.stream.poll_read_ready(cx).is_ready() {
                    return Poll::Ready(Ok(Some(Event::Readable)));
                }
                if let Some(freed) = &mut freed
                    && freed.as_mut().poll(cx).is_ready()
                {
                    return Poll::Ready(Ok(None));
                }
                if idle.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(Some(Event::Idle)));
                }
                Poll::Pending
            })
            .await?;
            match event {
                Some(Event::Idle) => {
                    let limit = self.shared.limits.idle;
                    // Waiting for an answer of ours is not the peer's idleness.
                    if self.requests.is_empty() && self.active.elapsed() >= limit {
                        return Ok(Event::Idle);
                    }
                    let since = if self.requests.is_empty() { self.active } else { clock::moment() };
                    idle.as_mut().reset(since.deadline(limit));
                }
                Some(event) => return Ok(event),
                None => {}
            }
        }
    }

    /// Sends what is ready. A peer that takes nothing for the idle time is given up.
    async fn flush(&mut self, mut idle: Pin<&mut tokio::time::Sleep>) -> Result<(), Ended> {
        let active = Cell::new(clock::moment());
        {
            let mut sending = std::pin::pin!(self.outbox.flush(&self.stream, || active.set(clock::moment())));
            loop {
                tokio::select! {
                    biased;
                    sent = &mut sending => { sent?; break }
                    () = idle.as_mut() => {
                        if active.get().elapsed() >= self.shared.limits.idle {
                            return Err(Ended::Idle);
                        }
                        idle.as_mut().reset(active.get().deadline(self.shared.limits.idle));
                    }
                }
            }
        }
        self.active = active.get();
        for Answered { call, bytes, local, ready } in self.answered.drain(..) {
            let total = call.received.elapsed();
            call.spent(Spent {
                total_us: micros(total),
                local_us: micros(local),
                remote_us: micros(ready.saturating_sub(local)),
                send_us: micros(total.saturating_sub(ready)),
            });
            self.shared.admission.give(bytes);
        }
        Ok(())
    }

    /// Answers what has begun, without beginning more.
    async fn finish(&mut self, mut idle: Pin<&mut tokio::time::Sleep>) -> Result<(), Ended> {
        self.peer_closed = true;
        while !self.requests.is_empty() {
            match self.next_event(idle.as_mut()).await? {
                Event::Answers => self.flush(idle.as_mut()).await?,
                Event::Readable | Event::Idle => return Err(Ended::Idle),
            }
        }
        Ok(())
    }

    fn log(&self, ended: &Ended) {
        let peer = self.cx.peer.address;
        match ended {
            Ended::Stranger(what) => {
                let kind = match what {
                    BadFrame::Tls => 0,
                    BadFrame::Http => 1,
                    BadFrame::Negative(_) | BadFrame::TooSmall(_) | BadFrame::TooLarge { .. } => 2,
                };
                let mut logged = self.shared.strangers_logged.get();
                if logged[kind].is_none_or(|at| at.elapsed() >= STRANGER_LOG_INTERVAL) {
                    logged[kind] = Some(clock::moment());
                    self.shared.strangers_logged.set(logged);
                    tracing::warn!(%peer, listener = &*self.cx.peer.listener, "{what}; the connection was closed (logged at most once a minute)");
                }
            }
            Ended::Refused(refusal) => tracing::debug!(%peer, "connection closed: {refusal}"),
            other => tracing::trace!(%peer, "connection ended: {other}"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let begun: usize = self.requests.iter().map(|request| request.bytes).sum();
        let held = self.held.as_ref().map_or(0, |frame| frame.len() + 4);
        let answered: usize = self.answered.iter().map(|answered| answered.bytes).sum();
        self.shared.admission.give(begun + held + answered);
    }
}

/// Whether the frame's key is one whose requests may follow each other.
fn is_pipelined(frame: &Bytes) -> bool {
    frame.get(..2).is_some_and(|key| api::spec(i16::from_be_bytes([key[0], key[1]])).is_some_and(|spec| spec.pipelined))
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
