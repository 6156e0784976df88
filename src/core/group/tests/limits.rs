//! Bounds, and what survives a failover.

use super::*;

#[test]
fn a_full_group_takes_nobody_in() {
    let mut town = Town::with(Settings { initial_rebalance_delay: 0, max_size: 2, ..Settings::default() }, &[], 0);
    let members = town.stable(2);
    let ticket = town.ask(join("", "third"));
    assert_eq!(town.not_joined(ticket), (Why::GroupMaxSizeReached, "".into()));
    let leads = town.ask(join(&members[0].member, "again"));
    let follows = town.ask(join(&members[1].member, "again"));
    let again = town.ask(join(&members[1].member, "again"));
    assert_eq!(town.joined(leads).members.len(), 2);
    town.joined(follows);
    town.joined(again);
}

#[test]
fn a_group_that_is_loaded_too_large_is_rebalanced_down() {
    let mut town = Town::new();
    let members = town.stable(3);
    let mut town = Town::with(Settings { max_size: 2, ..Settings::default() }, &town.log, town.now);
    assert_eq!(town.state(), State::PreparingRebalance);
    let again: Vec<Ticket> = members.iter().map(|m| town.ask(join(&m.member, "again"))).collect();
    assert_eq!(town.not_joined(again[2]).0, Why::GroupMaxSizeReached);
    assert_eq!(town.joined(again[0]).members.len(), 2);
    town.joined(again[1]);
}

#[test]
fn a_new_member_that_waits_too_long_is_forgotten() {
    let mut town = Town::new();
    let members = town.stable(1);
    let slow = Join { rebalance_timeout: 3_600_000, session_timeout: 600_000, ..join_of(&members[0].member, "slow") };
    let ticket = town.ask(Request::Join(slow));
    town.joined(ticket);
    let (_, newcomer) = town.come("new");
    town.wait(299_999);
    assert_eq!(town.got(newcomer), None);
    town.wait(1);
    assert_eq!(town.not_joined(newcomer), (Why::UnknownMemberId, "".into()));
}

#[test]
fn sessions_go_on_after_a_failover() {
    let mut town = Town::new();
    let members = town.stable(2);
    let mut town = town.again();
    assert_eq!(town.state(), State::Stable);
    assert!(members.iter().all(|m| town.heartbeat(m) == Ok(())));
    let ticket = town.ask(sync(&members[1], &[]));
    assert_eq!(town.assigned(ticket), Ok(assignment(&members[1].member)), "it is still known");
    town.wait(10_000);
    assert_eq!(town.state(), State::Empty, "both were silent");
    assert_eq!(town.again().state(), State::Empty);
}

#[test]
fn generations_wrap_and_stay_positive() {
    let mut town = Town::new();
    let members = town.stable(1);
    let Some(GroupRecord::Group { value: Some(value), .. }) = town.log.last_mut() else { panic!() };
    value.generation = i32::MAX;
    let mut town = town.again();
    let ticket = town.ask(join(&members[0].member, "again"));
    assert_eq!(town.joined(ticket).generation, 1);
}
