//! Consumer groups: members come, get ahead and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::core::group::assign::Assignment;
use crate::core::group::records::{ConsumerRecord, MemberState};
use crate::core::types::TopicId;

/// A client of a consumer group.
#[derive(Debug, Clone)]
pub(super) struct Consumer {
    pub(super) beat: ConsumerBeat,
    pub(super) owned: Assignment,
}

pub(super) fn rows(assignment: &Assignment) -> Vec<(TopicId, Vec<i32>)> {
    assignment.iter().map(|(topic, indexes)| (*topic, indexes.iter().copied().collect())).collect()
}

impl Consumer {
    /// A member that has not come yet.
    pub(super) fn new(id: &str, topics: &[&str]) -> Consumer {
        let beat = ConsumerBeat {
            group: "g".into(),
            member: id.into(),
            epoch: 0,
            instance: None,
            rack: None,
            client_id: "c".into(),
            client_host: "/10.0.0.1".into(),
            rebalance_timeout: Some(60_000),
            topics: Some(topics.iter().map(|topic| (*topic).into()).collect()),
            regex: None,
            assignor: None,
            owned: None,
        };
        Consumer { beat, owned: Assignment::new() }
    }

    /// One heartbeat with all it has to say; does as it is told.
    pub(super) fn beat(&mut self, town: &mut Town) -> Result<i32, Why> {
        self.beat.owned = Some(rows(&self.owned));
        let answer = town.beat(self.beat.clone());
        match answer {
            Ok(beat) => {
                self.beat.epoch = beat.epoch;
                if let Some(assignment) = beat.assignment {
                    self.owned = assignment;
                }
                Ok(beat.epoch)
            }
            Err(refused) => {
                if matches!(refused.why, Why::FencedMemberEpoch | Why::UnknownMemberId) {
                    self.beat.epoch = 0;
                    self.owned.clear();
                }
                Err(refused.why)
            }
        }
    }

    /// How many partitions it has.
    pub(super) fn count(&self) -> usize {
        self.owned.values().map(|indexes| indexes.len()).sum()
    }

    pub(super) fn leave(&mut self, town: &mut Town, epoch: i32) -> Result<i32, Why> {
        self.owned.clear();
        let beat = ConsumerBeat { epoch, ..self.beat.clone() };
        self.beat.epoch = 0;
        town.beat(beat).map(|beat| beat.epoch).map_err(|refused| refused.why)
    }
}

impl Town {
    /// A town with those topics, where targets are made as soon as they are asked for.
    pub(super) fn of_consumers(topics: &[(&str, i32)]) -> Town {
        let mut map = Map::default();
        topics.iter().for_each(|(name, partitions)| _ = map.set(name, *partitions));
        let mut settings = Settings { initial_rebalance_delay: 0, ..Settings::default() };
        settings.consumer.assignment_interval = 0;
        Town::with_topics(settings, map, &[], 1_000_000)
    }

    pub(super) fn beat(&mut self, beat: ConsumerBeat) -> Result<Beat, Refused> {
        let ticket = self.ask(Request::Beat(beat));
        match self.got(ticket) {
            Some(Answer::Beat(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn consumers(&mut self) -> Result<DescribedConsumer, Refused> {
        let ticket = self.ask(Request::DescribeConsumers(vec!["g".into()]));
        let Some(Answer::DescribeConsumers(Ok(mut rows))) = self.got(ticket) else { panic!() };
        rows.pop().expect("one group was asked for").1
    }

    /// The state of the group, whatever its type.
    pub(super) fn listed(&mut self) -> Option<(Kind, State)> {
        let ticket = self.ask(Request::List(List::default()));
        let Some(Answer::List(Ok(rows))) = self.got(ticket) else { panic!() };
        rows.into_iter().find(|row| &*row.group == "g").map(|row| (row.kind, row.state))
    }

    /// What would be written of each consumer group.
    pub(super) fn durable(&self) -> BTreeMap<Arc<str>, Vec<ConsumerRecord>> {
        let groups = self.coordinator.groups.iter();
        let consumers = groups.filter_map(|(id, group)| match group {
            crate::core::group::any::Group::Consumer(group) => Some((id.clone(), group.records())),
            crate::core::group::any::Group::Classic(_) => None,
        });
        consumers.collect()
    }
}

#[test]
fn partitions_move_when_they_are_given_up() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    assert_eq!(a.beat(&mut town), Ok(2));
    assert_eq!((a.count(), town.listed()), (4, Some((Kind::Consumer, State::Stable))));
    assert_eq!(b.beat(&mut town), Ok(3));
    assert_eq!((b.count(), town.listed()), (0, Some((Kind::Consumer, State::Reconciling))), "what it shall have is not free");
    // The first is told what it may keep, in its old epoch, until it says that it has no more.
    let before = a.clone();
    assert_eq!((a.beat(&mut town), a.count()), (Ok(2), 2));
    assert_eq!(town.beat(ConsumerBeat { owned: Some(rows(&before.owned)), ..a.beat.clone() }).map(|beat| beat.epoch), Ok(2));
    assert_eq!((b.beat(&mut town), b.count()), (Ok(3), 0));
    assert_eq!((a.beat(&mut town), a.count()), (Ok(3), 2));
    assert_eq!((b.beat(&mut town), b.count()), (Ok(3), 2));
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Stable)));
    assert_eq!(b.leave(&mut town, -1), Ok(-1));
    assert_eq!((a.beat(&mut town), a.count()), (Ok(4), 4));
    assert_eq!(a.leave(&mut town, -1), Ok(-1));
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn an_answer_has_the_assignment_only_where_it_is_news() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    let least = ConsumerBeat { rebalance_timeout: None, topics: None, owned: None, ..a.beat.clone() };
    let answer = town.beat(least.clone()).expect("it is a member");
    assert_eq!(answer, Beat { member: "a".into(), epoch: 2, interval: 5_000, assignment: None });
    let full = ConsumerBeat { owned: Some(rows(&a.owned)), ..a.beat.clone() };
    assert_eq!(town.beat(full).expect("it is a member").assignment, Some(a.owned.clone()));
    let lines = town.log.len();
    town.beat(least).expect("it is a member");
    assert_eq!(town.log.len(), lines, "a heartbeat without news writes nothing");
}

#[test]
fn members_are_given_ids_if_they_bring_none() {
    let mut town = Town::of_consumers(&[("t", 1)]);
    let beat = ConsumerBeat { owned: Some(vec![]), ..Consumer::new("", &["t"]).beat };
    let ids = [(); 2].map(|()| town.beat(beat.clone()).expect("it joins").member);
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() == 22), "a UUID as Kafka writes it: {ids:?}");
}

#[test]
fn silence_ends_a_membership() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    a.beat(&mut town).expect("it joins");
    b.beat(&mut town).expect("it joins");
    town.wait(44_000);
    a.beat(&mut town).expect("it is alive");
    town.wait(1_000);
    assert_eq!(town.consumers().expect("it is there").members.len(), 1);
    assert_eq!(b.beat(&mut town), Err(Why::UnknownMemberId));
    let mut town = town.again();
    assert_eq!((a.beat(&mut town), a.count()), (Ok(4), 2));
    town.wait(45_000);
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
}

#[test]
fn who_does_not_give_up_in_time_is_out() {
    for failover in [false, true] {
        let mut town = Town::of_consumers(&[("t", 2)]);
        let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
        a.beat(&mut town).expect("it joins");
        b.beat(&mut town).expect("it joins");
        let keeps = a.owned.clone();
        if failover {
            assert_eq!(a.beat(&mut town), Ok(2), "it is told");
            town = town.again();
        }
        for _ in 0..6 {
            a.owned = keeps.clone();
            assert_eq!(a.beat(&mut town), Ok(2));
            b.beat(&mut town).expect("it waits");
            town.wait(10_000);
        }
        a.owned = keeps;
        assert_eq!(a.beat(&mut town), Err(Why::UnknownMemberId));
        assert_eq!((b.beat(&mut town).is_ok(), b.count()), (true, 2));
    }
}

#[test]
fn targets_are_not_made_more_often_than_that() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    town.coordinator.settings.consumer.assignment_interval = 1_000;
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    assert_eq!(a.beat(&mut town), Ok(2));
    assert_eq!(b.beat(&mut town), Ok(2), "of the target that there is");
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Assigning)));
    town.wait(999);
    assert_eq!(b.beat(&mut town), Ok(2));
    town.wait(1);
    assert_eq!((b.beat(&mut town), town.listed()), (Ok(3), Some((Kind::Consumer, State::Reconciling))));
}

#[test]
fn the_assignor_that_most_name_is_taken() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut members: Vec<Consumer> = ["a", "b", "c"].iter().map(|id| Consumer::new(id, &["t"])).collect();
    for (member, assignor) in members.iter_mut().zip([None, Some("range"), None]) {
        member.beat.assignor = assignor.map(Arc::from);
        member.beat(&mut town).expect("it joins");
    }
    assert_eq!(town.consumers().expect("it is there").assignor, "range");
    members[1].leave(&mut town, -1).expect("it leaves");
    assert_eq!(town.consumers().expect("it is there").assignor, "uniform");
}

#[test]
fn topics_that_come_grow_and_go() {
    let mut town = Town::of_consumers(&[("t", 1)]);
    let mut a = Consumer::new("a", &["t", "u"]);
    assert_eq!((a.beat(&mut town), a.count()), (Ok(2), 1));
    town.set_topics(&[("other", 5)]);
    assert_eq!(a.beat(&mut town), Ok(2), "nobody reads it");
    town.set_topics(&[("u", 2)]);
    assert_eq!((a.beat(&mut town), a.count()), (Ok(3), 3));
    town.set_topics(&[("t", 3)]);
    assert_eq!((a.beat(&mut town), a.count()), (Ok(4), 5));
    town.set_topics(&[("u", 0)]);
    assert_eq!((a.beat(&mut town), a.count()), (Ok(4), 3), "it is to give up what is no more");
    assert_eq!((a.beat(&mut town), a.count()), (Ok(5), 3));
    // A change while the coordinator is another one.
    let mut town = town.again();
    assert_eq!(a.beat(&mut town), Ok(5));
    town.topics.set("t", 4);
    let mut town = town.again();
    assert_eq!((a.beat(&mut town), a.count()), (Ok(6), 4));
}

#[test]
fn expressions_match_topics_of_now_and_later() {
    let mut town = Town::of_consumers(&[("t1", 1), ("t2", 2), ("u", 4)]);
    let mut a = Consumer::new("a", &["u"]);
    a.beat.regex = Some("t.*".into());
    assert_eq!((a.beat(&mut town), a.count()), (Ok(2), 7));
    town.wait(5_000);
    town.set_topics(&[("t3", 1)]);
    assert_eq!((a.beat(&mut town), a.count()), (Ok(2), 7), "all topics are not looked at all the time");
    town.wait(6_000);
    assert_eq!((a.beat(&mut town), a.count()), (Ok(3), 8));
    let mut b = Consumer::new("b", &[]);
    b.beat.regex = Some("t[".into());
    assert_eq!(b.beat(&mut town), Err(Why::InvalidRegularExpression));
    let refused = town.beat(b.beat.clone()).expect_err("it is none");
    assert!(refused.message.starts_with("SubscribedTopicRegex `t[` is not a valid regular expression: "), "{}", refused.message);
    // The same expression again is not looked for again; another is.
    b.beat.regex = Some("t.*".into());
    b.beat(&mut town).expect("it joins");
    a.beat.regex = Some("".into());
    a.beat(&mut town).expect("by name only");
    b.leave(&mut town, -1).expect("it leaves");
    for _ in 0..2 {
        a.beat(&mut town).expect("it is a member");
    }
    assert_eq!((a.count(), town.listed()), (4, Some((Kind::Consumer, State::Stable))));
    let left = town.durable()["g"].iter().any(|record| matches!(record, ConsumerRecord::Regex { .. }));
    assert!(!left, "nobody subscribes to it any more");
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn a_group_has_room_for_so_many() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    town.coordinator.settings.consumer.max_size = 1;
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    a.beat(&mut town).expect("it joins");
    assert_eq!(b.beat(&mut town), Err(Why::GroupMaxSizeReached));
    a.beat(&mut town).expect("who is in stays in");
    let message = town.beat(b.beat).expect_err("it is full").message;
    assert_eq!(message, "The consumer group has reached its maximum capacity of 1 members.");
}

#[test]
fn a_state_of_a_later_version_is_begun_anew() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    for record in &mut town.log {
        if let GroupRecord::Consumer { record: ConsumerRecord::Current { value: Some(current), .. }, .. } = record {
            current.state = MemberState::Unknown;
        }
    }
    let mut town = town.again();
    assert_eq!(a.beat(&mut town), Err(Why::FencedMemberEpoch));
    assert_eq!((a.beat(&mut town), a.count()), (Ok(2), 2));
}

#[test]
fn records_of_old_versions_go() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    town.log.push(GroupRecord::Consumer { group: "g".into(), record: ConsumerRecord::LegacyTopics { present: true } });
    let mut town = town.again();
    a.beat(&mut town).expect("it is a member");
    let last = town.log.last().expect("it was written");
    assert!(matches!(last, GroupRecord::Consumer { record: ConsumerRecord::LegacyTopics { present: false }, .. }));
}

#[test]
fn groups_without_members_are_deleted_with_their_offsets() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    assert_eq!(town.commit(&member_of("a", 2), 0, 7), Ok(()));
    let delete = |town: &mut Town| {
        let ticket = town.ask(Request::DeleteGroups(vec!["g".into()]));
        let Some(Answer::DeleteGroups(Ok(rows))) = town.got(ticket) else { panic!() };
        rows[0].1
    };
    assert_eq!(delete(&mut town), Err(Why::NonEmptyGroup));
    a.leave(&mut town, -1).expect("it leaves");
    assert_eq!(delete(&mut town), Ok(()));
    assert_eq!((town.listed(), town.offsets("g")), (None, vec![]));
    assert_eq!(town.again().listed(), None);
}

#[test]
fn groups_without_members_expire_with_their_offsets() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    assert_eq!(town.commit(&member_of("a", 2), 0, 7), Ok(()));
    a.leave(&mut town, -1).expect("it leaves");
    town.wait(6 * 24 * 3_600_000);
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
    town.wait(24 * 3_600_000 + 600_000);
    assert_eq!((town.listed(), town.offsets("g")), (None, vec![]));
    assert_eq!(town.again().listed(), None);
}

#[test]
fn a_group_may_have_settings_of_its_own() {
    let mut town = Town::of_consumers(&[("t", 1)]);
    let mut a = Consumer::new("a", &["t"]);
    for (key, value) in
        [("consumer.session.timeout.ms", 50_000), ("consumer.heartbeat.interval.ms", 7_000), ("consumer.assignment.interval.ms", 9_000)]
    {
        town.topics.settings.insert(("g".into(), key.into()), value);
    }
    town.set_topics(&[]);
    a.beat.owned = Some(vec![]);
    let answer = town.beat(a.beat.clone()).expect("it joins");
    assert_eq!((answer.epoch, answer.interval), (2, 7_000));
    assert_eq!(Consumer::new("b", &["t"]).beat(&mut town), Ok(2), "the target is too young");
    town.wait(49_999);
    assert_eq!(town.consumers().expect("it is there").members.len(), 2);
    town.wait(1);
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
}
