//! Who is in sync, and which directory holds what.

use super::{NoAnswer, outcome};
use crate::core::controller::ByDirectory;
use crate::core::controller::records::{BrokerEpoch, LeaderRecovery};
use crate::core::controller::request::{AlterPartition, Answer, ByTopicId, PartitionState, Request, Why};
use crate::core::types::{BrokerId, Epoch, Id};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{
    self, AlterPartitionRequest, AlterPartitionResponse, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse,
    alter_partition_request, assign_replicas_to_dirs_request,
};
use uuid::Uuid;

pub(super) fn alter(broker: BrokerId, epoch: BrokerEpoch, topics: &ByTopicId<AlterPartition>) -> AlterPartitionRequest {
    let member = |(id, epoch): &(BrokerId, BrokerEpoch)| {
        alter_partition_request::BrokerState::default().with_broker_id(messages::BrokerId(id.0)).with_broker_epoch(epoch.0)
    };
    let row = |row: &AlterPartition| {
        alter_partition_request::PartitionData::default()
            .with_partition_index(row.partition)
            .with_leader_epoch(row.leader_epoch.0)
            .with_partition_epoch(row.partition_epoch.0)
            .with_new_isr_with_epochs(row.isr.iter().map(member).collect())
            .with_leader_recovery_state(i8::from(row.recovery == LeaderRecovery::Recovering))
    };
    let topics = topics.iter().map(|(id, rows)| {
        let rows = rows.iter().map(row).collect();
        alter_partition_request::TopicData::default().with_topic_id(Uuid::from_u128(id.0)).with_partitions(rows)
    });
    AlterPartitionRequest::default().with_broker_id(messages::BrokerId(broker.0)).with_broker_epoch(epoch.0).with_topics(topics.collect())
}

/// A leader's proposal; `None` if it names a state of recovery that there is not.
pub fn alter_partitions(request: AlterPartitionRequest, version: i16) -> Option<Request> {
    let row = |row: alter_partition_request::PartitionData| {
        let isr = match version {
            ..=2 => row.new_isr.iter().map(|id| (BrokerId(id.0), BrokerEpoch::NONE)).collect(),
            _ => row.new_isr_with_epochs.iter().map(|state| (BrokerId(state.broker_id.0), BrokerEpoch(state.broker_epoch))).collect(),
        };
        Some(AlterPartition {
            partition: row.partition_index,
            leader_epoch: Epoch(row.leader_epoch),
            partition_epoch: Epoch(row.partition_epoch),
            isr,
            recovery: recovery(row.leader_recovery_state)?,
        })
    };
    let topics = request.topics.into_iter().map(|topic| {
        let rows = topic.partitions.into_iter().map(row).collect::<Option<_>>()?;
        Some((Id(topic.topic_id.as_u128()), rows))
    });
    Some(Request::AlterPartitions {
        broker: BrokerId(request.broker_id.0),
        broker_epoch: BrokerEpoch(request.broker_epoch),
        topics: topics.collect::<Option<_>>()?,
    })
}

fn recovery(state: i8) -> Option<LeaderRecovery> {
    match state {
        0 => Some(LeaderRecovery::Recovered),
        1 => Some(LeaderRecovery::Recovering),
        _ => None,
    }
}

/// Of one row: nothing, or why not.
fn why(code: i16) -> Result<Result<(), Why>, NoAnswer> {
    match ErrorCode::from_code(code) {
        // Of one partition it says that its leader knows more than who answers.
        Some(ErrorCode::NotController) => Ok(Err(Why::NotController)),
        _ => outcome(code).map(|outcome| outcome.map_err(|refusal| refusal.why)),
    }
}

pub(super) fn altered(answer: AlterPartitionResponse) -> Result<Answer, NoAnswer> {
    if let Err(refusal) = outcome(answer.error_code)? {
        return Ok(Answer::AlterPartitions(Err(refusal)));
    }
    let mut topics = Vec::with_capacity(answer.topics.len());
    for topic in answer.topics {
        let mut rows = Vec::with_capacity(topic.partitions.len());
        for row in topic.partitions {
            let recovery = recovery(row.leader_recovery_state).unwrap_or_default();
            let state = PartitionState {
                leader: BrokerId(row.leader_id.0),
                leader_epoch: Epoch(row.leader_epoch),
                partition_epoch: Epoch(row.partition_epoch),
                isr: row.isr.iter().map(|id| BrokerId(id.0)).collect(),
                recovery,
            };
            rows.push((row.partition_index, why(row.error_code)?.map(|()| state)));
        }
        topics.push((Id(topic.topic_id.as_u128()), rows));
    }
    Ok(Answer::AlterPartitions(Ok(topics)))
}

pub(super) fn assign(broker: BrokerId, epoch: BrokerEpoch, directories: &ByDirectory<i32>) -> AssignReplicasToDirsRequest {
    use assign_replicas_to_dirs_request::{DirectoryData, PartitionData, TopicData};
    let directories = directories.iter().map(|(directory, topics)| {
        let topics = topics.iter().map(|(topic, indexes)| {
            let rows = indexes.iter().map(|index| PartitionData::default().with_partition_index(*index));
            TopicData::default().with_topic_id(Uuid::from_u128(topic.0)).with_partitions(rows.collect())
        });
        DirectoryData::default().with_id(Uuid::from_u128(directory.0)).with_topics(topics.collect())
    });
    AssignReplicasToDirsRequest::default()
        .with_broker_id(messages::BrokerId(broker.0))
        .with_broker_epoch(epoch.0)
        .with_directories(directories.collect())
}

/// Where a broker's replicas are.
pub fn assign_directories(request: AssignReplicasToDirsRequest) -> Request {
    let directories = request.directories.into_iter().map(|directory| {
        let topics = directory.topics.into_iter().map(|topic| {
            let indexes = topic.partitions.iter().map(|row| row.partition_index).collect();
            (Id(topic.topic_id.as_u128()), indexes)
        });
        (Id(directory.id.as_u128()), topics.collect())
    });
    Request::AssignDirectories {
        broker: BrokerId(request.broker_id.0),
        broker_epoch: BrokerEpoch(request.broker_epoch),
        directories: directories.collect(),
    }
}

pub(super) fn assigned(answer: AssignReplicasToDirsResponse) -> Result<Answer, NoAnswer> {
    if let Err(refusal) = outcome(answer.error_code)? {
        return Ok(Answer::AssignDirectories(Err(refusal)));
    }
    let mut directories = Vec::with_capacity(answer.directories.len());
    for directory in answer.directories {
        let mut topics = Vec::with_capacity(directory.topics.len());
        for topic in directory.topics {
            let rows = topic.partitions.iter().map(|row| Ok((row.partition_index, why(row.error_code)?)));
            topics.push((Id(topic.topic_id.as_u128()), rows.collect::<Result<_, NoAnswer>>()?));
        }
        directories.push((Id(directory.id.as_u128()), topics));
    }
    Ok(Answer::AssignDirectories(Ok(directories)))
}
