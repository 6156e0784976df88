//! Expiry and deletion.

use super::*;
use crate::core::types::Id;

const HOUR: i64 = 3_600_000;

fn town() -> Town {
    Town::with(
        Settings { initial_rebalance_delay: 0, offsets_retention: 2 * HOUR, retention_check_interval: HOUR / 6, ..Settings::default() },
        &[],
        0,
    )
}

fn commit_as(from: &Membership, topic: &str, retention: Option<i64>) -> Request {
    let new = NewOffset { offset: Offset(1), leader_epoch: Epoch::NONE, metadata: "".into() };
    let topics = vec![Rows { topic: topic.into(), id: Id(9), partitions: vec![(0, new)] }];
    Request::Commit(Commit { from: from.clone(), topics, retention, knows_epochs: true })
}

fn topics(town: &mut Town) -> Vec<String> {
    town.offsets("g").into_iter().map(|(topic, _, _)| topic).collect()
}

#[test]
fn offsets_without_members_expire_each_by_its_own_age() {
    let mut town = town();
    town.ask(commit_as(&nobody("g"), "old", None));
    town.ask(commit_as(&nobody("g"), "brief", Some(HOUR / 2)));
    town.wait(HOUR);
    assert_eq!(topics(&mut town), ["old"], "one said when it expires");
    town.ask(commit_as(&nobody("g"), "new", None));
    town.wait(HOUR);
    assert_eq!(topics(&mut town), ["new"]);
    assert_eq!(town.again().offsets("g").len(), 1);
    town.wait(HOUR);
    assert_eq!((topics(&mut town), town.state()), (vec![], State::Dead), "the group goes with its last offset");
    assert!(town.again().describe("g").is_none());
}

#[test]
fn offsets_of_a_group_with_members_expire_only_if_nobody_reads_the_topic() {
    let mut town = town();
    let me = town.stable(1).remove(0);
    town.ask(commit_as(&me, "t", None));
    town.ask(commit_as(&me, "forsaken", None));
    let alive = |town: &mut Town, from: &Membership, hours: i64| {
        for _ in 0..hours * 600 {
            town.wait(HOUR / 600);
            town.heartbeat(from).unwrap();
        }
    };
    alive(&mut town, &me, 1);
    assert_eq!(topics(&mut town), ["forsaken", "t"]);
    alive(&mut town, &me, 1);
    assert_eq!(topics(&mut town), ["t"]);
    alive(&mut town, &me, 3);
    assert_eq!(topics(&mut town), ["t"]);
    // Once it is empty the clock starts, however old the offsets are.
    town.leave(&[(&me.member, None)]);
    town.wait(2 * HOUR - 1);
    assert_eq!((topics(&mut town), town.state()), (vec!["t".into()], State::Empty));
    town.wait(HOUR / 6);
    assert_eq!((topics(&mut town), town.state()), (vec![], State::Dead));
}

#[test]
fn groups_that_are_no_consumers_keep_their_offsets_while_they_have_members() {
    let mut town = town();
    let connect = Join { protocol_type: "connect".into(), member_id_required: false, session_timeout: 1_800_000, ..join_of("", "worker") };
    let ticket = town.ask(Request::Join(connect));
    let me = town.joined(ticket);
    let me = member_of(&me.member, me.generation);
    let synced = Sync { from: me.clone(), protocol_type: None, protocol: None, assignments: vec![] };
    town.ask(Request::Sync(synced));
    town.ask(commit_as(&me, "any", None));
    for _ in 0..8 {
        town.wait(HOUR / 2 - 1);
        town.heartbeat(&me).unwrap();
    }
    assert_eq!(topics(&mut town), ["any"]);
}

#[test]
fn a_commit_under_way_stops_expiry() {
    let mut town = town();
    town.ask(commit_as(&nobody("g"), "t", None));
    town.wait(2 * HOUR - 1);
    town.hold = true;
    town.ask(commit_as(&nobody("g"), "t", None));
    town.wait(2_000);
    assert_eq!(town.held.len(), 1, "no tombstone behind it");
    town.release();
    assert_eq!(topics(&mut town), ["t"]);
}

#[test]
fn a_group_from_which_nothing_is_left_goes() {
    let mut town = town();
    let ticket = town.ask(join("", "ghost"));
    let (_, ghost) = town.not_joined(ticket);
    assert_eq!(town.state(), State::Empty);
    town.wait(HOUR / 6);
    assert_eq!(town.state(), State::Dead);
    let ticket = town.ask(join(&ghost, "ghost"));
    assert_eq!(town.not_joined(ticket).0, Why::UnknownMemberId);
    assert!(town.again().describe("g").is_none());
}

#[test]
fn many_tombstones_go_in_several_writes_and_a_group_whose_tombstone_fails_comes_back() {
    let mut town = town();
    for partition in 0..1_500 {
        town.commit(&nobody("g"), partition, 1).unwrap();
    }
    town.hold = true;
    town.wait(2 * HOUR);
    let sizes: Vec<usize> = town.held.iter().map(|(_, records)| records.len()).collect();
    assert_eq!(sizes, [1_000, 501]);
    assert_eq!(town.state(), State::Dead);
    town.fail(1, Why::CoordinatorNotAvailable);
    assert_eq!(town.state(), State::Empty);
    town.release();
    assert_eq!(town.offsets("g").len(), 500);
    town.hold = false;
    town.wait(HOUR / 6);
    assert_eq!((town.offsets("g").len(), town.state()), (0, State::Dead));
}

#[test]
fn deleting_groups() {
    let delete = |town: &mut Town, ids: &[&str]| town.ask(Request::DeleteGroups(ids.iter().map(|id| (*id).into()).collect()));
    let rows = |town: &mut Town, ticket| match town.got(ticket) {
        Some(Answer::DeleteGroups(Ok(rows))) => rows.into_iter().map(|(id, result)| (id.to_string(), result)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let mut town = town();
    let me = town.stable(1).remove(0);
    town.commit(&me, 0, 1).unwrap();
    town.commit(&nobody("simple"), 0, 1).unwrap();
    let ticket = delete(&mut town, &["g", "none", "simple"]);
    assert_eq!(
        rows(&mut town, ticket),
        [("g".into(), Err(Why::NonEmptyGroup)), ("none".into(), Err(Why::GroupIdNotFound)), ("simple".into(), Ok(()))]
    );
    assert_eq!((town.offsets("simple"), town.again().offsets("simple")), (vec![], vec![]));
    let ticket = delete(&mut town, &["none"]);
    assert_eq!(rows(&mut town, ticket).len(), 1, "nothing to write is answered, too");

    // What is under way when the group is deleted goes with it; what comes after stays.
    town.leave(&[(&me.member, None)]);
    town.hold = true;
    let before = town.ask(commit(&nobody("g"), 5, 1));
    let ticket = delete(&mut town, &["g"]);
    assert_eq!(town.state(), State::Dead);
    let after = town.ask(commit(&nobody("g"), 6, 1));
    assert_eq!(town.got(ticket), None);
    town.release();
    assert_eq!(rows(&mut town, ticket), [("g".into(), Ok(()))]);
    assert_eq!((town.committed(before), town.committed(after)), (Ok(()), Ok(())));
    assert_eq!((town.offsets("g"), town.again().offsets("g")), (vec![("t".into(), 6, 1)], vec![("t".into(), 6, 1)]));

    // A deletion that fails leaves everything as it was.
    let ticket = delete(&mut town, &["g"]);
    town.fail(0, Why::NotCoordinator);
    assert_eq!(town.got(ticket), Some(Answer::DeleteGroups(Err(Why::NotCoordinator))));
    assert_eq!((town.state(), town.offsets("g").len()), (State::Empty, 1));

    // One that takes too long may still succeed: until that is known the group stays out.
    let ticket = delete(&mut town, &["g"]);
    town.wait(5_000);
    assert_eq!(town.got(ticket), Some(Answer::DeleteGroups(Err(Why::CoordinatorNotAvailable))));
    assert_eq!(town.state(), State::Dead);
    town.release();
    assert_eq!((town.state(), town.offsets("g").len()), (State::Dead, 0));
}

#[test]
fn a_session_that_is_over_keeps_no_group_from_being_deleted_though_its_alarm_is_late() {
    let mut town = town();
    let me = town.stable(1).remove(0);
    town.wait(i64::from(join_of("", "").session_timeout) - 1);
    let delete = Request::DeleteGroups(vec!["g".into()]);
    let early = town.ask(delete.clone());
    town.now += 1;
    let due = town.ask(delete);
    let row = |town: &mut Town, ticket| match town.got(ticket) {
        Some(Answer::DeleteGroups(Ok(mut rows))) => rows.remove(0).1,
        other => panic!("{other:?}"),
    };
    assert_eq!((row(&mut town, early), row(&mut town, due)), (Err(Why::NonEmptyGroup), Ok(())));
    assert_eq!(town.heartbeat(&me), Err(Why::UnknownMemberId));
}

#[test]
fn a_heartbeat_that_comes_before_the_alarm_counts_however_late_it_is() {
    let mut town = town();
    let me = town.stable(1).remove(0);
    town.now += 10 * i64::from(join_of("", "").session_timeout);
    assert_eq!(town.heartbeat(&me), Ok(()));
    town.wait(1);
    assert_eq!(town.state(), State::Stable);
}

#[test]
fn deleting_offsets() {
    let mut town = town();
    let delete = |town: &mut Town, group: &str, topics: &[&str]| {
        let topics = topics.iter().map(|topic| Rows { topic: (*topic).into(), id: Id(0), partitions: vec![(0, ()), (1, ())] }).collect();
        let ticket = town.ask(Request::DeleteOffsets(DeleteOffsets { group: group.into(), topics }));
        match town.got(ticket) {
            Some(Answer::DeleteOffsets(result)) => result.map(|rows| rows.into_iter().map(|rows| rows.partitions[0].1).collect::<Vec<_>>()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(delete(&mut town, "g", &["t"]), Err(Why::GroupIdNotFound));
    let me = town.stable(1).remove(0);
    town.ask(commit_as(&me, "t", None));
    town.ask(commit_as(&me, "u", None));
    assert_eq!(delete(&mut town, "g", &["t", "u", "v"]), Ok(vec![Err(Why::GroupSubscribedToTopic), Ok(()), Ok(())]));
    assert_eq!(topics(&mut town), ["t"]);
    town.leave(&[(&me.member, None)]);
    assert_eq!(delete(&mut town, "g", &["t"]), Ok(vec![Ok(())]));
    assert_eq!((topics(&mut town), town.again().offsets("g")), (vec![], vec![]));

    let connect = Join { group: "c".into(), protocol_type: "connect".into(), member_id_required: false, ..join_of("", "worker") };
    let ticket = town.ask(Request::Join(connect));
    town.joined(ticket);
    assert_eq!(delete(&mut town, "c", &["t"]), Err(Why::NonEmptyGroup));
}

#[test]
fn offsets_go_with_their_topic() {
    let mut town = town();
    town.ask(commit_as(&nobody("g"), "t", None));
    town.ask(commit_as(&nobody("g"), "u", None));
    town.commit(&nobody("h"), 3, 1).unwrap();
    let gone = |id| [DeletedTopic { name: "t".into(), id: Id(id) }];
    town.topics_deleted(&gone(8));
    assert_eq!((topics(&mut town), town.offsets("h").len()), (vec!["t".into(), "u".into()], 0), "those of another topic of the name stay");
    town.hold = true;
    town.ask(commit_as(&nobody("g"), "t", None));
    town.topics_deleted(&gone(9));
    town.release();
    assert_eq!((topics(&mut town), town.again().offsets("g").len()), (vec!["u".into()], 1));
}

#[test]
fn a_report_tells_all_groups_in_pages_of_any_size() {
    let mut town = Town::new();
    let mut expected = Vec::new();
    for (group, count) in [("a", 0), ("b", 7), ("c", 1), ("d", 3)] {
        if count == 0 {
            town.ask(Request::Join(Join { group: group.into(), member_id_required: false, ..join_of("", "client") }));
        }
        for at in 0..count {
            let partition = at % 4;
            let mut request = commit(&nobody(group), partition, i64::from(at));
            let Request::Commit(commit) = &mut request else { unreachable!() };
            commit.topics[0].topic = format!("t{}", at / 4).into();
            town.ask(request);
            expected.push((group.to_owned(), format!("t{}", at / 4), partition, i64::from(at)));
        }
    }
    for most in 1..=14 {
        let (mut after, mut told, mut groups) = (None, Vec::new(), Vec::new());
        for page in 0.. {
            assert!(page < 30, "pages come to an end");
            let (reports, next) = town.coordinator.report(after.as_ref(), most);
            assert!(
                reports.iter().map(|report| 1 + report.offsets.len()).sum::<usize>() <= 2 * most,
                "a page is about as large as asked for"
            );
            for report in reports {
                if !report.continued {
                    groups.push((report.group.to_string(), report.members));
                }
                told.extend(
                    report.offsets.iter().map(|(topic, _, index, offset)| (report.group.to_string(), topic.to_string(), *index, offset.0)),
                );
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(told, expected, "pages of {most}");
        assert_eq!(groups, [("a", 1), ("b", 0), ("c", 0), ("d", 0)].map(|(group, members)| (group.to_owned(), members)));
    }
}
