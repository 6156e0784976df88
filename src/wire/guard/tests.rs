//! Lies about sizes, one by one, in bodies that are otherwise sound. `protocol-tests/tests/wire_fuzz` does the same at random, and checks the decoders.

use super::*;

const I32_MAX: i32 = i32::MAX;

fn fault(key: i16, version: i16, body: &[u8]) -> Option<Fault> {
    check(key, version, body).err().map(|malformed| malformed.fault)
}

/// A Produce v9 request of one batch for one partition.
fn produce_v9(records: &[u8]) -> Vec<u8> {
    let mut body = b"\0\xff\xff\0\0\x75\x30\x02\x06topic\x02\0\0\0\0".to_vec();
    let mut size = records.len() + 1;
    while size >= 0x80 {
        body.push(size as u8 | 0x80);
        size >>= 7;
    }
    body.push(size as u8);
    body.extend(records);
    body.extend(b"\0\0\0");
    body
}

#[test]
fn sound_bodies_pass_and_their_prefixes_do_not() {
    let table: [(i16, i16, &[u8]); 7] = [
        (0, 9, &produce_v9(&[0x80; 300])),
        (3, 1, b"\0\0\0\x01\0\x01t"),
        (3, 12, b"\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02t\0\x01\0\0"),
        (17, 1, b"\0\x05PLAIN"),
        (18, 3, b"\x02a\x021\0"),
        (75, 0, b"\x02\x02t\0\0\0\0\x01\x01\x02t\0\0\0\0\0\0"),
        (75, 0, b"\x02\x02t\0\0\0\0\x01\xff\0"),
    ];
    for (key, version, body) in table {
        assert_eq!(check(key, version, body), Ok(()), "key {key} v{version}");
        for cut in 0..body.len() {
            assert!(check(key, version, &body[..cut]).is_err(), "key {key} v{version}: {cut} of {} bytes", body.len());
        }
    }
    assert_eq!(check(18, 0, b""), Ok(()));
}

/// As Kafka: its parser does not look whether anything is left.
#[test]
fn bytes_after_the_body_are_let_through() {
    assert_eq!(check(17, 1, b"\0\x05PLAINrest"), Ok(()));
}

#[test]
fn counts_that_cannot_be() {
    let table: [(i16, i16, Vec<u8>, Fault); 7] = [
        (3, 1, I32_MAX.to_be_bytes().to_vec(), Fault::Count { claimed: I32_MAX.into(), left: 0 }),
        (3, 1, b"\0\0\0\x04abc".to_vec(), Fault::Count { claimed: 4, left: 3 }),
        (3, 1, b"\0\0\0\x02\0\x01t".to_vec(), Fault::CutShort { need: 2, left: 0 }),
        (3, 1, b"\xff\xff\xff\xfe".to_vec(), Fault::Count { claimed: -2, left: 0 }),
        (3, 12, b"\xff\xff\xff\xff\x0f".to_vec(), Fault::Count { claimed: u32::MAX as i64 - 1, left: 0 }),
        (3, 12, b"\xff\xff\xff\xff\x1f".to_vec(), Fault::Varint),
        (3, 12, vec![0xff; 10], Fault::Varint),
    ];
    for (key, version, body, want) in table {
        assert_eq!(fault(key, version, &body), Some(want), "key {key} v{version}: {body:02x?}");
    }
    // LeaveGroup's list of texts is fine; an array of numbers must fit by their size.
    assert_eq!(
        fault(24, 0, b"\0\x01a\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\x01"),
        Some(Fault::CutShort { need: 8, left: 4 })
    );
}

#[test]
fn lengths_and_nulls_that_cannot_be() {
    let table: [(i16, i16, &[u8], Option<Fault>); 9] = [
        (17, 1, b"\xff\xff", Some(Fault::Null)),
        (17, 1, b"\xff\xfe", Some(Fault::Length { claimed: -2, left: 0 })),
        (17, 1, b"\x80\0", Some(Fault::Length { claimed: -32_768, left: 0 })),
        (17, 1, b"\x7f\xffabc", Some(Fault::Length { claimed: 32_767, left: 3 })),
        (17, 1, b"\0\x02\xc3\x28", Some(Fault::NotUtf8)),
        (18, 3, b"\0\x021\0", Some(Fault::Null)),
        (3, 0, b"\xff\xff\xff\xff", Some(Fault::Null)),
        (3, 1, b"\xff\xff\xff\xff", None),
        (75, 0, b"\x01\0\0\0\0\x02\0", Some(Fault::Presence(2))),
    ];
    for (key, version, body, want) in table {
        assert_eq!(fault(key, version, body), want, "key {key} v{version}: {body:02x?}");
    }
    // A compact text may claim more than Kafka's longest, and have it.
    let mut long = vec![0x81, 0x80, 0x02];
    long.extend(vec![b'x'; 32_768]);
    assert_eq!(fault(18, 3, &long), Some(Fault::Length { claimed: 32_768, left: 32_768 }));
}

#[test]
fn tags_that_cannot_be() {
    let fetch = |tags: &[u8]| [&b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\x01"[..], tags].concat();
    let state = b"\0\0\0\x01\0\0\0\0\0\0\0\x02";
    let tagged = |size: u8, rest: &[u8]| fetch(&[&[1, 1, size][..], state, rest].concat());
    let table: [(Vec<u8>, Option<Fault>); 9] = [
        (fetch(b"\0"), None),
        (tagged(13, b"\0"), None),
        (fetch(b"\x01\x63\x02ab"), None),
        (fetch(b"\x02\x63\0\x63\0"), None),
        (tagged(14, b"\0\0"), Some(Fault::TagSize { tag: 1, size: 14, used: 13 })),
        (fetch(b"\x01"), Some(Fault::Count { claimed: 1, left: 0 })),
        (fetch(b"\xff\xff\xff\xff\x0f"), Some(Fault::Count { claimed: u32::MAX.into(), left: 0 })),
        (fetch(b"\x01\x63\x03ab"), Some(Fault::Length { claimed: 3, left: 2 })),
        (fetch(b"\x01\xff\xff\xff\xff\x1f\0"), Some(Fault::Varint)),
    ];
    for (body, want) in table {
        assert_eq!(fault(1, 17, &body), want, "{body:02x?}");
    }
    // The replica's state came with v15; the field of that number is an error before.
    let v12 = [&b"\0\0\0\0"[..], &fetch(b"\x01\x01\x00")].concat();
    assert_eq!(fault(1, 12, &v12), Some(Fault::TagVersion(1)));
}

#[test]
fn elements_are_counted_over_the_whole_body() {
    let topics = |count: usize| [&(count as i32).to_be_bytes()[..], &vec![0; 2 * count]].concat();
    assert_eq!(check(3, 1, &topics(FREE_ELEMENTS)), Ok(()));
    let body = topics(20_000);
    assert_eq!(fault(3, 1, &body), Some(Fault::TooMany(max_elements(body.len()))));
    // Unknown tagged fields count too: decoded, each is an entry of a map.
    let tags = [&b"\x01\0\0\x80\xa0\x06"[..], &b"\x63\0".repeat(102_400)].concat();
    assert_eq!(fault(3, 12, &tags), Some(Fault::TooMany(max_elements(tags.len()))));
    assert_eq!(max_elements(1 << 30), MAX_ELEMENTS);
}

#[test]
fn only_versions_with_a_layout_pass() {
    for (key, version) in
        [(3, -1), (3, 14), (1, 3), (0, 2), (4, 7), (-1, 0), (999, 0), (i16::MAX, i16::MAX), (i16::MIN, i16::MIN), (3, 256)]
    {
        assert_eq!(fault(key, version, &[0; 40]), Some(Fault::UnknownRequest { key, version }));
    }
}

#[test]
fn a_fault_says_where() {
    let said = check(3, 1, b"\0\0\0\x02\0\x01t").unwrap_err();
    assert_eq!(said.to_string(), "byte 7 of the body: 2 bytes are needed, 0 remain");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_walked_without_panic(key in 0i16..93, version in 0i16..14, body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _ = check(key, version, &body);
    }

    #[test]
    fn samples_are_sound(key in 0i16..93, version in 0i16..14, seed in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        if let Some(body) = sample::body(key, version, &seed) {
            proptest::prop_assert_eq!(check(key, version, &body), Ok(()));
        }
    }
}
