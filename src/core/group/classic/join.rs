//! JoinGroup: who comes in, and what a member that comes again sets off.

use std::sync::Arc;

use super::member::{Member, kept};
use super::{Group, JoinRefused};
use crate::core::chance::Chance;
use crate::core::group::GroupRecord;
use crate::core::group::request::{Answer, Join, Protocol, State, Ticket, Why};
use crate::core::group::timers::{Alarm, Slot};
use crate::core::group::writes::{Cx, Then};

/// How long a member may wait for its first generation. It has no id yet, so it cannot be heard of; if it is still there, it asks again.
const NEW_MEMBER_MS: i32 = 5 * 60 * 1000;
/// Member ids of one group that may be outstanding. Who would exceed it is told that the group is full.
const PENDING_MAX: usize = 10_000;
/// Characters of a client's reason that are kept.
const REASON_MAX: usize = 255;

/// A static member came back under a new id, and the group goes on as it was. What it takes to undo that.
#[derive(Debug)]
pub(in crate::core::group) struct Replaced {
    pub(in crate::core::group) group: Arc<str>,
    generation: i32,
    ticket: Ticket,
    instance: Arc<str>,
    old: Arc<str>,
    new: Arc<str>,
    old_leader: Option<Arc<str>>,
    old_protocols: Vec<Protocol>,
    old_session_timeout: i32,
    old_rebalance_timeout: i32,
    skip_assignment: bool,
}

impl Group {
    /// A member wants in. Returns the record to write if the group has become empty by it.
    pub(in crate::core::group) fn join(
        &mut self,
        ticket: Ticket,
        join: &Join,
        chance: &mut dyn Chance,
        cx: &mut Cx<'_>,
    ) -> Option<GroupRecord> {
        if !self.has_room(&join.member, cx) {
            self.remove(&join.member, cx);
            cx.answer(ticket, Answer::Join(Self::no(Why::GroupMaxSizeReached, &"".into())));
            // It may have been the last that was waited for.
            return self.maybe_complete(cx);
        }
        if !self.suits(&join.protocol_type, &join.protocols) {
            cx.answer(ticket, Answer::Join(Self::no(Why::InconsistentGroupProtocol, &join.member)));
            return None;
        }
        if join.member.is_empty() { self.join_new(ticket, join, chance, cx) } else { self.join_again(ticket, join, cx) }
    }

    fn has_room(&self, member: &str, cx: &Cx<'_>) -> bool {
        let max = cx.settings.max_size;
        let own = self.members.get(member);
        let room = match self.state {
            State::Empty | State::Dead | State::Assigning | State::Reconciling => true,
            // Those who wait count: so a maximum that was lowered puts out the last to join again.
            State::PreparingRebalance => own.is_some_and(|own| own.join.is_some()) || self.joining < max,
            State::CompletingRebalance | State::Stable => own.is_some() || self.members.len() < max,
        };
        room && (self.pending.len() < PENDING_MAX || !member.is_empty())
    }

    fn join_new(&mut self, ticket: Ticket, join: &Join, chance: &mut dyn Chance, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        let id = new_member_id(join.instance.as_ref().unwrap_or(&join.client_id), chance);
        if let Some(instance) = &join.instance {
            return match self.statics.get(instance).cloned() {
                Some(old) => self.come_back(ticket, join, instance, old, id, cx),
                None => self.come_in(ticket, join, id, Slot::default(), cx),
            };
        }
        if !join.member_id_required {
            return self.come_in(ticket, join, id, Slot::default(), cx);
        }
        let mut slot = Slot::default();
        cx.timers.set(&mut slot, cx.after(join.session_timeout), || Alarm::Session(self.id.clone(), id.clone()));
        cx.answer(ticket, Answer::Join(Self::no(Why::MemberIdRequired, &id)));
        self.pending.insert(id, slot);
        None
    }

    fn join_again(&mut self, ticket: Ticket, join: &Join, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        let id = &join.member;
        if join.instance.is_none()
            && let Some((id, slot)) = self.pending.remove_entry(id)
        {
            return self.come_in(ticket, join, id, slot, cx);
        }
        if let Err(why) = self.check(id, join.instance.as_deref()) {
            cx.answer(ticket, Answer::Join(Self::no(why, id)));
            return None;
        }
        let same = self.members.get(id).is_some_and(|member| member.protocols == join.protocols);
        let what = match self.state {
            State::PreparingRebalance => "joined again",
            // It may not have got the answer; that of this generation still holds.
            State::CompletingRebalance if same => {
                cx.answer(ticket, Answer::Join(Ok(self.joined(id, false))));
                return None;
            }
            State::Stable if same && !self.is_leader(id) => {
                cx.answer(ticket, Answer::Join(Ok(self.joined(id, false))));
                return None;
            }
            // Something that the leader knows has changed, such as the number of partitions.
            State::Stable if same => "leads and joined again",
            State::CompletingRebalance | State::Stable => "joined with other metadata",
            State::Empty | State::Dead | State::Assigning | State::Reconciling => {
                cx.answer(ticket, Answer::Join(Self::no(Why::UnknownMemberId, id)));
                return None;
            }
        };
        self.update(id, &join.protocols, join.rebalance_timeout, join.session_timeout);
        self.await_join(id, ticket, cx);
        self.rebalance_or_complete(|| format!("member {id} {what}{}", reason(join)), cx)
    }

    fn update(&mut self, id: &str, protocols: &[Protocol], rebalance_timeout: i32, session_timeout: i32) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.rebalance_timeout = rebalance_timeout;
        member.session_timeout = session_timeout;
        if member.protocols != protocols {
            let protocols = kept(protocols);
            let old = std::mem::replace(&mut member.protocols, protocols.clone());
            self.count(&old, false);
            self.count(&protocols, true);
        }
    }

    fn come_in(&mut self, ticket: Ticket, join: &Join, id: Arc<str>, session: Slot, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        if let Some(delay) = &mut self.delay {
            delay.somebody_came = true;
        }
        let member = Member {
            instance: join.instance.clone(),
            client_id: join.client_id.clone(),
            client_host: join.client_host.clone(),
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout,
            protocols: kept(&join.protocols),
            assignment: Default::default(),
            join: Some(ticket),
            sync: None,
            is_new: true,
            session,
        };
        self.add(id.clone(), member, &join.protocol_type);
        self.set_session(&id, Some(NEW_MEMBER_MS), cx);
        self.rebalance_or_complete(|| format!("member {id} came{}", reason(join)), cx)
    }

    /// A static member without member id: it takes the place of its former self.
    fn come_back(
        &mut self,
        ticket: Ticket,
        join: &Join,
        instance: &Arc<str>,
        old: Arc<str>,
        new: Arc<str>,
        cx: &mut Cx<'_>,
    ) -> Option<GroupRecord> {
        let former = self.members.get(&old)?;
        let replaced = Replaced {
            group: self.id.clone(),
            generation: self.generation,
            ticket,
            instance: instance.clone(),
            old_leader: self.leader.clone(),
            old_protocols: former.protocols.clone(),
            old_session_timeout: former.session_timeout,
            old_rebalance_timeout: former.rebalance_timeout,
            skip_assignment: join.skip_assignment,
            old,
            new,
        };
        self.rename(&replaced.instance, &replaced.old, &replaced.new, cx);
        let id = &replaced.new;
        self.update(id, &join.protocols, join.rebalance_timeout, join.session_timeout);
        self.await_join(id, ticket, cx);
        match self.state {
            // The assignment stays as long as the protocol does; only the id has to be written.
            State::Stable if self.elect_protocol() == self.protocol => {
                let record = self.record(|member| member.assignment.clone());
                cx.write([record], Then::Replaced(replaced));
                None
            }
            State::Stable => self.rebalance_or_complete(|| format!("static member {id} changes the protocol{}", reason(join)), cx),
            // The leader assigns to the id that is no more.
            State::CompletingRebalance => self.prepare(format!("static member {id} came back{}", reason(join)), cx),
            _ => self.maybe_complete(cx),
        }
    }

    /// Gives a static member another id. Whoever waits under the old one is told that it was replaced.
    fn rename(&mut self, instance: &Arc<str>, old: &Arc<str>, new: &Arc<str>, cx: &mut Cx<'_>) {
        self.answer_join(old, Self::no(Why::FencedInstanceId, old), cx);
        let Some(mut member) = self.members.remove(old) else {
            return;
        };
        if let Some(ticket) = member.sync.take() {
            cx.answer(ticket, Answer::Sync(Err(Why::FencedInstanceId)));
        }
        cx.timers.cancel(&mut member.session, || Alarm::Session(self.id.clone(), old.clone()));
        member.is_new = false;
        self.members.insert(new.clone(), member);
        self.statics.insert(instance.clone(), new.clone());
        if self.unsynced.remove(old) {
            self.unsynced.insert(new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        self.set_session(new, None, cx);
    }

    /// What was written of a static member's return is in the log, or is not.
    pub(in crate::core::group) fn replaced(&mut self, replaced: Replaced, result: Result<(), Why>, cx: &mut Cx<'_>) {
        // If a rebalance has begun meanwhile, the member waits for that like everybody else.
        let waits = self.members.get(&replaced.new).is_some_and(|member| member.join == Some(replaced.ticket));
        if !waits || self.state != State::Stable || self.generation != replaced.generation {
            return;
        }
        let id = &replaced.new;
        match result {
            Ok(()) => {
                let mut joined = self.joined(id, replaced.skip_assignment && self.is_leader(id));
                if !replaced.skip_assignment {
                    // It would assign if it knew that it leads. So it is told of the leader that was.
                    joined.leader = replaced.old_leader.unwrap_or_default();
                    joined.members.clear();
                }
                self.answer_join(id, Ok(joined), cx);
            }
            Err(why) => {
                self.answer_join(id, Self::no(why, &"".into()), cx);
                self.update(id, &replaced.old_protocols, replaced.old_rebalance_timeout, replaced.old_session_timeout);
                self.rename(&replaced.instance, id, &replaced.old, cx);
            }
        }
    }

    /// The group, made for that ticket, could not be written.
    pub(in crate::core::group) fn not_created(&mut self, ticket: Ticket, why: Why, cx: &mut Cx<'_>) {
        let waits = self.members.iter().find(|(_, member)| member.join == Some(ticket)).map(|(id, _)| id.clone());
        if let Some(id) = waits {
            self.answer_join(&id, Err(JoinRefused { why, member: "".into() }), cx);
        }
    }
}

/// Unique, and recognisable for people: `<client or instance id>-<UUID>`.
fn new_member_id(prefix: &str, chance: &mut dyn Chance) -> Arc<str> {
    let hex = format!("{:032x}", chance.id().0);
    format!("{prefix}-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into()
}

fn reason(join: &Join) -> String {
    join.reason.as_ref().map(|reason| format!(": {}", reason.chars().take(REASON_MAX).collect::<String>())).unwrap_or_default()
}
