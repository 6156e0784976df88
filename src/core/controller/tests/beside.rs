//! What stands beside the controller and is in no record: sessions, recoveries, the election book.

use super::elections::{ids, three};
use super::*;
use crate::core::controller::book::{Book, Entry, MAX_ELECTIONS};
use crate::core::controller::recovery::{Question, Recoveries};
use crate::core::controller::sessions::{SessionTimes, Sessions};
use crate::core::election::{Claim, Source};
use crate::core::types::{Epoch, Millis};

const TIMES: SessionTimes = SessionTimes { timeout: 9000, grace: 250, chance: 1000 };

/// Sessions with three brokers that were all heard at 0.
fn met(world: &World) -> Sessions {
    let mut sessions = Sessions::new(TIMES, world.controller.image(), Millis(0));
    (1..=3).for_each(|id| sessions.heard(BrokerId(id), world.epoch_of(id), Millis(0), Offset(10 + id as i64)));
    sessions
}

fn expired(sessions: &mut Sessions, now: i64) -> Vec<i32> {
    sessions.expired(Millis(now), |_, _| None).into_iter().map(|(id, _)| id.0).collect()
}

#[test]
fn a_session_ends_by_silence_and_all_that_end_are_named_at_once() {
    let world = three(false);
    let mut sessions = met(&world);
    sessions.heard(BrokerId(1), world.epoch_of(1), Millis(4000), Offset(20));
    assert_eq!((expired(&mut sessions, 8999), sessions.due()), (vec![], Some(Millis(9000))));
    assert_eq!(expired(&mut sessions, 9000), [2, 3]);
    assert_eq!(expired(&mut sessions, 13_000), [1, 2, 3]);
    sessions.heard(BrokerId(2), BrokerEpoch(0), Millis(12_000), Offset(20));
    assert_eq!(expired(&mut sessions, 13_000), [1, 2, 3], "another process does not speak for it");
}

#[test]
fn a_stalled_controller_fences_nobody_whose_heartbeat_had_arrived() {
    let world = three(false);
    let mut sessions = met(&world);
    let arrived = |id: BrokerId, epoch: BrokerEpoch| (id.0 < 3 && epoch == world.epoch_of(id.0)).then_some(Millis(8000));
    let over: Vec<i32> = sessions.expired(Millis(15_000), arrived).into_iter().map(|(id, _)| id.0).collect();
    assert_eq!(over, [3], "the controller slept from 1000 to 15000, the brokers did not");
    assert_eq!(sessions.due(), Some(Millis(9000)));
}

#[test]
fn a_closed_connection_starts_a_short_grace() {
    let world = three(false);
    let mut sessions = met(&world);
    assert!(sessions.is_alive(BrokerId(1), Millis(100)));
    sessions.closed(BrokerId(1), world.epoch_of(1), Millis(100));
    assert!(!sessions.is_alive(BrokerId(1), Millis(100)), "a process started again registers at once");
    assert_eq!((expired(&mut sessions, 349), sessions.due()), (vec![], Some(Millis(350))));
    assert_eq!(expired(&mut sessions, 350), [1]);
    sessions.heard(BrokerId(1), world.epoch_of(1), Millis(300), Offset(20));
    assert_eq!(expired(&mut sessions, 350), [0; 0], "it has come back on another connection");
    sessions.closed(BrokerId(2), BrokerEpoch(0), Millis(400));
    assert_eq!(expired(&mut sessions, 700), [0; 0], "that was an old process's connection");
    sessions.closed(BrokerId(3), world.epoch_of(3), Millis(8900));
    assert_eq!(expired(&mut sessions, 9000), [2, 3], "a grace is no reprieve");
}

#[test]
fn a_new_controller_gives_a_short_chance_and_no_fresh_session() {
    let world = three(false);
    let mut sessions = Sessions::new(TIMES, world.controller.image(), Millis(50_000));
    assert!(!sessions.is_alive(BrokerId(1), Millis(50_000)), "nobody knows yet");
    sessions.heard(BrokerId(1), world.epoch_of(1), Millis(50_500), Offset(20));
    sessions.refused(BrokerId(2), world.epoch_of(2));
    assert_eq!(expired(&mut sessions, 50_500), [2], "nothing listens there");
    assert_eq!(expired(&mut sessions, 51_000), [2, 3]);
    assert_eq!(expired(&mut sessions, 59_499), [2, 3]);
    assert_eq!(expired(&mut sessions, 59_500), [1, 2, 3], "whoever came has a whole session");
}

#[test]
fn sessions_follow_what_was_decided() {
    let mut world = three(false);
    let mut sessions = met(&world);
    let follow = |sessions: &mut Sessions, world: &World, id: i32, now| {
        let mut delta = Delta::default();
        delta.note(Change::Broker(BrokerId(id)));
        sessions.follow(world.controller.image(), &delta, Millis(now));
    };
    world.fence(&[1]);
    follow(&mut sessions, &world, 1, 20_000);
    assert_eq!(expired(&mut sessions, 20_000), [2, 3], "1 is fenced already");
    world.register(1, 50).unwrap();
    follow(&mut sessions, &world, 1, 21_000);
    let epoch = world.epoch_of(1);
    world.unfence(1, epoch);
    follow(&mut sessions, &world, 1, 21_000);
    assert!(sessions.is_alive(BrokerId(1), Millis(29_999)) && !sessions.is_alive(BrokerId(1), Millis(30_000)));
    world.ask(Request::UnregisterBroker(BrokerId(2)));
    follow(&mut sessions, &world, 2, 21_000);
    assert_eq!(expired(&mut sessions, 30_000), [1, 3]);
}

#[test]
fn a_shutdown_waits_for_the_slowest_that_stays() {
    let mut world = three(false);
    let mut sessions = met(&world);
    assert_eq!(sessions.shutdown(BrokerId(1)), (None, Offset(11)));
    sessions.shuts_down(BrokerId(1), world.epoch_of(1), Offset(30));
    sessions.shuts_down(BrokerId(1), world.epoch_of(1), Offset(40));
    assert_eq!(sessions.shutdown(BrokerId(1)), (Some(Offset(30)), Offset(12)), "1 does not wait for itself");
    sessions.heard(BrokerId(2), world.epoch_of(2), Millis(1), Offset(30));
    sessions.heard(BrokerId(3), world.epoch_of(3), Millis(1), Offset(31));
    assert_eq!(sessions.shutdown(BrokerId(1)), (Some(Offset(30)), Offset(30)));
    sessions.shuts_down(BrokerId(2), world.epoch_of(2), Offset(50));
    sessions.shuts_down(BrokerId(3), world.epoch_of(3), Offset(50));
    assert_eq!(sessions.shutdown(BrokerId(1)).1, Offset(i64::MAX), "nobody stays");
    let change = records::BrokerRegistrationChange::new(BrokerId(1), world.epoch_of(1));
    let change = records::BrokerRegistrationChange { in_controlled_shutdown: true, ..change };
    world.append(vec![Record::BrokerRegistrationChange(change)]);
    let later = Sessions::new(TIMES, world.controller.image(), Millis(0));
    assert_eq!(later.shutdown(BrokerId(1)).0, Some(world.controller.image().offset()), "a new controller waits for what it knows");
}

/// The whole ISR of `t` crashed and is back.
fn all_crashed() -> World {
    let mut world = three(true);
    world.fence(&[1, 2, 3]);
    for id in 1..=3 {
        let epoch = world.register(id, 100 + id as u128).unwrap();
        world.unfence(id, epoch);
    }
    world
}

fn claim(end: i64) -> Option<Claim> {
    Some(Claim { last_epoch: Epoch(0), end: Offset(end) })
}

#[test]
fn survivors_are_asked_once_and_the_most_complete_leads() {
    let mut world = all_crashed();
    let at = world.at();
    let mut recoveries = Recoveries::new(1000);
    let questions = recoveries.look(&world.controller, Millis(0));
    let expected = [1, 2, 3].map(|id| Question { broker: BrokerId(id), broker_epoch: world.epoch_of(id), partitions: vec![at] });
    assert_eq!(questions, expected);
    assert_eq!(recoveries.look(&world.controller, Millis(10)), [], "asked once");
    recoveries.answered(BrokerId(1), world.epoch_of(1), at, claim(5));
    recoveries.answered(BrokerId(2), BrokerEpoch(0), at, claim(99));
    assert_eq!(recoveries.claims().of(at, BrokerId(2)), None, "an answer of another process");
    assert_eq!((recoveries.ready(Millis(999)), recoveries.due()), (vec![], Some(Millis(1000))));
    recoveries.answered(BrokerId(2), world.epoch_of(2), at, claim(7));
    recoveries.answered(BrokerId(3), world.epoch_of(3), at, claim(6));
    assert_eq!(recoveries.ready(Millis(20)), [at]);
    assert_eq!(recoveries.ready(Millis(20)), [], "no news since");
    world.claims = recoveries.claims().clone();
    let decision = world.done(Request::Recover(vec![at]));
    assert_eq!((decision.elections[0].new_leader, &decision.elections[0].outcome), (BrokerId(2), &Ok(Source::LastKnown)));
    assert_eq!(recoveries.look(&world.controller, Millis(30)), []);
    assert_eq!((recoveries.claims(), recoveries.due()), (&Claims::default(), None), "what is led is forgotten");
}

#[test]
fn patience_with_survivors_ends_but_not_with_the_needed_ones() {
    let mut world = all_crashed();
    let at = world.at();
    let mut recoveries = Recoveries::new(1000);
    recoveries.look(&world.controller, Millis(0));
    recoveries.answered(BrokerId(1), world.epoch_of(1), at, claim(5));
    assert_eq!(recoveries.ready(Millis(1000)), [at]);
    world.claims = recoveries.claims().clone();
    assert_eq!(world.done(Request::Recover(vec![at])).records, [], "2 and 3 must speak");
    world.fence(&[3]);
    assert_eq!(recoveries.look(&world.controller, Millis(1100)), []);
    let epoch = world.register(3, 300).unwrap();
    world.unfence(3, epoch);
    let again = recoveries.look(&world.controller, Millis(1200));
    assert_eq!(again, [Question { broker: BrokerId(3), broker_epoch: epoch, partitions: vec![at] }], "a new process is asked anew");
    recoveries.answered(BrokerId(3), epoch, at, claim(9));
    recoveries.answered(BrokerId(2), world.epoch_of(2), at, None);
    assert_eq!(recoveries.ready(Millis(1300)), [at]);
    assert_eq!(recoveries.claims().of(at, BrokerId(2)), None, "it has no log");
}

fn entry(n: i32) -> Entry {
    let mut world = three(false);
    let election = world.fence(&[1]).elections.remove(0);
    let election = Election { new_epoch: Epoch(n), ..election };
    Entry { election, topic: "t".into(), detected: Millis(1), decided: Millis(2), committed: Millis(0) }
}

#[test]
fn the_book_notes_what_is_committed_and_forgets_the_oldest() {
    let mut book = Book::default();
    book.decided(Offset(5), vec![]);
    book.decided(Offset(7), vec![entry(1), entry(2)]);
    book.decided(Offset(9), vec![entry(3)]);
    assert_eq!((book.committed(Offset(6), Millis(50)).len(), book.latest().count()), (0, 0));
    let finals = book.committed(Offset(8), Millis(60));
    assert_eq!(finals.iter().map(|entry| (entry.election.new_epoch.0, entry.committed.0)).collect::<Vec<_>>(), [(1, 60), (2, 60)]);
    book.resigned();
    assert_eq!(book.committed(Offset(99), Millis(70)).len(), 0, "what was not committed may never be");
    assert_eq!(book.latest().map(|entry| entry.election.new_epoch.0).collect::<Vec<_>>(), [2, 1]);
    let one = entry(3);
    let many: Vec<Entry> = (0..MAX_ELECTIONS as i32 + 5)
        .map(|n| Entry { election: Election { new_epoch: Epoch(n), ..one.election.clone() }, ..one.clone() })
        .collect();
    book.decided(Offset(100), many);
    assert_eq!(book.committed(Offset(100), Millis(80)).len(), MAX_ELECTIONS + 5);
    let kept: Vec<i32> = book.latest().map(|entry| entry.election.new_epoch.0).collect();
    assert_eq!((kept.len(), kept[0], kept[MAX_ELECTIONS - 1]), (MAX_ELECTIONS, MAX_ELECTIONS as i32 + 4, 5));
    assert_eq!(one.election.old_isr, ids(&[1, 2, 3]));
}
