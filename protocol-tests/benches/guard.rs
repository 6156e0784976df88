//! What a request costs before anything is done with it: the guard alone, and the guard with the decoder behind it.

#![expect(missing_docs, reason = "criterion_group! makes an undocumented function")]

use std::hint::black_box;

use bytes::{BufMut, Bytes};
use criterion::{Criterion, criterion_group, criterion_main};
use kafka_protocol::messages::{FetchRequest, ProduceRequest};
use kafka_protocol::protocol::Decodable;
use understudy::wire::{guard, header};

/// Produce v9: one batch of that many bytes for each partition of one topic.
fn produce(partitions: u8, batch: usize) -> Bytes {
    let mut body = b"\0\xff\xff\0\0\x75\x30\x02\x06topic".to_vec();
    body.put_u8(partitions + 1);
    for partition in 0..partitions {
        body.put_i32(partition.into());
        let mut size = batch + 1;
        while size >= 0x80 {
            body.put_u8(size as u8 | 0x80);
            size >>= 7;
        }
        body.put_u8(size as u8);
        body.put_bytes(0x80, batch);
        body.put_u8(0);
    }
    body.put_slice(b"\0\0");
    body.into()
}

/// Fetch v12 from that many partitions of one topic.
fn fetch(partitions: u8) -> Bytes {
    let mut body = b"\xff\xff\xff\xff\0\0\x01\xf4\0\0\0\x01\x03\0\0\0\0\0\0\0\0\0\0\0\0\x02\x06topic".to_vec();
    body.put_u8(partitions + 1);
    for partition in 0..partitions {
        body.put_i32(partition.into());
        body.put_i32(-1);
        body.put_i64(7);
        body.put_i32(-1);
        body.put_i64(-1);
        body.put_i32(1 << 20);
        body.put_u8(0);
    }
    body.put_slice(b"\0\x01\x01\0");
    body.into()
}

fn benches(c: &mut Criterion) {
    let frame = b"\0\0\0\x09\0\0\0\x07\0\x0aproducer-1\0";
    c.bench_function("header", |b| b.iter(|| header::parse(black_box(frame)).is_ok()));
    for (name, key, version, body) in [
        ("produce v9, 1 partition", 0, 9, produce(1, 1000)),
        ("produce v9, 1 partition, 1 MB", 0, 9, produce(1, 1_000_000)),
        ("produce v9, 100 partitions", 0, 9, produce(100, 100)),
        ("fetch v12, 1 partition", 1, 12, fetch(1)),
        ("fetch v12, 100 partitions", 1, 12, fetch(100)),
    ] {
        assert_eq!(guard::check(key, version, &body), Ok(()), "{name}");
        c.bench_function(&format!("guard, {name}"), |b| {
            b.iter(|| guard::check(black_box(key), black_box(version), black_box(&body)).is_ok())
        });
        c.bench_function(&format!("guard and decode, {name}"), |b| {
            b.iter(|| {
                let checked = guard::check(black_box(key), black_box(version), black_box(&body)).is_ok();
                let mut body = body.clone();
                checked
                    && if key == 0 {
                        ProduceRequest::decode(&mut body, version).is_ok()
                    } else {
                        FetchRequest::decode(&mut body, version).is_ok()
                    }
            });
        });
    }
}

criterion_group!(guards, benches);
criterion_main!(guards);
