//! Groups that go from the classic protocol to the consumer protocol and back, with members in them.

use super::consumers::Consumer;
use super::*;
use crate::core::group::embedded::Assigned;

/// A client of the classic protocol that joins again when it is told to.
struct Classic {
    member: Membership,
    /// Partitions of `t` that it has.
    owned: Vec<i32>,
    instance: Option<&'static str>,
}

impl Classic {
    fn new() -> Classic {
        Classic { member: member_of("", -1), owned: Vec::new(), instance: None }
    }

    /// What it says when it joins: it reads `t`, and has what it has.
    fn join(&self) -> Join {
        let mut metadata = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\x01\0\x01t".to_vec();
        metadata.extend((self.owned.len() as i32).to_be_bytes());
        self.owned.iter().for_each(|index| metadata.extend(index.to_be_bytes()));
        let protocols = vec![Protocol { name: "range".into(), metadata: metadata.into() }];
        let instance = self.instance.map(Arc::from);
        Join { protocols, instance, ..join_of(&self.member.member, "c") }
    }

    fn take(&mut self, assignment: &[u8]) {
        let assigned = Assigned::read(assignment).expect("an assignment");
        self.owned = assigned.partitions.into_iter().flat_map(|(_, indexes)| indexes).collect();
    }

    /// Joins a consumer group and asks for its assignment: answered at once.
    fn join_consumers(&mut self, town: &mut Town) {
        if self.member.member.is_empty() && self.instance.is_none() {
            let ticket = town.ask(Request::Join(self.join()));
            let (why, member) = town.not_joined(ticket);
            assert_eq!(why, Why::MemberIdRequired);
            self.member.member = member;
        }
        let ticket = town.ask(Request::Join(self.join()));
        let joined = town.joined(ticket);
        assert_eq!((&*joined.leader, joined.members.len(), joined.protocol.as_deref()), ("", 0, Some("range")));
        self.member = member_of(&joined.member, joined.generation);
        self.member.instance = self.instance.map(Arc::from);
        let ticket = town.ask(sync(&self.member, &[]));
        let assignment = town.assigned(ticket).expect("it has one");
        self.take(&assignment);
    }

    /// A heartbeat, and what follows from it.
    fn beat(&mut self, town: &mut Town) {
        match town.heartbeat(&self.member) {
            Err(Why::RebalanceInProgress) => self.join_consumers(town),
            other => assert_eq!(other, Ok(())),
        }
    }
}

/// A stable classic group of so many members that share four partitions of `t`.
fn classic(town: &mut Town, count: usize) -> Vec<Classic> {
    let mut members: Vec<Classic> = (0..count).map(|_| Classic::new()).collect();
    for member in &mut members {
        let ticket = town.ask(Request::Join(member.join()));
        member.member.member = town.not_joined(ticket).1;
    }
    town.coordinator.settings.initial_rebalance_delay = 10;
    let tickets: Vec<Ticket> = members.iter().map(|member| town.ask(Request::Join(member.join()))).collect();
    town.wait(30);
    sync_all(town, &mut members, tickets);
    members
}

fn sync_all(town: &mut Town, members: &mut [Classic], tickets: Vec<Ticket>) {
    let mut leader = None;
    let share = 4 / members.len() as i32;
    let mut given = Vec::new();
    for (i, (member, ticket)) in members.iter_mut().zip(tickets).enumerate() {
        let joined = town.joined(ticket);
        member.member = Membership { generation: joined.generation, ..member.member.clone() };
        let indexes: Vec<i32> = (0..share).map(|n| i as i32 * share + n).collect();
        given.push((joined.member.clone(), Assigned::write(1, &[("t".into(), indexes)])));
        if joined.leader == joined.member {
            leader = Some(i);
        }
    }
    let leader = leader.expect("one leads");
    let mut order: Vec<usize> = (0..members.len()).filter(|i| *i != leader).collect();
    order.push(leader);
    let asked: Vec<(usize, Ticket)> = order
        .into_iter()
        .map(|i| {
            let Request::Sync(mut sync) = sync(&members[i].member, &[]) else { unreachable!() };
            if i == leader {
                sync.assignments = given.clone();
            }
            (i, town.ask(Request::Sync(sync)))
        })
        .collect();
    for (i, ticket) in asked {
        let assignment = town.assigned(ticket).expect("it has one");
        members[i].take(&assignment);
    }
}

fn consumer(id: &str) -> Consumer {
    Consumer::new(id, &["t"])
}

#[test]
fn a_classic_group_becomes_a_consumer_group_member_by_member() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut old = classic(&mut town, 1);
    assert_eq!((town.listed(), &old[0].owned), (Some((Kind::Classic, State::Stable)), &vec![0, 1, 2, 3]));
    assert_eq!(town.commit(&old[0].member, 0, 5), Ok(()));
    let mut new = consumer("new");
    let epoch = new.beat(&mut town).expect("it joins");
    assert_eq!((town.listed(), new.count()), (Some((Kind::Consumer, State::Reconciling)), 0), "the old one still has all");
    let mut town = town.again();
    assert_eq!(town.consumers().map(|group| group.members.len()), Ok(2));
    assert_eq!(town.commit(&old[0].member, 0, 6), Ok(()), "its generation is good until it joins again");
    // It is told to join again, gives up half, says so by joining once more, and the new one gets it.
    old[0].beat(&mut town);
    assert_eq!(old[0].owned.len(), 2);
    old[0].beat(&mut town);
    assert_eq!((old[0].member.generation, old[0].owned.len()), (epoch, 2));
    assert_eq!((new.beat(&mut town), new.count()), (Ok(epoch), 2));
    assert_eq!((town.listed(), town.heartbeat(&old[0].member)), (Some((Kind::Consumer, State::Stable)), Ok(())));
    assert_eq!(town.offsets("g"), [("t".into(), 0, 6)]);
    let rows = town.leave(&[(&old[0].member.member, None)]);
    assert_eq!(rows, [Ok(())]);
    assert_eq!((new.beat(&mut town).is_ok(), new.count()), (true, 4));
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn a_consumer_group_becomes_a_classic_group_when_the_last_consumer_leaves() {
    for silent in [false, true] {
        let mut town = Town::of_consumers(&[("t", 4)]);
        let mut old = classic(&mut town, 2);
        let mut new = consumer("new");
        new.beat(&mut town).expect("it joins");
        for _ in 0..3 {
            old.iter_mut().for_each(|member| member.beat(&mut town));
            new.beat(&mut town).expect("it is a member");
        }
        assert_eq!(old.iter().map(|member| member.owned.len()).sum::<usize>() + new.count(), 4);
        if silent {
            for _ in 0..4 {
                town.wait(9_000);
                old.iter_mut().for_each(|member| member.beat(&mut town));
            }
            town.wait(9_000);
        } else {
            new.leave(&mut town, -1).expect("it leaves");
        }
        assert_eq!(town.listed(), Some((Kind::Classic, State::PreparingRebalance)));
        assert_eq!(town.consumers().map_err(|refused| refused.message), Err("Group g is not a consumer group.".into()));
        let after = town.again().listed();
        assert_eq!(after, Some((Kind::Classic, State::Stable)), "for the next coordinator it is as it was");
        assert_eq!(town.heartbeat(&old[0].member), Err(Why::RebalanceInProgress));
        let tickets: Vec<Ticket> = old.iter().map(|member| town.ask(Request::Join(member.join()))).collect();
        sync_all(&mut town, &mut old, tickets);
        assert_eq!(town.listed(), Some((Kind::Classic, State::Stable)));
        assert_eq!(old.iter().map(|member| member.owned.len()).sum::<usize>(), 4);
        // And back again.
        let mut new = consumer("newer");
        new.beat(&mut town).expect("it joins");
        assert_eq!(town.listed().map(|(kind, _)| kind), Some(Kind::Consumer));
        assert_eq!(town.durable(), town.again().durable());
    }
}

#[test]
fn whoever_waits_in_a_rebalance_is_told_to_join_again() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let old = classic(&mut town, 2);
    let waiting = town.ask(Request::Join(Join { protocols: protocols(&["range", "other"]), ..old[0].join() }));
    assert_eq!(town.listed(), Some((Kind::Classic, State::PreparingRebalance)));
    consumer("new").beat(&mut town).expect("it joins");
    assert_eq!(town.not_joined(waiting).0, Why::RebalanceInProgress);
    assert_eq!(town.heartbeat(&old[1].member), Err(Why::RebalanceInProgress));
    town.unload();
}

#[test]
fn classic_members_have_to_keep_up() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut old = classic(&mut town, 1);
    let mut new = consumer("new");
    new.beat(&mut town).expect("it joins");
    // Alive, but it does not join again.
    for _ in 0..7 {
        assert_eq!(town.heartbeat(&old[0].member), Err(Why::RebalanceInProgress));
        new.beat(&mut town).expect("it waits");
        town.wait(9_000);
    }
    assert_eq!(town.heartbeat(&old[0].member), Err(Why::UnknownMemberId));
    assert_eq!((new.beat(&mut town).is_ok(), new.count()), (true, 4));
    // Joins, but does not ask for its assignment.
    old[0].member.member = "".into();
    old[0].owned.clear();
    let ticket = town.ask(Request::Join(old[0].join()));
    old[0].member.member = town.not_joined(ticket).1;
    let ticket = town.ask(Request::Join(old[0].join()));
    let from = member_of(&old[0].member.member, town.joined(ticket).generation);
    for _ in 0..7 {
        _ = town.heartbeat(&from);
        new.beat(&mut town).expect("it is a member");
        town.wait(9_000);
    }
    assert_eq!(town.heartbeat(&from), Err(Why::UnknownMemberId));
    // Is not heard of at all.
    old[0].member.member = "".into();
    old[0].join_consumers(&mut town);
    town.wait(10_000);
    assert_eq!(town.heartbeat(&old[0].member), Err(Why::UnknownMemberId));
}

#[test]
fn requests_of_the_wrong_kind() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut old = classic(&mut town, 1);
    let mut new = consumer("new");
    new.beat(&mut town).expect("it joins");
    new.beat(&mut town).expect("it is a member");
    let as_classic = member_of("new", new.beat.epoch);
    assert_eq!(town.heartbeat(&as_classic), Err(Why::UnknownMemberId));
    let ticket = town.ask(sync(&as_classic, &[]));
    assert_eq!(town.assigned(ticket), Err(Why::UnknownMemberId));
    old[0].beat(&mut town);
    old[0].beat(&mut town);
    let late = Membership { generation: old[0].member.generation - 1, ..old[0].member.clone() };
    assert_eq!(town.heartbeat(&late), Err(Why::IllegalGeneration));
    assert_eq!(town.commit(&Membership { generation: 99, ..late.clone() }, 0, 1), Err(Why::IllegalGeneration));
    let Request::Sync(mut other) = sync(&old[0].member, &[]) else { unreachable!() };
    other.protocol = Some("roundrobin".into());
    let ticket = town.ask(Request::Sync(other));
    assert_eq!(town.assigned(ticket), Err(Why::InconsistentGroupProtocol));
    for join in [
        Join { protocol_type: "connect".into(), ..old[0].join() },
        Join { protocols: protocols(&["roundrobin"]), ..old[0].join() },
        Join { protocols: vec![Protocol { name: "range".into(), metadata: Bytes::new() }], ..old[0].join() },
    ] {
        let ticket = town.ask(Request::Join(join));
        assert_eq!(town.not_joined(ticket).0, Why::InconsistentGroupProtocol);
    }
    assert_eq!(town.describe("g"), None, "it is no classic group");
}

#[test]
fn what_cannot_be_upgraded() {
    let refused = |change: &dyn Fn(&mut Town), protocol_type: &str, assignment: Bytes| {
        let mut town = Town::of_consumers(&[("t", 4)]);
        change(&mut town);
        let join = |member: &str| Join { protocol_type: protocol_type.into(), ..join_of(member, "c") };
        let ticket = town.ask(Request::Join(join("")));
        let member = town.not_joined(ticket).1;
        let ticket = town.ask(Request::Join(join(&member)));
        town.wait(0);
        let generation = town.joined(ticket).generation;
        let from = member_of(&member, generation);
        let ticket = town.ask(Request::Sync(Sync {
            from: from.clone(),
            protocol_type: None,
            protocol: None,
            assignments: vec![(member, assignment)],
        }));
        town.assigned(ticket).expect("it has one");
        let mut beat = consumer("new").beat;
        beat.owned = Some(vec![]);
        let refused = town.beat(beat).expect_err("it is refused");
        assert_eq!((refused.why, town.heartbeat(&from)), (Why::GroupIdNotFound, Ok(())), "the classic group is as it was");
        refused.message
    };
    let plain = || Assigned::write(0, &[("t".into(), vec![0])]);
    let begin = "Cannot upgrade classic group g to consumer group because ";
    for (change, protocol_type, assignment, words) in [
        (
            &(|town: &mut Town| town.coordinator.settings.consumer.upgrade = false) as &dyn Fn(&mut Town),
            "consumer",
            plain(),
            "online upgrade is disabled.",
        ),
        (&|_| {}, "connect", plain(), "the group does not use the consumer embedded protocol."),
        (
            &|town| town.coordinator.settings.consumer.max_size = 0,
            "consumer",
            plain(),
            "the group size exceeds the consumer group maximum size.",
        ),
        (&|_| {}, "consumer", Bytes::from_static(b"\0\0\0\0\0\x01"), "the embedded consumer protocol is malformed."),
        (
            &|_| {},
            "consumer",
            Bytes::from_static(b"\0\0\0\0\0\0\0\0\0\x01x"),
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor before \
             re-attempting the upgrade.",
        ),
    ] {
        assert_eq!(refused(change, protocol_type, assignment), format!("{begin}{words}"));
    }
}

#[test]
fn a_policy_against_it_keeps_groups_as_they_are() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    town.coordinator.settings.consumer.downgrade = false;
    let mut old = classic(&mut town, 1);
    let mut new = consumer("new");
    new.beat(&mut town).expect("it joins");
    old[0].beat(&mut town);
    new.leave(&mut town, -1).expect("it leaves");
    assert_eq!(town.listed().map(|(kind, _)| kind), Some(Kind::Consumer));
    town.coordinator.settings.consumer.upgrade = false;
    let ticket = town.ask(Request::Join(join_of("", "c")));
    assert_eq!(town.not_joined(ticket).0, Why::InconsistentGroupProtocol);
}

#[test]
fn groups_without_members_change_at_once() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut new = consumer("new");
    new.beat(&mut town).expect("it joins");
    assert_eq!(town.commit(&member_of("new", 2), 0, 5), Ok(()));
    new.leave(&mut town, -1).expect("it leaves");
    let ticket = town.ask(Request::Join(join_of("stranger", "c")));
    assert_eq!(town.not_joined(ticket).0, Why::UnknownMemberId);
    assert_eq!(town.listed(), Some((Kind::Consumer, State::Empty)));
    let old = classic(&mut town, 1);
    assert_eq!(town.listed(), Some((Kind::Classic, State::Stable)));
    assert_eq!((town.again().listed(), town.offsets("g")), (Some((Kind::Classic, State::Stable)), vec![("t".into(), 0, 5)]));
    assert_eq!(town.leave(&[(&old[0].member.member, None)]), [Ok(())]);
    let mut town = town.again();
    new.beat(&mut town).expect("it joins");
    assert_eq!((town.listed(), new.count()), (Some((Kind::Consumer, State::Stable)), 4));
    assert_eq!(town.offsets("g"), [("t".into(), 0, 5)]);
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn offsets_alone_make_no_classic_group() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    assert_eq!(town.commit(&nobody("g"), 0, 5), Ok(()));
    let mut town = town.again();
    let mut new = consumer("new");
    new.beat(&mut town).expect("it joins");
    let mut town = town.again();
    assert_eq!((town.listed(), town.offsets("g")), (Some((Kind::Consumer, State::Stable)), vec![("t".into(), 0, 5)]));
}

#[test]
fn a_static_member_changes_its_protocol() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut new = consumer("new");
    new.beat.instance = Some("one".into());
    let mut old = Classic::new();
    old.instance = Some("one");
    new.beat(&mut town).expect("it joins");
    assert_eq!(new.leave(&mut town, -2), Ok(-2));
    // It was the only one, so the group is a classic one now; nothing has changed but that, so nobody joins again.
    let ticket = town.ask(Request::Join(old.join()));
    let joined = town.joined(ticket);
    assert_eq!(town.listed(), Some((Kind::Classic, State::Stable)));
    old.member = Membership { instance: Some("one".into()), ..member_of(&joined.member, joined.generation) };
    let ticket = town.ask(sync(&old.member, &[]));
    let assignment = town.assigned(ticket).expect("what it had");
    old.take(&assignment);
    assert_eq!(old.owned, [0, 1, 2, 3]);
    assert_eq!(town.heartbeat(&old.member), Ok(()));
    // And back, without a word of the old one.
    let mut newer = consumer("newer");
    newer.beat.instance = Some("one".into());
    newer.beat(&mut town).expect("it takes its place");
    assert_eq!((town.listed(), newer.count()), (Some((Kind::Consumer, State::Stable)), 4));
    assert_eq!(town.heartbeat(&old.member), Err(Why::FencedInstanceId));
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn a_change_that_cannot_be_written_is_owed() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut old = classic(&mut town, 1);
    town.hold = true;
    let mut new = consumer("new");
    new.beat.owned = Some(vec![]);
    let ticket = town.ask(Request::Beat(new.beat.clone()));
    town.fail(0, Why::CoordinatorNotAvailable);
    assert!(matches!(town.got(ticket), Some(Answer::Beat(Err(_)))));
    town.hold = false;
    for _ in 0..3 {
        old[0].beat(&mut town);
        new.beat(&mut town).expect("it is a member");
    }
    assert_eq!((old[0].owned.len(), new.count()), (2, 2));
    let again = town.again();
    assert_eq!(town.durable(), again.durable());
}

/// Its SyncGroup is due no more when it has come over under the same id.
#[test]
fn a_classic_member_that_changes_its_protocol_stays() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    consumer("new").beat(&mut town).expect("it joins");
    let mut member = Classic::new();
    let ticket = town.ask(Request::Join(member.join()));
    member.member.member = town.not_joined(ticket).1;
    let ticket = town.ask(Request::Join(member.join()));
    let id = town.joined(ticket).member;
    let mut over = consumer(&id);
    for _ in 0..20 {
        over.beat(&mut town).expect("it is a member");
        town.wait(5_000);
    }
    let members = town.consumers().expect("a group").members;
    assert!(members.iter().any(|member| member.member == id), "{members:?}");
}
