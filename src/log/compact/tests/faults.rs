//! What goes wrong, and what may be asked for in the middle.

use super::*;
use crate::log::mem::Fault;
use crate::log::segment::path_of;

/// A log of several segments in which key after key is written twice.
fn two_of_each(mem: &Mem, config: LogConfig) -> Log<Mem> {
    let mut log = new_log(mem, config);
    for i in 0..40u8 {
        append(&mut log, &[rec(0, i.into(), i % 20, Some(&[i; 60]))], How::Plain, None, 0);
    }
    assert!(log.segment_count() > 4);
    log
}

fn path(log: &Log<Mem>, at: usize) -> std::path::PathBuf {
    path_of(DIR.as_ref(), log.closed[at].base, "log")
}

#[test]
fn a_read_error_leaves_the_log_as_it_was_and_the_next_pass_succeeds() {
    let mem = Mem::new();
    let mut log = two_of_each(&mem, config());
    let before = records(&log);
    let broken = path(&log, 1);
    mem.fail(Fault::Read(broken.clone()));
    let error = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect_err("it cannot be read");
    assert!(matches!(&error, CompactError::Log(_)) && error.to_string().contains(&broken.display().to_string()), "{error}");
    mem.heal();
    assert_eq!(records(&log), before);
    assert_eq!(log.cleaned_to(), Offset(0));
    assert!(names(&mem).iter().all(|name| !name.ends_with(".cleaned")));
    compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect("compacted");
    assert_eq!(fold(&records(&log)), fold(&before));
    assert!(records(&log).len() < before.len());
}

#[test]
fn a_damaged_record_is_not_given_a_new_checksum() {
    let mem = Mem::new();
    let mut log = two_of_each(&mem, config());
    let damaged = path(&log, 2);
    mem.flip_bit(&damaged, 8 * 100).expect("a file");
    let error = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect_err("it is damaged").to_string();
    assert!(error.contains("checksum") && error.contains(&damaged.display().to_string()), "{error}");
}

#[test]
fn a_full_disk_stops_it_and_nothing_is_left() {
    let mem = Mem::new();
    let mut log = two_of_each(&mem, config());
    let before = records(&log);
    for free in [0, 100, 500] {
        mem.fail(Fault::Free(free));
        let error = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect_err("no room");
        assert!(matches!(error, CompactError::Log(crate::log::LogError::Full { .. })), "{error}");
        mem.heal();
        assert!(names(&mem).iter().all(|name| !name.ends_with(".cleaned")));
        assert_eq!(fold(&records(&log)), fold(&before));
    }
}

#[test]
fn what_is_cut_meanwhile_does_not_come_back() {
    let mem = Mem::new();
    let mut log = two_of_each(&mem, config());
    let all = records(&log);
    let mut swaps = 0;
    let outcome = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |log| {
        swaps += 1;
        if swaps == 1 {
            let dropped = log.truncate_to(Offset(25), Millis(0)).expect("cut");
            remove_files(&mem, &dropped).expect("removed");
        }
    });
    assert!(matches!(outcome, Err(CompactError::Changed)), "{outcome:?}");
    assert_eq!(records(&log), all[..25]);
    compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect("compacted");
    assert_eq!(fold(&records(&log)), fold(&all[..25]));
    // The cut reached into what was compacted: it is dirty again from there.
    let at = log.cleaned_to();
    log.truncate_to(at + -3, Millis(0)).expect("cut");
    assert_eq!(log.cleaned_to(), log.end());
}

#[test]
fn what_retention_took_meanwhile_does_not_come_back() {
    let mem = Mem::new();
    let mut log = two_of_each(&mem, config());
    let second = log.closed[1].base;
    let outcome = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |log| {
        let dropped = log.advance_start(second).expect("moved");
        remove_files(&mem, &dropped).expect("removed");
    });
    assert!(matches!(outcome, Err(CompactError::Changed)), "{outcome:?}");
    assert_eq!(log.first_segment(), second);
    assert!(names(&mem).iter().all(|name| !name.ends_with(".cleaned")));
    assert_eq!(log.dirt(log.end(), Millis(0)).expect("readable").from, second, "the log start counts");
}

#[test]
fn it_stops_when_told() {
    struct Short(u64);
    impl Pace for Short {
        fn io(&mut self, bytes: u64) -> Result<(), Stopped> {
            self.0 = self.0.checked_sub(bytes).ok_or(Stopped)?;
            Ok(())
        }
    }
    let mem = Mem::new();
    let log = two_of_each(&mem, config());
    let before = records(&log);
    for allowed in [0, 2000, 4500] {
        let task = log.compaction(&log.dirt(log.end(), Millis(0)).expect("readable"), Vec::new(), Millis(0));
        let outcome = task.run(&settings(1 << 16), &mut Short(allowed), &mut |_| panic!("nothing was finished"));
        assert!(matches!(outcome, Err(CompactError::Stopped(_))), "{outcome:?}");
        assert!(names(&mem).iter().all(|name| !name.ends_with(".cleaned")));
        assert_eq!(records(&log), before);
    }
}

#[test]
fn a_batch_with_more_keys_than_the_map_takes_is_named() {
    let mem = Mem::new();
    let mut log = new_log(&mem, LogConfig { segment_bytes: 100_000, ..config() });
    let records: Vec<Rec> = (0..3000).map(|i: i32| Rec::new(i, 0, Some(&i.to_be_bytes()), Some(b"v"))).collect();
    append(&mut log, &records, How::Plain, None, 0);
    append(&mut log, &[Rec::new(0, 0, Some(b"k"), Some(&[0; 70_000]))], How::Plain, None, 0);
    let error = compact(&mut log, &mem, &settings(1000 * 24), &[], 0, &mut |_| {}).expect_err("900 keys fit");
    assert!(matches!(error, CompactError::NoRoom { at: Offset(0), room: 900 }), "{error}");
    assert!(error.to_string().contains("log.cleaner.dedupe.buffer.size"));
    compact(&mut log, &mem, &settings(5000 * 24), &[], 0, &mut |_| {}).expect("now they do");
}

#[test]
fn lags_bound_what_is_compacted_and_when() {
    let mem = Mem::new();
    let start = 1_000_000;
    let mut log = two_of_each(&mem, LogConfig { min_compaction_lag_ms: 1000, min_cleanable_dirty_ratio: 0.5, ..config() });
    let third = log.closed[2].base;
    let newest = start + log.closed[1].base.0 + (third - log.closed[1].base) - 1;
    let dirt = |log: &Log<Mem>, now: i64| log.dirt(log.end(), Millis(now)).expect("readable");
    let young = dirt(&log, start);
    assert_eq!((young.upto, young.is_enough()), (Offset(0), false));
    assert_eq!(young.due, Some(Millis(start + log.closed[1].base.0 - 1 + 1000)), "when the first segment is old enough");
    assert_eq!(dirt(&log, young.due.expect("due").0).upto, log.closed[1].base);
    assert_eq!(dirt(&log, newest + 1000).upto, third, "all of the first two is");
    let old = dirt(&log, start + 100_000);
    assert_eq!((old.upto, old.ratio(), old.is_enough(), old.due), (log.active.as_ref().expect("one").segment.base, 1.0, true, None));
    assert_eq!(log.dirt(third + 1, Millis(start + 100_000)).expect("readable").upto, third, "nothing that is not stable");

    log.set_config(Arc::new(LogConfig { max_compaction_lag_ms: 5000, min_cleanable_dirty_ratio: 1.0, ..config() }));
    assert!(!dirt(&log, start + 5000).is_enough());
    assert_eq!(dirt(&log, start + 5000).due, Some(Millis(start + 5001)));
    assert!(dirt(&log, start + 5001).is_enough());
    assert_eq!(dirt(&log, start + 5007).overdue_ms, 7);
    // Also what nobody appends to any more is closed, and then compacted.
    let active = log.active.as_ref().expect("one").segment.base;
    assert!(!log.roll_overdue(Millis(start + active.0 + 4999)).expect("fine"));
    assert!(log.roll_overdue(Millis(start + active.0 + 5000)).expect("fine"));
    assert!(!log.roll_overdue(Millis(start + active.0 + 50_000)).expect("an empty one stays"));
    assert_eq!(dirt(&log, start + 90_000).upto, log.end());
}

#[test]
fn segments_are_merged_as_far_as_they_fit_and_an_untouched_one_is_left_alone() {
    let mem = Mem::new();
    let mut log = two_of_each(&mem, config());
    let many = log.segment_count();
    let stats = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect("compacted");
    assert!(stats.kept_bytes < stats.read_bytes, "{stats:?}");
    assert!(content(&log).iter().all(|(header, _)| header.count > 0), "no segment without records is left");
    assert!(log.segment_count() < many, "{} segments of {many}", log.segment_count());
    assert!(log.closed.iter().all(|segment| segment.size <= 900));
    // Two whose neighbours do not fit with them.
    for key in [99, 98, 97] {
        append(&mut log, &[rec(0, 0, key, Some(&[1; 700]))], How::Plain, None, 0);
    }
    let mut replaced = || compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect("compacted").replaced;
    assert!((0..6).any(|_| replaced() == 0), "it comes to rest");
    assert_eq!(replaced(), 0);
    assert!(log.closed.iter().filter(|segment| segment.size > 700).count() >= 2);
}

#[test]
fn records_without_a_key_go_and_are_counted() {
    let mem = Mem::new();
    let mut log = new_log(&mem, config());
    append(&mut log, &[Rec::new(0, 0, None, Some(b"old")), rec(1, 0, 1, Some(b"new"))], How::Plain, None, 0);
    append(&mut log, &[rec(0, 0, 2, Some(&[1; 800]))], How::Plain, None, 0);
    let stats = compact(&mut log, &mem, &settings(1 << 16), &[], 0, &mut |_| {}).expect("compacted");
    assert_eq!(stats.keyless, 1);
    assert_eq!(records(&log).iter().map(|r| r.offset).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn log_append_time_and_headers_survive_a_rewrite() {
    let mem = Mem::new();
    let mut log = new_log(&mem, config());
    let mut with_headers = rec(1, 7, 2, Some(b"v"));
    with_headers.headers = vec![(b"h".to_vec(), Some(b"x".to_vec())), (b"i".to_vec(), None)];
    let records = [rec(0, 5, 1, Some(b"gone")), with_headers.clone(), rec(2, 9, 3, None)];
    let bytes = testkit::batch(&records, How::SnappyRaw);
    let bytes = testkit::seal(&bytes[HEADER_SIZE..], |header| {
        *header = BatchHeader::parse(&bytes).expect("a batch");
        header.set_timestamp_type(crate::log::batch::TimestampType::LogAppendTime);
        header.max_timestamp = Millis(5_000_000);
    });
    log.append(BatchHeader::parse(&bytes).expect("a batch"), &bytes[HEADER_SIZE..], Epoch(5), Millis(0)).expect("appended");
    append(&mut log, &[rec(0, 0, 1, Some(&[1; 800]))], How::Plain, None, 0);
    append(&mut log, &[rec(0, 0, 4, Some(&[1; 800]))], How::Plain, None, 0);
    compact(&mut log, &mem, &settings(1 << 16), &[], 50, &mut |_| {}).expect("compacted");
    let range = log.read(Offset(0), 1, log.end()).expect("readable").expect("a batch");
    let mut bytes = vec![0; range.first_batch_len as usize];
    range.file.pread(range.position, &mut bytes).expect("read");
    let header = BatchHeader::parse(&bytes).expect("a batch");
    assert_eq!((header.compression(), header.count), (Some(Compression::Snappy), 2), "its own codec");
    assert_eq!((header.delete_horizon(), header.max_timestamp), (Some(Millis(150)), Millis(5_000_000)));
    let payload = inflate(Compression::Snappy, &bytes[HEADER_SIZE..], 1000).expect("whole");
    let kept = testkit::read(&payload, 2).expect("records");
    assert_eq!(kept[0].headers, with_headers.headers);
    assert!(kept.iter().all(|r| 150 + r.timestamp_delta == 5_000_000), "{kept:?}");
    assert_eq!(log.offset_for_timestamp(Millis(5_000_000)).expect("readable").map(|at| at.offset), Some(Offset(1)));
}

/// Apache Kafka leaves a segment without a byte where compaction took everything; a topic that is not compacted has no such segments.
#[test]
fn recovery_goes_on_behind_a_segment_that_compaction_emptied() {
    for compact in [true, false] {
        let mem = Mem::new();
        let mut log = two_of_each(&mem, config());
        let (emptied, behind) = (path(&log, 1), log.closed[2].base);
        let all = records(&log);
        let gone = log.closed[1].base.0..behind.0;
        log.close().expect("closed");
        crate::log::storage::replace_file(&mem, &emptied, &[], true).expect("emptied");
        let config = LogConfig { compact, ..config() };
        let files = Files::new(mem.clone(), 3);
        let opened = Log::open(&files, DIR.into(), hints(false, Offset(0), Offset(0)), Arc::new(config), Millis(0), &mut |_| {});
        let opened = opened.expect("opened");
        if compact {
            assert_eq!(opened.cut, None);
            let left: Vec<Known> = all.into_iter().filter(|record| !gone.contains(&record.offset)).collect();
            assert_eq!(records(&opened.log), left);
        } else {
            let cut = opened.cut.expect("the rest is not to be trusted");
            assert!(cut.why.contains("empty"), "{}", cut.why);
            assert_eq!(opened.log.end().0, gone.start);
        }
    }
}
