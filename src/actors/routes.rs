//! Which partitions are hosted here and how to reach them: a published snapshot that every connection reads.

use super::groups::Groups;
use super::partition::Partition;
use crate::core::types::TopicPartition;
use actix::Addr;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The way to one hosted replica.
#[derive(Clone)]
pub struct Route {
    /// Its actor.
    pub partition: Addr<Partition>,
    /// Its topic's name.
    pub topic: Arc<str>,
    /// Which log directory it lies in, by its place in `Disk::dirs`.
    pub dir: usize,
}

/// Routes by partition. Ids are the controller's, so a fast hash will do.
type Table = imbl::GenericHashMap<TopicPartition, Route, rustc_hash::FxBuildHasher, imbl::shared_ptr::DefaultSharedPtr>;

/// Coordinators by partition: at most as many as `__consumer_offsets` has partitions.
type Coordinators = BTreeMap<TopicPartition, Addr<Groups>>;

/// The routes of this process. Shards write their own partitions; everybody reads.
#[derive(Default)]
pub struct Routes {
    table: ArcSwap<Table>,
    groups: ArcSwap<Coordinators>,
}

impl Routes {
    /// The way to a partition, if a replica of it is hosted here.
    pub fn get(&self, at: TopicPartition) -> Option<Route> {
        self.table.load().get(&at).cloned()
    }

    /// Does something with the way to a partition, without cloning it; `None` if no replica is hosted here.
    pub fn with<T>(&self, at: TopicPartition, act: impl FnOnce(&Route) -> T) -> Option<T> {
        self.table.load().get(&at).map(act)
    }

    /// Every hosted partition, at this moment.
    pub fn all(&self) -> Vec<(TopicPartition, Route)> {
        self.table.load().iter().map(|(at, route)| (*at, route.clone())).collect()
    }

    /// Adds and removes routes in one step. From the shard that owns them.
    pub fn change(&self, add: &[(TopicPartition, Route)], remove: &[TopicPartition]) {
        self.table.rcu(|table| {
            let mut table = (**table).clone();
            for at in remove {
                table.remove(at);
            }
            for (at, route) in add {
                table.insert(*at, route.clone());
            }
            table
        });
    }

    /// The coordinator of the groups of a partition of `__consumer_offsets`, if this broker leads it.
    pub fn groups(&self, at: TopicPartition) -> Option<Addr<Groups>> {
        self.groups.load().get(&at).cloned()
    }

    /// The coordinators of all groups that are coordinated here, in the order of their partitions.
    pub fn all_groups(&self) -> Vec<Addr<Groups>> {
        self.groups.load().values().cloned().collect()
    }

    /// Adds or removes a coordinator. From the shard that owns it.
    pub fn coordinate(&self, at: TopicPartition, groups: Option<Addr<Groups>>) {
        self.groups.rcu(|table| {
            let mut table = (**table).clone();
            match &groups {
                Some(groups) => table.insert(at, groups.clone()),
                None => table.remove(&at),
            };
            table
        });
    }
}
