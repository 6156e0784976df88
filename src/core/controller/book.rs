//! The election book: what was elected lately, why, and how long it took. Kept by the active controller, bounded, lost with the process;
//! decisions made by others, or before a restart, are not in it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::election::Election;
use crate::core::types::{Millis, Offset};

/// Elections that the book remembers.
pub const MAX_ELECTIONS: usize = 4096;

/// An election and its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What was elected.
    pub election: Election,
    /// The topic's name then.
    pub topic: Arc<str>,
    /// When this controller learned of what made it necessary.
    pub detected: Millis,
    /// When it was decided.
    pub decided: Millis,
    /// When it was committed.
    pub committed: Millis,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    /// Decided and not yet committed, with the last offset that must be; oldest first.
    open: VecDeque<(Offset, Vec<Entry>)>,
    /// Committed, oldest first.
    done: VecDeque<Arc<Entry>>,
}

impl Book {
    /// Notes what one decision elects; it counts when `upto` is committed.
    pub fn decided(&mut self, upto: Offset, entries: Vec<Entry>) {
        if !entries.is_empty() {
            self.open.push_back((upto, entries));
        }
    }

    /// Everything up to `upto` is committed: returns the elections that are final by that, in order.
    pub fn committed(&mut self, upto: Offset, now: Millis) -> Vec<Arc<Entry>> {
        let mut finals = Vec::new();
        while self.open.front().is_some_and(|(last, _)| *last <= upto) {
            let Some((_, entries)) = self.open.pop_front() else { break };
            finals.extend(entries.into_iter().map(|entry| Arc::new(Entry { committed: now, ..entry })));
        }
        let kept = finals.len().min(MAX_ELECTIONS);
        let room = MAX_ELECTIONS - kept;
        self.done.drain(..self.done.len().saturating_sub(room));
        self.done.extend(finals[finals.len() - kept..].iter().cloned());
        finals
    }

    /// This controller is not the active one any more: what was not committed may never be.
    pub fn resigned(&mut self) {
        self.open.clear();
    }

    /// The elections, latest first.
    pub fn latest(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.done.iter().rev()
    }
}
