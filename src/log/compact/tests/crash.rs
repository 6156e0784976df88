//! A crash at every change that a compaction makes.

use super::*;
use crate::log::mem::{Crash, Fault};

/// Appends enough for several segments, all of it on the disk: keys that come again, tombstones, several codecs.
fn fill(log: &mut Log<Mem>, round: i64) -> Vec<Known> {
    let mut all = Vec::new();
    for i in 0..8u8 {
        let value = [i, round as u8];
        let records = [
            rec(0, 10 * round + i64::from(i), i % 5, Some(&value)),
            rec(1, 3, 20 + i, (i % 3 > 0).then_some(&[7; 90][..])),
            rec(2, 5, 9, None),
        ];
        let how = [How::Plain, How::Zstd, How::Lz4, How::Gzip][usize::from(i % 4)];
        let header = append(log, &records, how, Some((3, 24 * round as i32 + 3 * i32::from(i))), 0);
        all.extend(records.map(|r| Known {
            offset: header.base_offset.0 + i64::from(r.offset_delta),
            stamp: header.base_timestamp.0 + r.timestamp_delta,
            key: r.key,
            value: r.value,
        }));
    }
    let target = log.sync_target().expect("something to sync");
    target.sync().expect("synced");
    log.mark_synced(&target);
    all
}

/// Two rounds of appending and compacting, the second of which drops tombstones; the machine dies at change `n` of the compactions.
fn run(n: u64) -> (Mem, Vec<Known>, bool) {
    let mem = Mem::new();
    let mut log = new_log(&mem, config());
    let mut all = Vec::new();
    let mut made = 0;
    for round in 0..2 {
        all.extend(fill(&mut log, round));
        let before = mem.changes();
        mem.fail(Fault::CrashAt(before + n.saturating_sub(made).max(1)));
        if made >= n {
            mem.heal();
        }
        let done = compact(&mut log, &mem, &settings(1 << 16), &[], 1000 + 500 * round, &mut |_| {});
        assert_eq!(done.is_err(), mem.has_crashed(), "{done:?}");
        if done.is_err() {
            return (mem, all, false);
        }
        mem.heal();
        made += mem.changes() - before;
    }
    (mem, all, true)
}

#[test]
fn whatever_change_a_crash_interrupts_the_table_is_the_same() {
    for n in 1.. {
        let mut finished = false;
        for crash in [Crash::Process, Crash::Power, Crash::Torn(n)] {
            let (mem, all, done) = run(n);
            finished = done;
            mem.restart(crash);
            let what = format!("change {n}, {crash:?}");
            let open = || {
                let files = Files::new(mem.clone(), 3);
                let opened = Log::open(&files, DIR.into(), hints(false, Offset(0), Offset(0)), Arc::new(config()), Millis(0), &mut |_| {});
                opened.expect("opened")
            };
            let opened = open();
            assert_eq!(opened.cut, None, "{what}");
            let mut log = opened.log;
            let found = records(&log);
            assert_eq!(fold(&found), fold(&all), "{what}");
            assert!(found.iter().all(|record| all.contains(record)), "{what}");
            assert_eq!(log.end().0, all.len() as i64, "{what}");
            let names = names(&mem);
            assert!(
                names.iter().all(|name| !name.ends_with(".cleaned") && !name.ends_with(".swap") && !name.ends_with(".deleted")),
                "{what}: {names:?}"
            );
            // And it can be compacted from the start.
            let stats = compact(&mut log, &mem, &settings(1 << 16), &[], 9000, &mut |_| {}).expect("compacted");
            assert_eq!(fold(&records(&log)), fold(&all), "{what}");
            let below = records(&log).iter().filter(|r| r.offset < stats.cleaned_to.0).count();
            assert!(below <= 22, "{what}: {below} records are left");
            assert_eq!(records(&open().log), records(&log), "{what}: after a restart");
        }
        if finished {
            assert!(n > 60, "the compactions make only {n} changes");
            return;
        }
    }
}
