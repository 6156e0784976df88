//! The groups of one partition: requests in, effects out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::classic::Group;
use super::offsets::{self, Offsets};
use super::request::{Commit, Effect, Fetch, GroupView, Join, JoinRefused, Leave, Left, List, Sync, Ticket, Why, WriteId};
use super::timers::{Alarm, Timers};
use super::writes::{Cx, Then, Writes, refused};
use super::{Answer, CommittedOffset, GroupRecord, Request, Settings};
use crate::core::chance::Chance;
use crate::core::types::Millis;

/// Groups of one partition at most. Who would make one more is told COORDINATOR_NOT_AVAILABLE.
pub const GROUPS_MAX: usize = 1_000_000;

/// The coordinator of the groups of one partition of `__consumer_offsets`, as long as this broker leads it.
///
/// Life: [`new`](Self::new), [`replay`](Self::replay) each record of the partition up to its log end, [`loaded`](Self::loaded); then
/// [`ask`](Self::ask), [`committed`](Self::committed) or [`failed`](Self::failed) for each [`Effect::Append`] (commits in the order of the
/// appends), [`tick`](Self::tick) at [`deadline`](Self::deadline); at last [`unload`](Self::unload).
pub struct Coordinator {
    pub(super) settings: Settings,
    pub(super) groups: BTreeMap<Arc<str>, Group>,
    pub(super) offsets: Offsets,
    pub(super) writes: Writes,
    timers: Timers,
    /// Questions for offsets that wait until that write and all earlier ones are done.
    parked: BTreeMap<(WriteId, Ticket), (Millis, Fetch)>,
    next_expiry: Option<Millis>,
}

impl Coordinator {
    /// A coordinator that has read nothing yet.
    pub fn new(settings: Settings) -> Coordinator {
        Coordinator {
            settings,
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            writes: Writes::default(),
            timers: Timers::default(),
            parked: BTreeMap::new(),
            next_expiry: None,
        }
    }

    /// Takes in a record that the partition holds. Only before [`loaded`](Self::loaded).
    pub fn replay(&mut self, record: GroupRecord) {
        match record {
            GroupRecord::Offset { group, topic, partition, value } => self.offsets.apply(&group, &topic, partition, value),
            GroupRecord::Group { group, value: Some(value) } => {
                self.groups.insert(group.clone(), Group::from_record(group, value));
            }
            GroupRecord::Group { group, value: None } => {
                self.groups.remove(&group);
            }
        }
    }

    /// All records are read: the sessions of members start now.
    pub fn loaded(&mut self, now: Millis, fx: &mut Vec<Effect>) {
        self.next_expiry = Some(Millis(now.0 + self.settings.retention_check_interval));
        // Consumers without membership write nothing but offsets.
        for id in self.offsets.groups() {
            if !self.groups.contains_key(id) {
                self.groups.insert(id.clone(), Group::new(id.clone(), None));
            }
        }
        let ids: Vec<Arc<str>> = self.groups.keys().cloned().collect();
        ids.iter().for_each(|id| self.step(id, now, fx, Group::loaded));
    }

    /// Decides on a request. The answer is among the effects, now or later.
    pub fn ask(&mut self, ticket: Ticket, request: Request, now: Millis, chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        // Who asks about groups from outside sees no member whose session is over, though the timer may come a little later. Members are
        // not judged that way: after a standstill of the broker what they sent in time is still to be read.
        if matches!(request, Request::Describe(_) | Request::List(_) | Request::DeleteGroups(_) | Request::DeleteOffsets(_)) {
            self.ring(now, fx);
        }
        let answer = match request {
            Request::Heartbeat(from) => Answer::Heartbeat(self.member(&from.group, now, fx, |group, cx| group.heartbeat(&from, cx))),
            Request::Commit(commit) => return self.commit(ticket, commit, now, fx),
            Request::Fetch(fetch) => return self.fetch(ticket, fetch, now, fx),
            Request::Join(join) => {
                self.join(ticket, join, now, chance, fx);
                // No delay may have been asked for.
                return self.ring(now, fx);
            }
            Request::Sync(sync) => return self.sync(ticket, sync, now, fx),
            Request::Leave(leave) => return self.leave(ticket, leave, now, fx),
            Request::DeleteOffsets(request) if !request.group.is_empty() => return self.delete_offsets(ticket, request, now, fx),
            Request::DeleteOffsets(_) => Answer::DeleteOffsets(Err(Why::InvalidGroupId)),
            Request::DeleteGroups(ids) => return self.delete_groups(ticket, ids, now, fx),
            Request::Describe(ids) => Answer::Describe(Ok(ids
                .into_iter()
                .map(|id| {
                    let described = self.groups.get(&id).map(Group::described).ok_or(Why::GroupIdNotFound);
                    (id, described)
                })
                .collect())),
            Request::List(list) => Answer::List(Ok(self.list(&list))),
        };
        fx.push(Effect::Answer(ticket, answer));
    }

    /// Runs what is asked of a member of a group that there must be.
    fn member<T>(
        &mut self,
        id: &str,
        now: Millis,
        fx: &mut Vec<Effect>,
        run: impl FnOnce(&mut Group, &mut Cx<'_>) -> Result<T, Why>,
    ) -> Result<T, Why> {
        if id.is_empty() {
            return Err(Why::InvalidGroupId);
        }
        let mut cx = Cx { now, settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx };
        self.groups.get_mut(id).ok_or(Why::UnknownMemberId).and_then(|group| run(group, &mut cx))
    }

    fn join(&mut self, ticket: Ticket, join: Join, now: Millis, chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        let known = self.groups.contains_key(&join.group);
        let bounds = self.settings.min_session_timeout..=self.settings.max_session_timeout;
        let no = if join.group.is_empty() {
            Some(Why::InvalidGroupId)
        } else if !bounds.contains(&join.session_timeout) {
            Some(Why::InvalidSessionTimeout)
        } else if !known && !join.member.is_empty() {
            Some(Why::UnknownMemberId)
        } else if !known && (join.protocol_type.is_empty() || join.protocols.is_empty()) {
            Some(Why::InconsistentGroupProtocol)
        } else if !known && self.groups.len() >= GROUPS_MAX {
            Some(Why::CoordinatorNotAvailable)
        } else {
            None
        };
        if let Some(why) = no {
            return fx.push(Effect::Answer(ticket, Answer::Join(Err(JoinRefused { why, member: join.member }))));
        }
        let id = join.group.clone();
        let group = self.groups.entry(id.clone()).or_insert_with(|| Group::new(id.clone(), Some(now)));
        let mut cx = Cx { now, settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx };
        if !known {
            // So that the next coordinator knows it.
            cx.write([group.empty_record()], Then::Created { group: id, ticket });
        }
        let record = group.join(ticket, &join, chance, &mut cx);
        cx.write(Vec::from_iter(record), Then::Nothing);
    }

    fn sync(&mut self, ticket: Ticket, sync: Sync, now: Millis, fx: &mut Vec<Effect>) {
        let id = sync.from.group.clone();
        let result = self.member(&id, now, fx, |group, cx| {
            group.sync(ticket, sync, cx);
            Ok(())
        });
        if let Err(why) = result {
            fx.push(Effect::Answer(ticket, Answer::Sync(Err(why))));
        }
    }

    fn leave(&mut self, ticket: Ticket, leave: Leave, now: Millis, fx: &mut Vec<Effect>) {
        let Leave { group, members } = leave;
        if group.is_empty() {
            return fx.push(Effect::Answer(ticket, Answer::Leave(Err(Why::InvalidGroupId))));
        }
        let Some(known) = self.groups.get_mut(&group) else {
            let result = Err(Why::UnknownMemberId);
            let rows = members.into_iter().map(|leaver| Left { member: leaver.member, instance: leaver.instance, result });
            return fx.push(Effect::Answer(ticket, Answer::Leave(Ok(rows.collect()))));
        };
        let mut cx = Cx { now, settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx };
        let (rows, record) = known.leave(members, &mut cx);
        cx.write(Vec::from_iter(record), Then::Answer(ticket, Answer::Leave(Ok(rows))));
    }

    fn commit(&mut self, ticket: Ticket, commit: Commit, now: Millis, fx: &mut Vec<Effect>) {
        let id = &commit.from.group;
        let full = self.groups.len() >= GROUPS_MAX;
        let mut cx = Cx { now, settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx };
        let allowed = match self.groups.get_mut(id) {
            Some(group) => group.may_commit(&commit.from, &mut cx),
            None if commit.from.generation >= 0 => Err(Why::GroupIdNotFound),
            None if full => Err(Why::CoordinatorNotAvailable),
            None => {
                // A consumer that assigns itself. Its group is known by its offsets.
                self.groups.insert(id.clone(), Group::new(id.clone(), Some(now)));
                Ok(())
            }
        };
        if let Err(why) = allowed {
            return cx.answer(ticket, Answer::Commit(Err(why)));
        }
        let (records, rows) = offsets::commit(commit, &self.settings, now);
        cx.write(records, Then::Answer(ticket, Answer::Commit(Ok(rows))));
    }

    fn fetch(&mut self, ticket: Ticket, fetch: Fetch, now: Millis, fx: &mut Vec<Effect>) {
        if fetch.require_stable
            && let Some(write) = self.writes.newest_if_any_of(&fetch.group)
        {
            let due = Millis(now.0 + self.settings.write_timeout);
            self.parked.insert((write, ticket), (due, fetch));
            return;
        }
        fx.push(Effect::Answer(ticket, Answer::Fetch(Ok(self.offsets.fetch(&fetch)))));
    }

    fn list(&self, list: &List) -> Vec<super::request::Listed> {
        let among = |names: &[String], name: &str| names.is_empty() || names.iter().any(|own| own.trim().eq_ignore_ascii_case(name));
        let all = self.groups.values().map(Group::listed);
        all.filter(|group| among(&list.states, group.state.name()) && among(&list.kinds, group.kind.name())).collect()
    }

    /// The records of that write are committed.
    pub fn committed(&mut self, write: WriteId, now: Millis, fx: &mut Vec<Effect>) {
        let Some(write) = self.writes.take(write) else {
            return;
        };
        for record in write.records.iter() {
            // What is in memory of a group is already beyond its record.
            if let GroupRecord::Offset { group, topic, partition, value } = record {
                self.offsets.apply(group, topic, *partition, value.clone());
            }
        }
        self.follow(write.then, Ok(()), now, fx);
        self.unpark(fx);
    }

    /// The records of that write are not in the log: `why` is what those who wait for it are told.
    pub fn failed(&mut self, write: WriteId, why: Why, now: Millis, fx: &mut Vec<Effect>) {
        let Some(write) = self.writes.take(write) else {
            return;
        };
        self.follow(write.then, Err(why), now, fx);
        for record in write.records.iter() {
            // An offset that could not be forgotten needs its group.
            let (GroupRecord::Offset { group, .. } | GroupRecord::Group { group, .. }) = record;
            if self.offsets.has(group) && !self.groups.contains_key(group) {
                self.groups.insert(group.clone(), Group::new(group.clone(), Some(now)));
            }
        }
        self.unpark(fx);
    }

    fn follow(&mut self, then: Then, result: Result<(), Why>, now: Millis, fx: &mut Vec<Effect>) {
        match then {
            Then::Nothing => {}
            Then::Answer(ticket, answer) => {
                let answer = match result {
                    Ok(()) => answer,
                    Err(why) => refused(&answer, why),
                };
                fx.push(Effect::Answer(ticket, answer));
            }
            Then::Created { group, ticket } => {
                if let Err(why) = result {
                    self.step(&group, now, fx, |group, cx| {
                        group.not_created(ticket, why, cx);
                        None
                    });
                }
            }
            Then::Assign { group, generation, assignment } => {
                self.step(&group, now, fx, |group, cx| group.assigned(generation, assignment, result, cx));
            }
            Then::Replaced(replaced) => {
                let id = replaced.group.clone();
                self.step(&id, now, fx, |group, cx| {
                    group.replaced(replaced, result, cx);
                    None
                });
            }
            Then::Deleted { answer, groups } => {
                if result.is_err() {
                    groups.into_iter().for_each(|group| _ = self.groups.entry(group.id.clone()).or_insert(group));
                }
                if let Some((ticket, answer)) = answer {
                    self.follow(Then::Answer(ticket, answer), result, now, fx);
                }
            }
        }
    }

    /// Something happens to a group; if it has become empty by it, that is written.
    fn step(&mut self, id: &str, now: Millis, fx: &mut Vec<Effect>, run: impl FnOnce(&mut Group, &mut Cx<'_>) -> Option<GroupRecord>) {
        let mut cx = Cx { now, settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx };
        if let Some(group) = self.groups.get_mut(id) {
            let record = run(group, &mut cx);
            cx.write(Vec::from_iter(record), Then::Nothing);
        }
    }

    /// Answers the questions whose writes are done.
    fn unpark(&mut self, fx: &mut Vec<Effect>) {
        let oldest = self.writes.oldest();
        while let Some(entry) = self.parked.first_entry()
            && oldest.is_none_or(|oldest| entry.key().0 < oldest)
        {
            let ((_, ticket), (_, fetch)) = entry.remove_entry();
            fx.push(Effect::Answer(ticket, Answer::Fetch(Ok(self.offsets.fetch(&fetch)))));
        }
    }

    /// Does what is due: sessions, rebalances, offsets that expire, writes that take too long.
    pub fn tick(&mut self, now: Millis, fx: &mut Vec<Effect>) {
        self.ring(now, fx);
        while let Some(then) = self.writes.overdue(now) {
            self.follow(then, Err(Why::CoordinatorNotAvailable), now, fx);
        }
        // Those who came first wait for the older write.
        while let Some(entry) = self.parked.first_entry()
            && entry.get().0 <= now
        {
            let (_, ticket) = entry.remove_entry().0;
            fx.push(Effect::Answer(ticket, Answer::Fetch(Err(Why::NotCoordinator))));
        }
        if self.next_expiry.is_some_and(|due| due <= now) {
            self.next_expiry = Some(Millis(now.0 + self.settings.retention_check_interval));
            self.expire(now, fx);
        }
    }

    fn ring(&mut self, now: Millis, fx: &mut Vec<Effect>) {
        while let Some(alarm) = self.timers.pop(now) {
            match alarm {
                Alarm::Session(group, member) => self.step(&group, now, fx, |group, cx| group.session_alarm(&member, cx)),
                Alarm::Join(group) => self.step(&group, now, fx, Group::join_alarm),
                Alarm::Sync(group) => self.step(&group, now, fx, Group::sync_alarm),
            }
        }
    }

    /// When [`tick`](Self::tick) is due next. Any call may change it.
    pub fn deadline(&self) -> Option<Millis> {
        let parked = self.parked.values().next().map(|(due, _)| *due);
        [self.timers.next(), self.writes.next_due(), parked, self.next_expiry].into_iter().flatten().min()
    }

    /// This broker leads the partition no longer: everybody who waits is told NOT_COORDINATOR.
    pub fn unload(mut self, fx: &mut Vec<Effect>) {
        let why = Why::NotCoordinator;
        for then in self.writes.drain() {
            if let Then::Answer(ticket, answer) | Then::Deleted { answer: Some((ticket, answer)), .. } = then {
                fx.push(Effect::Answer(ticket, refused(&answer, why)));
            }
        }
        for ((_, ticket), _) in std::mem::take(&mut self.parked) {
            fx.push(Effect::Answer(ticket, Answer::Fetch(Err(why))));
        }
        let mut cx = Cx { now: Millis(0), settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx };
        self.groups.values_mut().for_each(|group| group.close(why, &mut cx));
    }

    pub(super) fn cx<'a>(&'a mut self, now: Millis, fx: &'a mut Vec<Effect>) -> Cx<'a> {
        Cx { now, settings: &self.settings, timers: &mut self.timers, writes: &mut self.writes, fx }
    }

    /// All groups.
    pub fn views(&self) -> impl Iterator<Item = GroupView<'_>> {
        self.groups.values().map(Group::view)
    }

    /// All committed offsets: group, topic, partition, offset.
    pub fn committed_offsets(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, i32, &CommittedOffset)> {
        self.offsets.all()
    }
}
