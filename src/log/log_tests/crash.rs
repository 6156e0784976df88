//! A scripted life of a log, with a crash at every single change it makes to the disk: what was synced is there, what the operating system had
//! is there if only the process died, and what is there reads as a log.

use super::*;
use crate::log::batch::Batches;
use crate::log::checkpoint::{self, PartitionOffset};
use crate::log::error::LogError;
use crate::log::mem::{Crash, Fault};
use crate::log::records::Records;
use crate::log::retention::remove_files;

const CHECKPOINT: &str = "/logs/recovery-point-offset-checkpoint";
const DIR: &str = "/logs/t-0";

/// A batch in the log: its last offset and its bytes.
type Known = (i64, Vec<u8>);

/// What an observer of the run knows at the moment of the crash.
#[derive(Default)]
struct Promise {
    /// Every content the log has had, the present one last.
    versions: Vec<Vec<Known>>,
    /// What must have survived the death of the process, and what may have.
    least: Vec<Known>,
    /// What must have survived a power cut.
    durable: Vec<Known>,
    start: i64,
}

impl Promise {
    fn now(&self) -> Vec<Known> {
        self.versions.last().cloned().unwrap_or_default()
    }

    /// A change begins after which the log is to hold `then`.
    fn towards(&mut self, then: Vec<Known>) {
        let before = self.now();
        let common = before.iter().zip(&then).take_while(|(a, b)| a == b).count();
        self.least = before[..common].to_vec();
        self.durable.truncate(self.durable.iter().zip(&then).take_while(|(a, b)| a == b).count());
        self.versions.push(then);
    }
}

struct Run {
    mem: Mem,
    log: Log<Mem>,
    promise: Promise,
}

impl Run {
    fn append(&mut self, stamps: &[i64], size: usize) -> Result<(), LogError> {
        let base = self.log.end();
        let bytes = batch(base.0, stamps, size);
        let mut then = self.promise.now();
        then.push((base.0 + stamps.len() as i64 - 1, bytes.clone()));
        self.promise.towards(then.clone());
        let header = BatchHeader::parse(&bytes).unwrap();
        let done = self.log.append(header, &bytes[HEADER_SIZE..], Epoch(0), Millis(0))?;
        self.promise.least = then;
        if done.rolled {
            self.log.write_snapshot(done.base, b"producers")?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        let Some(target) = self.log.sync_target() else { return Ok(()) };
        target.sync()?;
        self.log.mark_synced(&target);
        self.promise.durable = self.promise.now();
        let entry = PartitionOffset { topic: "t".into(), partition: 0, offset: self.log.recovery_point() };
        checkpoint::write_offsets(&self.mem, CHECKPOINT.as_ref(), &[entry])
    }

    fn truncate(&mut self, offset: i64) -> Result<(), LogError> {
        let then: Vec<_> = self.promise.now().into_iter().take_while(|(last, _)| *last < offset).collect();
        self.promise.towards(then.clone());
        let dropped = self.log.truncate_to(Offset(offset), Millis(0))?;
        self.promise.least = then;
        // The checkpoint must not promise what was cut.
        let entry = PartitionOffset { topic: "t".into(), partition: 0, offset: self.log.recovery_point() };
        checkpoint::write_offsets(&self.mem, CHECKPOINT.as_ref(), &[entry])?;
        remove_files(&self.mem, &dropped)
    }

    fn advance(&mut self, offset: i64) -> Result<(), LogError> {
        self.promise.start = offset;
        let dropped = self.log.advance_start(Offset(offset))?;
        remove_files(&self.mem, &dropped)
    }

    fn script(&mut self) -> Result<(), LogError> {
        for i in 0..4 {
            self.append(&[i, i + 1], 150)?;
        }
        self.sync()?;
        self.append(&[7], 700)?;
        self.append(&[6, 9, 8], 100)?;
        self.log.flush_indexes()?;
        self.append(&[10], 30)?;
        self.sync()?;
        for i in 0..6 {
            self.append(&[11 + i], 210)?;
        }
        self.truncate(15)?;
        self.append(&[30, 31], 77)?;
        self.truncate(9)?;
        for i in 0..5 {
            self.append(&[40 + i, 50], 133)?;
        }
        self.sync()?;
        self.advance(9)?;
        // One batch a segment; what takes the place of the second ends where the third began.
        let end = self.log.end().0;
        for i in 0..3 {
            self.append(&[51 + i], 700)?;
        }
        self.sync()?;
        self.truncate(end + 1)?;
        self.append(&[59], 20)?;
        self.sync()?;
        self.append(&[60], 90)?;
        self.log.close()?;
        self.append(&[61], 91)
    }
}

/// Runs the script until change `n`; whether it came to its end before.
fn run(n: u64) -> (Mem, Promise, bool) {
    let (mem, files) = mem();
    mem.fail(Fault::CrashAt(mem.changes() + n));
    let mut run = Run { mem: mem.clone(), log: new_log(&files, config()), promise: Promise::default() };
    let done = run.script();
    assert_eq!(done.is_err(), mem.has_crashed(), "{done:?}");
    (mem, run.promise, done.is_ok())
}

fn reopen(mem: &Mem, start: i64) -> Option<Log<Mem>> {
    let files = Files::new(mem.clone(), 3);
    if !mem.list("/logs".as_ref()).unwrap().iter().any(|e| e.name == "t-0") {
        return None;
    }
    let recovery_point = checkpoint::read_offsets(mem, CHECKPOINT.as_ref()).unwrap().first().map_or(Offset(0), |e| e.offset);
    let opened = Log::open(&files, DIR.into(), hints(false, recovery_point, Offset(start)), Arc::new(config()), Millis(0), &mut |_| {});
    Some(opened.unwrap().log)
}

fn content(log: &Log<Mem>) -> Vec<Known> {
    let bytes = read_all(log, log.start(), log.end());
    Batches::new(&bytes).map(|b| b.unwrap()).map(|b| (b.header.last_offset().0, b.bytes.to_vec())).collect()
}

/// Offsets and timestamps of a batch's records.
fn stamps(batch: &[u8]) -> Vec<(Offset, Millis)> {
    let header = BatchHeader::parse(batch).unwrap();
    Records::new(&header, &batch[HEADER_SIZE..]).map(|r| r.unwrap()).map(|r| (r.offset, r.timestamp)).collect()
}

#[test]
fn whatever_change_a_crash_interrupts_the_log_comes_back() {
    let crashes = [Crash::Process, Crash::Power, Crash::Torn(1), Crash::Torn(2), Crash::Torn(3), Crash::Torn(4)];
    for n in 1.. {
        let mut finished = false;
        for crash in crashes {
            let (mem, promise, done) = run(n);
            finished = done;
            mem.restart(crash);
            let what = format!("change {n}, {crash:?}");
            let start = promise.start;
            let after = |known: &[Known]| known.iter().filter(|(last, _)| *last >= start).cloned().collect::<Vec<_>>();
            let must = after(if crash == Crash::Process { &promise.least } else { &promise.durable });
            let Some(mut log) = reopen(&mem, start) else {
                assert!(must.is_empty(), "{what}: the directory is gone");
                continue;
            };
            let found = content(&log);
            let possible = promise.versions.iter().map(|v| after(v)).any(|v| v.starts_with(&found));
            assert!(possible || found.is_empty(), "{what}: the log never was like this");
            assert!(found.starts_with(&must), "{what}: {} batches, {} are owed", found.len(), must.len());
            assert!(must.is_empty() || log.topic_id() == Id(7) || crash == Crash::Process, "{what}: whose log is it?");
            // It is a log like any other: each offset and each time is found, and it goes on.
            let stamps: Vec<_> = found.iter().flat_map(|(_, bytes)| stamps(bytes)).filter(|(offset, _)| *offset >= log.start()).collect();
            for target in (0..70).map(Millis) {
                let first = stamps.iter().find(|(_, stamp)| *stamp >= target).map(|(offset, _)| *offset);
                assert_eq!(log.offset_for_timestamp(target).unwrap().map(|s| s.offset), first, "{what}: at {target:?}");
            }
            for (last, bytes) in &found {
                let range = log.read(Offset(*last), 1, log.end()).unwrap().unwrap();
                assert_eq!(range.first_batch_len as usize, bytes.len(), "{what}");
            }
            for i in 0..3 {
                append(&mut log, &[100 + i], 400, 0);
            }
            assert_eq!(log.offset_for_timestamp(Millis(101)).unwrap().map(|s| s.offset), Some(log.end() + -2), "{what}");
            log.close().unwrap();
            let clean = hints(true, Offset(0), Offset(start));
            let again = Log::open(&Files::new(mem.clone(), 9), DIR.into(), clean, Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
            assert_eq!(again.cut, None, "{what}");
            assert_eq!((again.log.end(), content(&again.log).len()), (log.end(), found.len() + 3), "{what}");
        }
        if finished {
            assert!(n > 100, "the script makes only {n} changes");
            return;
        }
    }
}

/// Only the process died: a torn tail is cut, and nothing that was written is lost, though no checksum is read.
#[test]
fn a_dead_process_leaves_all_it_wrote_and_at_most_one_torn_batch() {
    use crate::log::storage::{File, Storage};
    use std::io::IoSlice;
    let storage = Mem::new();
    let files = Files::new(storage.clone(), 8);
    let dir = std::path::PathBuf::from("/t-0");
    let mut log = Log::create(&files, dir.clone(), Id(7), Offset(0), Arc::new(LogConfig::default()));
    for value in 0..5u8 {
        let batch = batch_of(&[value; 100]);
        let header = BatchHeader::parse(&batch).expect("a batch");
        log.append(header, &batch[HEADER_SIZE..], Epoch(1), Millis(1)).expect("to append");
    }
    let size = log.size_bytes();
    drop(log);
    let torn = batch_of(&[9; 100]);
    let file = storage.open(&dir.join("00000000000000000000.log")).expect("the segment");
    file.pwritev(size, &[IoSlice::new(&torn[..120])]).expect("to write");

    let hints = OpenHints { survived: true, ..hints(false, Offset(0), Offset(0)) };
    let opened = Log::open(&Files::new(storage, 8), dir, hints, Arc::new(LogConfig::default()), Millis(2), &mut |_| {}).expect("to open");
    assert_eq!((opened.log.end(), opened.log.size_bytes()), (Offset(5), size));
    assert!(opened.cut.is_some_and(|cut| cut.position == size && cut.bytes == 120));
}

fn batch_of(value: &[u8]) -> Vec<u8> {
    let mut batch = crate::log::builder::BatchBuilder::new(Offset(0), Epoch(0), Millis(1));
    batch.push(0, None, Some(value));
    batch.finish().expect("one record")
}
