//! The coordinators of a shard: one for each led partition of `__consumer_offsets`.

use super::Shard;
use super::deaths::{self, Deaths};
use crate::actors::groups::messages::{Reconfigured, TOPIC, TopicsChanged, TopicsDeleted, Unload};
use crate::actors::groups::{Groups, GroupsOf, NewGroups};
use crate::core::controller::{Delta, Image, ResourceType};
use crate::core::group::request::DeletedTopic;
use crate::core::types::{TopicId, TopicPartition};
use crate::rt::{DeathWatch, Died, Tell};
use actix::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The coordinators by partition.
#[derive(Default)]
pub struct Coordinators {
    groups: FxHashMap<TopicPartition, Running>,
    /// Numbers the incarnations.
    generation: u32,
}

struct Running {
    groups: Addr<Groups>,
    generation: u32,
    deaths: Deaths,
}

impl Shard {
    /// A partition's role may have changed: coordinates its groups from now on, or no longer.
    pub(super) fn coordinate(&mut self, at: TopicPartition, topic: &str, leads: bool, ctx: &mut Context<Self>) {
        if topic != TOPIC {
            return;
        }
        match (leads, self.coordinators.groups.contains_key(&at)) {
            (true, false) => self.start_coordinating(at, Deaths::default(), ctx),
            (false, true) => self.stop_coordinating(at),
            _ => {}
        }
    }

    fn start_coordinating(&mut self, at: TopicPartition, deaths: Deaths, ctx: &mut Context<Self>) {
        let Some(hosted) = self.hosted.get(&at) else { return };
        let new = NewGroups {
            at,
            partition: hosted.partition.clone(),
            io: self.disk.dirs[hosted.dir].io.clone(),
            node: self.context.node,
            settings: self.settings.groups(),
            topics: self.image.clone(),
            load_bytes: self.settings.load_bytes(),
            metrics: self.context.metrics.clone(),
        };
        self.coordinators.generation += 1;
        let generation = self.coordinators.generation;
        let watch = DeathWatch::new(GroupsOf(at), generation, ctx.address().recipient());
        let groups = Groups::new(new, watch).start();
        self.routes.coordinate(at, Some(groups.clone()));
        self.coordinators.groups.insert(at, Running { groups, generation, deaths });
    }

    /// Answers all that wait for a coordinator, and ends it.
    pub(super) fn stop_coordinating(&mut self, at: TopicPartition) {
        if let Some(running) = self.coordinators.groups.remove(&at) {
            self.routes.coordinate(at, None);
            running.groups.tell(Unload);
        }
    }

    /// The same for all of them.
    pub(super) fn stop_all_coordinators(&mut self) {
        let all: Vec<TopicPartition> = self.coordinators.groups.keys().copied().collect();
        all.into_iter().for_each(|at| self.stop_coordinating(at));
    }

    /// The partition has a new actor: its coordinator, which knows only the old one, begins anew.
    pub(super) fn restart_coordinator(&mut self, at: TopicPartition, ctx: &mut Context<Self>) {
        if let Some(running) = self.coordinators.groups.remove(&at) {
            running.groups.tell(Unload);
            self.start_coordinating(at, running.deaths, ctx);
        }
    }

    /// Coordinators assign the partitions that there are: they hear of topics that came, went or grew since `old`, and of settings.
    pub(super) fn tell_topics(&self, old: &Image, delta: &Delta) {
        if self.coordinators.groups.is_empty() {
            return;
        }
        let name = |id: &TopicId| self.image.topic(*id).map(|topic| topic.name.clone());
        let moved = |at: &&TopicPartition| {
            let replicas = |image: &Image| image.partition(**at).map(|partition| partition.replicas.clone());
            replicas(old) != replicas(&self.image)
        };
        let grown: BTreeSet<TopicId> = delta.partitions.iter().filter(moved).map(|at| at.topic).collect();
        let living = delta.topics_created.union(&grown).filter_map(name);
        let changed: Arc<[Arc<str>]> = living.chain(delta.topics_deleted.values().map(|topic| topic.name.clone())).collect();
        let of_groups = delta.configs.iter().any(|resource| resource.kind == ResourceType::Group);
        if !changed.is_empty() || of_groups {
            let some_new = !delta.topics_created.is_empty();
            let message = TopicsChanged { topics: self.image.clone(), changed, some_new };
            self.coordinators.groups.values().for_each(|running| running.groups.tell(message.clone()));
        }
        if delta.configs.iter().any(|resource| resource.kind == ResourceType::Broker) {
            let settings = self.settings.groups_in(&self.image);
            self.coordinators.groups.values().for_each(|running| running.groups.tell(Reconfigured(settings.clone())));
        }
    }

    /// The offsets of topics that are no more go.
    pub(super) fn forget_offsets(&self, delta: &Delta) {
        if delta.topics_deleted.is_empty() || self.coordinators.groups.is_empty() {
            return;
        }
        let deleted = delta.topics_deleted.values();
        let topics: Arc<[DeletedTopic]> = deleted.map(|topic| DeletedTopic { name: topic.name.clone(), id: topic.id }).collect();
        self.coordinators.groups.values().for_each(|running| running.groups.tell(TopicsDeleted(topics.clone())));
    }
}

impl Handler<Died<GroupsOf>> for Shard {
    type Result = ();
    fn handle(&mut self, m: Died<GroupsOf>, ctx: &mut Context<Self>) {
        if !m.panicked {
            return;
        }
        let metrics = self.context.metrics.actor("groups");
        metrics.died(true);
        let GroupsOf(at) = m.name;
        let Some(running) = self.coordinators.groups.get_mut(&at).filter(|running| running.generation == m.generation) else { return };
        let mut deaths = std::mem::take(&mut running.deaths);
        let times = deaths.another();
        let again = times < deaths::ALLOWED;
        tracing::error!(partition = at.partition, deaths = times, again, "the coordinator of a partition of {TOPIC} died");
        self.coordinators.groups.remove(&at);
        self.routes.coordinate(at, None);
        if again {
            self.start_coordinating(at, deaths, ctx);
            metrics.restarts.inc();
        }
    }
}
