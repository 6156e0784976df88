//! Assignments by tables, and what must hold whatever groups look like.

use proptest::prelude::*;

use super::*;
use crate::core::types::Id;

type Members = BTreeMap<Arc<str>, MemberSpec>;
type Given = BTreeMap<Arc<str>, Assignment>;

fn topics(counts: &[i32]) -> BTreeMap<TopicId, i32> {
    (1..).zip(counts).map(|(id, count)| (Id(id), *count)).collect()
}

fn group(subscriptions: &[&[u128]]) -> Members {
    let member = |topics: &&[u128]| MemberSpec { subscribed: topics.iter().map(|id| Id(*id)).collect(), ..MemberSpec::default() };
    subscriptions.iter().enumerate().map(|(at, topics)| (format!("m{at:03}").into(), member(topics))).collect()
}

/// The group after that assignment was handed out.
fn with(mut members: Members, given: &Given) -> Members {
    for (id, member) in &mut members {
        member.assigned = given.get(id).cloned().unwrap_or_default();
    }
    members
}

fn load(assignment: &Assignment) -> usize {
    assignment.values().map(BTreeSet::len).sum()
}

fn loads(given: &Given) -> Vec<usize> {
    given.values().map(load).collect()
}

fn owners(given: &Given) -> BTreeMap<(TopicId, i32), Arc<str>> {
    let mut owners = BTreeMap::new();
    for (member, assignment) in given {
        for (topic, partitions) in assignment {
            assert!(!partitions.is_empty(), "no topic without partitions");
            for partition in partitions {
                assert_eq!(owners.insert((*topic, *partition), member.clone()), None, "{topic}-{partition} is given twice");
            }
        }
    }
    owners
}

/// Every member is there; every partition of what somebody subscribes to is given, to one who does.
fn check(members: &Members, partitions: &BTreeMap<TopicId, i32>, given: &Given) {
    assert!(given.keys().eq(members.keys()));
    let owners = owners(given);
    for ((topic, _), owner) in &owners {
        assert!(members[owner].subscribed.contains(topic));
    }
    let wanted: BTreeSet<TopicId> = members.values().flat_map(|member| member.subscribed.iter().copied()).collect();
    let all = wanted.iter().flat_map(|topic| (0..count(partitions, topic)).map(|partition| (*topic, partition)));
    assert!(owners.keys().copied().eq(all));
}

/// How many partitions another member has than before, of those whose owner is still there and may keep them.
fn moved(members: &Members, given: &Given) -> usize {
    let owners = owners(given);
    let kept = |id: &Arc<str>, topic: &TopicId, partition: i32| owners.get(&(*topic, partition)) == Some(id);
    let before = members.iter().flat_map(|(id, member)| {
        let subscribed = member.assigned.iter().filter(|(topic, _)| member.subscribed.contains(topic));
        subscribed.flat_map(move |(topic, partitions)| partitions.iter().map(move |partition| (id, topic, *partition)))
    });
    before.filter(|(id, topic, partition)| owners.contains_key(&(**topic, *partition)) && !kept(id, topic, *partition)).count()
}

fn ranges(given: &Given, topic: u128) -> Vec<Vec<i32>> {
    given.values().map(|assignment| assignment.get(&Id(topic)).map(|of| Vec::from_iter(of.iter().copied())).unwrap_or_default()).collect()
}

#[test]
fn names_are_kafkas() {
    for assignor in [Assignor::Uniform, Assignor::Range] {
        assert_eq!(Assignor::from_name(assignor.name()), Some(assignor));
    }
    assert_eq!((Assignor::Uniform.name(), Assignor::Range.name(), Assignor::from_name("sticky")), ("uniform", "range", None));
}

#[test]
fn nobody_and_nothing() {
    for assignor in [Assignor::Uniform, Assignor::Range] {
        assert_eq!(assign(assignor, &Members::new(), &topics(&[3])), Given::new());
        let idle = assign(assignor, &group(&[&[], &[]]), &topics(&[3]));
        assert_eq!(loads(&idle), [0, 0]);
        let unknown = assign(assignor, &group(&[&[9], &[1, 9], &[1]]), &topics(&[3]));
        assert_eq!(loads(&unknown).iter().sum::<usize>(), 3, "a topic without partitions does no harm");
    }
}

#[test]
fn ranges_by_table() {
    let given = assign(Assignor::Range, &group(&[&[1, 2], &[1, 2], &[1, 2]]), &topics(&[7, 7]));
    assert_eq!(ranges(&given, 1), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
    assert_eq!(ranges(&given, 1), ranges(&given, 2), "topics with as many partitions are split at the same places");
    let given = assign(Assignor::Range, &group(&[&[1], &[1, 2], &[2]]), &topics(&[3, 2]));
    assert_eq!((ranges(&given, 1), ranges(&given, 2)), (vec![vec![0, 1], vec![2], vec![]], vec![vec![], vec![0], vec![1]]));
    let given = assign(Assignor::Range, &group(&[&[1], &[1], &[1]]), &topics(&[2]));
    assert_eq!(ranges(&given, 1), [vec![0], vec![1], vec![]]);

    let mut members = group(&[&[1], &[1], &[1]]);
    members.get_mut("m001").expect("it is there").instance = Some("z".into());
    members.get_mut("m002").expect("it is there").instance = Some("a".into());
    let given = assign(Assignor::Range, &members, &topics(&[3]));
    assert_eq!(ranges(&given, 1), [vec![2], vec![1], vec![0]], "static members come first, in the order of their instances");
}

#[test]
fn what_is_even_stays_as_it_is() {
    let members = group(&[&[1, 2], &[1, 2], &[1, 2]]);
    let partitions = topics(&[4, 4]);
    let given = assign(Assignor::Uniform, &members, &partitions);
    assert_eq!(loads(&given), [3, 3, 2]);
    assert_eq!(assign(Assignor::Uniform, &with(members, &given), &partitions), given);
}

#[test]
fn a_member_that_says_it_has_what_it_cannot_have_gets_no_more_for_it() {
    let mut members = group(&[&[1], &[1]]);
    let lie = [(Id(1), BTreeSet::from([-1, 0, 1, 77])), (Id(8), BTreeSet::from([0]))];
    members.values_mut().for_each(|member| member.assigned = lie.clone().into());
    let given = assign(Assignor::Uniform, &members, &topics(&[4]));
    check(&members, &topics(&[4]), &given);
    assert_eq!(ranges(&given, 1), [vec![0, 1], vec![2, 3]]);
    members.get_mut("m001").expect("it is there").subscribed.insert(Id(2));
    let given = assign(Assignor::Uniform, &members, &topics(&[4, 1]));
    check(&members, &topics(&[4, 1]), &given);
}

#[test]
fn different_subscriptions_by_table() {
    // Only m000 reads topic 1, so all of topic 2 is for the others.
    let given = assign(Assignor::Uniform, &group(&[&[1, 2], &[2], &[2]]), &topics(&[4, 6]));
    assert_eq!(loads(&given), [4, 3, 3]);
    // A subscriber less, of two: what it had of the other topic goes to who has least.
    let members = group(&[&[1], &[1, 2], &[2]]);
    let given = assign(Assignor::Uniform, &members, &topics(&[4, 8]));
    assert_eq!(loads(&given), [4, 2, 6].map(|_| 4), "four each: {given:?}");
}

fn subscription(most: u128) -> impl Strategy<Value = Vec<u128>> {
    proptest::collection::btree_set(1..=most, 0..4).prop_map(Vec::from_iter)
}

fn made_of(subscriptions: &[Vec<u128>]) -> Members {
    group(&Vec::from_iter(subscriptions.iter().map(Vec::as_slice)))
}

proptest! {
    #[test]
    fn alike_members_have_as_many_and_keep_what_they_can(
        before in 0..12usize, leave in 0..12usize, join in 0..12usize,
        first in proptest::collection::vec(0..20i32, 1..5), then in proptest::collection::vec(0..20i32, 1..5),
    ) {
        let all: Vec<u128> = (1..=first.len() as u128).collect();
        let members = made_of(&vec![all; before]);
        let given = assign(Assignor::Uniform, &members, &topics(&first));
        check(&members, &topics(&first), &given);

        // Some leave, others come, topics grow, shrink and go.
        let all: BTreeSet<TopicId> = topics(&then).into_keys().collect();
        let mut members: Members = with(members, &given).into_iter().skip(leave).collect();
        members.extend((0..join).map(|at| (format!("a{at}").into(), MemberSpec::default())));
        members.values_mut().for_each(|member| member.subscribed = all.clone());
        let again = assign(Assignor::Uniform, &members, &topics(&then));
        check(&members, &topics(&then), &again);
        let (least, most) = (loads(&again).into_iter().min(), loads(&again).into_iter().max());
        prop_assert!(most <= least.map(|least| least + 1), "{again:?}");

        // Nobody gives up what it could have kept: not below its share, and no more than there are places above it.
        let total: i32 = then.iter().sum();
        let (each, mut extra) = (total as usize / members.len().max(1), total as usize % members.len().max(1));
        let mut needed = 0;
        for member in members.values() {
            let has = member.assigned.iter().map(|(topic, owned)| {
                owned.iter().filter(|partition| **partition < count(&topics(&then), topic)).count()
            }).sum::<usize>();
            if has > each {
                let more = usize::from(extra > 0);
                extra -= more;
                needed += has - each - more;
            }
        }
        prop_assert_eq!(moved(&members, &again), needed);
        prop_assert_eq!(assign(Assignor::Uniform, &with(members, &again), &topics(&then)), again, "and then it stays");
    }

    #[test]
    fn different_members_are_as_level_as_single_moves_make_them(
        subscriptions in proptest::collection::vec(subscription(5), 1..10), counts in proptest::collection::vec(0..12i32, 1..6),
        gone in 0..10usize, new in proptest::collection::vec(subscription(5), 0..3),
    ) {
        let partitions = topics(&counts);
        let mut members = made_of(&subscriptions);
        let mut given = heterogeneous::assign(&members, &partitions);
        for round in 0..2 {
            check(&members, &partitions, &given);
            for ((topic, _), owner) in owners(&given) {
                for (id, _) in members.iter().filter(|(_, member)| member.subscribed.contains(&topic)) {
                    prop_assert!(load(&given[&owner]) <= load(&given[id]) + 1, "round {round}: {owner} and {id} over {topic}: {given:?}");
                }
            }
            members = with(members, &given);
            prop_assert_eq!(&heterogeneous::assign(&members, &partitions), &given, "and then it stays");
            if round == 0 {
                let mut at = 0;
                members.retain(|_, _| { at += 1; at != gone });
                let joined = made_of(&new).into_iter().map(|(id, member)| (format!("a{id}").into(), member));
                members.extend(joined);
                given = heterogeneous::assign(&members, &partitions);
            }
        }
    }

    #[test]
    fn where_all_subscribe_to_the_same_both_ways_are_as_good(members in 1..10usize, counts in proptest::collection::vec(0..12i32, 1..4), gone in 0..10usize) {
        let all: Vec<u128> = (1..=counts.len() as u128).collect();
        let (members, partitions) = (made_of(&vec![all; members]), topics(&counts));
        let given = uniform::assign(&members, &partitions);
        let mut left = with(members, &given);
        let mut at = 0;
        left.retain(|_, _| { at += 1; at != gone });
        let (one, other) = (uniform::assign(&left, &partitions), heterogeneous::assign(&left, &partitions));
        let sorted = |given: &Given| { let mut loads = loads(given); loads.sort_unstable(); loads };
        prop_assert_eq!(sorted(&one), sorted(&other));
        prop_assert_eq!(moved(&left, &one), moved(&left, &other));
    }

    #[test]
    fn ranges_are_whole_and_in_one_order(
        subscriptions in proptest::collection::vec(subscription(5), 1..10), counts in proptest::collection::vec(0..12i32, 1..6),
        statics in proptest::collection::vec(proptest::option::of(0..100u8), 10),
    ) {
        let partitions = topics(&counts);
        let mut members = made_of(&subscriptions);
        for (member, instance) in members.values_mut().zip(statics) {
            member.instance = instance.map(|instance| format!("{instance}").into());
        }
        let given = assign(Assignor::Range, &members, &partitions);
        check(&members, &partitions, &given);
        for topic in partitions.keys() {
            let of: Vec<&BTreeSet<i32>> = given.values().filter_map(|assignment| assignment.get(topic)).collect();
            for range in &of {
                prop_assert_eq!(range.last().unwrap() - range.first().unwrap() + 1, range.len() as i32);
            }
            let subscribers = members.values().filter(|member| member.subscribed.contains(topic)).count();
            let sizes = of.iter().map(|range| range.len());
            let (least, most) = (if of.len() < subscribers { 0 } else { sizes.clone().min().unwrap_or(0) }, sizes.max().unwrap_or(0));
            prop_assert!(most <= least + 1);
        }
        // Co-partitioning: two topics alike in partitions and subscribers are split alike.
        for (a, b) in [(1, 2), (2, 3), (1, 5)].map(|(a, b)| (Id(a), Id(b))) {
            let alike = members.values().all(|member| member.subscribed.contains(&a) == member.subscribed.contains(&b));
            if alike && count(&partitions, &a) == count(&partitions, &b) {
                prop_assert!(given.values().all(|assignment| assignment.get(&a) == assignment.get(&b)));
            }
        }
    }
}
