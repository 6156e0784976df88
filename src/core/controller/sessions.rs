//! Who is alive: the sessions of brokers with the active controller. Not state of the controller: nothing of it is in the log, and a new
//! controller begins with none.
//!
//! A session ends by silence (`broker.session.timeout.ms`), sooner when its connection was closed and no other came within a short grace,
//! at once when the broker's port refuses connections. Times are those of arrival, which the shell stamps before anything waits in a
//! queue: a controller that stalled fences nobody whose heartbeat had arrived. A new controller does not give the dead a fresh session: who
//! was not heard in a short chance is judged dead, unless its connection to the new controller stands.

use std::collections::BTreeMap;

use super::delta::Delta;
use super::image::Image;
use super::records::BrokerEpoch;
use crate::core::types::{BrokerId, Millis, Offset};

/// How long sessions last, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimes {
    /// Silence that ends a session: `broker.session.timeout.ms`.
    pub timeout: i64,
    /// From a closed connection to the end, unless the broker is heard again: `understudy.broker.disconnect.grace.ms`.
    pub grace: i64,
    /// What a broker has to come to a controller that has just taken over.
    pub chance: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Session {
    epoch: BrokerEpoch,
    /// When it was last heard, or when this controller began to listen.
    heard: Millis,
    /// Whether this controller has heard it at all.
    met: bool,
    /// When its last connection was closed.
    closed: Option<Millis>,
    /// Its port refuses connections: no process is there.
    refused: bool,
    fenced: bool,
    /// How far it has applied the metadata log.
    seen: Offset,
    /// The end of the log when its controlled shutdown was agreed to.
    shutdown_from: Option<Offset>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sessions {
    times: SessionTimes,
    brokers: BTreeMap<BrokerId, Session>,
}

impl Sessions {
    /// The sessions of a controller that takes over now.
    pub fn new(times: SessionTimes, image: &Image, now: Millis) -> Sessions {
        let begun = |broker: &super::Broker| Session {
            epoch: broker.broker_epoch,
            heard: now,
            met: false,
            closed: None,
            refused: false,
            fenced: broker.fenced,
            seen: Offset::NONE,
            // What an older controller agreed to was in the log by now.
            shutdown_from: broker.in_controlled_shutdown.then(|| image.offset()),
        };
        Sessions { times, brokers: image.brokers().map(|broker| (broker.id, begun(broker))).collect() }
    }

    /// A heartbeat of this process arrived then. Of another process of the same id nothing is noted: it is refused anyway.
    pub fn heard(&mut self, broker: BrokerId, epoch: BrokerEpoch, arrived: Millis, seen: Offset) {
        if let Some(session) = self.of(broker, epoch) {
            session.heard = session.heard.max(arrived);
            session.met = true;
            session.refused = false;
            session.seen = session.seen.max(seen);
            if session.closed.is_some_and(|closed| closed <= arrived) {
                session.closed = None;
            }
        }
    }

    /// The broker's last connection to this controller was closed.
    pub fn closed(&mut self, broker: BrokerId, epoch: BrokerEpoch, at: Millis) {
        if let Some(session) = self.of(broker, epoch) {
            session.closed = Some(at);
        }
    }

    /// The broker's port refused a connection: nobody listens there, so nobody runs there.
    pub fn refused(&mut self, broker: BrokerId, epoch: BrokerEpoch) {
        if let Some(session) = self.of(broker, epoch) {
            session.refused = true;
        }
    }

    /// The broker's controlled shutdown is agreed to; `end` is the last offset of the log with that decision.
    pub fn shuts_down(&mut self, broker: BrokerId, epoch: BrokerEpoch, end: Offset) {
        if let Some(session) = self.of(broker, epoch) {
            session.shutdown_from.get_or_insert(end);
        }
    }

    /// For a heartbeat: the end of the log when this broker's shutdown was agreed to, and how far the slowest of those has come that stay
    /// (`Offset(i64::MAX)` if nobody stays).
    pub fn shutdown(&self, broker: BrokerId) -> (Option<Offset>, Offset) {
        let staying = self.brokers.values().filter(|session| !session.fenced && session.shutdown_from.is_none());
        let slowest = staying.map(|session| session.seen).min().unwrap_or(Offset(i64::MAX));
        (self.brokers.get(&broker).and_then(|session| session.shutdown_from), slowest)
    }

    /// Whether the process of that registration is known to be there. Then another one of the same id has to wait. A process whose
    /// connection was closed is not: one that was killed and started again registers at once.
    pub fn is_alive(&self, broker: BrokerId, now: Millis) -> bool {
        let there = |session: &Session| session.met && !session.fenced && session.closed.is_none() && now < self.ends(session);
        self.brokers.get(&broker).is_some_and(there)
    }

    /// Brokers whose sessions are over and that are not fenced yet: all of them, to be fenced in one append. `arrived` is what the shell has
    /// stamped and not yet handed over by `heard`.
    pub fn expired(&mut self, now: Millis, arrived: impl Fn(BrokerId, BrokerEpoch) -> Option<Millis>) -> Vec<(BrokerId, BrokerEpoch)> {
        let waiting: Vec<(BrokerId, BrokerEpoch, Millis)> =
            self.brokers.iter().filter_map(|(id, session)| Some((*id, session.epoch, arrived(*id, session.epoch)?))).collect();
        for (id, epoch, at) in waiting {
            self.heard(id, epoch, at, Offset::NONE);
        }
        let over = self.brokers.iter().filter(|(_, session)| !session.fenced && self.ends(session) <= now);
        over.map(|(id, session)| (*id, session.epoch)).collect()
    }

    /// When the next session ends if nothing more is heard.
    pub fn due(&self) -> Option<Millis> {
        self.brokers.values().filter(|session| !session.fenced).map(|session| self.ends(session)).min()
    }

    /// Follows what was decided: registrations, fences, brokers that are gone.
    pub fn follow(&mut self, image: &Image, delta: &Delta, now: Millis) {
        for id in &delta.brokers {
            let Some(broker) = image.broker(*id) else {
                self.brokers.remove(id);
                continue;
            };
            let new = Session {
                epoch: broker.broker_epoch,
                heard: now,
                met: true,
                closed: None,
                refused: false,
                fenced: broker.fenced,
                seen: Offset::NONE,
                shutdown_from: None,
            };
            let session = self.brokers.entry(*id).or_insert(new);
            if session.epoch != broker.broker_epoch {
                *session = new;
            }
            session.fenced = broker.fenced;
            if broker.fenced {
                session.shutdown_from = None;
            }
        }
    }

    fn of(&mut self, broker: BrokerId, epoch: BrokerEpoch) -> Option<&mut Session> {
        self.brokers.get_mut(&broker).filter(|session| session.epoch == epoch)
    }

    fn ends(&self, session: &Session) -> Millis {
        if session.refused {
            return session.heard;
        }
        let silence = session.heard.0 + if session.met { self.times.timeout } else { self.times.chance };
        Millis(session.closed.map_or(silence, |closed| silence.min(closed.0 + self.times.grace)))
    }
}
