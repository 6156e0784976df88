//! Members with a `group.instance.id`.

use super::*;

fn static_join(instance: &str, member: &str) -> Join {
    Join { instance: Some(instance.into()), session_timeout: 30_000, ..join_of(member, "client") }
}

fn from(instance: &str, member: &str, generation: i32) -> Membership {
    Membership { instance: Some(instance.into()), ..member_of(member, generation) }
}

/// A stable group of two static members; the first leads.
fn stable(town: &mut Town) -> [Membership; 2] {
    let first = town.ask(Request::Join(static_join("one", "")));
    let a = town.joined(first).member;
    let second = town.ask(Request::Join(static_join("two", "")));
    let again = town.ask(Request::Join(static_join("one", &a)));
    let generation = town.joined(again).generation;
    let b = town.joined(second).member;
    let both = [from("one", &a, generation), from("two", &b, generation)];
    let waits = town.ask(sync(&both[1], &[]));
    let leads = town.ask(sync(&both[0], &both));
    assert!(town.assigned(leads).is_ok() && town.assigned(waits).is_ok());
    both
}

#[test]
fn a_restart_within_the_session_changes_nothing_but_the_id() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    assert!(b.member.starts_with("two-"), "{}", b.member);
    let ticket = town.ask(Request::Join(static_join("two", "")));
    let joined = town.joined(ticket);
    assert_eq!((joined.generation, joined.leader, town.state()), (a.generation, a.member.clone(), State::Stable));
    assert_ne!(joined.member, b.member);
    assert!(!joined.skip_assignment);

    let now = from("two", &joined.member, a.generation);
    let ticket = town.ask(sync(&now, &[]));
    assert_eq!(town.assigned(ticket), Ok(assignment(&b.member)), "it keeps what its former self had");
    assert_eq!((town.heartbeat(&now), town.heartbeat(&a)), (Ok(()), Ok(())));

    // Its former self is fenced, in whatever it does.
    assert_eq!(town.heartbeat(&b), Err(Why::FencedInstanceId));
    assert_eq!(town.commit(&b, 0, 1), Err(Why::FencedInstanceId));
    let ticket = town.ask(sync(&b, &[]));
    assert_eq!(town.assigned(ticket), Err(Why::FencedInstanceId));
    let ticket = town.ask(Request::Join(static_join("two", &b.member)));
    assert_eq!(town.not_joined(ticket).0, Why::FencedInstanceId);
    assert_eq!(town.leave(&[(&b.member, Some("two"))]), [Err(Why::FencedInstanceId)]);
    let ticket = town.ask(Request::Join(static_join("three", "three-x")));
    assert_eq!(town.not_joined(ticket).0, Why::UnknownMemberId);

    let mut town = town.again();
    assert_eq!(town.heartbeat(&now), Ok(()), "the new id is written");
}

#[test]
fn a_leader_that_comes_back_is_told_whether_to_assign() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    let ticket = town.ask(Request::Join(static_join("one", "")));
    let joined = town.joined(ticket);
    assert_eq!((joined.leader.clone(), joined.skip_assignment, joined.members.len()), (joined.member.clone(), true, 2));
    assert_eq!((joined.generation, town.state()), (a.generation, State::Stable));

    // One that does not understand that must not know that it leads.
    let ticket = town.ask(Request::Join(Join { skip_assignment: false, ..static_join("one", "") }));
    let again = town.joined(ticket);
    assert_eq!((again.leader, again.skip_assignment, again.members.len()), (joined.member, false, 0));
    assert_eq!(town.heartbeat(&b), Ok(()));
}

#[test]
fn a_return_that_cannot_be_written_is_undone() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    town.hold = true;
    let ticket = town.ask(Request::Join(Join { session_timeout: 20_000, ..static_join("two", "") }));
    assert_eq!(town.got(ticket), None);
    assert_eq!(town.heartbeat(&b), Err(Why::FencedInstanceId));
    town.fail(0, Why::NotCoordinator);
    assert_eq!(town.not_joined(ticket), (Why::NotCoordinator, "".into()));
    assert_eq!((town.heartbeat(&a), town.heartbeat(&b)), (Ok(()), Ok(())));
    town.wait(25_000);
    town.heartbeat(&a).unwrap();
    assert_eq!(town.heartbeat(&b), Ok(()), "its session timeout is the old one, too");
}

#[test]
fn a_rebalance_while_a_return_is_written_takes_the_member_along() {
    let mut town = Town::new();
    let [a, _] = stable(&mut town);
    town.hold = true;
    let back = town.ask(Request::Join(static_join("two", "")));
    let leads = town.ask(Request::Join(static_join("one", &a.member)));
    let joined = town.joined(back);
    assert_eq!((joined.generation, town.joined(leads).members.len()), (a.generation + 1, 2));
    town.release();
    assert_eq!(town.heartbeat(&from("two", &joined.member, joined.generation)), Ok(()));
}

#[test]
fn a_return_while_the_leader_assigns_begins_a_new_rebalance() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    let leads = town.ask(Request::Join(static_join("one", &a.member)));
    let follows = town.ask(Request::Join(static_join("two", &b.member)));
    let generation = town.joined(leads).generation;
    town.joined(follows);
    let waits = town.ask(sync(&from("two", &b.member, generation), &[]));
    let back = town.ask(Request::Join(static_join("two", "")));
    assert_eq!(town.assigned(waits), Err(Why::FencedInstanceId));
    assert_eq!((town.got(back), town.state()), (None, State::PreparingRebalance));
    let leads = town.ask(Request::Join(static_join("one", &a.member)));
    assert_eq!(town.joined(leads).members.len(), 2);
    town.joined(back);
}

#[test]
fn a_return_during_a_rebalance_takes_the_place_of_who_waits() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    let first = town.ask(Request::Join(Join { protocols: protocols(&["range", "x"]), ..static_join("two", &b.member) }));
    let second = town.ask(Request::Join(static_join("two", "")));
    assert_eq!(town.not_joined(first), (Why::FencedInstanceId, b.member.clone()));
    let leads = town.ask(Request::Join(static_join("one", &a.member)));
    assert_eq!(town.joined(leads).members.len(), 2);
    town.joined(second);
}

#[test]
fn a_return_that_changes_the_protocol_rebalances() {
    let mut town = Town::new();
    let join = |instance, member, names: &[&str]| Request::Join(Join { protocols: protocols(names), ..static_join(instance, member) });
    let ticket = town.ask(join("one", "", &["range", "sticky"]));
    let me = town.joined(ticket);
    let me = from("one", &me.member, me.generation);
    let ticket = town.ask(sync(&me, std::slice::from_ref(&me)));
    town.assigned(ticket).unwrap();
    let back = town.ask(join("one", "", &["sticky", "range"]));
    let joined = town.joined(back);
    assert_eq!((joined.protocol.as_deref(), joined.generation), (Some("sticky"), me.generation + 1));
}

#[test]
fn a_static_member_that_does_not_join_again_stays_until_its_session_ends() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    let leads = town.ask(Request::Join(Join { rebalance_timeout: 12_000, ..static_join("one", &a.member) }));
    let ping = |town: &mut Town| {
        for _ in 0..6 {
            town.wait(10_000);
            let _ = town.heartbeat(&b);
        }
    };
    ping(&mut town);
    let joined = town.joined(leads);
    assert_eq!(joined.members.len(), 2, "the rebalance goes on without it, but it is still a member");
    town.leave(&[("", Some("two"))]);
    assert_eq!(town.heartbeat(&b), Err(Why::UnknownMemberId), "unless an operator removes it");
}

#[test]
fn a_group_of_static_members_that_are_all_away_waits_for_them() {
    let mut town = Town::new();
    let [a, b] = stable(&mut town);
    town.wait(29_000);
    town.heartbeat(&a).unwrap();
    town.wait(1_000);
    assert_eq!(town.state(), State::PreparingRebalance, "one session has ended");
    assert_eq!(town.heartbeat(&b), Err(Why::UnknownMemberId));
    let ticket = town.ask(Request::Join(static_join("one", "")));
    let joined = town.joined(ticket);
    assert_eq!((joined.members.len(), joined.leader), (1, joined.member));
    town.wait(30_000);
    assert_eq!(town.state(), State::Empty);
}
