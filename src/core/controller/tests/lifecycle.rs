//! Brokers that stop in good order, and disks that fail.

use super::elections::{ids, three};
use super::*;
use crate::core::controller::records::{BrokerRegistrationChange, PartitionChange};
use crate::core::election::Trigger;

fn beat(world: &mut World, id: i32, change: impl FnOnce(Heartbeat) -> Heartbeat) -> (BrokerState, Decision) {
    let heartbeat = change(Heartbeat::new(BrokerId(id), world.epoch_of(id), Offset(999)));
    let decision = world.done(Request::Heartbeat(heartbeat));
    let Answer::Heartbeat(Ok(state)) = decision.answer else { panic!("{decision:?}") };
    (state, decision)
}

fn stopping(heartbeat: Heartbeat) -> Heartbeat {
    Heartbeat { want_shutdown: true, ..heartbeat }
}

#[test]
fn a_broker_stops_when_its_leaderships_have_moved_and_everyone_knows() {
    let mut world = three(true);
    let change = BrokerRegistrationChange::new(BrokerId(1), world.epoch_of(1));
    let (state, decision) = beat(&mut world, 1, stopping);
    assert_eq!(state, BrokerState { caught_up: true, fenced: false, shutting_down: true, may_stop: false });
    let moved = PartitionChange { leader: Some(BrokerId(2)), isr: Some(ids(&[2, 3])), ..world.change() };
    let marked = BrokerRegistrationChange { in_controlled_shutdown: true, ..change.clone() };
    assert_eq!(decision.records, [Record::BrokerRegistrationChange(marked), Record::PartitionChange(moved)]);
    assert_eq!(decision.elections[0].trigger, Trigger::ControlledShutdown);
    let end = world.log.len() as i64;
    let waiting = |seen| move |h: Heartbeat| Heartbeat { shutdown_from: Some(Offset(end)), others_have_seen: Offset(seen), ..stopping(h) };
    let (state, decision) = beat(&mut world, 1, waiting(end - 1));
    assert_eq!((state.shutting_down, state.may_stop, decision.records), (true, false, vec![]), "somebody has not heard of it");
    let (state, decision) = beat(&mut world, 1, waiting(end));
    assert_eq!(state, BrokerState { caught_up: true, fenced: true, shutting_down: false, may_stop: true });
    assert_eq!(decision.records, [Record::BrokerRegistrationChange(BrokerRegistrationChange { fenced: Some(true), ..change })]);
    let (state, decision) = beat(&mut world, 1, stopping);
    assert_eq!((state.may_stop, decision.records), (true, vec![]), "asked again");
}

#[test]
fn who_leads_nothing_stops_at_once() {
    let mut world = three(false);
    let (state, decision) = beat(&mut world, 3, stopping);
    assert!(state.may_stop && state.fenced);
    let left = PartitionChange { isr: Some(ids(&[1, 2])), ..world.change() };
    assert_eq!(decision.records[0], Record::PartitionChange(left), "and leaves the ISRs");
    let mut world = three(false);
    let (state, _) = beat(&mut world, 1, |h| Heartbeat { want_fence: true, ..stopping(h) });
    assert!(state.may_stop, "it will not wait");
    let epoch = world.register(7, 7).unwrap();
    let (state, decision) = beat(&mut world, 7, stopping);
    assert_eq!((state.may_stop, decision.records, epoch), (true, vec![], world.epoch_of(7)), "never unfenced");
}

#[test]
fn what_nobody_else_can_lead_lapses_when_its_broker_stops() {
    let mut world = three(true);
    world.set(|change| PartitionChange { isr: Some(ids(&[1])), ..change });
    let (state, _) = beat(&mut world, 1, stopping);
    assert!(state.shutting_down);
    let partition = world.partition("t", 0);
    assert_eq!((partition.leader, &partition.elr), (BrokerId::NONE, &ids(&[1])));
    let (state, _) = beat(&mut world, 1, stopping);
    assert!(state.may_stop);
}

#[test]
fn a_failed_directory_gives_its_leaderships_away() {
    let mut world = World::empty();
    for id in 1..=2 {
        let log_dirs = vec![Id(1000 + id as u128), Id(2000 + id as u128)];
        let request = Registration { log_dirs, ..world.registration(id, id as u128) };
        let Answer::RegisterBroker(Ok(epoch)) = world.ask(Request::RegisterBroker(request)) else { panic!() };
        world.unfence(id, epoch);
    }
    world.create(vec![assigned("t", &[(0, &[1, 2]), (1, &[1, 2])])]);
    let epoch = world.epoch_of(1);
    let topic = world.at().topic;
    let directories = vec![(Id(1001), vec![(topic, vec![0])]), (Id(2001), vec![(topic, vec![1])])];
    world.done(Request::AssignDirectories { broker: BrokerId(1), broker_epoch: epoch, directories });
    let (_, decision) = beat(&mut world, 1, |h| Heartbeat { offline_dirs: vec![Id(2001), Id(99)], ..h });
    let moved = PartitionChange { leader: Some(BrokerId(2)), isr: Some(ids(&[2])), ..PartitionChange::new(topic, 1) };
    let left = BrokerRegistrationChange { log_dirs: vec![Id(1001)], ..BrokerRegistrationChange::new(BrokerId(1), epoch) };
    assert_eq!(decision.records, [Record::PartitionChange(moved), Record::BrokerRegistrationChange(left)]);
    assert_eq!(decision.elections[0].trigger, Trigger::LogDir);
    let (_, again) = beat(&mut world, 1, |h| Heartbeat { offline_dirs: vec![Id(2001)], ..h });
    assert_eq!(again.records, [], "said once");
    let (state, _) = beat(&mut world, 1, |h| Heartbeat { offline_dirs: vec![Id(2001), Id(1001)], ..h });
    assert!(state.fenced, "nothing is left on it");
    let (state, _) = beat(&mut world, 1, |h| Heartbeat { offline_dirs: vec![Id(2001), Id(1001)], ..h });
    assert!(state.fenced, "and so it stays");
}

#[test]
fn a_cordoned_directory_is_noted_once() {
    let mut world = three(false);
    let cordon = |h: Heartbeat| Heartbeat { cordoned_dirs: Some(vec![Id(1001)]), ..h };
    let (_, decision) = beat(&mut world, 1, cordon);
    let change = BrokerRegistrationChange::new(BrokerId(1), world.epoch_of(1));
    let change = BrokerRegistrationChange { cordoned_log_dirs: Some(vec![Id(1001)]), ..change };
    assert_eq!(decision.records, [Record::BrokerRegistrationChange(change)]);
    assert_eq!(beat(&mut world, 1, cordon).1.records, []);
}
