//! For tests of batches: records as values, written and read by the most naive code there is, and compressed by other means than ours.

use super::batch::{BatchHeader, Compression, HEADER_SIZE};
use crate::core::types::{Epoch, Millis, Offset};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::io::Write;

/// A record with all its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rec {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Rec {
    pub fn new(offset_delta: i32, timestamp_delta: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Rec {
        Rec { timestamp_delta, offset_delta, key: key.map(Into::into), value: value.map(Into::into), headers: Vec::new() }
    }
}

/// Zigzag varint, one bit group at a time.
pub fn put(out: &mut Vec<u8>, n: i64) {
    let mut n = if n >= 0 { n as u128 * 2 } else { (-(n as i128)) as u128 * 2 - 1 };
    loop {
        let group = (n % 128) as u8;
        n /= 128;
        out.push(if n > 0 { group + 128 } else { group });
        if n == 0 {
            return;
        }
    }
}

fn get(b: &mut &[u8]) -> Option<i64> {
    let mut n: u128 = 0;
    for i in 0..10 {
        let (first, rest) = b.split_first()?;
        *b = rest;
        n += u128::from(first % 128) << (7 * i);
        if *first < 128 {
            return i64::try_from(if n.is_multiple_of(2) { (n / 2) as i128 } else { -((n / 2) as i128) - 1 }).ok();
        }
    }
    None
}

pub fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put(out, -1),
        Some(bytes) => {
            put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

fn get_bytes(b: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    match get(b)? {
        -1 => Some(None),
        n => {
            let (bytes, rest) = b.split_at_checked(usize::try_from(n).ok()?)?;
            *b = rest;
            Some(Some(bytes.to_vec()))
        }
    }
}

/// The records one after the other.
pub fn write(records: &[Rec]) -> Vec<u8> {
    let mut out = Vec::new();
    for r in records {
        let mut body = vec![0];
        put(&mut body, r.timestamp_delta);
        put(&mut body, r.offset_delta.into());
        put_bytes(&mut body, r.key.as_deref());
        put_bytes(&mut body, r.value.as_deref());
        put(&mut body, r.headers.len() as i64);
        for (k, v) in &r.headers {
            put_bytes(&mut body, Some(k));
            put_bytes(&mut body, v.as_deref());
        }
        put_bytes(&mut out, Some(&body));
    }
    out
}

/// All records, or None if the bytes are not exactly `count` of them.
pub fn read(mut b: &[u8], count: i32) -> Option<Vec<Rec>> {
    let mut out = Vec::new();
    for _ in 0..count {
        let body = get_bytes(&mut b)??;
        let (_, mut body) = body.split_first()?;
        let timestamp_delta = get(&mut body)?;
        let offset_delta = i32::try_from(get(&mut body)?).ok()?;
        let (key, value) = (get_bytes(&mut body)?, get_bytes(&mut body)?);
        let mut headers = Vec::new();
        for _ in 0..u32::try_from(get(&mut body)?).ok()? {
            headers.push((get_bytes(&mut body)??, get_bytes(&mut body)?));
        }
        if !body.is_empty() {
            return None;
        }
        out.push(Rec { timestamp_delta, offset_delta, key, value, headers });
    }
    b.is_empty().then_some(out)
}

/// Every way in which clients compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Plain,
    Gzip,
    GzipTwoMembers,
    SnappyRaw,
    SnappyFramed(usize),
    Lz4,
    Lz4Checked,
    Zstd,
    ZstdTwoFrames,
}

pub const HOWS: [How; 10] = [
    How::Plain,
    How::Gzip,
    How::GzipTwoMembers,
    How::SnappyRaw,
    How::SnappyFramed(32 * 1024),
    How::SnappyFramed(700),
    How::Lz4,
    How::Lz4Checked,
    How::Zstd,
    How::ZstdTwoFrames,
];

impl How {
    pub fn codec(self) -> Compression {
        match self {
            How::Plain => Compression::None,
            How::Gzip | How::GzipTwoMembers => Compression::Gzip,
            How::SnappyRaw | How::SnappyFramed(_) => Compression::Snappy,
            How::Lz4 | How::Lz4Checked => Compression::Lz4,
            How::Zstd | How::ZstdTwoFrames => Compression::Zstd,
        }
    }

    pub fn compress(self, data: &[u8]) -> Vec<u8> {
        let halves = data.split_at(data.len() / 2);
        let gzip = |data: &[u8]| {
            let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            e.write_all(data).unwrap();
            e.finish().unwrap()
        };
        let lz4 = |info: lz4_flex::frame::FrameInfo| {
            let mut e = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            e.write_all(data).unwrap();
            e.finish().unwrap()
        };
        let info = lz4_flex::frame::FrameInfo::new();
        match self {
            How::Plain => data.to_vec(),
            How::Gzip => gzip(data),
            How::GzipTwoMembers => [gzip(halves.0), gzip(halves.1)].concat(),
            How::SnappyRaw => snap::raw::Encoder::new().compress_vec(data).unwrap(),
            How::SnappyFramed(size) => {
                let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
                for chunk in data.chunks(size) {
                    let block = snap::raw::Encoder::new().compress_vec(chunk).unwrap();
                    out.extend((block.len() as u32).to_be_bytes());
                    out.extend(block);
                }
                out
            }
            How::Lz4 => lz4(info),
            How::Lz4Checked => lz4(info.block_checksums(true).content_checksum(true).content_size(Some(data.len() as u64))),
            How::Zstd => zstd::bulk::compress(data, 3).unwrap(),
            How::ZstdTwoFrames => [zstd::bulk::compress(halves.0, 3).unwrap(), zstd::bulk::compress(halves.1, 3).unwrap()].concat(),
        }
    }
}

/// A batch from a client with that payload: right length and checksum, whatever the rest says. `edit` changes the header before.
pub fn seal(payload: &[u8], edit: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let mut header = BatchHeader {
        base_offset: Offset(0),
        length: (HEADER_SIZE - 12 + payload.len()) as i32,
        leader_epoch: Epoch(-1),
        crc: 0,
        attributes: 0,
        last_offset_delta: 0,
        base_timestamp: Millis(1_000_000),
        max_timestamp: Millis(1_000_000),
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: 1,
    };
    edit(&mut header);
    let mut out = header.encode().to_vec();
    out.extend_from_slice(payload);
    let crc = crc32c::crc32c(&out[21..]);
    out[17..21].copy_from_slice(&crc.to_be_bytes());
    out
}

/// A batch of these records as a client sends it.
pub fn batch(records: &[Rec], how: How) -> Vec<u8> {
    seal(&how.compress(&write(records)), |h| {
        h.set_compression(how.codec());
        h.count = records.len() as i32;
        h.last_offset_delta = h.count - 1;
        h.max_timestamp = Millis(h.base_timestamp.0 + records.iter().map(|r| r.timestamp_delta).max().unwrap_or(0));
    })
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..max), (any::<u8>(), 0..max * 4).prop_map(|(b, n)| vec![b; n])]
}

/// One to sixty records with offset deltas 0, 1, 2, ...
pub fn records() -> impl Strategy<Value = Vec<Rec>> {
    let header = (bytes(12), option::of(bytes(40)));
    let one = (-100_000i64..100_000, option::of(bytes(80)), option::of(bytes(3000)), vec(header, 0..3));
    vec(one, 1..60).prop_map(|rows| {
        let number = |(i, (timestamp_delta, key, value, headers))| Rec { timestamp_delta, offset_delta: i as i32, key, value, headers };
        rows.into_iter().enumerate().map(number).collect()
    })
}

pub fn how() -> impl Strategy<Value = How> {
    proptest::sample::select(&HOWS[..])
}
