//! What actix shows of nobody: deaths, restarts and waiting messages, by kind of actor (never by instance: kinds are few, instances are not).

use crate::cell::{Counter, Gauge};
use crate::family::Family;
use crate::sink::Sink;

/// The handle of one kind of actor.
#[derive(Debug)]
pub struct ActorMetrics {
    kind: &'static str,
    panics: Counter,
    stops: Counter,
    /// Actors of this kind that were started again after a death.
    pub restarts: Counter,
    /// Messages sent and not yet handled, over all actors of the kind: add on send, take away when the handler starts.
    pub mailbox_depth: Gauge,
}

impl ActorMetrics {
    pub(crate) fn new(kind: &'static str) -> ActorMetrics {
        ActorMetrics {
            kind,
            panics: Counter::default(),
            stops: Counter::default(),
            restarts: Counter::default(),
            mailbox_depth: Gauge::default(),
        }
    }

    /// Counts a death.
    pub fn died(&self, panicked: bool) {
        if panicked { self.panics.inc() } else { self.stops.inc() }
    }

    /// Deaths so far, panics and others.
    pub fn deaths(&self) -> u64 {
        self.panics.get() + self.stops.get()
    }

    pub(crate) fn collect(&self, out: &mut Sink) {
        out.put(Family::ActorDeaths, &[self.kind, "true"], self.panics.get() as f64);
        out.put(Family::ActorDeaths, &[self.kind, "false"], self.stops.get() as f64);
        out.put(Family::ActorRestarts, &[self.kind], self.restarts.get() as f64);
        out.put(Family::ActorMailboxDepth, &[self.kind], self.mailbox_depth.get() as f64);
    }
}
