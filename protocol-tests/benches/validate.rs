//! What a leader pays per batch before it appends: header, checksum, walk, all of `prepare`.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use understudy::core::types::{Epoch, Millis, Offset};
use understudy::log::batch::{BatchBuilder, BatchHeader, Compression};
use understudy::log::codec::Codec;
use understudy::log::validate::{Origin, Prepared, Rules, TopicCompression, prepare};

const NOW: Millis = Millis(1_700_000_000_000);
const CLIENT: Origin = Origin { client: true, zstd_allowed: true };

fn rules(compression: TopicCompression, walk: bool) -> Rules {
    Rules {
        max_message_bytes: 16 << 20,
        compacted: false,
        compression,
        log_append_time: false,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        walk,
    }
}

/// About a million bytes of records whose values have `size` bytes of JSON-like text, in that codec.
fn batch(size: usize, codec: Codec) -> Vec<u8> {
    let mut b = BatchBuilder::new(Offset(0), Epoch(-1), NOW);
    let mut value = Vec::new();
    for i in 0u64.. {
        value.clear();
        while value.len() < size {
            let noise = (i + value.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            value.extend_from_slice(format!("{{\"id\":{noise},\"state\":\"ready\"}}").as_bytes());
        }
        b.push(i as i64 / 10, None, Some(&value[..size]));
        if b.size() >= 1_000_000 {
            break;
        }
    }
    let plain = b.finish().expect("it has records");
    match prepare(&plain, &rules(TopicCompression::Codec(codec), true), CLIENT, NOW).expect("it is a good batch") {
        Prepared::AsSent { bytes, .. } => bytes.to_vec(),
        Prepared::Rewritten { bytes, .. } => bytes,
    }
}

fn validate(c: &mut Criterion) {
    let mut g = c.benchmark_group("validate");
    let plain = batch(1000, Codec::None);
    let header = BatchHeader::parse(&plain).expect("a header");
    g.bench_function("header", |b| b.iter(|| BatchHeader::parse(black_box(&plain)).map(|h| h.encode())));
    g.throughput(Throughput::Bytes(plain.len() as u64));
    g.bench_function("crc of 1 MB", |b| b.iter(|| header.check_crc(black_box(&plain))));
    g.bench_function("prepare 1 MB, header only", |b| {
        let rules = rules(TopicCompression::Producer, false);
        b.iter(|| prepare(black_box(&plain), &rules, CLIENT, NOW).is_ok())
    });
    let codecs = [Codec::None, Codec::Gzip { level: -1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }];
    for size in [100, 1000] {
        for codec in codecs {
            let bytes = batch(size, codec);
            let rules = rules(TopicCompression::Producer, true);
            let name = codec.compression().name();
            g.bench_function(format!("prepare 1 MB of {size} B records, {name}"), |b| {
                b.iter(|| prepare(black_box(&bytes), &rules, CLIENT, NOW).is_ok())
            });
        }
    }
    let to = rules(TopicCompression::Codec(Codec::Lz4), true);
    g.bench_function("recompress 1 MB to lz4", |b| b.iter(|| prepare(black_box(&plain), &to, CLIENT, NOW).is_ok()));
    assert_eq!(header.compression(), Some(Compression::None));
    g.finish();
}

fn main() {
    let mut criterion = Criterion::default().sample_size(30).without_plots().configure_from_args();
    validate(&mut criterion);
    criterion.final_summary();
}
