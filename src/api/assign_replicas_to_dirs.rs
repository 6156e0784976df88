//! AssignReplicasToDirs (key 73), v0 (KIP-858).
//!
//! A broker says in which of its log directories its replicas are.

use super::terms::uuid;
use super::{Audience, Call, Cx, Outcome, Spec, ask};
use crate::core::controller::ByDirectory;
use crate::core::controller::request::{Answer, Refusal, Why};
use crate::wire::controller::assign_directories;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::assign_replicas_to_dirs_response::{DirectoryData, PartitionData, TopicData};
use kafka_protocol::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(73, "AssignReplicasToDirs", 0, 0).to(Audience::Controllers);

type Assigned = Result<ByDirectory<(i32, Result<(), Why>)>, Refusal>;

/// Asks the controller.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: AssignReplicasToDirsRequest) -> Outcome<AssignReplicasToDirsResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::here(&cx, assign_directories(request)).await {
            Ok(Answer::AssignDirectories(outcome)) => respond(&call, outcome),
            _ => refused(&call, ErrorCode::NotController),
        }
    })
}

fn respond(call: &Call, outcome: Assigned) -> AssignReplicasToDirsResponse {
    let directories = match outcome {
        Ok(directories) => directories,
        Err(refusal) => return refused(call, refusal.why.into()),
    };
    let row = |(index, outcome): (i32, Result<(), Why>)| {
        let error = outcome.err().map_or(ErrorCode::None, ErrorCode::from);
        PartitionData::default().with_partition_index(index).with_error_code(call.error(error))
    };
    let directories = directories.into_iter().map(|(directory, topics)| {
        let topics = topics.into_iter().map(|(topic, rows)| {
            TopicData::default().with_topic_id(uuid(topic)).with_partitions(rows.into_iter().map(row).collect())
        });
        DirectoryData::default().with_id(uuid(directory)).with_topics(topics.collect())
    });
    AssignReplicasToDirsResponse::default().with_directories(directories.collect())
}

fn refused(call: &Call, error: ErrorCode) -> AssignReplicasToDirsResponse {
    AssignReplicasToDirsResponse::default().with_error_code(call.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::types::Id;

    #[test]
    fn each_replica_has_its_answer() {
        let assigned = || Ok(vec![(Id(500), vec![(Id(9), vec![(0, Ok(())), (1, Err(Why::NotLeaderOrFollower))])])]);
        encodes(SPEC, |call| respond(call, assigned()));
        let answer = respond(&call(SPEC, 0), assigned());
        let rows = &answer.directories[0].topics[0].partitions;
        assert_eq!((rows[0].error_code, rows[1].error_code), (0, 6));
        assert_eq!(respond(&call(SPEC, 0), Err(Why::StaleBrokerEpoch.into())).error_code, 77);
    }
}
