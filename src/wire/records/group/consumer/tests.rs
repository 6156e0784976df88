//! The records of the consumer protocol against bytes that Apache Kafka 4.3.1's own serializers made of the same values.

use proptest::prelude::*;

use super::super::{decode, encode};
use super::*;

/// Key, value ("-": tombstone) and what they say.
fn golden() -> Vec<(&'static str, &'static str, ConsumerRecord)> {
    let (one, two) = (id(1, 2), id(3, 4));
    let member = || Arc::from("m");
    let full = ConsumerMemberMetadata {
        instance: Some("i".into()),
        rack: Some("r".into()),
        client_id: "c".into(),
        client_host: "/h".into(),
        topics: ["a".into(), "b".into()].into(),
        regex: Some("x.*".into()),
        rebalance_timeout: 5_000,
        server_assignor: Some("range".into()),
        classic: Some(ClassicMemberMetadata {
            session_timeout: 45_000,
            protocols: vec![Protocol { name: "range".into(), metadata: Bytes::from_static(&[1, 2, 3]) }],
        }),
    };
    let plain = ConsumerMemberMetadata {
        instance: None,
        rack: None,
        topics: [].into(),
        regex: None,
        rebalance_timeout: -1,
        server_assignor: None,
        classic: None,
        ..full.clone()
    };
    let current = CurrentAssignment {
        epoch: 8,
        previous_epoch: 7,
        state: MemberState::UnrevokedPartitions,
        assigned: [(one, [(0, 5), (1, 8)].into())].into(),
        revoking: [(two, [(5, 6)].into())].into(),
    };
    let regex = ResolvedRegex { topics: ["xa".into(), "xb".into()].into(), version: 42, resolved: Millis(1_700_000_000_000) };
    vec![
        (
            "0003000167",
            "0000000000070100080000000000000063",
            ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch: 7, metadata_hash: 99 })),
        ),
        ("0003000167", "00000000000700", ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch: 7, metadata_hash: 0 }))),
        ("0003000167", "-", ConsumerRecord::Group(None)),
        ("0004000167", "-", ConsumerRecord::LegacyTopics { present: false }),
        (
            "000500016700016d",
            "0000026902720263032f68030261026204782e2a000013880672616e6765010012010000afc8020672616e6765040102030000",
            ConsumerRecord::Member { member: member(), value: Some(Box::new(full)) },
        ),
        (
            "000500016700016d",
            "000000000263032f680100ffffffff0001000100",
            ConsumerRecord::Member { member: member(), value: Some(Box::new(plain)) },
        ),
        ("000500016700016d", "-", ConsumerRecord::Member { member: member(), value: None }),
        (
            "0006000167",
            "0000000000080100080000018bcfe56800",
            ConsumerRecord::Target(Some(TargetMetadata { epoch: 8, computed: Some(Millis(1_700_000_000_000)) })),
        ),
        ("0006000167", "00000000000800", ConsumerRecord::Target(Some(TargetMetadata { epoch: 8, computed: None }))),
        ("0006000167", "-", ConsumerRecord::Target(None)),
        (
            "000700016700016d",
            "0000030000000000000001000000000000000204000000000000000100000002000000000000000003000000000000000402000000050000",
            ConsumerRecord::TargetMember { member: member(), value: Some([(one, [0, 1, 2].into()), (two, [5].into())].into()) },
        ),
        ("000700016700016d", "-", ConsumerRecord::TargetMember { member: member(), value: None }),
        (
            "000800016700016d",
            "0000000000080000000701020000000000000001000000000000000203000000000000000101000903000000050000000802\
             000000000000000300000000000000040200000005010005020000000600",
            ConsumerRecord::Current { member: member(), value: Some(current) },
        ),
        ("000800016700016d", "-", ConsumerRecord::Current { member: member(), value: None }),
        (
            "00100001670003782e2a",
            "000003037861037862000000000000002a0000018bcfe5680000",
            ConsumerRecord::Regex { pattern: "x.*".into(), value: Some(regex) },
        ),
        ("00100001670003782e2a", "-", ConsumerRecord::Regex { pattern: "x.*".into(), value: None }),
    ]
}

fn id(high: u128, low: u128) -> TopicId {
    crate::core::types::Id(high << 64 | low)
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn value(hex: &str) -> Option<Vec<u8>> {
    (hex != "-").then(|| bytes(hex))
}

fn of(record: ConsumerRecord) -> GroupRecord {
    GroupRecord::Consumer { group: "g".into(), record }
}

#[test]
fn records_have_kafkas_bytes() {
    for (key, hex, record) in golden() {
        let record = of(record);
        assert_eq!(decode(&bytes(key), value(hex).as_deref()), Ok(record.clone()));
        assert_eq!(encode(&record), Ok((bytes(key), value(hex))), "{record:?}");
    }
}

#[test]
fn what_only_older_brokers_wrote_is_read() {
    let topics = "00000200000000000000010000000000000002027400000003020000000003037231037232000000";
    let read = decode(&bytes("0004000167"), value(topics).as_deref());
    assert_eq!(read, Ok(of(ConsumerRecord::LegacyTopics { present: true })));
    let (key, again) = encode(&read.unwrap()).unwrap();
    assert_eq!(decode(&key, again.as_deref()), Ok(of(ConsumerRecord::LegacyTopics { present: true })));

    // Partitions without epochs (null, and not there at all), a state that nobody knows, a static member that is away.
    let current = "0000fffffffe0000000709020000000000000001000000000000000203000000000000000101000100020000000000000003\
                   000000000000000402000000050000";
    let expected = CurrentAssignment {
        epoch: -2,
        previous_epoch: 7,
        state: MemberState::Unknown,
        assigned: [(id(1, 2), [(0, 0), (1, 0)].into())].into(),
        revoking: [(id(3, 4), [(5, 0)].into())].into(),
    };
    let expected = ConsumerRecord::Current { member: "m".into(), value: Some(expected) };
    assert_eq!(decode(&bytes("000800016700016d"), value(current).as_deref()), Ok(of(expected)));
}

#[test]
fn what_cannot_be_read_says_why() {
    let newer = |key: &str| decode(&bytes(key), Some(&[0, 1])).unwrap_err();
    let table = [
        ("0003000167", "ConsumerGroupMetadataValue"),
        ("0004000167", "ConsumerGroupPartitionMetadataValue"),
        ("000500016700016d", "ConsumerGroupMemberMetadataValue"),
        ("0006000167", "ConsumerGroupTargetAssignmentMetadataValue"),
        ("000700016700016d", "ConsumerGroupTargetAssignmentMemberValue"),
        ("000800016700016d", "ConsumerGroupCurrentMemberAssignmentValue"),
        ("00100001670003782e2a", "ConsumerGroupRegularExpressionValue"),
    ];
    for (key, record) in table {
        assert_eq!(newer(key), BadRecord::UnknownVersion { record, version: 1 });
    }
    for (key, hex, _) in golden() {
        let (key, value) = (bytes(key), value(hex));
        for cut in 0..key.len() {
            assert!(decode(&key[..cut], value.as_deref()).is_err(), "a key of {cut} bytes");
        }
        for cut in 0..value.as_ref().map_or(0, Vec::len) {
            assert!(decode(&key, value.as_ref().map(|value| &value[..cut])).is_err(), "a value of {cut} bytes of {hex}");
        }
        let long = |bytes: &[u8]| [bytes, &[0]].concat();
        assert_eq!(decode(&long(&key), value.as_deref()), Err(BadRecord::Trailing(1)));
        if let Some(value) = value {
            assert_eq!(decode(&key, Some(&long(&value))), Err(BadRecord::Trailing(1)));
        }
    }
    let long = ConsumerRecord::Regex { pattern: "x".repeat(40_000).into(), value: None };
    assert_eq!(encode(&of(long)), Err(BadRecord::TextTooLong(40_000)));
}

fn epochs() -> impl Strategy<Value = EpochAssignment> {
    let partitions = proptest::collection::btree_map(any::<i32>(), any::<i32>(), 0..4);
    proptest::collection::btree_map(any::<u128>().prop_map(crate::core::types::Id), partitions, 0..3)
}

proptest! {
    #[test]
    fn assignments_come_back(epoch: i32, previous_epoch: i32, assigned in epochs(), revoking in epochs()) {
        let target = assigned.iter().map(|(topic, partitions)| (*topic, partitions.keys().copied().collect())).collect();
        let current = CurrentAssignment { epoch, previous_epoch, state: MemberState::UnreleasedPartitions, assigned, revoking };
        for record in [
            ConsumerRecord::Current { member: "m".into(), value: Some(current) },
            ConsumerRecord::TargetMember { member: "m".into(), value: Some(target) },
        ] {
            let (key, value) = encode(&of(record.clone())).unwrap();
            prop_assert_eq!(decode(&key, value.as_deref()), Ok(of(record)));
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(kind in 3u8..17, value in proptest::collection::vec(any::<u8>(), 0..80)) {
        let key = [&[0, kind][..], b"\0\x01g\0\x01m"].concat();
        for key in [&key[..5], &key] {
            let _ = decode(key, Some(&[&[0, 0][..], &value].concat()));
        }
    }
}
