//! One member of a classic group.

use std::sync::Arc;

use bytes::Bytes;

use crate::core::group::request::{Protocol, Ticket};
use crate::core::group::timers::Slot;

/// A member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) instance: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) session_timeout: i32,
    pub(super) rebalance_timeout: i32,
    /// In the member's order of preference.
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// Waits for the generation to be complete. Change it only through the group, which counts.
    pub(super) join: Option<Ticket>,
    /// Waits for its assignment.
    pub(super) sync: Option<Ticket>,
    /// Has never been in a generation.
    pub(super) is_new: bool,
    pub(super) session: Slot,
}

impl Member {
    /// What it says to the one who assigns by that protocol.
    pub(super) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let own = self.protocols.iter().find(|own| Some(&*own.name) == protocol);
        own.map(|own| own.metadata.clone()).unwrap_or_default()
    }

    /// Whether the silence of its session is to be held against it. One that waits for us cannot speak; but a new one has no id yet, and
    /// its client may be gone.
    pub(super) fn is_silent(&self) -> bool {
        self.is_new || (self.join.is_none() && self.sync.is_none())
    }
}

/// A copy of those protocols that keeps no request in memory.
pub(in crate::core::group) fn kept(protocols: &[Protocol]) -> Vec<Protocol> {
    protocols.iter().map(|p| Protocol { name: p.name.clone(), metadata: Bytes::copy_from_slice(&p.metadata) }).collect()
}
