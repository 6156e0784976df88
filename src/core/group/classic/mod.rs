//! A classic group: its members choose a protocol by vote, one of them assigns, the coordinator only hands around.
//!
//! Empty -> PreparingRebalance (members join) -> CompletingRebalance (the leader assigns) -> Stable, and back to PreparingRebalance whenever
//! somebody comes, goes or changes. Each state that waits for clients has an alarm. Here is who is in the group; [`join`], [`rebalance`],
//! [`sync`] and [`leave`] have the moves, [`durable`] what is written of it, [`view`] what is shown.

mod durable;
mod join;
mod leave;
mod member;
mod migrate;
mod rebalance;
mod sync;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::request::{Answer, JoinRefused, Joined, Kind, Listed, Protocol, State, Synced, Ticket, Why};
use super::request::{Described, DescribedMember};
use super::subscription;
use super::timers::{Alarm, Slot};
use super::writes::Cx;
use crate::core::types::Millis;
pub(super) use join::Replaced;
use member::Member;
pub(super) use member::kept;
pub(super) use migrate::Migrant;
use rebalance::Delay;

/// Protocol type of consumers, the only one whose metadata is looked into.
const CONSUMER: &str = "consumer";

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: Arc<str>,
    state: State,
    previous: State,
    since: Option<Millis>,
    generation: i32,
    protocol_type: Option<Arc<str>>,
    protocol: Option<Arc<str>>,
    leader: Option<Arc<str>>,
    /// Boxed: a node of the map has room for eleven, and most groups have few.
    members: BTreeMap<Arc<str>, Box<Member>>,
    /// Member id of each `group.instance.id`.
    statics: BTreeMap<Arc<str>, Arc<str>>,
    /// Member ids that were given out and not used yet.
    pending: BTreeMap<Arc<str>, Slot>,
    /// Members of this generation that have not asked for their assignment.
    unsynced: BTreeSet<Arc<str>>,
    /// How many members wait for the generation.
    joining: usize,
    /// How many members could follow each protocol.
    supported: BTreeMap<Arc<str>, usize>,
    /// What the members of a consumer group read; `None` if that cannot be known.
    subscribed: Option<BTreeSet<Arc<str>>>,
    join_alarm: Slot,
    /// What is left of the wait for more first members.
    delay: Option<Delay>,
    sync_alarm: Slot,
    /// What began the last rebalance.
    reason: Box<str>,
}

impl Group {
    /// A group without members.
    pub(super) fn new(id: Arc<str>, since: Option<Millis>) -> Group {
        Group {
            id,
            state: State::Empty,
            previous: State::Dead,
            since,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            statics: BTreeMap::new(),
            pending: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            joining: 0,
            supported: BTreeMap::new(),
            subscribed: None,
            join_alarm: Slot::default(),
            delay: None,
            sync_alarm: Slot::default(),
            reason: Box::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Nobody is in it; somebody may be about to be.
    pub(super) fn is_empty(&self) -> bool {
        self.state == State::Empty
    }

    /// Nobody is in it and nobody is about to be.
    pub(super) fn is_deserted(&self) -> bool {
        self.state == State::Empty && self.pending.is_empty()
    }

    fn go(&mut self, state: State, now: Millis) {
        self.previous = std::mem::replace(&mut self.state, state);
        self.since = Some(now);
    }

    fn is_leader(&self, member: &str) -> bool {
        self.leader.as_deref() == Some(member)
    }

    /// Whether its members are consumers, as far as they say.
    pub(super) fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether that is a member, and the one that has the instance.
    fn check(&self, member: &str, instance: Option<&str>) -> Result<(), Why> {
        match instance.map(|instance| self.statics.get(instance)) {
            Some(None) => return Err(Why::UnknownMemberId),
            Some(Some(owner)) if &**owner != member => return Err(Why::FencedInstanceId),
            _ => {}
        }
        if self.members.contains_key(member) { Ok(()) } else { Err(Why::UnknownMemberId) }
    }

    /// Whether the group could go on with a member of that type and those protocols.
    fn suits(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|p| self.supported.get(&p.name).copied().unwrap_or(0) == self.members.len())
    }

    fn count(&mut self, protocols: &[Protocol], coming: bool) {
        for (i, protocol) in protocols.iter().enumerate() {
            if protocols[..i].iter().any(|earlier| earlier.name == protocol.name) {
                continue;
            }
            let count = self.supported.entry(protocol.name.clone()).or_default();
            *count = if coming { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                self.supported.remove(&protocol.name);
            }
        }
    }

    /// Takes in a member; `protocol_type` counts if it is the first.
    fn add(&mut self, id: Arc<str>, member: Member, protocol_type: &Arc<str>) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.clone());
        }
        if let Some(instance) = &member.instance {
            self.statics.insert(instance.clone(), id.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(id.clone());
        }
        self.joining += usize::from(member.join.is_some());
        self.count(&member.protocols, true);
        self.members.insert(id, Box::new(member));
    }

    /// Takes out a member, or a member id that was given out. Whoever waits is told that it is not known.
    fn remove(&mut self, id: &str, cx: &mut Cx<'_>) {
        if let Some((id, mut slot)) = self.pending.remove_entry(id) {
            cx.timers.cancel(&mut slot, || Alarm::Session(self.id.clone(), id));
        }
        let Some((id, mut member)) = self.members.remove_entry(id) else {
            return;
        };
        if let Some(ticket) = member.join.take() {
            self.joining -= 1;
            cx.answer(ticket, Answer::Join(Err(JoinRefused { why: Why::UnknownMemberId, member: "".into() })));
        }
        if let Some(ticket) = member.sync.take() {
            cx.answer(ticket, Answer::Sync(Err(Why::UnknownMemberId)));
        }
        cx.timers.cancel(&mut member.session, || Alarm::Session(self.id.clone(), id.clone()));
        self.count(&member.protocols, false);
        if let Some(instance) = &member.instance {
            self.statics.remove(instance);
        }
        self.unsynced.remove(&id);
        if self.is_leader(&id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// That member waits for the generation now. It can wait once only: what it asked before is answered.
    fn await_join(&mut self, id: &str, ticket: Ticket, cx: &mut Cx<'_>) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        match member.join.replace(ticket) {
            Some(earlier) => {
                let member = id.into();
                cx.answer(earlier, Answer::Join(Err(JoinRefused { why: Why::RebalanceInProgress, member })));
            }
            None => self.joining += 1,
        }
    }

    /// Answers a member that waits for the generation.
    fn answer_join(&mut self, id: &str, answer: Result<Joined, JoinRefused>, cx: &mut Cx<'_>) {
        if let Some(ticket) = self.members.get_mut(id).and_then(|member| member.join.take()) {
            self.joining -= 1;
            cx.answer(ticket, Answer::Join(answer));
        }
    }

    /// Hands out what members were assigned, or why they are not.
    fn hand_out(&mut self, why: Option<Why>, cx: &mut Cx<'_>) {
        for (id, member) in &mut self.members {
            let Some(ticket) = member.sync.take() else {
                continue;
            };
            let answer = match why {
                Some(why) => Err(why),
                None => Ok(Synced {
                    protocol_type: self.protocol_type.clone(),
                    protocol: self.protocol.clone(),
                    assignment: member.assignment.clone(),
                }),
            };
            cx.answer(ticket, Answer::Sync(answer));
            // Its session did not count while it waited.
            let due = cx.after(member.session_timeout);
            cx.timers.set(&mut member.session, due, || Alarm::Session(self.id.clone(), id.clone()));
        }
    }

    /// That member has been heard of.
    fn heard(&mut self, id: &str, cx: &mut Cx<'_>) {
        if let Some((id, _)) = self.members.get_key_value(id) {
            let id = id.clone();
            self.set_session(&id, None, cx);
        }
    }

    fn set_session(&mut self, id: &Arc<str>, millis: Option<i32>, cx: &mut Cx<'_>) {
        if let Some(member) = self.members.get_mut(id) {
            let due = cx.after(millis.unwrap_or(member.session_timeout));
            cx.timers.set(&mut member.session, due, || Alarm::Session(self.id.clone(), id.clone()));
        }
    }

    /// All members wait, and no member id is outstanding.
    fn all_joined(&self) -> bool {
        self.joining == self.members.len() && self.pending.is_empty()
    }

    /// The longest that a member may take to join again.
    fn rebalance_timeout(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or(0)
    }

    /// The protocol that most members prefer of those that all could follow. Of equals the first by name.
    fn elect_protocol(&self) -> Option<Arc<str>> {
        let everybody = self.members.len();
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.members.values() {
            let vote = member.protocols.iter().find(|p| self.supported.get(&p.name) == Some(&everybody));
            if let Some(vote) = vote {
                *votes.entry(&vote.name).or_default() += 1;
            }
        }
        votes.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0))).map(|(name, _)| name.clone())
    }

    fn subscriptions(&self) -> Option<BTreeSet<Arc<str>>> {
        if !self.is_consumer() {
            return None;
        }
        let mut topics = BTreeSet::new();
        if self.members.is_empty() {
            return Some(topics);
        }
        let protocol = self.protocol.as_deref()?;
        for member in self.members.values() {
            subscription::add_topics(&member.metadata(Some(protocol)), &mut topics)?;
        }
        Some(topics)
    }

    /// Whether a member reads that topic, as far as one can know; consumers whose metadata cannot be read may read anything.
    pub(super) fn reads(&self, topic: &str) -> bool {
        self.subscribed.as_ref().map_or(self.is_consumer(), |topics| topics.contains(topic))
    }

    /// From when on the retention of its offsets counts: `None` while they are kept whatever their age, otherwise that time, or none for
    /// each offset's own.
    pub(super) fn retention_start(&self) -> Option<Option<Millis>> {
        match (&self.protocol_type, self.state) {
            // Nobody joins it; each commit counts for itself.
            (None, _) => Some(None),
            (Some(_), State::Empty) => Some(self.since),
            // Topics that no member reads any more.
            (Some(_), State::Stable) if self.is_consumer() && self.subscribed.is_some() => Some(None),
            _ => None,
        }
    }

    pub(super) fn check_delete(&self) -> Result<(), Why> {
        if self.state == State::Empty { Ok(()) } else { Err(Why::NonEmptyGroup) }
    }

    pub(super) fn check_offset_delete(&self) -> Result<(), Why> {
        if self.state == State::Empty || self.is_consumer() { Ok(()) } else { Err(Why::NonEmptyGroup) }
    }

    pub(super) fn described(&self) -> Described {
        let protocol = if self.state == State::Stable { self.protocol.clone() } else { None };
        let members = self.members.iter().map(|(id, member)| DescribedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: member.metadata(protocol.as_deref()),
            assignment: member.assignment.clone(),
        });
        Described { state: self.state, protocol_type: self.protocol_type.clone().unwrap_or_default(), members: members.collect(), protocol }
    }

    pub(super) fn listed(&self) -> Listed {
        Listed {
            group: self.id.clone(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            state: self.state,
            kind: Kind::Classic,
        }
    }

    /// Takes down everything that waits or is to ring.
    pub(super) fn close(&mut self, why: Why, cx: &mut Cx<'_>) {
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in ids {
            self.answer_join(&id, Err(JoinRefused { why, member: id.clone() }), cx);
            if let Some(member) = self.members.get_mut(&id) {
                if let Some(ticket) = member.sync.take() {
                    cx.answer(ticket, Answer::Sync(Err(why)));
                }
                cx.timers.cancel(&mut member.session, || Alarm::Session(self.id.clone(), id));
            }
        }
        for (id, slot) in std::mem::take(&mut self.pending).iter_mut() {
            cx.timers.cancel(slot, || Alarm::Session(self.id.clone(), id.clone()));
        }
        cx.timers.cancel(&mut self.join_alarm, || Alarm::Join(self.id.clone()));
        cx.timers.cancel(&mut self.sync_alarm, || Alarm::Sync(self.id.clone()));
    }
}
