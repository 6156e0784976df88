//! AlterPartitionReassignments: replicas move from brokers to others (KIP-455, `kafka-semantics` 4.10). The move itself is the followers';
//! it ends with the change of the ISR that makes it complete (`core::election`).

use super::Controller;
use super::draft::Draft;
use super::entities::Partition;
use super::leaders::Case;
use super::request::{ByPartition, Refusal, Why};
use crate::core::election::{Kind, Known, Proposal, Trigger};
use crate::core::types::{BrokerId, TopicPartition};

/// The new replicas of a partition, the preferred leader first; `None`: back to where they were.
pub type Target = (i32, Option<Vec<BrokerId>>);

impl Controller {
    pub(super) fn alter_reassignments(
        &self,
        topics: ByPartition<Target>,
        allow_factor_change: bool,
        draft: &mut Draft<'_>,
    ) -> ByPartition<(i32, Result<(), Refusal>)> {
        let one = |name: &str, (index, target): Target, draft: &mut Draft<'_>| {
            let unknown = |message: String| Refusal::new(Why::UnknownTopicOrPartition, message);
            let topic = self.image.topic_by_name(name).ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
            let at = TopicPartition { topic: topic.id, partition: index };
            let case = self.case(at, Trigger::Reassignment).ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
            match target {
                Some(target) => self.reassign(case, target, allow_factor_change, draft),
                None => self.cancel(case, draft),
            }
        };
        let all = topics.into_iter().map(|(name, rows)| {
            let results = rows.into_iter().map(|row| (row.0, one(&name, row, draft))).collect();
            (name, results)
        });
        all.collect()
    }

    fn reassign(&self, case: Case<'_>, target: Vec<BrokerId>, allow_factor_change: bool, draft: &mut Draft<'_>) -> Result<(), Refusal> {
        self.check_assignment(&target, None)?;
        let partition = case.partition;
        let goal = partition.replicas.iter().filter(|id| !partition.removing_replicas.contains(id)).count();
        if !allow_factor_change && goal != target.len() {
            let message = format!("The replication factor is changed from {goal} to {}", target.len());
            return Err(Refusal::new(Why::InvalidReplicationFactor, message));
        }
        // Over a running reassignment: what was there before it still is where a cancel goes back to, and what only it brought goes at
        // once, unless nobody else is in sync.
        let original = original(partition);
        let stays = |id: &BrokerId| original.contains(id) || target.contains(id);
        let isr: Vec<BrokerId> = partition.isr.iter().copied().filter(stays).collect();
        let (origin, isr) = if isr.is_empty() { (partition.replicas.clone(), partition.isr.clone()) } else { (original, isr) };
        let removing: Vec<BrokerId> = sorted(origin.iter().copied().filter(|id| !target.contains(id)));
        let adding: Vec<BrokerId> = sorted(target.iter().copied().filter(|id| !origin.contains(id)));
        let replicas = target.iter().chain(&removing).copied().collect();
        let proposal = case.propose().isr(isr).replicas(replicas, adding, removing);
        self.move_within_isr(case, proposal, draft);
        Ok(())
    }

    fn cancel(&self, mut case: Case<'_>, draft: &mut Draft<'_>) -> Result<(), Refusal> {
        let partition = case.partition;
        if partition.adding_replicas.is_empty() && partition.removing_replicas.is_empty() {
            return Err(Why::NoReassignmentInProgress.into());
        }
        let original = original(partition);
        let isr: Vec<BrokerId> = partition.isr.iter().copied().filter(|id| original.contains(id)).collect();
        let refused = |because: &str| {
            let name = format!("{}:{}", case.topic.name, case.at.partition);
            let message = format!("Unable to revert partition assignment for {name} because it would require {because}.");
            Refusal::new(Why::InvalidReplicaAssignment, message)
        };
        if original.is_empty() || isr.is_empty() && !case.loss_allowed {
            return Err(refused("an unclean leader election"));
        }
        if !isr.is_empty() {
            self.move_within_isr(case, case.propose().isr(isr).replicas(original, Vec::new(), Vec::new()), draft);
            return Ok(());
        }
        // None of those who stay is in sync. Loss is allowed, but a dead replica is still no leader.
        case.trigger = Trigger::Manual;
        let may_lead = |id| original.contains(&id) && self.may_lead(partition, id);
        if !original.iter().any(|id| may_lead(*id)) {
            return Err(refused("a replica that is alive"));
        }
        let known = Known { may_lead, claim: |id| draft.claims.of(case.at, id), directory: |id| self.default_directory(id) };
        let proposal = case.propose().isr(Vec::new()).replicas(original.clone(), Vec::new(), Vec::new());
        let verdict = proposal.kind(Kind::Unclean).decide(&known);
        self.write(draft, case, &verdict, &may_lead);
        Ok(())
    }

    /// A reassignment elects within the ISR or not at all, also where unclean elections are allowed.
    fn move_within_isr(&self, mut case: Case<'_>, proposal: Proposal<'_>, draft: &mut Draft<'_>) {
        case.loss_allowed = false;
        self.settle(draft, case, proposal, &|id| self.may_lead(case.partition, id));
    }
}

/// The replicas as they were before a running reassignment, or are if there is none.
fn original(partition: &Partition) -> Vec<BrokerId> {
    partition.replicas.iter().copied().filter(|id| !partition.adding_replicas.contains(id)).collect()
}

fn sorted(ids: impl Iterator<Item = BrokerId>) -> Vec<BrokerId> {
    let mut all: Vec<BrokerId> = ids.collect();
    all.sort();
    all
}
