//! Random histories.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    /// Producer (0: none), codec, and for each record: key, length of its value (None: tombstone), timestamp.
    Append(u8, How, Vec<(u8, Option<u8>, u16)>),
    /// With a map for about so many keys.
    Compact(u8),
    Pass(u16),
    Reopen {
        clean: bool,
        /// Per mille of the log.
        recovery_point: u16,
    },
    Truncate(u16),
    Advance(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let record = (0..12u8, proptest::option::weighted(0.75, 0..60u8), 0..900u16);
    let step = prop_oneof![
        14 => (0..4u8, testkit::how(), prop::collection::vec(record, 1..9)).prop_map(|(p, how, r)| Step::Append(p, how, r)),
        4 => (0..20u8).prop_map(Step::Compact),
        2 => (0..150u16).prop_map(Step::Pass),
        2 => (any::<bool>(), 0..1000u16).prop_map(|(clean, recovery_point)| Step::Reopen { clean, recovery_point }),
        1 => (700..1000u16).prop_map(Step::Truncate),
        1 => (0..400u16).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..80)
}

struct Model {
    mem: Mem,
    log: Log<Mem>,
    all: Vec<Known>,
    frames: Vec<Frame>,
    /// Next sequence number of each producer.
    sequences: [i32; 4],
    now: i64,
    /// Tombstones that a compaction has seen, by offset, and when it first did.
    seen: BTreeMap<i64, i64>,
}

impl Model {
    fn new() -> Model {
        let mem = Mem::new();
        let log = new_log(&mem, config());
        Model { mem, log, all: Vec::new(), frames: Vec::new(), sequences: [0; 4], now: 2_000_000, seen: BTreeMap::new() }
    }

    fn within(&self, mille: u16) -> Offset {
        self.log.start() + (self.log.end() - self.log.start()) * i64::from(mille) / 999
    }

    fn last_records(&self, below: Offset) -> Vec<LastRecord> {
        let last = |id: i64| self.frames.iter().rev().find(|frame| frame.producer.0 == id && frame.last < below);
        (1..4).filter_map(|id| Some(LastRecord { producer_id: id, epoch: 0, last_offset: Some(last(id)?.last) })).collect()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(producer, how, rows) => {
                let record = |(i, (key, len, stamp)): (usize, &(u8, Option<u8>, u16))| {
                    let value = len.map(|len| vec![i as u8 ^ len; usize::from(len)]);
                    rec(i as i32, i64::from(*stamp), *key, value.as_deref())
                };
                let records: Vec<Rec> = rows.iter().enumerate().map(record).collect();
                let id = usize::from(*producer);
                let from = (id > 0).then(|| (id as i64, self.sequences[id]));
                let header = append(&mut self.log, &records, *how, from, self.now);
                self.sequences[id] += records.len() as i32;
                self.frames.push(Frame::of(&header));
                self.all.extend(records.into_iter().map(|r| Known {
                    offset: header.base_offset.0 + i64::from(r.offset_delta),
                    stamp: header.base_timestamp.0 + r.timestamp_delta,
                    key: r.key,
                    value: r.value,
                }));
            }
            Step::Compact(keys) => self.compact(*keys),
            Step::Pass(ms) => self.now += i64::from(*ms),
            Step::Reopen { clean, recovery_point } => {
                if !self.log.is_materialised() {
                    return;
                }
                if *clean {
                    self.log.close().expect("closed");
                }
                let cleaned_to = self.log.cleaned_to();
                let hints = hints(*clean, self.within(*recovery_point), self.log.start());
                let files = Files::new(self.mem.clone(), 3);
                let opened = Log::open(&files, DIR.into(), hints, Arc::new(config()), Millis(self.now), &mut |_| {}).expect("opened");
                assert_eq!(opened.cut, None);
                self.log = opened.log;
                self.log.set_cleaned_to(cleaned_to);
            }
            Step::Truncate(mille) => {
                // Nothing below the high watermark is ever cut, and only what lies there is compacted.
                let offset = self.within(*mille).max(self.log.cleaned_to());
                let dropped = self.log.truncate_to(offset, Millis(self.now)).expect("cut");
                remove_files(&self.mem, &dropped).expect("removed");
                let end = self.log.end().0;
                self.all.retain(|record| record.offset < end);
                self.frames.retain(|frame| frame.last.0 < end);
                self.seen.retain(|offset, _| *offset < end);
            }
            Step::Advance(mille) => {
                let dropped = self.log.advance_start(self.within(*mille)).expect("moved");
                remove_files(&self.mem, &dropped).expect("removed");
            }
        }
    }

    fn compact(&mut self, keys: u8) {
        if !self.log.is_materialised() {
            return;
        }
        let settings = settings(u64::from(keys) * 24);
        let (before, dirt) = (self.log.cleaned_to(), self.log.dirt(self.log.end(), Millis(self.now)).expect("readable"));
        let producers = self.last_records(dirt.upto);
        let stats = compact(&mut self.log, &self.mem, &settings, &producers, self.now, &mut |_| {}).expect("compacted");
        assert!(stats.cleaned_to >= before.min(self.log.end()) && stats.cleaned_to <= dirt.upto, "{stats:?} of {dirt:?}");
        assert!(dirt.upto == dirt.from || stats.cleaned_to > dirt.from, "it comes further each time: {stats:?} of {dirt:?}");
        assert!(stats.kept_bytes <= stats.read_bytes + 100 * stats.kept_records, "{stats:?}");
        for record in self.all.iter().filter(|r| r.value.is_none() && r.offset < stats.cleaned_to.0) {
            self.seen.entry(record.offset).or_insert(self.now);
        }
        // Below, each key stands once; what is left below the log start nobody reads.
        let mut keys = std::collections::HashSet::new();
        let start = self.log.start().0;
        for record in records(&self.log).iter().filter(|r| (start..stats.cleaned_to.0).contains(&r.offset)) {
            assert!(keys.insert(record.key.clone()), "{record:?} is not the only one");
        }
        assert!(names(&self.mem).iter().all(|name| !name.contains(".cleaned") && !name.contains(".swap")));
    }

    fn check(&self) {
        let log = &self.log;
        let batches = content(log);
        let found: Vec<Known> = batches.iter().flat_map(|(_, records)| records.clone()).collect();
        let start = log.start().0;
        let first = batches.first().map_or(start, |(header, _)| header.base_offset.0);
        let readable = |records: &[Known]| records.iter().filter(|r| r.offset >= start).cloned().collect::<Vec<_>>();
        for record in &found {
            assert!(self.all.contains(record), "{record:?} was never written");
        }
        assert_eq!(fold(&readable(&found)), fold(&readable(&self.all)), "the table");
        for record in self.all.iter().filter(|r| r.offset >= log.cleaned_to().0.max(first)) {
            assert!(found.contains(record), "{record:?} is not compacted and gone");
        }
        // A tombstone that is the last word on its key stays for its time.
        for (at, record) in self.all.iter().enumerate().filter(|(_, r)| r.value.is_none() && r.offset >= start) {
            let superseded = self.all[at + 1..].iter().any(|later| later.key == record.key);
            let young = self.seen.get(&record.offset).is_none_or(|seen| self.now < seen + 100);
            assert!(superseded || !young || found.contains(record), "{record:?} went too early");
        }
        let frames: Vec<Frame> = batches.iter().map(|(header, _)| Frame::of(header)).collect();
        assert!(frames.iter().all(|frame| self.frames.contains(frame)), "a batch that never was");
        assert!(frames.is_sorted_by(|a, b| a.last < b.base));
        for last in self.last_records(log.end()).iter().filter_map(|last| last.last_offset).filter(|last| last.0 >= start) {
            assert!(frames.iter().any(|frame| frame.last == last), "the last batch of a producer, at {last:?}");
        }
        for (header, records) in &batches {
            assert!(records.iter().all(|r| r.stamp <= header.max_timestamp.0));
            assert!(records.is_empty() || records.iter().any(|r| r.stamp == header.max_timestamp.0), "the largest timestamp is exact");
        }
        self.check_lookups(&batches, &readable(&found));
    }

    /// Offsets and timestamps are found as in a list.
    fn check_lookups(&self, batches: &[(BatchHeader, Vec<Known>)], found: &[Known]) {
        for offset in self.log.start().0..self.log.end().0 {
            let range = self.log.read(Offset(offset), 1, self.log.end()).expect("readable");
            let first = batches.iter().find(|(header, _)| header.last_offset().0 >= offset).map(|(header, _)| header.base_offset);
            assert_eq!(range.map(|range| range.base_offset), first, "at {offset}");
        }
        for target in (0..900).step_by(37).map(|delta| 1_000_000 + delta) {
            let first = found.iter().find(|r| r.stamp >= target).map(|r| Offset(r.offset));
            assert_eq!(self.log.offset_for_timestamp(Millis(target)).expect("readable").map(|at| at.offset), first, "{target}");
        }
        // Of records below the log start the largest timestamp is still known, as in Apache Kafka.
        if self.log.start() == self.log.first_segment() {
            let most = batches.iter().flat_map(|(_, records)| records).map(|r| r.stamp).max();
            assert_eq!(self.log.max_timestamp().expect("readable").map(|at| at.timestamp.0), most);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_compacted_the_table_is_the_same(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
            if !matches!(step, Step::Append(..) | Step::Pass(_)) {
                model.check();
            }
        }
        model.check();
    }
}
