//! The asking side of a connection to another node: requests out, answers in. One connection for each peer, opened when there is something to
//! ask and again after it broke; it first asks which versions the peer speaks. Knows frames, headers and versions, not what is asked.
//!
//! * Requests go out in the order they were given and are not held back for earlier answers; the peer answers in order.
//! * Every request is answered once: with the body, or with why there is none.

mod connection;

use bytes::{Bytes, BytesMut};
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::sync::mpsc;

/// Requests of one peer that may wait or be in flight; more are refused at once.
const REQUESTS_MAX: usize = 64;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The peer cannot be reached, or the connection broke.
    #[error("not connected: {0}")]
    Disconnected(String),
    /// The peer speaks no version of it that the request can be said in.
    #[error("the peer speaks no version that says this")]
    Unsupported,
    /// It answered with something that is none, or the request could not be written.
    #[error("malformed: {0}")]
    Malformed(String),
}

/// What to ask.
pub struct Question {
    /// API key.
    pub key: i16,
    /// The versions that can say it; the highest that the peer speaks is taken.
    pub versions: RangeInclusive<i16>,
    /// Writes the body in that version.
    pub body: Box<dyn FnOnce(i16) -> Result<BytesMut, String>>,
    /// Gets the version and the body of the answer, which is unchecked.
    pub answer: Box<dyn FnOnce(Result<(i16, Bytes), NoAnswer>)>,
}

/// How a peer is reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `host:port`; resolved with every attempt.
    pub address: String,
    /// What this node calls itself.
    pub client_id: String,
    /// An attempt to connect takes no longer, `socket.connection.setup.timeout.ms`.
    pub connect: Duration,
    /// An answer takes no longer; then the connection is given up.
    pub patience: Duration,
    /// Bytes of an answer at most.
    pub max_frame: usize,
}

/// A peer that can be asked. Dropping it closes the connection.
pub struct Peer {
    questions: mpsc::Sender<Question>,
}

impl Peer {
    /// A peer that is connected to when it is first asked. `closed` is called when a connection that stood has broken. Runs on the thread it is made
    /// on, within a `LocalSet`.
    pub fn new(settings: Settings, closed: impl Fn() + 'static) -> Peer {
        let (questions, asked) = mpsc::channel(REQUESTS_MAX);
        tokio::task::spawn_local(connection::run(settings, asked, closed));
        Peer { questions }
    }

    /// Asks. The answer is given once, on this thread.
    pub fn ask(&self, question: Question) {
        if let Err(refused) = self.questions.try_send(question) {
            let (why, question) = match refused {
                mpsc::error::TrySendError::Full(question) => ("too much is asked already", question),
                mpsc::error::TrySendError::Closed(question) => ("its connection has ended", question),
            };
            (question.answer)(Err(NoAnswer::Disconnected(why.into())));
        }
    }
}
