//! A large consumer group (KIP-848): heartbeats without news, and all that a coordinator does when a member leaves and comes back.

use std::sync::Arc;
use std::time::Duration;

use understudy::core::group::Topics;
use understudy::core::group::request::*;
use understudy::core::types::{Id, TopicId};
use understudy_protocol_tests::patience::thread_cpu;

use crate::report;
use crate::rules::Town;

const MEMBERS: usize = 1_000;

/// Ten topics of 1,000 partitions.
#[derive(Debug)]
struct Ten(Vec<Arc<str>>);

impl Topics for Ten {
    fn version(&self) -> i64 {
        1
    }

    fn id(&self, name: &str) -> Option<TopicId> {
        self.0.iter().position(|own| **own == *name).map(|at| Id(1 + at as u128))
    }

    fn name(&self, id: TopicId) -> Option<&Arc<str>> {
        self.0.get((id.0 as usize).checked_sub(1)?)
    }

    fn partitions(&self, _: TopicId) -> i32 {
        1_000
    }

    fn racks(&self, _: TopicId, _: i32) -> Vec<&str> {
        Vec::new()
    }

    fn group_setting(&self, _: &str, _: &str) -> Option<i32> {
        None
    }

    fn names(&self) -> Box<dyn Iterator<Item = &Arc<str>> + '_> {
        Box::new(self.0.iter())
    }
}

/// A client that does as it is told.
struct Member {
    beat: ConsumerBeat,
    owned: Vec<(TopicId, Vec<i32>)>,
}

impl Member {
    fn new(id: usize, topics: &[Arc<str>]) -> Member {
        let beat = ConsumerBeat {
            group: "large".into(),
            member: format!("member-{id}").into(),
            epoch: 0,
            instance: None,
            rack: None,
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout: Some(60_000),
            topics: Some(topics.to_vec()),
            regex: None,
            assignor: None,
            owned: Some(Vec::new()),
        };
        Member { beat, owned: Vec::new() }
    }

    /// A heartbeat; the first one says all, later ones what the member has, if that has changed.
    fn beat(&mut self, town: &mut Town) {
        town.ask(Request::Beat(self.beat.clone()));
        let Some((_, Answer::Beat(Ok(beat)))) = town.answers.pop() else { panic!("it is a member") };
        (self.beat.epoch, self.beat.owned) = (beat.epoch, None);
        (self.beat.topics, self.beat.rebalance_timeout) = (None, None);
        if let Some(assignment) = beat.assignment {
            self.owned = assignment.into_iter().map(|(topic, indexes)| (topic, indexes.into_iter().collect())).collect();
            self.beat.owned = Some(self.owned.clone());
        }
    }
}

fn settle(town: &mut Town, members: &mut [Member]) {
    for _ in 0..3 {
        members.iter_mut().for_each(|member| member.beat(town));
    }
    let all: usize = members.iter().flat_map(|member| &member.owned).map(|(_, indexes)| indexes.len()).sum();
    assert_eq!(all, 10_000, "each partition has a reader");
}

/// All of them.
pub fn run() {
    let names: Vec<Arc<str>> = (0..10).map(|at| format!("topic-{at}").into()).collect();
    let mut town = Town::with(Arc::new(Ten(names.clone())));
    let mut members: Vec<Member> = (0..MEMBERS).map(|id| Member::new(id, &names)).collect();
    let start = thread_cpu();
    members.iter_mut().for_each(|member| member.beat(&mut town));
    println!("1,000 members join a consumer group one by one, an assignment each: {:?}", thread_cpu() - start);
    settle(&mut town, &mut members);
    let start = thread_cpu();
    members.iter_mut().for_each(|member| member.beat(&mut town));
    report("heartbeat in a consumer group of 1,000", thread_cpu() - start, MEMBERS, Duration::from_micros(10));
    let mut gone = members.pop().expect("a member");
    for what in ["a member of 1,000 leaves a consumer group", "a member joins a consumer group of 999"] {
        let start = thread_cpu();
        if what.contains("leaves") {
            town.ask(Request::Beat(ConsumerBeat { epoch: -1, ..gone.beat.clone() }));
            town.answers.clear();
        } else {
            gone = Member::new(MEMBERS, &names);
            gone.beat(&mut town);
            members.push(gone);
            gone = Member::new(0, &names);
        }
        settle(&mut town, &mut members);
        report(what, thread_cpu() - start, 1, Duration::from_millis(50));
    }
}
