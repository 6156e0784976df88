//! Every trigger of an election, and every refusal, each with the records it writes.

use super::*;
use crate::core::controller::records::{BrokerRegistrationChange, LeaderRecovery, PartitionChange};
use crate::core::election::{Claim, Source, Trigger, WaitsFor};
use crate::core::types::{Epoch, TopicPartition};

/// Brokers 1 to 3, and topic `t` with one partition on all of them, led by 1; `min.insync.replicas` 2.
pub(super) fn three(elr: bool) -> World {
    let mut world = World::empty();
    if elr {
        world.append(vec![Record::FeatureLevel(records::FeatureLevel { name: ELR_VERSION.into(), level: 1 })]);
    }
    for id in 1..=3 {
        let epoch = world.register(id, id as u128).unwrap();
        world.unfence(id, epoch);
    }
    let new = NewTopic { configs: vec![("min.insync.replicas".into(), Some("2".into()))], ..assigned("t", &[(0, &[1, 2, 3])]) };
    world.create(vec![new]);
    world
}

pub(super) fn ids(all: &[i32]) -> Vec<BrokerId> {
    all.iter().copied().map(BrokerId).collect()
}

impl World {
    pub(super) fn at(&self) -> TopicPartition {
        TopicPartition { topic: self.controller.image().topic_by_name("t").unwrap().id, partition: 0 }
    }

    pub(super) fn change(&self) -> PartitionChange {
        PartitionChange::new(self.at().topic, 0)
    }

    pub(super) fn epoch_of(&self, id: i32) -> BrokerEpoch {
        self.controller.image().broker(BrokerId(id)).unwrap().broker_epoch
    }

    /// The partition as it is then, without anyone deciding.
    pub(super) fn set(&mut self, change: impl FnOnce(PartitionChange) -> PartitionChange) {
        let change = change(self.change());
        self.append(vec![Record::PartitionChange(change)]);
    }

    pub(super) fn fence(&mut self, brokers: &[i32]) -> Decision {
        let brokers = brokers.iter().map(|id| (BrokerId(*id), self.epoch_of(*id))).collect();
        self.done(Request::Fence(brokers))
    }

    pub(super) fn done(&mut self, request: Request) -> Decision {
        let decision = self.decide(request);
        self.append(decision.records.clone());
        decision
    }

    pub(super) fn claim(&mut self, id: i32, epoch: i32, end: i64) {
        self.claims.note(self.at(), BrokerId(id), Claim { last_epoch: Epoch(epoch), end: Offset(end) });
    }
}

fn fenced(world: &World, id: i32) -> Record {
    let change = BrokerRegistrationChange::new(BrokerId(id), world.epoch_of(id));
    Record::BrokerRegistrationChange(BrokerRegistrationChange { fenced: Some(true), ..change })
}

/// Trigger, old leader, new leader, where it was found.
fn elected(decision: &Decision) -> Vec<(Trigger, i32, i32, Result<Source, WaitsFor>)> {
    let row = |e: &Election| (e.trigger, e.old_leader.0, e.new_leader.0, e.outcome.clone());
    decision.elections.iter().map(row).collect()
}

#[test]
fn created_the_first_that_is_alive_leads() {
    let mut world = World::with_brokers(&[1, 2]);
    world.fence(&[1]);
    let decision = world.done(Request::CreateTopics { topics: vec![assigned("u", &[(0, &[1, 2])])], validate_only: false });
    let Some(Record::Partition(made)) = decision.records.last() else { panic!("{decision:?}") };
    assert_eq!((made.leader, &made.isr, made.leader_epoch), (BrokerId(2), &ids(&[2]), Epoch(0)));
    assert_eq!(decision.elections, [], "the first leader is no change of leaders");
}

#[test]
fn fenced_the_next_in_sync_leads() {
    let mut world = three(false);
    let decision = world.fence(&[1]);
    let change = PartitionChange { leader: Some(BrokerId(2)), isr: Some(ids(&[2, 3])), ..world.change() };
    assert_eq!(decision.records, [Record::PartitionChange(change), fenced(&world, 1)]);
    assert_eq!(decision.answer, Answer::Fence(ids(&[1])));
    assert_eq!(elected(&decision), [(Trigger::Fenced, 1, 2, Ok(Source::Isr))]);
    let election = &decision.elections[0];
    assert_eq!((election.old_epoch, election.new_epoch, election.at), (Epoch(0), Epoch(1), world.at()));
    assert_eq!((&election.old_isr, &election.new_isr), (&ids(&[1, 2, 3]), &ids(&[2, 3])));
    let alive: Vec<bool> = election.candidates.iter().map(|candidate| candidate.alive).collect();
    assert_eq!(alive, [false, true, true]);
    assert_eq!(world.fence(&[1]).records, [], "it is fenced already");
    assert_eq!(world.done(Request::Fence(vec![(BrokerId(2), BrokerEpoch(0))])).records, [], "another process by now");
}

#[test]
fn several_fenced_at_once_are_one_change_of_each_partition() {
    for elr in [false, true] {
        let mut world = three(elr);
        let decision = world.fence(&[1, 2]);
        let change = PartitionChange { leader: Some(BrokerId(3)), isr: Some(ids(&[3])), elr: elr.then(|| ids(&[1, 2])), ..world.change() };
        assert_eq!(decision.records, [Record::PartitionChange(change), fenced(&world, 1), fenced(&world, 2)], "2 never led in between");
    }
}

#[test]
fn whoever_is_needed_is_waited_for_and_leads_on_return() {
    let mut world = three(true);
    world.fence(&[1, 2]);
    let decision = world.fence(&[3]);
    let change = PartitionChange {
        leader: Some(BrokerId::NONE),
        isr: Some(vec![]),
        elr: Some(ids(&[1, 2, 3])),
        last_known_elr: Some(ids(&[3])),
        ..world.change()
    };
    assert_eq!(decision.records, [Record::PartitionChange(change), fenced(&world, 3)]);
    let waits = WaitsFor::AnyOf(ids(&[1, 2, 3]));
    assert_eq!(elected(&decision), [(Trigger::Fenced, 3, -1, Err(waits.clone()))]);
    assert_eq!(world.controller.leaderless().collect::<Vec<_>>(), [(world.at(), waits)]);
    let epoch = world.epoch_of(2);
    let decision = world.done(Request::Heartbeat(Heartbeat::new(BrokerId(2), epoch, Offset(99))));
    let change = PartitionChange {
        leader: Some(BrokerId(2)),
        isr: Some(ids(&[2])),
        elr: Some(ids(&[1, 3])),
        last_known_elr: Some(vec![]),
        ..world.change()
    };
    assert_eq!(decision.records[1..], [Record::PartitionChange(change)]);
    assert_eq!(elected(&decision), [(Trigger::Returned, -1, 2, Ok(Source::Eligible))]);
    assert_eq!(world.controller.leaderless().count(), 0);
}

#[test]
fn preferred_by_operator_and_by_itself() {
    let mut world = three(false);
    world.set(|change| PartitionChange { leader: Some(BrokerId(3)), ..change });
    let back = PartitionChange { leader: Some(BrokerId(1)), ..world.change() };
    let by_operator = world.decide(Request::ElectLeaders { election: ElectionType::Preferred, partitions: None });
    assert_eq!(by_operator.records, [Record::PartitionChange(back.clone())]);
    assert_eq!(elected(&by_operator), [(Trigger::Preferred, 3, 1, Ok(Source::Isr))]);
    let by_itself = world.done(Request::Balance);
    assert_eq!(by_itself.records, [Record::PartitionChange(back)]);
    assert_eq!(elected(&by_itself), [(Trigger::Balanced, 3, 1, Ok(Source::Isr))]);
    assert_eq!(by_itself.answer, Answer::Balance(Balanced { moved: 1, more: false }));
    assert_eq!(world.done(Request::Balance).answer, Answer::Balance(Balanced { moved: 0, more: false }));
    world.set(|change| PartitionChange { leader: Some(BrokerId(3)), isr: Some(ids(&[2, 3])), ..change });
    let refused = world.done(Request::Balance);
    assert_eq!((refused.records, refused.answer), (vec![], Answer::Balance(Balanced { moved: 0, more: false })), "1 is out of sync");
}

#[test]
fn a_round_of_balancing_is_bounded() {
    let mut world = World::with_brokers(&[1, 2]);
    let rows: Vec<(i32, &[i32])> = (0..1500).map(|index| (index, &[1, 2][..])).collect();
    world.create(vec![assigned("t", &rows)]);
    let topic = world.at().topic;
    let away = (0..1500).map(|index| PartitionChange { leader: Some(BrokerId(2)), ..PartitionChange::new(topic, index) });
    world.append(away.map(Record::PartitionChange).collect());
    assert_eq!(world.done(Request::Balance).answer, Answer::Balance(Balanced { moved: 1000, more: true }));
    assert_eq!(world.done(Request::Balance).answer, Answer::Balance(Balanced { moved: 500, more: false }));
}

#[test]
fn unclean_by_operator() {
    let mut world = three(false);
    world.set(|change| PartitionChange { isr: Some(ids(&[1])), ..change });
    world.fence(&[1]);
    let by_force = |world: &mut World| world.decide(Request::ElectLeaders { election: ElectionType::Unclean, partitions: None });
    let first = by_force(&mut world);
    let change = |world: &World, id| PartitionChange {
        leader: Some(BrokerId(id)),
        isr: Some(ids(&[id])),
        leader_recovery: Some(LeaderRecovery::Recovering),
        ..world.change()
    };
    assert_eq!(first.records, [Record::PartitionChange(change(&world, 2))], "nothing is known: list order");
    world.claim(2, 0, 10);
    world.claim(3, 0, 12);
    let informed = by_force(&mut world);
    assert_eq!(informed.records, [Record::PartitionChange(change(&world, 3))], "the most complete log");
    assert_eq!(elected(&informed), [(Trigger::Manual, -1, 3, Ok(Source::Outside))]);
    assert!(informed.elections[0].is_unclean());
    assert_eq!(informed.elections[0].candidates[1].claim, Some(Claim { last_epoch: Epoch(0), end: Offset(10) }));
    world.fence(&[2, 3]);
    let Answer::ElectLeaders(answer) = by_force(&mut world).answer else { panic!() };
    assert_eq!(answer[0].1[0].1, Err(Why::EligibleLeadersNotAvailable.into()));
}

#[test]
fn unclean_by_a_setting_acts_at_once() {
    let set = |resource, value: &str| Request::AlterConfigs {
        resources: vec![AlterConfigs {
            resource,
            changes: vec![("unclean.leader.election.enable".into(), ConfigOp::Set, Some(value.into()))],
        }],
        validate_only: false,
    };
    let offline = || {
        let mut world = three(false);
        world.set(|change| PartitionChange { isr: Some(ids(&[1])), ..change });
        world.fence(&[1, 2]);
        world
    };
    for resource in [ConfigResource::topic("t"), ConfigResource::broker_default()] {
        let mut world = offline();
        assert_eq!(world.done(set(resource.clone(), "false")).elections, []);
        let decision = world.done(set(resource, "true"));
        assert_eq!(decision.records.len(), 2, "the setting and the election are one append");
        assert_eq!(elected(&decision), [(Trigger::ConfigChange, -1, 3, Ok(Source::Outside))]);
        assert_eq!(world.partition("t", 0).leader_recovery, LeaderRecovery::Recovering);
    }
    let mut world = offline();
    world.done(set(ConfigResource::topic("t"), "false"));
    assert_eq!(world.done(set(ConfigResource::broker_default(), "true")).elections, [], "the topic says otherwise");
    assert_eq!(world.done(set(ConfigResource::broker(BrokerId(3)), "true")).elections, [], "one broker's setting is not the cluster's");
    let mut world = offline();
    let validated = match set(ConfigResource::topic("t"), "true") {
        Request::AlterConfigs { resources, .. } => world.done(Request::AlterConfigs { resources, validate_only: true }),
        other => panic!("{other:?}"),
    };
    assert_eq!((validated.records, validated.elections), (vec![], vec![]));
    let mut world = offline();
    let epoch = world.epoch_of(2);
    world.done(Request::Heartbeat(Heartbeat::new(BrokerId(2), epoch, Offset(99))));
    assert_eq!(world.done(set(ConfigResource::topic("t"), "true")).elections, [], "two survivors: they are asked first");
    let recovered = world.done(Request::Recover(vec![world.at()]));
    assert_eq!(elected(&recovered), [(Trigger::UncleanRecovery, -1, 2, Ok(Source::Outside))]);
}

#[test]
fn a_topic_that_allows_loss_does_not_wait_for_the_dead() {
    let mut world = three(true);
    world.append(vec![Record::Config(records::Config {
        resource_type: ResourceType::Topic,
        resource_name: "t".into(),
        name: "unclean.leader.election.enable".into(),
        value: Some("true".into()),
    })]);
    world.set(|change| PartitionChange { isr: Some(ids(&[1])), ..change });
    world.claim(2, 0, 10);
    world.claim(3, 0, 12);
    assert_eq!(elected(&world.fence(&[1])), [(Trigger::Fenced, 1, 3, Ok(Source::Outside))]);
}

#[test]
fn designated_if_the_loss_is_accepted() {
    let mut world = three(false);
    world.set(|change| PartitionChange { isr: Some(ids(&[1, 2])), ..change });
    world.claim(1, 0, 100);
    world.claim(2, 0, 100);
    let ask = |world: &mut World, partition, leader, accepted| {
        let decision = world.decide(Request::Designate { topic: "t".into(), partition, leader: BrokerId(leader), accepted });
        let Answer::Designate(result) = &decision.answer else { panic!() };
        (result.clone().map_err(|refusal| refusal.why), decision)
    };
    use AcceptedLoss::{Any, Records};
    let (clean, decision) = ask(&mut world, 0, 2, Records(0));
    assert_eq!((clean, elected(&decision)), (Ok(()), vec![(Trigger::Designated, 1, 2, Ok(Source::Isr))]), "2 is in sync");
    assert_eq!(decision.records, [Record::PartitionChange(PartitionChange { leader: Some(BrokerId(2)), ..world.change() })]);
    assert_eq!(ask(&mut world, 0, 3, Records(1_000_000)).0, Err(Why::LossNotAccepted), "nobody knows what 3 has");
    world.claim(3, 0, 93);
    let (refused, decision) = ask(&mut world, 0, 3, Records(6));
    assert_eq!((refused, decision.records), (Err(Why::LossNotAccepted), vec![]), "7 would be lost");
    let (accepted, decision) = ask(&mut world, 0, 3, Records(7));
    assert_eq!((accepted, elected(&decision)), (Ok(()), vec![(Trigger::Designated, 1, 3, Ok(Source::Outside))]));
    let change = PartitionChange {
        leader: Some(BrokerId(3)),
        isr: Some(ids(&[3])),
        leader_recovery: Some(LeaderRecovery::Recovering),
        ..world.change()
    };
    assert_eq!(decision.records, [Record::PartitionChange(change)]);
    world.claim(1, 1, 50);
    assert_eq!(ask(&mut world, 0, 3, Records(1_000_000)).0, Err(Why::LossNotAccepted), "1 went on in a later epoch");
    assert_eq!(ask(&mut world, 0, 3, Any).0, Ok(()));
    assert_eq!(ask(&mut world, 0, 1, Any).0, Err(Why::ElectionNotNeeded));
    assert_eq!(ask(&mut world, 0, 9, Any).0, Err(Why::InvalidReplicaAssignment));
    assert_eq!(ask(&mut world, 4, 3, Any).0, Err(Why::UnknownTopicOrPartition));
    world.fence(&[3]);
    assert_eq!(ask(&mut world, 0, 3, Any).0, Err(Why::EligibleLeadersNotAvailable), "the dead never lead");
}

#[test]
fn a_leader_resigns_if_another_can_lead() {
    let mut world = three(false);
    let resign = |world: &mut World, id, epoch, partition| {
        let partitions = vec![TopicPartition { partition, ..world.at() }];
        world.decide(Request::Resign { broker: BrokerId(id), broker_epoch: epoch, partitions })
    };
    let epoch = world.epoch_of(1);
    let decision = resign(&mut world, 1, epoch, 0);
    let change = PartitionChange { leader: Some(BrokerId(2)), ..world.change() };
    assert_eq!(decision.records, [Record::PartitionChange(change)], "it stays in sync");
    assert_eq!(elected(&decision), [(Trigger::Resigned, 1, 2, Ok(Source::Isr))]);
    let why = |decision: Decision| match decision.answer {
        Answer::Resign(Ok(rows)) => rows[0].1.clone().unwrap_err().why,
        Answer::Resign(Err(refusal)) => refusal.why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(resign(&mut world, 1, BrokerEpoch(0), 0)), Why::StaleBrokerEpoch);
    assert_eq!(why(resign(&mut world, 1, epoch, 7)), Why::UnknownTopicOrPartition);
    let other = world.epoch_of(2);
    assert_eq!(why(resign(&mut world, 2, other, 0)), Why::NotLeaderOrFollower);
    world.set(|change| PartitionChange { isr: Some(ids(&[1])), ..change });
    let alone = resign(&mut world, 1, epoch, 0);
    assert_eq!((alone.records.clone(), why(alone)), (vec![], Why::EligibleLeadersNotAvailable), "better a slow leader than none");
}

/// Registers the broker again as after a crash, which leaves no marker.
fn crashed(world: &mut World, id: i32) -> Decision {
    let request = world.registration(id, 100 + world.log.len() as u128);
    world.done(Request::RegisterBroker(request))
}

fn back(world: &mut World, id: i32) -> Decision {
    let epoch = world.epoch_of(id);
    world.done(Request::Heartbeat(Heartbeat::new(BrokerId(id), epoch, Offset(999))))
}

#[test]
fn an_unclean_stop_of_all_is_no_unclean_election() {
    let mut world = three(true);
    world.fence(&[1, 2, 3]);
    let first = crashed(&mut world, 1);
    let change = PartitionChange { elr: Some(ids(&[2, 3])), ..world.change() };
    assert_eq!(first.records[..1], [Record::PartitionChange(change)], "1 may have lost what the page cache held");
    crashed(&mut world, 3);
    crashed(&mut world, 2);
    assert_eq!((&world.partition("t", 0).elr, &world.partition("t", 0).last_known_elr), (&vec![], &ids(&[1, 3, 2])));
    for id in [1, 2, 3] {
        assert_eq!(back(&mut world, id).elections, [], "nobody leads by name");
    }
    let waits = world.controller.leaderless().next().unwrap().1;
    assert_eq!(waits, WaitsFor::ClaimsOf(ids(&[1, 3, 2])));
    let recover = |world: &mut World| world.decide(Request::Recover(vec![world.at()]));
    world.claim(1, 0, 50);
    world.claim(2, 0, 70);
    assert_eq!(recover(&mut world).records, [], "3 has not spoken");
    world.claim(3, 0, 60);
    let decision = recover(&mut world);
    let change = PartitionChange { leader: Some(BrokerId(2)), isr: Some(ids(&[2])), last_known_elr: Some(vec![]), ..world.change() };
    assert_eq!(decision.records, [Record::PartitionChange(change)], "and the state stays RECOVERED");
    assert_eq!(elected(&decision), [(Trigger::UncleanRecovery, -1, 2, Ok(Source::LastKnown))]);
    assert_eq!(decision.answer, Answer::Recover(1));
    let epoch = world.epoch_of(2);
    world.heartbeat(2, epoch, 999, true).unwrap();
    assert_eq!(recover(&mut world).records, [], "the most complete one is dead: it is waited for");
    assert_eq!(world.done(Request::Recover(vec![TopicPartition { partition: 9, ..world.at() }])).answer, Answer::Recover(0));
}

#[test]
fn a_clean_stop_keeps_its_place() {
    let mut world = three(true);
    world.fence(&[1, 2]);
    let previous_epoch = Some(world.epoch_of(1));
    let request = Registration { previous_epoch, ..world.registration(1, 77) };
    let decision = world.done(Request::RegisterBroker(request));
    assert_eq!(decision.records.len(), 1, "1 stays eligible: {decision:?}");
    let request = Registration { previous_epoch: Some(BrokerEpoch(0)), ..world.registration(2, 78) };
    let decision = world.done(Request::RegisterBroker(request));
    let change = PartitionChange { elr: Some(ids(&[1])), ..world.change() };
    assert_eq!(decision.records[..1], [Record::PartitionChange(change)], "the marker is of another life");
}

#[test]
fn the_only_replica_leads_again_after_a_crash() {
    let mut world = World::empty();
    world.append(vec![Record::FeatureLevel(records::FeatureLevel { name: ELR_VERSION.into(), level: 1 })]);
    let epoch = world.register(1, 1).unwrap();
    world.unfence(1, epoch);
    world.create(vec![assigned("t", &[(0, &[1])])]);
    crashed(&mut world, 1);
    assert_eq!(world.controller.leaderless().next().unwrap().1, WaitsFor::ClaimsOf(ids(&[1])));
    let decision = back(&mut world, 1);
    assert_eq!(elected(&decision), [(Trigger::Returned, -1, 1, Ok(Source::LastKnown))]);
    let partition = world.partition("t", 0);
    assert_eq!((&partition.isr, partition.leader_recovery), (&ids(&[1]), LeaderRecovery::Recovered));
}

#[test]
fn another_minimum_ends_eligibility_but_not_of_those_who_are_waited_for() {
    let mut world = three(true);
    world.create(vec![assigned("u", &[(0, &[1, 2, 3])])]);
    let set = |value: &str| Request::AlterConfigs {
        resources: vec![AlterConfigs {
            resource: ConfigResource::topic("t"),
            changes: vec![("min.insync.replicas".into(), ConfigOp::Set, Some(value.into()))],
        }],
        validate_only: false,
    };
    world.fence(&[1, 2]);
    assert_eq!(world.partition("t", 0).elr, ids(&[1, 2]));
    let decision = world.done(set("1"));
    assert_eq!(decision.records[1..], [Record::ClearElr("t".into())]);
    assert_eq!(world.partition("t", 0).elr, []);
    world.fence(&[3]);
    assert_eq!(world.partition("t", 0).elr, ids(&[3]));
    let decision = world.done(set("2"));
    let change = PartitionChange { elr: Some(ids(&[3])), last_known_elr: Some(ids(&[3])), ..world.change() };
    assert_eq!(decision.records[1..], [Record::ClearElr("t".into()), Record::PartitionChange(change)]);
    assert_eq!(world.partition("t", 0).elr, ids(&[3]), "nothing was committed since it left");
}

#[test]
fn to_turn_eligible_replicas_on_the_cluster_gets_one_minimum() {
    let mut world = World::with_brokers(&[1]);
    let config = |name: &str, value: Option<&str>| {
        Record::Config(records::Config {
            resource_type: ResourceType::Broker,
            resource_name: name.into(),
            name: "min.insync.replicas".into(),
            value: value.map(str::to_owned),
        })
    };
    world.append(vec![config("1", Some("3"))]);
    let update = FeatureUpdate { name: ELR_VERSION.into(), level: 1, upgrade: UpgradeType::Upgrade };
    let decision = world.decide(Request::UpdateFeatures { updates: vec![update], validate_only: false });
    let level = Record::FeatureLevel(records::FeatureLevel { name: ELR_VERSION.into(), level: 1 });
    assert_eq!(decision.records, [config("", Some("1")), config("1", None), level]);
}
