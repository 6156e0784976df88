//! Who leads a partition: one function from what is known of it to a change of it, or to none.
//!
//! Rules: `kafka-semantics` 4.9. A dead replica is never elected, and nothing but an unclean election goes outside the ISR (and, when
//! the ISR is empty, the eligible leader replicas of KIP-966).

use super::controller::Partition;
use super::controller::records::{LeaderRecovery, PartitionChange};
use super::types::{BrokerId, TopicPartition};

/// What kind of leader is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first replica of the assignment if it can lead; else as `Online`.
    Preferred,
    /// Any replica that may lead without loss; the present leader if it is one.
    Online,
    /// As `Online`, and any living replica if there is none: records may be lost.
    Unclean,
}

/// The change that gives the partition the in-sync replicas `isr` and the leader that `kind` finds among them; `None` if nothing changes.
///
/// `isr` is the present ISR, or what is left of it when somebody goes. `acceptable` tells who is alive and willing to lead. An ISR
/// never becomes empty: when its last member goes the partition is leaderless and waits for that member, whose log is complete.
pub fn change(
    at: TopicPartition,
    partition: &Partition,
    isr: Vec<BrokerId>,
    kind: Kind,
    acceptable: impl Fn(BrokerId) -> bool,
) -> Option<PartitionChange> {
    let mut change = PartitionChange::new(at.topic, at.partition);
    let (leader, source) = elect(partition, &isr, kind, &acceptable);
    if leader != partition.leader {
        change.leader = Some(leader);
    }
    match source {
        Source::Isr if !isr.is_empty() && isr != partition.isr => change.isr = Some(isr),
        Source::Isr => {}
        Source::Eligible => {
            change.isr = Some(vec![leader]);
            change.elr = Some(partition.elr.iter().copied().filter(|id| *id != leader).collect());
        }
        // Everyone else may hold other records than the new leader: they start over from its log.
        Source::Outside => {
            change.isr = Some(vec![leader]);
            if partition.leader_recovery != LeaderRecovery::Recovering {
                change.leader_recovery = Some(LeaderRecovery::Recovering);
            }
        }
    }
    (change != PartitionChange::new(at.topic, at.partition)).then_some(change)
}

/// Where the leader was found.
enum Source {
    Isr,
    Eligible,
    Outside,
}

fn elect(partition: &Partition, isr: &[BrokerId], kind: Kind, acceptable: &impl Fn(BrokerId) -> bool) -> (BrokerId, Source) {
    let eligible = isr.is_empty() && !partition.elr.is_empty();
    let safe = |id: &BrokerId| if eligible { partition.elr.contains(id) } else { isr.contains(id) } && acceptable(*id);
    let preferred = partition.replicas.first().filter(|id| kind == Kind::Preferred && safe(id));
    let found = preferred.or(Some(&partition.leader).filter(|id| safe(id))).or_else(|| partition.replicas.iter().find(|id| safe(id)));
    if let Some(leader) = found {
        return (*leader, if eligible { Source::Eligible } else { Source::Isr });
    }
    if kind == Kind::Unclean
        && let Some(leader) = partition.replicas.iter().find(|id| acceptable(**id))
    {
        return (*leader, Source::Outside);
    }
    (BrokerId::NONE, Source::Isr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::{Epoch, Id};

    const AT: TopicPartition = TopicPartition { topic: Id(7), partition: 0 };

    fn ids(all: &[i32]) -> Vec<BrokerId> {
        all.iter().copied().map(BrokerId).collect()
    }

    fn partition(isr: &[i32], leader: i32, elr: &[i32]) -> Partition {
        Partition {
            replicas: ids(&[1, 2, 3]),
            directories: vec![Id(1); 3],
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

    /// (leader, ISR, recovery, ELR) of the change.
    type Outcome = (Option<i32>, Option<Vec<BrokerId>>, bool, Option<Vec<BrokerId>>);

    fn outcome(partition: &Partition, isr: &[i32], kind: Kind, alive: &[i32]) -> Option<Outcome> {
        let change = change(AT, partition, ids(isr), kind, |id| alive.contains(&id.0))?;
        assert_eq!((change.topic_id, change.partition_id, &change.replicas), (AT.topic, AT.partition, &None));
        Some((change.leader.map(|id| id.0), change.isr, change.leader_recovery == Some(LeaderRecovery::Recovering), change.elr))
    }

    #[test]
    fn preferred_takes_the_first_replica_and_else_keeps_the_leader() {
        let led_by_2 = partition(&[1, 2, 3], 2, &[]);
        assert_eq!(outcome(&led_by_2, &[1, 2, 3], Kind::Preferred, &[1, 2, 3]), Some((Some(1), None, false, None)));
        assert_eq!(outcome(&led_by_2, &[1, 2, 3], Kind::Preferred, &[2, 3]), None, "the preferred one is dead");
        let one_behind = partition(&[2, 3], 2, &[]);
        assert_eq!(outcome(&one_behind, &[2, 3], Kind::Preferred, &[1, 2, 3]), None, "the preferred one is out of sync");
        let leaderless = partition(&[2, 3], -1, &[]);
        assert_eq!(outcome(&leaderless, &[2, 3], Kind::Preferred, &[1, 3]), Some((Some(3), None, false, None)));
    }

    #[test]
    fn online_keeps_a_valid_leader_and_else_takes_the_first_in_assignment_order() {
        let led_by_3 = partition(&[3, 2, 1], 3, &[]);
        assert_eq!(outcome(&led_by_3, &[3, 2, 1], Kind::Online, &[1, 2, 3]), None);
        assert_eq!(outcome(&led_by_3, &[2, 1], Kind::Online, &[1, 2]), Some((Some(1), Some(ids(&[2, 1])), false, None)));
        assert_eq!(outcome(&led_by_3, &[2, 1], Kind::Online, &[2]), Some((Some(2), Some(ids(&[2, 1])), false, None)));
        assert_eq!(outcome(&led_by_3, &[3, 1], Kind::Online, &[1, 3]), Some((None, Some(ids(&[3, 1])), false, None)), "a follower goes");
    }

    #[test]
    fn the_last_of_the_isr_stays_in_it_and_is_waited_for() {
        let alone = partition(&[1], 1, &[]);
        assert_eq!(outcome(&alone, &[], Kind::Online, &[2, 3]), Some((Some(-1), None, false, None)));
        let waiting = partition(&[1], -1, &[]);
        assert_eq!(outcome(&waiting, &[1], Kind::Online, &[2, 3]), None);
        assert_eq!(outcome(&waiting, &[1], Kind::Online, &[1, 2, 3]), Some((Some(1), None, false, None)));
    }

    #[test]
    fn unclean_goes_outside_the_isr_only_when_nobody_in_it_lives() {
        let alone = partition(&[1], 1, &[]);
        assert_eq!(outcome(&alone, &[], Kind::Unclean, &[2, 3]), Some((Some(2), Some(ids(&[2])), true, None)));
        assert_eq!(outcome(&alone, &[], Kind::Unclean, &[]), Some((Some(-1), None, false, None)), "the dead are never elected");
        let pair = partition(&[1, 3], 1, &[]);
        assert_eq!(outcome(&pair, &[3], Kind::Unclean, &[2, 3]), Some((Some(3), Some(ids(&[3])), false, None)), "3 is in sync");
        let recovering = Partition { leader_recovery: LeaderRecovery::Recovering, ..partition(&[1], -1, &[]) };
        assert_eq!(outcome(&recovering, &[1], Kind::Unclean, &[3]), Some((Some(3), Some(ids(&[3])), false, None)), "it stays so");
    }

    #[test]
    fn an_empty_isr_falls_back_on_the_eligible_leader_replicas() {
        let eligible = partition(&[], -1, &[2, 3]);
        assert_eq!(outcome(&eligible, &[], Kind::Online, &[1, 3]), Some((Some(3), Some(ids(&[3])), false, Some(ids(&[2])))));
        assert_eq!(outcome(&eligible, &[], Kind::Online, &[1]), None);
        let with_isr = partition(&[1], -1, &[2]);
        assert_eq!(outcome(&with_isr, &[1], Kind::Online, &[2]), None, "while there is an ISR, the ELR does not lead");
    }
}
