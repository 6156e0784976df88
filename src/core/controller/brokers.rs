//! Brokers: registered, unfenced, fenced, forgotten (`kafka-semantics` 3.10 and 4.12).
//!
//! What a broker leaves and joins goes in the same append as its own change: a fenced broker is in no ISR, and a dead follower stalls
//! nobody.

use std::collections::BTreeSet;

use super::Controller;
use super::directories::all_offline;
use super::draft::Draft;
use super::entities::Broker;
use super::records::{self, BrokerEpoch, BrokerRegistrationChange, Feature, Record};
use super::request::{BrokerState, Heartbeat, Refusal, Registration, Why};
use crate::core::election::Trigger;
use crate::core::types::{BrokerId, Offset};

/// Directory ids below this are reserved and never a real directory's.
const RESERVED_DIRECTORIES: u128 = 100;

impl Controller {
    /// The epoch of a new registration is the offset of its record. A process that registers again keeps its epoch and its state.
    pub(super) fn register_broker(&self, request: Registration, next: Offset, draft: &mut Draft<'_>) -> Result<BrokerEpoch, Refusal> {
        if request.cluster_id != self.image.cluster_id() {
            let message = format!("Expected cluster ID {}, but got cluster ID {}", self.image.cluster_id(), request.cluster_id);
            return Err(Refusal::new(Why::InconsistentClusterId, message));
        }
        let present = self.image.broker(request.broker);
        let same_process = present.filter(|present| present.incarnation_id == request.incarnation_id);
        if present.is_some() && same_process.is_none() && request.session_alive {
            let message = format!(
                "Another broker is registered with id {}. If this one was just restarted, this resolves itself when the session of the old \
                 process ends.",
                request.broker.0
            );
            return Err(Refusal::new(Why::DuplicateBrokerRegistration, message));
        }
        self.check_log_dirs(&request)?;
        self.check_levels(&request.features)?;
        if same_process.is_none() {
            // Whatever the old process led or was in sync with, the new one has yet to come up to. If the old one left in order, it knew its
            // registration, and its log is all there.
            match present {
                Some(present) if request.previous_epoch == Some(present.broker_epoch) => {
                    self.brokers_leave(&[request.broker], Trigger::Fenced, draft);
                }
                _ => self.broker_stopped_uncleanly(request.broker, draft),
            }
        }
        let broker_epoch = same_process.map_or(BrokerEpoch((next + draft.records.len() as i64).0), |present| present.broker_epoch);
        draft.records.push(Record::RegisterBroker(records::RegisterBroker {
            broker_id: request.broker,
            is_migrating_zk_broker: false,
            incarnation_id: request.incarnation_id,
            broker_epoch,
            endpoints: request.endpoints,
            features: request.features,
            rack: request.rack,
            fenced: same_process.is_none_or(|present| present.fenced),
            in_controlled_shutdown: same_process.is_some_and(|present| present.in_controlled_shutdown),
            log_dirs: request.log_dirs,
            cordoned_log_dirs: None,
        }));
        Ok(broker_epoch)
    }

    fn check_log_dirs(&self, request: &Registration) -> Result<(), Refusal> {
        let invalid = |message: String| Err(Refusal::new(Why::InvalidRegistration, message));
        if request.log_dirs.is_empty() {
            return invalid("No directories specified in request".into());
        }
        if request.log_dirs.iter().any(|dir| dir.0 < RESERVED_DIRECTORIES) {
            return invalid("Reserved directory ID in request".into());
        }
        let own: BTreeSet<_> = request.log_dirs.iter().collect();
        if own.len() != request.log_dirs.len() {
            return invalid("Duplicate directory ID in request".into());
        }
        for other in self.image.brokers().filter(|other| other.id != request.broker) {
            if let Some(dir) = other.log_dirs.iter().find(|dir| own.contains(dir)) {
                return invalid(format!("Broker {} is already registered with directory {dir}", other.id.0));
            }
        }
        Ok(())
    }

    fn check_levels(&self, supported: &[Feature]) -> Result<(), Refusal> {
        let range = |name: &str| supported.iter().find(|feature| feature.name == name).map_or((0, 0), |feature| (feature.min, feature.max));
        let named = supported.iter().map(|feature| feature.name.as_str());
        for name in named.chain(self.image.features().map(|(name, _)| name)) {
            let (level, (min, max)) = (self.image.feature(name), range(name));
            if !(min..=max).contains(&level) {
                let message = format!(
                    "Unable to register because the broker does not support finalized version {level} of {name}. The broker wants a version \
                     between {min} and {max}, inclusive."
                );
                return Err(Refusal::new(Why::UnsupportedVersion, message));
            }
        }
        if !supported.iter().any(|feature| feature.name == super::METADATA_VERSION) {
            let message = format!("Request features do not contain '{}'", super::METADATA_VERSION);
            return Err(Refusal::new(Why::InvalidRegistration, message));
        }
        Ok(())
    }

    pub(super) fn check_broker_epoch(&self, id: BrokerId, epoch: BrokerEpoch) -> Result<(), Refusal> {
        match self.image.broker(id) {
            Some(broker) if broker.broker_epoch == epoch => Ok(()),
            Some(broker) => {
                let message = format!("Expected broker epoch {}, but got broker epoch {}", broker.broker_epoch.0, epoch.0);
                Err(Refusal::new(Why::StaleBrokerEpoch, message))
            }
            None => Err(Refusal::new(Why::StaleBrokerEpoch, format!("No broker registration found for broker id {}", id.0))),
        }
    }

    /// Unfences a broker that wants it and has seen its own registration, fences one that wants that, lets one stop whose leaderships have
    /// moved (`kafka-semantics` 4.12).
    pub(super) fn heartbeat(&self, heartbeat: Heartbeat, draft: &mut Draft<'_>) -> Result<BrokerState, Refusal> {
        let id = heartbeat.broker;
        self.check_broker_epoch(id, heartbeat.broker_epoch)?;
        let Some(broker) = self.image.broker(id) else { return Err(Why::StaleBrokerEpoch.into()) };
        let caught_up = heartbeat.metadata_offset.0 >= heartbeat.broker_epoch.0;
        let next = self.next_state(broker, &heartbeat, caught_up);
        let change = |fenced| {
            let change = BrokerRegistrationChange::new(id, heartbeat.broker_epoch);
            Record::BrokerRegistrationChange(BrokerRegistrationChange { fenced, in_controlled_shutdown: fenced.is_none(), ..change })
        };
        match next {
            Next::Unfenced if broker.fenced => {
                draft.records.push(change(Some(false)));
                self.broker_joins(id, draft);
            }
            Next::Fenced | Next::Stopped if !broker.fenced => {
                let trigger = if next == Next::Stopped { Trigger::ControlledShutdown } else { Trigger::Fenced };
                self.brokers_leave(&[id], trigger, draft);
                draft.records.push(change(Some(true)));
            }
            Next::ShuttingDown if !broker.in_controlled_shutdown => {
                draft.records.push(change(None));
                self.brokers_leave(&[id], Trigger::ControlledShutdown, draft);
            }
            // Its partitions are where they were: so there is one change of each at most.
            _ => self.note_directories(broker, &heartbeat.offline_dirs, heartbeat.cordoned_dirs, draft),
        }
        Ok(BrokerState {
            caught_up,
            fenced: matches!(next, Next::Fenced | Next::Stopped),
            shutting_down: next == Next::ShuttingDown,
            may_stop: next == Next::Stopped,
        })
    }

    fn next_state(&self, broker: &Broker, heartbeat: &Heartbeat, caught_up: bool) -> Next {
        let failing = broker.log_dirs.iter().any(|directory| heartbeat.offline_dirs.contains(directory));
        if broker.fenced {
            return match (heartbeat.want_shutdown, heartbeat.want_fence || !caught_up || failing) {
                (true, _) => Next::Stopped,
                (false, true) => Next::Fenced,
                (false, false) => Next::Unfenced,
            };
        }
        if broker.in_controlled_shutdown {
            let seen = heartbeat.shutdown_from.unwrap_or(self.image.offset()) <= heartbeat.others_have_seen;
            return if seen && !self.leads_anything(broker.id) { Next::Stopped } else { Next::ShuttingDown };
        }
        match (heartbeat.want_fence, heartbeat.want_shutdown) {
            (true, true) => Next::Stopped,
            (true, false) => Next::Fenced,
            (false, true) if self.leads_anything(broker.id) => Next::ShuttingDown,
            (false, true) => Next::Stopped,
            // Nothing on it can be read or written.
            (false, false) if all_offline(broker, &heartbeat.offline_dirs) => Next::Fenced,
            (false, false) => Next::Unfenced,
        }
    }

    /// Fences brokers whose sessions ended, all in one append: of each partition there is one change, and nobody is elected who goes next.
    /// A registration that has changed since is left alone.
    pub(super) fn fence(&self, brokers: Vec<(BrokerId, BrokerEpoch)>, draft: &mut Draft<'_>) -> Vec<BrokerId> {
        let mut going: Vec<(BrokerId, BrokerEpoch)> = brokers;
        going.retain(|(id, epoch)| self.image.broker(*id).is_some_and(|broker| broker.broker_epoch == *epoch && !broker.fenced));
        going.sort();
        going.dedup();
        let ids: Vec<BrokerId> = going.iter().map(|(id, _)| *id).collect();
        self.brokers_leave(&ids, Trigger::Fenced, draft);
        draft.records.extend(going.into_iter().map(|(id, epoch)| {
            Record::BrokerRegistrationChange(BrokerRegistrationChange { fenced: Some(true), ..BrokerRegistrationChange::new(id, epoch) })
        }));
        ids
    }

    pub(super) fn unregister_broker(&self, id: BrokerId, draft: &mut Draft<'_>) -> Result<(), Refusal> {
        let Some(broker) = self.image.broker(id) else {
            return Err(Refusal::new(Why::BrokerIdNotRegistered, format!("Broker ID {} is not currently registered", id.0)));
        };
        self.brokers_leave(&[id], Trigger::Fenced, draft);
        draft.records.push(Record::UnregisterBroker(records::UnregisterBroker { broker_id: id, broker_epoch: broker.broker_epoch }));
        Ok(())
    }
}

/// Where a heartbeat takes a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Fenced,
    Unfenced,
    ShuttingDown,
    Stopped,
}
