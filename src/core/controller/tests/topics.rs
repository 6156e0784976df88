//! Topics made, deleted and extended, each refusal in a table.

use super::*;

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
