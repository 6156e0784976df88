//! The classic protocol as timelines: who joins, syncs, leaves, falls silent, and what each is answered.

use super::*;

#[test]
fn the_first_member_is_given_an_id_joins_and_leads() {
    let mut town = Town::new();
    let ticket = town.ask(join("", "client"));
    let (why, member) = town.not_joined(ticket);
    assert_eq!(why, Why::MemberIdRequired);
    assert!(member.starts_with("client-") && member.len() == "client-".len() + 36, "{member}");
    assert_eq!(town.describe("g").map(|group| (group.state, group.members.len())), Some((State::Empty, 0)));

    let ticket = town.ask(join(&member, "client"));
    let joined = town.joined(ticket);
    assert_eq!((joined.generation, joined.leader.clone(), joined.members.len()), (1, member.clone(), 1));
    assert_eq!((joined.protocol_type.as_deref(), joined.protocol.as_deref()), (Some("consumer"), Some("range")));
    assert_eq!(joined.members[0].metadata, reads_t());
    assert_eq!(town.state(), State::CompletingRebalance);

    let me = member_of(&member, 1);
    let ticket = town.ask(sync(&me, std::slice::from_ref(&me)));
    assert_eq!(town.assigned(ticket), Ok(assignment(&member)));
    let group = town.describe("g").unwrap();
    assert_eq!((group.state, group.protocol.as_deref()), (State::Stable, Some("range")));
    let seen = &group.members[0];
    assert_eq!(
        (&*seen.client_id, &*seen.client_host, &seen.metadata, &seen.assignment),
        ("client", "/10.0.0.1", &reads_t(), &assignment(&member))
    );
}

#[test]
fn old_clients_join_without_an_id_of_their_own() {
    let mut town = Town::new();
    let ticket = town.ask(Request::Join(Join { member_id_required: false, ..join_of("", "old") }));
    let joined = town.joined(ticket);
    assert!(joined.member.starts_with("old-"));
    assert_eq!(joined.leader, joined.member);
}

#[test]
fn only_the_leader_sees_all_members_and_followers_wait_for_its_assignment() {
    let mut town = Town::new();
    let (a, first) = town.come("a");
    town.joined(first);
    let (b, second) = town.come("b");
    assert_eq!(town.state(), State::PreparingRebalance);
    let again = town.ask(join(&a, "a"));
    let (leader, follower) = (town.joined(again), town.joined(second));
    assert_eq!((leader.generation, follower.generation), (2, 2));
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
    assert_eq!(follower.leader, a);

    let both = [member_of(&a, 2), member_of(&b, 2)];
    let waits = town.ask(sync(&both[1], &[]));
    assert_eq!(town.got(waits), None);
    let leads = town.ask(sync(&both[0], &both));
    assert_eq!(town.assigned(leads), Ok(assignment(&a)));
    assert_eq!(town.assigned(waits), Ok(assignment(&b)));
    let asks_again = town.ask(sync(&both[1], &[]));
    assert_eq!(town.assigned(asks_again), Ok(assignment(&b)));
}

#[test]
fn a_member_that_the_leader_forgot_gets_nothing() {
    let mut town = Town::new();
    let members = town.stable(2);
    let again: Vec<Ticket> = members.iter().map(|m| town.ask(join(&m.member, "x"))).collect();
    let generation = town.joined(again[0]).generation;
    let now: Vec<Membership> = members.iter().map(|m| member_of(&m.member, generation)).collect();
    let leads = town.ask(sync(&now[0], &[now[0].clone(), member_of("stranger", generation)]));
    assert!(town.assigned(leads).is_ok());
    let forgotten = town.ask(sync(&now[1], &[]));
    assert_eq!(town.assigned(forgotten), Ok(Bytes::new()));
}

#[test]
fn first_members_are_waited_for_as_long_as_some_come() {
    let settings = Settings { initial_rebalance_delay: 3_000, ..Settings::default() };
    let mut town = Town::with(settings.clone(), &[], 0);
    let (_, alone) = town.come("a");
    town.wait(2_999);
    assert_eq!(town.got(alone), None);
    town.wait(1);
    assert_eq!(town.joined(alone).members.len(), 1);

    // Somebody comes in each piece of the wait, which ends with the rebalance timeout of 7 seconds.
    let mut town = Town::with(settings, &[], 0);
    let come = |town: &mut Town, name| {
        let ticket = town.ask(join("", name));
        let (_, member) = town.not_joined(ticket);
        let request = Join { rebalance_timeout: 7_000, ..join_of(&member, name) };
        town.ask(Request::Join(request))
    };
    let first = come(&mut town, "a");
    for name in ["b", "c", "d"] {
        town.wait(2_000);
        come(&mut town, name);
        assert_eq!(town.got(first), None, "{name}");
    }
    town.wait(999);
    assert_eq!(town.got(first), None);
    town.wait(1);
    assert_eq!(town.joined(first).members.len(), 4);
}

#[test]
fn an_assignment_is_handed_out_when_it_is_in_the_log() {
    let mut town = Town::new();
    let (a, ticket) = town.come("a");
    let me = member_of(&a, town.joined(ticket).generation);
    town.hold = true;
    let ticket = town.ask(sync(&me, std::slice::from_ref(&me)));
    assert_eq!((town.got(ticket), town.state()), (None, State::CompletingRebalance));
    assert_eq!(town.heartbeat(&me), Ok(()));
    town.release();
    assert_eq!((town.assigned(ticket), town.state()), (Ok(assignment(&a)), State::Stable));
}

#[test]
fn an_assignment_that_cannot_be_written_means_another_rebalance() {
    let mut town = Town::new();
    let (a, ticket) = town.come("a");
    let me = member_of(&a, town.joined(ticket).generation);
    town.hold = true;
    let ticket = town.ask(sync(&me, std::slice::from_ref(&me)));
    town.fail(0, Why::CoordinatorNotAvailable);
    assert_eq!(town.assigned(ticket), Err(Why::CoordinatorNotAvailable));
    assert_eq!((town.state(), town.heartbeat(&me)), (State::PreparingRebalance, Err(Why::RebalanceInProgress)));

    // The same if it takes too long; what comes late changes nothing.
    let ticket = town.ask(join(&a, "a"));
    let me = member_of(&a, town.joined(ticket).generation);
    let ticket = town.ask(sync(&me, std::slice::from_ref(&me)));
    town.wait(4_999);
    assert_eq!(town.got(ticket), None);
    town.wait(1);
    assert_eq!(town.assigned(ticket), Err(Why::CoordinatorNotAvailable));
    town.release();
    assert_eq!(town.state(), State::PreparingRebalance);
}

#[test]
fn an_assignment_for_a_generation_that_is_over_is_not_handed_out() {
    let mut town = Town::new();
    let (a, ticket) = town.come("a");
    let me = member_of(&a, town.joined(ticket).generation);
    town.hold = true;
    let stale = town.ask(sync(&me, std::slice::from_ref(&me)));
    let (_, newcomer) = town.come("b");
    assert_eq!(town.assigned(stale), Err(Why::RebalanceInProgress), "somebody came while it was written");
    let again = town.ask(join(&a, "a"));
    town.release();
    assert_eq!(town.state(), State::CompletingRebalance);
    assert_eq!(town.joined(again).generation, 2);
    town.joined(newcomer);
}

#[test]
fn silence_puts_a_member_out_and_heartbeats_do_not() {
    let mut town = Town::new();
    let members = town.stable(2);
    for _ in 0..3 {
        town.wait(9_000);
        assert!(members.iter().all(|member| town.heartbeat(member) == Ok(())));
    }
    town.wait(9_000);
    assert_eq!(town.heartbeat(&members[0]), Ok(()));
    town.wait(999);
    assert_eq!(town.heartbeat(&members[0]), Ok(()));
    town.wait(1);
    assert_eq!(town.heartbeat(&members[0]), Err(Why::RebalanceInProgress));
    assert_eq!(town.heartbeat(&members[1]), Err(Why::UnknownMemberId));
    let ticket = town.ask(join(&members[0].member, "client-0"));
    let joined = town.joined(ticket);
    assert_eq!((joined.members.len(), joined.generation), (1, members[0].generation + 1));
}

#[test]
fn a_heartbeat_during_a_rebalance_is_refused_and_counts_all_the_same() {
    let mut town = Town::new();
    let members = town.stable(2);
    let (_, newcomer) = town.come("late");
    for _ in 0..5 {
        town.wait(9_000);
        assert!(members.iter().all(|m| town.heartbeat(m) == Err(Why::RebalanceInProgress)));
    }
    assert_eq!(town.got(newcomer), None, "it waits up to the rebalance timeout for those who are alive");
    town.wait(15_000);
    assert_eq!(town.joined(newcomer).members.len(), 1, "then it goes on without them");
    assert!(members.iter().all(|m| town.heartbeat(m) == Err(Why::UnknownMemberId)));
}

#[test]
fn a_leader_that_never_assigns_is_put_out() {
    let mut town = Town::new();
    let (a, first) = town.come("a");
    town.joined(first);
    let (b, second) = town.come("b");
    let again = town.ask(join(&a, "a"));
    let generation = town.joined(again).generation;
    town.joined(second);
    let waits = town.ask(sync(&member_of(&b, generation), &[]));
    // The leader is alive but does not do its work.
    for _ in 0..7 {
        town.wait(9_000);
        let _ = town.heartbeat(&member_of(&a, generation));
    }
    assert_eq!(town.assigned(waits), Err(Why::RebalanceInProgress));
    assert_eq!(town.heartbeat(&member_of(&a, generation)), Err(Why::UnknownMemberId));
    let ticket = town.ask(join(&b, "b"));
    assert_eq!(town.joined(ticket).leader, b);
}

#[test]
fn a_leader_that_does_not_join_again_is_replaced() {
    let mut town = Town::new();
    let members = town.stable(3);
    town.leave(&[(&members[2].member, None)]);
    let ticket = town.ask(join(&members[1].member, "x"));
    town.wait(60_000);
    let joined = town.joined(ticket);
    assert_eq!((joined.leader.clone(), joined.members.len()), (members[1].member.clone(), 1));
}

#[test]
fn an_id_that_was_given_out_and_not_used_does_not_hold_up_the_rebalance_for_ever() {
    let mut town = Town::new();
    let members = town.stable(1);
    let ticket = town.ask(join("", "ghost"));
    town.not_joined(ticket);
    let again = town.ask(join(&members[0].member, "client-0"));
    town.wait(9_999);
    assert_eq!(town.got(again), None);
    town.wait(1);
    assert_eq!(town.joined(again).members.len(), 1);
}

#[test]
fn coming_again_unchanged_changes_nothing_except_for_the_leader() {
    let mut town = Town::new();
    let members = town.stable(2);
    let generation = members[0].generation;
    let ticket = town.ask(join(&members[1].member, "client-1"));
    let joined = town.joined(ticket);
    assert_eq!((joined.generation, joined.members.len(), town.state()), (generation, 0, State::Stable));

    let leads = town.ask(join(&members[0].member, "client-0"));
    assert_eq!((town.got(leads), town.state()), (None, State::PreparingRebalance));
    let follows = town.ask(join(&members[1].member, "client-1"));
    assert_eq!((town.joined(leads).generation, town.joined(follows).generation), (generation + 1, generation + 1));

    // While the leader assigns, the answer of this generation is given again.
    let leads = town.ask(join(&members[0].member, "client-0"));
    assert_eq!(town.joined(leads).members.len(), 2);
    let other = Join { protocols: protocols(&["range", "sticky"]), ..join_of(&members[1].member, "client-1") };
    let follows = town.ask(Request::Join(other.clone()));
    assert_eq!((town.got(follows), town.state()), (None, State::PreparingRebalance));
    let leads = town.ask(join(&members[0].member, "client-0"));
    assert_eq!(town.joined(leads).generation, generation + 2);
    town.joined(follows);
}

#[test]
fn a_request_sent_again_takes_the_place_of_the_first() {
    let mut town = Town::new();
    let members = town.stable(2);
    let first = town.ask(join(&members[0].member, "client-0"));
    let second = town.ask(join(&members[0].member, "client-0"));
    assert_eq!(town.not_joined(first).0, Why::RebalanceInProgress);
    let follower = town.ask(join(&members[1].member, "client-1"));
    let generation = town.joined(second).generation;
    town.joined(follower);
    let from = member_of(&members[1].member, generation);
    let (first, second) = (town.ask(sync(&from, &[])), town.ask(sync(&from, &[])));
    assert_eq!((town.assigned(first), town.got(second)), (Err(Why::RebalanceInProgress), None));
}

#[test]
fn the_protocol_that_most_prefer_of_those_that_all_have() {
    for (each, expected) in [
        (vec![vec!["a", "b"], vec!["b", "a"], vec!["b", "a"]], "b"),
        (vec![vec!["a", "b"], vec!["b", "a"]], "a"),
        (vec![vec!["cooperative-sticky", "range"], vec!["range"]], "range"),
        (vec![vec!["range", "range"], vec!["range"]], "range"),
    ] {
        let mut town = Town::with(Settings::default(), &[], 0);
        let tickets: Vec<Ticket> = each
            .iter()
            .map(|names| town.ask(Request::Join(Join { protocols: protocols(names), member_id_required: false, ..join_of("", "c") })))
            .collect();
        town.wait(6_000);
        for ticket in tickets {
            assert_eq!(town.joined(ticket).protocol.as_deref(), Some(expected), "{each:?}");
        }
    }
}

#[test]
fn members_whose_protocols_do_not_meet_the_groups_stay_out() {
    let mut town = Town::new();
    let none = town.ask(Request::Join(Join { protocols: vec![], ..join_of("", "x") }));
    assert_eq!(town.not_joined(none).0, Why::InconsistentGroupProtocol);
    assert_eq!(town.state(), State::Dead, "nor do they make a group");
    let members = town.stable(1);
    for request in [
        Join { protocols: protocols(&["sticky"]), ..join_of("", "x") },
        Join { protocol_type: "connect".into(), ..join_of("", "x") },
        Join { protocols: protocols(&["sticky"]), instance: Some("i".into()), ..join_of("", "x") },
    ] {
        let ticket = town.ask(Request::Join(request.clone()));
        assert_eq!(town.not_joined(ticket).0, Why::InconsistentGroupProtocol, "{request:?}");
    }
    let Request::Sync(right) = sync(&members[0], &[]) else { panic!() };
    for wrong in
        [Sync { protocol: Some("sticky".into()), ..right.clone() }, Sync { protocol_type: Some("connect".into()), ..right.clone() }]
    {
        let ticket = town.ask(Request::Sync(wrong));
        assert_eq!(town.assigned(ticket), Err(Why::InconsistentGroupProtocol));
    }
    let silent = town.ask(Request::Sync(Sync { protocol: None, protocol_type: None, ..right }));
    assert!(town.assigned(silent).is_ok(), "old clients do not say");
}

#[test]
fn members_leave_one_by_one_and_together() {
    let mut town = Town::new();
    let members = town.stable(3);
    let pending = town.ask(join("", "pending"));
    let (_, pending) = town.not_joined(pending);
    let out = town.leave(&[(&members[1].member, None), ("stranger", None), (&pending, None), ("", Some("nobody")), ("", None)]);
    assert_eq!(out, [Ok(()), Err(Why::UnknownMemberId), Ok(()), Err(Why::UnknownMemberId), Err(Why::UnknownMemberId)]);
    assert_eq!(town.state(), State::PreparingRebalance);
    let again: Vec<Ticket> = [0, 2].iter().map(|i| town.ask(join(&members[*i].member, "again"))).collect();
    assert_eq!(town.joined(again[0]).members.len(), 2);
    town.joined(again[1]);
    town.hold = true;
    let both = [0, 2].iter().map(|i| Leaver { member: members[*i].member.clone(), instance: None, reason: Some("done".into()) });
    let ticket = town.ask(Request::Leave(Leave { group: "g".into(), members: both.collect() }));
    assert_eq!((town.state(), town.got(ticket)), (State::Empty, None), "the last one out waits for the record");
    town.release();
    assert!(matches!(town.got(ticket), Some(Answer::Leave(Ok(rows))) if rows.iter().all(|row| row.result.is_ok())));
    assert_eq!(town.again().state(), State::Empty);
    assert!(town.leave(&[("x", None)])[0].is_err());
}

#[test]
fn whoever_waits_when_it_leaves_is_told_first() {
    let mut town = Town::new();
    let members = town.stable(2);
    let waits = town.ask(join(&members[0].member, "again"));
    assert_eq!(town.leave(&[(&members[0].member, None)]), [Ok(())]);
    assert_eq!(town.not_joined(waits), (Why::UnknownMemberId, "".into()));
    let (_, newcomer) = town.come("b");
    let again = town.ask(join(&members[1].member, "again"));
    let generation = town.joined(again).generation;
    let other = town.joined(newcomer).member;
    let waits = town.ask(sync(&member_of(&other, generation), &[]));
    town.leave(&[(&other, None)]);
    assert_eq!(town.assigned(waits), Err(Why::UnknownMemberId));
}

#[test]
fn a_group_says_why_it_rebalances_and_for_whom_it_waits() {
    let mut town = Town::new();
    let members = town.stable(2);
    let view = |town: &Town| {
        let view = town.coordinator.views().next().unwrap();
        (view.state, view.missing, view.awaited.join(" "), view.reason.to_string(), view.since)
    };
    assert_eq!(view(&town).1, 0);
    town.wait(5);
    let other = Join { reason: Some("topics changed".into()), ..join_of(&members[0].member, "client-0") };
    let leads = town.ask(Request::Join(other));
    let a = members[0].member.clone();
    let since = Some(Millis(town.now));
    let reason = format!("member {a} leads and joined again: topics changed");
    assert_eq!(view(&town), (State::PreparingRebalance, 1, members[1].member.to_string(), reason.clone(), since));
    let follows = town.ask(join(&members[1].member, "client-1"));
    let generation = town.joined(leads).generation;
    town.joined(follows);
    town.ask(sync(&member_of(&members[1].member, generation), &[]));
    assert_eq!(view(&town), (State::CompletingRebalance, 1, a.to_string(), reason, since));
}
