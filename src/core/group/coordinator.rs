//! The groups of one partition: requests in, effects out.

use std::collections::BTreeSet;

use super::request::DeletedTopic;
use super::{Effect, GroupRecord, Request, Settings, Ticket, Why, WriteId};
use crate::core::chance::Chance;
use crate::core::types::Millis;

/// The coordinator of the groups of one partition of `__consumer_offsets`, as long as this broker leads it.
///
/// Life: [`new`](Self::new), [`replay`](Self::replay) each record of the partition up to its log end, [`loaded`](Self::loaded); then
/// [`ask`](Self::ask), [`committed`](Self::committed) or [`failed`](Self::failed) for each [`Effect::Append`] (in the order of the appends,
/// except that failures may come earlier), [`tick`](Self::tick) at [`deadline`](Self::deadline); at last [`unload`](Self::unload).
pub struct Coordinator {
    settings: Settings,
    waiting: BTreeSet<Ticket>,
}

impl Coordinator {
    /// A coordinator that has read nothing yet.
    pub fn new(settings: Settings) -> Coordinator {
        Coordinator { settings, waiting: BTreeSet::new() }
    }

    /// Takes in a record that the partition holds. Only before [`loaded`](Self::loaded).
    pub fn replay(&mut self, _record: GroupRecord) {}

    /// All records are read: sessions of the loaded members start now.
    pub fn loaded(&mut self, _now: Millis, _fx: &mut Vec<Effect>) {}

    /// Decides on a request. The answer may be among the effects, or come later.
    pub fn ask(&mut self, ticket: Ticket, request: Request, _now: Millis, _chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        fx.push(Effect::Answer(ticket, request.refusal(Why::NotCoordinator)));
    }

    /// The records of that write are committed.
    pub fn committed(&mut self, _write: WriteId, _now: Millis, _fx: &mut Vec<Effect>) {}

    /// The records of that write are not in the log: `why` is what those who wait for it are told.
    pub fn failed(&mut self, _write: WriteId, _why: Why, _now: Millis, _fx: &mut Vec<Effect>) {}

    /// Topics were deleted: their offsets go. From whoever sees the metadata; to every coordinator.
    pub fn topics_deleted(&mut self, _topics: &[DeletedTopic], _now: Millis, _fx: &mut Vec<Effect>) {}

    /// Does what is due: sessions, rebalances, offsets that expire, writes that take too long.
    pub fn tick(&mut self, _now: Millis, _fx: &mut Vec<Effect>) {}

    /// When [`tick`](Self::tick) is due next. It may change with every call.
    pub fn deadline(&self) -> Option<Millis> {
        (self.settings.write_timeout < 0).then_some(Millis(0))
    }

    /// This broker leads the partition no longer: everybody who waits is answered NOT_COORDINATOR.
    pub fn unload(self, fx: &mut Vec<Effect>) {
        let _ = (self.waiting, &fx);
    }
}
