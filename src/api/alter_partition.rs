//! AlterPartition (key 56), v2-3 (KIP-497).
//!
//! A leader proposes who is in sync.
//! * v2 topics by id. v3 members with their registrations (KIP-903).

use super::terms::uuid;
use super::{Audience, Call, Cx, Outcome, Spec, ask};
use crate::core::controller::records::LeaderRecovery;
use crate::core::controller::request::{Answer, ByTopicId, PartitionState, Refusal, Why};
use crate::wire::controller::alter_partitions;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::alter_partition_response::{PartitionData, TopicData};
use kafka_protocol::messages::{AlterPartitionRequest, AlterPartitionResponse, BrokerId};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(56, "AlterPartition", 2, 3).to(Audience::Controllers);

type Altered = Result<ByTopicId<(i32, Result<PartitionState, Why>)>, Refusal>;

/// Asks the controller.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: AlterPartitionRequest) -> Outcome<AlterPartitionResponse> {
    let Some(request) = alter_partitions(request, call.version) else {
        return Outcome::Now(refused(call, ErrorCode::InvalidRequest));
    };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::here(&cx, request).await {
            Ok(Answer::AlterPartitions(outcome)) => respond(&call, outcome),
            _ => refused(&call, ErrorCode::NotController),
        }
    })
}

fn respond(call: &Call, outcome: Altered) -> AlterPartitionResponse {
    let topics = match outcome {
        Ok(topics) => topics,
        Err(refusal) => return refused(call, refusal.why.into()),
    };
    let topics = topics.into_iter().map(|(id, rows)| {
        let rows = rows.into_iter().map(|(index, outcome)| row(call, index, outcome));
        TopicData::default().with_topic_id(uuid(id)).with_partitions(rows.collect())
    });
    AlterPartitionResponse::default().with_topics(topics.collect())
}

fn row(call: &Call, index: i32, outcome: Result<PartitionState, Why>) -> PartitionData {
    let row = PartitionData::default().with_partition_index(index);
    match outcome {
        Ok(state) => row
            .with_leader_id(BrokerId(state.leader.0))
            .with_leader_epoch(state.leader_epoch.0)
            .with_partition_epoch(state.partition_epoch.0)
            .with_isr(state.isr.iter().map(|id| BrokerId(id.0)).collect())
            .with_leader_recovery_state(i8::from(state.recovery == LeaderRecovery::Recovering)),
        Err(why) => row.with_error_code(call.error(why.into())),
    }
}

fn refused(call: &Call, error: ErrorCode) -> AlterPartitionResponse {
    AlterPartitionResponse::default().with_error_code(call.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::types::{BrokerId, Epoch, Id};

    fn altered() -> Altered {
        let state = PartitionState {
            leader: BrokerId(1),
            leader_epoch: Epoch(4),
            partition_epoch: Epoch(6),
            isr: vec![BrokerId(1), BrokerId(2)],
            recovery: LeaderRecovery::Recovered,
        };
        Ok(vec![(Id(9), vec![(0, Ok(state)), (1, Err(Why::FencedLeaderEpoch))])])
    }

    #[test]
    fn a_state_or_an_error_for_each_partition() {
        encodes(SPEC, |call| respond(call, altered()));
        let answer = respond(&call(SPEC, 3), altered());
        let rows = &answer.topics[0].partitions;
        assert_eq!((rows[0].error_code, rows[0].partition_epoch, rows[0].isr.len()), (0, 6, 2));
        assert_eq!(rows[1].error_code, 74);
        assert_eq!(respond(&call(SPEC, 3), Err(Why::StaleBrokerEpoch.into())).error_code, 77);
    }
}
