//! A consumer group (KIP-848): the broker assigns, and members come to their new assignment one by one, each at its own pace.
//!
//! Three epochs. The group's rises with each change of members, subscriptions or topics. The target assignment has the group's epoch that
//! it was made for. Each member has the epoch of the target that it has come to; it gives up first what it shall not have, then takes the
//! next epoch, and gets what others have given up. So a partition has one owner at a time, and nobody waits for everybody.
//!
//! All that lasts is in records. A move makes records, and `apply` is the only one to change what they say, when they are made as
//! when they are read from the log: so the next coordinator has the same group. Who is let in and what a heartbeat does is in [`beat`], the
//! target in [`target`], the way there in [`reconcile`], departures in [`leave`], members that speak the classic protocol in [`classic`],
//! changes of the whole group's protocol in [`migrate`].

mod apply;
mod beat;
mod check;
mod classic;
mod commits;
#[cfg(test)]
mod durable;
mod leave;
mod member;
mod migrate;
mod reconcile;
mod target;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::GroupRecord;
use super::assign::Assignment;
use super::records::{ConsumerRecord, ResolvedRegex};
use super::request::{Answer, Refused, State, Ticket, Why, WriteId};
use super::timers::Alarm;
use super::writes::{Cx, Then};
use crate::core::chance::Chance;
use crate::core::types::{Millis, TopicId};
pub use check::check_beat;
pub(super) use classic::JoinedAs;
use member::Member;

/// Protocol type of all its members.
const CONSUMER: &str = "consumer";
/// The epoch of a member that leaves.
pub const LEAVE: i32 = -1;
/// The epoch of a static member that leaves for a while.
pub const LEAVE_STATIC: i32 = -2;

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: Arc<str>,
    epoch: i32,
    metadata_hash: i64,
    members: BTreeMap<Arc<str>, Box<Member>>,
    /// Member id of each `group.instance.id`.
    statics: BTreeMap<Arc<str>, Arc<str>>,
    target: BTreeMap<Arc<str>, Assignment>,
    target_epoch: i32,
    target_computed: Option<Millis>,
    /// Of each partition that somebody has, the epoch of who has it.
    owned: BTreeMap<TopicId, BTreeMap<i32, i32>>,
    /// What the expressions match that members subscribe to.
    regexes: BTreeMap<Arc<str>, ResolvedRegex>,
    /// There is a record of a kind that is not written any more.
    has_legacy_topics: bool,
    // Counts of what members have in common.
    names: BTreeMap<Arc<str>, usize>,
    expressions: BTreeMap<Arc<str>, usize>,
    assignors: BTreeMap<Arc<str>, usize>,
    classic_protocols: BTreeMap<Arc<str>, usize>,
    classic_members: usize,
    /// The changes of topics that the metadata hash takes in.
    seen: u64,
    /// Records made and not handed over yet.
    out: Vec<GroupRecord>,
    /// The newest write about this group.
    written: Option<WriteId>,
}

/// The id of a member that brings none. Unlike in classic groups nothing of the client is in it.
pub(super) fn new_member_id(chance: &mut dyn Chance) -> Arc<str> {
    chance.id().to_string().into()
}

impl Group {
    /// A group without members.
    pub(super) fn new(id: Arc<str>) -> Group {
        Group {
            id,
            epoch: 1,
            metadata_hash: 0,
            members: BTreeMap::new(),
            statics: BTreeMap::new(),
            target: BTreeMap::new(),
            target_epoch: 0,
            target_computed: None,
            owned: BTreeMap::new(),
            regexes: BTreeMap::new(),
            has_legacy_topics: false,
            names: BTreeMap::new(),
            expressions: BTreeMap::new(),
            assignors: BTreeMap::new(),
            classic_protocols: BTreeMap::new(),
            classic_members: 0,
            seen: 0,
            out: Vec::new(),
            written: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn state(&self) -> State {
        if self.members.is_empty() {
            State::Empty
        } else if self.epoch > self.target_epoch {
            State::Assigning
        } else if self.members.values().all(|member| member.is_reconciled_to(self.target_epoch)) {
            State::Stable
        } else {
            State::Reconciling
        }
    }

    /// Whether a member reads that topic.
    pub(super) fn reads(&self, topic: &str) -> bool {
        self.names.contains_key(topic) || self.regexes.values().any(|regex| regex.topics.contains(topic))
    }

    /// All topics that members read, by name or expression.
    fn read_topics(&self) -> BTreeSet<&Arc<str>> {
        self.names.keys().chain(self.regexes.values().flat_map(|regex| &regex.topics)).collect()
    }

    pub(super) fn check_delete(&self) -> Result<(), Why> {
        if self.members.is_empty() { Ok(()) } else { Err(Why::NonEmptyGroup) }
    }

    /// Makes a record: what it says is so from now on, and [`flush`](Self::flush) has it written.
    fn put(&mut self, record: ConsumerRecord) {
        self.apply(record.clone());
        self.out.push(GroupRecord::Consumer { group: self.id.clone(), record });
    }

    /// Those records are to be written before all others.
    pub(super) fn begin_with(&mut self, mut records: Vec<GroupRecord>) {
        records.append(&mut self.out);
        self.out = records;
    }

    /// The records that were made and not handed over.
    pub(super) fn take_records(&mut self) -> Vec<GroupRecord> {
        std::mem::take(&mut self.out)
    }

    /// Has the records written that were made; the answer goes out when they, or else all earlier ones, are there.
    pub(super) fn flush(&mut self, answer: Option<(Ticket, Answer)>, cx: &mut Cx<'_>) {
        let records = self.take_records();
        if !records.is_empty() {
            let then = answer.map_or(Then::Nothing, |(ticket, answer)| Then::Answer(ticket, answer));
            self.written = cx.write(records, then);
        } else if let Some((ticket, answer)) = answer {
            self.answer_when_written(ticket, answer, cx);
        }
    }

    /// Answers when everything that the group has decided is in the log; what could not be written is tried again for that.
    pub(super) fn answer_when_written(&mut self, ticket: Ticket, answer: Answer, cx: &mut Cx<'_>) {
        self.written = cx.write_owed(&self.id).or(self.written);
        cx.answer_after(self.written, ticket, answer);
    }

    /// The records that take it out of the log.
    pub(super) fn tombstones(&self) -> Vec<GroupRecord> {
        let mut all = Vec::new();
        let members = || self.members.keys().cloned();
        all.extend(members().map(|member| ConsumerRecord::Current { member, value: None }));
        all.extend(self.target.keys().cloned().map(|member| ConsumerRecord::TargetMember { member, value: None }));
        all.push(ConsumerRecord::Target(None));
        all.extend(members().map(|member| ConsumerRecord::Member { member, value: None }));
        all.extend(self.regexes.keys().cloned().map(|pattern| ConsumerRecord::Regex { pattern, value: None }));
        if self.has_legacy_topics {
            all.push(ConsumerRecord::LegacyTopics { present: false });
        }
        all.push(ConsumerRecord::Group(None));
        all.into_iter().map(|record| GroupRecord::Consumer { group: self.id.clone(), record }).collect()
    }

    /// The group was read from the log: its members' sessions start now.
    pub(super) fn loaded(&mut self, cx: &mut Cx<'_>) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.heard(&id, cx);
            self.watch_revocation(&id, cx);
        }
    }

    /// That member has been heard of.
    fn heard(&mut self, id: &Arc<str>, cx: &mut Cx<'_>) {
        if let Some(member) = self.members.get_mut(id) {
            let own = || cx.own_or(&self.id, "consumer.session.timeout.ms", cx.settings.consumer.session_timeout);
            let millis = member.meta.classic.as_ref().map_or_else(own, |classic| classic.session_timeout);
            let due = cx.after(millis);
            cx.timers.set(&mut member.session, due, || Alarm::Session(self.id.clone(), id.clone()));
        }
    }

    /// Takes down everything that is to ring.
    pub(super) fn close(&mut self, cx: &mut Cx<'_>) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.silence(&id, cx);
        }
    }

    /// Takes down everything about that member that is to ring.
    fn silence(&mut self, id: &Arc<str>, cx: &mut Cx<'_>) {
        if let Some(member) = self.members.get_mut(id) {
            let (group, id) = (&self.id, id);
            cx.timers.cancel(&mut member.session, || Alarm::Session(group.clone(), id.clone()));
            cx.timers.cancel(&mut member.progress, || Alarm::Progress(group.clone(), id.clone()));
        }
        self.expect_no_sync(id, cx);
    }

    /// That member owes no SyncGroup: it sent it, it goes, or it speaks the consumer protocol now.
    fn expect_no_sync(&mut self, id: &Arc<str>, cx: &mut Cx<'_>) {
        if let Some(member) = self.members.get_mut(id) {
            cx.timers.cancel(&mut member.sync, || Alarm::MemberSync(self.id.clone(), id.clone()));
        }
    }
}

impl Cx<'_> {
    /// What is set for that group, or else for all.
    fn own_or(&self, group: &str, key: &str, for_all: i32) -> i32 {
        self.world.topics.group_setting(group, key).unwrap_or(for_all)
    }
}

/// A refusal of a heartbeat, with what it says to people.
fn no<T>(why: Why, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { why, message: message.into() })
}
