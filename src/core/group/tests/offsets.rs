//! Committed offsets: who may commit, what is kept, when it expires.

use super::*;
use crate::core::group::CommittedOffset;
use crate::core::types::Id;

fn fetch(town: &mut Town, fetch: Fetch) -> Vec<Rows<Option<CommittedOffset>>> {
    let ticket = town.ask(Request::Fetch(fetch));
    let Some(Answer::Fetch(Ok(rows))) = town.got(ticket) else { panic!() };
    rows
}

fn row<T>(topic: &str, id: u128, partitions: Vec<(i32, T)>) -> Rows<T> {
    Rows { topic: topic.into(), id: Id(id), partitions }
}

fn new(offset: i64, metadata: &str) -> NewOffset {
    NewOffset { offset: Offset(offset), leader_epoch: Epoch(4), metadata: metadata.into() }
}

#[test]
fn offsets_come_back_as_they_were_committed() {
    let mut town = Town::new();
    let topics = vec![row("t", 5, vec![(0, new(10, "note")), (1, new(11, ""))]), row("u", 0, vec![(0, new(12, ""))])];
    let ticket = town.ask(Request::Commit(Commit { from: nobody("g"), topics, retention: None, knows_epochs: true }));
    assert_eq!(town.committed(ticket), Ok(()));
    for town in [&mut town.again(), &mut town] {
        let asked =
            vec![row("t", 0, vec![(1, ()), (7, ())]), row("t", 5, vec![(0, ())]), row("t", 6, vec![(0, ())]), row("u", 6, vec![(0, ())])];
        let rows = fetch(town, Fetch { group: "g".into(), topics: Some(asked), require_stable: true, member: None, epoch: -1 });
        let seen: Vec<Vec<Option<i64>>> =
            rows.iter().map(|r| r.partitions.iter().map(|(_, o)| o.as_ref().map(|o| o.offset.0)).collect()).collect();
        assert_eq!(
            seen,
            [vec![Some(11), None], vec![Some(10)], vec![None], vec![Some(12)]],
            "of a topic made again under the name there is none"
        );
        let note = rows[1].partitions[0].1.as_ref().unwrap();
        assert_eq!((note.leader_epoch, &*note.metadata, note.topic_id, note.committed), (Epoch(4), "note", Id(5), Millis(town.now)));
        assert_eq!(town.offsets("g"), [("t".into(), 0, 10), ("t".into(), 1, 11), ("u".into(), 0, 12)]);
        assert_eq!(town.offsets("other"), []);
        assert_eq!(town.coordinator.committed_offsets().count(), 3);
    }
}

#[test]
fn notes_that_are_too_long_are_refused_alone() {
    let mut town = Town::with(Settings { offset_metadata_max: 3, ..Settings::default() }, &[], 0);
    let topics = vec![row(
        "t",
        0,
        vec![(0, new(1, "abcd")), (1, new(2, "äöü")), (2, new(3, "äöüß")), (3, new(4, "\u{1F600}")), (4, new(5, "\u{1F600}ab"))],
    )];
    let ticket = town.ask(Request::Commit(Commit { from: nobody("g"), topics, retention: None, knows_epochs: true }));
    let Some(Answer::Commit(Ok(rows))) = town.got(ticket) else { panic!() };
    let long = Err(Why::OffsetMetadataTooLarge);
    assert_eq!(rows[0].partitions, [(0, long), (1, Ok(())), (2, long), (3, Ok(())), (4, long)]);
    assert_eq!(town.offsets("g"), [("t".into(), 1, 2), ("t".into(), 3, 4)]);
    let ticket = town.ask(Request::Commit(Commit {
        from: nobody("g"),
        topics: vec![row("t", 0, vec![(0, new(1, "abcd"))])],
        retention: None,
        knows_epochs: true,
    }));
    assert_eq!(town.committed(ticket), long, "nothing to write is answered, too");
}

#[test]
fn a_commit_counts_when_it_is_in_the_log() {
    let mut town = Town::new();
    assert_eq!(town.commit(&nobody("g"), 0, 1), Ok(()));
    town.hold = true;
    let second = town.ask(commit(&nobody("g"), 0, 2));
    let stable = |group: &str| Request::Fetch(Fetch { group: group.into(), topics: None, require_stable: true, member: None, epoch: -1 });
    assert_eq!(town.offsets("g"), [("t".into(), 0, 1)]);
    let (waits, other) = (town.ask(stable("g")), town.ask(stable("other")));
    assert_eq!((town.got(second), town.got(waits)), (None, None));
    assert!(town.got(other).is_some(), "nothing of that group is under way");
    let third = town.ask(commit(&nobody("g"), 0, 3));
    town.fail(1, Why::CoordinatorNotAvailable);
    assert_eq!((town.committed(third), town.got(waits)), (Err(Why::CoordinatorNotAvailable), None));
    town.release();
    assert_eq!(town.committed(second), Ok(()));
    let Some(Answer::Fetch(Ok(rows))) = town.got(waits) else { panic!() };
    assert_eq!(rows[0].partitions[0].1.as_ref().map(|o| o.offset), Some(Offset(2)));
    assert_eq!(town.offsets("g"), town.again().offsets("g"));
}

#[test]
fn who_waits_too_long_for_the_log_is_told_and_the_commit_may_still_come() {
    let mut town = Town::new();
    town.hold = true;
    let write = town.ask(commit(&nobody("g"), 0, 2));
    town.wait(2_000);
    let read = town.ask(Request::Fetch(Fetch { group: "g".into(), topics: None, require_stable: true, member: None, epoch: -1 }));
    town.wait(3_000);
    assert_eq!((town.committed(write), town.got(read)), (Err(Why::CoordinatorNotAvailable), None));
    town.wait(2_000);
    assert_eq!(town.got(read), Some(Answer::Fetch(Err(Why::NotCoordinator))));
    town.release();
    assert_eq!(town.offsets("g"), [("t".into(), 0, 2)]);
}

#[test]
fn a_commit_keeps_the_member_alive() {
    let mut town = Town::new();
    let members = town.stable(1);
    for n in 0..5 {
        town.wait(9_000);
        assert_eq!(town.commit(&members[0], 0, n), Ok(()));
    }
    town.wait(10_000);
    assert_eq!(town.state(), State::Empty);
}
