//! Decisions in tables, each with the records it writes; and the property that nothing is state but what records say.

use proptest::prelude::*;

use super::records::{BrokerEpoch, Endpoint, Feature, ResourceType, SecurityProtocol};
use super::request::*;
use super::*;
use crate::core::chance::Seeded;
use crate::core::types::{BrokerId, Id, Offset, TopicPartition};

struct Rules;

impl ConfigRules for Rules {
    fn check(&self, _: &ConfigResource, new: &Configs, _: &Configs) -> Result<(), String> {
        match new.keys().find(|name| name.starts_with("bad")) {
            Some(name) => Err(format!("Unknown topic config name: {name}")),
            None => Ok(()),
        }
    }

    fn list_default(&self, _: ResourceType, name: &str) -> Option<String> {
        (name == "cleanup.policy").then(|| "delete".into())
    }
}

fn features() -> Vec<Feature> {
    vec![
        Feature { name: "metadata.version".into(), min: 7, max: 30 },
        Feature { name: "group.version".into(), min: 0, max: 1 },
        Feature { name: "kraft.version".into(), min: 0, max: 0 },
    ]
}

/// A controller with its log, as a quorum of one would keep it.
struct World {
    controller: Controller,
    log: Vec<Record>,
    chance: Seeded,
}

impl World {
    fn empty() -> World {
        let settings = Settings {
            default_partitions: 1,
            default_replication_factor: 1,
            unclean_election: false,
            features: features(),
            rules: Arc::new(Rules),
        };
        let mut world = World { controller: Controller::new(Image::empty("c"), settings), log: vec![], chance: Seeded(7) };
        world.append(bootstrap(30, &[]));
        world
    }

    fn with_brokers(ids: &[i32]) -> World {
        let mut world = World::empty();
        for id in ids {
            let epoch = world.register(*id, *id as u128).unwrap();
            world.unfence(*id, epoch);
        }
        world
    }

    fn append(&mut self, records: Vec<Record>) {
        for record in records {
            self.controller.apply(Offset(self.log.len() as i64), &record).unwrap();
            self.log.push(record);
        }
    }

    fn decide(&mut self, request: Request) -> Decision {
        let mut cx = Context { next: Offset(self.log.len() as i64), chance: &mut self.chance };
        self.controller.decide(request, &mut cx)
    }

    fn ask(&mut self, request: Request) -> Answer {
        let Decision { records, answer } = self.decide(request);
        self.append(records);
        answer
    }

    fn registration(&self, id: i32, incarnation: u128) -> RegisterBroker {
        RegisterBroker {
            cluster_id: "c".into(),
            broker: BrokerId(id),
            incarnation_id: Id(incarnation),
            endpoints: vec![Endpoint {
                name: "PLAINTEXT".into(),
                host: "h".into(),
                port: 9092,
                security_protocol: SecurityProtocol::Plaintext,
            }],
            features: features(),
            rack: None,
            log_dirs: vec![Id(1000 + id as u128)],
            session_alive: false,
        }
    }

    fn register(&mut self, id: i32, incarnation: u128) -> Result<BrokerEpoch, Refusal> {
        let request = self.registration(id, incarnation);
        match self.ask(Request::RegisterBroker(request)) {
            Answer::RegisterBroker(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn heartbeat(&mut self, id: i32, broker_epoch: BrokerEpoch, seen: i64, want_fence: bool) -> Result<BrokerState, Refusal> {
        let heartbeat = Heartbeat { broker: BrokerId(id), broker_epoch, metadata_offset: Offset(seen), want_fence };
        match self.ask(Request::Heartbeat(heartbeat)) {
            Answer::Heartbeat(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn unfence(&mut self, id: i32, epoch: BrokerEpoch) {
        assert_eq!(self.heartbeat(id, epoch, self.log.len() as i64, false), Ok(BrokerState { caught_up: true, fenced: false }));
    }

    fn create(&mut self, topics: Vec<NewTopic>) -> Vec<(String, Result<CreatedTopic, Refusal>)> {
        match self.ask(Request::CreateTopics { topics, validate_only: false }) {
            Answer::CreateTopics(results) => results,
            other => panic!("{other:?}"),
        }
    }

    fn partition(&self, name: &str, index: i32) -> &Partition {
        self.controller.image().topic_by_name(name).and_then(|topic| topic.partition(index)).unwrap()
    }
}

fn topic(name: &str, partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic { name: name.into(), partitions, replication_factor, assignments: vec![], configs: vec![] }
}

fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
    let assignments = assignments.iter().map(|(index, ids)| (*index, ids.iter().copied().map(BrokerId).collect())).collect();
    NewTopic { assignments, ..topic(name, -1, -1) }
}

fn configured(name: &str, key: &str, value: Option<&str>) -> NewTopic {
    NewTopic { configs: vec![(key.into(), value.map(str::to_string))], ..topic(name, 1, 1) }
}

fn refused<T: std::fmt::Debug>(result: &Result<T, Refusal>) -> (Why, String) {
    let refusal = result.as_ref().unwrap_err();
    (refusal.why, refusal.message.clone().unwrap_or_default())
}

#[test]
fn a_topic_is_its_record_then_its_settings_then_its_partitions() {
    let mut world = World::with_brokers(&[1]);
    let from = world.log.len();
    let made = world.create(vec![NewTopic { partitions: 2, ..configured("t", "retention.ms", Some("1")) }]);
    let id = world.controller.image().topic_by_name("t").unwrap().id;
    assert_eq!(made, [("t".into(), Ok(CreatedTopic { id, partitions: 2, replication_factor: 1 }))]);
    let kinds: Vec<&str> = world.log[from..]
        .iter()
        .map(|record| match record {
            Record::Topic(_) => "topic",
            Record::Config(_) => "config",
            Record::Partition(_) => "partition",
            _ => "?",
        })
        .collect();
    assert_eq!(kinds, ["topic", "config", "partition", "partition"]);
    let first = world.partition("t", 0);
    assert_eq!((first.leader, &first.isr, first.directories[0]), (BrokerId(1), &vec![BrokerId(1)], Id(1001)));
}

#[test]
fn a_new_topic_is_checked_in_kafkas_order() {
    let mut world = World::with_brokers(&[1, 2]);
    world.create(vec![topic("taken", 1, 1), topic("a.b", 1, 1)]);
    let long = "x".repeat(250);
    let cases: Vec<(NewTopic, Why, &str)> = vec![
        (topic("__cluster_metadata", 1, 1), Why::InvalidRequest, "Creation of internal topic __cluster_metadata is prohibited."),
        (topic("", 1, 1), Why::InvalidTopic, "Topic name is invalid: the empty string is not allowed"),
        (topic("..", 1, 1), Why::InvalidTopic, "Topic name is invalid: '..' is not allowed"),
        (topic(&long, 1, 1), Why::InvalidTopic, "is longer than the max allowed length 249"),
        (topic("a b", 1, 1), Why::InvalidTopic, "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        (topic("a_b", 1, 1), Why::InvalidTopic, "Topic 'a_b' collides with existing topic: a.b"),
        (topic("a.b", 1, 1), Why::TopicAlreadyExists, "Topic 'a.b' already exists."),
        (topic("taken", 0, 99), Why::TopicAlreadyExists, "Topic 'taken' already exists."),
        (configured("t", "k", None), Why::InvalidConfig, "Null value not supported for topic configs: k"),
        (NewTopic { partitions: 0, ..configured("t", "bad.key", Some("1")) }, Why::InvalidConfig, "Unknown topic config name: bad.key"),
        (configured("t", "k", Some(&"v".repeat(32768))), Why::InvalidConfig, "exceeds the maximum value size of 32767 bytes"),
        (topic("t", 0, 0), Why::InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value."),
        (topic("t", 0, 1), Why::InvalidPartitions, "Number of partitions was set to an invalid non-positive value."),
        (topic("t", -2, 1), Why::InvalidPartitions, "Number of partitions was set to an invalid non-positive value."),
        (
            topic("t", 1, 9),
            Why::InvalidReplicationFactor,
            "Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached because only 2 broker(s) are",
        ),
        (
            NewTopic { replication_factor: 1, ..assigned("t", &[(0, &[1])]) },
            Why::InvalidRequest,
            "but replication factor was not set to -1",
        ),
        (NewTopic { partitions: 1, ..assigned("t", &[(0, &[1])]) }, Why::InvalidRequest, "but numPartitions was not set to -1"),
        (
            assigned("t", &[(0, &[1]), (0, &[2])]),
            Why::InvalidReplicaAssignment,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            assigned("t", &[(9, &[1]), (9, &[2])]),
            Why::InvalidReplicaAssignment,
            "Found multiple manual partition assignments for partition 9",
        ),
        (assigned("t", &[(0, &[])]), Why::InvalidReplicaAssignment, "includes an empty replica list"),
        (assigned("t", &[(0, &[7])]), Why::InvalidReplicaAssignment, "includes broker 7, but no such broker is registered"),
        (assigned("t", &[(0, &[1, 1])]), Why::InvalidReplicaAssignment, "includes the broker 1 more than once"),
        (
            assigned("t", &[(0, &[1]), (1, &[1, 2])]),
            Why::InvalidReplicaAssignment,
            "partition with 2 replica(s), but this is not consistent",
        ),
        (assigned("t", &[(0, &[1]), (2, &[2])]), Why::InvalidReplicaAssignment, "consecutive 0-based integer sequence"),
        (assigned("t", &[(-1, &[1])]), Why::InvalidReplicaAssignment, "consecutive 0-based integer sequence"),
    ];
    let from = world.log.len();
    for (new, why, message) in cases {
        let what = format!("{new:?}");
        let answers = world.create(vec![new]);
        let (got, text) = refused(&answers[0].1);
        assert!(got == why && text.contains(message), "{what:.200}: {got:?} {text}");
    }
    assert_eq!(world.log.len(), from, "what is refused leaves no record");
}

#[test]
fn topics_of_one_request_stand_and_fall_alone_but_for_their_number() {
    let mut world = World::with_brokers(&[1]);
    let answers = world.create(vec![topic("twice", 1, 1), topic("good", 1, 1), topic("twice", 1, 1), topic("bad name", 1, 1)]);
    let outcome: Vec<(&str, Option<Why>)> =
        answers.iter().map(|(name, result)| (name.as_str(), result.as_ref().err().map(|r| r.why))).collect();
    assert_eq!(outcome, [("good", None), ("bad name", Some(Why::InvalidTopic)), ("twice", Some(Why::InvalidRequest))]);

    let answers = world.create(vec![topic("small", 1, 1), topic("large", 10_000, 1)]);
    assert!(answers.iter().all(|(_, result)| refused(result).0 == Why::PolicyViolation));
    let validated = world.decide(Request::CreateTopics { topics: vec![topic("v", 3, 1), topic("good", 1, 1)], validate_only: true });
    assert_eq!(validated.records, []);
    let Answer::CreateTopics(answers) = validated.answer else { panic!() };
    assert_eq!(answers[0].1.as_ref().map(|made| made.partitions), Ok(3));
    assert_eq!(refused(&answers[1].1).0, Why::TopicAlreadyExists);
}

#[test]
fn ten_thousand_partitions_are_one_decision() {
    let mut world = World::with_brokers(&[1]);
    let decision = world.decide(Request::CreateTopics { topics: vec![topic("t", 10_000, 1)], validate_only: false });
    assert_eq!(decision.records.len(), 10_001);
    world.append(decision.records);
    assert_eq!(world.controller.image().topic_by_name("t").unwrap().partitions.len(), 10_000);
}

#[test]
fn fenced_brokers_take_replicas_and_are_not_in_sync() {
    let mut world = World::with_brokers(&[1]);
    world.register(2, 2).unwrap();
    assert!(world.create(vec![topic("t", 1, 2)])[0].1.is_ok());
    let partition = world.partition("t", 0);
    assert_eq!((&partition.replicas, &partition.isr), (&vec![BrokerId(1), BrokerId(2)], &vec![BrokerId(1)]));
    let answers = world.create(vec![assigned("u", &[(0, &[2])])]);
    assert!(refused(&answers[0].1).1.ends_with("for partition 0 are fenced or in controlled shutdown."));

    let mut asleep = World::empty();
    asleep.register(1, 1).unwrap();
    let answers = asleep.create(vec![topic("t", 1, 1)]);
    let all_fenced =
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log directories cordoned.";
    assert_eq!(refused(&answers[0].1), (Why::InvalidReplicationFactor, all_fenced.into()));
}

#[test]
fn topics_are_deleted_by_name_or_by_id_and_take_their_settings_along() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![configured("a", "k", Some("1")), topic("b", 1, 1), topic("c", 1, 1), topic("a.x", 1, 1)]);
    let id = |world: &World, name: &str| world.controller.image().topic_by_name(name).unwrap().id;
    let (b, c) = (id(&world, "b"), id(&world, "c"));
    let by_name = |name: &str| TopicRef { name: Some(name.into()), id: Id::ZERO };
    let by_id = |id| TopicRef { name: None, id };
    let all = vec![
        by_name("a"),
        by_id(b),
        by_id(c),
        by_name("c"),
        by_name("none"),
        by_id(Id(12345)),
        by_name("x"),
        by_name("x"),
        by_id(Id::ZERO),
        TopicRef { name: Some("a".into()), id: b },
        by_name("a.x"),
    ];
    let Answer::DeleteTopics(answers) = world.ask(Request::DeleteTopics(all)) else { panic!() };
    let mut outcome: Vec<(String, Option<Why>)> =
        answers.iter().map(|(topic, result)| (topic.name.clone().unwrap_or_default(), result.as_ref().err().map(|r| r.why))).collect();
    outcome.sort_by(|a, b| (&a.0, a.1.is_some()).cmp(&(&b.0, b.1.is_some())));
    let expected = [
        ("", Some(Why::InvalidRequest)),
        ("", Some(Why::UnknownTopicId)),
        ("a", None),
        ("a", Some(Why::InvalidRequest)),
        ("a.x", None),
        ("b", None),
        ("c", Some(Why::InvalidRequest)),
        ("none", Some(Why::UnknownTopicOrPartition)),
        ("x", Some(Why::InvalidRequest)),
    ];
    assert_eq!(outcome, expected.map(|(name, why)| (name.to_string(), why)));
    assert_eq!(world.controller.image().topics().map(|topic| &*topic.name).collect::<Vec<_>>(), ["c"]);
    assert_eq!(world.controller.image().configs(ResourceType::Topic, "a"), None);
    assert!(world.create(vec![topic("a_x", 1, 1)])[0].1.is_ok(), "its lookalike is gone");
}

#[test]
fn partitions_are_added_and_never_taken_away() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![topic("t", 2, 1)]);
    let mut ask = |name: &str, count, assignments: Option<Vec<Vec<BrokerId>>>| {
        let topics = vec![MorePartitions { name: name.into(), count, assignments }];
        match world.ask(Request::CreatePartitions { topics, validate_only: false }) {
            Answer::CreatePartitions(mut answers) => answers.remove(0).1,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&ask("none", 3, None)).0, Why::UnknownTopicOrPartition);
    assert_eq!(refused(&ask("t", 2, None)), (Why::InvalidPartitions, "Topic already has 2 partition(s).".into()));
    let shrink = "The topic t currently has 2 partition(s); 1 would not be an increase.";
    assert_eq!(refused(&ask("t", 1, None)), (Why::InvalidPartitions, shrink.into()));
    assert_eq!(refused(&ask("t", i32::MIN, None)).0, Why::InvalidPartitions);
    assert_eq!(refused(&ask("t", i32::MAX, None)).0, Why::PolicyViolation);
    let one = Some(vec![vec![BrokerId(1)]]);
    let uneven = "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.";
    assert_eq!(refused(&ask("t", 4, one.clone())), (Why::InvalidReplicaAssignment, uneven.into()));
    assert_eq!(refused(&ask("t", 3, Some(vec![vec![BrokerId(7)]]))).0, Why::InvalidReplicaAssignment);
    assert_eq!(ask("t", 3, one), Ok(()));
    assert_eq!(ask("t", 5, None), Ok(()));
    assert_eq!(world.controller.image().topic_by_name("t").unwrap().partitions.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_restarted_broker_leads_again_in_a_new_epoch() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![topic("t", 1, 1)]);
    let first_epoch = world.partition("t", 0).leader_epoch;
    let epoch = world.register(1, 99).unwrap();
    assert_eq!(epoch, BrokerEpoch(world.log.len() as i64 - 1), "the epoch is the offset of the registration record");
    let partition = world.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr), (BrokerId::NONE, &vec![BrokerId(1)]), "it is waited for");
    assert_eq!(world.heartbeat(1, epoch, epoch.0 - 1, false), Ok(BrokerState { caught_up: false, fenced: true }), "it has not seen itself");
    world.unfence(1, epoch);
    let partition = world.partition("t", 0);
    assert_eq!(partition.leader, BrokerId(1));
    assert!(partition.leader_epoch > first_epoch);
    assert_eq!(world.heartbeat(1, epoch, epoch.0, true), Ok(BrokerState { caught_up: true, fenced: true }));
    assert_eq!(world.partition("t", 0).leader, BrokerId::NONE, "a fenced broker leads nothing");
}

#[test]
fn a_fenced_broker_leaves_every_isr_in_the_same_append() {
    let mut world = World::with_brokers(&[1, 2]);
    world.create(vec![topic("t", 4, 2)]);
    let epoch = world.controller.image().broker(BrokerId(2)).unwrap().broker_epoch;
    let heartbeat = Heartbeat { broker: BrokerId(2), broker_epoch: epoch, metadata_offset: Offset(99), want_fence: true };
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
    let other = |change: &dyn Fn(&mut RegisterBroker)| {
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
    let epoch = |world: &World| world.controller.image().broker(BrokerId(2)).unwrap().broker_epoch;
    let before = epoch(&world);
    world.heartbeat(2, before, 99, true).unwrap();
    let elect = |world: &mut World, election, partitions: Option<&[i32]>| {
        let partitions = partitions.map(|indexes| vec![("t".to_string(), indexes.to_vec())]);
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
    assert_eq!(elect(&mut world, Preferred, Some(&[0, 1, 2])), all);
    assert_eq!(elect(&mut world, Preferred, None), all[1..], "what is not needed is left out");
    assert_eq!(
        elect(&mut world, Unclean, Some(&[0, 2, 9])),
        [(0, Some(Why::ElectionNotNeeded)), (2, Some(Why::EligibleLeadersNotAvailable)), (9, Some(Why::UnknownTopicOrPartition)),]
    );
    world.unfence(2, before);
    assert_eq!(world.partition("t", 2).leader, BrokerId(2), "it was the last of the ISR");
    let joined = records::PartitionChange { isr: Some(vec![BrokerId(1), BrokerId(2)]), ..records::PartitionChange::new(topic_id, 1) };
    world.append(vec![Record::PartitionChange(joined)]);
    assert_eq!(elect(&mut world, Preferred, Some(&[1, 1])), [(1, None), (1, None)]);
    let at = TopicPartition { topic: topic_id, partition: 1 };
    assert_eq!(world.controller.image().partition(at).map(|partition| partition.leader), Some(BrokerId(2)));
}

#[test]
fn settings_change_all_or_nothing_per_resource() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![configured("t", "cleanup.policy", Some("delete"))]);
    let alter = |world: &mut World, resource: ConfigResource, changes: &[(&str, ConfigOp, Option<&str>)]| {
        let changes = changes.iter().map(|(name, op, value)| (name.to_string(), *op, value.map(str::to_string))).collect();
        match world.ask(Request::AlterConfigs { resources: vec![AlterConfigs { resource, changes }], validate_only: false }) {
            Answer::Configs(mut answers) => answers.remove(0).1,
            other => panic!("{other:?}"),
        }
    };
    use ConfigOp::*;
    let t = || ConfigResource::topic("t");
    let value = |world: &World, kind, resource: &str, name: &str| {
        world.controller.image().configs(kind, resource).and_then(|configs| configs.get(name)).map(|value| value.to_string())
    };
    let cases: [(ConfigResource, &[(&str, ConfigOp, Option<&str>)], Why, &str); 13] = [
        (t(), &[("k", Set, Some("1")), ("k", Delete, None)], Why::InvalidRequest, "Error due to duplicate config keys"),
        (t(), &[("k", Set, None), ("l", Append, None)], Why::InvalidRequest, "Null value not supported for : k, l"),
        (t(), &[("k", Append, Some("1"))], Why::InvalidConfig, "Can't APPEND to key k because its type is not LIST."),
        (t(), &[("k", Subtract, Some("1"))], Why::InvalidConfig, "Can't SUBTRACT to key k because its type is not LIST."),
        (t(), &[("good", Set, Some("1")), ("bad", Set, Some("1"))], Why::InvalidConfig, "Unknown topic config name: bad"),
        (ConfigResource::topic("none"), &[("k", Set, Some("1"))], Why::UnknownTopicOrPartition, "The topic 'none' does not exist."),
        (ConfigResource::topic(""), &[], Why::InvalidRequest, "Default topic resources are not allowed."),
        (ConfigResource::topic("a b"), &[], Why::InvalidTopic, "Topic name is invalid"),
        (ConfigResource::broker(BrokerId(9)), &[], Why::BrokerIdNotRegistered, "No node with id 9 found."),
        (ConfigResource::broker(BrokerId(-9)), &[], Why::InvalidRequest, "Invalid negative broker ID."),
        (
            ConfigResource { kind: ResourceType::Broker, name: "x".into() },
            &[],
            Why::InvalidRequest,
            "Unable to parse broker name as a base 10 number.",
        ),
        (
            ConfigResource { kind: ResourceType::Group, name: "".into() },
            &[],
            Why::InvalidRequest,
            "Default group resources are not allowed.",
        ),
        (ConfigResource { kind: ResourceType::BrokerLogger, name: "1".into() }, &[], Why::InvalidRequest, "not kept in the metadata log"),
    ];
    let from = world.log.len();
    for (resource, changes, why, message) in cases {
        let (got, text) = refused(&alter(&mut world, resource, changes));
        assert!(got == why && text.contains(message), "{changes:?}: {got:?} {text}");
    }
    assert_eq!(world.log.len(), from);

    assert_eq!(alter(&mut world, t(), &[("cleanup.policy", Append, Some("compact")), ("k", Set, Some("1"))]), Ok(()));
    assert_eq!(value(&world, ResourceType::Topic, "t", "cleanup.policy"), Some("delete,compact".into()));
    assert_eq!(alter(&mut world, t(), &[("cleanup.policy", Subtract, Some("delete")), ("k", Delete, None)]), Ok(()));
    assert_eq!(value(&world, ResourceType::Topic, "t", "cleanup.policy"), Some("compact".into()));
    assert_eq!(value(&world, ResourceType::Topic, "t", "k"), None);
    let from = world.log.len();
    assert_eq!(alter(&mut world, t(), &[("cleanup.policy", Set, Some("compact"))]), Ok(()));
    assert_eq!(world.log.len(), from, "an unchanged setting is no record");
    for _ in 0..2 {
        assert_eq!(alter(&mut world, ConfigResource::broker(BrokerId(1)), &[("k", Set, Some("1"))]), Ok(()));
    }
    assert_eq!(alter(&mut world, ConfigResource::broker_default(), &[("cleanup.policy", Append, Some("x"))]), Ok(()));
    assert_eq!(value(&world, ResourceType::Broker, "", "cleanup.policy"), Some("delete,x".into()), "appended to the default");
    assert_eq!(world.log.len(), from + 3, "a broker's setting is one, so that the broker reloads");
}

#[test]
fn replacing_settings_deletes_those_not_named() {
    let mut world = World::with_brokers(&[1]);
    world.create(vec![configured("t", "k", Some("1"))]);
    let replace = |resource| ReplaceConfigs { resource, configs: vec![("l".into(), Some("2".into()))] };
    let resources = vec![replace(ConfigResource::topic("t")), replace(ConfigResource::topic("u")), replace(ConfigResource::topic("u"))];
    let Answer::Configs(answers) = world.ask(Request::ReplaceConfigs { resources, validate_only: false }) else { panic!() };
    assert_eq!(answers[0].1, Ok(()));
    assert!(answers[1..].iter().all(|(_, result)| refused(result).1 == "Each resource must appear at most once."));
    let configs = world.controller.image().configs(ResourceType::Topic, "t").unwrap();
    assert_eq!(configs.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(), [("l", "2")]);
}

#[test]
fn feature_levels_change_all_or_none() {
    let mut world = World::with_brokers(&[1]);
    let update = |world: &mut World, updates: &[(&str, i16, UpgradeType)]| {
        let updates =
            updates.iter().map(|(name, level, upgrade)| FeatureUpdate { name: name.to_string(), level: *level, upgrade: *upgrade });
        match world.ask(Request::UpdateFeatures { updates: updates.collect(), validate_only: false }) {
            Answer::UpdateFeatures(result) => result,
            other => panic!("{other:?}"),
        }
    };
    use UpgradeType::*;
    let cases: [(&[(&str, i16, UpgradeType)], &str); 7] = [
        (&[("group.version", 1, Upgrade), ("group.version", 2, Upgrade)], "Local controller only supports versions 0-1"),
        (&[("nothing", 1, Upgrade)], "Local controller does not support this feature."),
        (&[("group.version", -1, Upgrade)], "A feature version cannot be less than 0."),
        (&[("group.version", 1, SafeDowngrade)], "Can't downgrade to a newer version."),
        (&[("metadata.version", 29, Upgrade)], "Can't downgrade the version of this feature without"),
        (&[("metadata.version", 29, SafeDowngrade)], "Refusing to perform the requested downgrade"),
        (&[("metadata.version", 29, UnsafeDowngrade)], "Unsafe metadata downgrade is not supported"),
    ];
    for (updates, message) in cases {
        let (why, text) = refused(&update(&mut world, updates));
        assert!(why == Why::InvalidUpdateVersion && text.contains(message), "{text}");
        assert!(text.starts_with("The update failed for all features since the following feature had an error: Invalid update version "));
    }
    assert_eq!(world.controller.image().feature("group.version"), 0);
    assert_eq!(update(&mut world, &[("group.version", 1, Upgrade), ("kraft.version", 0, Upgrade)]), Ok(()));
    assert_eq!(world.controller.image().feature("group.version"), 1);
    assert_eq!(update(&mut world, &[("group.version", 0, SafeDowngrade)]), Ok(()));
    assert_eq!(world.controller.image().features().collect::<Vec<_>>(), [("metadata.version", 30)]);
}

fn any_request() -> impl Strategy<Value = Request> {
    let name = || "[a-c][._]?[a-c]?";
    let broker = || (1..4).prop_map(BrokerId);
    prop_oneof![
        3 => (name(), -1..4, -1i16..4, any::<bool>()).prop_map(|(name, partitions, replicas, validate_only)| {
            Request::CreateTopics { topics: vec![topic(&name, partitions, replicas)], validate_only }
        }),
        1 => name().prop_map(|name| Request::DeleteTopics(vec![TopicRef { name: Some(name), id: Id::ZERO }])),
        1 => (name(), 0..6, any::<bool>()).prop_map(|(name, count, validate_only)| {
            Request::CreatePartitions { topics: vec![MorePartitions { name, count, assignments: None }], validate_only }
        }),
        1 => (name(), "[kl]", any::<bool>()).prop_map(|(name, key, set)| {
            let (op, value) = if set { (ConfigOp::Set, Some("1".into())) } else { (ConfigOp::Delete, None) };
            let resource = ConfigResource::topic(&name);
            Request::AlterConfigs { resources: vec![AlterConfigs { resource, changes: vec![(key, op, value)] }], validate_only: false }
        }),
        2 => (broker(), 1u128..3).prop_map(|(id, incarnation)| Request::RegisterBroker(World::empty().registration(id.0, incarnation))),
        3 => (broker(), 0i64..60, any::<bool>()).prop_map(|(broker, epoch, want_fence)| {
            Request::Heartbeat(Heartbeat { broker, broker_epoch: BrokerEpoch(epoch), metadata_offset: Offset(60), want_fence })
        }),
        1 => broker().prop_map(Request::UnregisterBroker),
        1 => (broker(), 0i64..60).prop_map(|(broker, epoch)| {
            Request::AllocateProducerIds { broker, broker_epoch: BrokerEpoch(epoch) }
        }),
        1 => any::<bool>().prop_map(|preferred| {
            let election = if preferred { ElectionType::Preferred } else { ElectionType::Unclean };
            Request::ElectLeaders { election, partitions: None }
        }),
    ]
}

proptest! {
    /// A heartbeat of the present epoch is what unfences; the strategy only guesses epochs, so help it.
    #[test]
    fn replaying_the_log_gives_the_live_controller(requests in proptest::collection::vec(any_request(), 1..60)) {
        let mut world = World::empty();
        for mut request in requests {
            if let Request::Heartbeat(heartbeat) = &mut request
                && let Some(broker) = world.controller.image().broker(heartbeat.broker)
            {
                heartbeat.broker_epoch = broker.broker_epoch;
                heartbeat.metadata_offset = Offset(world.log.len() as i64);
            }
            let before = world.controller.image().clone();
            let decision = world.decide(request);
            prop_assert_eq!(world.controller.image(), &before, "to decide changes nothing");
            world.append(decision.records);
            for partition in world.controller.image().topics().flat_map(|topic| topic.partitions.values()) {
                prop_assert!(!partition.isr.is_empty() && partition.isr.iter().all(|id| partition.replicas.contains(id)));
                if partition.has_leader() {
                    prop_assert!(partition.isr.contains(&partition.leader), "the leader is in sync");
                    prop_assert!(world.controller.image().is_active(partition.leader), "and alive");
                }
            }
        }
        let mut replayed = World::empty();
        replayed.log.clear();
        replayed.controller.image = Image::empty("c");
        replayed.append(world.log.clone());
        prop_assert_eq!(replayed.controller.image(), world.controller.image());
        prop_assert_eq!(&replayed.controller.lookalikes, &world.controller.lookalikes);
        let reloaded = Controller::new(world.controller.image().clone(), replayed.controller.settings);
        prop_assert_eq!(&reloaded.lookalikes, &world.controller.lookalikes);
    }
}
