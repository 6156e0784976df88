//! Fetch sessions as whole conversations, and against a naive model.

use super::super::chance::Seeded;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn key(n: u8) -> Key {
    Key { topic: TopicRef::Name(Arc::from(format!("t{}", n / 4))), partition: i32::from(n % 4) }
}

fn params(offset: i64) -> Params {
    Params { offset: Offset(offset), max_bytes: 1, current_epoch: Epoch::NONE, last_fetched_epoch: Epoch::NONE }
}

fn wanted(keys: &[u8], offset: i64) -> Vec<Wanted> {
    keys.iter().map(|n| Wanted { key: key(*n), params: params(offset), slot: 0 }).collect()
}

fn facts(records: bool, error: bool, high_watermark: i64) -> Facts {
    Facts { records, error, diverging: false, high_watermark: Offset(high_watermark), log_start: Offset(if error { -1 } else { 0 }) }
}

fn ask(session: i32, epoch: i32) -> Ask {
    Ask { session, epoch, by_id: false, follower: false }
}

/// Begins a session over these partitions at high watermark 5.
fn begin(sessions: &mut Sessions, keys: &[u8], follower: bool, now: i64) -> i32 {
    let full = Ask { follower, ..ask(0, 0) };
    let (context, rows) = sessions.begin(full, wanted(keys, 0), [], Millis(now)).expect("a full fetch always begins");
    assert_eq!(context, Context::Full { by_id: false, follower });
    let rows = rows.into_iter().map(|row| (row.key, row.params, facts(false, false, 5)));
    sessions.create((false, follower), rows.collect::<Vec<_>>().into_iter(), Millis(now), &mut Seeded(now as u64))
}

/// Goes on with a session; every partition answers with `facts`. Returns the partitions shown.
fn go_on(sessions: &mut Sessions, id: i32, epoch: i32, named: Vec<Wanted>, forget: &[u8], facts: Facts) -> Result<Vec<Key>, Refused> {
    let (context, rows) = sessions.begin(ask(id, epoch), named, forget.iter().map(|n| key(*n)), Millis(0))?;
    let Context::Incremental { session, next, instance } = context else { return Ok(Vec::new()) };
    let mut answering = sessions.answering(session, next, instance)?;
    Ok(rows.into_iter().filter(|row| answering.shows(row.slot, &facts)).map(|row| row.key).collect())
}

#[test]
fn only_news_is_shown_and_an_error_makes_the_next_row_news() {
    let mut sessions = Sessions::new(10);
    let id = begin(&mut sessions, &[1, 2], false, 0);
    let both = vec![key(1), key(2)];
    let table = [
        (facts(false, false, 5), vec![], "nothing new"),
        (facts(true, false, 5), both.clone(), "records"),
        (facts(false, false, 6), both.clone(), "the high watermark moved"),
        (facts(false, false, 6), vec![], "and was told"),
        (facts(false, true, -1), both.clone(), "an error"),
        (facts(false, true, -1), both.clone(), "is told every time"),
        (facts(false, false, 6), both.clone(), "the error is over"),
        (facts(false, false, 6), vec![], "and that was told"),
        (Facts { log_start: Offset(3), ..facts(false, false, 6) }, both.clone(), "the log start moved"),
        (Facts { diverging: true, log_start: Offset(3), ..facts(false, false, 6) }, both, "a diverging epoch"),
    ];
    for (epoch, (facts, expected, what)) in (1..).zip(table) {
        assert_eq!(go_on(&mut sessions, id, epoch, vec![], &[], facts), Ok(expected), "{what}");
    }
}

#[test]
fn partitions_that_gave_records_are_read_last() {
    let mut sessions = Sessions::new(10);
    let id = begin(&mut sessions, &[1, 2, 3], false, 0);
    let (context, rows) = sessions.begin(ask(id, 1), vec![], [], Millis(0)).expect("the session goes on");
    let Context::Incremental { session, next, instance } = context else { panic!("{context:?}") };
    let mut answering = sessions.answering(session, next, instance).expect("nothing came between");
    for row in &rows {
        answering.shows(row.slot, &facts(row.key != key(2), false, 5));
    }
    let (_, rows) = sessions.begin(ask(id, 2), wanted(&[1, 4], 7), [key(3)], Millis(0)).expect("the session goes on");
    let rows: Vec<_> = rows.into_iter().map(|row| (row.key, row.params.offset.0)).collect();
    assert_eq!(rows, [(key(2), 0), (key(1), 7), (key(4), 7)]);
}

#[test]
fn what_does_not_fit_the_session_is_refused_and_changes_nothing() {
    let mut sessions = Sessions::new(10);
    let id = begin(&mut sessions, &[1], false, 0);
    let quiet = facts(false, false, 5);
    assert_eq!(go_on(&mut sessions, id, 2, wanted(&[2], 0), &[], quiet), Err(Refused::WrongEpoch));
    assert_eq!(go_on(&mut sessions, id ^ 1, 1, vec![], &[], quiet), Err(Refused::UnknownSession));
    let by_id = Ask { by_id: true, ..ask(id, 1) };
    assert_eq!(sessions.begin(by_id, vec![], [], Millis(0)), Err(Refused::TopicNaming));
    assert_eq!(go_on(&mut sessions, id, 1, vec![], &[], quiet), Ok(vec![]), "the session is as it was");

    let (context, _) = sessions.begin(ask(id, 2), vec![], [], Millis(0)).expect("the session goes on");
    sessions.begin(ask(id, 3), vec![], [], Millis(0)).expect("the next request came before the answer");
    let Context::Incremental { session, next, instance } = context else { panic!("{context:?}") };
    assert!(sessions.answering(session, next, instance).is_err());

    assert_eq!(sessions.begin(ask(id, 4), vec![], [key(1)], Millis(0)), Ok((Context::Sessionless, vec![])), "nothing is left");
    assert!(sessions.is_empty());
    let id = begin(&mut sessions, &[1], false, 0);
    assert!(sessions.begin(ask(id, -1), wanted(&[1], 0), [], Millis(0)).is_ok_and(|(context, _)| context == Context::Sessionless));
    assert_eq!(go_on(&mut sessions, id, 1, vec![], &[], quiet), Err(Refused::UnknownSession), "it was closed");
}

#[test]
fn the_epoch_wraps_to_1() {
    assert_eq!((next_epoch(0), next_epoch(1), next_epoch(i32::MAX)), (1, 2, 1));
    let mut sessions = Sessions::new(1);
    let id = begin(&mut sessions, &[1], false, 0);
    sessions.sessions.get_mut(&id).expect("it was just made").epoch = i32::MAX;
    for epoch in [i32::MAX, 1, 2] {
        assert_eq!(go_on(&mut sessions, id, epoch, vec![], &[], facts(false, false, 5)), Ok(vec![]), "epoch {epoch}");
    }
}

#[test]
fn who_is_evicted() {
    let old = EVICTION_MS + 1;
    // (is a follower, partitions, created, used last); the newcomer; whether it gets in.
    let table = [
        ((false, 2, 0, 0), (false, 1, EVICTION_MS), false, "not idle for long enough"),
        ((false, 2, 0, 0), (false, 1, old), true, "idle"),
        ((true, 2, 0, 0), (false, 1, old), true, "idle, even a follower's"),
        ((false, 2, 0, old), (false, 3, old + 1), true, "old and smaller"),
        ((false, 2, 0, old), (false, 2, old + 1), false, "old and as large"),
        ((false, 2, 5, 10), (false, 3, 11), false, "young and smaller"),
        ((false, 9, 5, 10), (true, 1, 11), true, "a follower evicts a consumer of any age and size"),
        ((true, 1, 5, 10), (true, 9, 11), false, "but not a young follower"),
        ((true, 1, 0, old), (true, 2, old + 1), true, "an old follower that is smaller"),
        ((true, 1, 0, old), (false, 9, old + 1), false, "no consumer evicts a follower that is in use"),
    ];
    for ((follower, size, created, used), (new_follower, new_size, now), gets_in, what) in table {
        let mut sessions = Sessions::new(1);
        let keys: Vec<u8> = (0..9).collect();
        let id = begin(&mut sessions, &keys[..size], follower, created);
        if used > created {
            sessions.begin(Ask { follower, ..ask(id, 1) }, vec![], [], Millis(used)).expect("the session goes on");
        }
        let new = begin(&mut sessions, &keys[..new_size], new_follower, now);
        assert_eq!(new != 0, gets_in, "{what}");
        assert_eq!((sessions.len(), sessions.take_evictions()), (1, u64::from(gets_in)), "{what}");
    }
}

#[test]
fn there_is_room_for_so_many_partitions() {
    let mut sessions = Sessions::with_bound(10, 4);
    let id = begin(&mut sessions, &[1, 2, 3], false, 0);
    assert_eq!(begin(&mut sessions, &[1, 2], false, 0), 0);
    assert_ne!(begin(&mut sessions, &[1], false, 0), 0);
    assert_eq!(go_on(&mut sessions, id, 1, wanted(&[1, 2, 3], 7), &[], facts(false, false, 5)), Ok(vec![]), "no more than before");
    assert_eq!(go_on(&mut sessions, id, 2, wanted(&[4], 0), &[], facts(false, false, 5)), Err(Refused::UnknownSession));
    assert_eq!((sessions.len(), sessions.partitions()), (1, 1), "it was closed");
}

/// What a client does, by chance.
#[derive(Debug, Clone)]
enum Step {
    Full { follower: bool, keys: Vec<u8> },
    GoOn { which: usize, epoch_off: bool, keys: Vec<u8>, offset: i64, forget: Vec<u8>, answers: Vec<(bool, bool, i64)> },
    Close { which: usize },
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || {
        vec(0u8..12, 0..6).prop_map(|mut keys| {
            let mut seen = BTreeSet::new();
            keys.retain(|key| seen.insert(*key));
            keys
        })
    };
    prop_oneof![
        3 => (any::<bool>(), keys()).prop_map(|(follower, keys)| Step::Full { follower, keys }),
        8 => (0usize..6, prop::bool::weighted(0.1), keys(), 0i64..9, keys(), vec((any::<bool>(), prop::bool::weighted(0.2), 0i64..3), 12))
            .prop_map(|(which, epoch_off, keys, offset, forget, answers)| Step::GoOn { which, epoch_off, keys, offset, forget, answers }),
        1 => (0usize..6).prop_map(|which| Step::Close { which }),
        2 => (0i64..EVICTION_MS).prop_map(Step::Wait),
    ]
}

/// The most naive cache: lists, searched from the front.
#[derive(Debug)]
struct Naive {
    id: i32,
    follower: bool,
    created: i64,
    used: i64,
    epoch: i32,
    /// Key, offset, told high watermark, told log start.
    rows: Vec<(Key, i64, i64, i64)>,
    /// Whether it may be evicted is judged at each use.
    evictable: bool,
}

impl Naive {
    fn touch(&mut self, now: i64) {
        self.used = now;
        self.evictable = now - self.created > EVICTION_MS;
    }
}

/// Index of the session that goes for a newcomer, by Kafka's rules.
fn victim(all: &[Naive], follower: bool, size: usize, now: i64) -> Option<usize> {
    let idle = (0..all.len()).min_by_key(|at| (all[*at].used, all[*at].id)).filter(|at| now - all[*at].used > EVICTION_MS);
    let candidates = (0..all.len()).filter(|at| all[*at].evictable || follower && !all[*at].follower);
    let least = candidates.min_by_key(|at| (all[*at].follower, all[*at].rows.len(), all[*at].id));
    idle.or(least.filter(|at| (all[*at].follower, all[*at].rows.len()) < (follower, size)))
}

proptest! {
    /// Every answer, every refusal and every eviction as with the lists.
    #[test]
    fn agrees_with_lists(steps in vec(step(), 1..60), seed: u64) {
        const SLOTS: usize = 4;
        let (mut sessions, mut naive, mut now, mut chance) = (Sessions::new(SLOTS), Vec::<Naive>::new(), 0i64, Seeded(seed));
        for step in steps {
            match step {
                Step::Wait(ms) => now += ms,
                Step::Full { follower, keys } => {
                    let (_, rows) = sessions.begin(Ask { follower, ..ask(0, 0) }, wanted(&keys, 1), [], Millis(now)).expect("always begins");
                    prop_assert_eq!(&rows, &wanted(&keys, 1));
                    let rows: Vec<_> = rows.into_iter().map(|row| (row.key, row.params, facts(false, false, 1))).collect();
                    let id = sessions.create((false, follower), rows.into_iter(), Millis(now), &mut chance);
                    let gone = (naive.len() >= SLOTS).then(|| victim(&naive, follower, keys.len(), now));
                    prop_assert_eq!(id == 0, gone == Some(None));
                    if let Some(Some(gone)) = gone {
                        naive.remove(gone);
                    }
                    if id != 0 {
                        prop_assert!(id > 0 && naive.iter().all(|session| session.id != id));
                        let rows = keys.iter().map(|n| (key(*n), 1, 1, 0)).collect();
                        naive.push(Naive { id, follower, created: now, used: now, epoch: 1, rows, evictable: false });
                    }
                }
                Step::Close { which } => {
                    if which < naive.len() {
                        let gone = naive.remove(which);
                        let closed = sessions.begin(ask(gone.id, -1), vec![], [], Millis(now));
                        prop_assert_eq!(closed, Ok((Context::Sessionless, vec![])));
                    }
                }
                Step::GoOn { which, epoch_off, keys, offset, forget, answers } => {
                    let Some(session) = naive.get_mut(which) else {
                        prop_assert_eq!(sessions.begin(ask(-7, 1), vec![], [], Millis(now)), Err(Refused::UnknownSession));
                        continue;
                    };
                    let epoch = session.epoch + i32::from(epoch_off);
                    let begun = sessions.begin(ask(session.id, epoch), wanted(&keys, offset), forget.iter().map(|n| key(*n)), Millis(now));
                    if epoch_off {
                        prop_assert_eq!(begun, Err(Refused::WrongEpoch));
                        continue;
                    }
                    for n in &keys {
                        match session.rows.iter_mut().find(|row| row.0 == key(*n)) {
                            Some(row) => row.1 = offset,
                            None => session.rows.push((key(*n), offset, -1, -1)),
                        }
                    }
                    session.rows.retain(|row| forget.iter().all(|n| key(*n) != row.0));
                    let (context, rows) = begun.expect("id and epoch are right");
                    if session.rows.is_empty() {
                        prop_assert_eq!(context, Context::Sessionless);
                        naive.remove(which);
                        continue;
                    }
                    session.epoch += 1;
                    session.touch(now);
                    let read: Vec<_> = rows.iter().map(|row| (row.key.clone(), row.params.offset.0)).collect();
                    let expected: Vec<_> = session.rows.iter().map(|row| (row.0.clone(), row.1)).collect();
                    prop_assert_eq!(read, expected);
                    let Context::Incremental { session: id, next, instance } = context else { panic!("{context:?}") };
                    let mut answering = sessions.answering(id, next, instance).expect("nothing came between");
                    let mut moved = Vec::new();
                    for (row, (records, error, hw)) in rows.iter().zip(answers) {
                        let (records, hw) = (records && !error, if error { -1 } else { hw });
                        let said = facts(records, error, hw);
                        let at = session.rows.iter().position(|known| known.0 == row.key).expect("both have it");
                        let known = &mut session.rows[at];
                        let news = records || error || known.2 != hw || known.3 != said.log_start.0;
                        (known.2, known.3) = (hw, said.log_start.0);
                        prop_assert_eq!(answering.shows(row.slot, &said), news);
                        if records {
                            moved.push(session.rows.remove(at));
                        }
                    }
                    session.rows.extend(moved);
                }
            }
            prop_assert_eq!(sessions.len(), naive.len());
            prop_assert_eq!(sessions.partitions(), naive.iter().map(|session| session.rows.len()).sum::<usize>());
        }
    }
}
