//! Timelines of replication: fetches, divergence, the high watermark, snapshots (`kraft.md` 4 and 6).

use super::elections::{fetch, leader};
use super::*;
use bytes::Bytes;

fn committed(fx: &[Effect]) -> Vec<i64> {
    fx.iter().filter_map(|effect| if let Effect::Committed { upto } = effect { Some(upto.0) } else { None }).collect()
}

fn batch(base: i64, last: i64, epoch: i32) -> BatchMeta {
    BatchMeta { base: Offset(base), last: Offset(last), epoch: Epoch(epoch), size: 10 }
}

fn fetched(epoch: i32, high_watermark: i64, batches: &[BatchMeta]) -> Fetched {
    let records = Records { batches: batches.to_vec(), bytes: Bytes::from(vec![0; 10 * batches.len()]) };
    Fetched { head: head(epoch, Some(3)), high_watermark: Some(Offset(high_watermark)), log_start: Offset(0), detour: None, records }
}

#[test]
fn nothing_is_committed_before_the_epochs_first_record_is() {
    let mut node = leader();
    let fx = node.ask(Request::Fetch(fetch(2, 4, 10, 3)));
    assert_eq!(committed(&fx), [0; 0], "a majority has ten records, of older epochs");
    let mut fx = node.ask(Request::Fetch(fetch(2, 4, 11, 4)));
    assert_eq!(committed(&fx), [0; 0], "not on its own disk");
    node.flushed(11, &mut fx);
    assert_eq!(committed(&fx), [11]);
    assert!(fx.contains(&Effect::BecameLeader { epoch: Epoch(4) }));
    assert_eq!(node.voter_views(Millis(5))[1].replica, VoterView { id: BrokerId(2), directory: Id(2), log_end: Offset(11) });
}

#[test]
fn fetches_are_answered_by_what_the_leader_has() {
    let diverging = |epoch, end| Some(Detour::Diverging { epoch: Epoch(epoch), end: Offset(end) });
    let table = [
        ("all of it", fetch(2, 4, 0, 0), Ok(None)),
        ("from an epoch's bound", fetch(2, 4, 6, 1), Ok(None)),
        ("within an epoch", fetch(2, 4, 8, 3), Ok(None)),
        ("more of an epoch than there is", fetch(2, 4, 8, 1), Ok(diverging(1, 6))),
        ("an epoch that was never here", fetch(2, 4, 9, 2), Ok(diverging(1, 6))),
        ("behind the end", fetch(2, 4, 20, 4), Ok(diverging(4, 11))),
        ("an older epoch", fetch(2, 3, 6, 1), Err(Problem::FencedEpoch)),
        ("a newer epoch", fetch(2, 5, 6, 1), Err(Problem::UnknownEpoch)),
        ("a negative offset", fetch(2, 4, -1, 1), Err(Problem::Invalid)),
        ("an epoch above its own", fetch(2, 4, 6, 5), Err(Problem::Invalid)),
        ("this node's id", fetch(1, 4, 6, 1), Err(Problem::Other)),
    ];
    for (case, request, expected) in table {
        let fx = leader().ask(Request::Fetch(request));
        let got = fx.iter().find_map(|effect| match effect {
            Effect::AnswerFetch { answer, from, upto, .. } => {
                assert_eq!((*from, *upto), (request.offset, Offset(11)), "{case}");
                Some(Ok(answer.detour))
            }
            Effect::Answer { response: Response::Fetch(answer), .. } => Some(answer.head.refused.map_or(Ok(answer.detour), Err)),
            _ => None,
        });
        assert_eq!(got, Some(expected), "{case}");
    }
}

#[test]
fn a_fetch_without_news_waits_for_some() {
    let mut node = leader();
    assert_eq!(node.ask(Request::Fetch(fetch(9, 4, 11, 4))), [], "parked");
    let mut fx = Vec::new();
    node.append(1, &mut fx).unwrap();
    assert!(matches!(fx[0], Effect::AnswerFetch { from: Offset(11), upto: Offset(12), .. }), "{fx:?}");
    let mut node = leader();
    node.ask(Request::Fetch(fetch(9, 4, 11, 4)));
    node.after(499);
    assert!(matches!(answer(&node.after(1)), Response::Fetch(Fetched { head: Head { refused: None, .. }, .. })));
    node.ask(Request::Fetch(fetch(9, 4, 11, 4)));
    let mut fx = Vec::new();
    node.resign(&mut fx);
    assert_eq!(answer(&fx).head().refused, Some(Problem::NotLeader), "nobody is left waiting");
}

#[test]
fn a_follower_acknowledges_what_is_on_its_disk() {
    let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let answer = fetched(3, 12, &[batch(10, 11, 3), batch(12, 12, 3)]);
    let mut fx = node.answered(3, &fx, Ok(Response::Fetch(answer.clone())));
    assert_eq!(fx[0], Effect::Append(answer.records));
    assert_eq!(fx[1], Effect::Flush { upto: Offset(13), generation: 0 });
    assert_eq!((committed(&fx), sent(&fx)), (vec![10], vec![]), "what was here before is on disk");
    fx.clear();
    node.flushed(13, &mut fx);
    assert_eq!((committed(&fx), sent(&fx)), (vec![12], vec![(3, "fetch")]));
}

#[test]
fn what_does_not_continue_the_log_is_left_out() {
    let table: [(&str, Vec<BatchMeta>, usize); 5] = [
        ("a gap", vec![batch(11, 11, 3)], 0),
        ("an overlap", vec![batch(9, 10, 3)], 0),
        ("an epoch to come", vec![batch(10, 10, 3), batch(11, 11, 4)], 1),
        ("an epoch that was", vec![batch(10, 10, 2)], 0),
        ("backwards", vec![batch(10, 8, 3)], 0),
    ];
    for (case, batches, good) in table {
        let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
        let fx = node.answered(3, &fx, Ok(Response::Fetch(fetched(3, 0, &batches))));
        let appended: usize = fx.iter().map(|effect| if let Effect::Append(records) = effect { records.batches.len() } else { 0 }).sum();
        assert_eq!(appended, good, "{case}");
    }
}

#[test]
fn a_follower_cuts_to_where_both_logs_may_agree() {
    let table = [((1, 6), 6), ((1, 4), 4), ((2, 9), 6), ((3, 8), 8), ((0, 0), 0)];
    for ((epoch, end), to) in table {
        let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
        let detour = Some(Detour::Diverging { epoch: Epoch(epoch), end: Offset(end) });
        let fx = node.answered(3, &fx, Ok(Response::Fetch(Fetched { detour, ..fetched(3, 0, &[]) })));
        assert_eq!(fx[0], Effect::Truncate { to: Offset(to) }, "epoch {epoch} ends at {end}");
        assert_eq!(sent(&fx), [(3, "fetch")]);
    }
}

#[test]
fn what_is_committed_is_never_cut() {
    let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let fx = node.answered(3, &fx, Ok(Response::Fetch(fetched(3, 8, &[]))));
    assert_eq!(committed(&fx), [8]);
    let detour = Some(Detour::Diverging { epoch: Epoch(1), end: Offset(6) });
    let fx = node.answered(3, &fx, Ok(Response::Fetch(Fetched { detour, ..fetched(3, 8, &[]) })));
    let (to, committed) = (Offset(6), Offset(8));
    assert_eq!(fx, [Effect::Fatal(Contradiction::CutBelowCommitted { to, committed })]);
}

#[test]
fn a_snapshot_comes_in_parts_and_replaces_the_log() {
    let id = SnapshotId { end: Offset(50), epoch: Epoch(2) };
    let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let fx = node.answered(3, &fx, Ok(Response::Fetch(Fetched { detour: Some(Detour::Snapshot(id)), ..fetched(3, 0, &[]) })));
    assert_eq!(sent(&fx), [(3, "snapshot")]);
    let part = |position, bytes: &'static [u8]| {
        let head = head(3, Some(3));
        Ok(Response::FetchSnapshot(SnapshotPart { head, id, size: 7, position, bytes: Bytes::from_static(bytes) }))
    };
    let fx = node.answered(3, &fx, part(0, b"abcd"));
    assert_eq!(fx[0], Effect::WriteSnapshot { id, position: 0, bytes: Bytes::from_static(b"abcd") });
    let fx = node.answered(3, &fx, part(4, b"efg"));
    assert_eq!(fx[1], Effect::LoadSnapshot { id });
    assert_eq!((node.log_end(), node.high_watermark()), (Offset(50), Some(Offset(50))));
    let Effect::Send { request: Request::Fetch(next), .. } = &fx[2] else { panic!("{fx:?}") };
    assert_eq!((next.offset, next.last_epoch), (Offset(50), Epoch(2)));
}

#[test]
fn a_snapshot_that_is_gone_or_wrong_is_given_up() {
    let id = SnapshotId { end: Offset(50), epoch: Epoch(2) };
    let part = |refused, position| SnapshotPart {
        head: Head { refused, ..head(3, Some(3)) },
        id,
        size: 7,
        position,
        bytes: Bytes::from_static(b"ab"),
    };
    for part in [part(Some(Problem::SnapshotNotFound), 0), part(None, 3)] {
        let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
        let fx = node.answered(3, &fx, Ok(Response::Fetch(Fetched { detour: Some(Detour::Snapshot(id)), ..fetched(3, 0, &[]) })));
        let fx = node.answered(3, &fx, Ok(Response::FetchSnapshot(part)));
        assert_eq!(fx[0], Effect::DropSnapshot { id });
        assert!(!fx.iter().any(|effect| matches!(effect, Effect::WriteSnapshot { .. })));
        assert_eq!(sent(&node.after(20)), [(3, "fetch")], "the next fetch says what to load");
    }
}

#[test]
fn a_leader_serves_parts_of_the_snapshots_it_has() {
    let mut node = leader();
    node.ask(Request::Fetch(fetch(2, 4, 11, 4)));
    node.flushed(11, &mut Vec::new());
    let id = SnapshotId { end: Offset(8), epoch: Epoch(3) };
    node.quorum.snapshot_made(id, 100);
    node.quorum.log_started(Offset(8));
    let ask = |epoch, id, position| {
        Request::FetchSnapshot(SnapshotRequest { replica: BrokerId(9), directory: Id(9), epoch: Epoch(epoch), id, position, max_bytes: 40 })
    };
    let fx = node.ask(ask(4, id, 60));
    assert!(matches!(&fx[0], Effect::AnswerSnapshot { answer: SnapshotPart { size: 100, position: 60, .. }, max_bytes: 40, .. }), "{fx:?}");
    let other = SnapshotId { end: Offset(7), ..id };
    let table = [(3, id, 0, Problem::FencedEpoch), (4, other, 0, Problem::SnapshotNotFound), (4, id, 100, Problem::PositionOutOfRange)];
    for (epoch, id, position, problem) in table {
        assert_eq!(answer(&node.ask(ask(epoch, id, position))).head().refused, Some(problem));
    }
    let detour = |node: &mut Node, offset, epoch| match node.ask(Request::Fetch(fetch(9, 4, offset, epoch))).first() {
        Some(Effect::Answer { response: Response::Fetch(fetched), .. }) => fetched.detour,
        _ => None,
    };
    assert_eq!(detour(&mut node, 0, 0), Some(Detour::Snapshot(id)), "from the beginning");
    assert_eq!(detour(&mut node, 7, 3), Some(Detour::Snapshot(id)), "below the log start");
    assert_eq!(detour(&mut node, 8, 1), Some(Detour::Snapshot(id)), "at it with another past");
    assert_eq!(detour(&mut node, 8, 3), None, "at it with the same");
}
