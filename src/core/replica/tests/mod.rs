//! Leaders with followers: the ISR, proposals, and the high watermark, as tables and timelines; [`cluster`] plays whole histories.

mod cluster;

use super::*;
use crate::core::controller::records::BrokerEpoch;
use crate::core::types::{BrokerId, Epoch, Millis, Offset};

const LAG: i64 = 30_000;

fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn view(partition_epoch: i32, isr: &[i32]) -> View {
    View { partition_epoch: Epoch(partition_epoch), replicas: ids(&[1, 2, 3]), isr: ids(isr) }
}

/// Broker 1 begins epoch 3 of a partition of 1, 2 and 3 at partition epoch 7, log end 10, high watermark 4. All brokers live, in the
/// incarnation that is ten times their id.
fn leader(isr: &[i32], min_insync: usize) -> Leader {
    let begin = Begin {
        me: BrokerId(1),
        epoch: Epoch(3),
        view: view(7, isr),
        rules: Rules { min_insync, lag_max: LAG },
        log_end: Offset(10),
        high_watermark: Offset(4),
    };
    let mut leader = Leader::new(begin, Millis(0));
    leader.brokers(|id| Some(BrokerEpoch(i64::from(id.0) * 10)));
    leader
}

fn fetch(leader: &mut Leader, replica: i32, from: i64, leader_end: i64, now: i64) -> Option<Proposal> {
    let fetch = FollowerFetch {
        replica: BrokerId(replica),
        broker_epoch: BrokerEpoch(i64::from(replica) * 10),
        from: Offset(from),
        log_start: Offset(0),
        leader_end: Offset(leader_end),
    };
    leader.fetched(fetch, Millis(now)).expect("a living replica")
}

fn decided(partition_epoch: i32, isr: &[i32]) -> Answered {
    Answered::Decided { epoch: Epoch(3), partition_epoch: Epoch(partition_epoch), isr: ids(isr) }
}

#[test]
fn a_new_leader_goes_on_from_its_high_watermark_and_not_from_its_log_end() {
    let mut leader = leader(&[1, 2], 1);
    assert_eq!(leader.high_watermark(), Offset(4));
    assert!(!leader.knows_latest());
    fetch(&mut leader, 2, 6, 10, 1);
    assert_eq!(leader.high_watermark(), Offset(6), "what both have");
    fetch(&mut leader, 2, 10, 10, 2);
    assert_eq!(leader.high_watermark(), Offset(10));
    assert!(leader.knows_latest());
}

#[test]
fn the_high_watermark_never_goes_back_when_a_follower_does() {
    let mut leader = leader(&[1, 2], 1);
    fetch(&mut leader, 2, 10, 10, 1);
    fetch(&mut leader, 2, 5, 10, 2);
    assert_eq!(leader.high_watermark(), Offset(10));
}

#[test]
fn a_follower_that_joins_is_waited_for_from_the_proposal_on() {
    let mut leader = leader(&[1], 1);
    assert_eq!(leader.high_watermark(), Offset(10), "alone in the ISR");
    assert_eq!(fetch(&mut leader, 2, 9, 10, 1), None, "it lacks something that is committed");
    let proposal = fetch(&mut leader, 2, 10, 10, 2).expect("it has all");
    let isr = vec![(BrokerId(1), BrokerEpoch::NONE), (BrokerId(2), BrokerEpoch(20))];
    assert_eq!(proposal, Proposal { epoch: Epoch(3), partition_epoch: Epoch(7), isr, leaving: vec![] });
    assert_eq!(fetch(&mut leader, 3, 10, 10, 2), None, "one change at a time");
    leader.appended(Offset(15), i64::MAX, Millis(3));
    assert_eq!(leader.high_watermark(), Offset(10), "the controller may have taken it in already");
    assert_eq!(leader.isr(), ids(&[1]));
    assert_eq!(leader.answered(proposal, decided(8, &[1, 2]), Millis(4)), None);
    assert_eq!((leader.isr(), leader.partition_epoch()), (&ids(&[1, 2])[..], Epoch(8)));
    fetch(&mut leader, 2, 15, 15, 5);
    fetch(&mut leader, 3, 15, 15, 6).expect("and now the other");
}

#[test]
fn who_falls_behind_is_counted_until_the_controller_has_decided() {
    let mut leader = leader(&[1, 2, 3], 1);
    fetch(&mut leader, 2, 10, 10, 1);
    fetch(&mut leader, 3, 10, 10, 1);
    leader.appended(Offset(20), i64::MAX, Millis(2));
    fetch(&mut leader, 2, 20, 20, LAG + 2);
    assert_eq!(leader.shrink(Millis(LAG + 1)), None, "3 had everything a moment ago");
    let proposal = leader.shrink(Millis(LAG + 2)).expect("too long");
    assert_eq!(proposal.leaving, [(BrokerId(3), Behind::Silent)]);
    assert_eq!(proposal.isr, [(BrokerId(1), BrokerEpoch::NONE), (BrokerId(2), BrokerEpoch(20))]);
    assert_eq!(leader.shrink(Millis(LAG + 3)), None, "one change at a time");
    assert_eq!(leader.high_watermark(), Offset(10), "3 may still be elected");
    let again = leader.answered(proposal, Answered::Refused(ProposalRefused::Again), Millis(LAG + 4)).expect("nobody answered");
    leader.answered(again, decided(8, &[1, 2]), Millis(LAG + 5));
    assert_eq!(leader.high_watermark(), Offset(20));
}

#[test]
fn what_a_refusal_means() {
    let mut dropped = leader(&[1], 1);
    let proposal = fetch(&mut dropped, 2, 10, 10, 1).expect("it has all");
    assert_eq!(dropped.answered(proposal.clone(), Answered::Refused(ProposalRefused::Dropped), Millis(2)), None);
    assert!(fetch(&mut dropped, 2, 10, 10, 3).is_some(), "it may be proposed again");

    let mut outdated = leader(&[1], 1);
    fetch(&mut outdated, 2, 10, 10, 1).expect("it has all");
    assert_eq!(outdated.answered(proposal.clone(), Answered::Refused(ProposalRefused::Outdated), Millis(2)), None);
    outdated.appended(Offset(12), i64::MAX, Millis(3));
    assert_eq!(outdated.high_watermark(), Offset(10), "it counts until metadata says otherwise");
    outdated.decided(view(6, &[1, 2, 3]), Millis(4));
    assert_eq!(outdated.isr(), ids(&[1]), "old news");
    outdated.decided(view(9, &[1, 3]), Millis(5));
    assert_eq!(outdated.isr(), ids(&[1, 3]));

    let mut overtaken = leader(&[1], 1);
    fetch(&mut overtaken, 2, 10, 10, 1).expect("it has all");
    overtaken.decided(view(8, &[1, 2]), Millis(2));
    assert_eq!(overtaken.answered(proposal, Answered::Refused(ProposalRefused::Again), Millis(3)), None, "metadata was faster");
    assert_eq!(overtaken.isr(), ids(&[1, 2]));
}

#[test]
fn nothing_is_committed_and_nobody_joins_below_the_minimum_before_the_isr_grows() {
    let mut leader = leader(&[1], 2);
    leader.appended(Offset(12), i64::MAX, Millis(1));
    assert!(!leader.has_enough_replicas());
    assert_eq!(leader.high_watermark(), Offset(4));
    assert_eq!(fetch(&mut leader, 2, 9, 12, 2), None, "it holds what is committed, but not all of the epochs before");
    let proposal = fetch(&mut leader, 2, 11, 12, 3).expect("it does now");
    assert_eq!(leader.high_watermark(), Offset(4), "asked for is not decided");
    leader.answered(proposal, decided(8, &[1, 2]), Millis(4));
    assert_eq!(leader.high_watermark(), Offset(11));
}

#[test]
fn who_may_not_be_elected_is_not_proposed() {
    let mut leader = leader(&[1], 1);
    leader.brokers(|id| (id != BrokerId(2)).then_some(BrokerEpoch(31)));
    assert_eq!(fetch(&mut leader, 2, 10, 10, 1), None, "fenced");
    let stale = FollowerFetch {
        replica: BrokerId(3),
        broker_epoch: BrokerEpoch(30),
        from: Offset(10),
        log_start: Offset(0),
        leader_end: Offset(10),
    };
    assert_eq!(leader.fetched(stale, Millis(1)), Err(NotFollowed::StaleBroker(BrokerId(3))));
    let stranger = FollowerFetch { replica: BrokerId(4), ..stale };
    assert_eq!(leader.fetched(stranger, Millis(1)), Err(NotFollowed::NotReplica(BrokerId(4))));
}

#[test]
fn a_follower_at_the_end_outside_the_isr_is_waited_for() {
    let mut leader = leader(&[1], 1);
    fetch(&mut leader, 2, 10, 10, 1).expect("it has all");
    // 3 cannot be proposed meanwhile, but is at the end: moving on would put it behind for ever.
    assert_eq!(fetch(&mut leader, 3, 10, 10, 1), None);
    leader.appended(Offset(12), i64::MAX, Millis(2));
    fetch(&mut leader, 2, 12, 12, 3);
    assert_eq!(leader.high_watermark(), Offset(10));
    leader.brokers(|id| (id != BrokerId(3)).then_some(BrokerEpoch(20)));
    leader.flushed(Offset(0), Millis(4));
    assert_eq!(leader.high_watermark(), Offset(12), "nobody waits for a fenced broker");
}
