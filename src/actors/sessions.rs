//! The sessions of brokers, as the active controller keeps them: hears heartbeats, and says what is due. A shell around `core::controller::sessions`
//! without a timer of its own: `Controller` has it.

use super::link::Arrivals;
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Heartbeat, Registration};
use crate::core::controller::sessions::{SessionTimes, Sessions};
use crate::core::controller::{Broker, Delta, Image};
use crate::core::types::{BrokerId, Millis, Offset};
use std::sync::Arc;

/// A timer that rings so late was not served in time, and neither were the connections: what waits in sockets is read first.
const LATE: i64 = 200;

/// What sessions are judged by.
#[derive(Clone)]
pub struct Watching {
    /// This node: as long as its controller lives, its broker does.
    pub me: BrokerId,
    /// How long sessions last.
    pub times: SessionTimes,
    /// When brokers were last heard.
    pub arrivals: Arc<Arrivals>,
}

/// See the module.
pub struct Watch {
    watching: Watching,
    /// Who was heard before has to be heard again: it was another controller's session.
    since: Millis,
    sessions: Sessions,
}

/// What a ring of the timer finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Due {
    /// These are gone.
    Expired(Vec<(BrokerId, BrokerEpoch)>),
    /// Too late to tell: ring again after this many milliseconds.
    Again(i64),
}

impl Watch {
    /// The sessions of a controller that takes over.
    pub fn new(watching: Watching, image: &Image) -> Watch {
        let since = watching.arrivals.now();
        let sessions = Sessions::new(watching.times, image, since);
        Watch { watching, since, sessions }
    }

    /// A broker wants to register: says whether another process of that id is known to live. Directories are locked by who uses them, so who
    /// has those of the registered process has outlived it.
    pub fn registers(&self, registration: &mut Registration, image: &Image) {
        let same_machine =
            image.broker(registration.broker).is_some_and(|present| present.log_dirs.iter().any(|dir| registration.log_dirs.contains(dir)));
        let alive = self.sessions.is_alive(registration.broker, self.watching.arrivals.now());
        registration.session_alive = alive && !same_machine && registration.broker != self.watching.me;
    }

    /// A heartbeat: notes it and adds what only the sessions know.
    pub fn heard(&mut self, heartbeat: &mut Heartbeat) {
        let (broker, epoch, arrivals) = (heartbeat.broker, heartbeat.broker_epoch, &self.watching.arrivals);
        let arrived = arrivals.heard(broker, epoch).unwrap_or_else(|| arrivals.now());
        self.sessions.heard(broker, epoch, arrived, heartbeat.metadata_offset);
        (heartbeat.shutdown_from, heartbeat.others_have_seen) = self.sessions.shutdown(broker);
    }

    /// A broker's shutdown is agreed to.
    pub fn shuts_down(&mut self, broker: BrokerId, epoch: BrokerEpoch, end: Offset) {
        self.sessions.shuts_down(broker, epoch, end);
    }

    /// A broker's last connection was closed.
    pub fn closed(&mut self, broker: BrokerId, epoch: BrokerEpoch, at: Millis) {
        self.sessions.closed(broker, epoch, at);
    }

    /// Nobody listens on a broker's port.
    pub fn refused(&mut self, broker: BrokerId, epoch: BrokerEpoch) {
        self.sessions.refused(broker, epoch);
    }

    /// Follows what was decided.
    pub fn follow(&mut self, image: &Image, delta: &Delta) {
        self.sessions.follow(image, delta, self.watching.arrivals.now());
    }

    /// Brokers that have to be heard, besides this node's own.
    pub fn watched<'a>(&self, image: &'a Image) -> impl Iterator<Item = &'a Broker> {
        let me = self.watching.me;
        image.brokers().map(|broker| &**broker).filter(move |broker| broker.id != me && !broker.fenced)
    }

    /// The time now, and when the next session ends if nobody has to be heard meanwhile; `None` if nobody is watched.
    pub fn next(&mut self, image: &Image) -> Option<(Millis, Millis)> {
        self.watched(image).next()?;
        let now = self.hear_own(image);
        Some((now, self.sessions.due()?))
    }

    /// What is due by a timer that was set for `at`.
    pub fn due(&mut self, at: Millis, image: &Image) -> Due {
        let now = self.hear_own(image);
        if now.since(at) > LATE {
            return Due::Again(LATE);
        }
        let (arrivals, since) = (&self.watching.arrivals, self.since);
        Due::Expired(self.sessions.expired(now, |broker, epoch| arrivals.heard(broker, epoch).filter(|at| *at >= since)))
    }

    fn hear_own(&mut self, image: &Image) -> Millis {
        let now = self.watching.arrivals.now();
        if let Some(own) = image.broker(self.watching.me) {
            self.sessions.heard(own.id, own.broker_epoch, now, Offset::NONE);
        }
        now
    }
}
