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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::controller::Record;
    use crate::core::controller::records::RegisterBroker;
    use crate::core::types::Id;

    const TIMES: SessionTimes = SessionTimes { timeout: 9000, grace: 250, chance: 0 };

    fn watch(ids: &[i32]) -> (Watch, Image) {
        let mut image = Image::empty("c");
        for id in ids {
            let record = RegisterBroker {
                broker_id: BrokerId(*id),
                is_migrating_zk_broker: false,
                incarnation_id: Id(*id as u128),
                broker_epoch: BrokerEpoch(i64::from(*id)),
                endpoints: Vec::new(),
                features: Vec::new(),
                rack: None,
                fenced: false,
                in_controlled_shutdown: false,
                log_dirs: vec![Id(1000 + *id as u128)],
                cordoned_log_dirs: None,
            };
            image.apply(Offset(i64::from(*id)), &Record::RegisterBroker(record)).expect("a registration");
        }
        let watching = Watching { me: BrokerId(1), times: TIMES, arrivals: Arc::default() };
        (Watch::new(watching, &image), image)
    }

    fn registration(broker: i32, dir: u128) -> Registration {
        Registration {
            cluster_id: "c".into(),
            broker: BrokerId(broker),
            incarnation_id: Id(77),
            endpoints: Vec::new(),
            features: Vec::new(),
            rack: None,
            log_dirs: vec![Id(dir)],
            previous_epoch: None,
            session_alive: false,
        }
    }

    #[test]
    fn a_node_alone_with_its_controller_is_not_watched() {
        let (mut alone, image) = watch(&[1]);
        assert_eq!(alone.next(&image), None);
        let (mut two, image) = watch(&[1, 2]);
        assert!(two.next(&image).is_some());
        assert_eq!(two.watched(&image).map(|broker| broker.id.0).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn who_did_not_come_is_gone_unless_the_timer_was_late() {
        let (mut watch, image) = watch(&[1, 2]);
        let now = watch.watching.arrivals.now();
        assert_eq!(watch.due(now, &image), Due::Expired(vec![(BrokerId(2), BrokerEpoch(2))]));
        assert_eq!(watch.due(Millis(now.0 - LATE - 1), &image), Due::Again(LATE), "what waits in sockets is read first");
        watch.watching.arrivals.stamp(BrokerId(2), BrokerEpoch(2));
        assert_eq!(watch.due(now, &image), Due::Expired(Vec::new()), "it came, though the controller has not seen the heartbeat yet");
        let (mut fresh, _) = self::watch(&[1, 2]);
        fresh.watching.arrivals = watch.watching.arrivals.clone();
        fresh.since = Millis(i64::MAX);
        assert_eq!(
            fresh.due(now, &image),
            Due::Expired(vec![(BrokerId(2), BrokerEpoch(2))]),
            "heard by an earlier controller of this node"
        );
    }

    #[test]
    fn the_same_directories_prove_that_the_old_process_is_gone() {
        let (mut watch, image) = watch(&[1, 2]);
        watch.watching.arrivals.stamp(BrokerId(2), BrokerEpoch(2));
        watch.heard(&mut Heartbeat::new(BrokerId(2), BrokerEpoch(2), Offset(9)));
        let alive = |broker, dir| {
            let mut registration = registration(broker, dir);
            watch.registers(&mut registration, &image);
            registration.session_alive
        };
        assert!(alive(2, 5000), "another machine with the id of a living broker");
        assert!(!alive(2, 1002) && !alive(1, 5000) && !alive(3, 5000));
    }
}
