//! The controller: what the cluster's metadata is, and who may change it.
//!
//! `decide(request) -> (records, answer)` looks and does not touch; `apply(record)` touches and does not judge. What is not in a record
//! is not state, so whoever replays the log stands where the last controller stood. The image here runs ahead of the committed one by
//! what is appended and not yet on disk: decisions build on it, answers wait for the commit.

pub mod book;
mod brokers;
mod configs;
pub mod delta;
mod directories;
mod draft;
mod elections;
pub mod entities;
mod features;
pub mod image;
mod index;
mod isr;
mod leaders;
mod reassign;
pub mod records;
pub mod recovery;
mod replay;
pub mod request;
pub mod sessions;
mod snapshot;
mod topics;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub use configs::ConfigRules;
pub use delta::{Change, Delta};
pub use directories::ByDirectory;
pub use elections::MAX_BALANCED_PER_ROUND;
pub use entities::{Broker, ConfigResource, Configs, ControllerNode, Partition, Topic};
pub use features::{METADATA_VERSION, bootstrap};
pub use image::Image;
pub use leaders::ELR_VERSION;
pub use reassign::Target;
pub use records::{Record, ResourceType};
pub use replay::Contradiction;
pub use request::{Answer, Refusal, Request, Why};
pub use topics::check_name;

use super::chance::Chance;
use super::election::{Claims, Election};
use super::types::{Epoch, Offset};
use draft::Draft;
use index::Index;
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
    /// `min.insync.replicas` where no topic or dynamic setting says otherwise.
    pub min_insync_replicas: usize,
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
    /// The elections among the records; those of new partitions are not listed.
    pub elections: Vec<Election>,
}

/// What a decision depends on besides the image.
pub struct Context<'a> {
    /// The offset that the first record of the decision will get.
    pub next: Offset,
    /// Makes ids and spreads replicas.
    pub chance: &'a mut dyn Chance,
    /// What survivors of leaderless partitions say their logs hold.
    pub claims: &'a Claims,
}

/// The active controller's rules over its image.
pub struct Controller {
    image: Image,
    settings: Settings,
    /// Topics whose name holds a `.` or `_`, by the name with every `.` made a `_`: such names must not collide in metrics.
    lookalikes: HashMap<String, BTreeSet<Arc<str>>>,
    index: Index,
}

impl Controller {
    /// A controller that goes on from `image`, which is all of the log so far.
    pub fn new(image: Image, settings: Settings) -> Controller {
        let lookalikes = topics::lookalikes(&image);
        let index = Index::of(&image);
        Controller { image, settings, lookalikes, index }
    }

    /// The metadata with everything decided and applied so far, committed or not.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Decides on a request. Nothing changes until the records are applied, which must happen before the next decision.
    pub fn decide(&self, request: Request, cx: &mut Context<'_>) -> Decision {
        let mut draft = Draft::new(cx.claims);
        let answer = self.answer(request, cx.next, cx.chance, &mut draft);
        let Draft { records, elections, .. } = draft;
        Decision { records, answer, elections }
    }

    fn answer(&self, request: Request, next: Offset, chance: &mut dyn Chance, draft: &mut Draft<'_>) -> Answer {
        match request {
            Request::CreateTopics { topics, validate_only } => {
                Answer::CreateTopics(self.create_topics(topics, draft.unless(validate_only), chance))
            }
            Request::DeleteTopics(topics) => Answer::DeleteTopics(self.delete_topics(topics, &mut draft.records)),
            Request::CreatePartitions { topics, validate_only } => {
                Answer::CreatePartitions(self.create_partitions(topics, draft.unless(validate_only), chance))
            }
            Request::AlterConfigs { resources, validate_only } => {
                let answers = self.alter_configs(resources, draft.unless(validate_only));
                self.configs_changed(draft);
                Answer::Configs(answers)
            }
            Request::ReplaceConfigs { resources, validate_only } => {
                let answers = self.replace_configs(resources, draft.unless(validate_only));
                self.configs_changed(draft);
                Answer::Configs(answers)
            }
            Request::RegisterBroker(broker) => Answer::RegisterBroker(self.register_broker(broker, next, draft)),
            Request::Heartbeat(heartbeat) => Answer::Heartbeat(self.heartbeat(heartbeat, draft)),
            Request::UnregisterBroker(id) => Answer::UnregisterBroker(self.unregister_broker(id, draft)),
            Request::UpdateFeatures { updates, validate_only } => {
                Answer::UpdateFeatures(self.update_features(updates, draft.unless(validate_only)))
            }
            Request::AllocateProducerIds { broker, broker_epoch } => {
                Answer::AllocateProducerIds(self.allocate_producer_ids(broker, broker_epoch, &mut draft.records))
            }
            Request::ElectLeaders { election, partitions } => Answer::ElectLeaders(self.elect_leaders(election, partitions, draft)),
            Request::Designate { topic, partition, leader, accepted } => {
                Answer::Designate(self.designate(&topic, partition, leader, accepted, draft))
            }
            Request::Resign { broker, broker_epoch, partitions } => Answer::Resign(self.resign(broker, broker_epoch, partitions, draft)),
            Request::Balance => Answer::Balance(self.balance(draft)),
            Request::Recover(partitions) => Answer::Recover(self.recover(partitions, draft)),
            Request::Fence(brokers) => Answer::Fence(self.fence(brokers, draft)),
            Request::AlterPartitions { broker, broker_epoch, topics } => {
                Answer::AlterPartitions(self.alter_partitions(broker, broker_epoch, topics, draft))
            }
            Request::AlterReassignments { topics, allow_factor_change } => {
                Answer::AlterReassignments(self.alter_reassignments(topics, allow_factor_change, draft))
            }
            Request::AssignDirectories { broker, broker_epoch, directories } => {
                Answer::AssignDirectories(self.assign_directories(broker, broker_epoch, directories, draft))
            }
        }
    }

    /// Applies a record that was appended at `offset`.
    pub fn apply(&mut self, offset: Offset, record: &Record) -> Result<Change, Contradiction> {
        let change = self.image.apply(offset, record)?;
        self.index.follow(&self.image, &change);
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

#[cfg(test)]
mod tests;
