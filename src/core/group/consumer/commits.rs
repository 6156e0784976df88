//! Whether a member may commit offsets, or ask for them. Members of both protocols.

use super::Group;
use super::member::{Member, epoch_of};
use crate::core::group::request::{Commit, Fetch, Why};

impl Group {
    /// Whether those offsets may be stored: all of them, or none is.
    pub(in crate::core::group) fn may_commit(&self, commit: &Commit) -> Result<(), Why> {
        let from = &commit.from;
        if from.generation < 0 && self.members.is_empty() {
            // An operator, or somebody who assigns itself.
            return Ok(());
        }
        let member = self.members.get(&from.member).ok_or(Why::UnknownMemberId)?;
        if !member.is_classic() && !commit.knows_epochs {
            return Err(Why::UnsupportedVersion);
        }
        let current = &member.current;
        if from.generation == current.epoch {
            return Ok(());
        }
        // Later than the partition came to it, it is still the owner's commit, though from before the last epoch (KIP-1251).
        let held_since = |topic, index| epoch_of(&current.assigned, topic, index).or_else(|| epoch_of(&current.revoking, topic, index));
        let old = from.generation < current.epoch;
        let all = commit.topics.iter().all(|rows| {
            let indexes = rows.partitions.iter().map(|(index, _)| *index);
            indexes.into_iter().all(|index| held_since(rows.id, index).is_some_and(|since| from.generation >= since))
        });
        if old && all { Ok(()) } else { Err(stale(member)) }
    }

    /// Whether that member may ask for the group's offsets.
    pub(in crate::core::group) fn may_fetch(&self, fetch: &Fetch) -> Result<(), Why> {
        let (id, epoch) = match &fetch.member {
            None if fetch.epoch < 0 => return Ok(()),
            None => return Err(Why::UnknownMemberId),
            Some(id) => (id, fetch.epoch),
        };
        let member = self.members.get(id).ok_or(Why::UnknownMemberId)?;
        if epoch == member.current.epoch { Ok(()) } else { Err(stale(member)) }
    }
}

fn stale(member: &Member) -> Why {
    if member.is_classic() { Why::IllegalGeneration } else { Why::StaleMemberEpoch }
}
