//! An active controller on another node: two connections to it, one for the session (registration, heartbeats), so that nothing slow holds a
//! heartbeat back, and one for everything else. Both are opened when there is something to ask, and dropped when another node leads.

use super::{Answered, Unavailable};
use crate::actors::quorum::Voter;
use crate::core::controller::request::{Answer, Request};
use crate::core::types::BrokerId;
use crate::peer::{NoAnswer, Peer, Question, Settings};
use crate::rt::Reply;
use crate::wire::controller as wire;
use bytes::Bytes;
use std::net::IpAddr;
use std::time::Duration;

/// Bytes of an answer at most.
const FRAME_MAX: usize = 16 << 20;

/// How a controller is spoken to.
#[derive(Debug, Clone)]
pub struct Speaking {
    /// The voters' addresses.
    pub voters: Vec<Voter>,
    /// `controller.socket.timeout.ms` is Kafka's name for something like it: an attempt to connect takes no longer.
    pub connect: Duration,
    /// An answer to a heartbeat takes no longer, or the connection is given up.
    pub session: Duration,
    /// `request.timeout.ms`: nor does any other answer.
    pub request: Duration,
}

/// See the module.
pub(super) struct Remote {
    pub leader: BrokerId,
    session: Peer,
    work: Peer,
}

impl Remote {
    /// The way to `leader`; `None` if nobody knows where it listens. `closed` is called when the session's connection broke.
    pub(super) fn new(leader: BrokerId, me: BrokerId, speaking: &Speaking, closed: impl Fn() + 'static) -> Option<Remote> {
        let voter = speaking.voters.iter().find(|voter| voter.id == leader)?;
        let settings = |what: &str, patience| Settings {
            address: format!("{}:{}", voter.host, voter.port),
            client_id: format!("{what}-{}", me.0),
            connect: speaking.connect,
            patience,
            max_frame: FRAME_MAX,
        };
        let session = Peer::new(settings("session", speaking.session), closed);
        let work = Peer::new(settings("forwarding", speaking.request), || {});
        Some(Remote { leader, session, work })
    }

    /// Asks; of what brokers do not ask, nothing is known.
    pub(super) fn ask(&self, request: Request, reply: Reply<Answered>) {
        let Some((key, versions)) = wire::say(&request) else { return reply.send(Err(Unavailable)) };
        let peer = match request {
            Request::RegisterBroker(_) | Request::Heartbeat(_) => &self.session,
            _ => &self.work,
        };
        let leader = self.leader;
        peer.ask(Question {
            key,
            versions,
            body: Box::new(move |version| wire::encode(&request, version)),
            answer: Box::new(move |answer| reply.send(read(leader, key, answer))),
        });
    }

    /// Carries a client's request, and brings back the answer with its header.
    pub(super) fn carry(&self, frame: Bytes, from: IpAddr, reply: Reply<Result<Bytes, Unavailable>>) {
        let leader = self.leader;
        self.work.ask(Question {
            key: wire::ENVELOPE,
            versions: 0..=0,
            body: Box::new(move |version| wire::envelope(frame, from, version)),
            answer: Box::new(move |answer| {
                let opened = answer.map_err(|e| e.to_string());
                let opened = opened.and_then(|(version, body)| wire::opened(version, body).map_err(|e| e.to_string()));
                reply.send(opened.map_err(|e| {
                    tracing::debug!(controller = leader.0, "a request could not be carried to the controller: {e}");
                    Unavailable
                }));
            }),
        });
    }
}

fn read(leader: BrokerId, key: i16, answer: Result<(i16, Bytes), NoAnswer>) -> Answered {
    let answer: Result<Answer, String> = match answer {
        Ok((version, body)) => wire::decode(key, version, body).map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    };
    answer.map_err(|e| {
        tracing::debug!(controller = leader.0, key, "no answer from the controller: {e}");
        Unavailable
    })
}
