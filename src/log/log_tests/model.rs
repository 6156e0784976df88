//! Whatever is done to a log, it reads as a plain list of batches does.

use proptest::prelude::*;

use super::*;
use crate::log::batch::Batches;
use crate::log::error::{LogError, ReadError};
use crate::log::retention::remove_files;
use crate::log::timestamps::Stamped;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<i64>, usize),
    /// Batches with this many offsets missing before each.
    Follow(Vec<(u8, Vec<i64>)>),
    /// Per mille of the log.
    Truncate(u16),
    Advance(u16),
    StartAt(u8),
    Reopen {
        clean: bool,
        recovery_point: u16,
        lose_indexes: bool,
    },
    FlushIndexes,
    Sync,
    Retain {
        bytes: i64,
        below: u16,
    },
}

fn stamps() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0..60i64, 1..6)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (stamps(), 0..200usize).prop_map(|(s, n)| Step::Append(s, n)),
        3 => prop::collection::vec((0..3u8, stamps()), 1..12).prop_map(Step::Follow),
        1 => (0..1000u16).prop_map(Step::Truncate),
        1 => (0..1000u16).prop_map(Step::Advance),
        1 => any::<u8>().prop_map(Step::StartAt),
        2 => (any::<bool>(), 0..1000u16, any::<bool>())
            .prop_map(|(clean, recovery_point, lose_indexes)| Step::Reopen { clean, recovery_point, lose_indexes }),
        1 => Just(Step::FlushIndexes),
        1 => Just(Step::Sync),
        1 => (0..4000i64, 0..1000u16).prop_map(|(bytes, below)| Step::Retain { bytes, below }),
    ];
    prop::collection::vec(step, 1..60)
}

/// A batch as the model has it.
#[derive(Debug, Clone)]
struct Known {
    base: i64,
    stamps: Vec<i64>,
    bytes: Vec<u8>,
}

impl Known {
    fn last(&self) -> i64 {
        self.base + self.stamps.len() as i64 - 1
    }
}

struct Model {
    mem: Mem,
    files: Files<Mem>,
    log: Log<Mem>,
    batches: Vec<Known>,
    start: i64,
    end: i64,
}

const NOW: i64 = 1000;

impl Model {
    fn new() -> Model {
        let (mem, files) = mem();
        let log = new_log(&files, config());
        Model { mem, files, log, batches: Vec::new(), start: 0, end: 0 }
    }

    fn within(&self, mille: u16) -> i64 {
        self.start + (self.end - self.start) * i64::from(mille) / 999
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(stamps, size) => {
                let bytes = append(&mut self.log, stamps, *size, NOW);
                self.batches.push(Known { base: self.end, stamps: stamps.clone(), bytes });
                self.end += stamps.len() as i64;
            }
            Step::Follow(batches) => {
                let mut bytes = Vec::new();
                for (gap, stamps) in batches {
                    let base = self.end + i64::from(*gap);
                    let one = batch(base, stamps, 40);
                    bytes.extend_from_slice(&one);
                    self.end = base + stamps.len() as i64;
                    self.batches.push(Known { base, stamps: stamps.clone(), bytes: one });
                }
                let mut rest = &bytes[..];
                while let Some(done) = self.log.append_as_follower(rest, Millis(NOW)).unwrap() {
                    rest = &rest[done.bytes..];
                }
                assert!(rest.is_empty());
            }
            Step::Truncate(mille) => {
                let offset = self.within(*mille);
                let dropped = self.log.truncate_to(Offset(offset), Millis(NOW)).unwrap();
                remove_files(&self.mem, &dropped).unwrap();
                let cut = self.batches.iter().find(|b| b.last() >= offset).map(|b| b.base);
                self.batches.retain(|b| b.last() < offset);
                if offset < self.end {
                    self.end = offset.min(cut.unwrap_or(offset));
                }
                self.start = self.start.min(self.end);
            }
            Step::Advance(mille) => {
                let offset = self.within(*mille);
                let dropped = self.log.advance_start(Offset(offset)).unwrap();
                remove_files(&self.mem, &dropped).unwrap();
                self.start = offset;
            }
            Step::StartAt(ahead) => {
                let offset = self.end + i64::from(*ahead);
                let dropped = self.log.truncate_fully_and_start_at(Offset(offset), Millis(NOW)).unwrap();
                remove_files(&self.mem, &dropped).unwrap();
                self.batches.clear();
                (self.start, self.end) = (offset, offset);
            }
            Step::Reopen { clean, recovery_point, lose_indexes } => self.reopen(*clean, self.within(*recovery_point), *lose_indexes),
            Step::FlushIndexes => self.log.flush_indexes().unwrap(),
            Step::Sync => {
                if let Some(target) = self.log.sync_target() {
                    target.sync().unwrap();
                    self.log.mark_synced(&target);
                    assert!(self.log.sync_target().is_none());
                    assert_eq!(self.log.recovery_point(), self.log.end());
                }
            }
            Step::Retain { bytes, below } => self.retain(*bytes, self.within(*below)),
        }
    }

    fn reopen(&mut self, clean: bool, recovery_point: i64, lose_indexes: bool) {
        if !self.log.is_materialised() {
            return;
        }
        if clean {
            self.log.close().unwrap();
        }
        if lose_indexes {
            for entry in self.mem.list("/logs/t-0".as_ref()).unwrap() {
                if entry.name.ends_with("index") {
                    self.mem.remove(&std::path::Path::new("/logs/t-0").join(entry.name)).unwrap();
                }
            }
        }
        let start = self.log.start();
        let mut seen = Vec::new();
        let hints = OpenHints { replay_from: Offset(recovery_point), ..hints(clean, Offset(recovery_point), start) };
        let config = Arc::new(LogConfig { compact: true, ..config() });
        let opened = Log::open(&self.files, "/logs/t-0".into(), hints, config, Millis(NOW), &mut |h| seen.push(h.base_offset.0)).unwrap();
        assert_eq!(opened.cut, None);
        self.log = opened.log;
        let expected: Vec<_> = self.kept().filter(|b| b.last() >= recovery_point).map(|b| b.base).collect();
        assert_eq!(seen, expected, "replayed");
        // What ended in a gap is found to end where its last batch does, as in Kafka.
        if self.log.end().0 < self.end {
            assert_eq!(self.log.end().0, self.batches.last().map_or(self.log.end().0, |b| b.last() + 1).max(self.start));
            self.end = self.log.end().0;
        }
    }

    /// Batches in segments that are there.
    fn kept(&self) -> impl Iterator<Item = &Known> {
        let first = self.log.segment(0).map_or(self.start, |s| s.base.0);
        self.batches.iter().filter(move |b| b.base >= first)
    }

    fn retain(&mut self, bytes: i64, high_watermark: i64) {
        self.log.set_config(Arc::new(LogConfig { retention_bytes: bytes, ..config() }));
        let mut before: Vec<_> = self.log.segments().map(|s| (s.base, s.size as i64)).collect();
        // What lies below the log start goes first.
        let below = (1..before.len()).take_while(|i| before[*i].0.0 <= self.start).count();
        before.drain(..below);
        let dropped = self.log.retention(Millis(NOW), Offset(high_watermark)).unwrap();
        remove_files(&self.mem, &dropped).unwrap();
        self.log.set_config(Arc::new(config()));
        let mut excess = before.iter().map(|s| s.1).sum::<i64>() - bytes;
        let mut first = before.first().map_or(self.start, |s| s.0.0);
        for (i, (_, size)) in before.iter().enumerate() {
            let next = before.get(i + 1).map_or(self.end, |n| n.0.0);
            let last_and_empty = i + 1 == before.len() && *size == 0;
            if excess < *size || next > high_watermark || last_and_empty {
                break;
            }
            excess -= size;
            first = next;
        }
        self.start = self.start.max(first);
        assert_eq!(self.log.segment(0).map_or(self.start, |s| s.base.0), first);
    }

    fn check(&self) {
        assert_eq!((self.log.start().0, self.log.end().0), (self.start, self.end));
        assert_eq!(self.log.size_bytes(), self.kept().map(|b| b.bytes.len() as u64).sum::<u64>());
        for offset in self.start..=self.end {
            for (upto, max) in [(self.end, 1u32), ((offset + self.end) / 2, 300), (self.end, u32::MAX)] {
                self.check_read(offset, max, upto);
            }
        }
        for outside in [self.start - 1, self.end + 1] {
            assert!(matches!(self.log.read(Offset(outside), 1, Offset(self.end)), Err(ReadError::OutOfRange { .. })));
        }
        for target in 0..61 {
            let mut records = self.kept().flat_map(|b| (b.base..).zip(b.stamps.iter().copied()));
            let expected = records.find(|(offset, stamp)| *offset >= self.start && *stamp >= target);
            let found = self.log.offset_for_timestamp(Millis(target)).unwrap();
            assert_eq!(found.map(|s: Stamped| (s.offset.0, s.timestamp.0)), expected, "first record at or after {target}");
        }
        let records = || self.kept().flat_map(|b| (b.base..).zip(b.stamps.iter().copied()));
        let largest = records().map(|r| r.1).max();
        let expected = records().find(|r| Some(r.1) == largest);
        assert_eq!(self.log.max_timestamp().unwrap().map(|s| (s.offset.0, s.timestamp.0)), expected, "largest timestamp");
        self.check_indexes();
    }

    fn check_read(&self, offset: i64, max: u32, upto: i64) {
        let at = self.batches.iter().position(|b| b.last() >= offset);
        let expected = at.map(|at| &self.batches[at..]).unwrap_or_default();
        let bytes: Vec<u8> = expected.iter().take_while(|b| b.last() < upto).flat_map(|b| b.bytes.iter().copied()).collect();
        let range = self.log.read(Offset(offset), max, Offset(upto)).unwrap();
        let Some(range) = range else {
            assert!(bytes.is_empty(), "nothing at {offset} up to {upto}, not {} bytes", bytes.len());
            return;
        };
        let mut got = vec![0; range.len as usize];
        assert_eq!(range.file.pread(range.position, &mut got).unwrap(), got.len());
        assert!(bytes.starts_with(&got), "at {offset} up to {upto}");
        assert_eq!(range.base_offset.0, expected[0].base);
        assert_eq!(range.first_batch_len as usize, expected[0].bytes.len());
        // As much as asked for, the first batch at least, unless segment or limit ends before.
        let whole = Batches::new(&bytes).map(|b| b.unwrap()).map(|b| b.bytes.len()).sum::<usize>();
        let next_segment = self.log.segments().map(|s| s.base.0).find(|base| *base > range.segment.0).unwrap_or(i64::MAX);
        let in_segment = expected.iter().take_while(|b| b.last() < upto && b.base < next_segment).map(|b| b.bytes.len()).sum::<usize>();
        assert!(in_segment <= whole);
        assert_eq!(got.len(), in_segment.min((max as usize).max(expected[0].bytes.len())));
    }

    /// The files of closed segments say what `kafka-dump-log` looks for.
    fn check_indexes(&self) {
        for segment in &self.log.closed {
            let read = |suffix| {
                let path = crate::log::segment::path_of("/logs/t-0".as_ref(), segment.base, suffix);
                crate::log::storage::read_file(&self.mem, &path, 1 << 20).unwrap()
            };
            let (log, offsets, times) = (read("log"), read("index"), read("timeindex"));
            assert_eq!((log.len() as u64, offsets.len() % 8, times.len() % 12), (segment.size, 0, 0));
            let number = |b: &[u8]| b.iter().fold(0i64, |n, b| n << 8 | i64::from(*b));
            for entry in offsets.chunks(8) {
                let header = BatchHeader::parse(&log[number(&entry[4..]) as usize..]).unwrap();
                assert_eq!(header.last_offset() - segment.base, number(&entry[..4]));
            }
            let mut max = -1;
            let mut entries = times.chunks(12).map(|e| (number(&e[..8]), number(&e[8..]))).peekable();
            for batch in Batches::new(&log) {
                let header = batch.unwrap().header;
                max = max.max(header.max_timestamp.0);
                if let Some((stamp, _)) = entries.next_if(|e| e.1 == header.last_offset() - segment.base) {
                    assert_eq!((stamp, header.max_timestamp.0), (max, max), "the entry's batch is the one with the timestamp");
                }
                if let Some((stamp, at)) = entries.peek() {
                    assert!(*stamp > max || *at > header.last_offset() - segment.base);
                }
            }
            assert_eq!(entries.next(), None);
            let last = times.chunks(12).last().map_or(-1, |e| number(&e[..8]));
            assert_eq!(last, max, "the last entry of a closed segment has its largest timestamp");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_log_reads_as_the_list_of_its_batches(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
            model.check();
        }
    }
}

#[test]
fn batches_that_do_not_continue_the_log_are_refused_and_leave_it_alone() {
    let mut model = Model::new();
    model.step(&Step::Append(vec![1, 2, 3], 10));
    let again = model.log.append_as_follower(&batch(2, &[1], 1), Millis(NOW));
    assert!(matches!(again, Err(LogError::OutOfOrder { end: Offset(3), got: Offset(2) })));
    let mut broken = batch(3, &[1], 30);
    *broken.last_mut().unwrap() ^= 1;
    assert!(matches!(model.log.append_as_follower(&broken, Millis(NOW)), Err(LogError::Corrupt { .. })));
    // The good ones before a broken one are taken.
    let mut two = batch(3, &[5], 30);
    model.batches.push(Known { base: 3, stamps: vec![5], bytes: two.clone() });
    two.extend(broken);
    let done = model.log.append_as_follower(&two, Millis(NOW)).unwrap().unwrap();
    assert_eq!((done.batches, done.last), (1, Offset(3)));
    model.end = 4;
    let cut_off = batch(4, &[1], 30);
    assert_eq!(model.log.append_as_follower(&cut_off[..cut_off.len() - 1], Millis(NOW)).unwrap(), None);
    let large = batch(0, &[1], 5000);
    let header = BatchHeader::parse(&large).unwrap();
    assert!(matches!(
        model.log.append(header, &large[HEADER_SIZE..], Epoch(0), Millis(NOW)),
        Err(LogError::BatchTooLarge { limit: 1200, .. })
    ));
    model.check();
}
