//! What compaction costs: megabytes of dirty log for a second of one core, by record size and codec, and what appends to the same log cost
//! meanwhile. Input counts once, though it is read twice: for its keys, and to be rewritten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use understudy::core::types::{Epoch, Id, Millis, Offset};
use understudy::log::batch::{BatchBuilder, BatchHeader, HEADER_SIZE};
use understudy::log::codec::Codec;
use understudy::log::compact::{CompactError, MapLimits, Pace, Settings, Stats, Stopped};
use understudy::log::validate::{Origin, Rules, TopicCompression, prepare};
use understudy::log::{Files, Fs, Log, LogConfig, Storage, remove_files};
use understudy_protocol_tests::patience::Watch;

/// Bytes of log that each case compacts.
const INPUT: u64 = 256 << 20;

struct Unhurried;

impl Pace for Unhurried {
    fn io(&mut self, _: u64) -> Result<(), Stopped> {
        Ok(())
    }
}

fn settings() -> Settings {
    Settings { map: MapLimits { bytes: 128 << 20, load: 0.9 }, io_buffer: 256 << 10, secret: [1, 2] }
}

fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: 64 << 20, compact: true, delete: false, ..LogConfig::default() })
}

/// The next random number.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// A batch of about 16 kB of records with random keys of 16 bytes, in that codec.
fn batch(seed: &mut u64, value: usize, keys: u64, codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Offset(0), Epoch(-1), Millis(1_700_000_000_000));
    while builder.size() < 16_000 {
        let key = format!("key-{:012}", next(seed) % keys);
        let text = format!("{{\"user\":{},\"state\":\"ready\"}}", next(seed));
        let value: Vec<u8> = text.bytes().cycle().take(value).collect();
        builder.push(0, Some(key.as_bytes()), Some(&value));
    }
    let plain = builder.finish().expect("records");
    let rules = Rules {
        max_message_bytes: 1 << 20,
        compacted: true,
        compression: TopicCompression::Codec(codec),
        log_append_time: false,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        walk: true,
    };
    let prepared = prepare(&plain, &rules, Origin { client: true, zstd_allowed: true }, Millis(0)).expect("a good batch");
    [&prepared.header().encode()[..], prepared.payload()].concat()
}

fn append(log: &mut Log<Fs>, bytes: &[u8]) {
    let header = BatchHeader::parse(bytes).expect("a batch");
    log.append(header, &bytes[HEADER_SIZE..], Epoch(1), Millis(0)).expect("appended");
}

fn fill(dir: &tempfile::TempDir, name: &str, value: usize, keys: u64, codec: Codec) -> Log<Fs> {
    let mut log = Log::create(&Files::new(Fs, 100), dir.path().join(name), Id(7), Offset(0), config());
    let mut seed = 42;
    while log.size_bytes() < INPUT {
        append(&mut log, &batch(&mut seed, value, keys, codec));
    }
    log
}

fn swap(log: &mut Log<Fs>, cleaned: &understudy::log::compact::Cleaned) -> Result<(), CompactError> {
    let replaced = log.swap(cleaned, Millis(0)).map_err(|_| CompactError::Changed)?;
    Fs.sync_dir(log.dir()).expect("synced");
    Ok(remove_files(&Fs, &replaced)?)
}

/// Time that this thread has had a processor; on a busy machine less than what a clock shows.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}

/// What was done, how long it took, and how much of that on a processor.
fn compact(log: &mut Log<Fs>) -> (Stats, Duration, Duration) {
    let dirt = log.dirt(log.end(), Millis(0)).expect("readable");
    let task = log.compaction(&dirt, Vec::new(), Millis(0));
    let (begun, before) = (Watch::start(), on_cpu());
    let stats = task.run(&settings(), &mut Unhurried, &mut |cleaned| swap(log, &cleaned)).expect("compacted");
    log.set_compacted(stats.cleaned_to, task.generation());
    (stats, begun.elapsed(), on_cpu() - before)
}

fn show(name: &str, stats: &Stats, took: Duration, on_cpu: Duration) {
    let (read, kept) = (stats.read_bytes as f64 / 1e6, 100.0 * stats.kept_bytes as f64 / stats.read_bytes as f64);
    let (core, took) = (read / on_cpu.as_secs_f64(), took.as_secs_f64());
    println!("compact, {name}: {core:.0} MB/s of input on one core ({read:.0} MB in {took:.2} s with syncs and waits, {kept:.0}% kept)");
}

/// Microseconds of appends of 16 kB, some 300 us apart, until `go_on` says no: (median, 99th percentile).
fn append_latency(log: &mut Log<Fs>, mut go_on: impl FnMut(&mut Log<Fs>) -> bool) -> (f64, f64) {
    let mut seed = 7;
    let bytes = batch(&mut seed, 100, 1000, Codec::None);
    let mut times = Vec::new();
    while go_on(log) {
        let begun = Watch::start();
        append(log, &bytes);
        times.push(begun.elapsed().as_secs_f64() * 1e6);
        std::thread::sleep(Duration::from_micros(300));
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Appends to a log while a thread compacts it, swaps included, and the same without.
fn appends_meanwhile(dir: &tempfile::TempDir) {
    let mut log = fill(dir, "meanwhile-0", 100, 500_000, Codec::None);
    let alone = Watch::start();
    let (median, alone) = append_latency(&mut log, |_| alone.elapsed() < Duration::from_secs(2));
    println!("append 16 kB, nothing else: median {median:.1} us, p99 {alone:.1} us");
    let dirt = log.dirt(log.end(), Millis(0)).expect("readable");
    let task = log.compaction(&dirt, Vec::new(), Millis(0));
    let done = Arc::new(AtomicBool::new(false));
    let (ask, asked) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let ended = done.clone();
    let worker = std::thread::spawn(move || {
        let mut put = |cleaned| {
            ask.send(cleaned).expect("the owner listens");
            told.recv().expect("the owner answers");
            Ok(())
        };
        let outcome = task.run(&settings(), &mut Unhurried, &mut put);
        ended.store(true, Relaxed);
        outcome.map(|stats| stats.read_bytes)
    });
    let (median, p99) = append_latency(&mut log, |log| {
        if let Ok(cleaned) = asked.try_recv() {
            let replaced = log.swap(&cleaned, Millis(0)).expect("in place");
            tell.send(replaced).expect("the task waits");
        }
        !done.load(Relaxed)
    });
    worker.join().expect("no panic").expect("compacted");
    println!("append 16 kB, while its log is compacted: median {median:.1} us, p99 {p99:.1} us ({:.2} times)", p99 / alone);
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases = [
        ("100 B values, a tenth of the keys new", 100, 200_000, Codec::None),
        ("100 B values, most keys new", 100, 100_000_000, Codec::None),
        ("1 kB values", 1000, 50_000, Codec::None),
        ("100 B values, lz4", 100, 500_000, Codec::Lz4),
        ("100 B values, snappy", 100, 500_000, Codec::Snappy),
        ("100 B values, zstd", 100, 500_000, Codec::Zstd { level: 3 }),
        ("100 B values, gzip", 100, 500_000, Codec::Gzip { level: -1 }),
    ];
    for (at, (name, value, keys, codec)) in cases.into_iter().enumerate() {
        let mut log = fill(&dir, &format!("t{at}-0"), value, keys, codec);
        let (stats, took, on_cpu) = compact(&mut log);
        show(name, &stats, took, on_cpu);
        std::fs::remove_dir_all(log.dir()).expect("removed");
    }
    appends_meanwhile(&dir);
}
