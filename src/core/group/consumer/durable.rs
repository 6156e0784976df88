//! A consumer group as the records that would make it: what two groups are compared by.

use super::Group;
use crate::core::group::records::{ConsumerGroupMetadata, ConsumerRecord, TargetMetadata};

impl Group {
    /// The records that make the group as it is.
    pub(in crate::core::group) fn records(&self) -> Vec<ConsumerRecord> {
        let mut all = Vec::new();
        let members = || self.members.iter().map(|(id, member)| (id.clone(), member));
        all.extend(members().map(|(id, member)| ConsumerRecord::Member { member: id, value: Some(Box::new(member.meta.clone())) }));
        all.extend(
            self.regexes.iter().map(|(pattern, regex)| ConsumerRecord::Regex { pattern: pattern.clone(), value: Some(regex.clone()) }),
        );
        all.push(ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch: self.epoch, metadata_hash: self.metadata_hash })));
        let target = self.target.iter();
        all.extend(target.map(|(id, shall)| ConsumerRecord::TargetMember { member: id.clone(), value: Some(shall.clone()) }));
        all.push(ConsumerRecord::Target(Some(TargetMetadata { epoch: self.target_epoch, computed: self.target_computed })));
        all.extend(members().map(|(id, member)| ConsumerRecord::Current { member: id, value: Some(member.current.clone()) }));
        all
    }
}
