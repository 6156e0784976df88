//! Records become the group's state. The only place where what they say changes.

use std::sync::Arc;

use super::Group;
use super::member::{Member, count};
use crate::core::group::records::{ConsumerMemberMetadata, ConsumerRecord, CurrentAssignment, EpochAssignment};
use crate::core::types::TopicId;

impl Group {
    /// What that record says is so. Tombstones of what is not there say nothing.
    pub(in crate::core::group) fn apply(&mut self, record: ConsumerRecord) {
        match record {
            ConsumerRecord::Group(Some(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            // The whole group goes, which is for whoever has it.
            ConsumerRecord::Group(None) => {}
            ConsumerRecord::LegacyTopics { present } => self.has_legacy_topics = present,
            ConsumerRecord::Member { member, value: Some(value) } => self.describe_member(member, *value),
            ConsumerRecord::Member { member, value: None } => self.drop_member(&member),
            ConsumerRecord::Target(Some(value)) => {
                self.target_epoch = value.epoch;
                self.target_computed = value.computed;
            }
            ConsumerRecord::Target(None) => {
                self.target_epoch = -1;
                self.target_computed = None;
            }
            ConsumerRecord::TargetMember { member, value: Some(value) } => _ = self.target.insert(member, value),
            ConsumerRecord::TargetMember { member, value: None } => _ = self.target.remove(&member),
            ConsumerRecord::Current { member, value: Some(value) } => self.place_member(member, value),
            ConsumerRecord::Current { member, value: None } => self.take_partitions(&member),
            ConsumerRecord::Regex { pattern, value: Some(value) } => _ = self.regexes.insert(pattern, value),
            ConsumerRecord::Regex { pattern, value: None } => _ = self.regexes.remove(&pattern),
        }
    }

    fn describe_member(&mut self, id: Arc<str>, mut meta: ConsumerMemberMetadata) {
        // Kafka writes an empty text for none.
        meta.regex = meta.regex.filter(|regex| !regex.is_empty());
        let member = self.members.entry(id.clone()).or_insert_with(|| Box::new(Member::new()));
        let old = std::mem::replace(&mut member.meta, meta.clone());
        self.count_member(&old, false);
        self.count_member(&meta, true);
        if let Some(instance) = old.instance.filter(|old| meta.instance.as_ref() != Some(old))
            && self.statics.get(&instance) == Some(&id)
        {
            self.statics.remove(&instance);
        }
        if let Some(instance) = meta.instance {
            self.statics.insert(instance, id);
        }
    }

    fn drop_member(&mut self, id: &Arc<str>) {
        self.take_partitions(id);
        let Some(member) = self.members.remove(id) else {
            return;
        };
        self.count_member(&member.meta, false);
        if let Some(instance) = &member.meta.instance
            && self.statics.get(instance) == Some(id)
        {
            self.statics.remove(instance);
        }
    }

    fn count_member(&mut self, meta: &ConsumerMemberMetadata, coming: bool) {
        meta.topics.iter().for_each(|topic| count(&mut self.names, topic, coming));
        meta.regex.iter().for_each(|regex| count(&mut self.expressions, regex, coming));
        meta.server_assignor.iter().for_each(|assignor| count(&mut self.assignors, assignor, coming));
        if let Some(classic) = &meta.classic {
            self.classic_members = if coming { self.classic_members + 1 } else { self.classic_members - 1 };
            classic.protocols.iter().for_each(|protocol| count(&mut self.classic_protocols, &protocol.name, coming));
        }
    }

    fn place_member(&mut self, id: Arc<str>, current: CurrentAssignment) {
        self.take_partitions(&id);
        for (topic, index) in partitions(&current.assigned).chain(partitions(&current.revoking)) {
            self.owned.entry(topic).or_default().insert(index, current.epoch);
        }
        self.members.entry(id).or_insert_with(|| Box::new(Member::new())).current = current;
    }

    /// What a member has is free, as far as nobody else has taken it at another epoch.
    fn take_partitions(&mut self, id: &str) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        let current = &mut member.current;
        let (assigned, revoking) = (std::mem::take(&mut current.assigned), std::mem::take(&mut current.revoking));
        for (topic, index) in partitions(&assigned).chain(partitions(&revoking)) {
            if let Some(epochs) = self.owned.get_mut(&topic)
                && epochs.get(&index) == Some(&current.epoch)
            {
                epochs.remove(&index);
                if epochs.is_empty() {
                    self.owned.remove(&topic);
                }
            }
        }
    }
}

fn partitions(assignment: &EpochAssignment) -> impl Iterator<Item = (TopicId, i32)> {
    assignment.iter().flat_map(|(topic, indexes)| indexes.keys().map(move |index| (*topic, *index)))
}
