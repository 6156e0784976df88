//! Brokers: registered, unfenced, fenced, forgotten (`kafka-semantics` 3.10 and 4.12).
//!
//! What a broker leaves and joins goes in the same append as its own change: a fenced broker is in no ISR, and a dead follower stalls
//! nobody.

use std::collections::BTreeSet;

use super::Controller;
use super::records::{self, BrokerEpoch, BrokerRegistrationChange, Feature, Record};
use super::request::{BrokerState, Heartbeat, Refusal, RegisterBroker, Why};
use crate::core::types::{BrokerId, Offset};

/// Directory ids below this are reserved and never a real directory's.
const RESERVED_DIRECTORIES: u128 = 100;

impl Controller {
    /// The epoch of a new registration is the offset of its record. A process that registers again keeps its epoch and its state.
    pub(super) fn register_broker(&self, request: RegisterBroker, next: Offset, records: &mut Vec<Record>) -> Result<BrokerEpoch, Refusal> {
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
            // Whatever the old process led or was in sync with, the new one has yet to come up to.
            self.broker_leaves(request.broker, records);
        }
        let broker_epoch = same_process.map_or(BrokerEpoch((next + records.len() as i64).0), |present| present.broker_epoch);
        records.push(Record::RegisterBroker(records::RegisterBroker {
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

    fn check_log_dirs(&self, request: &RegisterBroker) -> Result<(), Refusal> {
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

    /// Unfences a broker that wants it and has seen its own registration, and fences one that wants that.
    pub(super) fn heartbeat(&self, heartbeat: Heartbeat, records: &mut Vec<Record>) -> Result<BrokerState, Refusal> {
        let Heartbeat { broker: id, broker_epoch, metadata_offset, want_fence } = heartbeat;
        self.check_broker_epoch(id, broker_epoch)?;
        let fenced = self.image.broker(id).is_some_and(|broker| broker.fenced);
        let caught_up = metadata_offset.0 >= broker_epoch.0;
        let change = |fenced| {
            let change = BrokerRegistrationChange::new(id, broker_epoch);
            Record::BrokerRegistrationChange(BrokerRegistrationChange { fenced: Some(fenced), ..change })
        };
        let stays_fenced = want_fence || (fenced && !caught_up);
        match (fenced, stays_fenced) {
            (true, false) => {
                records.push(change(false));
                self.broker_joins(id, records);
            }
            (false, true) => {
                self.broker_leaves(id, records);
                records.push(change(true));
            }
            _ => {}
        }
        Ok(BrokerState { caught_up, fenced: stays_fenced })
    }

    pub(super) fn unregister_broker(&self, id: BrokerId, records: &mut Vec<Record>) -> Result<(), Refusal> {
        let Some(broker) = self.image.broker(id) else {
            return Err(Refusal::new(Why::BrokerIdNotRegistered, format!("Broker ID {} is not currently registered", id.0)));
        };
        self.broker_leaves(id, records);
        records.push(Record::UnregisterBroker(records::UnregisterBroker { broker_id: id, broker_epoch: broker.broker_epoch }));
        Ok(())
    }
}
