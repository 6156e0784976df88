//! Timelines of elections: timers, campaigns, successions (`kraft.md` 2.2 to 2.6).

use super::*;

#[test]
fn a_voter_without_a_leader_asks_first_and_then_leads() {
    let (mut node, fx) = idle(1, &[1, 2, 3], state(3, None, None));
    assert_eq!(sent(&fx).len(), 1, "it looks for a leader: {fx:?}");
    assert_eq!(sent(&node.after(999)), [], "an election timer is at least one timeout");
    let asked = node.after(1001);
    assert_eq!(sent(&asked), [(2, "pre-vote"), (3, "pre-vote")]);
    assert_eq!(persisted(&asked), []);
    let asked = node.answered(2, &asked, ballot(3, true));
    let me = ElectionState { voted: Some((BrokerId(1), Id(500))), ..state(4, None, None) };
    assert_eq!((persisted(&asked), sent(&asked)), (vec![me], vec![(2, "vote"), (3, "vote")]));
    let elected = node.answered(3, &asked, ballot(4, true));
    assert_eq!(persisted(&elected), [state(4, Some(1), None)]);
    assert_eq!(sent(&elected), [(2, "begin"), (3, "begin")]);
    let record = LeaderChange { leader: BrokerId(1), voters: [1, 2, 3].map(BrokerId).into(), granting: [1, 3].map(BrokerId).into() };
    assert!(elected.contains(&Effect::AppendLeaderChange { epoch: Epoch(4), offset: Offset(10), record }));
    assert_eq!(node.high_watermark(), None);
}

#[test]
fn a_refused_pre_vote_leads_back_to_the_leader() {
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let asked = node.after(2000);
    assert_eq!(sent(&asked), [(2, "pre-vote"), (3, "pre-vote")]);
    node.answered(2, &asked, ballot(3, false));
    assert_eq!(node.role(), RoleName::Prospective);
    let back = node.answered(3, &asked, ballot(3, false));
    assert_eq!((node.role(), sent(&back), persisted(&back)), (RoleName::Follower, vec![(3, "fetch")], vec![]));
}

#[test]
fn a_peer_without_pre_votes_is_asked_for_a_real_one() {
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let asked = node.after(2000);
    let asked = node.answered(2, &asked, Err(SendFailed::Unsupported));
    assert_eq!((node.role(), node.epoch()), (RoleName::Candidate, Epoch(4)));
    assert_eq!(sent(&asked), [(2, "vote"), (3, "vote")]);
}

#[test]
fn a_voter_that_refused_and_lost_its_leader_since_is_asked_again() {
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let asked = node.after(2000);
    node.answered(2, &asked, ballot(3, false));
    let again = node.ask(Request::Vote(vote(2, 3, (3, 9), true)));
    assert_eq!(sent(&again), [(2, "pre-vote")]);
    node.answered(2, &again, ballot(3, true));
    assert_eq!(node.role(), RoleName::Candidate);
}

#[test]
fn a_broken_connection_shortens_the_wait_for_a_leader() {
    let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    node.answered(3, &fx, Err(SendFailed::Disconnected));
    assert_eq!(node.role(), RoleName::Follower);
    node.after(149);
    assert_eq!(node.role(), RoleName::Follower, "a grace to come back");
    node.after(151);
    assert_eq!(node.role(), RoleName::Prospective);
}

#[test]
fn a_leader_without_a_majority_resigns_and_names_successors() {
    let mut node = leader();
    let fx = node.ask(Request::Fetch(fetch(3, 4, 10, 3)));
    assert_eq!(sent(&fx), []);
    assert_eq!(node.after(2999).iter().filter(|effect| matches!(effect, Effect::Resigned { .. })).count(), 0);
    let fx = node.after(3001);
    assert!(fx.contains(&Effect::Resigned { epoch: Epoch(4) }), "{fx:?}");
    let successors = fx.iter().find_map(|effect| match effect {
        Effect::Send { request: Request::EndEpoch(end), .. } => Some(end.successors.iter().map(|(id, _)| id.0).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(successors, Some(vec![3, 2]), "the longest log first");
    assert_eq!(sent(&fx), [(2, "end"), (3, "end")]);
}

#[test]
fn successors_campaign_in_turn() {
    let table =
        [(vec![1, 2], 0), (vec![2, 1], 500), (vec![2, 1, 3, 4], 125), (vec![2, 3, 1, 4], 250), (vec![2, 3, 4, 1], 500), (vec![2], 1000)];
    for (successors, wait) in table {
        let (mut node, _) = idle(1, &[1, 2, 3, 4, 5], state(3, Some(5), None));
        let successors: Vec<_> = successors.into_iter().map(|id| (BrokerId(id), Id::ZERO)).collect();
        node.ask(Request::EndEpoch(EndEpoch { leader: BrokerId(5), epoch: Epoch(3), successors: successors.clone() }));
        if wait > 0 {
            node.after(wait - 1);
            assert_eq!(node.role(), RoleName::Follower, "{successors:?}");
            node.after(1);
        }
        assert_eq!(node.role(), RoleName::Prospective, "{successors:?}");
    }
}

#[test]
fn two_leaders_of_one_epoch_are_a_contradiction() {
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    let fx = node.ask(Request::BeginEpoch(BeginEpoch { voter: None, leader: BrokerId(2), epoch: Epoch(3) }));
    let (known, other) = (BrokerId(3), BrokerId(2));
    assert_eq!(fx[0], Effect::Fatal(Contradiction::TwoLeaders { epoch: Epoch(3), known, other }));
    assert_eq!(node.after(10_000), [], "nothing happens any more");
}

#[test]
fn observers_follow_and_never_campaign() {
    let (mut node, fx) = idle(9, &[1, 2, 3], state(3, Some(3), None));
    assert_eq!((node.role(), sent(&fx)), (RoleName::Observer, vec![(3, "fetch")]));
    for _ in 0..20 {
        let fx = node.after(1000);
        assert!(sent(&fx).iter().all(|(_, what)| *what == "fetch"), "{fx:?}");
    }
}

#[test]
fn who_stops_hands_over_and_campaigns_no_more() {
    let mut node = leader();
    let mut fx = Vec::new();
    node.with(&mut fx, |quorum, cx| quorum.stop(cx));
    assert_eq!((sent(&fx), node.may_stop()), (vec![(2, "end"), (3, "end")], false));
    node.answered(2, &fx, Ok(Response::EndEpoch(head(4, Some(1)))));
    node.answered(3, &fx, Ok(Response::EndEpoch(head(4, Some(1)))));
    assert!(node.may_stop());
    assert_eq!((node.after(100_000), node.next_deadline()), (vec![], None));
}

/// Node 1 leads epoch 4 of three voters; its log ends at 11.
pub(super) fn leader() -> Node {
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, None, None));
    let asked = node.after(2000);
    let asked = node.answered(2, &asked, ballot(3, true));
    node.answered(2, &asked, ballot(4, true));
    assert!(node.is_leader());
    node
}

/// A fetch by a voter or observer.
pub(super) fn fetch(replica: i32, epoch: i32, offset: i64, last_epoch: i32) -> FetchRequest {
    FetchRequest {
        replica: BrokerId(replica),
        directory: Id(replica as u128),
        epoch: Epoch(epoch),
        offset: Offset(offset),
        last_epoch: Epoch(last_epoch),
        max_wait: 500,
        max_bytes: 1 << 20,
        high_watermark: Some(Offset::NONE),
    }
}
