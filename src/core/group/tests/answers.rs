//! What each request is answered in each state, and at the end.

use super::*;

#[test]
fn each_state_has_its_answers() {
    let mut town = Town::new();
    let stranger = member_of("stranger", 1);
    let sync_of = |town: &mut Town, from: &Membership| {
        let ticket = town.ask(sync(from, &[]));
        town.assigned(ticket)
    };
    // No group.
    assert_eq!(sync_of(&mut town, &stranger), Err(Why::UnknownMemberId));
    assert_eq!(town.heartbeat(&stranger), Err(Why::UnknownMemberId));
    assert_eq!(town.leave(&[("stranger", None)]), [Err(Why::UnknownMemberId)]);
    assert_eq!(town.commit(&stranger, 0, 1), Err(Why::GroupIdNotFound));
    let ticket = town.ask(join("stranger", "x"));
    assert_eq!(town.not_joined(ticket), (Why::UnknownMemberId, "stranger".into()));
    // Empty.
    let ticket = town.ask(join("", "x"));
    town.not_joined(ticket);
    assert_eq!(sync_of(&mut town, &stranger), Err(Why::UnknownMemberId));
    assert_eq!(town.heartbeat(&stranger), Err(Why::UnknownMemberId));
    assert_eq!(town.commit(&stranger, 0, 1), Err(Why::UnknownMemberId));
    assert_eq!(town.commit(&nobody("g"), 0, 1), Ok(()));
    let ticket = town.ask(join("stranger", "x"));
    assert_eq!(town.not_joined(ticket), (Why::UnknownMemberId, "stranger".into()));
    // Stable.
    town.wait(10_000);
    let me = town.stable(1).remove(0);
    let old = Membership { generation: me.generation - 1, ..me.clone() };
    assert_eq!(town.heartbeat(&old), Err(Why::IllegalGeneration));
    assert_eq!(sync_of(&mut town, &old), Err(Why::IllegalGeneration));
    assert_eq!(town.commit(&old, 0, 1), Err(Why::IllegalGeneration));
    assert_eq!(town.commit(&nobody("g"), 0, 1), Err(Why::UnknownMemberId));
    assert_eq!(town.commit(&member_of("stranger", me.generation), 0, 1), Err(Why::UnknownMemberId));
    assert_eq!(town.commit(&me, 0, 1), Ok(()));
    // PreparingRebalance: what was read before may still be committed.
    let (_, newcomer) = town.come("b");
    assert_eq!(sync_of(&mut town, &me), Err(Why::RebalanceInProgress));
    assert_eq!(town.commit(&me, 0, 2), Ok(()));
    // CompletingRebalance.
    let again = town.ask(join(&me.member, "a"));
    let now = member_of(&me.member, town.joined(again).generation);
    town.joined(newcomer);
    assert_eq!(town.heartbeat(&now), Ok(()));
    assert_eq!(town.commit(&now, 0, 3), Err(Why::RebalanceInProgress));
    assert_eq!(town.offsets("g"), [("t".into(), 0, 2)]);
}

#[test]
fn requests_that_make_no_sense() {
    let mut town = Town::new();
    let empty = |town: &mut Town, request| {
        let ticket = town.ask(request);
        town.got(ticket).unwrap()
    };
    let from = nobody("");
    let join = |millis| Request::Join(Join { session_timeout: millis, ..join_of("", "x") });
    for (request, why) in [
        (Request::Join(Join { group: "".into(), ..join_of("", "x") }), Why::InvalidGroupId),
        (join(5_999), Why::InvalidSessionTimeout),
        (join(1_800_001), Why::InvalidSessionTimeout),
        (sync(&from, &[]), Why::InvalidGroupId),
        (Request::Heartbeat(from.clone()), Why::InvalidGroupId),
        (Request::Leave(Leave { group: "".into(), members: vec![] }), Why::InvalidGroupId),
        (Request::DeleteOffsets(DeleteOffsets { group: "".into(), topics: vec![] }), Why::InvalidGroupId),
    ] {
        let refusal = request.refusal(why);
        assert_eq!(empty(&mut town, request), refusal);
    }
    assert_eq!(town.commit(&from, 0, 1), Ok(()), "offsets of the group without a name have always been taken");
    assert_eq!(town.offsets(""), [("t".into(), 0, 1)]);
}

#[test]
fn when_another_broker_takes_over_everybody_is_told() {
    let mut town = Town::new();
    let members = town.stable(2);
    town.hold = true;
    let write = town.ask(commit(&members[0], 0, 1));
    let read = town.ask(Request::Fetch(Fetch { group: "g".into(), topics: None, require_stable: true, member: None, epoch: -1 }));
    let joins = town.ask(join(&members[0].member, "again"));
    let other = Join { group: "h".into(), member_id_required: false, ..join_of("", "x") };
    let leads = town.ask(Request::Join(other));
    let leader = town.joined(leads);
    let from = Membership { group: "h".into(), ..member_of(&leader.member, leader.generation) };
    let syncs = town.ask(sync(&from, std::slice::from_ref(&from)));
    assert_eq!(town.unanswered(), 4);
    let answers = town.unload();
    assert_eq!(answers[&write], Answer::Commit(Err(Why::NotCoordinator)));
    assert_eq!(answers[&read], Answer::Fetch(Err(Why::NotCoordinator)));
    assert_eq!(answers[&joins], Answer::Join(Err(JoinRefused { why: Why::NotCoordinator, member: members[0].member.clone() })));
    assert_eq!(answers[&syncs], Answer::Sync(Err(Why::NotCoordinator)));
}

#[test]
fn the_first_of_a_group_that_cannot_be_written_is_told() {
    let mut town = Town::with(Settings::default(), &[], 0);
    town.hold = true;
    let ticket = town.ask(Request::Join(Join { member_id_required: false, ..join_of("", "old") }));
    town.fail(0, Why::CoordinatorNotAvailable);
    assert_eq!(town.not_joined(ticket).0, Why::CoordinatorNotAvailable);
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut town = Town::new();
    town.stable(1);
    assert_eq!(town.commit(&nobody("simple"), 0, 1), Ok(()));
    let list = |town: &mut Town, states: &[&str], kinds: &[&str]| {
        let of = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let ticket = town.ask(Request::List(List { states: of(states), kinds: of(kinds) }));
        let Some(Answer::List(Ok(listed))) = town.got(ticket) else { panic!() };
        listed
            .into_iter()
            .map(|group| format!("{} {} {} {}", group.group, group.state.name(), group.kind.name(), group.protocol_type))
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&mut town, &[], &[]), ["g Stable classic consumer", "simple Empty classic "]);
    assert_eq!(list(&mut town, &["STABLE", "Dead"], &["Classic"]), ["g Stable classic consumer"]);
    assert_eq!(list(&mut town, &[], &["consumer"]), [""; 0]);
}
