//! Elections in tables: what is known of a partition, who lives, what is asked, and the record that comes of it.

use proptest::prelude::*;

use super::*;
use crate::core::controller::Partition;
use crate::core::controller::records::LeaderRecovery;
use crate::core::types::{Id, Offset};

const AT: TopicPartition = TopicPartition { topic: Id(7), partition: 0 };
const OFF: Rules = Rules { min_isr: 1, elr: false };
const ON: Rules = Rules { min_isr: 2, elr: true };

fn ids(all: &[i32]) -> Vec<BrokerId> {
    all.iter().copied().map(BrokerId).collect()
}

fn partition(isr: &[i32], leader: i32, elr: &[i32]) -> Partition {
    Partition {
        replicas: ids(&[1, 2, 3]),
        directories: vec![Id(1001), Id(1002), Id(1003)],
        isr: ids(isr),
        removing_replicas: vec![],
        adding_replicas: vec![],
        elr: ids(elr),
        last_known_elr: vec![],
        leader: BrokerId(leader),
        leader_epoch: Epoch(4),
        partition_epoch: Epoch(9),
        leader_recovery: LeaderRecovery::Recovered,
    }
}

fn known<'a>(
    alive: &'a [i32],
    claims: &'a [(i32, i32, i64)],
) -> Known<impl Fn(BrokerId) -> bool + 'a, impl Fn(BrokerId) -> Option<Claim> + 'a, impl Fn(BrokerId) -> Id> {
    let claim = |id: BrokerId| claims.iter().find(|(of, ..)| *of == id.0).map(|(_, epoch, end)| claimed(*epoch, *end));
    Known { may_lead: |id: BrokerId| alive.contains(&id.0), claim, directory: |id: BrokerId| Id(2000 + id.0 as u128) }
}

fn claimed(epoch: i32, end: i64) -> Claim {
    Claim { last_epoch: Epoch(epoch), end: Offset(end) }
}

/// (leader, ISR, recovery, ELR, last known ELR) of the change.
type Written = (Option<i32>, Option<Vec<BrokerId>>, bool, Option<Vec<BrokerId>>, Option<Vec<BrokerId>>);

fn written(verdict: &Verdict) -> Option<Written> {
    let change = verdict.change.as_ref()?;
    assert_eq!((change.topic_id, change.partition_id, &change.replicas), (AT.topic, AT.partition, &None));
    let recovering = change.leader_recovery == Some(LeaderRecovery::Recovering);
    Some((change.leader.map(|id| id.0), change.isr.clone(), recovering, change.elr.clone(), change.last_known_elr.clone()))
}

/// Without eligible leader replicas.
fn outcome(partition: &Partition, isr: &[i32], kind: Kind, alive: &[i32]) -> Option<(Option<i32>, Option<Vec<BrokerId>>, bool)> {
    let verdict = Proposal::new(AT, partition, OFF, kind).isr(ids(isr)).decide(&known(alive, &[]));
    written(&verdict).map(|(leader, isr, recovering, ..)| (leader, isr, recovering))
}

/// With eligible leader replicas and `min.insync.replicas` 2.
fn with_elr(partition: &Partition, isr: &[i32], kind: Kind, alive: &[i32]) -> Verdict {
    Proposal::new(AT, partition, ON, kind).isr(ids(isr)).decide(&known(alive, &[]))
}

#[test]
fn preferred_takes_the_first_replica_and_else_keeps_the_leader() {
    let led_by_2 = partition(&[1, 2, 3], 2, &[]);
    assert_eq!(outcome(&led_by_2, &[1, 2, 3], Kind::Preferred, &[1, 2, 3]), Some((Some(1), None, false)));
    assert_eq!(outcome(&led_by_2, &[1, 2, 3], Kind::Preferred, &[2, 3]), None, "the preferred one is dead");
    let one_behind = partition(&[2, 3], 2, &[]);
    assert_eq!(outcome(&one_behind, &[2, 3], Kind::Preferred, &[1, 2, 3]), None, "the preferred one is out of sync");
    let leaderless = partition(&[2, 3], -1, &[]);
    assert_eq!(outcome(&leaderless, &[2, 3], Kind::Preferred, &[1, 3]), Some((Some(3), None, false)));
}

#[test]
fn online_keeps_a_valid_leader_and_else_takes_the_first_in_assignment_order() {
    let led_by_3 = partition(&[3, 2, 1], 3, &[]);
    assert_eq!(outcome(&led_by_3, &[3, 2, 1], Kind::Online, &[1, 2, 3]), None);
    assert_eq!(outcome(&led_by_3, &[2, 1], Kind::Online, &[1, 2]), Some((Some(1), Some(ids(&[2, 1])), false)));
    assert_eq!(outcome(&led_by_3, &[2, 1], Kind::Online, &[2]), Some((Some(2), Some(ids(&[2, 1])), false)));
    assert_eq!(outcome(&led_by_3, &[3, 1], Kind::Online, &[1, 3]), Some((None, Some(ids(&[3, 1])), false)), "a follower goes");
}

#[test]
fn the_last_of_the_isr_stays_in_it_and_is_waited_for() {
    let alone = partition(&[1], 1, &[]);
    assert_eq!(outcome(&alone, &[], Kind::Online, &[2, 3]), Some((Some(-1), None, false)));
    let waiting = partition(&[1], -1, &[]);
    assert_eq!(outcome(&waiting, &[1], Kind::Online, &[2, 3]), None);
    let verdict = Proposal::new(AT, &waiting, OFF, Kind::Online).decide(&known(&[2, 3], &[]));
    assert_eq!(verdict, Verdict { change: None, leader: Err(WaitsFor::AnyOf(ids(&[1]))) }, "and it is named");
    assert_eq!(outcome(&waiting, &[1], Kind::Online, &[1, 2, 3]), Some((Some(1), None, false)));
}

#[test]
fn unclean_goes_outside_the_isr_only_when_nobody_in_it_lives() {
    let alone = partition(&[1], 1, &[]);
    assert_eq!(outcome(&alone, &[], Kind::Unclean, &[2, 3]), Some((Some(2), Some(ids(&[2])), true)));
    assert_eq!(outcome(&alone, &[], Kind::Unclean, &[]), Some((Some(-1), None, false)), "the dead are never elected");
    let pair = partition(&[1, 3], 1, &[]);
    assert_eq!(outcome(&pair, &[3], Kind::Unclean, &[2, 3]), Some((Some(3), Some(ids(&[3])), false)), "3 is in sync");
    let recovering = Partition { leader_recovery: LeaderRecovery::Recovering, ..partition(&[1], -1, &[]) };
    assert_eq!(outcome(&recovering, &[1], Kind::Unclean, &[3]), Some((Some(3), Some(ids(&[3])), false)), "it stays so");
}

#[test]
fn unclean_takes_the_most_complete_log_that_is_known() {
    let waiting = partition(&[1], -1, &[]);
    let cases: [(&[i32], &[(i32, i32, i64)], i32); 6] = [
        (&[2, 3], &[(2, 4, 90), (3, 4, 100)], 3),
        (&[2, 3], &[(2, 4, 100), (3, 4, 100)], 2),
        (&[2, 3], &[(2, 5, 10), (3, 4, 100)], 2),
        (&[2, 3], &[(3, 0, 1)], 3),
        (&[2, 3], &[], 2),
        (&[2], &[(2, 4, 90), (3, 4, 100)], 2),
    ];
    for (alive, claims, leader) in cases {
        let verdict = Proposal::new(AT, &waiting, OFF, Kind::Unclean).decide(&known(alive, claims));
        assert_eq!(verdict.leader, Ok((BrokerId(leader), Source::Outside)), "{alive:?} {claims:?}");
    }
    let nobody = Proposal::new(AT, &waiting, OFF, Kind::Unclean).decide(&known(&[], &[(2, 4, 90)]));
    assert_eq!(nobody, Verdict { change: None, leader: Err(WaitsFor::Anyone) });
}

#[test]
fn a_named_replica_leads_if_it_lives() {
    let p = partition(&[1, 3], 1, &[]);
    let decide = |id, alive: &[i32]| Proposal::new(AT, &p, ON, Kind::Designated(BrokerId(id))).decide(&known(alive, &[]));
    let clean = decide(3, &[1, 2, 3]);
    assert_eq!((written(&clean), clean.leader), (Some((Some(3), None, false, None, None)), Ok((BrokerId(3), Source::Isr))));
    let outside = decide(2, &[1, 2, 3]);
    assert_eq!(
        (written(&outside), outside.leader),
        (Some((Some(2), Some(ids(&[2])), true, None, None)), Ok((BrokerId(2), Source::Outside)))
    );
    assert_eq!(decide(3, &[1, 2]).leader, Ok((BrokerId(1), Source::Isr)), "the caller sees that it is another one");
    assert_eq!(decide(9, &[1, 9]).leader, Ok((BrokerId(1), Source::Isr)), "9 is no replica");
}

#[test]
fn who_leaves_a_small_isr_stays_eligible() {
    let whole = partition(&[1, 2, 3], 1, &[]);
    let one_less = with_elr(&whole, &[1, 2], Kind::Online, &[1, 2]);
    assert_eq!(written(&one_less), Some((None, Some(ids(&[1, 2])), false, None, None)), "two are enough to go on committing");
    let two_less = with_elr(&partition(&[1, 2], 1, &[]), &[2], Kind::Online, &[2]);
    assert_eq!(written(&two_less), Some((Some(2), Some(ids(&[2])), false, Some(ids(&[1])), None)));
    let all_gone = with_elr(&partition(&[2], 2, &[1]), &[], Kind::Online, &[3]);
    assert_eq!(written(&all_gone), Some((Some(-1), Some(vec![]), false, Some(ids(&[1, 2])), Some(ids(&[2])))));
    assert_eq!(all_gone.leader, Err(WaitsFor::AnyOf(ids(&[1, 2]))));
    let all_at_once = with_elr(&whole, &[], Kind::Online, &[]);
    assert_eq!(written(&all_at_once), Some((Some(-1), Some(vec![]), false, Some(ids(&[1, 2, 3])), Some(ids(&[1])))));
}

#[test]
fn an_empty_isr_falls_back_on_the_eligible_leader_replicas() {
    let eligible = Partition { last_known_elr: ids(&[2]), ..partition(&[], -1, &[2, 3]) };
    let back = with_elr(&eligible, &[], Kind::Online, &[1, 3]);
    assert_eq!(written(&back), Some((Some(3), Some(ids(&[3])), false, Some(ids(&[2])), Some(vec![]))));
    assert_eq!(back.leader, Ok((BrokerId(3), Source::Eligible)));
    assert_eq!(written(&with_elr(&eligible, &[], Kind::Online, &[1])), None);
    let with_isr = partition(&[1], -1, &[2]);
    assert_eq!(with_elr(&with_isr, &[1], Kind::Online, &[2]).leader, Err(WaitsFor::AnyOf(ids(&[1]))), "while there is an ISR");
    let whole_again = with_elr(&partition(&[1], 1, &[2]), &[1, 2], Kind::Online, &[1, 2]);
    assert_eq!(written(&whole_again), Some((None, Some(ids(&[1, 2])), false, Some(vec![]), None)), "two are enough: nobody is eligible");
    let by_force = with_elr(&eligible, &[], Kind::Unclean, &[1]);
    assert_eq!(written(&by_force), Some((Some(1), Some(ids(&[1])), true, Some(vec![]), Some(vec![]))));
}

/// The whole ISR loses power: one after the other its members register, none of them to be trusted.
#[test]
fn after_an_unclean_stop_of_all_their_logs_decide() {
    let mut p = partition(&[], -1, &[1, 2]);
    p.last_known_elr = ids(&[2]);
    let first = Proposal::new(AT, &p, ON, Kind::Online).distrusting(BrokerId(1)).decide(&known(&[3], &[]));
    assert_eq!(written(&first), Some((None, None, false, Some(ids(&[2])), Some(ids(&[2, 1])))));
    assert_eq!(first.leader, Err(WaitsFor::AnyOf(ids(&[2]))), "2 may still come back in order");
    (p.elr, p.last_known_elr) = (ids(&[2]), ids(&[2, 1]));
    let second = Proposal::new(AT, &p, ON, Kind::Online).distrusting(BrokerId(2)).decide(&known(&[3], &[]));
    assert_eq!(written(&second), Some((None, None, false, Some(vec![]), None)));
    assert_eq!(second.leader, Err(WaitsFor::ClaimsOf(ids(&[2, 1]))));
    p.elr = vec![];
    let waits = with_elr(&p, &[], Kind::Online, &[1, 2, 3]);
    assert_eq!(waits, Verdict { change: None, leader: Err(WaitsFor::ClaimsOf(ids(&[2, 1]))) }, "nobody leads by name");
    let claimed = with_elr(&p, &[], Kind::Claimed(BrokerId(1)), &[1, 2, 3]);
    assert_eq!(written(&claimed), Some((Some(1), Some(ids(&[1])), false, None, Some(vec![]))), "and that is no unclean election");
    assert_eq!(claimed.leader, Ok((BrokerId(1), Source::LastKnown)));
    let alone = Partition { replicas: ids(&[1]), last_known_elr: ids(&[1]), ..partition(&[], -1, &[]) };
    assert_eq!(with_elr(&alone, &[], Kind::Online, &[1]).leader, Ok((BrokerId(1), Source::LastKnown)), "there is no other log");
    assert_eq!(with_elr(&alone, &[], Kind::Online, &[]).leader, Err(WaitsFor::ClaimsOf(ids(&[1]))));
}

#[test]
fn a_claim_is_no_way_around_members_that_can_be_trusted() {
    for (isr, elr) in [(&[2][..], &[][..]), (&[], &[2])] {
        let p = partition(isr, -1, elr);
        let verdict = with_elr(&p, isr, Kind::Claimed(BrokerId(1)), &[1, 3]);
        assert_eq!(verdict, Verdict { change: None, leader: Err(WaitsFor::AnyOf(ids(&[2]))) });
        assert_eq!(with_elr(&p, isr, Kind::Claimed(BrokerId(1)), &[1, 2]).leader.map(|(id, _)| id.0), Ok(2));
    }
}

#[test]
fn a_reassignment_ends_when_those_who_come_are_in_sync() {
    let ends = |replicas: &[i32], adding: &[i32], removing: &[i32], isr: &[i32]| {
        let p = Partition {
            replicas: ids(replicas),
            directories: replicas.iter().map(|id| Id(1000 + *id as u128)).collect(),
            adding_replicas: ids(adding),
            removing_replicas: ids(removing),
            ..partition(&[1], 1, &[])
        };
        let verdict = Proposal::new(AT, &p, OFF, Kind::Online).isr(ids(isr)).decide(&known(&[1, 2, 3, 4, 5], &[]));
        let change = verdict.change?;
        let replicas = change.replicas?;
        assert_eq!(change.directories.map(|all| all.len()), Some(replicas.len()));
        let emptied = |before: &[i32], after: Option<Vec<BrokerId>>| after == (!before.is_empty()).then(Vec::new);
        assert!(emptied(adding, change.adding_replicas) && emptied(removing, change.removing_replicas));
        Some((replicas, change.isr.unwrap_or_else(|| p.isr.clone()), change.leader.map(|id| id.0)))
    };
    assert_eq!(ends(&[2, 3, 1], &[2, 3], &[1], &[1, 2, 3]), Some((ids(&[2, 3]), ids(&[2, 3]), Some(2))), "the leader goes, too");
    assert_eq!(ends(&[2, 3, 1], &[2, 3], &[1], &[1, 2]), None, "3 is missing");
    assert_eq!(ends(&[1, 2, 3], &[], &[2, 3], &[1, 2]), Some((ids(&[1]), ids(&[1]), Some(1))), "a new epoch for the same leader");
    assert_eq!(ends(&[2, 3, 1], &[], &[1], &[1, 2]), None, "all that stay must be in sync when fewer stay");
    assert_eq!(ends(&[1, 2, 3], &[2, 3], &[], &[1, 2, 3]), None, "nobody goes, nothing but the lists change");
    assert_eq!(ends(&[2, 1], &[], &[1], &[1]), None, "nobody who stays is in sync");
}

#[test]
fn a_report_of_a_directory_changes_only_that() {
    let p = partition(&[1, 2], 1, &[]);
    let report = |dir| Proposal::new(AT, &p, OFF, Kind::Online).directory(BrokerId(2), dir).decide(&known(&[1, 2], &[])).change;
    assert_eq!(report(Id(1002)), None);
    let change = PartitionChange { directories: Some(vec![Id(1001), Id(77), Id(1003)]), ..PartitionChange::new(AT.topic, AT.partition) };
    assert_eq!(report(Id(77)), Some(change));
}

#[test]
fn a_loss_is_counted_or_called_unknown() {
    let loss = |chosen, others: &[Option<Claim>]| loss_of(chosen, others.iter().copied());
    let c = |epoch, end| Some(claimed(epoch, end));
    assert_eq!(loss(c(4, 90), &[c(4, 100), c(4, 95), c(3, 200)]), Loss::Records(10));
    assert_eq!(loss(c(4, 90), &[c(4, 90), c(4, 3)]), Loss::Records(0));
    assert_eq!(loss(c(4, 90), &[]), Loss::Records(0));
    assert_eq!(loss(c(4, 90), &[c(5, 95)]), Loss::Unknown, "where they part is not known");
    assert_eq!(loss(c(4, 90), &[None]), Loss::Unknown);
    assert_eq!(loss(None, &[c(4, 1)]), Loss::Unknown);
}

proptest! {
    #[test]
    fn whatever_is_asked_a_leader_lives_and_is_in_sync(
        isr in proptest::sample::subsequence(vec![1, 2, 3], 0..=3), elr in proptest::sample::subsequence(vec![1, 2, 3], 0..=3),
        left in proptest::sample::subsequence(vec![1, 2, 3], 0..=3), alive in proptest::sample::subsequence(vec![1, 2, 3], 0..=3),
        leader in proptest::sample::select(vec![-1, 1, 2, 3]), distrusted in 0i32..4, min_isr in 1usize..4, with_elr: bool,
        kind in prop_oneof![
            Just(Kind::Preferred), Just(Kind::Online), Just(Kind::Unclean),
            (1..4).prop_map(|id| Kind::Designated(BrokerId(id))), (1..4).prop_map(|id| Kind::Claimed(BrokerId(id))),
        ],
    ) {
        let elr: Vec<i32> = elr.into_iter().filter(|id| with_elr && !isr.contains(id)).collect();
        let isr = if isr.is_empty() && !with_elr { vec![1] } else { isr };
        let p = partition(&isr, leader, &elr);
        let left: Vec<i32> = left.into_iter().filter(|id| isr.contains(id)).collect();
        let may_lead: Vec<i32> = alive.into_iter().filter(|id| *id != distrusted && (left.contains(id) || !isr.contains(id))).collect();
        let verdict = Proposal::new(AT, &p, Rules { min_isr, elr: with_elr }, kind)
            .isr(ids(&left)).distrusting(BrokerId(distrusted)).decide(&known(&may_lead, &[]));
        let change = verdict.change.unwrap_or(PartitionChange::new(AT.topic, 0));
        let (isr_after, elr_after) = (change.isr.unwrap_or(p.isr.clone()), change.elr.unwrap_or(p.elr.clone()));
        prop_assert_eq!(change.leader.unwrap_or(p.leader), verdict.leader.as_ref().map_or(BrokerId::NONE, |(id, _)| *id));
        prop_assert!(with_elr || !isr_after.is_empty(), "without ELR an ISR is never empty");
        prop_assert!(isr_after.iter().all(|id| !elr_after.contains(id)), "nobody is in both");
        if let Ok((leader, source)) = verdict.leader {
            prop_assert!(may_lead.contains(&leader.0) && isr_after.contains(&leader));
            let trusted = if isr_after.contains(&leader) && left.iter().any(|id| *id != distrusted) {
                left.contains(&leader.0)
            } else {
                p.elr.contains(&leader) || p.isr.contains(&leader)
            };
            match source {
                Source::Isr | Source::Eligible => prop_assert!(trusted),
                Source::LastKnown => prop_assert!(matches!(kind, Kind::Claimed(_))),
                Source::Outside => prop_assert!(matches!(kind, Kind::Unclean | Kind::Designated(_))),
            }
        }
    }
}
