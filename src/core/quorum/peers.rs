//! Who was asked what and has not answered yet. One request for each peer, and one fetch for all (`kraft.md` 3.11): else the same offset
//! could be appended twice.

use super::message::Serial;
use super::records::SnapshotId;
use crate::core::types::{BrokerId, Millis};
use std::collections::BTreeMap;

/// What was asked, as far as the answer needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Vote,
    BeginEpoch,
    EndEpoch,
    Fetch,
    Snapshot { id: SnapshotId, position: u64 },
}

impl Asked {
    fn is_fetch(self) -> bool {
        matches!(self, Asked::Fetch | Asked::Snapshot { .. })
    }
}

#[derive(Debug, Default)]
struct Peer {
    in_flight: Option<(Serial, Asked, Millis)>,
    not_before: Option<Millis>,
    /// It did not answer, or not as who it was taken for.
    doubted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Peers {
    peers: BTreeMap<BrokerId, Peer>,
    last: u64,
}

impl Peers {
    /// Forgets all that is under way: answers to it belong to a state that is over.
    pub(super) fn reset(&mut self) {
        self.peers.clear();
    }

    /// Whether a request may go there now.
    pub(super) fn ready(&self, id: BrokerId) -> bool {
        self.peers.get(&id).is_none_or(|peer| peer.in_flight.is_none() && peer.not_before.is_none())
    }

    /// It did not answer, or not as who it was taken for.
    pub(super) fn doubt(&mut self, id: BrokerId) {
        self.peers.entry(id).or_default().doubted = true;
    }

    /// Whether somebody else should be asked first; that once.
    pub(super) fn take_doubt(&mut self, id: BrokerId) -> bool {
        self.peers.get_mut(&id).is_some_and(|peer| std::mem::take(&mut peer.doubted))
    }

    /// Whether anything is in flight.
    pub(super) fn busy(&self) -> bool {
        self.peers.values().any(|peer| peer.in_flight.is_some())
    }

    /// Whether a fetch is in flight, of records or of a snapshot.
    pub(super) fn fetching(&self) -> bool {
        self.peers.values().any(|peer| peer.in_flight.is_some_and(|(_, asked, _)| asked.is_fetch()))
    }

    pub(super) fn begin(&mut self, id: BrokerId, asked: Asked, deadline: Millis) -> Serial {
        self.last += 1;
        let serial = Serial(self.last);
        self.peers.entry(id).or_default().in_flight = Some((serial, asked, deadline));
        serial
    }

    /// The answer to `serial` is here; what was asked, unless it was given up.
    pub(super) fn answered(&mut self, id: BrokerId, serial: Serial) -> Option<Asked> {
        let peer = self.peers.get_mut(&id)?;
        let (_, asked, _) = peer.in_flight.filter(|(waiting, ..)| *waiting == serial)?;
        peer.in_flight = None;
        peer.doubted = false;
        Some(asked)
    }

    pub(super) fn back_off(&mut self, id: BrokerId, until: Millis) {
        self.peers.entry(id).or_default().not_before = Some(until);
    }

    /// Gives up what took too long and ends pauses that are over.
    pub(super) fn expire(&mut self, now: Millis) {
        for peer in self.peers.values_mut() {
            if peer.in_flight.is_some_and(|(.., deadline)| deadline <= now) {
                peer.in_flight = None;
                peer.doubted = true;
            }
            if peer.not_before.is_some_and(|until| until <= now) {
                peer.not_before = None;
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        let of = |peer: &Peer| peer.in_flight.map(|(.., deadline)| deadline).into_iter().chain(peer.not_before).min();
        self.peers.values().filter_map(of).min()
    }
}
