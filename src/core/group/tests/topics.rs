//! Topics to try a coordinator with, and what is worked out of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Town;
use crate::core::group::topics::{Topics, World};
use crate::core::types::{Id, TopicId};

/// Topics by name. The id of each is made of when it was made.
#[derive(Debug, Clone, Default)]
pub(in crate::core::group) struct Map {
    version: i64,
    topics: BTreeMap<Arc<str>, (TopicId, i32)>,
    names: BTreeMap<TopicId, Arc<str>>,
    /// By group and key.
    pub(super) settings: BTreeMap<(String, String), i32>,
}

impl Map {
    /// Makes or grows a topic, or with 0 partitions takes it away. True if it is new.
    pub(super) fn set(&mut self, name: &str, partitions: i32) -> bool {
        self.version += 1;
        let old = self.topics.remove(name);
        if partitions == 0 {
            old.iter().for_each(|(id, _)| _ = self.names.remove(id));
            return false;
        }
        let id = old.map_or(Id(1_000 + self.version as u128), |(id, _)| id);
        self.topics.insert(name.into(), (id, partitions));
        self.names.insert(id, name.into());
        old.is_none()
    }
}

impl Topics for Map {
    fn version(&self) -> i64 {
        self.version
    }

    fn id(&self, name: &str) -> Option<TopicId> {
        self.topics.get(name).map(|(id, _)| *id)
    }

    fn name(&self, id: TopicId) -> Option<&Arc<str>> {
        self.names.get(&id)
    }

    fn partitions(&self, id: TopicId) -> i32 {
        self.names.get(&id).and_then(|name| self.topics.get(name)).map_or(0, |(_, partitions)| *partitions)
    }

    fn racks(&self, _: TopicId, partition: i32) -> Vec<&str> {
        if partition == 0 { vec!["b", "a"] } else { vec![] }
    }

    fn group_setting(&self, group: &str, key: &str) -> Option<i32> {
        self.settings.get(&(group.into(), key.into())).copied()
    }

    fn names(&self) -> Box<dyn Iterator<Item = &Arc<str>> + '_> {
        Box::new(self.topics.keys())
    }
}

impl Town {
    /// Topics come, grow or (with 0 partitions) go.
    pub(super) fn set_topics(&mut self, topics: &[(&str, i32)]) {
        let some_new = topics.iter().fold(false, |some_new, (name, partitions)| self.topics.set(name, *partitions) || some_new);
        let changed: Vec<Arc<str>> = topics.iter().map(|(name, _)| (*name).into()).collect();
        self.coordinator.topics_changed(Arc::new(self.topics.clone()), &changed, some_new);
    }

    pub(super) fn topic(&self, name: &str) -> TopicId {
        self.topics.id(name).expect("the topic is there")
    }
}

#[test]
fn the_hash_follows_the_topics_and_nothing_else() {
    let mut map = Map::default();
    map.set("a", 2);
    map.set("b", 1);
    let (a, b, none): (Arc<str>, Arc<str>, Arc<str>) = ("a".into(), "b".into(), "none".into());
    let mut world = World::new(Arc::new(map.clone()));
    assert_eq!((world.hash([].into_iter()), world.hash([&none].into_iter())), (0, 0));
    let both = world.hash([&a, &b].into_iter());
    assert_eq!(world.hash([&a, &b, &none].into_iter()), both);
    assert_ne!(world.hash([&b].into_iter()), both);
    let (changes, created) = (world.changes, world.created);
    map.set("b", 2);
    world.update(Arc::new(map.clone()), std::slice::from_ref(&b), false);
    assert_ne!(world.hash([&a, &b].into_iter()), both);
    assert_eq!((world.changes > changes, world.created), (true, created));
    assert!(map.set("c", 1));
    world.update(Arc::new(map.clone()), &["c".into()], true);
    assert_eq!(world.created, map.version());
}

/// What Kafka's `Utils.computeTopicHash` and `computeGroupHash` make of the same topic.
#[test]
fn the_hash_is_kafkas() {
    let mut map = Map::default();
    map.set("foo", 2);
    let mut world = World::new(Arc::new(map));
    assert_eq!(world.hash([&Arc::from("foo")].into_iter()), 9_153_276_319_005_770_943);
}
