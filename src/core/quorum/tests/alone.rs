//! A quorum of one: it elects itself without a message, and has no timer once it leads.

use proptest::prelude::*;

use super::*;

const ME: BrokerId = BrokerId(1);

fn stored(epoch: i32, leader: Option<BrokerId>, voted: Option<BrokerId>) -> ElectionState {
    ElectionState { epoch: Epoch(epoch), leader, voted: voted.map(|id| (id, Id::ZERO)) }
}

fn start(end: i64, last_epoch: i32, stored: ElectionState) -> (Node, Vec<Effect>) {
    let node = Node::start(config(1, &[1]), log(end, last_epoch), stored);
    (node.0, node.1)
}

fn leader_change() -> LeaderChange {
    LeaderChange { leader: ME, voters: vec![ME], granting: vec![ME] }
}

#[test]
fn the_only_voter_leads_when_its_first_record_is_on_disk() {
    let (mut quorum, mut fx) = start(0, 0, ElectionState::default());
    let epoch = Epoch(1);
    let elected = [
        Effect::PersistState(stored(1, Some(ME), None)),
        Effect::AppendLeaderChange { epoch, offset: Offset(0), record: leader_change() },
        Effect::Flush { upto: Offset(1), generation: 0 },
    ];
    assert_eq!(fx, elected);
    assert_eq!((quorum.high_watermark(), quorum.log_end(), quorum.leader()), (None, Offset(1), Some(ME)));
    fx.clear();
    quorum.flushed(1, &mut fx);
    assert_eq!(fx, [Effect::Committed { upto: Offset(1) }, Effect::BecameLeader { epoch }]);
}

#[test]
fn every_start_has_an_epoch_of_its_own() {
    let cases = [
        (stored(4, Some(ME), None), 4, 5),
        (stored(4, None, Some(ME)), 3, 5),
        (stored(4, Some(BrokerId(9)), Some(BrokerId(9))), 4, 5),
        (stored(4, None, None), 7, 8),
        (ElectionState::default(), 3, 4),
    ];
    for (state, last_epoch, expected) in cases {
        let (quorum, fx) = start(10, last_epoch, state);
        assert_eq!(quorum.epoch(), Epoch(expected), "{state:?}");
        assert_eq!(fx[0], Effect::PersistState(stored(expected, Some(ME), None)), "persisted before it shows");
    }
    let mut chance = Seeded(1);
    let mut cx = Cx { now: Millis(0), chance: &mut chance, fx: &mut Vec::new() };
    let last = Quorum::start(config(1, &[1]), log(0, 0), stored(i32::MAX, None, None), &mut cx);
    assert_eq!(last.err(), Some(EpochsExhausted(Epoch(i32::MAX))));
}

#[test]
fn one_flush_at_a_time_takes_all_that_came_in_between() {
    let (mut quorum, mut fx) = start(0, 0, ElectionState::default());
    fx.clear();
    assert_eq!(quorum.append(3, &mut fx), Ok((Epoch(1), Offset(1))));
    assert_eq!(quorum.append(2, &mut fx), Ok((Epoch(1), Offset(4))));
    assert_eq!(fx, [], "the flush of the LeaderChange still runs");
    quorum.flushed(1, &mut fx);
    let first =
        [Effect::Committed { upto: Offset(1) }, Effect::BecameLeader { epoch: Epoch(1) }, Effect::Flush { upto: Offset(6), generation: 0 }];
    assert_eq!(fx, first);
    fx.clear();
    quorum.flushed(6, &mut fx);
    assert_eq!(fx, [Effect::Committed { upto: Offset(6) }]);
    assert_eq!(quorum.voters(), [VoterView { id: ME, directory: Id(500), log_end: Offset(6) }]);
}

#[test]
fn who_resigned_takes_no_more_and_commits_no_more() {
    let (mut quorum, mut fx) = start(0, 0, ElectionState::default());
    quorum.flushed(1, &mut fx);
    quorum.append(1, &mut fx).unwrap();
    fx.clear();
    quorum.resign(&mut fx);
    quorum.resign(&mut fx);
    assert_eq!(fx, [Effect::Resigned { epoch: Epoch(1) }]);
    assert_eq!(quorum.append(1, &mut fx), Err(NotLeader { epoch: Epoch(1), leader: None }));
    fx.clear();
    quorum.flushed(2, &mut fx);
    assert_eq!((fx.as_slice(), quorum.high_watermark()), (&[] as &[Effect], Some(Offset(1))));
}

proptest! {
    /// Appends and flushes in any order: only what is on disk is committed, all of it is in the end, and one flush runs at a time.
    #[test]
    fn committed_is_what_is_on_disk(begin in 0i64..50, steps in proptest::collection::vec(proptest::option::of(1i64..5), 0..60)) {
        let (mut quorum, mut fx) = start(begin, 1, ElectionState::default());
        let (mut end, mut on_disk, mut committed) = (begin + 1, begin, 0);
        let mut asked: Vec<Offset> = Vec::new();
        let drain = std::iter::repeat_n(None, 3);
        for step in std::iter::once(None).chain(steps).chain(drain) {
            for effect in fx.drain(..) {
                match effect {
                    Effect::Flush { upto, .. } => asked.push(upto),
                    Effect::Committed { upto } => {
                        prop_assert!(upto.0 > committed && upto.0 <= on_disk);
                        committed = upto.0;
                    }
                    _ => {}
                }
            }
            prop_assert!(asked.len() <= 1);
            match step {
                Some(count) => {
                    prop_assert_eq!(quorum.append(count, &mut fx), Ok((Epoch(2), Offset(end))));
                    end += count;
                }
                None => if let Some(upto) = asked.pop() {
                    on_disk = upto.0;
                    quorum.flushed(upto.0, &mut fx);
                }
            }
        }
        prop_assert_eq!((on_disk, quorum.high_watermark()), (end, Some(Offset(end))));
    }
}
