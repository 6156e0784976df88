//! Members of consumer groups come, go, fall silent and change what they read, topics come and grow, coordinators change: whatever
//! happens, no partition has two readers, the log says what is so, and in the end everything is read by one.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::consumers::Consumer;
use super::*;
use crate::core::types::TopicId;

#[derive(Debug, Clone)]
enum Step {
    Beat(usize),
    Join(usize, u8),
    Leave(usize),
    LeaveForAWhile(usize),
    Subscribe(usize, u8),
    /// It is not heard of any more, and has nothing.
    Vanish(usize),
    Grow(u8),
    Wait(i64),
    Failover,
}

const NAMES: [&str; 3] = ["ta", "tb", "u"];
const MEMBERS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let who = 0..MEMBERS;
    prop_oneof![
        8 => who.clone().prop_map(Step::Beat),
        3 => (who.clone(), any::<u8>()).prop_map(|(who, what)| Step::Join(who, what)),
        1 => who.clone().prop_map(Step::Leave),
        1 => who.clone().prop_map(Step::LeaveForAWhile),
        1 => (who.clone(), any::<u8>()).prop_map(|(who, what)| Step::Subscribe(who, what)),
        1 => who.prop_map(Step::Vanish),
        1 => any::<u8>().prop_map(Step::Grow),
        2 => (0..20_000i64).prop_map(Step::Wait),
        1 => Just(Step::Failover),
    ]
}

struct Storm {
    town: Town,
    members: Vec<Consumer>,
    partitions: [i32; 3],
    /// Numbers those who come.
    next: usize,
}

impl Storm {
    fn new() -> Storm {
        let town = Town::of_consumers(&[("ta", 2), ("tb", 3)]);
        let mut members: Vec<Consumer> = (0..MEMBERS).map(|i| Consumer::new(&format!("m{i}"), &["ta"])).collect();
        members[0].beat.instance = Some("static".into());
        Storm { town, members, partitions: [2, 3, 0], next: 0 }
    }

    fn subscribe(&mut self, who: usize, what: u8) {
        let names = NAMES.iter().enumerate().filter(|(i, _)| what & (1 << i) != 0);
        let member = &mut self.members[who].beat;
        member.topics = Some(names.map(|(_, name)| (*name).into()).collect());
        member.regex = Some(if what & 8 != 0 { "t.*" } else { "" }.into());
        member.assignor = (what & 16 != 0).then(|| if what & 32 != 0 { "range" } else { "uniform" }.into());
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Beat(who) if self.members[who].beat.epoch > 0 => _ = self.members[who].beat(&mut self.town),
            Step::Beat(_) => {}
            Step::Join(who, what) if self.members[who].beat.epoch == 0 => {
                self.next += 1;
                self.members[who].beat.member = format!("m{who}-{}", self.next).into();
                self.subscribe(who, what);
                _ = self.members[who].beat(&mut self.town);
            }
            Step::Join(..) => {}
            Step::Leave(who) => _ = self.members[who].leave(&mut self.town, -1),
            Step::LeaveForAWhile(who) if self.members[who].beat.instance.is_some() => _ = self.members[who].leave(&mut self.town, -2),
            Step::LeaveForAWhile(_) => {}
            Step::Subscribe(who, what) => self.subscribe(who, what),
            Step::Vanish(who) => {
                self.members[who].owned.clear();
                self.members[who].beat.epoch = 0;
            }
            Step::Grow(which) => {
                let at = usize::from(which) % 3;
                self.partitions[at] = (self.partitions[at] + 1).min(6);
                self.town.set_topics(&[(NAMES[at], self.partitions[at])]);
            }
            Step::Wait(millis) => {
                self.town.wait(millis);
                self.forget_the_dead();
            }
            Step::Failover => {
                assert_eq!(self.town.durable(), self.town.again().durable());
                self.town = self.town.again();
            }
        }
        self.check();
    }

    /// Whoever was silent for too long finds out, and stops reading.
    fn forget_the_dead(&mut self) {
        let known: Vec<Arc<str>> =
            self.town.consumers().map(|group| group.members.into_iter().map(|member| member.member).collect()).unwrap_or_default();
        for member in &mut self.members {
            if !known.contains(&member.beat.member) {
                member.owned.clear();
                member.beat.epoch = 0;
            }
        }
    }

    fn check(&self) {
        let mut readers: BTreeMap<(TopicId, i32), &str> = BTreeMap::new();
        for member in &self.members {
            for (topic, indexes) in &member.owned {
                for index in indexes {
                    let other = readers.insert((*topic, *index), &member.beat.member);
                    assert_eq!(other, None, "{topic:?}-{index} has two readers, {} is one", member.beat.member);
                }
            }
        }
    }

    /// All who are there go on for a while; then everything is settled.
    fn settle(&mut self) {
        for _ in 0..30 {
            for member in &mut self.members {
                if member.beat.epoch > 0 {
                    _ = member.beat(&mut self.town);
                }
            }
            self.check();
            self.town.wait(5_000);
            self.forget_the_dead();
        }
        let living: Vec<&Consumer> = self.members.iter().filter(|member| member.beat.epoch > 0).collect();
        let group = self.town.consumers();
        let expected = if living.is_empty() { State::Empty } else { State::Stable };
        if let Ok(group) = group {
            assert_eq!((group.state, group.members.len()), (expected, living.len()), "{group:?}");
        } else {
            assert!(living.is_empty());
        }
        for (name, partitions) in NAMES.iter().zip(self.partitions) {
            let reads = |member: &&Consumer| {
                let beat = &member.beat;
                let by_name = beat.topics.as_ref().is_some_and(|topics| topics.iter().any(|topic| **topic == **name));
                by_name || beat.regex.as_deref() == Some("t.*") && name.starts_with('t')
            };
            let readers: Vec<&&Consumer> = living.iter().filter(|member| reads(member)).collect();
            let id = crate::core::group::topics::Topics::id(&self.town.topics, name);
            let of = |member: &Consumer| id.and_then(|id| member.owned.get(&id)).map_or(0, |indexes| indexes.len());
            let read: usize = readers.iter().map(|member| of(member)).sum();
            let all: usize = living.iter().map(|member| of(member)).sum();
            let expected = if readers.is_empty() { 0 } else { partitions as usize };
            assert_eq!((read, all), (expected, expected), "{name}");
        }
        assert_eq!(self.town.durable(), self.town.again().durable());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_storm_ends_with_each_partition_read_by_one(steps in prop::collection::vec(step(), 1..60)) {
        let mut storm = Storm::new();
        steps.into_iter().for_each(|step| storm.take(step));
        storm.settle();
        storm.town.unload();
    }
}
