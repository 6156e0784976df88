//! What the members shall have: the topics they read, the group's epoch, and the target assignment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Group;
use crate::core::group::assign::{Assignor, MemberSpec, assign};
use crate::core::group::pattern::TopicPattern;
use crate::core::group::records::{ConsumerGroupMetadata, ConsumerMemberMetadata, ConsumerRecord, ResolvedRegex, TargetMetadata};
use crate::core::group::topics::{Topics, World};
use crate::core::group::writes::Cx;
use crate::core::types::{Millis, TopicId};

/// Between two looks at all topics for a group's expressions, whatever topics come: it takes time for each topic there is.
const REGEX_MIN_MS: i64 = 10_000;

impl Group {
    /// Has expressions matched that were not yet, and all of them if topics came since or it was long ago. True if one matches others.
    pub(super) fn refresh_regexes(&mut self, cx: &mut Cx<'_>) -> bool {
        let gone: Vec<Arc<str>> = self.regexes.keys().filter(|pattern| !self.expressions.contains_key(*pattern)).cloned().collect();
        let mut changed = !gone.is_empty();
        for pattern in gone {
            self.put(ConsumerRecord::Regex { pattern, value: None });
        }
        if self.expressions.is_empty() {
            return changed;
        }
        let oldest = self.regexes.values().min_by_key(|regex| regex.resolved.0);
        let all = oldest.is_some_and(|oldest| {
            let age = cx.now.since(oldest.resolved);
            age > REGEX_MIN_MS && (oldest.version < cx.world.created || age > cx.settings.consumer.regex_refresh)
        });
        let due: Vec<Arc<str>> = self.expressions.keys().filter(|pattern| all || !self.regexes.contains_key(*pattern)).cloned().collect();
        for pattern in due {
            let value = resolve(&pattern, &*cx.world.topics, cx.now);
            changed |= self.regexes.get(&pattern).is_none_or(|old| old.topics != value.topics);
            self.put(ConsumerRecord::Regex { pattern, value: Some(value) });
        }
        changed
    }

    /// Bumps the group's epoch if that is asked for, or if topics that its members read have changed.
    pub(super) fn refresh_epoch(&mut self, bump: bool, cx: &mut Cx<'_>) {
        if !bump && self.seen == cx.world.changes {
            return;
        }
        self.seen = cx.world.changes;
        let metadata_hash = cx.world.hash(self.read_topics().into_iter());
        if bump || metadata_hash != self.metadata_hash {
            self.put(ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch: self.epoch + 1, metadata_hash })));
        }
        if self.has_legacy_topics {
            self.put(ConsumerRecord::LegacyTopics { present: false });
        }
    }

    /// The ids of the topics that such a member reads.
    pub(super) fn subscribed(&self, meta: &ConsumerMemberMetadata, world: &World) -> BTreeSet<TopicId> {
        let regex = meta.regex.as_ref().and_then(|pattern| self.regexes.get(pattern));
        let names = meta.topics.iter().chain(regex.into_iter().flat_map(|regex| &regex.topics));
        names.filter_map(|name| world.topics.id(name)).collect()
    }

    /// Makes a new target assignment if the group's epoch asks for one, and the last is not too young.
    pub(super) fn refresh_target(&mut self, cx: &mut Cx<'_>) {
        let interval = cx.own_or(&self.id, "consumer.assignment.interval.ms", cx.settings.consumer.assignment_interval);
        let young = self.target_computed.is_some_and(|computed| cx.now.since(computed) < i64::from(interval));
        if self.target_epoch >= self.epoch || young {
            return;
        }
        let assigned = assign(self.assignor(cx), &self.specs(cx.world), &self.partitions(cx.world));
        for (member, shall) in assigned {
            if self.target.get(&member) != Some(&shall) {
                self.put(ConsumerRecord::TargetMember { member, value: Some(shall) });
            }
        }
        self.put(ConsumerRecord::Target(Some(TargetMetadata { epoch: self.epoch, computed: Some(cx.now) })));
    }

    /// The assignor that most members name, of those that there are; of equals the first by name. Without a vote the first configured.
    fn assignor(&self, cx: &Cx<'_>) -> Assignor {
        let votes = self.assignors.iter().filter_map(|(name, votes)| Some((Assignor::from_name(name)?, votes)));
        let most = votes.reduce(|most, other| if other.1 > most.1 { other } else { most });
        most.map_or(cx.settings.consumer.assignor(), |(assignor, _)| assignor)
    }

    /// Its name, for operators.
    pub(super) fn assignor_name(&self, cx: &Cx<'_>) -> &'static str {
        self.assignor(cx).name()
    }

    fn specs(&self, world: &World) -> BTreeMap<Arc<str>, MemberSpec> {
        let mut last: Option<(&ConsumerMemberMetadata, BTreeSet<TopicId>)> = None;
        let specs = self.members.iter().map(|(id, member)| {
            // Most groups read the same throughout, so the names are looked up once.
            let subscribed = match &last {
                Some((meta, subscribed)) if meta.topics == member.meta.topics && meta.regex == member.meta.regex => subscribed.clone(),
                _ => self.subscribed(&member.meta, world),
            };
            last = Some((&member.meta, subscribed.clone()));
            let spec = MemberSpec {
                subscribed,
                instance: member.meta.instance.clone(),
                rack: member.meta.rack.clone(),
                assigned: self.target.get(id).cloned().unwrap_or_default(),
            };
            (id.clone(), spec)
        });
        specs.collect()
    }

    fn partitions(&self, world: &World) -> BTreeMap<TopicId, i32> {
        let ids = self.read_topics().into_iter().filter_map(|name| world.topics.id(name));
        ids.map(|id| (id, world.topics.partitions(id))).collect()
    }
}

fn resolve(pattern: &str, topics: &dyn Topics, now: Millis) -> ResolvedRegex {
    // One that another broker has accepted and this one does not matches nothing.
    let matching = TopicPattern::new(pattern).map(|pattern| topics.names().filter(|name| pattern.matches(name)).cloned().collect());
    ResolvedRegex { topics: matching.unwrap_or_default(), version: topics.version(), resolved: now }
}
