//! A group as an operator wants to see it when something is stuck: in which state since when, why, and for whom it waits.

use super::Group;
use crate::core::group::request::{GroupView, Kind, State};

/// Members that a view names at most.
const NAMED: usize = 5;

impl Group {
    /// What there is to say.
    pub(in crate::core::group) fn view(&self) -> GroupView<'_> {
        let (missing, awaited): (usize, Vec<&str>) = match self.state {
            State::PreparingRebalance => {
                let late = self.members.iter().filter(|(_, member)| member.join.is_none()).map(|(id, _)| id);
                let late = late.chain(self.pending.keys()).map(|id| &**id);
                (self.members.len() - self.joining + self.pending.len(), late.take(NAMED).collect())
            }
            _ => (self.unsynced.len(), self.unsynced.iter().map(|id| &**id).take(NAMED).collect()),
        };
        GroupView {
            group: &self.id,
            protocol_type: self.protocol_type.as_deref().unwrap_or_default(),
            kind: Kind::Classic,
            state: self.state,
            since: self.since,
            generation: self.generation,
            members: self.members.len(),
            reason: &self.reason,
            missing,
            awaited,
        }
    }
}
