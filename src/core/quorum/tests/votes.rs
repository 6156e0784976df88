//! Who gets a vote: tables over roles and requests (`kraft.md` 2.5, 5).

use super::*;

/// The answer to a vote, and what is persisted before it.
fn judge(node: &mut Node, request: VoteRequest) -> (Option<Problem>, bool, Vec<ElectionState>) {
    let fx = node.ask(Request::Vote(request));
    let Response::Vote { head, granted } = answer(&fx) else { panic!("another answer") };
    let at = fx.iter().position(|effect| matches!(effect, Effect::Answer { .. })).unwrap();
    assert_eq!(persisted(&fx[at..]), [], "what an answer shows is on disk first");
    (head.refused, granted, persisted(&fx))
}

#[test]
fn a_vote_is_given_once_and_for_a_log_that_has_it_all() {
    let unknown = state(3, None, None);
    let table = [
        ("as long", unknown, vote(2, 4, (3, 10), false), (None, true), vec![state(4, None, None), state(4, None, Some(2))]),
        ("longer", unknown, vote(2, 4, (3, 11), false), (None, true), vec![state(4, None, None), state(4, None, Some(2))]),
        ("shorter", unknown, vote(2, 4, (3, 9), false), (None, false), vec![state(4, None, None)]),
        ("long but old", unknown, vote(2, 4, (1, 99), false), (None, false), vec![state(4, None, None)]),
        ("the same again", state(4, None, Some(2)), vote(2, 4, (1, 1), false), (None, true), vec![]),
        ("another", state(4, None, Some(3)), vote(2, 4, (3, 10), false), (None, false), vec![]),
        ("a leader is known", state(4, Some(3), None), vote(2, 4, (3, 10), false), (None, false), vec![]),
        ("an epoch that is over", unknown, vote(2, 2, (1, 10), false), (Some(Problem::FencedEpoch), false), vec![]),
        ("a log from the future", unknown, vote(2, 4, (4, 10), false), (Some(Problem::Invalid), false), vec![]),
        ("nobody", unknown, vote(-1, 4, (3, 10), false), (Some(Problem::Invalid), false), vec![]),
    ];
    for (case, stored, request, expected, writes) in table {
        let (mut node, _) = idle(1, &[1, 2, 3], stored);
        let (refused, granted, persisted) = judge(&mut node, request);
        assert_eq!((refused, granted), expected, "{case}");
        assert_eq!(persisted, writes, "{case}");
    }
}

#[test]
fn a_vote_for_another_voter_is_refused() {
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, None, None));
    let table = [
        (Some((BrokerId(3), Id::ZERO)), Some(Problem::InvalidVoterKey)),
        (Some((BrokerId(1), Id(7))), Some(Problem::InvalidVoterKey)),
        (Some((BrokerId(1), Id::ZERO)), None),
        (Some((BrokerId(1), Id(500))), None),
        (None, None),
    ];
    for (voter, refused) in table {
        let request = VoteRequest { voter, ..vote(2, 4, (3, 10), true) };
        assert_eq!(judge(&mut node, request).0, refused, "{voter:?}");
    }
}

#[test]
fn a_pre_vote_changes_nothing_and_a_living_leader_needs_none() {
    let asked = vote(2, 3, (3, 10), true);
    let (mut node, _) = idle(1, &[1, 2, 3], state(3, None, Some(3)));
    assert_eq!(judge(&mut node, asked), (None, true, vec![]), "a vote given says nothing against it");
    assert_eq!(judge(&mut node, vote(2, 3, (3, 9), true)), (None, false, vec![]), "a lesser log does");

    let (mut follower, fx) = idle(1, &[1, 2, 3], state(3, Some(3), None));
    assert_eq!(sent(&fx), [(3, "fetch")]);
    assert_eq!(judge(&mut follower, asked), (None, true, vec![]), "its leader has not answered yet");
    let nothing = Fetched { head: head(3, Some(3)), high_watermark: None, log_start: Offset(0), detour: None, records: Records::default() };
    follower.answered(3, &fx, Ok(Response::Fetch(nothing)));
    assert_eq!(judge(&mut follower, asked), (None, false, vec![]), "its leader lives");
    follower.with(&mut Vec::new(), |quorum, cx| quorum.disconnected(BrokerId(3), cx));
    assert_eq!(judge(&mut follower, asked), (None, true, vec![]), "its leader may be gone");
}

#[test]
fn who_led_an_epoch_neither_leads_nor_votes_in_it_again() {
    let (mut node, fx) = idle(1, &[1, 2, 3], state(3, Some(1), None));
    assert_eq!((node.role(), sent(&fx)), (RoleName::Resigned, vec![]));
    assert_eq!(judge(&mut node, vote(2, 3, (2, 99), false)), (None, false, vec![]));
    assert_eq!(judge(&mut node, vote(2, 3, (3, 10), true)), (None, true, vec![]));
    let fx = node.after(2000);
    assert_eq!(persisted(&fx), [state(4, None, None)], "the epoch it led is over");
    assert_eq!(sent(&fx), [(2, "pre-vote"), (3, "pre-vote")]);
}
