//! Against bytes that Apache Kafka 4.3.1 wrote, and against ourselves.

use bytes::Bytes;
use kafka_protocol::records::RecordBatchDecoder;

use super::*;
use crate::core::controller::records::*;
use crate::core::quorum::records::{ControlRecord, LeaderChange, Voter, VoterEndpoint};
use crate::core::types::{BrokerId, Epoch, Id, Millis};

const LEVEL_4_3: i16 = 30;

/// The metadata log of a broker that made topics, set configs, gave a producer its id, shut down and came back.
const LOG: &[u8] = include_bytes!("../testdata/cluster_metadata.log");
const BOOTSTRAP: &[u8] = include_bytes!("../testdata/bootstrap.checkpoint");

/// Keys and values of all records of a log, with whether they are control records.
fn entries(log: &'static [u8]) -> Vec<(bool, Option<Bytes>, Bytes)> {
    let mut bytes = Bytes::from_static(log);
    let sets = RecordBatchDecoder::decode_all(&mut bytes).unwrap();
    sets.into_iter().flat_map(|set| set.records).map(|record| (record.control, record.key, record.value.unwrap())).collect()
}

#[test]
fn every_record_that_kafka_wrote_is_read_and_written_to_the_same_bytes() {
    let mut seen = std::collections::BTreeMap::new();
    let mut first_records = Vec::new();
    for (control, key, value) in entries(LOG).into_iter().chain(entries(BOOTSTRAP)) {
        if control {
            let record = control::decode(&key.clone().unwrap(), &value).unwrap();
            let (key_again, value_again) = control::encode(&record).unwrap();
            assert_eq!((&key_again[..], &value_again[..]), (&key.unwrap()[..], &value[..]), "{record:?}");
            continue;
        }
        let (record, version) = decode(&value).unwrap();
        let mut again = Vec::new();
        encode(&record, version, &mut again).unwrap();
        assert_eq!(again, value, "{record:?} v{version}");
        assert_eq!(version, version_at(&record, LEVEL_4_3), "{record:?}");
        *seen.entry(metadata::describe(&record).1).or_insert(0) += 1;
        first_records.push(record);
    }
    let kinds: Vec<&str> = seen.keys().copied().collect();
    let want = [
        "BeginTransactionRecord",
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ConfigRecord",
        "EndTransactionRecord",
        "FeatureLevelRecord",
        "NoOpRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveTopicRecord",
        "TopicRecord",
    ];
    assert_eq!(kinds, want);
    let plain = first_records.iter().find_map(|r| if let Record::Topic(topic) = r { Some(topic.name.as_str()) } else { None });
    assert_eq!(plain, Some("plain"));
}

#[test]
fn control_records_that_kafka_wrote() {
    let control = |log| -> Vec<ControlRecord> {
        entries(log).into_iter().filter(|e| e.0).map(|(_, key, value)| control::decode(&key.unwrap(), &value).unwrap()).collect()
    };
    let me = BrokerId(1);
    let change = ControlRecord::LeaderChange(LeaderChange { leader: me, voters: vec![me], granting: vec![me] });
    assert_eq!(control(LOG), [change.clone(), change]);
    assert!(matches!(control(BOOTSTRAP)[..], [ControlRecord::SnapshotHeader(_), ControlRecord::SnapshotFooter]));
}

fn endpoint() -> Endpoint {
    Endpoint { name: "EXTERNAL".into(), host: "h".into(), port: 65535, security_protocol: SecurityProtocol::SaslSsl }
}

/// Every record with every field set, and the version that carries it.
fn samples() -> Vec<(Record, i16)> {
    let (one, two) = (BrokerId(1), BrokerId(2));
    let (topic_id, dirs) = (Id(7 << 100), vec![Id(u128::MAX), Id(5)]);
    let feature = Feature { name: "f".into(), min: -1, max: i16::MAX };
    let (broker_id, broker_epoch) = (one, BrokerEpoch(i64::MAX));
    let register = RegisterBroker {
        broker_id,
        is_migrating_zk_broker: true,
        incarnation_id: Id(9),
        broker_epoch,
        endpoints: vec![endpoint(), endpoint()],
        features: vec![feature.clone()],
        rack: Some("r".into()),
        fenced: true,
        in_controlled_shutdown: true,
        log_dirs: dirs.clone(),
        cordoned_log_dirs: Some(dirs.clone()),
    };
    let partition = Partition {
        partition_id: 3,
        topic_id,
        replicas: vec![one, two],
        isr: vec![two],
        removing_replicas: vec![one],
        adding_replicas: vec![two],
        leader: BrokerId::NONE,
        leader_recovery: LeaderRecovery::Recovering,
        leader_epoch: Epoch(4),
        partition_epoch: Epoch(5),
        directories: dirs.clone(),
        elr: Some(vec![one]),
        last_known_elr: Some(vec![]),
    };
    let change = PartitionChange {
        isr: Some(vec![]),
        leader: Some(BrokerId::NONE),
        replicas: Some(vec![one]),
        removing_replicas: Some(vec![]),
        adding_replicas: Some(vec![two]),
        leader_recovery: Some(LeaderRecovery::Recovered),
        directories: Some(dirs.clone()),
        elr: Some(vec![two]),
        last_known_elr: Some(vec![one, two]),
        ..PartitionChange::new(topic_id, 3)
    };
    let registration = BrokerRegistrationChange {
        fenced: Some(false),
        in_controlled_shutdown: true,
        log_dirs: dirs.clone(),
        cordoned_log_dirs: Some(vec![]),
        ..BrokerRegistrationChange::new(one, broker_epoch)
    };
    let config = |resource_type, value| Config { resource_type, resource_name: "é".into(), name: "k".into(), value };
    let fence = BrokerFence { broker_id, broker_epoch };
    let controller = RegisterController {
        controller_id: two,
        incarnation_id: Id(1),
        zk_migration_ready: true,
        endpoints: vec![endpoint()],
        features: vec![feature],
    };
    vec![
        (Record::RegisterBroker(register), 4),
        (Record::UnregisterBroker(UnregisterBroker { broker_id, broker_epoch }), 0),
        (Record::Topic(Topic { name: "t".repeat(249), topic_id }), 0),
        (Record::Partition(partition), 2),
        (Record::Config(config(ResourceType::Topic, Some(String::new()))), 0),
        (Record::Config(config(ResourceType::Broker, None)), 0),
        (Record::Config(config(ResourceType::BrokerLogger, None)), 0),
        (Record::Config(config(ResourceType::ClientMetrics, None)), 0),
        (Record::Config(config(ResourceType::Group, None)), 0),
        (Record::PartitionChange(change), 2),
        (Record::PartitionChange(PartitionChange::new(topic_id, 0)), 0),
        (Record::FenceBroker(fence), 0),
        (Record::UnfenceBroker(fence), 0),
        (Record::RemoveTopic(RemoveTopic { topic_id }), 0),
        (Record::FeatureLevel(FeatureLevel { name: "metadata.version".into(), level: 30 }), 0),
        (Record::ProducerIds(ProducerIds { broker_id, broker_epoch, next_producer_id: 1000 }), 0),
        (Record::BrokerRegistrationChange(registration), 3),
        (Record::NoOp, 0),
        (Record::BeginTransaction(Some("bootstrap".into())), 0),
        (Record::BeginTransaction(None), 0),
        (Record::EndTransaction, 0),
        (Record::AbortTransaction(Some(String::new())), 0),
        (Record::RegisterController(controller), 0),
        (Record::ClearElr(String::new()), 0),
    ]
}

#[test]
fn full_records_come_back_and_no_prefix_of_one_is_a_record() {
    for (record, version) in samples() {
        let mut bytes = Vec::new();
        encode(&record, version, &mut bytes).unwrap();
        assert_eq!(decode(&bytes), Ok((record.clone(), version)));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "{record:?}: {cut} of {} bytes", bytes.len());
        }
        bytes.push(0);
        assert_eq!(decode(&bytes), Err(BadRecord::Trailing(1)), "{record:?}");
    }
}

#[test]
fn what_a_version_cannot_carry_is_refused_not_dropped() {
    for (record, newest) in samples() {
        for version in 0..newest {
            let refused = encode(&record, version, &mut Vec::new());
            assert!(matches!(refused, Err(BadRecord::FieldNeedsNewer { .. })), "{record:?} v{version}: {refused:?}");
        }
        let (_, name, last) = metadata::describe(&record);
        assert_eq!(encode(&record, last + 1, &mut Vec::new()), Err(BadRecord::UnknownVersion { record: name, version: last as u32 + 1 }));
    }
    let long = Record::ClearElr("x".repeat(32_768));
    assert_eq!(encode(&long, 0, &mut Vec::new()), Err(BadRecord::TextTooLong(32_768)));
}

#[test]
fn versions_follow_the_level() {
    let partition = samples().swap_remove(3).0;
    let register = samples().swap_remove(0).0;
    let change = Record::PartitionChange(PartitionChange::new(Id(1), 0));
    let table = [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)];
    for (level, brokers, partitions) in table {
        assert_eq!(version_at(&register, level), brokers, "level {level}");
        assert_eq!((version_at(&partition, level), version_at(&change, level)), (partitions, partitions), "level {level}");
    }
    let empty = BrokerRegistrationChange::new(BrokerId(1), BrokerEpoch(1));
    let fenced = BrokerRegistrationChange { fenced: Some(true), ..empty.clone() };
    let leaving = BrokerRegistrationChange { in_controlled_shutdown: true, ..empty.clone() };
    let dirs = BrokerRegistrationChange { log_dirs: vec![Id(3)], ..empty.clone() };
    let cordoned = BrokerRegistrationChange { cordoned_log_dirs: Some(vec![]), ..empty };
    for (version, record) in [fenced, leaving, dirs, cordoned].into_iter().enumerate() {
        assert_eq!(version_at(&Record::BrokerRegistrationChange(record), 7), version as i16);
    }
}

#[test]
fn what_is_unknown_or_impossible_is_said() {
    let table: [(&[u8], BadRecord); 10] = [
        (b"", BadRecord::CutShort),
        (b"\x00\x14\x00\x00", BadRecord::FrameVersion(0)),
        (b"\x02\x14\x00\x00", BadRecord::FrameVersion(2)),
        (b"\x01\x06\x00\x00", BadRecord::UnknownType(6)),
        (b"\x01\xff\xff\xff\xff\x0f\x00\x00", BadRecord::UnknownType(u32::MAX)),
        (b"\x01\x03\x03\x00", BadRecord::UnknownVersion { record: "PartitionRecord", version: 3 }),
        (b"\x01\x14\xff\xff\x03\x00", BadRecord::UnknownVersion { record: "NoOpRecord", version: 65535 }),
        (b"\x01\x04\x00\x03\x01\x01\x00\x00", BadRecord::Value { field: "resource type", value: 3 }),
        (b"\x01\x1c\x00\x03\xff\xfe\x00", BadRecord::NotUtf8),
        (b"\x01\x1c\x00\xff\xff\xff\xff\x0fx", BadRecord::Length),
    ];
    for (bytes, want) in table {
        assert_eq!(decode(bytes), Err(want), "{bytes:02x?}");
    }
    assert_eq!(
        BadRecord::UnknownType(6).to_string(),
        "unknown record type 6: the log was written for features that this broker does not have"
    );
}

#[test]
fn unknown_tagged_fields_are_skipped() {
    assert_eq!(decode(b"\x01\x14\x00\x01\x63\x02ab"), Ok((Record::NoOp, 0)));
}

#[test]
fn voters_come_back() {
    let endpoint = VoterEndpoint { name: "CONTROLLER".into(), host: "h".into(), port: 9093 };
    let voter = Voter { id: BrokerId(3), directory: Id(4), endpoints: vec![endpoint], min_version: 0, max_version: 1 };
    for record in [ControlRecord::Voters(vec![voter]), ControlRecord::KRaftVersion(1), ControlRecord::SnapshotHeader(Millis(1))] {
        let (key, value) = control::encode(&record).unwrap();
        assert_eq!(control::decode(&key, &value), Ok(record));
        assert!(control::decode(&key, &value[..value.len() - 1]).is_err());
    }
    assert!(control::decode(b"\0\0\0\0", b"").is_err(), "an abort marker is of another log");
    assert!(control::decode(b"\0\x01\0\x04", b"\0\0\0").is_err(), "a key of version 1");
    assert!(control::decode(b"\0\0\0\x04", b"\0\x01\0").is_err(), "a footer of version 1");
}

proptest::proptest! {
    /// Whatever the bytes, decoding ends without panic, and what it accepts it can write.
    #[test]
    fn any_bytes(kind in 0u8..30, version in 0u8..5, body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
        let bytes = [&[1, kind, version][..], &body].concat();
        if let Ok((record, version)) = decode(&bytes) {
            let mut again = Vec::new();
            encode(&record, version, &mut again).unwrap();
            proptest::prop_assert_eq!(decode(&again), Ok((record, version)));
        }
    }
}
