//! Records that are on their way into the log, and what is to happen when they are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::classic::{Group, Replaced};
use super::request::{Answer, Effect, Settings, Ticket, Why, WriteId};
use super::timers::Timers;
use super::{CommittedOffset, GroupRecord};
use crate::core::types::Millis;

/// What follows a write.
#[derive(Debug)]
pub(super) enum Then {
    /// Nothing: the records only tell the next coordinator.
    Nothing,
    /// This answer, or a refusal of the same kind.
    Answer(Ticket, Answer),
    /// A group was made for that ticket: if it cannot be written, whoever still waits for it is told.
    Created { group: Arc<str>, ticket: Ticket },
    /// The leader's assignment is handed out, if the group is still in that generation.
    Assign { group: Arc<str>, generation: i32, assignment: BTreeMap<Arc<str>, Bytes> },
    /// A static member came back under a new id; undone if it cannot be written.
    Replaced(Replaced),
    /// Groups were taken out; those that cannot be deleted come back.
    Deleted { answer: Option<(Ticket, Answer)>, groups: Vec<Group> },
}

/// One write.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) records: Arc<[GroupRecord]>,
    pub(super) then: Then,
    due: Millis,
    /// Those who waited have been answered already.
    overdue: bool,
}

/// All writes under way.
#[derive(Debug, Default)]
pub(super) struct Writes {
    last: u64,
    by_id: BTreeMap<WriteId, Write>,
    /// No write before this one still has somebody waiting.
    waiting_from: u64,
}

impl Writes {
    /// Takes out a write that is done.
    pub(super) fn take(&mut self, id: WriteId) -> Option<Write> {
        self.by_id.remove(&id)
    }

    /// Takes what was to follow the next write that has taken too long. The write itself is still under way.
    pub(super) fn overdue(&mut self, now: Millis) -> Option<Then> {
        let (id, write) = self.by_id.range_mut(WriteId(self.waiting_from)..).find(|(_, write)| !write.overdue)?;
        self.waiting_from = id.0;
        if write.due > now {
            return None;
        }
        write.overdue = true;
        if let Then::Deleted { answer, .. } = &mut write.then {
            // It may still succeed: until that is known the groups stay out.
            return answer.take().map_or(Some(Then::Nothing), |(ticket, answer)| Some(Then::Answer(ticket, answer)));
        }
        Some(std::mem::replace(&mut write.then, Then::Nothing))
    }

    /// When the next write has taken too long.
    pub(super) fn next_due(&self) -> Option<Millis> {
        self.by_id.range(WriteId(self.waiting_from)..).find(|(_, write)| !write.overdue).map(|(_, write)| write.due)
    }

    /// The oldest under way.
    pub(super) fn oldest(&self) -> Option<WriteId> {
        self.by_id.first_key_value().map(|(id, _)| *id)
    }

    /// The newest under way, if any under way concerns offsets of that group.
    pub(super) fn newest_if_any_of(&self, group: &str) -> Option<WriteId> {
        let (newest, _) = self.by_id.last_key_value()?;
        self.offsets().any(|(of, _, _, _)| &**of == group).then_some(*newest)
    }

    /// The offsets under way: group, topic, partition, value.
    pub(super) fn offsets(&self) -> impl Iterator<Item = OffsetInFlight<'_>> {
        self.by_id.values().flat_map(offsets)
    }

    /// All that was to follow.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Then> + use<> {
        std::mem::take(&mut self.by_id).into_values().map(|write| write.then)
    }
}

type OffsetInFlight<'a> = (&'a Arc<str>, &'a Arc<str>, i32, Option<&'a CommittedOffset>);

fn offsets(write: &Write) -> impl Iterator<Item = OffsetInFlight<'_>> {
    write.records.iter().filter_map(|record| match record {
        GroupRecord::Offset { group, topic, partition, value } => Some((group, topic, *partition, value.as_ref())),
        GroupRecord::Group { .. } | GroupRecord::Consumer { .. } => None,
    })
}

/// What a rule needs besides the group it is about.
pub(super) struct Cx<'a> {
    pub(super) now: Millis,
    pub(super) settings: &'a Settings,
    pub(super) timers: &'a mut Timers,
    pub(super) writes: &'a mut Writes,
    pub(super) fx: &'a mut Vec<Effect>,
}

impl Cx<'_> {
    /// Answers.
    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.fx.push(Effect::Answer(ticket, answer));
    }

    /// Appends, and then does what follows. Nothing to append: it follows at once if it is an answer.
    pub(super) fn write(&mut self, records: impl Into<Arc<[GroupRecord]>>, then: Then) {
        let records = records.into();
        if records.is_empty() {
            if let Then::Answer(ticket, answer) = then {
                self.answer(ticket, answer);
            }
            return;
        }
        self.writes.last += 1;
        let id = WriteId(self.writes.last);
        self.fx.push(Effect::Append(id, records.clone()));
        let due = Millis(self.now.0 + self.settings.write_timeout);
        self.writes.by_id.insert(id, Write { records, then, due, overdue: false });
    }

    /// `millis` from now.
    pub(super) fn after(&self, millis: i32) -> Millis {
        Millis(self.now.0 + i64::from(millis.max(0)))
    }
}

/// The same kind of answer, refusing everything.
pub(super) fn refused(answer: &Answer, why: Why) -> Answer {
    match answer {
        Answer::Join(Ok(joined)) => Answer::Join(Err(super::request::JoinRefused { why, member: joined.member.clone() })),
        Answer::Join(Err(refused)) => Answer::Join(Err(super::request::JoinRefused { why, member: refused.member.clone() })),
        Answer::Sync(_) => Answer::Sync(Err(why)),
        Answer::Heartbeat(_) => Answer::Heartbeat(Err(why)),
        Answer::Leave(_) => Answer::Leave(Err(why)),
        Answer::Commit(_) => Answer::Commit(Err(why)),
        Answer::Fetch(_) => Answer::Fetch(Err(why)),
        Answer::DeleteOffsets(_) => Answer::DeleteOffsets(Err(why)),
        Answer::Describe(_) => Answer::Describe(Err(why)),
        Answer::List(_) => Answer::List(Err(why)),
        Answer::DeleteGroups(_) => Answer::DeleteGroups(Err(why)),
    }
}
