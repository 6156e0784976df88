//! The log as a whole: against a naive model, through crashes at every change, and on a real file system.

mod crash;
mod faults;
mod fs;
mod model;

use std::sync::Arc;

use super::batch::{BatchBuilder, BatchHeader, HEADER_SIZE};
use super::files::Files;
use super::mem::Mem;
use super::options::{LogConfig, OpenHints};
use super::partition_log::Log;
use super::storage::{File, Storage};
use crate::core::types::{Epoch, Id, Millis, Offset};

/// Small segments and dense indexes, so that little data takes every path.
fn config() -> LogConfig {
    LogConfig { segment_bytes: 1200, index_interval_bytes: 150, retention_ms: -1, ..LogConfig::default() }
}

/// A batch with a record per timestamp, each with a value of `size` bytes.
fn batch(base: i64, stamps: &[i64], size: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Offset(base), Epoch(0), Millis(stamps[0]));
    stamps.iter().for_each(|stamp| builder.push(stamp - stamps[0], None, Some(&vec![b'x'; size])));
    builder.finish().expect("a batch with records")
}

/// Appends such a batch as a leader does; its bytes as they are in the log.
fn append<S: Storage>(log: &mut Log<S>, stamps: &[i64], size: usize, now: i64) -> Vec<u8> {
    let bytes = batch(0, stamps, size);
    let header = BatchHeader::parse(&bytes).unwrap();
    let done = log.append(header, &bytes[HEADER_SIZE..], Epoch(0), Millis(now)).unwrap();
    batch(done.base.0, stamps, size)
}

fn hints(clean: bool, recovery_point: Offset, log_start: Offset) -> OpenHints {
    OpenHints { clean, survived: false, recovery_point, log_start, replay_from: Offset(i64::MAX) }
}

fn mem() -> (Mem, Files<Mem>) {
    let mem = Mem::new();
    mem.create_dir("/logs".as_ref()).unwrap();
    mem.sync_dir("/".as_ref()).unwrap();
    (mem.clone(), Files::new(mem, 3))
}

fn new_log<S: Storage>(files: &Files<S>, config: LogConfig) -> Log<S> {
    Log::create(files, "/logs/t-0".into(), Id(7), Offset(0), Arc::new(config))
}

/// All batches from `from` up to `upto`, as their bytes.
fn read_all<S: Storage>(log: &Log<S>, from: Offset, upto: Offset) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = from;
    while let Some(range) = log.read(at, u32::MAX, upto).unwrap() {
        let mut bytes = vec![0; range.len as usize];
        assert_eq!(range.file.pread(range.position, &mut bytes).unwrap(), bytes.len());
        at = super::batch::Batches::new(&bytes).map(|b| b.unwrap().header.next_offset()).last().unwrap();
        out.extend(bytes);
    }
    out
}
