//! Brokers that come and go, leaders, producer ids.

use super::*;

#[test]
fn a_restarted_broker_leads_again_in_a_new_epoch() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![topic("t", 1, 1)]);
    let first_epoch = world.partition("t", 0).leader_epoch;
    let epoch = world.register(1, 99).unwrap();
    assert_eq!(epoch, BrokerEpoch(world.log.len() as i64 - 1), "the epoch is the offset of the registration record");
    let partition = world.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr), (BrokerId::NONE, &vec![BrokerId(1)]), "it is waited for");
    assert_eq!(world.heartbeat(1, epoch, epoch.0 - 1, false), Ok(state(false, true)), "it has not seen itself");
    world.unfence(1, epoch);
    let partition = world.partition("t", 0);
    assert_eq!(partition.leader, BrokerId(1));
    assert!(partition.leader_epoch > first_epoch);
    assert_eq!(world.heartbeat(1, epoch, epoch.0, true), Ok(state(true, true)));
    assert_eq!(world.partition("t", 0).leader, BrokerId::NONE, "a fenced broker leads nothing");
}

#[test]
fn a_broker_does_not_lead_with_the_empty_log_of_a_new_disk() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![topic("t", 1, 1)]);
    for (log_dirs, leader) in [(vec![Id(2000)], BrokerId::NONE), (vec![Id(1001), Id(2000)], BrokerId(1))] {
        let request = Registration { log_dirs, ..world.registration(1, 50 + world.log.len() as u128) };
        let Answer::RegisterBroker(Ok(epoch)) = world.ask(Request::RegisterBroker(request)) else { panic!() };
        world.unfence(1, epoch);
        assert_eq!(world.partition("t", 0).leader, leader);
    }
}

#[test]
fn a_fenced_broker_leaves_every_isr_in_the_same_append() {
    let mut world = World::with_brokers(&[1, 2]);
    world.create(vec![topic("t", 4, 2)]);
    let epoch = world.controller.image().broker(BrokerId(2)).unwrap().broker_epoch;
    let heartbeat = Heartbeat { want_fence: true, ..Heartbeat::new(BrokerId(2), epoch, Offset(99)) };
    let decision = world.decide(Request::Heartbeat(heartbeat));
    assert!(matches!(decision.records.last(), Some(Record::BrokerRegistrationChange(change)) if change.fenced == Some(true)));
    assert_eq!(decision.records.len(), 5);
    world.append(decision.records);
    for index in 0..4 {
        let partition = world.partition("t", index);
        assert_eq!((partition.leader, &partition.isr), (BrokerId(1), &vec![BrokerId(1)]));
    }
}

#[test]
fn registrations_are_refused_for_a_reason() {
    let mut world = World::with_brokers(&[1]);
    let epoch = world.controller.image().broker(BrokerId(1)).unwrap().broker_epoch;
    assert_eq!(world.register(1, 1), Ok(epoch), "the same process keeps its epoch");
    assert!(!world.controller.image().broker(BrokerId(1)).unwrap().fenced, "and its state");
    let good = world.registration(1, 50);
    let other = |change: &dyn Fn(&mut Registration)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    let cases = [
        (other(&|r| r.cluster_id = "d".into()), Why::InconsistentClusterId, "Expected cluster ID c, but got cluster ID d"),
        (other(&|r| r.session_alive = true), Why::DuplicateBrokerRegistration, "Another broker is registered with id 1"),
        (other(&|r| r.log_dirs = vec![]), Why::InvalidRegistration, "No directories specified in request"),
        (other(&|r| r.log_dirs = vec![Id(99)]), Why::InvalidRegistration, "Reserved directory ID in request"),
        (other(&|r| r.log_dirs = vec![Id(500), Id(500)]), Why::InvalidRegistration, "Duplicate directory ID in request"),
        (other(&|r| r.broker = BrokerId(2)), Why::InvalidRegistration, "Broker 1 is already registered with directory"),
        (other(&|r| r.features[0].max = 29), Why::UnsupportedVersion, "does not support finalized version 30 of metadata.version"),
        (other(&|r| r.features[1].min = 1), Why::UnsupportedVersion, "does not support finalized version 0 of group.version"),
    ];
    for (request, why, message) in cases {
        let Answer::RegisterBroker(result) = world.ask(Request::RegisterBroker(request)) else { panic!() };
        let (got, text) = refused(&result);
        assert!(got == why && text.contains(message), "{got:?} {text}");
    }
    let Answer::RegisterBroker(result) = world.ask(Request::RegisterBroker(other(&|r| r.features.remove(0).max = 0))) else { panic!() };
    assert_eq!(refused(&result).0, Why::UnsupportedVersion, "no metadata.version is level 0 of it");
    let stale = refused(&world.heartbeat(1, BrokerEpoch(0), 9, false));
    assert_eq!(stale, (Why::StaleBrokerEpoch, format!("Expected broker epoch {}, but got broker epoch 0", epoch.0)));
    assert_eq!(refused(&world.heartbeat(8, BrokerEpoch(0), 9, false)).0, Why::StaleBrokerEpoch);
}

#[test]
fn a_forgotten_broker_is_in_no_isr() {
    let mut world = World::with_brokers(&[1, 2]);
    world.create(vec![topic("t", 2, 2)]);
    assert_eq!(world.ask(Request::UnregisterBroker(BrokerId(2))), Answer::UnregisterBroker(Ok(())));
    assert!((0..2).all(|index| world.partition("t", index).isr == [BrokerId(1)]));
    let Answer::UnregisterBroker(again) = world.ask(Request::UnregisterBroker(BrokerId(2))) else { panic!() };
    assert_eq!(refused(&again), (Why::BrokerIdNotRegistered, "Broker ID 2 is not currently registered".into()));
}

#[test]
fn producer_ids_are_given_away_once() {
    let mut world = World::with_brokers(&[1]);
    let broker_epoch = world.controller.image().broker(BrokerId(1)).unwrap().broker_epoch;
    let mut allocate = |broker, broker_epoch| match world.ask(Request::AllocateProducerIds { broker: BrokerId(broker), broker_epoch }) {
        Answer::AllocateProducerIds(result) => result,
        other => panic!("{other:?}"),
    };
    assert_eq!(allocate(1, broker_epoch), Ok(ProducerIdBlock { first: 0, count: 1000 }));
    assert_eq!(allocate(1, broker_epoch), Ok(ProducerIdBlock { first: 1000, count: 1000 }));
    assert_eq!(refused(&allocate(1, BrokerEpoch(-1))).0, Why::StaleBrokerEpoch);
    let last = records::ProducerIds { broker_id: BrokerId(1), broker_epoch, next_producer_id: i64::MAX - 7 };
    world.append(vec![Record::ProducerIds(last)]);
    let Answer::AllocateProducerIds(result) = world.ask(Request::AllocateProducerIds { broker: BrokerId(1), broker_epoch }) else {
        panic!()
    };
    assert_eq!(refused(&result).0, Why::ProducerIdsExhausted);
}

#[test]
fn leaders_are_elected_when_that_changes_something() {
    let mut world = World::with_brokers(&[1, 2]);
    world.create(vec![assigned("t", &[(0, &[1, 2]), (1, &[2, 1]), (2, &[2, 1])])]);
    let topic_id = world.controller.image().topic_by_name("t").unwrap().id;
    let alone = records::PartitionChange { isr: Some(vec![BrokerId(2)]), ..records::PartitionChange::new(topic_id, 2) };
    world.append(vec![Record::PartitionChange(alone)]);
    world.create(vec![assigned("u", &[(0, &[2])])]);
    let epoch = |world: &World| world.controller.image().broker(BrokerId(2)).unwrap().broker_epoch;
    let before = epoch(&world);
    world.heartbeat(2, before, 99, true).unwrap();
    let elect = |world: &mut World, election, name: &str, partitions: Option<&[i32]>| {
        let partitions = partitions.map(|indexes| vec![(name.to_string(), indexes.to_vec())]);
        match world.ask(Request::ElectLeaders { election, partitions }) {
            Answer::ElectLeaders(mut topics) => {
                let results = topics.remove(0).1;
                results.into_iter().map(|(index, result)| (index, result.err().map(|refusal| refusal.why))).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    use ElectionType::{Preferred, Unclean};
    let all = [(0, Some(Why::ElectionNotNeeded)), (1, Some(Why::PreferredLeaderNotAvailable)), (2, Some(Why::PreferredLeaderNotAvailable))];
    assert_eq!(elect(&mut world, Preferred, "t", Some(&[0, 1, 2])), all);
    assert_eq!(elect(&mut world, Preferred, "t", None), all[1..], "what is not needed is left out");
    assert_eq!(elect(&mut world, Unclean, "u", Some(&[0])), [(0, Some(Why::EligibleLeadersNotAvailable))]);
    assert_eq!(elect(&mut world, Unclean, "none", Some(&[0])), [(0, Some(Why::UnknownTopicOrPartition))]);
    let unclean = [(0, Some(Why::ElectionNotNeeded)), (2, None), (9, Some(Why::UnknownTopicOrPartition))];
    assert_eq!(elect(&mut world, Unclean, "t", Some(&[0, 2, 9])), unclean);
    let recovering = world.partition("t", 2);
    assert_eq!((recovering.leader, &recovering.isr), (BrokerId(1), &vec![BrokerId(1)]));
    world.unfence(2, before);
    assert_eq!(world.partition("u", 0).leader, BrokerId(2), "it was the last of the ISR");
    let joined = records::PartitionChange { isr: Some(vec![BrokerId(1), BrokerId(2)]), ..records::PartitionChange::new(topic_id, 1) };
    world.append(vec![Record::PartitionChange(joined)]);
    let from = world.log.len();
    assert_eq!(elect(&mut world, Preferred, "t", Some(&[1, 1])), [(1, None), (1, None)]);
    assert_eq!((world.partition("t", 1).leader, world.log.len()), (BrokerId(2), from + 1), "asked twice, elected once");
}
