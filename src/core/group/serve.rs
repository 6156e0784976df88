//! What a coordinator does with each request. Those of the classic protocol are for groups of both; see [`consumers`](super::consumers) for
//! the rest of what consumer groups are asked.

use super::any::Group;
use super::coordinator::{Coordinator, GROUPS_MAX};
use super::offsets;
use super::request::{Commit, Effect, Fetch, Join, JoinRefused, Leave, Left, List, Listed, Membership, Sync, Ticket, Why};
use super::writes::Then;
use super::{Answer, Request};
use crate::core::chance::Chance;
use crate::core::types::Millis;

impl Coordinator {
    /// Decides on a request. The answer is among the effects, now or later.
    pub fn ask(&mut self, ticket: Ticket, request: Request, now: Millis, chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        // Who asks about groups from outside sees no member whose session is over, though the timer may come a little later. Members are
        // not judged that way: after a standstill of the broker what they sent in time is still to be read.
        let from_outside = matches!(
            request,
            Request::Describe(_) | Request::DescribeConsumers(_) | Request::List(_) | Request::DeleteGroups(_) | Request::DeleteOffsets(_)
        );
        if from_outside {
            self.ring(now, fx);
        }
        let answer = match request {
            Request::Heartbeat(from) => Answer::Heartbeat(self.heartbeat(&from, now, fx)),
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
            Request::Describe(ids) => {
                let described = ids.into_iter().map(|id| {
                    let classic = self.groups.get_mut(&id).and_then(Group::as_classic);
                    let described = classic.map(|group| group.described()).ok_or(Why::GroupIdNotFound);
                    (id, described)
                });
                Answer::Describe(Ok(described.collect()))
            }
            Request::List(list) => Answer::List(Ok(self.list(&list))),
            Request::Beat(beat) => return self.beat(ticket, beat, now, chance, fx),
            Request::DescribeConsumers(ids) => Answer::DescribeConsumers(Ok(self.describe_consumers(ids, now, fx))),
        };
        fx.push(Effect::Answer(ticket, answer));
    }

    fn heartbeat(&mut self, from: &Membership, now: Millis, fx: &mut Vec<Effect>) -> Result<(), Why> {
        if from.group.is_empty() {
            return Err(Why::InvalidGroupId);
        }
        let (groups, mut cx) = self.parts(now, fx);
        match groups.get_mut(&from.group).ok_or(Why::UnknownMemberId)? {
            Group::Classic(group) => group.heartbeat(from, &mut cx),
            Group::Consumer(group) => group.heartbeat(from, &mut cx),
        }
    }

    fn join(&mut self, ticket: Ticket, join: Join, now: Millis, chance: &mut dyn Chance, fx: &mut Vec<Effect>) {
        let found = self.groups.get(&join.group);
        let of_consumers = matches!(found, Some(Group::Consumer(group)) if !group.is_empty());
        // An empty consumer group becomes a classic one.
        let known = of_consumers || matches!(found, Some(Group::Classic(_)));
        let bounds = self.settings.min_session_timeout..=self.settings.max_session_timeout;
        let no = if join.group.is_empty() {
            Some(Why::InvalidGroupId)
        } else if !bounds.contains(&join.session_timeout) {
            Some(Why::InvalidSessionTimeout)
        } else if !known && !join.member.is_empty() {
            Some(Why::UnknownMemberId)
        } else if !known && (join.protocol_type.is_empty() || join.protocols.is_empty()) {
            Some(Why::InconsistentGroupProtocol)
        } else if found.is_none() && self.groups.len() >= GROUPS_MAX {
            Some(Why::CoordinatorNotAvailable)
        } else {
            None
        };
        if let Some(why) = no {
            return fx.push(Effect::Answer(ticket, Answer::Join(Err(JoinRefused { why, member: join.member }))));
        }
        if of_consumers {
            return self.join_consumers(ticket, join, now, chance, fx);
        }
        let id = join.group.clone();
        let (groups, mut cx) = self.parts(now, fx);
        if !known {
            let mut records = groups.remove(&id).map(|empty| empty.tombstones()).unwrap_or_default();
            groups.insert(id.clone(), Group::new(id.clone(), Some(now)));
            // So that the next coordinator knows it.
            records.extend(groups.get_mut(&id).and_then(Group::as_classic).map(|group| group.empty_record()));
            cx.write(records, Then::Created { group: id.clone(), ticket });
        }
        if let Some(group) = groups.get_mut(&id).and_then(Group::as_classic) {
            let record = group.join(ticket, &join, chance, &mut cx);
            cx.write(Vec::from_iter(record), Then::Nothing);
        }
    }

    fn sync(&mut self, ticket: Ticket, sync: Sync, now: Millis, fx: &mut Vec<Effect>) {
        let id = sync.from.group.clone();
        let (groups, mut cx) = self.parts(now, fx);
        match groups.get_mut(&id) {
            Some(Group::Classic(group)) => group.sync(ticket, sync, &mut cx),
            Some(Group::Consumer(group)) => group.sync(ticket, &sync, &mut cx),
            None => {
                let why = if id.is_empty() { Why::InvalidGroupId } else { Why::UnknownMemberId };
                cx.answer(ticket, Answer::Sync(Err(why)));
            }
        }
    }

    fn leave(&mut self, ticket: Ticket, leave: Leave, now: Millis, fx: &mut Vec<Effect>) {
        let Leave { group, members } = leave;
        if group.is_empty() {
            return fx.push(Effect::Answer(ticket, Answer::Leave(Err(Why::InvalidGroupId))));
        }
        let (groups, mut cx) = self.parts(now, fx);
        match groups.get_mut(&group) {
            Some(Group::Classic(known)) => {
                let (rows, record) = known.leave(members, &mut cx);
                cx.write(Vec::from_iter(record), Then::Answer(ticket, Answer::Leave(Ok(rows))));
            }
            Some(Group::Consumer(known)) => {
                let (rows, gone) = known.leavers(members);
                self.remove_members(&group, &gone, Some((ticket, Answer::Leave(Ok(rows)))), now, fx);
            }
            None => {
                let result = Err(Why::UnknownMemberId);
                let rows = members.into_iter().map(|leaver| Left { member: leaver.member, instance: leaver.instance, result });
                cx.answer(ticket, Answer::Leave(Ok(rows.collect())));
            }
        }
    }

    fn commit(&mut self, ticket: Ticket, commit: Commit, now: Millis, fx: &mut Vec<Effect>) {
        let id = &commit.from.group;
        let full = self.groups.len() >= GROUPS_MAX;
        let (groups, mut cx) = self.parts(now, fx);
        let allowed = match groups.get_mut(id) {
            Some(Group::Classic(group)) => group.may_commit(&commit.from, &mut cx),
            Some(Group::Consumer(group)) => group.may_commit(&commit),
            None if commit.from.generation >= 0 => Err(Why::GroupIdNotFound),
            None if full => Err(Why::CoordinatorNotAvailable),
            None => {
                // A consumer that assigns itself. Its group is known by its offsets.
                groups.insert(id.clone(), Group::new(id.clone(), Some(now)));
                Ok(())
            }
        };
        if let Err(why) = allowed {
            return cx.answer(ticket, Answer::Commit(Err(why)));
        }
        let (records, rows) = offsets::commit(commit, cx.settings, now);
        cx.write(records, Then::Answer(ticket, Answer::Commit(Ok(rows))));
    }

    fn fetch(&mut self, ticket: Ticket, fetch: Fetch, now: Millis, fx: &mut Vec<Effect>) {
        if let Some(Group::Consumer(group)) = self.groups.get(&fetch.group)
            && let Err(why) = group.may_fetch(&fetch)
        {
            return fx.push(Effect::Answer(ticket, Answer::Fetch(Err(why))));
        }
        if fetch.require_stable
            && let Some(write) = self.writes.newest_if_any_of(&fetch.group)
        {
            let due = Millis(now.0 + self.settings.write_timeout);
            self.parked.insert((write, ticket), (due, fetch));
            return;
        }
        fx.push(Effect::Answer(ticket, Answer::Fetch(Ok(self.offsets.fetch(&fetch)))));
    }

    fn list(&self, list: &List) -> Vec<Listed> {
        let among = |names: &[String], name: &str| names.is_empty() || names.iter().any(|own| own.trim().eq_ignore_ascii_case(name));
        let all = self.groups.values().map(Group::listed);
        all.filter(|group| among(&list.states, group.state.name()) && among(&list.kinds, group.kind.name())).collect()
    }
}
