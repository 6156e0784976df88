//! Compaction against a naive fold: whatever is appended, compacted, cut and reopened, the last value of each key is there, and every
//! batch is where it was.

mod crash;
mod faults;
mod model;
mod txn;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CompactError, LastRecord, MapLimits, Pace, Settings, Stats, Stopped};
use crate::core::types::{Epoch, Id, Millis, Offset};
use crate::log::batch::{BatchHeader, Batches, Compression, HEADER_SIZE};
use crate::log::codec::inflate;
use crate::log::files::Files;
use crate::log::mem::Mem;
use crate::log::options::{LogConfig, OpenHints};
use crate::log::partition_log::Log;
use crate::log::retention::remove_files;
use crate::log::storage::{File, Storage};
use crate::log::testkit::{self, How, Rec};

const DIR: &str = "/t-0";

/// A record as the naive model has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    offset: i64,
    stamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
}

/// What compaction may not change of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    base: Offset,
    last: Offset,
    producer: (i64, i16, i32),
    epoch: Epoch,
}

impl Frame {
    fn of(header: &BatchHeader) -> Frame {
        let producer = (header.producer_id, header.producer_epoch, header.base_sequence);
        Frame { base: header.base_offset, last: header.last_offset(), producer, epoch: header.leader_epoch }
    }
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 900,
        index_interval_bytes: 150,
        retention_ms: -1,
        delete: false,
        compact: true,
        min_cleanable_dirty_ratio: 0.0,
        delete_retention_ms: 100,
        ..LogConfig::default()
    }
}

struct Unhurried;

impl Pace for Unhurried {
    fn io(&mut self, _: u64) -> Result<(), Stopped> {
        Ok(())
    }
}

fn settings(bytes: u64) -> Settings {
    Settings { map: MapLimits { bytes, load: 0.9 }, io_buffer: 300, secret: [3, 4] }
}

/// Keys are one letter.
fn rec(delta: i32, stamp: i64, key: u8, value: Option<&[u8]>) -> Rec {
    Rec::new(delta, stamp, Some(&[key]), value)
}

fn hints(clean: bool, recovery_point: Offset, log_start: Offset) -> OpenHints {
    OpenHints { clean, survived: false, recovery_point, log_start, replay_from: Offset(i64::MAX) }
}

fn new_log(mem: &Mem, config: LogConfig) -> Log<Mem> {
    Log::create(&Files::new(mem.clone(), 4), DIR.into(), Id(7), Offset(0), Arc::new(config))
}

/// Appends the records as one batch of a producer (or none); timestamps are relative to 1,000,000.
fn append(log: &mut Log<Mem>, records: &[Rec], how: How, producer: Option<(i64, i32)>, now: i64) -> BatchHeader {
    let mut bytes = testkit::batch(records, how);
    if let Some((id, sequence)) = producer {
        bytes = testkit::seal(&bytes[HEADER_SIZE..], |header| {
            *header = BatchHeader::parse(&bytes).expect("a batch");
            (header.producer_id, header.producer_epoch, header.base_sequence) = (id, 0, sequence);
        });
    }
    let header = BatchHeader::parse(&bytes).expect("a batch");
    let done = log.append(header, &bytes[HEADER_SIZE..], Epoch(5), Millis(now)).expect("appended");
    BatchHeader { base_offset: done.base, leader_epoch: Epoch(5), ..header }
}

/// Compacts what there is, and removes what is replaced. `before` each swap something may happen to the log.
fn compact(
    log: &mut Log<Mem>,
    mem: &Mem,
    settings: &Settings,
    producers: &[LastRecord],
    now: i64,
    before: &mut dyn FnMut(&mut Log<Mem>),
) -> Result<Stats, CompactError> {
    let dirt = log.dirt(log.end(), Millis(now))?;
    let task = log.compaction(&dirt, producers.to_vec(), Millis(now));
    let stats = task.run(settings, &mut Unhurried, &mut |cleaned| {
        before(log);
        let replaced = match log.swap(&cleaned, Millis(now)) {
            Ok(replaced) => replaced,
            Err(super::SwapRefused::Changed) => return Err(CompactError::Changed),
            Err(super::SwapRefused::Log(e)) => return Err(e.into()),
        };
        mem.sync_dir(DIR.as_ref()).map_err(|e| crate::log::LogError::io("sync", DIR.as_ref(), e))?;
        Ok(remove_files(mem, &replaced)?)
    })?;
    log.set_compacted(stats.cleaned_to, task.generation());
    Ok(stats)
}

/// Every batch from the log start on, with its records.
fn content(log: &Log<Mem>) -> Vec<(BatchHeader, Vec<Known>)> {
    let mut out = Vec::new();
    let mut at = log.start();
    while let Some(range) = log.read(at, u32::MAX, log.end()).expect("readable") {
        let mut bytes = vec![0; range.len as usize];
        assert_eq!(range.file.pread(range.position, &mut bytes).expect("read"), bytes.len());
        for batch in Batches::new(&bytes) {
            let batch = batch.expect("a batch");
            batch.header.check_crc(batch.bytes).expect("the right checksum");
            let payload = inflate(batch.header.compression().expect("a codec"), batch.payload(), 1 << 20).expect("whole");
            let records = testkit::read(&payload, batch.header.count).expect("records");
            let known = |r: Rec| Known {
                offset: batch.header.base_offset.0 + i64::from(r.offset_delta),
                stamp: batch.header.base_timestamp.0 + r.timestamp_delta,
                key: r.key,
                value: r.value,
            };
            out.push((batch.header, records.into_iter().map(known).collect()));
            at = batch.header.next_offset();
        }
    }
    out
}

fn records(log: &Log<Mem>) -> Vec<Known> {
    content(log).into_iter().flat_map(|(_, records)| records).collect()
}

/// What a table that is kept up to date from these records has.
fn fold<'a>(records: impl IntoIterator<Item = &'a Known>) -> BTreeMap<Vec<u8>, (i64, Vec<u8>)> {
    let mut table = BTreeMap::new();
    for record in records {
        let Some(key) = record.key.clone() else { continue };
        match &record.value {
            Some(value) => table.insert(key, (record.offset, value.clone())),
            None => table.remove(&key),
        };
    }
    table
}

fn names(mem: &Mem) -> Vec<String> {
    mem.list(DIR.as_ref()).expect("a directory").into_iter().map(|entry| entry.name).collect()
}
