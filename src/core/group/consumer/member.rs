//! One member of a consumer group.

use std::sync::Arc;

use crate::core::group::records::{ConsumerMemberMetadata, CurrentAssignment, EpochAssignment, MemberState};
use crate::core::group::request::Protocol;
use crate::core::group::timers::Slot;
use crate::core::types::TopicId;

/// A member.
#[derive(Debug, Clone)]
pub(in crate::core::group) struct Member {
    /// What it said of itself.
    pub(super) meta: ConsumerMemberMetadata,
    /// Where it stands.
    pub(super) current: CurrentAssignment,
    pub(super) session: Slot,
    /// It has to give up partitions, or (a classic member) to join again.
    pub(super) progress: Slot,
    /// A classic member has to ask for its assignment.
    pub(super) sync: Slot,
}

impl Member {
    /// A member that nothing is known of yet.
    pub(super) fn new() -> Member {
        Member {
            meta: ConsumerMemberMetadata {
                instance: None,
                rack: None,
                client_id: "".into(),
                client_host: "".into(),
                topics: Default::default(),
                regex: None,
                rebalance_timeout: -1,
                server_assignor: None,
                classic: None,
            },
            current: CurrentAssignment {
                epoch: 0,
                previous_epoch: -1,
                state: MemberState::Stable,
                assigned: EpochAssignment::new(),
                revoking: EpochAssignment::new(),
            },
            session: Slot::default(),
            progress: Slot::default(),
            sync: Slot::default(),
        }
    }

    pub(super) fn is_classic(&self) -> bool {
        self.meta.classic.is_some()
    }

    /// Of a classic member, in its order.
    pub(super) fn protocols(&self) -> &[Protocol] {
        self.meta.classic.as_ref().map_or(&[], |classic| &classic.protocols)
    }

    /// Nothing remains to be done up to that target.
    pub(super) fn is_reconciled_to(&self, epoch: i32) -> bool {
        self.current.state == MemberState::Stable && self.current.epoch == epoch
    }
}

/// The epoch at which a partition was assigned.
pub(super) fn epoch_of(partitions: &EpochAssignment, topic: TopicId, partition: i32) -> Option<i32> {
    partitions.get(&topic)?.get(&partition).copied()
}

/// Whether all of `owned` is in `partitions`.
pub(super) fn has_all(partitions: &EpochAssignment, owned: &[(TopicId, Vec<i32>)]) -> bool {
    owned.iter().all(|(topic, indexes)| indexes.iter().all(|index| epoch_of(partitions, *topic, *index).is_some()))
}

/// Whether any of `owned` is in `partitions`.
pub(super) fn has_any(partitions: &EpochAssignment, owned: &[(TopicId, Vec<i32>)]) -> bool {
    owned.iter().any(|(topic, indexes)| indexes.iter().any(|index| epoch_of(partitions, *topic, *index).is_some()))
}

/// Counts one more, or one less, of a thing that members have in common.
pub(super) fn count(counts: &mut std::collections::BTreeMap<Arc<str>, usize>, name: &Arc<str>, coming: bool) {
    if coming {
        *counts.entry(name.clone()).or_default() += 1;
    } else if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}
