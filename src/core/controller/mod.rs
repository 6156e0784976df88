//! The controller: what the cluster's metadata is, and who may change it.
//!
//! `decide(request) -> (records, answer)` looks and does not touch; `apply(record)` touches and does not judge. What is not in a record
//! is not state, so whoever replays the log stands where the last controller stood. The image here runs ahead of the committed one by
//! what is appended and not yet on disk: decisions build on it, answers wait for the commit.

mod brokers;
mod configs;
pub mod delta;
pub mod entities;
mod features;
pub mod image;
mod leaders;
pub mod records;
mod replay;
pub mod request;
mod snapshot;
mod topics;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub use configs::ConfigRules;
pub use delta::{Change, Delta};
pub use entities::{Broker, ConfigResource, Configs, ControllerNode, Partition, Topic};
pub use features::{METADATA_VERSION, bootstrap};
pub use image::Image;
pub use records::{Record, ResourceType};
pub use replay::Contradiction;
pub use request::{Answer, Refusal, Request, Why};
pub use topics::check_name;

use super::chance::Chance;
use super::types::{Epoch, Offset};
use records::Feature;

/// What the controller is configured with.
#[derive(Clone)]
pub struct Settings {
    /// `num.partitions`.
    pub default_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// `unclean.leader.election.enable` where no topic or dynamic setting says otherwise.
    pub unclean_election: bool,
    /// The feature levels this node can run at.
    pub features: Vec<Feature>,
    /// Judges settings.
    pub rules: Arc<dyn ConfigRules + Send + Sync>,
}

/// What is decided on a request. The records go into the log as one append, that is one batch: all of them or none. No records: the
/// answer is due at once, but after what was decided before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to append, in order.
    pub records: Vec<Record>,
    /// What to answer once that is committed.
    pub answer: Answer,
}

/// What a decision depends on besides the image.
pub struct Context<'a> {
    /// The offset that the first record of the decision will get.
    pub next: Offset,
    /// Makes ids and spreads replicas.
    pub chance: &'a mut dyn Chance,
}

/// The active controller's rules over its image.
pub struct Controller {
    image: Image,
    settings: Settings,
    /// Topics whose name holds a `.` or `_`, by the name with every `.` made a `_`: such names must not collide in metrics.
    lookalikes: HashMap<String, BTreeSet<Arc<str>>>,
}

impl Controller {
    /// A controller that goes on from `image`, which is all of the log so far.
    pub fn new(image: Image, settings: Settings) -> Controller {
        let lookalikes = topics::lookalikes(&image);
        Controller { image, settings, lookalikes }
    }

    /// The metadata with everything decided and applied so far, committed or not.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Decides on a request. Nothing changes until the records are applied, which must happen before the next decision.
    pub fn decide(&self, request: Request, cx: &mut Context<'_>) -> Decision {
        let mut records = Vec::new();
        let answer = match request {
            Request::CreateTopics { topics, validate_only } => {
                Answer::CreateTopics(self.create_topics(topics, unless(validate_only, &mut records), cx.chance))
            }
            Request::DeleteTopics(topics) => Answer::DeleteTopics(self.delete_topics(topics, &mut records)),
            Request::CreatePartitions { topics, validate_only } => {
                Answer::CreatePartitions(self.create_partitions(topics, unless(validate_only, &mut records), cx.chance))
            }
            Request::AlterConfigs { resources, validate_only } => {
                Answer::Configs(self.alter_configs(resources, unless(validate_only, &mut records)))
            }
            Request::ReplaceConfigs { resources, validate_only } => {
                Answer::Configs(self.replace_configs(resources, unless(validate_only, &mut records)))
            }
            Request::RegisterBroker(broker) => Answer::RegisterBroker(self.register_broker(broker, cx.next, &mut records)),
            Request::Heartbeat(heartbeat) => Answer::Heartbeat(self.heartbeat(heartbeat, &mut records)),
            Request::UnregisterBroker(id) => Answer::UnregisterBroker(self.unregister_broker(id, &mut records)),
            Request::UpdateFeatures { updates, validate_only } => {
                Answer::UpdateFeatures(self.update_features(updates, unless(validate_only, &mut records)))
            }
            Request::AllocateProducerIds { broker, broker_epoch } => {
                Answer::AllocateProducerIds(self.allocate_producer_ids(broker, broker_epoch, &mut records))
            }
            Request::ElectLeaders { election, partitions } => Answer::ElectLeaders(self.elect_leaders(election, partitions, &mut records)),
        };
        Decision { records, answer }
    }

    /// Applies a record that was appended at `offset`.
    pub fn apply(&mut self, offset: Offset, record: &Record) -> Result<Change, Contradiction> {
        let change = self.image.apply(offset, record)?;
        match &change {
            Change::TopicCreated(id) => {
                if let Some(topic) = self.image.topic(*id) {
                    topics::add_lookalike(&mut self.lookalikes, &topic.name);
                }
            }
            Change::TopicDeleted(topic) => topics::remove_lookalike(&mut self.lookalikes, &topic.name),
            Change::Aborted => self.lookalikes = topics::lookalikes(&self.image),
            _ => {}
        }
        Ok(change)
    }

    /// Moves on to the end of an appended batch.
    pub fn advance(&mut self, offset: Offset, epoch: Epoch) {
        self.image.advance(offset, epoch);
    }
}

/// Where the records of a decision go: nowhere if it is only to be validated.
struct Sink<'a>(Option<&'a mut Vec<Record>>);

impl Sink<'_> {
    fn extend(&mut self, records: impl IntoIterator<Item = Record>) {
        if let Some(all) = &mut self.0 {
            all.extend(records);
        }
    }
}

fn unless(validate_only: bool, records: &mut Vec<Record>) -> Sink<'_> {
    Sink((!validate_only).then_some(records))
}

#[cfg(test)]
mod tests;
