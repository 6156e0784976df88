//! AlterPartition: a leader proposes who is in sync (`kafka-semantics` 3.7).

use super::Controller;
use super::draft::Draft;
use super::leaders::Case;
use super::records::{BrokerEpoch, LeaderRecovery};
use super::request::{AlterPartition, ByTopicId, PartitionState, Refusal, Why};
use crate::core::election::Trigger;
use crate::core::types::{BrokerId, Epoch, TopicPartition};

impl Controller {
    /// What is decided on each row; the whole request is refused to a sender that is not who it says.
    pub(super) fn alter_partitions(
        &self,
        broker: BrokerId,
        broker_epoch: BrokerEpoch,
        topics: ByTopicId<AlterPartition>,
        draft: &mut Draft<'_>,
    ) -> Result<ByTopicId<(i32, Result<PartitionState, Why>)>, Refusal> {
        self.check_broker_epoch(broker, broker_epoch)?;
        let mut answers = Vec::with_capacity(topics.len());
        for (topic, rows) in topics {
            let known = self.image.topic(topic).is_some();
            let one = |row: AlterPartition, draft: &mut Draft<'_>| {
                if !known {
                    return Err(Why::UnknownTopicId);
                }
                let at = TopicPartition { topic, partition: row.partition };
                // Only the end of a reassignment elects here.
                let case = self.case(at, Trigger::Reassignment).ok_or(Why::UnknownTopicOrPartition)?;
                self.check_row(broker, &case, &row)?;
                self.alter_partition(broker, case, row, draft)
            };
            answers.push((topic, rows.into_iter().map(|row| (row.partition, one(row, draft))).collect()));
        }
        Ok(answers)
    }

    fn check_row(&self, broker: BrokerId, case: &Case<'_>, row: &AlterPartition) -> Result<(), Why> {
        let partition = case.partition;
        // The leader knows more than this controller: so there is a newer one.
        if row.leader_epoch > partition.leader_epoch || row.partition_epoch > partition.partition_epoch {
            return Err(Why::NotController);
        }
        if row.leader_epoch < partition.leader_epoch {
            return Err(Why::FencedLeaderEpoch);
        }
        if broker != partition.leader {
            return Err(Why::InvalidRequest);
        }
        if row.partition_epoch < partition.partition_epoch {
            return Err(Why::InvalidUpdateVersion);
        }
        let isr: Vec<BrokerId> = row.isr.iter().map(|(id, _)| *id).collect();
        let twice = isr.iter().enumerate().any(|(i, id)| isr[..i].contains(id));
        if isr.is_empty() || twice || !isr.iter().all(|id| partition.replicas.contains(id)) || !isr.contains(&broker) {
            return Err(Why::InvalidRequest);
        }
        if row.recovery == LeaderRecovery::Recovering && (isr.len() > 1 || partition.leader_recovery == LeaderRecovery::Recovered) {
            return Err(Why::InvalidRequest);
        }
        match row.isr.iter().all(|(id, epoch)| self.may_be_in_sync(*id, *epoch)) {
            true => Ok(()),
            false => Err(Why::IneligibleReplica),
        }
    }

    /// -1 for an epoch: the sender does not say which process of that broker it means.
    fn may_be_in_sync(&self, id: BrokerId, epoch: BrokerEpoch) -> bool {
        self.image.broker(id).is_some_and(|broker| broker.is_active() && (epoch == BrokerEpoch::NONE || epoch == broker.broker_epoch))
    }

    fn alter_partition(&self, broker: BrokerId, case: Case<'_>, row: AlterPartition, draft: &mut Draft<'_>) -> Result<PartitionState, Why> {
        let isr: Vec<BrokerId> = row.isr.into_iter().map(|(id, _)| id).collect();
        let old = case.partition;
        let verdict = self.settle(draft, case, case.propose().as_leader_asks(isr, row.recovery), &|id| self.may_lead(old, id));
        let change = verdict.change.as_ref();
        let leader = change.and_then(|change| change.leader);
        if leader.is_some_and(|leader| leader != broker) {
            return Err(Why::NewLeaderElected);
        }
        Ok(PartitionState {
            leader: leader.unwrap_or(old.leader),
            leader_epoch: Epoch(old.leader_epoch.0 + i32::from(leader.is_some())),
            partition_epoch: Epoch(old.partition_epoch.0 + i32::from(change.is_some())),
            isr: change.and_then(|change| change.isr.as_ref()).unwrap_or(&old.isr).clone(),
            recovery: change.and_then(|change| change.leader_recovery).unwrap_or(old.leader_recovery),
        })
    }
}
