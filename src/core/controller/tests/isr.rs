//! AlterPartition, AlterPartitionReassignments, AssignReplicasToDirs: every refusal, and what is written.

use super::elections::{ids, three};
use super::*;
use crate::core::controller::records::{LeaderRecovery, PartitionChange};
use crate::core::election::Trigger;
use crate::core::types::{Epoch, TopicPartition};

fn row(isr: &[i32]) -> AlterPartition {
    AlterPartition {
        partition: 0,
        leader_epoch: Epoch(0),
        partition_epoch: Epoch(1),
        isr: isr.iter().map(|id| (BrokerId(*id), BrokerEpoch::NONE)).collect(),
        recovery: LeaderRecovery::Recovered,
    }
}

/// `t` led by 1 in epoch 0 with 1 and 2 in sync, partition epoch 1.
fn behind() -> World {
    let mut world = three(false);
    world.set(|change| PartitionChange { isr: Some(ids(&[1, 2])), ..change });
    world
}

fn alter(world: &mut World, sender: i32, row: AlterPartition) -> (Result<PartitionState, Why>, Decision) {
    let (broker, broker_epoch, topic) = (BrokerId(sender), world.epoch_of(sender), world.at().topic);
    let decision = world.decide(Request::AlterPartitions { broker, broker_epoch, topics: vec![(topic, vec![row])] });
    let Answer::AlterPartitions(Ok(answer)) = &decision.answer else { panic!("{decision:?}") };
    (answer[0].1[0].1.clone(), decision)
}

#[test]
fn a_leader_says_who_is_in_sync() {
    let mut world = behind();
    let (state, decision) = alter(&mut world, 1, row(&[1, 2, 3]));
    let expected = PartitionState {
        leader: BrokerId(1),
        leader_epoch: Epoch(0),
        partition_epoch: Epoch(2),
        isr: ids(&[1, 2, 3]),
        recovery: LeaderRecovery::Recovered,
    };
    assert_eq!(state, Ok(expected));
    assert_eq!(decision.records, [Record::PartitionChange(PartitionChange { isr: Some(ids(&[1, 2, 3])), ..world.change() })]);
    assert_eq!(decision.elections, []);
    let (same, decision) = alter(&mut world, 1, row(&[1, 2]));
    assert_eq!((same.map(|state| state.partition_epoch), decision.records), (Ok(Epoch(1)), vec![]), "nothing changes");
    let epochs = AlterPartition { isr: vec![(BrokerId(1), world.epoch_of(1)), (BrokerId(3), world.epoch_of(3))], ..row(&[]) };
    assert_eq!(alter(&mut world, 1, epochs).0.map(|state| state.isr), Ok(ids(&[1, 3])));
}

#[test]
fn every_refusal_of_an_isr() {
    let stale = (BrokerId(3), BrokerEpoch(2));
    let cases: Vec<(i32, AlterPartition, Why)> = vec![
        (1, AlterPartition { partition: 9, ..row(&[1]) }, Why::UnknownTopicOrPartition),
        (1, AlterPartition { leader_epoch: Epoch(1), ..row(&[1]) }, Why::NotController),
        (1, AlterPartition { partition_epoch: Epoch(2), ..row(&[1]) }, Why::NotController),
        (2, AlterPartition { leader_epoch: Epoch(-1), ..row(&[2]) }, Why::FencedLeaderEpoch),
        (2, row(&[1, 2]), Why::InvalidRequest),
        (1, AlterPartition { partition_epoch: Epoch(0), ..row(&[7]) }, Why::InvalidUpdateVersion),
        (1, row(&[1, 7]), Why::InvalidRequest),
        (1, row(&[1, 1]), Why::InvalidRequest),
        (1, row(&[]), Why::InvalidRequest),
        (1, row(&[2, 3]), Why::InvalidRequest),
        (1, AlterPartition { recovery: LeaderRecovery::Recovering, ..row(&[1]) }, Why::InvalidRequest),
        (1, AlterPartition { isr: vec![(BrokerId(1), BrokerEpoch::NONE), stale], ..row(&[]) }, Why::IneligibleReplica),
    ];
    for (sender, row, why) in cases {
        let (mut world, what) = (behind(), format!("{sender} {row:?}"));
        let (result, decision) = alter(&mut world, sender, row);
        assert_eq!((result, decision.records), (Err(why), vec![]), "{what}");
    }
    let mut world = behind();
    world.fence(&[3]);
    assert_eq!(alter(&mut world, 1, row(&[1, 2, 3])).0, Err(Why::IneligibleReplica), "fenced");
    world.append(vec![Record::UnregisterBroker(records::UnregisterBroker { broker_id: BrokerId(3), broker_epoch: world.epoch_of(3) })]);
    assert_eq!(alter(&mut world, 1, row(&[1, 2, 3])).0, Err(Why::IneligibleReplica), "not registered");
    let mut world = behind();
    let leaving = records::BrokerRegistrationChange::new(BrokerId(3), world.epoch_of(3));
    let leaving = records::BrokerRegistrationChange { in_controlled_shutdown: true, ..leaving };
    world.append(vec![Record::BrokerRegistrationChange(leaving)]);
    assert_eq!(alter(&mut world, 1, row(&[1, 2, 3])).0, Err(Why::IneligibleReplica), "shutting down");
    let mut world = behind();
    let unknown = Request::AlterPartitions { broker: BrokerId(1), broker_epoch: world.epoch_of(1), topics: vec![(Id(5), vec![row(&[1])])] };
    assert_eq!(world.ask(unknown), Answer::AlterPartitions(Ok(vec![(Id(5), vec![(0, Err(Why::UnknownTopicId))])])));
    let topics = vec![(world.at().topic, vec![row(&[1])])];
    let Answer::AlterPartitions(stale) = world.ask(Request::AlterPartitions { broker: BrokerId(1), broker_epoch: BrokerEpoch(0), topics })
    else {
        panic!()
    };
    assert_eq!(refused(&stale).0, Why::StaleBrokerEpoch);
}

#[test]
fn a_leader_recovers_once() {
    let mut world = three(false);
    world.set(|change| PartitionChange { isr: Some(ids(&[1])), leader_recovery: Some(LeaderRecovery::Recovering), ..change });
    let wide = AlterPartition { recovery: LeaderRecovery::Recovering, ..row(&[1, 2]) };
    assert_eq!(alter(&mut world, 1, wide).0, Err(Why::InvalidRequest), "not before it has recovered");
    let (state, decision) = alter(&mut world, 1, row(&[1, 2]));
    assert_eq!(state.map(|state| state.recovery), Ok(LeaderRecovery::Recovered));
    let change = PartitionChange { isr: Some(ids(&[1, 2])), leader_recovery: Some(LeaderRecovery::Recovered), ..world.change() };
    assert_eq!(decision.records, [Record::PartitionChange(change)]);
}

fn reassign(world: &mut World, target: Option<&[i32]>, allow_factor_change: bool) -> (Result<(), (Why, String)>, Decision) {
    let topics = vec![("t".to_owned(), vec![(0, target.map(ids))])];
    let decision = world.decide(Request::AlterReassignments { topics, allow_factor_change });
    let Answer::AlterReassignments(answer) = &decision.answer else { panic!() };
    let result = answer[0].1[0].1.clone().map_err(|refusal| (refusal.why, refusal.message.unwrap_or_default()));
    (result, decision)
}

/// `three` with two more brokers.
fn five() -> World {
    let mut world = three(false);
    for id in 4..=5 {
        let epoch = world.register(id, id as u128).unwrap();
        world.unfence(id, epoch);
    }
    world
}

#[test]
fn replicas_move_and_the_old_leader_goes_last() {
    let mut world = five();
    let (result, decision) = reassign(&mut world, Some(&[4, 5, 3]), false);
    let directory = |id: i32| Id(1000 + id as u128);
    let change = PartitionChange {
        replicas: Some(ids(&[4, 5, 3, 1, 2])),
        adding_replicas: Some(ids(&[4, 5])),
        removing_replicas: Some(ids(&[1, 2])),
        directories: Some([4, 5, 3, 1, 2].map(directory).to_vec()),
        ..world.change()
    };
    assert_eq!((result, &decision.records), (Ok(()), &vec![Record::PartitionChange(change)]), "the leader stays until they are in sync");
    world.append(decision.records);
    let almost = AlterPartition { partition_epoch: Epoch(1), ..row(&[1, 2, 3, 4]) };
    let (state, decision) = alter(&mut world, 1, almost);
    assert_eq!(state.map(|state| state.isr), Ok(ids(&[1, 2, 3, 4])));
    world.append(decision.records);
    let last = AlterPartition { partition_epoch: Epoch(2), ..row(&[1, 2, 3, 4, 5]) };
    let (state, decision) = alter(&mut world, 1, last);
    let change = PartitionChange {
        isr: Some(ids(&[3, 4, 5])),
        leader: Some(BrokerId(4)),
        replicas: Some(ids(&[4, 5, 3])),
        adding_replicas: Some(vec![]),
        removing_replicas: Some(vec![]),
        directories: Some([4, 5, 3].map(directory).to_vec()),
        ..world.change()
    };
    assert_eq!((state, &decision.records), (Err(Why::NewLeaderElected), &vec![Record::PartitionChange(change)]));
    assert_eq!(decision.elections[0].trigger, Trigger::Reassignment);
}

#[test]
fn a_cancel_goes_back_to_where_it_began() {
    let mut world = five();
    let running = reassign(&mut world, Some(&[4, 2, 3]), false).1;
    world.append(running.records);
    let (result, decision) = reassign(&mut world, None, false);
    let change = PartitionChange {
        replicas: Some(ids(&[2, 3, 1])),
        adding_replicas: Some(vec![]),
        removing_replicas: Some(vec![]),
        directories: Some([2, 3, 1].map(|id| Id(1000 + id)).to_vec()),
        leader: Some(BrokerId(1)),
        ..world.change()
    };
    assert_eq!((result, decision.records), (Ok(()), vec![Record::PartitionChange(change)]));
    let over = reassign(&mut world, Some(&[5, 2, 3]), false).1;
    let Record::PartitionChange(change) = &over.records[0] else { panic!() };
    assert_eq!((&change.replicas, &change.adding_replicas), (&Some(ids(&[5, 2, 3, 1])), &Some(ids(&[5]))), "4 is dropped at once");
    assert_eq!(change.removing_replicas, None, "1 goes as before");
    world.append(over.records);
    let cancelled = reassign(&mut world, None, false).1;
    world.append(cancelled.records);
    assert_eq!(world.partition("t", 0).replicas, ids(&[2, 3, 1]), "what was there before either of them");
}

#[test]
fn what_only_a_running_move_brought_stays_while_nobody_else_is_in_sync() {
    let mut world = five();
    let running = reassign(&mut world, Some(&[4, 5, 3]), false).1;
    world.append(running.records);
    world.set(|change| PartitionChange { isr: Some(ids(&[4])), leader: Some(BrokerId(4)), ..change });
    let (result, decision) = reassign(&mut world, Some(&[5, 1, 2]), false);
    world.append(decision.records);
    let partition = world.partition("t", 0);
    assert_eq!((result, partition.leader, &partition.isr), (Ok(()), BrokerId(4), &ids(&[4])));
    assert!(partition.removing_replicas.contains(&BrokerId(4)));
}

#[test]
fn a_reassignment_elects_inside_the_isr_only() {
    let mut world = five();
    world.append(vec![Record::Config(records::Config {
        resource_type: ResourceType::Topic,
        resource_name: "t".into(),
        name: "unclean.leader.election.enable".into(),
        value: Some("true".into()),
    })]);
    let running = reassign(&mut world, Some(&[4, 5, 3]), false).1;
    world.append(running.records);
    world.set(|change| PartitionChange { isr: Some(ids(&[4])), leader: Some(BrokerId(4)), ..change });
    world.fence(&[4]);
    world.claims = Claims::default();
    let before = world.partition("t", 0).leader;
    let decision = reassign(&mut world, Some(&[1, 2, 5]), false).1;
    assert!(decision.elections.iter().all(|election| !election.is_unclean()), "{before:?} {decision:?}");
}

#[test]
fn every_refusal_of_a_reassignment() {
    let mut world = five();
    let all = "The manual partition assignment includes";
    let cases: [(Option<&[i32]>, Why, String); 5] = [
        (None, Why::NoReassignmentInProgress, String::new()),
        (Some(&[]), Why::InvalidReplicaAssignment, format!("{all} an empty replica list.")),
        (Some(&[1, 1, 2]), Why::InvalidReplicaAssignment, format!("{all} the broker 1 more than once.")),
        (Some(&[1, 2, 9]), Why::InvalidReplicaAssignment, format!("{all} broker 9, but no such broker is registered.")),
        (Some(&[1, 2]), Why::InvalidReplicationFactor, "The replication factor is changed from 3 to 2".into()),
    ];
    for (target, why, message) in cases {
        let (result, decision) = reassign(&mut world, target, false);
        assert_eq!((result, decision.records), (Err((why, message)), vec![]), "{target:?}");
    }
    assert_eq!(reassign(&mut world, Some(&[1, 2]), true).0, Ok(()), "version 1 may allow it");
    let ask = |world: &mut World, name: &str, index| {
        let request = Request::AlterReassignments { topics: vec![(name.into(), vec![(index, None)])], allow_factor_change: false };
        let Answer::AlterReassignments(answer) = world.ask(request) else { panic!() };
        refused(&answer[0].1[0].1)
    };
    assert_eq!(ask(&mut world, "none", 0), (Why::UnknownTopicOrPartition, "Unable to find a topic named none.".into()));
    assert_eq!(ask(&mut world, "t", 7), (Why::UnknownTopicOrPartition, "Unable to find partition t:7.".into()));
    let running = reassign(&mut world, Some(&[4, 5]), true).1;
    world.append(running.records);
    assert_eq!(
        reassign(&mut world, Some(&[4, 5, 3]), false).0,
        Err((Why::InvalidReplicationFactor, "The replication factor is changed from 2 to 3".into()))
    );
    world.set(|change| PartitionChange { isr: Some(ids(&[4])), leader: Some(BrokerId(4)), ..change });
    let unclean = "Unable to revert partition assignment for t:0 because it would require an unclean leader election.";
    assert_eq!(reassign(&mut world, None, false).0, Err((Why::InvalidReplicaAssignment, unclean.into())));
    world.append(vec![Record::Config(records::Config {
        resource_type: ResourceType::Topic,
        resource_name: "t".into(),
        name: "unclean.leader.election.enable".into(),
        value: Some("true".into()),
    })]);
    world.claim(3, 5, 5);
    let (result, decision) = reassign(&mut world, None, false);
    assert_eq!(result, Ok(()));
    assert_eq!((decision.elections[0].new_leader, decision.elections[0].is_unclean()), (BrokerId(3), true), "the most complete of them");
    world.fence(&[1, 2, 3]);
    let dead = "Unable to revert partition assignment for t:0 because it would require a replica that is alive.";
    assert_eq!(reassign(&mut world, None, false).0, Err((Why::InvalidReplicaAssignment, dead.into())));
}

#[test]
fn replicas_are_where_their_broker_says() {
    let mut world = three(false);
    let epoch = world.epoch_of(2);
    let assign = |world: &mut World, broker, broker_epoch, directory, at: TopicPartition| {
        let directories = vec![(directory, vec![(at.topic, vec![at.partition])])];
        let decision = world.decide(Request::AssignDirectories { broker: BrokerId(broker), broker_epoch, directories });
        let Answer::AssignDirectories(answer) = &decision.answer else { panic!() };
        (answer.clone().map(|answer| answer[0].1[0].1[0].1).map_err(|refusal| refusal.why), decision)
    };
    let at = world.at();
    let (result, decision) = assign(&mut world, 2, epoch, Id(1002), at);
    assert_eq!((result, decision.records), (Ok(Ok(())), vec![]), "known already");
    let (result, decision) = assign(&mut world, 2, epoch, Id(666), at);
    let change = PartitionChange { isr: Some(ids(&[1, 3])), directories: Some(vec![Id(1001), Id(666), Id(1003)]), ..world.change() };
    assert_eq!((result, decision.records), (Ok(Ok(())), vec![Record::PartitionChange(change)]), "that directory is not online");
    assert_eq!(assign(&mut world, 2, BrokerEpoch(0), Id(1002), at).0, Err(Why::StaleBrokerEpoch));
    assert_eq!(assign(&mut world, 2, epoch, Id(1002), TopicPartition { topic: Id(5), ..at }).0, Ok(Err(Why::UnknownTopicId)));
    assert_eq!(assign(&mut world, 2, epoch, Id(1002), TopicPartition { partition: 5, ..at }).0, Ok(Err(Why::UnknownTopicOrPartition)));
    let other = world.register(4, 4).unwrap();
    assert_eq!(assign(&mut world, 4, other, Id(1004), at).0, Ok(Err(Why::NotLeaderOrFollower)));
}
