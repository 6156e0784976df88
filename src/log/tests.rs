//! Batches through reading, validation and recompression, against naive code and against everything that must be refused.

use super::batch::{BatchHeader, Compression, HEADER_SIZE, TimestampType};
use super::codec::{Codec, CodecError, inflate};
use super::records::{Fault, Records};
use super::testkit::{self, HOWS, How, Rec, batch, put, put_bytes, seal};
use super::validate::*;
use crate::core::types::{Millis, Offset};
use proptest::prelude::*;

const NOW: Millis = Millis(2_000_000);
const CLIENT: Origin = Origin { client: true, zstd_allowed: true };
const RULES: Rules = Rules {
    max_message_bytes: 1 << 20,
    compacted: false,
    compression: TopicCompression::Producer,
    log_append_time: false,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    walk: true,
};
const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip { level: -1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }];

fn some(n: usize) -> Vec<Rec> {
    (0..n).map(|i| Rec::new(i as i32, 10 * i as i64, Some(b"key"), Some(format!("value {i}").as_bytes()))).collect()
}

fn refused(bytes: &[u8], rules: &Rules) -> BatchRefused {
    prepare(bytes, rules, CLIENT, NOW).expect_err("must be refused")
}

fn is_invalid(e: &BatchRefused) -> bool {
    matches!(e, BatchRefused::Invalid { .. })
}

/// What would be written, as one batch.
fn written(prepared: &Prepared) -> Vec<u8> {
    [&prepared.header().encode()[..], prepared.payload()].concat()
}

/// The records of a batch whose checksum must be right.
fn contents(bytes: &[u8]) -> Vec<Rec> {
    let h = BatchHeader::parse(bytes).unwrap();
    h.check_crc(bytes).unwrap();
    assert_eq!(h.size(), bytes.len());
    let inflated = inflate(h.compression().unwrap(), &bytes[HEADER_SIZE..], 1 << 24).unwrap();
    testkit::read(&inflated, h.count).expect("readable records")
}

proptest! {
    #[test]
    fn good_batches_are_taken_as_sent_or_rewritten_with_the_same_records(
        records in testkit::records(), how in testkit::how(), to in 0usize..6, append_time: bool,
    ) {
        let sent = batch(&records, how);
        let compression = CODECS.get(to).map_or(TopicCompression::Producer, |c| TopicCompression::Codec(*c));
        let rules = Rules { compression, log_append_time: append_time, ..RULES };
        let prepared = prepare(&sent, &rules, CLIENT, NOW).unwrap();
        let out = written(&prepared);
        prop_assert_eq!(&contents(&out), &records);
        let h = *prepared.header();
        let codec = CODECS.get(to).map_or(how.codec(), |c| c.compression());
        prop_assert_eq!(h.compression(), Some(codec));
        let as_sent = matches!(prepared, Prepared::AsSent { .. });
        prop_assert_eq!(as_sent, codec == how.codec());
        let max = records.iter().map(|r| 1_000_000 + r.timestamp_delta).max().unwrap();
        prop_assert_eq!((h.timestamp_type(), h.max_timestamp), if append_time { (TimestampType::LogAppendTime, NOW) } else { (TimestampType::CreateTime, Millis(max)) });
        if as_sent && !append_time {
            prop_assert_eq!(out, sent);
        } else if let Prepared::Rewritten { bytes, .. } = &prepared {
            prop_assert_eq!(bytes, &out);
        }
    }

    #[test]
    fn lent_records_are_what_was_written(records in testkit::records(), how in testkit::how(), gap in 1i32..1000) {
        let thinned: Vec<Rec> = records.iter().cloned().map(|mut r| { r.offset_delta *= gap; r }).collect();
        let mut h = BatchHeader::parse(&batch(&thinned, how)).unwrap();
        (h.base_offset, h.last_offset_delta) = (Offset(70), gap * 60);
        let bytes = how.compress(&testkit::write(&thinned));
        let plain = inflate(how.codec(), &bytes, 1 << 24).unwrap();
        let mut raw = Vec::new();
        for (r, read) in thinned.iter().zip(Records::new(&h, &plain)) {
            let read = read.unwrap();
            prop_assert_eq!(read.offset, Offset(70 + i64::from(r.offset_delta)));
            prop_assert_eq!(read.timestamp, Millis(1_000_000 + r.timestamp_delta));
            prop_assert_eq!((read.key, read.value), (r.key.as_deref(), r.value.as_deref()));
            raw.extend_from_slice(read.raw);
        }
        prop_assert_eq!(Records::new(&h, &plain).count(), thinned.len());
        prop_assert_eq!(raw.as_slice(), &plain[..]);
    }

    /// With a checksum that fits the damage: what passes must be readable by anybody, as many records as the header says.
    #[test]
    fn damaged_batches_never_panic_and_never_pass_with_wrong_contents(
        records in testkit::records(), how in testkit::how(), to in 0usize..6,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in 0usize..3, at_payload: bool,
    ) {
        let plain = testkit::write(&records);
        let mut payload = if at_payload { how.compress(&plain) } else { plain };
        for (at, byte) in &damage {
            let at = at.index(payload.len());
            payload[at] = *byte;
        }
        payload.truncate(payload.len() - cut.min(payload.len()));
        let payload = if at_payload { payload } else { how.compress(&payload) };
        let sent = seal(&payload, |h| {
            h.set_compression(how.codec());
            h.count = records.len() as i32;
            h.last_offset_delta = h.count - 1;
        });
        let compression = CODECS.get(to).map_or(TopicCompression::Producer, |c| TopicCompression::Codec(*c));
        let rules = Rules { compression, timestamp_after_max_ms: i64::MAX, ..RULES };
        if let Ok(prepared) = prepare(&sent, &rules, CLIENT, NOW) {
            let out = contents(&written(&prepared));
            prop_assert_eq!(out.len(), records.len());
            prop_assert!(out.iter().enumerate().all(|(i, r)| r.offset_delta == i as i32));
        }
    }

    #[test]
    fn damaged_headers_are_refused(n in 1usize..5, at in 0usize..61, flip in 1u8..=255) {
        let good = batch(&some(n), How::Plain);
        let mut bad = good.clone();
        bad[at] ^= flip;
        match prepare(&bad, &RULES, CLIENT, NOW) {
            // The leader epoch is the log's, whatever the client wrote.
            Ok(_) => prop_assert!((12..16).contains(&at)),
            Err(e) => match at {
                0..8 => prop_assert!(is_invalid(&e)),
                8..12 | 16 => prop_assert!(matches!(e, BatchRefused::NotOneBatch(_) | BatchRefused::Corrupt(_) | BatchRefused::WrongMagic(_)), "{e:?}"),
                _ => prop_assert!(matches!(e, BatchRefused::Corrupt(_)), "{e:?}"),
            },
        }
    }

    #[test]
    fn noise_is_refused(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(prepare(&noise, &RULES, CLIENT, NOW).is_err());
        for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let sent = seal(&noise, |h| h.set_compression(codec));
            prop_assert!(is_invalid(&refused(&sent, &RULES)));
        }
    }
}

#[test]
fn exactly_one_batch_of_format_2() {
    let good = batch(&some(2), How::Plain);
    assert!(matches!(refused(&[], &RULES), BatchRefused::NotOneBatch(_)));
    for cut in [1, 11, 16, 17, 60, good.len() - 1] {
        assert!(matches!(refused(&good[..cut], &RULES), BatchRefused::NotOneBatch(_)), "cut at {cut}");
    }
    assert!(matches!(refused(&[good.clone(), good.clone()].concat(), &RULES), BatchRefused::NotOneBatch(_)));
    assert!(matches!(refused(&[good.clone(), vec![0]].concat(), &RULES), BatchRefused::NotOneBatch(_)));
    for (magic, short) in [(0, true), (1, false)] {
        let mut old = good.clone();
        old[16] = magic;
        old.truncate(if short { 34 } else { old.len() });
        assert_eq!(refused(&old, &RULES), BatchRefused::WrongMagic(magic as i8));
    }
    let zstd = batch(&some(2), How::Zstd);
    let old_request = Origin { zstd_allowed: false, ..CLIENT };
    for bytes in [zstd.clone(), [zstd.clone(), zstd].concat()] {
        assert_eq!(prepare(&bytes, &RULES, old_request, NOW), Err(BatchRefused::UnsupportedCompression), "before the second batch is seen");
    }
    assert!(prepare(&good, &RULES, old_request, NOW).is_ok());
}

#[test]
fn impossible_insides_are_refused() {
    let good = testkit::write(&some(1));
    let raw = |parts: &[Result<i64, &[u8]>]| {
        let mut out = Vec::new();
        for p in parts {
            match p {
                Ok(n) => put(&mut out, *n),
                Err(bytes) => out.extend_from_slice(bytes),
            }
        }
        out
    };
    let n = |n: i64| Ok(n);
    let b = |b: &'static [u8]| Err(b);
    let big = i64::from(i32::MAX);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("a record length of 2^31-1", [raw(&[n(big)]), good.clone()].concat()),
        ("a record length of -1", [raw(&[n(-1)]), good.clone()].concat()),
        ("a record length beyond the batch", [raw(&[n(100)]), good[1..].to_vec()].concat()),
        ("ten bytes of ff", [vec![0xff; 10], good.clone()].concat()),
        ("two records", [good.clone(), testkit::write(&[Rec::new(1, 0, None, None)])].concat()),
        ("a key length of 2^30", raw(&[n(20), b(b"\0"), n(0), n(0), n(1 << 30), b(&[b'k'; 20])])),
        ("a key length of -2", raw(&[n(6), b(b"\0"), n(0), n(0), n(-2), n(-1), n(0)])),
        ("a value length of 2^30", raw(&[n(20), b(b"\0"), n(0), n(0), n(-1), n(1 << 30), b(&[b'v'; 20])])),
        ("2^31-1 headers", raw(&[n(14), b(b"\0"), n(0), n(0), n(-1), n(-1), n(big), b(b"hhhhhhhhhh")])),
        ("-1 headers", raw(&[n(6), b(b"\0"), n(0), n(0), n(-1), n(-1), n(-1)])),
        ("a null header key", raw(&[n(8), b(b"\0"), n(0), n(0), n(-1), n(-1), n(1), n(-1), n(-1)])),
        ("a header value beyond the record", raw(&[n(8), b(b"\0"), n(0), n(0), n(-1), n(-1), n(1), n(0), n(5)])),
        ("a record longer than its fields", raw(&[n(8), b(b"\0"), n(0), n(0), n(-1), n(-1), n(0), b(b"xx")])),
        ("an offset delta of 1", testkit::write(&[Rec::new(1, 0, None, None)])),
        ("a timestamp beyond the end of time", testkit::write(&[Rec::new(0, i64::MAX, None, None)])),
    ];
    let mut checked = 0;
    for (what, payload) in &cases {
        for how in HOWS {
            let sent = seal(&how.compress(payload), |h| h.set_compression(how.codec()));
            for compression in [TopicCompression::Producer, TopicCompression::Codec(Codec::Lz4)] {
                let e = refused(&sent, &Rules { compression, ..RULES });
                assert!(is_invalid(&e), "{what}, {how:?}: {e:?}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, cases.len() * HOWS.len() * 2);
    type Edit = fn(&mut BatchHeader);
    let headers: [(&str, Edit); 10] = [
        ("count 2^31-1", |h| h.count = i32::MAX),
        ("count 0", |h| h.count = 0),
        ("count -1", |h| h.count = -1),
        ("count 2, one record", |h| (h.count, h.last_offset_delta) = (2, 1)),
        ("count 1,000,000, one record", |h| (h.count, h.last_offset_delta) = (1_000_000, 999_999)),
        ("last offset delta 2^31-1", |h| h.last_offset_delta = i32::MAX),
        ("last offset delta -5", |h| h.last_offset_delta = -5),
        ("codec 5", |h| h.attributes = 5),
        ("control", |h| h.attributes = 0x20),
        ("a producer without sequence", |h| (h.producer_id, h.producer_epoch) = (1, 0)),
    ];
    for (what, edit) in headers {
        assert!(is_invalid(&refused(&seal(&good, edit), &RULES)), "{what}");
    }
    assert!(prepare(&seal(&good, |_| ()), &RULES, CLIENT, NOW).is_ok(), "the same without the edits");
}

#[test]
fn coordinators_may_write_control_records_and_any_base_offset() {
    let mut b = super::batch::BatchBuilder::new(Offset(5), crate::core::types::Epoch(1), NOW).control().producer(9, 1, -1);
    b.push(0, Some(&[0, 0, 0, 1]), Some(&[0; 6]));
    let bytes = b.finish().unwrap();
    let ours = Origin { client: false, zstd_allowed: true };
    let rules = Rules { compression: TopicCompression::Codec(Codec::Gzip { level: 6 }), ..RULES };
    assert!(matches!(prepare(&bytes, &rules, ours, NOW), Ok(Prepared::AsSent { .. })), "and are not compressed");
    assert!(is_invalid(&refused(&bytes, &rules)));
}

#[test]
fn records_without_key_are_named_in_compacted_topics() {
    let rules = Rules { compacted: true, walk: false, ..RULES };
    for how in HOWS {
        for bad in [vec![1], vec![0], vec![0, 2], vec![]] {
            let key = |i| if bad.contains(&i) { None } else { Some(&b""[..]) };
            let records: Vec<Rec> = (0..3).map(|i| Rec::new(i, 0, key(i), None)).collect();
            match prepare(&batch(&records, how), &rules, CLIENT, NOW) {
                Ok(_) => assert!(bad.is_empty()),
                Err(BatchRefused::Invalid { record_errors, .. }) => {
                    assert_eq!(record_errors.iter().map(|(i, _)| *i).collect::<Vec<_>>(), bad, "{how:?}");
                }
                Err(e) => panic!("{e:?}"),
            }
        }
    }
    let many: Vec<Rec> = (0..5000).map(|i| Rec::new(i, 0, None, None)).collect();
    match refused(&batch(&many, How::Zstd), &rules) {
        BatchRefused::Invalid { record_errors, .. } => assert_eq!(record_errors.len(), RECORD_ERRORS_MAX),
        e => panic!("{e:?}"),
    }
}

#[test]
fn timestamps_must_be_in_range_where_they_are_the_producers() {
    // now = 2,000,000; base = 1,000,000
    let at = |deltas: &[i64]| -> Vec<Rec> { deltas.iter().enumerate().map(|(i, d)| Rec::new(i as i32, *d, None, None)).collect() };
    let rules = Rules { timestamp_before_max_ms: 1_000_000, timestamp_after_max_ms: 500, ..RULES };
    let cases: [(&[i64], &[i32]); 6] = [
        (&[0, 1_000_500], &[]),
        (&[0, -1, 1_000_501, 5], &[1, 2]),
        (&[-1_000_001], &[]), // -1: no timestamp
        (&[-1_000_002], &[0]),
        (&[-1_000_001, 2_000_000], &[1]),
        (&[-1_000_001, 0], &[]),
    ];
    for (deltas, bad) in cases {
        for how in [How::Plain, How::Gzip] {
            let got = match prepare(&batch(&at(deltas), how), &rules, CLIENT, NOW) {
                Ok(p) => {
                    let max = deltas.iter().max().unwrap() + 1_000_000;
                    assert_eq!(p.header().max_timestamp, Millis(max));
                    vec![]
                }
                Err(BatchRefused::InvalidTimestamp { record_errors, .. }) => record_errors.iter().map(|(i, _)| *i).collect(),
                Err(e) => panic!("{e:?}"),
            };
            assert_eq!(got, bad, "{deltas:?}");
            let append = Rules { log_append_time: true, ..rules };
            assert!(prepare(&batch(&at(deltas), how), &append, CLIENT, NOW).is_ok(), "the broker's clock counts");
        }
    }
    let header_only = Rules { walk: false, ..rules };
    assert!(matches!(
        refused(&batch(&at(&[0, 1_000_501]), How::Plain), &header_only),
        BatchRefused::InvalidTimestamp { record_errors, .. } if record_errors.is_empty()
    ));
}

#[test]
fn only_the_broker_may_claim_its_clock() {
    let flagged = |base: i64, max: i64| {
        let edit = |h: &mut BatchHeader| {
            h.set_timestamp_type(TimestampType::LogAppendTime);
            (h.base_timestamp, h.max_timestamp) = (Millis(base), Millis(max));
        };
        seal(&testkit::write(&[Rec::new(0, 0, None, None)]), edit)
    };
    for walk in [true, false] {
        let (create, append) = (Rules { walk, ..RULES }, Rules { walk, log_append_time: true, ..RULES });
        assert!(matches!(refused(&flagged(1_000_000, 1_000_000), &append), BatchRefused::InvalidTimestamp { .. }));
        assert!(matches!(refused(&flagged(-1, -1), &create), BatchRefused::InvalidTimestamp { .. }));
        let bytes = flagged(1_000_000, 1_000_500);
        let taken = prepare(&bytes, &create, CLIENT, NOW).unwrap();
        assert_eq!((taken.header().timestamp_type(), taken.header().max_timestamp), (TimestampType::CreateTime, Millis(1_000_500)));
        assert_eq!(contents(&written(&taken)).len(), 1, "with a checksum that fits");
    }
}

#[test]
fn a_wrong_max_timestamp_is_set_right() {
    let wrong = seal(&testkit::write(&[Rec::new(0, 77, None, None)]), |h| h.max_timestamp = Millis(5));
    let taken = prepare(&wrong, &RULES, CLIENT, NOW).unwrap();
    assert_eq!(taken.header().max_timestamp, Millis(1_000_077));
    assert_eq!(contents(&written(&taken)).len(), 1);
}

#[test]
fn the_limit_counts_as_sent_and_as_written() {
    let sent = batch(&[Rec::new(0, 0, None, Some(&[b'a'; 20_000]))], How::Gzip);
    let plain = batch(&[Rec::new(0, 0, None, Some(&[b'a'; 20_000]))], How::Plain);
    let limit = |max_message_bytes, compression| Rules { max_message_bytes, compression, ..RULES };
    let (len, none) = (sent.len(), TopicCompression::Codec(Codec::None));
    assert!(prepare(&sent, &limit(len, TopicCompression::Producer), CLIENT, NOW).is_ok());
    let over = BatchRefused::TooLarge { size: Some(len), max: len - 1 };
    assert_eq!(refused(&sent, &limit(len - 1, TopicCompression::Producer)), over);
    assert_eq!(written(&prepare(&sent, &limit(plain.len(), none), CLIENT, NOW).unwrap()), plain);
    assert_eq!(refused(&sent, &limit(plain.len() - 1, none)), BatchRefused::TooLarge { size: None, max: plain.len() - 1 });
    for codec in CODECS {
        let rules = limit(plain.len() - 1, TopicCompression::Codec(codec));
        assert!(
            matches!(refused(&plain, &rules), BatchRefused::TooLarge { size: Some(_), .. }),
            "it would shrink, but is too large as sent"
        );
        let noise: Vec<u8> = (0..20_000u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 37) as u8).collect();
        let noise = batch(&[Rec::new(0, 0, None, Some(&noise))], How::Plain);
        if codec != Codec::None {
            let rules = Rules { compression: TopicCompression::Codec(codec), max_message_bytes: noise.len(), ..RULES };
            let got = prepare(&noise, &rules, CLIENT, NOW);
            assert!(got.as_ref().map_or_else(|e| matches!(e, BatchRefused::TooLarge { .. }), |p| written(p).len() <= noise.len()));
        }
    }
}

/// One record of `n` zero bytes in a few bytes of zstd: what is before and after the zeros, and run-length blocks of 128 KiB.
fn zstd_bomb(n: usize) -> Vec<u8> {
    let mut inner = vec![0];
    for field in [0, 0, -1, n as i64] {
        put(&mut inner, field);
    }
    let mut head = Vec::new();
    put(&mut head, (inner.len() + n + 1) as i64);
    head.extend(inner);
    let block = |kind: u32, size: usize, last: bool, data: &[u8]| {
        [&((size as u32) << 3 | kind << 1 | u32::from(last)).to_le_bytes()[..3], data].concat()
    };
    let mut out = [&0xFD2F_B528u32.to_le_bytes()[..], &[0, 0x58], &block(0, head.len(), false, &head)].concat();
    for at in (0..n).step_by(128 * 1024) {
        out.extend(block(1, (n - at).min(128 * 1024), false, &[0]));
    }
    out.extend(block(0, 1, true, &[0]));
    out
}

#[test]
fn a_bomb_is_walked_through_a_small_window_and_never_written() {
    let n = 64 << 20;
    let sent = seal(&zstd_bomb(n), |h| h.set_compression(Compression::Zstd));
    assert!(sent.len() < 4096);
    assert!(matches!(prepare(&sent, &RULES, CLIENT, NOW), Ok(Prepared::AsSent { .. })));
    for codec in [Codec::None, Codec::Gzip { level: 1 }, Codec::Snappy, Codec::Lz4] {
        let rules = Rules { compression: TopicCompression::Codec(codec), max_message_bytes: 4096, ..RULES };
        assert_eq!(refused(&sent, &rules), BatchRefused::TooLarge { size: None, max: 4096 }, "{codec:?}");
    }
    assert_eq!(inflate(Compression::Zstd, &sent[HEADER_SIZE..], 1 << 20), Err(CodecError::TooLong));
}

#[test]
fn broken_records_end_the_iteration() {
    let mut payload = testkit::write(&some(2));
    put_bytes(&mut payload, Some(b"rubbish"));
    let h = BatchHeader::parse(&batch(&some(3), How::Plain)).unwrap();
    let got: Vec<_> = Records::new(&h, &payload).map(|r| r.map(|r| r.offset.0).map_err(|e| e.index)).collect();
    assert_eq!(got, [Ok(0), Ok(1), Err(2)]);
    let h = BatchHeader { count: 1, ..h };
    let got: Vec<_> = Records::new(&h, &payload).map(|r| r.map(|r| r.offset.0).map_err(|e| e.fault)).collect();
    assert_eq!(got, [Ok(0), Err(Fault::Trailing)]);
}
