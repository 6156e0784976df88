//! When brokers were last heard, stamped on the thread that reads their connections: a controller that is busy, or stalled, finds here who came
//! meanwhile. And how many connections each of them has, so that the last one's end is known.

use super::{Link, SessionClosed};
use crate::core::controller::records::BrokerEpoch;
use crate::core::types::{BrokerId, Millis};
use crate::rt::{Tell, clock};
use actix::Addr;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// See the module. Holds an entry for each broker that is registered and was heard.
pub struct Arrivals {
    begun: clock::Moment,
    brokers: Mutex<HashMap<BrokerId, Seen>>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    epoch: BrokerEpoch,
    heard: Millis,
    connections: usize,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals { begun: clock::moment(), brokers: Mutex::default() }
    }
}

impl Arrivals {
    /// The time by which sessions are judged: it does not jump with the wall clock.
    pub fn now(&self) -> Millis {
        Millis(self.begun.elapsed().as_millis() as i64)
    }

    /// A heartbeat of a registered broker has arrived.
    pub fn stamp(&self, broker: BrokerId, epoch: BrokerEpoch) {
        let now = self.now();
        Arrivals::of(&mut self.lock(), broker, epoch).heard = now;
    }

    /// When that process was last heard.
    pub fn heard(&self, broker: BrokerId, epoch: BrokerEpoch) -> Option<Millis> {
        self.lock().get(&broker).filter(|seen| seen.epoch == epoch).map(|seen| seen.heard)
    }

    fn opened(&self, broker: BrokerId, epoch: BrokerEpoch) {
        Arrivals::of(&mut self.lock(), broker, epoch).connections += 1;
    }

    /// Whether that was the process's last connection.
    fn closed(&self, broker: BrokerId, epoch: BrokerEpoch) -> bool {
        let mut brokers = self.lock();
        let Some(seen) = brokers.get_mut(&broker).filter(|seen| seen.epoch == epoch) else { return false };
        seen.connections = seen.connections.saturating_sub(1);
        seen.connections == 0
    }

    fn of(brokers: &mut HashMap<BrokerId, Seen>, broker: BrokerId, epoch: BrokerEpoch) -> &mut Seen {
        let new = Seen { epoch, heard: Millis(0), connections: 0 };
        let seen = brokers.entry(broker).or_insert(new);
        if seen.epoch != epoch {
            *seen = new;
        }
        seen
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BrokerId, Seen>> {
        self.brokers.lock().expect("no holder of this lock panics")
    }
}

/// A connection that a broker sends heartbeats on; dropped with it.
pub struct Session {
    broker: BrokerId,
    epoch: BrokerEpoch,
    arrivals: Arc<Arrivals>,
    link: Addr<Link>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session of broker {} at epoch {}", self.broker.0, self.epoch.0)
    }
}

impl Session {
    /// A connection that has just sent its first heartbeat of that process.
    pub fn new(broker: BrokerId, epoch: BrokerEpoch, arrivals: Arc<Arrivals>, link: Addr<Link>) -> Session {
        arrivals.opened(broker, epoch);
        Session { broker, epoch, arrivals, link }
    }

    /// Whether it is one of that process.
    pub fn is_of(&self, broker: BrokerId, epoch: BrokerEpoch) -> bool {
        (self.broker, self.epoch) == (broker, epoch)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.arrivals.closed(self.broker, self.epoch) {
            self.link.tell(SessionClosed { broker: self.broker, epoch: self.epoch, at: self.arrivals.now() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_connection_of_a_process_counts() {
        let (arrivals, one, epoch) = (Arrivals::default(), BrokerId(1), BrokerEpoch(5));
        assert_eq!(arrivals.heard(one, epoch), None);
        arrivals.stamp(one, epoch);
        assert!(arrivals.heard(one, epoch).is_some() && arrivals.heard(one, BrokerEpoch(6)).is_none());
        arrivals.opened(one, epoch);
        arrivals.opened(one, epoch);
        assert!(!arrivals.closed(one, epoch) && arrivals.closed(one, epoch));
        arrivals.opened(one, epoch);
        arrivals.stamp(one, BrokerEpoch(6));
        assert!(!arrivals.closed(one, epoch), "another process by now");
        assert!(!arrivals.closed(BrokerId(2), epoch));
    }
}
