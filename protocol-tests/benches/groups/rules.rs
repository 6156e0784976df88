//! The rules alone: heartbeats, a rebalance of a large group in either protocol, commits, loading, memory. CPU time of the one thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use understudy::core::chance::Chance;
use understudy::core::controller::Image;
use understudy::core::group::assign::{Assignor, MemberSpec, assign};
use understudy::core::group::request::*;
use understudy::core::group::{CommittedOffset, Coordinator, GroupRecord, Topics};
use understudy::core::types::{Epoch, Id, Millis, Offset};
use understudy::wire::records::group::{Names, decode_with, encode};
use understudy_protocol_tests::patience::thread_cpu;

use crate::report;

/// Enough for member ids here.
struct Counter(u64);

impl Chance for Counter {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

/// A coordinator whose writes are committed at once.
pub struct Town {
    coordinator: Coordinator,
    chance: Counter,
    next: u64,
    pub answers: Vec<(Ticket, Answer)>,
    fx: Vec<Effect>,
}

const NOW: Millis = Millis(1_700_000_000_000);

impl Town {
    fn new() -> Town {
        Town::with(Arc::new(Image::empty("")))
    }

    pub fn with(topics: Arc<dyn Topics>) -> Town {
        let mut settings = Settings { initial_rebalance_delay: 0, ..Settings::default() };
        settings.consumer.assignment_interval = 0;
        let mut coordinator = Coordinator::new(settings, topics);
        coordinator.loaded(NOW, &mut Vec::new());
        Town { coordinator, chance: Counter(1), next: 0, answers: Vec::new(), fx: Vec::new() }
    }

    pub fn ask(&mut self, request: Request) {
        self.next += 1;
        self.coordinator.ask(Ticket(self.next), request, NOW, &mut self.chance, &mut self.fx);
        while !self.fx.is_empty() {
            for effect in std::mem::take(&mut self.fx) {
                match effect {
                    Effect::Answer(ticket, answer) => self.answers.push((ticket, answer)),
                    Effect::Append(write, _) => self.coordinator.committed(write, NOW, &mut self.fx),
                }
            }
        }
    }

    fn joined(&mut self) -> Vec<Joined> {
        let all = std::mem::take(&mut self.answers).into_iter();
        all.filter_map(|(_, answer)| if let Answer::Join(Ok(joined)) = answer { Some(joined) } else { None }).collect()
    }
}

fn join(group: &str, member: &str, metadata: &Bytes) -> Request {
    let protocols =
        vec![Protocol { name: "range".into(), metadata: metadata.clone() }, Protocol { name: "sticky".into(), metadata: metadata.clone() }];
    Request::Join(Join {
        group: group.into(),
        member: member.into(),
        instance: None,
        client_id: "consumer".into(),
        client_host: "/10.1.2.3".into(),
        session_timeout: 45_000,
        rebalance_timeout: 300_000,
        protocol_type: "consumer".into(),
        protocols,
        reason: None,
        member_id_required: false,
        skip_assignment: true,
    })
}

/// A stable group; returns its members.
fn stable(town: &mut Town, group: &str, count: usize, assignment: &Bytes) -> Vec<Membership> {
    let metadata = subscription();
    town.ask(join(group, "", &metadata));
    let mut ids: Vec<Arc<str>> = town.joined().into_iter().map(|joined| joined.member).collect();
    if count > 1 {
        // All others come while the first is awaited.
        (1..count).for_each(|_| town.ask(join(group, "", &metadata)));
        town.ask(join(group, &ids[0], &metadata));
        ids = town.joined().into_iter().map(|joined| joined.member).collect();
    }
    sync(town, group, &ids, if count > 1 { 2 } else { 1 }, assignment)
}

fn sync(town: &mut Town, group: &str, ids: &[Arc<str>], generation: i32, assignment: &Bytes) -> Vec<Membership> {
    let of = |id: &Arc<str>| Membership { group: group.into(), member: id.clone(), instance: None, generation };
    let assignments: Vec<(Arc<str>, Bytes)> = ids.iter().map(|id| (id.clone(), assignment.clone())).collect();
    let ask = |from, assignments| Request::Sync(Sync { from, protocol_type: None, protocol: None, assignments });
    for id in ids {
        town.ask(ask(of(id), assignments.clone()));
    }
    assert!(town.answers.drain(..).filter(|(_, answer)| matches!(answer, Answer::Sync(Ok(_)))).count() >= ids.len());
    ids.iter().map(of).collect()
}

fn subscription() -> Bytes {
    Bytes::from_static(b"\0\x01\0\0\0\x01\0\x05topic\xff\xff\xff\xff\0\0\0\0")
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}

/// All of them.
pub fn run() {
    memory();
    heartbeats();
    rebalance();
    assignment();
    commits();
    loading();
}

/// 1,000 members, 10,000 partitions: all anew, and after a member has left.
fn assignment() {
    let topics: BTreeMap<Id, i32> = (1..=10).map(|id| (Id(id), 1_000)).collect();
    let members = |differ: bool| -> BTreeMap<Arc<str>, MemberSpec> {
        let of = |member: u128| topics.keys().copied().filter(|topic| !differ || topic.0 != member % 10 + 1).collect();
        (0..1_000).map(|at| (format!("member-{at}").into(), MemberSpec { subscribed: of(at), ..MemberSpec::default() })).collect()
    };
    for (what, assignor, differ) in [
        ("range", Assignor::Range, false),
        ("uniform", Assignor::Uniform, false),
        ("uniform, different subscriptions", Assignor::Uniform, true),
    ] {
        let mut members = members(differ);
        let start = thread_cpu();
        let given = assign(assignor, &members, &topics);
        report(&format!("assignment ({what})"), thread_cpu() - start, 1, Duration::from_millis(20));
        members.iter_mut().for_each(|(id, member)| member.assigned = given[id].clone());
        members.pop_first();
        let start = thread_cpu();
        let again = assign(assignor, &members, &topics);
        report(&format!("assignment ({what}) after a leave"), thread_cpu() - start, 1, Duration::from_millis(20));
        assert_eq!(again.values().flat_map(|of| of.values()).map(|of| of.len()).sum::<usize>(), 10_000);
    }
}

fn memory() {
    let before = resident();
    let mut town = Town::new();
    for i in 0..10_000 {
        let group = format!("service-{i}-consumers");
        let members = stable(&mut town, &group, 3, &Bytes::from_static(&[7; 60]));
        let topics = vec![Rows { topic: "topic".into(), id: Id(5), partitions: (0..10).map(|p| (p, offset(1))).collect() }];
        town.ask(Request::Commit(Commit { from: members[0].clone(), topics, retention: None, knows_epochs: false }));
        town.answers.clear();
    }
    let grown = (resident() - before) >> 20;
    println!("10,000 groups of 3 members and 10 offsets: {grown} MiB (limit 100 MiB)");
    assert!(grown <= 100);
}

fn heartbeats() {
    let mut town = Town::new();
    let mut members = Vec::new();
    for i in 0..10_000 {
        members.extend(stable(&mut town, &format!("service-{i}-consumers"), 1, &Bytes::new()));
    }
    members.extend(stable(&mut town, "large", 1_000, &Bytes::new()));
    town.answers = Vec::with_capacity(members.len());
    let requests: Vec<Request> = members.iter().cloned().map(Request::Heartbeat).collect();
    let count = requests.len();
    let start = thread_cpu();
    requests.into_iter().for_each(|request| town.ask(request));
    report("heartbeat, 10,000 groups", thread_cpu() - start, count, Duration::from_micros(10));
    assert!(town.answers.iter().all(|(_, answer)| *answer == Answer::Heartbeat(Ok(()))));
}

fn rebalance() {
    // Ten partitions each.
    let assignment = Bytes::from_static(&[3; 60]);
    let mut town = Town::new();
    let members = stable(&mut town, "large", 1_000, &assignment);
    // Each time every member says something new, as cooperative ones do.
    let other = Bytes::from_static(b"\0\x02\0\0\0\x01\0\x05topic\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff");
    for metadata in [other, subscription()] {
        let requests: Vec<Request> = members.iter().map(|member| join("large", &member.member, &metadata)).collect();
        let ids: Vec<Arc<str>> = members.iter().map(|member| member.member.clone()).collect();
        let assignments: Vec<(Arc<str>, Bytes)> = ids.iter().map(|id| (id.clone(), assignment.clone())).collect();
        let start = thread_cpu();
        requests.into_iter().for_each(|request| town.ask(request));
        let joined = town.joined();
        let leader = joined[0].leader.clone();
        let generation = joined.iter().map(|joined| joined.generation).max().unwrap_or_default();
        for id in &ids {
            let assignments = if *id == leader { assignments.clone() } else { Vec::new() };
            let from = Membership { group: "large".into(), member: id.clone(), instance: None, generation };
            town.ask(Request::Sync(Sync { from, protocol_type: None, protocol: None, assignments }));
        }
        let took = thread_cpu() - start;
        assert_eq!(town.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Sync(Ok(_)))).count(), 1_000);
        town.answers.clear();
        report("rebalance of 1,000 members", took, 1, Duration::from_millis(50));
    }
}

fn offset(at: i64) -> NewOffset {
    NewOffset { offset: Offset(at), leader_epoch: Epoch(1), metadata: "".into() }
}

fn commits() {
    let mut town = Town::new();
    let from = Membership { group: "group".into(), member: "".into(), instance: None, generation: -1 };
    let topic: Arc<str> = "topic".into();
    let start = thread_cpu();
    for at in 0..100_000 {
        let topics = vec![Rows { topic: topic.clone(), id: Id(5), partitions: vec![(at as i32 % 1_000, offset(at))] }];
        town.ask(Request::Commit(Commit { from: from.clone(), topics, retention: None, knows_epochs: false }));
        town.answers.clear();
    }
    report("commit of one offset", thread_cpu() - start, 100_000, Duration::from_micros(20));
}

fn loading() {
    let value = |at: i64| CommittedOffset {
        offset: Offset(at),
        leader_epoch: Epoch(3),
        metadata: "".into(),
        committed: NOW,
        expires: None,
        topic_id: Id(5),
    };
    // 1,000 groups, 10 topics, 100 partitions: commits of ten partitions each, in no order.
    let record = |i: i64| GroupRecord::Offset {
        group: format!("service-{}-consumers", i / 10 % 1_000).into(),
        topic: format!("topic-{}", i / 10_000 % 10).into(),
        partition: (i / 100_000 * 10 + i % 10) as i32,
        value: Some(value(i)),
    };
    let raw: Vec<_> = (0..1_000_000).map(|i| encode(&record(i / 10 * 7_919 % 100_000 * 10 + i % 10)).expect("it can be encoded")).collect();
    let load = || {
        let start = thread_cpu();
        let (mut coordinator, mut names) = (Coordinator::new(Settings::default(), Arc::new(Image::empty(""))), Names::default());
        for (key, value) in &raw {
            coordinator.replay(decode_with(&mut names, key, value.as_deref()).expect("it can be decoded"));
        }
        coordinator.loaded(NOW, &mut Vec::new());
        let took = thread_cpu() - start;
        assert_eq!(coordinator.committed_offsets().count(), raw.len());
        took
    };
    // The caches may be cold the first time.
    let took = (0..3).map(|_| load()).min().unwrap_or_default();
    report("loading 1,000,000 offsets", took, 1, Duration::from_secs(1));
}
