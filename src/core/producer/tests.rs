//! Timelines and a naive model for `producer`.

use super::*;
use proptest::prelude::*;

const MAX: i32 = i32::MAX;
const DAY: i64 = 86_400_000;

fn batch(base_sequence: i32, count: i32) -> ProducerBatch {
    ProducerBatch { producer_id: 7, epoch: 0, base_sequence, offset_delta: count - 1 }
}

/// Judges and, if it is fresh, appends at `end`; returns the base offset or None.
fn send(p: &mut Producers, end: &mut i64, b: ProducerBatch) -> Option<i64> {
    match p.check(&b) {
        Verdict::Fresh => {
            let base = *end;
            p.appended(&b, Offset(base), Millis(base * 10), Millis(0));
            *end += i64::from(b.offset_delta) + 1;
            Some(base)
        }
        Verdict::Duplicate { base_offset, last_offset, timestamp } => {
            assert_eq!(last_offset - base_offset, i64::from(b.offset_delta));
            assert_eq!(timestamp, Millis(base_offset.0 * 10));
            Some(base_offset.0)
        }
        Verdict::Refused(_) => None,
    }
}

#[test]
fn sequences_wrap_after_the_largest() {
    let (mut p, mut end) = (Producers::new(), 0);
    assert_eq!([MAX - 1, MAX, 0, 1].map(|s| send(&mut p, &mut end, batch(s, 1))), [Some(0), Some(1), Some(2), Some(3)]);
    let (mut p, mut end) = (Producers::new(), 0);
    assert_eq!(send(&mut p, &mut end, batch(MAX - 1, 4)), Some(0));
    assert_eq!(send(&mut p, &mut end, batch(MAX - 1, 4)), Some(0), "the same again");
    assert_eq!(send(&mut p, &mut end, batch(2, 3)), Some(4), "2^31-2, 2^31-1, 0, 1, then 2");
    let (mut p, mut end) = (Producers::new(), 0);
    assert_eq!([MAX, 1, MAX - 3, 0].map(|s| send(&mut p, &mut end, batch(s, 1))), [Some(0), None, None, Some(1)]);
}

#[test]
fn the_last_five_batches_are_recognised() {
    let (mut p, mut end) = (Producers::new(), 0);
    for i in 0..6 {
        assert_eq!(send(&mut p, &mut end, batch(3 * i, 3)), Some(3 * i64::from(i)));
    }
    for i in [5, 1, 3, 2, 4, 1] {
        assert_eq!(send(&mut p, &mut end, batch(3 * i, 3)), Some(3 * i64::from(i)), "batch {i} again");
    }
    let refused = ProducerRefused::OutOfOrder { producer_id: 7, sent: 0, expected: 18 };
    assert_eq!(p.check(&batch(0, 3)), Verdict::Refused(refused), "the sixth last");
    assert_eq!(send(&mut p, &mut end, batch(15, 2)), None, "same start, other length");
    assert_eq!(send(&mut p, &mut end, batch(19, 1)), None, "a gap");
    assert_eq!((send(&mut p, &mut end, batch(18, 1)), end), (Some(18), 19));
}

#[test]
fn epochs_only_rise_and_start_at_0() {
    let (mut p, mut end) = (Producers::new(), 0);
    let with = |epoch, base_sequence| ProducerBatch { epoch, ..batch(base_sequence, 1) };
    assert_eq!(send(&mut p, &mut end, with(3, 500)), Some(0), "of an unknown producer any start is taken");
    let stale = ProducerRefused::StaleEpoch { producer_id: 7, sent: 2, current: 3 };
    assert_eq!(p.check(&with(2, 501)), Verdict::Refused(stale));
    let jump = ProducerRefused::OutOfOrder { producer_id: 7, sent: 501, expected: 0 };
    assert_eq!(p.check(&with(4, 501)), Verdict::Refused(jump));
    assert_eq!(send(&mut p, &mut end, with(4, 0)), Some(1));
    assert_eq!(p.check(&with(3, 500)), Verdict::Refused(ProducerRefused::StaleEpoch { producer_id: 7, sent: 3, current: 4 }));
    assert_eq!(send(&mut p, &mut end, with(4, 1)), Some(2));
    let other = ProducerBatch { producer_id: 8, ..batch(9, 1) };
    assert_eq!(send(&mut p, &mut end, other), Some(3), "producers do not disturb each other");
}

#[test]
fn idle_producers_expire_by_the_brokers_clock() {
    let mut p = Producers::new();
    for (id, at) in [(1, 0), (2, DAY), (3, DAY + 5)] {
        p.appended(&ProducerBatch { producer_id: id, ..batch(0, 1) }, Offset(id), Millis(-1), Millis(at));
    }
    assert_eq!(p.expire(Millis(DAY - 1), DAY), 0);
    assert_eq!(p.expire(Millis(DAY), DAY), 1);
    assert_eq!(p.producers().map(|v| v.producer_id).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(p.check(&ProducerBatch { producer_id: 1, ..batch(77, 1) }), Verdict::Fresh);
    assert_eq!(p.expire(Millis(2 * DAY), DAY), 1);
    assert_eq!(p.len(), 1);
    p.clear();
    assert!(p.is_empty());
}

#[test]
fn the_number_of_producers_is_bounded() {
    let mut p = Producers::new();
    for id in 0..PRODUCERS_MAX as i64 + 1 {
        p.appended(&ProducerBatch { producer_id: id, ..batch(0, 1) }, Offset(id), Millis(0), Millis(id / 1000));
    }
    assert_eq!(p.len(), PRODUCERS_MAX - PRODUCERS_MAX / 8);
    assert_eq!(p.producers().next().map(|v| v.producer_id), Some(PRODUCERS_MAX as i64 / 8 + 1), "the longest idle went");
    assert_eq!(p.producers().last().map(|v| v.producer_id), Some(PRODUCERS_MAX as i64));
}

#[test]
fn a_snapshot_has_the_bytes_that_kafka_writes() {
    let mut p = Producers::new();
    p.appended(&ProducerBatch { producer_id: 0x0102, epoch: 3, base_sequence: 4, offset_delta: 2 }, Offset(100), Millis(9), Millis(9));
    let bytes = p.encode_snapshot();
    let mut expected = vec![0, 1, bytes[2], bytes[3], bytes[4], bytes[5], 0, 0, 0, 1];
    expected.extend([0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 102, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9]);
    expected.extend([255; 12]);
    assert_eq!(bytes, expected);
    assert_eq!(u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]), crc32c::crc32c(&bytes[6..]));
}

#[test]
fn a_snapshot_keeps_the_last_batch_and_what_belongs_to_transactions() {
    let (mut p, mut end) = (Producers::new(), 0);
    for i in 0..3 {
        send(&mut p, &mut end, batch(2 * i, 2));
    }
    let mut bytes = p.encode_snapshot();
    let loaded = Producers::decode_snapshot(&bytes, Millis(0), DAY).unwrap();
    assert_eq!(loaded.producers().collect::<Vec<_>>(), p.producers().collect::<Vec<_>>());
    assert!(matches!(loaded.check(&batch(4, 2)), Verdict::Duplicate { base_offset: Offset(4), .. }));
    assert!(matches!(loaded.check(&batch(2, 2)), Verdict::Refused(_)), "only the last");
    assert_eq!(loaded.check(&batch(6, 1)), Verdict::Fresh);
    assert_eq!(loaded.first_unstable_offset(), None);
    assert!(Producers::decode_snapshot(&bytes, Millis(DAY + 40), DAY).unwrap().is_empty(), "expired meanwhile");

    // An open transaction since offset 2, coordinator epoch 5.
    bytes[44..48].copy_from_slice(&5i32.to_be_bytes());
    bytes[48..56].copy_from_slice(&2i64.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[6..]);
    bytes[2..6].copy_from_slice(&crc.to_be_bytes());
    let mut open = Producers::decode_snapshot(&bytes, Millis(9 * DAY), DAY).unwrap();
    assert_eq!(open.first_unstable_offset(), Some(Offset(2)));
    assert_eq!(open.expire(Millis(9 * DAY), DAY), 0, "not while its transaction is open");
    let view = open.producers().next().unwrap();
    assert_eq!((view.coordinator_epoch, view.txn_first_offset, view.last_sequence), (5, Some(Offset(2)), 5));
    assert_eq!(open.encode_snapshot(), bytes);
}

#[test]
fn damaged_snapshots_are_refused() {
    let mut p = Producers::new();
    assert_eq!(Producers::decode_snapshot(&p.encode_snapshot(), Millis(0), DAY).map(|p| p.len()), Ok(0));
    p.appended(&batch(0, 1), Offset(0), Millis(0), Millis(0));
    let good = p.encode_snapshot();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        assert!(Producers::decode_snapshot(&bad, Millis(0), DAY).is_err(), "byte {at}");
        assert!(Producers::decode_snapshot(&good[..at], Millis(0), DAY).is_err(), "cut at {at}");
    }
    for count in [-1, 0, 2, i32::MAX] {
        let mut bad = good.clone();
        bad[6..10].copy_from_slice(&i32::to_be_bytes(count));
        let crc = crc32c::crc32c(&bad[6..]);
        bad[2..6].copy_from_slice(&crc.to_be_bytes());
        assert!(matches!(Producers::decode_snapshot(&bad, Millis(0), DAY), Err(SnapshotError::Size { .. })), "count {count}");
    }
}

/// What any implementation must do, as slowly as it likes: all batches ever appended, as lists of sequence numbers.
#[derive(Default)]
struct Naive {
    appended: Vec<(i64, i16, Vec<i64>, i64)>,
}

impl Naive {
    fn judge(&self, b: &ProducerBatch) -> Option<Result<i64, ()>> {
        let numbers = Naive::numbers(b);
        let mine: Vec<_> = self.appended.iter().filter(|(id, ..)| *id == b.producer_id).collect();
        let (_, epoch, last, _) = mine.last()?;
        let recent = mine.iter().rev().take_while(|(_, e, ..)| e == epoch).take(5);
        if let Some((.., base)) = recent.clone().find(|(_, e, n, _)| *e == b.epoch && *n == numbers) {
            return Some(Ok(*base));
        }
        let next = if b.epoch == *epoch { (last.last().unwrap() + 1) % (1 << 31) } else { 0 };
        (b.epoch < *epoch || numbers[0] != next).then_some(Err(()))
    }

    fn numbers(b: &ProducerBatch) -> Vec<i64> {
        (0..=i64::from(b.offset_delta)).map(|i| (i64::from(b.base_sequence) + i) % (1 << 31)).collect()
    }
}

proptest! {
    #[test]
    fn agrees_with_a_naive_model(steps in proptest::collection::vec((0i64..3, -1i16..2, -12i32..4, 1i32..4), 1..120)) {
        let (mut p, mut naive, mut end) = (Producers::new(), Naive::default(), 0i64);
        for (id, epoch, back, count) in steps {
            // Near the last batch of that producer, so that every verdict is met often; the first starts shortly before the wrap.
            let last = naive.appended.iter().rfind(|(i, ..)| *i == id);
            let (last_epoch, next) = last.map_or((0, i64::from(MAX) - 20), |(_, e, n, _)| (*e, n.last().unwrap() + 1));
            let start = if epoch > 0 && back < 0 { 0 } else { (next + i64::from(back.min(3) / 2 * 2)).rem_euclid(1 << 31) };
            let b = ProducerBatch { producer_id: id, epoch: (last_epoch + epoch).max(0), base_sequence: start as i32, offset_delta: count - 1 };
            match (p.check(&b), naive.judge(&b)) {
                (Verdict::Fresh, None) => {
                    p.appended(&b, Offset(end), Millis(end), Millis(0));
                    naive.appended.push((id, b.epoch, Naive::numbers(&b), end));
                    end += i64::from(count);
                }
                (Verdict::Duplicate { base_offset, last_offset, timestamp }, Some(Ok(base))) => {
                    prop_assert_eq!((base_offset.0, last_offset.0, timestamp.0), (base, base + i64::from(count) - 1, base));
                }
                (Verdict::Refused(_), Some(Err(()))) => {}
                (ours, theirs) => prop_assert!(false, "{:?}: {:?} but the model says {:?}", b, ours, theirs),
            }
        }
    }
}

#[test]
fn the_last_batch_of_each_producer_is_known() {
    let (mut p, mut end) = (Producers::new(), 0);
    send(&mut p, &mut end, batch(0, 3));
    send(&mut p, &mut end, ProducerBatch { producer_id: 2, epoch: 4, base_sequence: 0, offset_delta: 0 });
    send(&mut p, &mut end, batch(3, 2));
    let below = |offset| p.last_records(Offset(offset)).collect::<Vec<_>>();
    assert_eq!(below(6), [(2, 4, Some(Offset(3))), (7, 0, Some(Offset(5)))]);
    assert_eq!(below(4), [(2, 4, Some(Offset(3))), (7, 0, Some(Offset(2)))], "of the second batch not all lies below");
    assert_eq!(below(3), [(7, 0, Some(Offset(2)))]);
}
