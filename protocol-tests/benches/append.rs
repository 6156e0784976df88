//! What the log costs: appends by batch size, tail and catch-up reads, syncs taken, and recovery by the gigabyte.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use understudy::core::types::{Epoch, Id, Millis, Offset};
use understudy::log::batch::{BatchBuilder, BatchHeader, HEADER_SIZE};
use understudy::log::{Files, Fs, Log, LogConfig, OpenHints};

fn batch(records: usize, value: usize) -> (BatchHeader, Vec<u8>) {
    let mut builder = BatchBuilder::new(Offset(0), Epoch(0), Millis(1000));
    (0..records).for_each(|_| builder.push(0, None, Some(&vec![b'x'; value])));
    let bytes = builder.finish().expect("records");
    (BatchHeader::parse(&bytes).expect("a batch"), bytes[HEADER_SIZE..].to_vec())
}

fn log(dir: &tempfile::TempDir, name: &str) -> Log<Fs> {
    let config = LogConfig { segment_bytes: 256 << 20, ..LogConfig::default() };
    Log::create(&Files::new(Fs, 100), dir.path().join(name), Id(7), Offset(0), Arc::new(config))
}

/// Keeps the file at most 256 MiB long, so that the disk does not fill.
fn append(log: &mut Log<Fs>, header: BatchHeader, body: &[u8]) {
    let done = log.append(header, body, Epoch(1), Millis(1000)).expect("appended");
    if done.rolled {
        let gone = log.advance_start(done.base).expect("segments dropped");
        understudy::log::remove_files(&Fs, &gone).expect("removed");
    }
}

fn appends(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut group = c.benchmark_group("append");
    for (name, records, value) in
        [("100 B", 1, 100), ("1 KiB", 1, 1000), ("16 KB", 15, 1000), ("1 MB", 970, 1000), ("1 MB of 100 B", 8500, 100)]
    {
        let (header, body) = batch(records, value);
        let mut log = log(&dir, &format!("{records}x{value}-0"));
        group.throughput(Throughput::Bytes(header.size() as u64));
        group.bench_function(name, |b| b.iter(|| append(&mut log, header, black_box(&body))));
    }
}

fn reads(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut group = c.benchmark_group("read");
    for (name, records) in [("1 KiB", 1), ("16 KB", 15)] {
        let (header, body) = batch(records, 1000);
        let mut log = log(&dir, &format!("read{records}-0"));
        for _ in 0..(64 << 20) / header.size() {
            log.append(header, &body, Epoch(1), Millis(1000)).expect("appended");
        }
        let end = log.end();
        group.bench_function(format!("tail, {name}"), |b| b.iter(|| log.read(end + -1, 1 << 20, black_box(end)).expect("a range")));
        group.bench_function(format!("tail below the end, {name}"), |b| {
            b.iter(|| log.read(end + -30, 1 << 20, black_box(end + -5)).expect("a range"))
        });
        let mut at = 0;
        group.bench_function(format!("anywhere, {name}"), |b| {
            b.iter(|| {
                at = (at + 7919) % end.0;
                log.read(Offset(at), 1 << 20, black_box(end)).expect("a range")
            })
        });
    }
}

fn recovery(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut group = c.benchmark_group("recovery");
    group.sample_size(10);
    for (name, records, value) in [("1 MB", 970, 1000), ("16 KB", 15, 1000), ("1 KiB", 1, 1000)] {
        let (header, body) = batch(records, value);
        let mut log = log(&dir, &format!("recover{records}-0"));
        while log.size_bytes() < 200 << 20 {
            log.append(header, &body, Epoch(1), Millis(1000)).expect("appended");
        }
        group.throughput(Throughput::Bytes(log.size_bytes()));
        for (how, clean) in [("checked", false), ("clean", true)] {
            log.close().expect("closed");
            let hints =
                OpenHints { clean, survived: false, recovery_point: Offset(0), log_start: Offset(0), replay_from: Offset(i64::MAX) };
            group.bench_function(format!("{how}, {name}"), |b| {
                b.iter_batched(
                    || (log.dir().to_owned(), log.config().clone()),
                    |(dir, config)| Log::open(&Files::new(Fs, 10), dir, hints, config, Millis(0), &mut |_| {}).expect("opened").log.end(),
                    BatchSize::PerIteration,
                )
            });
        }
    }
}

criterion_group!(benches, appends, reads, recovery);
criterion_main!(benches);
