//! The groups of one partition: requests in, effects out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::any::Group;
use super::classic;
use super::consumer;
use super::offsets::Offsets;
use super::records::ConsumerRecord;
use super::request::{Effect, Fetch, GroupView, Kind, State, Ticket, Why, WriteId};
use super::timers::{Alarm, Timers};
use super::topics::{Topics, World};
use super::writes::{Cx, Then, Writes, refused};
use super::{Answer, CommittedOffset, GroupRecord, Settings};
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
    pub(super) timers: Timers,
    pub(super) world: World,
    /// Questions for offsets that wait until that write and all earlier ones are done.
    pub(super) parked: BTreeMap<(WriteId, Ticket), (Millis, Fetch)>,
    next_expiry: Option<Millis>,
}

impl Coordinator {
    /// A coordinator that has read nothing yet.
    pub fn new(settings: Settings, topics: Arc<dyn Topics>) -> Coordinator {
        Coordinator {
            settings,
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            writes: Writes::default(),
            timers: Timers::default(),
            world: World::new(topics),
            parked: BTreeMap::new(),
            next_expiry: None,
        }
    }

    /// Other settings hold from now on.
    pub fn reconfigured(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Takes in a record that the partition holds. Only before [`loaded`](Self::loaded).
    pub fn replay(&mut self, record: GroupRecord) {
        match record {
            GroupRecord::Offset { group, topic, partition, value } => self.offsets.apply(&group, &topic, partition, value),
            GroupRecord::Group { group, value: Some(value) } => {
                self.groups.insert(group.clone(), classic::Group::from_record(group, value).into());
            }
            GroupRecord::Group { group, value: None } => {
                if let Some(Group::Classic(_)) = self.groups.get(&group) {
                    self.groups.remove(&group);
                }
            }
            GroupRecord::Consumer { group, record } => self.replay_consumer(group, record),
        }
    }

    fn replay_consumer(&mut self, id: Arc<str>, record: ConsumerRecord) {
        let known = match self.groups.get_mut(&id) {
            Some(Group::Consumer(group)) => group,
            _ if record.is_tombstone() => return,
            // The classic group that it was is of no account any more: only its tombstone may be missing.
            _ => {
                self.groups.insert(id.clone(), consumer::Group::new(id.clone()).into());
                return self.replay_consumer(id, record);
            }
        };
        match record {
            ConsumerRecord::Group(None) => _ = self.groups.remove(&id),
            record => known.apply(record),
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
        for id in &ids {
            self.step(id, now, fx, classic::Group::loaded);
            self.with_consumer(id, now, fx, consumer::Group::loaded);
        }
    }

    /// The topics that there are from now on. `changed` came, went or have other partitions; `some_new` says whether some came. Groups that
    /// read them are assigned anew when a member is next heard of.
    pub fn topics_changed(&mut self, topics: Arc<dyn Topics>, changed: &[Arc<str>], some_new: bool) {
        self.world.update(topics, changed, some_new);
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
        write.followers().for_each(|then| self.follow(then, Ok(()), now, fx));
        self.unpark(fx);
    }

    /// The records of that write are not in the log: `why` is what those who wait for it are told.
    pub fn failed(&mut self, id: WriteId, why: Why, now: Millis, fx: &mut Vec<Effect>) {
        let Some(write) = self.writes.take(id) else {
            return;
        };
        let records = write.records.clone();
        // Groups that could not be deleted come back as they are in the log.
        let deletes = matches!(write.then, Then::Deleted { .. });
        if !deletes && records.iter().any(|record| matches!(record, GroupRecord::Consumer { .. })) {
            self.writes.owe(id, &records);
        }
        write.followers().for_each(|then| self.follow(then, Err(why), now, fx));
        for record in records.iter() {
            // An offset that could not be forgotten needs its group.
            let group = record.group();
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
                for group in groups {
                    if result.is_err() {
                        self.groups.entry(group.id().clone()).or_insert(group);
                    } else if !self.groups.contains_key(group.id()) {
                        self.writes.forgive(group.id());
                    }
                }
                if let Some((ticket, answer)) = answer {
                    self.follow(Then::Answer(ticket, answer), result, now, fx);
                }
            }
        }
    }

    /// Something happens to a classic group; if it has become empty by it, that is written.
    pub(super) fn step(
        &mut self,
        id: &str,
        now: Millis,
        fx: &mut Vec<Effect>,
        run: impl FnOnce(&mut classic::Group, &mut Cx<'_>) -> Option<GroupRecord>,
    ) {
        let (groups, mut cx) = self.parts(now, fx);
        if let Some(group) = groups.get_mut(id).and_then(Group::as_classic) {
            let record = run(group, &mut cx);
            cx.write(Vec::from_iter(record), Then::Nothing);
        }
    }

    /// Something happens to a consumer group.
    pub(super) fn with_consumer<T>(
        &mut self,
        id: &str,
        now: Millis,
        fx: &mut Vec<Effect>,
        run: impl FnOnce(&mut consumer::Group, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let (groups, mut cx) = self.parts(now, fx);
        groups.get_mut(id).and_then(Group::as_consumer).map(|group| run(group, &mut cx))
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

    pub(super) fn ring(&mut self, now: Millis, fx: &mut Vec<Effect>) {
        while let Some(alarm) = self.timers.pop(now) {
            match &alarm {
                Alarm::Session(group, member) | Alarm::Progress(group, member) | Alarm::MemberSync(group, member) => {
                    self.step(group, now, fx, |group, cx| group.session_alarm(member, cx));
                    if self.with_consumer(group, now, fx, |group, cx| group.rings(&alarm, cx)) == Some(true) {
                        self.remove_members(group, std::slice::from_ref(member), None, now, fx);
                    }
                }
                Alarm::Join(group) => self.step(group, now, fx, classic::Group::join_alarm),
                Alarm::Sync(group) => self.step(group, now, fx, classic::Group::sync_alarm),
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
        let (groups, mut cx) = self.parts(Millis(0), fx);
        groups.values_mut().for_each(|group| group.close(why, &mut cx));
    }

    pub(super) fn cx<'a>(&'a mut self, now: Millis, fx: &'a mut Vec<Effect>) -> Cx<'a> {
        self.parts(now, fx).1
    }

    /// The groups, and what their rules need.
    pub(super) fn parts<'a>(&'a mut self, now: Millis, fx: &'a mut Vec<Effect>) -> (&'a mut BTreeMap<Arc<str>, Group>, Cx<'a>) {
        let Coordinator { settings, groups, timers, writes, world, .. } = self;
        (groups, Cx { now, settings, timers, writes, world, fx })
    }

    /// Type and state of each group.
    pub fn states(&self) -> impl Iterator<Item = (Kind, State)> {
        self.groups.values().map(Group::kind_and_state)
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
