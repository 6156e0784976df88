//! Records that are on their way into the log, and what is to happen when they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::any::Group;
use super::classic::Replaced;
use super::request::{Answer, Effect, Settings, Ticket, Why, WriteId};
use super::timers::Timers;
use super::topics::World;
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
    /// Further answers that wait for it.
    also: Vec<(Ticket, Answer)>,
    due: Millis,
    /// Those who waited have been answered already.
    overdue: bool,
}

impl Write {
    /// All that was to follow.
    pub(super) fn followers(self) -> impl Iterator<Item = Then> + use<> {
        let also = self.also.into_iter().map(|(ticket, answer)| Then::Answer(ticket, answer));
        [self.then].into_iter().chain(also)
    }
}

/// All writes under way.
#[derive(Debug, Default)]
pub(super) struct Writes {
    last: u64,
    by_id: BTreeMap<WriteId, Write>,
    /// No write before this one still has somebody waiting.
    waiting_from: u64,
    /// Of writes that failed about groups whose state in memory stands all the same: what is to be written with the next of the group.
    owed: BTreeMap<Arc<str>, Owed>,
}

/// What a group owes.
#[derive(Debug)]
struct Owed {
    records: Vec<GroupRecord>,
    /// How many go out at a time.
    per_write: usize,
}

/// Records that are owed go out so many at a time: that they were too many may be why they failed.
const OWED_PER_WRITE: usize = 200;

impl Writes {
    /// Takes out a write that is done.
    pub(super) fn take(&mut self, id: WriteId) -> Option<Write> {
        self.by_id.remove(&id)
    }

    /// That write of a consumer group failed. What it says of the group is so in memory, and later records go on from there; so it is owed,
    /// as far as no write under way says otherwise. Offsets are not: in memory they are what is committed, and a later commit counts. It
    /// is tried again in halves, so that one record that is never taken keeps no other out for long.
    pub(super) fn owe(&mut self, id: WriteId, records: &[GroupRecord]) {
        let later: Vec<_> = self.by_id.range(WriteId(id.0 + 1)..).flat_map(|(_, write)| write.records.iter()).collect();
        let per_write = (records.len() / 2).clamp(1, OWED_PER_WRITE);
        let of_groups = records.iter().filter(|record| !matches!(record, GroupRecord::Offset { .. }));
        for record in of_groups.filter(|record| !later.iter().any(|later| later.says_the_same_thing(record))) {
            let owed = self.owed.entry(record.group().clone()).or_insert_with(|| Owed { records: Vec::new(), per_write });
            owed.per_write = owed.per_write.min(per_write);
            owed.records.retain(|earlier| !earlier.says_the_same_thing(record));
            owed.records.push(record.clone());
        }
    }

    /// That group is gone from the log: nothing of it is owed.
    pub(super) fn forgive(&mut self, group: &str) {
        self.owed.remove(group);
    }

    /// Takes what was to follow the next write that has taken too long. The write itself is still under way.
    pub(super) fn overdue(&mut self, now: Millis) -> Option<Then> {
        let (id, write) = self.by_id.range_mut(WriteId(self.waiting_from)..).find(|(_, write)| !write.overdue)?;
        self.waiting_from = id.0;
        if write.due > now {
            return None;
        }
        write.overdue = true;
        if let Some((ticket, answer)) = write.also.pop() {
            write.overdue = false;
            return Some(Then::Answer(ticket, answer));
        }
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
        let all = std::mem::take(&mut self.by_id).into_values();
        all.flat_map(|write| write.followers())
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
    pub(super) world: &'a mut World,
    pub(super) fx: &'a mut Vec<Effect>,
}

impl Cx<'_> {
    /// Answers.
    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.fx.push(Effect::Answer(ticket, answer));
    }

    /// Answers as soon as that write is there, if it is still under way.
    pub(super) fn answer_after(&mut self, write: Option<WriteId>, ticket: Ticket, answer: Answer) {
        match write.and_then(|write| self.writes.by_id.get_mut(&write)) {
            Some(write) if write.overdue => self.answer(ticket, refused(&answer, Why::CoordinatorNotAvailable)),
            Some(write) => write.also.push((ticket, answer)),
            None => self.answer(ticket, answer),
        }
    }

    /// Appends, and then does what follows. Nothing to append: it follows at once if it is an answer.
    pub(super) fn write(&mut self, records: impl Into<Arc<[GroupRecord]>>, then: Then) -> Option<WriteId> {
        let records = records.into();
        if records.is_empty() {
            if let Then::Answer(ticket, answer) = then {
                self.answer(ticket, answer);
            }
            return None;
        }
        if !self.writes.owed.is_empty() {
            let of_groups = records.iter().filter(|record| !matches!(record, GroupRecord::Offset { .. }));
            let groups: BTreeSet<Arc<str>> = of_groups.map(|record| record.group().clone()).collect();
            groups.iter().for_each(|group| _ = self.write_owed(group));
        }
        Some(self.append(records, then))
    }

    /// Appends what that group owes, if it owes anything. Returns the last of those writes.
    pub(super) fn write_owed(&mut self, group: &str) -> Option<WriteId> {
        let Owed { records, per_write } = self.writes.owed.remove(group)?;
        records.chunks(per_write).map(|some| self.append(some.into(), Then::Nothing)).last()
    }

    fn append(&mut self, records: Arc<[GroupRecord]>, then: Then) -> WriteId {
        self.writes.last += 1;
        let id = WriteId(self.writes.last);
        self.fx.push(Effect::Append(id, records.clone()));
        let due = Millis(self.now.0 + self.settings.write_timeout);
        self.writes.by_id.insert(id, Write { records, then, also: Vec::new(), due, overdue: false });
        id
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
        Answer::Beat(_) => Answer::Beat(Err(why.into())),
        Answer::DescribeConsumers(_) => Answer::DescribeConsumers(Err(why)),
    }
}
