//! Transactions: records of aborted ones go at once, markers when nothing is left that needs them.

use super::*;
use crate::log::builder::BatchBuilder;
use crate::log::compact::txn::{AbortedTxn, encode, read_indexes};
use crate::log::segment::path_of;
use crate::log::storage::replace_file;

const ABORTED: i64 = 11;
const COMMITTED: i64 = 12;

fn push(log: &mut Log<Mem>, batch: BatchBuilder) {
    let bytes = batch.finish().expect("records");
    let header = BatchHeader::parse(&bytes).expect("a batch");
    log.append(header, &bytes[HEADER_SIZE..], Epoch(5), Millis(0)).expect("appended");
}

fn batch(producer: i64) -> BatchBuilder {
    BatchBuilder::new(Offset(0), Epoch(5), Millis(1_000_000)).transactional().producer(producer, 0, 0)
}

fn records_of(log: &mut Log<Mem>, producer: i64, keys: &[u8], value: &[u8]) {
    let mut batch = batch(producer);
    keys.iter().for_each(|key| batch.push(0, Some(&[*key]), Some(value)));
    push(log, batch);
}

fn marker(log: &mut Log<Mem>, producer: i64, kind: u8) {
    let mut batch = BatchBuilder::new(Offset(0), Epoch(5), Millis(1_000_000)).control().transactional().producer(producer, 0, -1);
    batch.push(0, Some(&[0, 0, 0, kind]), Some(&[0, 0, 0, 0, 0, 1]));
    push(log, batch);
}

/// Base offsets, whether control, number of records and horizon of the batches below the active segment.
fn shape(log: &Log<Mem>) -> Vec<(i64, bool, i32, Option<i64>)> {
    let active = log.active.as_ref().expect("one").segment.base;
    let below = content(log).into_iter().filter(|(header, _)| header.base_offset < active);
    below.map(|(h, _)| (h.base_offset.0, h.is_control(), h.count, h.delete_horizon().map(|at| at.0))).collect()
}

#[test]
fn aborted_records_go_and_markers_follow() {
    let mem = Mem::new();
    let mut log = new_log(&mem, LogConfig { segment_bytes: 500, ..config() });
    append(&mut log, &[rec(0, 0, 1, Some(b"before"))], How::Plain, None, 0);
    records_of(&mut log, ABORTED, &[1, 2], b"never");
    records_of(&mut log, COMMITTED, &[3], b"yes");
    marker(&mut log, ABORTED, 0);
    marker(&mut log, COMMITTED, 1);
    append(&mut log, &[rec(0, 0, 9, Some(&[0; 400]))], How::Plain, None, 0);
    let entry = AbortedTxn { producer_id: ABORTED, first: Offset(1), last: Offset(4), stable: Offset(3) };
    replace_file(&mem, &path_of(DIR.as_ref(), Offset(0), "txnindex"), &encode(&[entry]), false).expect("written");
    let step = |log: &mut Log<Mem>, now: i64, producers: &[LastRecord]| {
        log.set_cleaned_to(Offset(0));
        compact(log, &mem, &settings(1 << 16), producers, now, &mut |_| {}).expect("compacted")
    };

    step(&mut log, 1000, &[]);
    let data = |at, count| (at, false, count, None);
    // Of the aborted transaction a batch was met, so its marker stays; the committed one has a record.
    assert_eq!(shape(&log), [data(0, 1), data(3, 1), (4, true, 1, None), (5, true, 1, None)]);
    assert_eq!(read_indexes(&mem, DIR.as_ref()).expect("readable"), [entry], "readers must still be told");
    assert_eq!(fold(&records(&log)).get(&vec![1]).map(|(offset, _)| *offset), Some(0), "what was aborted supersedes nothing");

    step(&mut log, 2000, &[]);
    assert_eq!(shape(&log), [data(0, 1), data(3, 1), (4, true, 1, Some(2100)), (5, true, 1, None)], "nothing needs it any more");
    assert_eq!(read_indexes(&mem, DIR.as_ref()).expect("readable"), []);

    step(&mut log, 2099, &[]);
    assert_eq!(shape(&log)[2], (4, true, 1, Some(2100)), "its time is not over");
    step(&mut log, 2100, &[]);
    assert_eq!(shape(&log), [data(0, 1), data(3, 1), (5, true, 1, None)]);
}

#[test]
fn what_a_live_producer_needs_stays() {
    let mem = Mem::new();
    let mut log = new_log(&mem, LogConfig { segment_bytes: 500, ..config() });
    records_of(&mut log, ABORTED, &[1], b"never");
    marker(&mut log, ABORTED, 0);
    append(&mut log, &[rec(0, 0, 1, Some(b"x"))], How::Plain, Some((5, 0)), 0);
    append(&mut log, &[rec(0, 0, 1, Some(b"y"))], How::Plain, None, 0);
    append(&mut log, &[rec(0, 0, 9, Some(&[0; 400]))], How::Plain, None, 0);
    let entry = AbortedTxn { producer_id: ABORTED, first: Offset(0), last: Offset(1), stable: Offset(0) };
    replace_file(&mem, &path_of(DIR.as_ref(), Offset(0), "txnindex"), &encode(&[entry]), false).expect("written");
    let last = |producer_id, last_offset: Option<i64>| LastRecord { producer_id, epoch: 0, last_offset: last_offset.map(Offset) };
    let alive = [last(5, Some(2)), last(ABORTED, Some(0))];
    compact(&mut log, &mem, &settings(1 << 16), &alive, 1000, &mut |_| {}).expect("compacted");
    assert_eq!(shape(&log), [(0, false, 0, None), (1, true, 1, None), (2, false, 0, None), (3, false, 1, None)], "empty, but there");
    let kept = Frame { base: Offset(2), last: Offset(2), producer: (5, 0, 0), epoch: Epoch(5) };
    assert_eq!(content(&log).iter().map(|(header, _)| Frame::of(header)).nth(2), Some(kept));

    // A marker alone that carries the epoch of a producer.
    let marked = [last(ABORTED, None)];
    for now in [2000, 3000, 4000] {
        log.set_cleaned_to(Offset(0));
        compact(&mut log, &mem, &settings(1 << 16), &marked, now, &mut |_| {}).expect("compacted");
    }
    assert_eq!(shape(&log), [(1, true, 0, None), (3, false, 1, None)], "the rest is gone");
}
