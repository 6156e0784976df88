//! A town to try a coordinator in: a clock, a log that can hold writes back or fail them, and a book of who waits for an answer.

mod answers;
mod classic;
pub(in crate::core::group) mod consumers;
mod epochs;
mod limits;
mod migration;
mod offsets;
mod owed;
mod random;
mod statics;
mod storm;
pub(in crate::core::group) mod topics;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::request::*;
use super::{Coordinator, GroupRecord};
use crate::core::chance::Seeded;
use crate::core::types::{Epoch, Millis, Offset};
use topics::Map;

pub(super) struct Town {
    pub(super) coordinator: Coordinator,
    pub(super) topics: Map,
    pub(super) now: i64,
    pub(super) log: Vec<GroupRecord>,
    /// Writes wait in `held` instead of being committed at once.
    pub(super) hold: bool,
    pub(super) held: VecDeque<(WriteId, Arc<[GroupRecord]>)>,
    open: BTreeSet<Ticket>,
    answers: BTreeMap<Ticket, Answer>,
    chance: Seeded,
    next: u64,
}

impl Town {
    pub(super) fn with(settings: Settings, log: &[GroupRecord], now: i64) -> Town {
        Town::with_topics(settings, Map::default(), log, now)
    }

    pub(super) fn with_topics(settings: Settings, topics: Map, log: &[GroupRecord], now: i64) -> Town {
        let mut coordinator = Coordinator::new(settings, Arc::new(topics.clone()));
        log.iter().for_each(|record| coordinator.replay(record.clone()));
        let mut town = Town {
            coordinator,
            topics,
            now,
            log: log.to_vec(),
            hold: false,
            held: VecDeque::new(),
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            chance: Seeded(7),
            next: 0,
        };
        let mut fx = Vec::new();
        town.coordinator.loaded(Millis(now), &mut fx);
        town.absorb(fx);
        town
    }

    /// Without a delay for first members.
    pub(super) fn new() -> Town {
        Town::with(Settings { initial_rebalance_delay: 0, ..Settings::default() }, &[], 1_000_000)
    }

    /// The town after a failover: what is in the log, and nothing else.
    pub(super) fn again(&self) -> Town {
        // Another broker makes other member ids.
        let chance = Seeded(self.chance.0 + self.next + 1);
        Town { chance, ..Town::with_topics(self.coordinator.settings.clone(), self.topics.clone(), &self.log, self.now) }
    }

    fn absorb(&mut self, fx: Vec<Effect>) {
        for effect in fx {
            match effect {
                Effect::Answer(ticket, answer) => {
                    assert!(self.open.remove(&ticket), "{ticket:?} is answered twice, or never asked: {answer:?}");
                    self.answers.insert(ticket, answer);
                }
                Effect::Append(write, records) => {
                    self.held.push_back((write, records));
                    if !self.hold {
                        self.release();
                    }
                }
            }
        }
    }

    /// Commits what is held.
    pub(super) fn release(&mut self) {
        while let Some((write, records)) = self.held.pop_front() {
            self.log.extend(records.iter().cloned());
            let mut fx = Vec::new();
            self.coordinator.committed(write, Millis(self.now), &mut fx);
            self.absorb(fx);
        }
    }

    /// Fails the write that is held at that place.
    pub(super) fn fail(&mut self, at: usize, why: Why) {
        let (write, _) = self.held.remove(at).expect("it is held");
        let mut fx = Vec::new();
        self.coordinator.failed(write, why, Millis(self.now), &mut fx);
        self.absorb(fx);
    }

    pub(super) fn ask(&mut self, request: Request) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        self.open.insert(ticket);
        let mut fx = Vec::new();
        self.coordinator.ask(ticket, request, Millis(self.now), &mut self.chance, &mut fx);
        self.absorb(fx);
        ticket
    }

    /// Lets time pass, ticking when ticks are due.
    pub(super) fn wait(&mut self, millis: i64) {
        let until = self.now + millis;
        while let Some(due) = self.coordinator.deadline()
            && due.0 <= until
        {
            self.now = self.now.max(due.0);
            let mut fx = Vec::new();
            self.coordinator.tick(Millis(self.now), &mut fx);
            self.absorb(fx);
            assert!(self.coordinator.deadline() > Some(Millis(self.now)), "a tick leaves nothing that is due");
        }
        self.now = until;
    }

    pub(super) fn topics_deleted(&mut self, topics: &[DeletedTopic]) {
        let mut fx = Vec::new();
        self.coordinator.topics_deleted(topics, Millis(self.now), &mut fx);
        self.absorb(fx);
    }

    /// The answer, if there is one.
    pub(super) fn got(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    pub(super) fn unanswered(&self) -> usize {
        self.open.len()
    }

    /// Ends it; everybody who waits must be told now.
    pub(super) fn unload(mut self) -> BTreeMap<Ticket, Answer> {
        let mut fx = Vec::new();
        let coordinator = std::mem::replace(&mut self.coordinator, Coordinator::new(Settings::default(), Arc::new(Map::default())));
        coordinator.unload(&mut fx);
        self.absorb(fx);
        assert_eq!(self.open, BTreeSet::new(), "these were never answered");
        self.answers
    }

    pub(super) fn joined(&mut self, ticket: Ticket) -> Joined {
        match self.got(ticket) {
            Some(Answer::Join(Ok(joined))) => joined,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn not_joined(&mut self, ticket: Ticket) -> (Why, Arc<str>) {
        match self.got(ticket) {
            Some(Answer::Join(Err(refused))) => (refused.why, refused.member),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn assigned(&mut self, ticket: Ticket) -> Result<Bytes, Why> {
        match self.got(ticket) {
            Some(Answer::Sync(result)) => result.map(|synced| synced.assignment),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn heartbeat(&mut self, from: &Membership) -> Result<(), Why> {
        let ticket = self.ask(Request::Heartbeat(from.clone()));
        match self.got(ticket) {
            Some(Answer::Heartbeat(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn leave(&mut self, leavers: &[(&str, Option<&str>)]) -> Vec<Result<(), Why>> {
        let members =
            leavers.iter().map(|(member, instance)| Leaver { member: (*member).into(), instance: instance.map(Arc::from), reason: None });
        let ticket = self.ask(Request::Leave(Leave { group: "g".into(), members: members.collect() }));
        match self.got(ticket) {
            Some(Answer::Leave(Ok(rows))) => rows.into_iter().map(|row| row.result).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Commits one offset of topic `t`.
    pub(super) fn commit(&mut self, from: &Membership, partition: i32, offset: i64) -> Result<(), Why> {
        let ticket = self.ask(commit(from, partition, offset));
        self.committed(ticket)
    }

    pub(super) fn committed(&mut self, ticket: Ticket) -> Result<(), Why> {
        match self.got(ticket) {
            Some(Answer::Commit(result)) => result.and_then(|rows| rows[0].partitions[0].1),
            other => panic!("{other:?}"),
        }
    }

    /// All offsets of a group: topic, partition, offset.
    pub(super) fn offsets(&mut self, group: &str) -> Vec<(String, i32, i64)> {
        let fetch = Fetch { group: group.into(), topics: None, require_stable: false, member: None, epoch: -1 };
        let ticket = self.ask(Request::Fetch(fetch));
        let Some(Answer::Fetch(Ok(rows))) = self.got(ticket) else { panic!() };
        let flat = rows.into_iter().flat_map(|rows| {
            let topic = rows.topic.to_string();
            rows.partitions.into_iter().map(move |(index, offset)| (topic.clone(), index, offset.map_or(-1, |o| o.offset.0)))
        });
        flat.collect()
    }

    pub(super) fn describe(&mut self, group: &str) -> Option<Described> {
        let ticket = self.ask(Request::Describe(vec![group.into()]));
        let Some(Answer::Describe(Ok(rows))) = self.got(ticket) else { panic!() };
        rows.into_iter().next().and_then(|(_, result)| result.ok())
    }

    pub(super) fn state(&mut self) -> State {
        self.describe("g").map_or(State::Dead, |group| group.state)
    }

    /// A member that has come as far as joining; it waits for the generation under that ticket.
    pub(super) fn come(&mut self, name: &str) -> (Arc<str>, Ticket) {
        let ticket = self.ask(join("", name));
        let (why, member) = self.not_joined(ticket);
        assert_eq!(why, Why::MemberIdRequired);
        (member.clone(), self.ask(join(&member, name)))
    }

    /// A stable group of so many dynamic members; the first of those returned leads.
    pub(super) fn stable(&mut self, count: usize) -> Vec<Membership> {
        let (first, mut ticket) = self.come("client-0");
        let mut members = vec![first];
        for i in 1..count {
            let joined = self.joined(ticket);
            assert_eq!(joined.leader, members[0]);
            let (member, newcomer) = self.come(&format!("client-{i}"));
            let again: Vec<Ticket> = members.iter().map(|member| self.ask(join(member, "again"))).collect();
            ticket = again[0];
            again[1..].iter().chain([&newcomer]).for_each(|ticket| assert_eq!(self.joined(*ticket).leader, members[0]));
            members.push(member);
        }
        let generation = self.joined(ticket).generation;
        let members: Vec<Membership> = members.iter().map(|member| member_of(member, generation)).collect();
        let syncs: Vec<Ticket> = members.iter().skip(1).map(|member| self.ask(sync(member, &[]))).collect();
        let leader = self.ask(sync(&members[0], &members));
        for (ticket, member) in [leader].into_iter().chain(syncs).zip(&members) {
            assert_eq!(self.assigned(ticket), Ok(assignment(&member.member)));
        }
        assert_eq!(self.state(), State::Stable);
        members
    }
}

pub(super) fn member_of(member: &str, generation: i32) -> Membership {
    Membership { group: "g".into(), member: member.into(), instance: None, generation }
}

/// Somebody without membership.
pub(super) fn nobody(group: &str) -> Membership {
    Membership { group: group.into(), ..member_of("", -1) }
}

pub(super) fn assignment(member: &str) -> Bytes {
    format!("for {member}").into()
}

/// Metadata of a consumer that reads topic `t`.
pub(super) fn reads_t() -> Bytes {
    Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff")
}

pub(super) fn protocols(names: &[&str]) -> Vec<Protocol> {
    names.iter().map(|name| Protocol { name: (*name).into(), metadata: reads_t() }).collect()
}

pub(super) fn join_of(member: &str, client: &str) -> Join {
    Join {
        group: "g".into(),
        member: member.into(),
        instance: None,
        client_id: client.into(),
        client_host: "/10.0.0.1".into(),
        session_timeout: 10_000,
        rebalance_timeout: 60_000,
        protocol_type: "consumer".into(),
        protocols: protocols(&["range"]),
        reason: None,
        member_id_required: true,
        skip_assignment: true,
    }
}

pub(super) fn join(member: &str, client: &str) -> Request {
    Request::Join(join_of(member, client))
}

/// With assignments for those.
pub(super) fn sync(from: &Membership, all: &[Membership]) -> Request {
    let assignments = all.iter().map(|member| (member.member.clone(), assignment(&member.member))).collect();
    Request::Sync(Sync { from: from.clone(), protocol_type: Some("consumer".into()), protocol: Some("range".into()), assignments })
}

pub(super) fn commit(from: &Membership, partition: i32, offset: i64) -> Request {
    let new = NewOffset { offset: Offset(offset), leader_epoch: Epoch::NONE, metadata: "".into() };
    let topics = vec![Rows { topic: "t".into(), id: Default::default(), partitions: vec![(partition, new)] }];
    Request::Commit(Commit { from: from.clone(), topics, retention: None, knows_epochs: true })
}
