//! The next step of one member towards its target assignment.

use std::collections::{BTreeMap, BTreeSet};

use super::member::has_any;
use crate::core::group::assign::Assignment;
use crate::core::group::records::{CurrentAssignment, EpochAssignment, MemberState};
use crate::core::types::TopicId;

/// What the step depends on besides the member.
pub(super) struct Step<'a> {
    /// The epoch of the target assignment.
    pub(super) epoch: i32,
    /// What the member shall have.
    pub(super) target: &'a Assignment,
    /// The topics that the member reads.
    pub(super) subscribed: &'a BTreeSet<TopicId>,
    /// The member reads other topics than before.
    pub(super) changed: bool,
    /// What the member says that it has; `None` if it did not say.
    pub(super) owned: Option<&'a [(TopicId, Vec<i32>)]>,
    /// The epochs of the owners of partitions.
    pub(super) epochs: &'a BTreeMap<TopicId, BTreeMap<i32, i32>>,
}

impl Step<'_> {
    /// Where the member stands after the step, which may be where it stands.
    pub(super) fn take(&self, current: &CurrentAssignment) -> CurrentAssignment {
        match current.state {
            MemberState::Stable if current.epoch != self.epoch => self.next(current, current.epoch),
            MemberState::Stable if self.changed => self.unsubscribe(current),
            MemberState::Stable => current.clone(),
            MemberState::UnrevokedPartitions if self.still_has(&current.revoking) => {
                if self.changed {
                    self.unsubscribe(current)
                } else {
                    current.clone()
                }
            }
            MemberState::UnrevokedPartitions | MemberState::UnreleasedPartitions => self.next(current, current.epoch),
            // Whoever let it come here has seen that it has nothing any more.
            MemberState::Unknown => self.next(current, self.epoch),
        }
    }

    /// Whether the member still has any of those, as far as it says.
    fn still_has(&self, revoking: &EpochAssignment) -> bool {
        self.owned.is_none_or(|owned| has_any(revoking, owned))
    }

    /// Takes away what the member does not read any more, and leaves the rest to the next target.
    fn unsubscribe(&self, current: &CurrentAssignment) -> CurrentAssignment {
        let mut next = current.clone();
        next.assigned.retain(|topic, _| self.subscribed.contains(topic));
        if next.assigned.len() == current.assigned.len() {
            return next;
        }
        let mut revoking = current.revoking.clone();
        for (topic, indexes) in &current.assigned {
            if !self.subscribed.contains(topic) {
                revoking.entry(*topic).or_default().extend(indexes);
            }
        }
        next.previous_epoch = current.epoch;
        if self.still_has(&revoking) {
            next.state = MemberState::UnrevokedPartitions;
            next.revoking = revoking;
        }
        next
    }

    fn next(&self, current: &CurrentAssignment, epoch: i32) -> CurrentAssignment {
        let nothing = BTreeSet::new();
        let (mut kept, mut revoking, mut coming) = (EpochAssignment::new(), EpochAssignment::new(), EpochAssignment::new());
        let mut waits = false;
        let topics: BTreeSet<&TopicId> = self.target.keys().chain(current.assigned.keys()).collect();
        for topic in topics {
            let target = self.target.get(topic).filter(|_| self.subscribed.contains(topic)).unwrap_or(&nothing);
            let assigned = current.assigned.get(topic);
            for (index, since) in assigned.into_iter().flatten() {
                let to = if target.contains(index) { &mut kept } else { &mut revoking };
                to.entry(*topic).or_default().insert(*index, *since);
            }
            for index in target {
                if assigned.is_some_and(|assigned| assigned.contains_key(index)) {
                    continue;
                }
                let taken = self.epochs.get(topic).is_some_and(|epochs| epochs.contains_key(index));
                // What it is about to give up is its own: nobody else can have it.
                let own = current.revoking.get(topic).is_some_and(|revoking| revoking.contains_key(index));
                if taken && !own {
                    waits = true;
                } else {
                    coming.entry(*topic).or_default().insert(*index, self.epoch);
                }
            }
        }
        if !revoking.is_empty() && self.still_has(&revoking) {
            // It stays in its epoch until it says that it has them no more.
            let state = MemberState::UnrevokedPartitions;
            return CurrentAssignment { epoch, previous_epoch: current.epoch, state, assigned: kept, revoking };
        }
        for (topic, indexes) in coming {
            kept.entry(topic).or_default().extend(indexes);
        }
        let state = if waits { MemberState::UnreleasedPartitions } else { MemberState::Stable };
        CurrentAssignment { epoch: self.epoch, previous_epoch: current.epoch, state, assigned: kept, revoking: EpochAssignment::new() }
    }
}
