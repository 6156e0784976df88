//! Records of groups against bytes that Apache Kafka wrote, and through their own encoder.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::records::RecordBatchDecoder;
use proptest::prelude::*;

use super::*;
use crate::core::chance::Seeded;
use crate::core::controller::Image;
use crate::core::group::request::{Answer, DescribedMember, Effect, Fetch, Rows, Settings, State, Ticket};
use crate::core::group::{Coordinator, Request};

/// The offsets partition of an Apache Kafka 4.3.1: two groups with dynamic and static members, one of them deleted; offsets with notes,
/// with a time of expiry, with a leader epoch; a deleted offset.
const LOG: &[u8] = include_bytes!("../../testdata/consumer_offsets.log");

type Raw = (Bytes, Option<Bytes>);

fn entries() -> Vec<Raw> {
    let mut bytes = Bytes::from_static(LOG);
    let sets = RecordBatchDecoder::decode_all(&mut bytes).unwrap();
    sets.into_iter().flat_map(|set| set.records).map(|record| (record.key.unwrap(), record.value)).collect()
}

#[test]
fn every_record_that_kafka_wrote_is_read_and_written_to_the_same_bytes() {
    let (mut offsets, mut groups, mut tombstones) = (0, 0, 0);
    for (key, value) in entries() {
        let record = decode(&key, value.as_deref()).unwrap();
        match &record {
            GroupRecord::Offset { value: Some(_), .. } => offsets += 1,
            GroupRecord::Group { value: Some(_), .. } => groups += 1,
            _ => tombstones += 1,
        }
        assert_eq!(encode(&record).unwrap(), (key.to_vec(), value.map(|value| value.to_vec())), "{record:?}");
    }
    assert_eq!((offsets, groups, tombstones), (5, 8, 2));
}

fn ask(coordinator: &mut Coordinator, request: Request) -> Answer {
    let mut fx = Vec::new();
    coordinator.ask(Ticket(1), request, Millis(0), &mut Seeded(1), &mut fx);
    match fx.pop() {
        Some(Effect::Answer(_, answer)) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_coordinator_goes_on_from_what_kafka_wrote() {
    let mut coordinator = Coordinator::new(Settings::default(), Arc::new(Image::empty("")));
    for (key, value) in entries().iter().take(9) {
        coordinator.replay(decode(key, value.as_deref()).unwrap());
    }
    let mut fx = Vec::new();
    coordinator.loaded(Millis(0), &mut fx);
    let Answer::Describe(Ok(groups)) = ask(&mut coordinator, Request::Describe(vec!["g".into(), "simple".into()])) else { panic!() };
    let group = groups[0].1.as_ref().unwrap();
    assert_eq!((group.state, group.protocol.as_deref(), group.members.len()), (State::Stable, Some("range"), 2));
    let of = |instance: Option<&str>| -> &DescribedMember { group.members.iter().find(|m| m.instance.as_deref() == instance).unwrap() };
    assert_eq!((&*of(None).client_id, of(None).assignment.len()), ("try", 21));
    assert_eq!(of(Some("inst")).assignment.len(), 0);
    assert_eq!(groups[1].1.as_ref().unwrap().state, State::Empty);

    let fetch = |group: &str| Fetch { group: group.into(), topics: None, require_stable: true, member: None, epoch: -1 };
    let Answer::Fetch(Ok(rows)) = ask(&mut coordinator, Request::Fetch(fetch("simple"))) else { panic!() };
    let Rows { topic, partitions, .. } = &rows[0];
    let seen: Vec<_> = partitions.iter().map(|(index, o)| (*index, o.as_ref().unwrap())).collect();
    assert_eq!(&**topic, "t");
    assert_eq!(
        seen.iter().map(|(i, o)| (*i, o.offset.0, o.leader_epoch.0, &*o.metadata)).collect::<Vec<_>>(),
        [(0, 5, -1, "x"), (1, 6, 3, ""), (2, 9, -1, "")]
    );
    assert_eq!(seen[0].1.expires.unwrap().since(seen[0].1.committed), 3_600_000);
    assert_eq!(seen[1].1.topic_id.to_string(), "scLlhlenQfKue9sbXWqIog");

    let mut whole = Coordinator::new(Settings::default(), Arc::new(Image::empty("")));
    entries().iter().for_each(|(key, value)| whole.replay(decode(key, value.as_deref()).unwrap()));
    whole.loaded(Millis(0), &mut fx);
    let Answer::Describe(Ok(groups)) = ask(&mut whole, Request::Describe(vec!["g".into(), "h".into()])) else { panic!() };
    assert_eq!(groups[0].1.as_ref().map(|g| (g.state, g.members.len())), Ok((State::Empty, 0)));
    assert!(groups[1].1.is_err(), "deleted");
    assert!(fx.is_empty());
}

#[test]
fn every_version_ever_written_is_read() {
    let key = |kind: u8| [0, kind, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 7];
    let at = |version: u8, rest: &[u8]| [&[0, version][..], &[0, 0, 0, 0, 0, 0, 0, 9], rest].concat();
    let time = [0, 0, 0, 0, 0, 0, 0, 5];
    let table = [
        (0, at(0, &[&[0, 1, b'm'][..], &time].concat()), -1, None, Id::ZERO),
        (1, at(0, &[&[0, 1, b'm'][..], &time].concat()), -1, None, Id::ZERO),
        (1, at(1, &[&[0, 1, b'm'][..], &time, &[0xff; 8]].concat()), -1, None, Id::ZERO),
        (1, at(1, &[&[0, 1, b'm'][..], &time, &time].concat()), -1, Some(Millis(5)), Id::ZERO),
        (1, at(2, &[&[0, 1, b'm'][..], &time].concat()), -1, None, Id::ZERO),
        (1, at(3, &[&[0, 0, 0, 4, 0, 1, b'm'][..], &time].concat()), 4, None, Id::ZERO),
        (1, at(4, &[&[0, 0, 0, 4, 2, b'm'][..], &time, &[0]].concat()), 4, None, Id::ZERO),
        (1, at(4, &[&[0, 0, 0, 4, 2, b'm'][..], &time, &[2, 0, 16], &[0; 15], &[8], &[9, 1, 77]].concat()), 4, None, Id(8)),
    ];
    for (kind, value, epoch, expires, topic_id) in table {
        let expected = CommittedOffset {
            offset: Offset(9),
            leader_epoch: Epoch(epoch),
            metadata: "m".into(),
            committed: Millis(5),
            expires,
            topic_id,
        };
        let read = decode(&key(kind), Some(&value));
        assert_eq!(
            read,
            Ok(GroupRecord::Offset { group: "g".into(), topic: "t".into(), partition: 7, value: Some(expected) }),
            "{value:?}"
        );
    }

    let member = |version: u8| {
        let text = |text: &str| {
            if version < 4 {
                [&[0, text.len() as u8][..], text.as_bytes()].concat()
            } else {
                [&[text.len() as u8 + 1], text.as_bytes()].concat()
            }
        };
        let data = |data: &[u8]| {
            if version < 4 { [&[0, 0, 0, data.len() as u8][..], data].concat() } else { [&[data.len() as u8 + 1], data].concat() }
        };
        let mut out = vec![0, version];
        out.extend(text("consumer"));
        out.extend([0, 0, 0, 3]);
        out.extend(text("range"));
        out.extend(text("m"));
        if version >= 2 {
            out.extend(time);
        }
        out.extend(if version < 4 { &[0, 0, 0, 1][..] } else { &[2] });
        out.extend(text("m"));
        if version >= 3 {
            out.extend(text("i"));
        }
        out.extend(text("c"));
        out.extend(text("/h"));
        if version >= 1 {
            out.extend([0, 0, 0, 60]);
        }
        out.extend([0, 0, 0, 10]);
        out.extend(data(b"sub"));
        out.extend(data(b"asg"));
        if version >= 4 {
            out.extend([0, 0]);
        }
        out
    };
    for version in 0..=4 {
        let GroupRecord::Group { value: Some(group), .. } = decode(&[0, 2, 0, 1, b'g'], Some(&member(version))).unwrap() else { panic!() };
        assert_eq!(
            (group.protocol_type.as_deref(), group.generation, group.since),
            (Some("consumer"), 3, (version >= 2).then_some(Millis(5)))
        );
        let m = &group.members[0];
        assert_eq!((m.rebalance_timeout, m.session_timeout), (if version >= 1 { 60 } else { 10 }, 10), "v{version}");
        assert_eq!(
            (m.instance.as_deref(), &m.subscription[..], &m.assignment[..]),
            ((version >= 3).then_some("i"), &b"sub"[..], &b"asg"[..])
        );
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    assert_eq!(decode(&[0, 11, 0, 1, b'g'], None), Err(BadRecord::UnknownType(11)), "a share group");
    assert_eq!(decode(&[0, 2, 0, 1, b'g', 0], None), Err(BadRecord::Trailing(1)));
    assert_eq!(decode(&[0, 2, 0xff, 0xff], None), Err(BadRecord::Length), "no group id");
    let newer = decode(&[0, 2, 0, 1, b'g'], Some(&[0, 5])).unwrap_err();
    assert_eq!(newer, BadRecord::UnknownVersion { record: "GroupMetadataValue", version: 5 });
    let lie = [&[0, 3, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff][..], &[0; 8], &[0x7f, 0xff, 0xff, 0xff]].concat();
    assert_eq!(decode(&[0, 2, 0, 1, b'g'], Some(&lie)), Err(BadRecord::Length), "a count that lies");
    for (key, value) in entries() {
        for cut in 0..key.len() {
            assert!(decode(&key[..cut], value.as_deref()).is_err());
        }
        for cut in 0..value.as_ref().map_or(0, |value| value.len()) {
            assert!(decode(&key, value.as_ref().map(|value| &value[..cut])).is_err(), "cut to {cut}");
        }
    }
    let long = GroupRecord::Group { group: "x".repeat(40_000).into(), value: None };
    assert_eq!(encode(&long), Err(BadRecord::TextTooLong(40_000)));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(kind in 0u8..4, key in proptest::collection::vec(any::<u8>(), 0..40), value in proptest::collection::vec(any::<u8>(), 0..80), version in 0u8..6) {
        let _ = decode(&[&[0, kind][..], &key].concat(), Some(&[&[0, version][..], &value].concat()));
    }

    #[test]
    fn offsets_come_back(offset: i64, epoch: i32, metadata in ".{0,20}", committed: i64, expires in proptest::option::of(0..i64::MAX), id: u128) {
        let (leader_epoch, topic_id) = if expires.is_some() { (Epoch::NONE, Id::ZERO) } else { (Epoch(epoch), Id(id)) };
        let value = CommittedOffset {
            offset: Offset(offset), leader_epoch, metadata: metadata.into(), committed: Millis(committed), expires: expires.map(Millis), topic_id,
        };
        let record = GroupRecord::Offset { group: "g".into(), topic: "t".into(), partition: 3, value: Some(value) };
        let (key, value) = encode(&record).unwrap();
        prop_assert_eq!(decode(&key, value.as_deref()), Ok(record));
    }
}
