//! Disks that are full, lie, or break, one at a time; and time, as far as segments care for it.

use super::*;
use crate::log::error::{LogError, ReadError};
use crate::log::mem::{Crash, Fault};
use crate::log::retention::remove_files;
use crate::log::segment::path_of;
use crate::log::storage::replace_file;

fn try_append(log: &mut Log<Mem>, stamps: &[i64], size: usize, now: i64) -> Result<bool, LogError> {
    let bytes = batch(0, stamps, size);
    let header = BatchHeader::parse(&bytes).unwrap();
    log.append(header, &bytes[HEADER_SIZE..], Epoch(0), Millis(now)).map(|done| done.rolled)
}

fn log_path(base: i64) -> std::path::PathBuf {
    path_of("/logs/t-0".as_ref(), Offset(base), "log")
}

#[test]
fn nothing_is_on_disk_before_the_first_append() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    log.close().unwrap();
    log.flush_indexes().unwrap();
    assert!(log.retention(Millis(0), Offset(0)).unwrap().is_empty());
    assert!(log.sync_target().is_none() && log.read(Offset(0), 1, Offset(0)).unwrap().is_none());
    assert_eq!(mem.list("/logs".as_ref()).unwrap(), []);
    append(&mut log, &[1], 10, 0);
    let mut names: Vec<_> = mem.list("/logs/t-0".as_ref()).unwrap().into_iter().map(|e| e.name).collect();
    names.sort();
    let zero = "00000000000000000000";
    assert_eq!(names, [format!("{zero}.index"), format!("{zero}.log"), format!("{zero}.timeindex"), "partition.metadata".into()]);
}

#[test]
fn a_short_write_goes_on() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    let mut expected = append(&mut log, &[1], 10, 0);
    mem.fail(Fault::ShortWriteAt(mem.changes() + 1, 30));
    mem.fail(Fault::ShortWriteAt(mem.changes() + 2, 40));
    expected.extend(append(&mut log, &[2], 100, 0));
    assert_eq!(read_all(&log, Offset(0), log.end()), expected);
}

#[test]
fn a_full_disk_refuses_appends_only_and_until_there_is_room() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    let mut expected = append(&mut log, &[1], 400, 0);
    for free in [0, 1, 60, 61, 300] {
        mem.fail(Fault::Free(free));
        let full = try_append(&mut log, &[2], 400, 0);
        assert!(matches!(full, Err(LogError::Full { .. })), "{full:?}");
        assert!(full.unwrap_err().to_string().contains("/logs/t-0"));
        mem.heal();
        assert_eq!((log.end(), read_all(&log, Offset(0), log.end())), (Offset(1), expected.clone()));
        assert_eq!(mem.open(&log_path(0)).unwrap().len().unwrap(), log.size_bytes());
    }
    // Also when it is the index that finds no room.
    expected.extend(append(&mut log, &[2], 400, 0));
    mem.fail(Fault::Free(0));
    assert!(matches!(try_append(&mut log, &[3], 400, 0), Err(LogError::Full { .. })));
    mem.heal();
    expected.extend(append(&mut log, &[3], 400, 0));
    assert_eq!(read_all(&log, Offset(0), log.end()), expected);
    assert_eq!(log.segment_count(), 2);
}

#[test]
fn a_write_that_cannot_be_undone_breaks_the_log_for_appends() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    let expected = append(&mut log, &[1], 100, 0);
    mem.fail(Fault::Free(50));
    mem.fail(Fault::SetLen);
    assert!(try_append(&mut log, &[2], 100, 0).is_err());
    mem.heal();
    let broken = try_append(&mut log, &[2], 100, 0).unwrap_err();
    assert!(matches!(&broken, LogError::Broken { dir } if dir == std::path::Path::new("/logs/t-0")), "{broken}");
    assert_eq!(read_all(&log, Offset(0), log.end()), expected);
    // Opened again, it is whole.
    mem.restart(Crash::Process);
    let opened =
        Log::open(&files, "/logs/t-0".into(), hints(false, Offset(0), Offset(0)), Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
    assert_eq!(opened.cut.map(|c| (c.position, c.bytes)), Some((expected.len() as u64, 50)));
    assert_eq!(read_all(&opened.log, Offset(0), opened.log.end()), expected);
}

#[test]
fn read_and_sync_errors_say_where() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    for i in 0..200 {
        append(&mut log, &[i], 10, 0);
    }
    mem.fail(Fault::Read(log_path(0)));
    let error = log.read(Offset(1), 1, log.end()).unwrap_err();
    assert!(matches!(&error, ReadError::Log(LogError::Io { .. })) && error.to_string().contains("/logs/t-0"), "{error}");
    assert!(log.read(log.end() + -1, 1, log.end()).unwrap().is_some(), "other segments are read");
    mem.heal();
    mem.fail(Fault::Sync);
    let error = log.sync_target().unwrap().sync().unwrap_err();
    assert!(error.to_string().starts_with("cannot sync /logs/t-0"), "{error}");
    assert_eq!(log.recovery_point(), Offset(0));
}

#[test]
fn a_flipped_bit_past_the_recovery_point_cuts_the_log_there() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    let batches: Vec<_> = (0..9).map(|i| append(&mut log, &[i], 300, 0)).collect();
    assert_eq!(log.segment_count(), 3);
    let whole = log.size_bytes();
    mem.flip_bit(&log_path(3), (batches[0].len() as u64 + 200) * 8).unwrap();
    let open = |recovery_point, clean| {
        let hints = hints(clean, Offset(recovery_point), Offset(0));
        Log::open(&files, "/logs/t-0".into(), hints, Arc::new(config()), Millis(0), &mut |_| {}).unwrap()
    };
    let trusting = open(0, true);
    assert_eq!((trusting.cut, trusting.log.end(), trusting.walked <= whole / 3), (None, Offset(9), true));
    assert_eq!(open(6, false).log.end(), Offset(9), "below the recovery point nothing is looked at");
    let cut = open(0, false);
    let found = cut.cut.unwrap();
    assert_eq!((found.path.clone(), found.position), (log_path(3), batches[0].len() as u64));
    assert!(found.why.contains("checksum"), "{found:?}");
    assert_eq!(cut.log.end(), Offset(4));
    assert_eq!(read_all(&cut.log, Offset(0), Offset(9)), batches[..4].concat());
    assert_eq!(cut.dropped.paths.len(), 3, "{:?}", cut.dropped);
    remove_files(&mem, &cut.dropped).unwrap();
    assert_eq!(mem.list("/logs/t-0".as_ref()).unwrap().iter().filter(|e| e.name.ends_with("log")).count(), 2);
}

#[test]
fn damage_to_what_was_on_disk_is_an_error_and_destroys_nothing() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    for i in 0..9 {
        append(&mut log, &[i], 300, 0);
    }
    log.close().unwrap();
    // A length field in the first segment, whose index is lost.
    mem.flip_bit(&log_path(0), 8 * 8).unwrap();
    mem.remove(&path_of("/logs/t-0".as_ref(), Offset(0), "index")).unwrap();
    let hints = hints(true, Offset(9), Offset(0));
    let size = mem.open(&log_path(0)).unwrap().len().unwrap();
    let opened = Log::open(&files, "/logs/t-0".into(), hints, Arc::new(config()), Millis(0), &mut |_| {});
    assert!(matches!(opened.map(|_| ()), Err(LogError::Corrupt { position: 0, .. })));
    assert_eq!(mem.open(&log_path(0)).unwrap().len().unwrap(), size);
}

#[test]
fn a_segment_that_lost_unsynced_data_is_the_last_one() {
    for (left, recovery_point) in [(1, 3), (0, 0)] {
        let (mem, files) = mem();
        let mut log = new_log(&files, config());
        let batches: Vec<_> = (0..9).map(|i| append(&mut log, &[i], 300, 0)).collect();
        mem.open(&log_path(3)).unwrap().set_len(left * batches[0].len() as u64).unwrap();
        let hints = hints(false, Offset(recovery_point), Offset(0));
        let opened = Log::open(&files, "/logs/t-0".into(), hints, Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
        assert!(opened.cut.is_some());
        assert_eq!(opened.log.end(), Offset(3 + left as i64));
        assert_eq!(read_all(&opened.log, Offset(0), opened.log.end()), batches[..3 + left as usize].concat());
    }
}

#[test]
fn a_segment_is_closed_when_its_records_are_old_enough() {
    let (_, files) = mem();
    let mut log = new_log(&files, LogConfig { segment_ms: 100, ..config() });
    // By record time if there is one, whatever the clock says.
    let rolled: Vec<_> = [(50, 0), (150, 5000), (151, 0), (20, 9000), (251, 0), (252, 0)]
        .into_iter()
        .map(|(stamp, now)| try_append(&mut log, &[stamp], 1, now).unwrap())
        .collect();
    assert_eq!(rolled, [false, false, true, false, false, true]);
    // By the clock if there is none.
    let rolled: Vec<_> = [(-1, 1000), (-1, 1100), (-1, 1101)].map(|(stamp, now)| try_append(&mut log, &[stamp], 1, now).unwrap()).into();
    assert_eq!(rolled, [false, false, false], "the segment's first record has a time");
    log.roll(log.end(), Millis(2000)).unwrap();
    let rolled: Vec<_> = [(-1, 2000), (-1, 2100), (-1, 2101)].map(|(stamp, now)| try_append(&mut log, &[stamp], 1, now).unwrap()).into();
    assert_eq!(rolled, [false, false, true]);
    // The first record's time is also known after a restart.
    log.set_config(Arc::new(LogConfig { segment_ms: 100, ..config() }));
    try_append(&mut log, &[5000], 1, 0).unwrap();
    log.close().unwrap();
    let config = Arc::new(LogConfig { segment_ms: 2000, ..config() });
    let mut log = Log::open(&files, "/logs/t-0".into(), hints(true, Offset(0), Offset(0)), config, Millis(2101), &mut |_| {}).unwrap().log;
    assert!(!try_append(&mut log, &[6000], 1, 4101).unwrap());
    assert!(try_append(&mut log, &[6000], 1, 4102).unwrap());
}

#[test]
fn a_segment_is_closed_when_an_index_is_full_or_an_offset_is_too_far() {
    let (_, files) = mem();
    let mut log = new_log(&files, LogConfig { segment_index_bytes: 24, index_interval_bytes: 0, segment_bytes: 1 << 20, ..config() });
    // Two entries in the time index would be its limit, of which one is reserved.
    let rolled: Vec<_> = (0..6).map(|i| try_append(&mut log, &[i], 1, 0).unwrap()).collect();
    assert_eq!(rolled, [false, false, true, false, true, false]);
    let far = batch(i64::from(i32::MAX) + 5, &[1], 1);
    assert!(log.append_as_follower(&far, Millis(0)).unwrap().unwrap().rolled);
    log.truncate_fully_and_start_at(Offset(0), Millis(0)).unwrap();
    let done = log.append_as_follower(&far, Millis(0)).unwrap().unwrap();
    assert_eq!((done.rolled, done.segment, log.segment_count()), (false, Offset(i64::from(i32::MAX) + 5), 1), "an empty one is replaced");
}

#[test]
fn retention_by_age_goes_by_record_time_then_by_the_files_time() {
    let (mem, files) = mem();
    let mut log = new_log(&files, LogConfig { retention_ms: 1000, ..config() });
    mem.set_now(Millis(7000));
    for stamp in [100, 900, 5000, -1, -1, 9000] {
        append(&mut log, &[stamp], 700, 0);
    }
    assert_eq!(log.segment_count(), 6);
    let mut kept = |now: i64, high_watermark: i64| {
        let files = log.retention(Millis(now), Offset(high_watermark)).unwrap();
        remove_files(&mem, &files).unwrap();
        (log.start().0, log.segment_count())
    };
    assert_eq!(kept(1100, 6), (0, 6));
    assert_eq!(kept(1101, 6), (1, 5));
    assert_eq!(kept(8000, 1), (1, 5), "not beyond the high watermark");
    assert_eq!(kept(8000, 6), (3, 3), "those without timestamps are as old as their files");
    assert_eq!(kept(8001, 6), (5, 1));
    assert_eq!(kept(10_001, 5), (5, 1));
    assert_eq!(kept(10_001, 6), (6, 1), "a new segment takes the place of the last");
    assert_eq!(kept(i64::MAX, 6), (6, 1), "which stays");
    assert_eq!(log.size_bytes(), 0);
    append(&mut log, &[1], 1, 0);
    assert_eq!((log.start(), log.end()), (Offset(6), Offset(7)));
}

#[test]
fn without_delete_only_the_log_start_removes_segments() {
    let (mem, files) = mem();
    let mut log = new_log(&files, LogConfig { retention_ms: 0, retention_bytes: 0, delete: false, ..config() });
    for stamp in 0..4 {
        append(&mut log, &[stamp], 700, 0);
        log.write_snapshot(log.end(), b"x").unwrap();
    }
    assert!(log.retention(Millis(1 << 40), Offset(4)).unwrap().is_empty());
    let dropped = log.advance_start(Offset(2)).unwrap();
    assert_eq!(dropped.paths.len(), 6);
    assert!(mem.list("/logs/t-0".as_ref()).unwrap().iter().filter(|e| e.name.ends_with(".deleted")).count() == 6);
    assert_eq!(log.snapshot_offsets().unwrap(), [Offset(2), Offset(3), Offset(4)]);
    assert_eq!(log.read_snapshot(Offset(3)).unwrap(), b"x");
    // What was set aside goes at the next start, if not before.
    log.close().unwrap();
    Log::open(&files, "/logs/t-0".into(), hints(true, Offset(0), Offset(2)), Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
    assert!(mem.list("/logs/t-0".as_ref()).unwrap().iter().all(|e| !e.name.ends_with(".deleted")));
}

#[test]
fn a_sync_that_a_truncation_overtook_proves_nothing() {
    let (_, files) = mem();
    let mut log = new_log(&files, config());
    for stamp in 0..4 {
        append(&mut log, &[stamp], 700, 0);
    }
    let target = log.sync_target().unwrap();
    assert_eq!((target.upto(), target.file_count()), (Offset(4), 4 + 3 * 2 + 1 + 2));
    target.sync().unwrap();
    log.truncate_to(Offset(2), Millis(0)).unwrap();
    append(&mut log, &[9], 10, 0);
    append(&mut log, &[9], 10, 0);
    log.mark_synced(&target);
    assert_eq!(log.recovery_point(), Offset(0));
    let target = log.sync_target().unwrap();
    append(&mut log, &[9], 10, 0);
    target.sync().unwrap();
    log.mark_synced(&target);
    assert_eq!(log.recovery_point(), Offset(4));
    assert_eq!(log.sync_target().unwrap().file_count(), 1, "one file for the rest");
}

#[test]
fn a_log_that_ends_below_its_start_is_emptied() {
    let (_, files) = mem();
    let mut log = new_log(&files, config());
    append(&mut log, &[1], 10, 0);
    log.close().unwrap();
    let opened =
        Log::open(&files, "/logs/t-0".into(), hints(true, Offset(1), Offset(50)), Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
    assert_eq!((opened.log.start(), opened.log.end(), opened.dropped.paths.len()), (Offset(50), Offset(50), 3));
}

#[test]
fn truncating_below_the_start_starts_anew() {
    let (_, files) = mem();
    let mut log = new_log(&files, config());
    for i in 0..5 {
        append(&mut log, &[i], 500, 0);
    }
    log.advance_start(Offset(4)).unwrap();
    log.truncate_to(Offset(1), Millis(0)).unwrap();
    assert_eq!((log.start(), log.end(), log.size_bytes()), (Offset(1), Offset(1), 0));
    append(&mut log, &[1], 5, 0);
    assert_eq!(log.end(), Offset(2));
}

#[test]
fn the_topic_id_is_kept_with_the_log() {
    let (mem, files) = mem();
    let mut log = new_log(&files, config());
    log.materialise(Millis(0)).unwrap();
    log.close().unwrap();
    let opened =
        Log::open(&files, "/logs/t-0".into(), hints(true, Offset(0), Offset(0)), Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
    assert_eq!(opened.log.topic_id(), Id(7));
    // A power cut may have torn the file, as it is only synced with the first data; after an orderly stop that is an error.
    let path = std::path::Path::new("/logs/t-0/partition.metadata");
    replace_file(&mem, path, &[0; 30], false).unwrap();
    let open = |clean| {
        let hints = hints(clean, Offset(0), Offset(0));
        Log::open(&files, "/logs/t-0".into(), hints, Arc::new(config()), Millis(0), &mut |_| {}).map(|o| o.log.topic_id())
    };
    assert!(matches!(open(true), Err(LogError::BadFile { .. })));
    assert!(matches!(open(false), Ok(Id::ZERO)));
    log.adopt_topic_id(Id(8)).unwrap();
    assert!(matches!(open(true), Ok(Id(8))));
}

#[test]
fn a_compaction_that_a_crash_interrupted_is_finished_or_forgotten() {
    // Which suffix the compacted copy of segment [0, 4) has got to, and whether a later copy was still being written.
    for (suffix, later, taken) in [("swap", false, true), ("cleaned", false, false), ("swap", true, true)] {
        let (mem, files) = mem();
        let mut log = new_log(&files, config());
        let batches: Vec<_> = (0..6).map(|i| append(&mut log, &[i], 700, 0)).collect();
        log.close().unwrap();
        let put = |name: &str, bytes: &[u8]| replace_file(&mem, &std::path::Path::new("/logs/t-0").join(name), bytes, false).unwrap();
        let compacted = [batches[1].clone(), batch(3, &[3], 10)].concat();
        put(&format!("{:020}.log.{suffix}", 0), &compacted);
        put(&format!("{:020}.index.{suffix}", 0), &[]);
        put(&format!("{:020}.timeindex.{suffix}", 0), &[0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3]);
        if later {
            put(&format!("{:020}.log.cleaned", 4), &batch(5, &[5], 5));
            put(&format!("{:020}.log.swap", 5), &batch(5, &[5], 5));
        }
        let hints = hints(false, Offset(6), Offset(0));
        let opened = Log::open(&files, "/logs/t-0".into(), hints, Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
        let kept = if taken { [compacted, batches[4..].concat()].concat() } else { batches.concat() };
        assert_eq!(read_all(&opened.log, Offset(0), Offset(6)), kept, "{suffix} {later}");
        assert!(mem.list("/logs/t-0".as_ref()).unwrap().iter().all(|e| !e.name.ends_with("swap") && !e.name.ends_with("cleaned")));
    }
}
