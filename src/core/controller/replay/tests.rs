//! Replay against a slow model: snapshots, deltas, transactions.

use proptest::prelude::*;

use super::*;
use crate::core::controller::Delta;
use crate::core::controller::records::{
    BrokerFence, BrokerRegistrationChange, Config, FeatureLevel, LeaderRecovery, PartitionChange, ProducerIds, RegisterBroker,
    RegisterController, RemoveTopic, UnregisterBroker,
};
use crate::core::types::Id;

const IDS: [i32; 3] = [1, 2, 3];

fn ids() -> impl Strategy<Value = Vec<BrokerId>> {
    proptest::sample::subsequence(IDS.to_vec(), 0..=3).prop_map(|ids| ids.into_iter().map(BrokerId).collect())
}

/// Records over few ids, so that many of them meet; those that contradict what came before are refused, which is part of the test.
pub fn any_record() -> impl Strategy<Value = Record> {
    let topic = || (0u128..4).prop_map(|n| Id(1000 + n));
    let broker = || (proptest::sample::select(IDS.to_vec()).prop_map(BrokerId), (0i64..2).prop_map(BrokerEpoch));
    let resource = || (proptest::sample::select(vec![ResourceType::Topic, ResourceType::Broker, ResourceType::Group]), "[a-c]?");
    prop_oneof![
        2 => (broker(), any::<bool>(), proptest::option::of("[ab]")).prop_map(|((broker_id, broker_epoch), fenced, rack)| {
            Record::RegisterBroker(RegisterBroker {
                broker_id,
                is_migrating_zk_broker: false,
                incarnation_id: Id(7),
                broker_epoch,
                endpoints: vec![],
                features: vec![],
                rack,
                fenced,
                in_controlled_shutdown: false,
                log_dirs: vec![Id(500)],
                cordoned_log_dirs: None,
            })
        }),
        1 => broker().prop_map(|(broker_id, broker_epoch)| Record::UnregisterBroker(UnregisterBroker { broker_id, broker_epoch })),
        3 => (topic(), "[a-d]").prop_map(|(topic_id, name)| Record::Topic(records::Topic { name, topic_id })),
        3 => (topic(), 0..3, ids(), ids(), ids()).prop_map(|(topic_id, partition_id, replicas, isr, elr)| {
            Record::Partition(records::Partition {
                partition_id,
                topic_id,
                leader: isr.first().copied().unwrap_or(BrokerId::NONE),
                directories: vec![Id(1); replicas.len()],
                replicas,
                isr,
                removing_replicas: vec![],
                adding_replicas: vec![],
                leader_recovery: LeaderRecovery::Recovered,
                leader_epoch: Epoch(0),
                partition_epoch: Epoch(0),
                elr: Some(elr),
                last_known_elr: None,
            })
        }),
        3 => (topic(), 0..3, proptest::option::of(ids()), proptest::option::of(-1..3)).prop_map(|(topic, index, isr, leader)| {
            Record::PartitionChange(PartitionChange { isr, leader: leader.map(BrokerId), ..PartitionChange::new(topic, index) })
        }),
        1 => topic().prop_map(|topic_id| Record::RemoveTopic(RemoveTopic { topic_id })),
        3 => (resource(), "[kl]", proptest::option::of("[0-9]")).prop_map(|((resource_type, resource_name), name, value)| {
            Record::Config(Config { resource_type, resource_name, name, value })
        }),
        1 => broker().prop_map(|(broker_id, broker_epoch)| Record::FenceBroker(BrokerFence { broker_id, broker_epoch })),
        1 => broker().prop_map(|(broker_id, broker_epoch)| Record::UnfenceBroker(BrokerFence { broker_id, broker_epoch })),
        1 => (broker(), proptest::option::of(any::<bool>()), any::<bool>()).prop_map(|((id, epoch), fenced, in_controlled_shutdown)| {
            let cordoned_log_dirs = fenced.map(|_| vec![Id(501)]);
            let change = BrokerRegistrationChange::new(id, epoch);
            Record::BrokerRegistrationChange(BrokerRegistrationChange { fenced, in_controlled_shutdown, cordoned_log_dirs, ..change })
        }),
        1 => ("(metadata.version|group.version|kraft.version)", 0i16..3).prop_map(|(name, level)| Record::FeatureLevel(FeatureLevel { name, level })),
        1 => (0i64..9).prop_map(|block| {
            let (broker_id, broker_epoch) = (BrokerId(1), BrokerEpoch(0));
            Record::ProducerIds(ProducerIds { broker_id, broker_epoch, next_producer_id: block * 1000 })
        }),
        1 => Just(Record::RegisterController(RegisterController {
            controller_id: BrokerId(1),
            incarnation_id: Id(9),
            zk_migration_ready: false,
            endpoints: vec![],
            features: vec![],
        })),
        1 => "[a-d]?".prop_map(Record::ClearElr),
        1 => Just(Record::NoOp),
        1 => Just(Record::BeginTransaction(None)),
        1 => Just(Record::EndTransaction),
        1 => Just(Record::AbortTransaction(None)),
    ]
}

/// Everything that differs between two images, found the slow way.
fn differences(old: &Image, new: &Image) -> Delta {
    let mut delta = Delta::default();
    for topic in new.topics().filter(|topic| old.topic(topic.id).is_none()) {
        delta.topics_created.insert(topic.id);
    }
    for topic in old.topics().filter(|topic| new.topic(topic.id).is_none()) {
        delta.topics_deleted.insert(topic.id, topic.clone());
    }
    for topic in new.topics() {
        for (index, partition) in &topic.partitions {
            let at = TopicPartition { topic: topic.id, partition: *index };
            if old.partition(at) != Some(partition) {
                delta.partitions.insert(at);
            }
        }
    }
    delta
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_snapshot_replays_to_the_same_image(all in proptest::collection::vec(any_record(), 0..120)) {
        let mut image = Image::empty("c");
        for (i, record) in all.iter().enumerate() {
            let before = image.clone();
            if image.apply(Offset(i as i64), record).is_err() {
                prop_assert_eq!(&image, &before, "a refused record changes nothing");
            }
        }
        if image.in_transaction() {
            image.apply(Offset(1000), &Record::EndTransaction).unwrap();
        }
        let mut loaded = Image::empty("c");
        for record in image.records() {
            loaded.apply(Offset(0), &record).unwrap();
        }
        loaded.advance(image.offset(), image.epoch());
        prop_assert_eq!(loaded, image);
    }

    #[test]
    fn a_delta_names_everything_that_differs(all in proptest::collection::vec(any_record(), 0..80), at in 0usize..80) {
        let (mut image, mut delta) = (Image::empty("c"), Delta::default());
        let (mut old, mut used) = (image.clone(), std::collections::BTreeSet::new());
        for (i, record) in all.iter().enumerate() {
            // An id is given once.
            if matches!(record, Record::Topic(topic) if !used.insert(topic.topic_id)) {
                continue;
            }
            if i == at && !image.in_transaction() {
                (old, delta) = (image.clone(), Delta::default());
            }
            if let Ok(change) = image.apply(Offset(i as i64), record) {
                delta.note(change);
            }
        }
        let expected = differences(&old, &image);
        prop_assert!(expected.partitions.is_subset(&delta.partitions));
        prop_assert_eq!(&expected.topics_created, &delta.topics_created);
        // A topic is reported as it last looked, which may be after the older image.
        prop_assert!(expected.topics_deleted.keys().eq(delta.topics_deleted.keys()));
    }
}

fn topic(name: &str, id: u128) -> Record {
    Record::Topic(records::Topic { name: name.into(), topic_id: Id(id) })
}

#[test]
fn an_aborted_transaction_never_was() {
    let (mut image, mut delta) = (Image::empty("c"), Delta::default());
    let script = [topic("kept", 7), Record::BeginTransaction(None), topic("lost", 8), Record::AbortTransaction(None)];
    for (i, record) in script.iter().enumerate() {
        delta.note(image.apply(Offset(i as i64), record).unwrap());
        assert_eq!(image.in_transaction(), i == 1 || i == 2);
    }
    assert_eq!(image.topics().map(|topic| &*topic.name).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(delta.topics_created, [Id(7)].into());
    assert_eq!(image.offset(), Offset(3));
}

#[test]
fn lookups_find_topics_by_id_and_by_name_in_name_order() {
    let mut image = Image::empty("c");
    for (i, name) in ["m", "a", "z"].into_iter().enumerate() {
        image.apply(Offset(i as i64), &topic(name, 10 + i as u128)).unwrap();
    }
    assert_eq!(image.topics().map(|topic| &*topic.name).collect::<Vec<_>>(), ["a", "m", "z"]);
    assert_eq!(image.topics_from("b").map(|topic| &*topic.name).collect::<Vec<_>>(), ["m", "z"]);
    assert_eq!(image.topic_by_name("z").map(|topic| topic.id), Some(Id(12)));
    assert_eq!(image.topic(Id(11)).map(|topic| &*topic.name), Some("a"));
    assert_eq!(image.topic_by_name("b"), None);
    assert_eq!(image.apply(Offset(3), &topic("a", 99)).unwrap_err().offset, Offset(3), "a name belongs to one topic");
}

#[test]
fn a_change_that_names_a_leader_raises_the_leader_epoch() {
    let mut image = Image::empty("c");
    let partition = Partition {
        replicas: vec![BrokerId(1), BrokerId(2)],
        directories: vec![Id(500), Id(501)],
        isr: vec![BrokerId(1), BrokerId(2)],
        removing_replicas: vec![],
        adding_replicas: vec![],
        elr: vec![],
        last_known_elr: vec![],
        leader: BrokerId(1),
        leader_epoch: Epoch(0),
        partition_epoch: Epoch(0),
        leader_recovery: LeaderRecovery::Recovered,
    };
    let whole = crate::core::controller::snapshot::whole_partition(Id(7), 0, partition);
    let same_leader = PartitionChange { leader: Some(BrokerId(1)), ..PartitionChange::new(Id(7), 0) };
    let shrink = PartitionChange { isr: Some(vec![BrokerId(1)]), ..PartitionChange::new(Id(7), 0) };
    for record in [topic("t", 7), Record::Partition(whole), Record::PartitionChange(same_leader), Record::PartitionChange(shrink)] {
        image.apply(Offset(0), &record).unwrap();
    }
    let now = image.partition(TopicPartition { topic: Id(7), partition: 0 }).unwrap();
    assert_eq!((now.leader_epoch, now.partition_epoch, &now.isr), (Epoch(1), Epoch(2), &vec![BrokerId(1)]));
}
