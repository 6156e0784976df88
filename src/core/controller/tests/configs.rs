//! Settings and feature levels, each refusal in a table.

use super::*;

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
