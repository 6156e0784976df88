//! Tables for `batch`.

use super::*;
use crate::log::records::Records;

fn sample() -> Vec<u8> {
    let mut b = BatchBuilder::new(Offset(7), Epoch(3), Millis(1000)).producer(42, 5, i32::MAX).transactional();
    b.push(0, Some(b"k"), Some(b"value"));
    b.push(-10, None, None);
    b.push(250, Some(b""), Some(b""));
    b.finish().unwrap()
}

#[test]
fn a_built_batch_reads_back() {
    let bytes = sample();
    let h = BatchHeader::parse(&bytes).unwrap();
    assert_eq!(h.size(), bytes.len());
    assert_eq!(h.check_crc(&bytes), Ok(()));
    assert_eq!((h.base_offset, h.last_offset(), h.next_offset(), h.count), (Offset(7), Offset(9), Offset(10), 3));
    assert_eq!((h.base_timestamp, h.max_timestamp, h.leader_epoch), (Millis(1000), Millis(1250), Epoch(3)));
    assert_eq!((h.base_sequence, h.last_sequence()), (i32::MAX, 1), "2^31-1, 0, 1");
    assert!(h.is_transactional() && !h.is_control() && h.has_producer());
    assert_eq!((h.compression(), h.timestamp_type(), h.delete_horizon()), (Some(Compression::None), TimestampType::CreateTime, None));
    let records: Vec<_> = Records::new(&h, &bytes[HEADER_SIZE..]).map(|r| r.map(|r| (r.offset.0, r.timestamp.0, r.key, r.value))).collect();
    let expected =
        [(7, 1000, Some(&b"k"[..]), Some(&b"value"[..])), (8, 990, None, None), (9, 1250, Some(&b""[..]), Some(&b""[..]))].map(Ok);
    assert_eq!(records, expected);
    assert_eq!(BatchBuilder::new(Offset(0), Epoch(0), Millis(0)).finish(), None);
}

#[test]
fn a_batch_has_the_bytes_that_kafka_writes() {
    let mut b = BatchBuilder::new(Offset(0), Epoch(1), Millis(2)).control();
    b.push(0, Some(&[0, 0, 0, 2]), Some(&[0, 0]));
    let bytes = b.finish().unwrap();
    let expected: &[u8] = &[
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 62, 0, 0, 0, 1, 2, // base offset, length, epoch, magic
        bytes[17], bytes[18], bytes[19], bytes[20], 0, 0x20, 0, 0, 0, 0, // crc, attributes, last offset delta
        0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, // timestamps
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1, // producer, count
        24, 0, 0, 0, 8, 0, 0, 0, 2, 4, 0, 0, 0, // one record
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn header_fields_and_flags_survive_encoding() {
    let mut bytes = sample();
    for attributes in [0x0000u16, 0x0008, 0x0014, 0x0023, 0x0040, 0x7fff, 0xffff] {
        bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
        let h = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(h.encode(), bytes[..HEADER_SIZE], "unknown bits are kept");
        assert_eq!(h.delete_horizon().is_some(), attributes & 0x40 != 0);
        assert_eq!(h.compression().is_none(), attributes & 7 > 4);
        let mut patched = h;
        patched.set_compression(Compression::Zstd);
        patched.set_timestamp_type(TimestampType::LogAppendTime);
        assert_eq!(patched.attributes as u16, attributes & !7 | 4 | 8);
        patched.set_timestamp_type(TimestampType::CreateTime);
        assert_eq!(patched.attributes as u16, attributes & !0xf | 4);
    }
}

#[test]
fn impossible_headers_are_refused() {
    let good = sample();
    assert_eq!(BatchHeader::parse(&[]), Err(BatchError::Short { need: 61, have: 0 }));
    assert_eq!(BatchHeader::parse(&good[..60]), Err(BatchError::Short { need: 61, have: 60 }));
    let mut old = good[..17].to_vec();
    old[16] = 1;
    assert_eq!(BatchHeader::parse(&old), Err(BatchError::Magic(1)), "an old message may be shorter than a header");
    for length in [i32::MIN, -1, 0, 48] {
        let mut bad = good.clone();
        bad[8..12].copy_from_slice(&length.to_be_bytes());
        assert_eq!(BatchHeader::parse(&bad), Err(BatchError::Length(length)));
    }
    let mut long = good.clone();
    long[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    let h = BatchHeader::parse(&long).unwrap();
    assert_eq!(h.whole(&long), Err(BatchError::Short { need: i32::MAX as usize + 12, have: long.len() }));
    for at in (17..good.len()).step_by(5) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(matches!(BatchHeader::parse(&bad).unwrap().check_crc(&bad), Err(BatchError::Crc { .. })), "bit flipped at {at}");
    }
    let mut moved = good.clone();
    moved[0..8].copy_from_slice(&99i64.to_be_bytes());
    moved[12..16].copy_from_slice(&9i32.to_be_bytes());
    assert_eq!(BatchHeader::parse(&moved).unwrap().check_crc(&moved), Ok(()), "the log sets offset and epoch without a new checksum");
}

#[test]
fn batches_of_a_range_end_at_a_cut_one_and_fail_at_rubbish() {
    let one = sample();
    let mut range = [one.clone(), one.clone(), one[..30].to_vec()].concat();
    let mut batches = Batches::new(&range);
    let found: Vec<_> = batches.by_ref().map(|b| b.unwrap()).map(|b| (b.position, b.bytes.len(), b.payload().len())).collect();
    assert_eq!(found, [(0, one.len(), one.len() - 61), (one.len(), one.len(), one.len() - 61)]);
    assert_eq!(batches.position(), 2 * one.len());
    range[one.len() + 16] = 0;
    let found: Vec<_> = Batches::new(&range).map(|b| b.map(|b| b.position)).collect();
    assert_eq!(found, [Ok(0), Err(BatchError::Magic(0))]);
}
