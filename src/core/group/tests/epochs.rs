//! Epochs of members of consumer groups: who is fenced, who is stale; static members; writes that fail.

use super::consumers::{Consumer, rows};
use super::*;

fn words(town: &mut Town, beat: ConsumerBeat) -> (Why, String) {
    let refused = town.beat(beat).expect_err("it is refused");
    (refused.why, refused.message)
}

#[test]
fn what_is_refused_and_in_which_words() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    let known = ConsumerBeat { epoch: 1, ..a.beat.clone() };
    assert_eq!(words(&mut town, known.clone()), (Why::GroupIdNotFound, "Consumer group g not found.".into()));
    assert_eq!(words(&mut town, ConsumerBeat { epoch: -1, ..known }), (Why::GroupIdNotFound, "Group g not found.".into()));
    a.beat(&mut town).expect("it joins");
    let stranger = ConsumerBeat { member: "x".into(), epoch: 2, ..a.beat.clone() };
    let unknown = (Why::UnknownMemberId, "Member x is not a member of group g.".to_owned());
    assert_eq!(words(&mut town, stranger.clone()), unknown);
    assert_eq!(words(&mut town, ConsumerBeat { epoch: -1, ..stranger.clone() }), unknown);
    let instance = ConsumerBeat { instance: Some("i".into()), ..stranger };
    assert_eq!(words(&mut town, instance), (Why::UnknownMemberId, "Instance id i is unknown.".into()));
    let of = |epoch| ConsumerBeat { epoch, owned: Some(vec![]), ..a.beat.clone() };
    let greater = "The consumer group member has a greater member epoch (9) than the one known by the group coordinator (2). The member \
                   must abandon all its partitions and rejoin.";
    assert_eq!(words(&mut town, of(9)), (Why::FencedMemberEpoch, greater.into()));
    let smaller = greater.replace("greater", "smaller").replace("(9)", "(1)");
    assert_eq!(words(&mut town, of(1)), (Why::FencedMemberEpoch, smaller));
    assert!(town.beat(of(0)).is_ok(), "it may always begin anew");
    let stale = town.commit(&nobody("g"), 0, 1);
    assert_eq!(stale, Err(Why::UnknownMemberId), "somebody without membership, while there are members");
}

#[test]
fn the_epoch_before_is_good_while_nothing_is_lost() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    town.set_topics(&[("t", 3)]);
    let owned = rows(&a.owned);
    let again = ConsumerBeat { owned: Some(owned.clone()), ..a.beat.clone() };
    assert_eq!(town.beat(again.clone()).map(|beat| beat.epoch), Ok(3));
    // The answer is lost, and it asks again.
    assert_eq!(town.beat(again.clone()).map(|beat| beat.epoch), Ok(3));
    assert_eq!(town.beat(ConsumerBeat { owned: None, ..again.clone() }).map_err(|refused| refused.why), Err(Why::FencedMemberEpoch));
    let other = vec![(crate::core::types::Id(1), vec![0])];
    assert_eq!(town.beat(ConsumerBeat { owned: Some(other), ..again }).map_err(|refused| refused.why), Err(Why::FencedMemberEpoch));
}

#[test]
fn commits_of_the_epoch_or_of_what_was_held_then() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let mut a = Consumer::new("a", &["t"]);
    a.beat(&mut town).expect("it joins");
    let topic = town.topic("t");
    let of = |epoch: i32, partition: i32, knows_epochs: bool| {
        let Request::Commit(mut commit) = commit(&member_of("a", epoch), partition, 5) else { unreachable!() };
        commit.topics[0].id = topic;
        Request::Commit(Commit { knows_epochs, ..commit })
    };
    let ask = |town: &mut Town, request: Request| {
        let ticket = town.ask(request);
        town.committed(ticket)
    };
    assert_eq!(ask(&mut town, of(2, 0, true)), Ok(()));
    assert_eq!(ask(&mut town, of(2, 0, false)), Err(Why::UnsupportedVersion));
    assert_eq!(ask(&mut town, of(3, 0, true)), Err(Why::StaleMemberEpoch));
    town.set_topics(&[("t", 3)]);
    assert_eq!(a.beat(&mut town), Ok(3));
    assert_eq!(ask(&mut town, of(2, 0, true)), Ok(()), "it was its own then, too");
    assert_eq!(ask(&mut town, of(2, 2, true)), Err(Why::StaleMemberEpoch), "this one came later");
    assert_eq!(ask(&mut town, of(1, 0, true)), Err(Why::StaleMemberEpoch));
    let fetch = |member: Option<&str>, epoch| {
        Request::Fetch(Fetch { group: "g".into(), topics: None, require_stable: false, member: member.map(Arc::from), epoch })
    };
    for (member, epoch, expected) in [
        (None, -1, None),
        (Some("a"), 3, None),
        (Some("a"), 2, Some(Why::StaleMemberEpoch)),
        (Some("x"), 3, Some(Why::UnknownMemberId)),
        (None, 3, Some(Why::UnknownMemberId)),
    ] {
        let ticket = town.ask(fetch(member, epoch));
        let Some(Answer::Fetch(result)) = town.got(ticket) else { panic!() };
        assert_eq!(result.err(), expected, "{member:?} at {epoch}");
    }
    a.leave(&mut town, -1).expect("it leaves");
    assert_eq!(town.commit(&nobody("g"), 0, 9), Ok(()), "an operator, when nobody is there");
}

fn static_member(id: &str, instance: &str) -> Consumer {
    let mut consumer = Consumer::new(id, &["t"]);
    consumer.beat.instance = Some(instance.into());
    consumer
}

#[test]
fn a_static_member_comes_back_to_what_it_had() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let (mut a, mut b) = (static_member("a", "one"), static_member("b", "two"));
    a.beat(&mut town).expect("it joins");
    b.beat(&mut town).expect("it joins");
    for _ in 0..2 {
        a.beat(&mut town).expect("it is a member");
        b.beat(&mut town).expect("it is a member");
    }
    let had = a.owned.clone();
    assert_eq!(had.values().map(|indexes| indexes.len()).sum::<usize>(), 2);
    let mut other = static_member("a2", "one");
    let held = "Static member a2 with instance id one cannot join the group because the instance id is owned by a member.";
    assert_eq!(words(&mut town, ConsumerBeat { owned: Some(vec![]), ..other.beat.clone() }), (Why::UnreleasedInstanceId, held.into()));
    assert_eq!(a.leave(&mut town, -2), Ok(-2));
    let epoch = b.beat(&mut town).expect("it is a member");
    assert_eq!(b.count(), 2, "nothing moves");
    let mut town = town.again();
    town.wait(30_000);
    b.beat(&mut town).expect("it is a member");
    assert_eq!((other.beat(&mut town), other.owned.clone()), (Ok(epoch), had));
    let fenced = "Static member a with instance id one was fenced by member a2.";
    assert_eq!(words(&mut town, ConsumerBeat { epoch, ..a.beat.clone() }), (Why::FencedInstanceId, fenced.into()));
    // Whoever does not come back in time is out.
    assert_eq!(other.leave(&mut town, -2), Ok(-2));
    town.wait(44_000);
    b.beat(&mut town).expect("it is a member");
    town.wait(1_000);
    assert_eq!((b.beat(&mut town).is_ok(), b.count()), (true, 4));
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn a_static_member_is_removed_by_name_or_goes_for_good() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let (mut a, mut b) = (static_member("a", "one"), Consumer::new("b", &["t"]));
    a.beat(&mut town).expect("it joins");
    b.beat(&mut town).expect("it joins");
    let rows = town.leave(&[("", Some("one")), ("x", None), ("x", Some("one")), ("b", None), ("", Some("no"))]);
    let unknown = Err(Why::UnknownMemberId);
    assert_eq!(rows, [Ok(()), unknown, Err(Why::FencedInstanceId), Ok(()), unknown]);
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
    a.beat.epoch = 0;
    a.owned.clear();
    a.beat(&mut town).expect("it joins again");
    assert_eq!(a.leave(&mut town, -1), Ok(-1));
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
}

#[test]
fn answers_wait_for_what_they_tell() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    town.hold = true;
    let mut a = Consumer::new("a", &["t"]);
    a.beat.owned = Some(vec![]);
    let first = town.ask(Request::Beat(a.beat.clone()));
    let second = town.ask(Request::Beat(a.beat.clone()));
    assert_eq!((town.got(first), town.got(second)), (None, None), "nothing of it is in the log");
    town.release();
    let epochs = [first, second].map(|ticket| match town.got(ticket) {
        Some(Answer::Beat(Ok(beat))) => beat.epoch,
        other => panic!("{other:?}"),
    });
    assert_eq!(epochs, [2, 2]);
    let third = town.ask(Request::Beat(ConsumerBeat { topics: Some(vec![]), ..a.beat.clone() }));
    let fourth = town.ask(Request::Beat(ConsumerBeat { topics: Some(vec![]), ..a.beat.clone() }));
    town.wait(5_000);
    for ticket in [third, fourth] {
        let Some(Answer::Beat(Err(refused))) = town.got(ticket) else { panic!() };
        assert_eq!(refused.why, Why::CoordinatorNotAvailable, "it takes too long");
    }
    town.unload();
}

#[test]
fn what_could_not_be_written_is_written_with_the_next() {
    let mut town = Town::of_consumers(&[("t", 2)]);
    let (mut a, mut b) = (Consumer::new("a", &["t"]), Consumer::new("b", &["t"]));
    a.beat(&mut town).expect("it joins");
    town.hold = true;
    b.beat.owned = Some(vec![]);
    let ticket = town.ask(Request::Beat(b.beat.clone()));
    town.fail(0, Why::CoordinatorNotAvailable);
    let Some(Answer::Beat(Err(refused))) = town.got(ticket) else { panic!() };
    assert_eq!(refused.why, Why::CoordinatorNotAvailable);
    town.hold = false;
    assert_ne!(town.durable(), town.again().durable(), "the log does not know");
    // A heartbeat without news has nothing to write and does not help; the next step does.
    for _ in 0..3 {
        a.beat(&mut town).expect("it is a member");
        b.beat(&mut town).expect("it is a member");
    }
    assert_eq!((a.count(), b.count()), (1, 1));
    assert_eq!(town.durable(), town.again().durable());
}
