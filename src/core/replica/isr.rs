//! The in-sync replicas as their leader knows them: what the controller has decided, and the one change it was asked for.

use crate::core::types::{BrokerId, Epoch};

/// Committed ISR and the change under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Isr {
    committed: Vec<BrokerId>,
    proposed: Option<Vec<BrokerId>>,
}

/// What the controller said to a proposal (AlterPartition).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It is decided.
    Decided {
        /// The leader epoch of the partition after it.
        epoch: Epoch,
        /// Its partition epoch.
        partition_epoch: Epoch,
        /// The ISR.
        isr: Vec<BrokerId>,
    },
    /// It was refused, or nobody answered.
    Refused(ProposalRefused),
}

/// What a refusal of a proposal means to the leader (semantics reference, 3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalRefused {
    /// INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED: the ISR is what it was.
    Dropped,
    /// The controller knows more than this leader (UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST,
    /// NEW_LEADER_ELECTED): nothing is safe to assume until its metadata arrives.
    Outdated,
    /// Anything else: whether it was decided is unknown, so it is asked again.
    Again,
}

impl Isr {
    pub fn new(committed: Vec<BrokerId>) -> Isr {
        Isr { committed, proposed: None }
    }

    /// What the controller has decided.
    pub fn committed(&self) -> &[BrokerId] {
        &self.committed
    }

    /// The change under way.
    pub fn proposed(&self) -> Option<&[BrokerId]> {
        self.proposed.as_deref()
    }

    /// Whoever may be in the ISR by now, whatever the controller decides: what is committed must be on all of them.
    pub fn in_maximal(&self, id: BrokerId) -> bool {
        self.committed.contains(&id) || self.proposed.as_ref().is_some_and(|proposed| proposed.contains(&id))
    }

    /// How many may be in it.
    pub fn maximal_len(&self) -> usize {
        let joining = self.proposed.iter().flatten().filter(|id| !self.committed.contains(id)).count();
        self.committed.len() + joining
    }

    pub fn propose(&mut self, isr: Vec<BrokerId>) {
        assert!(self.proposed.is_none(), "one change of an ISR at a time");
        self.proposed = Some(isr);
    }

    pub fn drop_proposal(&mut self) {
        self.proposed = None;
    }

    pub fn commit(&mut self, isr: Vec<BrokerId>) {
        *self = Isr::new(isr);
    }
}
