//! ListPartitionReassignments (key 46), v0 (KIP-455).
//!
//! The partitions whose replicas are on the move, all or of the topics named.

use super::terms::topic_name;
use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::{Image, Partition, Topic};
use crate::core::types::BrokerId;
use kafka_protocol::messages::list_partition_reassignments_response::{OngoingPartitionReassignment, OngoingTopicReassignment};
use kafka_protocol::messages::{self, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(46, "ListPartitionReassignments", 0, 0);

/// Lists reassignments.
pub fn handle(cx: &Cx, _: &Rc<Call>, request: ListPartitionReassignmentsRequest) -> Outcome<ListPartitionReassignmentsResponse> {
    Outcome::Now(list(&cx.image(), &request))
}

fn list(image: &Image, request: &ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse {
    let topics = match &request.topics {
        None => image.topics().filter_map(|topic| moving(topic, topic.partitions.keys().copied())).collect(),
        Some(asked) => {
            let known = asked.iter().filter_map(|asked| Some((image.topic_by_name(&asked.name)?, asked)));
            known.filter_map(|(topic, asked)| moving(topic, asked.partition_indexes.iter().copied())).collect()
        }
    };
    ListPartitionReassignmentsResponse::default().with_error_message(None).with_topics(topics)
}

/// Those of a topic's partitions that move; `None` if none does.
fn moving(topic: &Topic, indexes: impl Iterator<Item = i32>) -> Option<OngoingTopicReassignment> {
    let rows: Vec<_> = indexes.filter_map(|index| row(index, topic.partition(index)?)).collect();
    (!rows.is_empty()).then(|| OngoingTopicReassignment::default().with_name(topic_name(&topic.name)).with_partitions(rows))
}

fn row(index: i32, partition: &Partition) -> Option<OngoingPartitionReassignment> {
    if partition.adding_replicas.is_empty() && partition.removing_replicas.is_empty() {
        return None;
    }
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| messages::BrokerId(id.0)).collect::<Vec<_>>();
    Some(
        OngoingPartitionReassignment::default()
            .with_partition_index(index)
            .with_replicas(ids(&partition.replicas))
            .with_adding_replicas(ids(&partition.adding_replicas))
            .with_removing_replicas(ids(&partition.removing_replicas)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, encodes, image_of, partition};
    use kafka_protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;

    #[test]
    fn only_what_moves_is_listed() {
        let still = partition(1, &[1], &[1]);
        let moves = Partition { adding_replicas: vec![BrokerId(2)], ..partition(1, &[1, 2], &[1]) };
        let image = image_of([broker(1)], [("still", vec![still.clone()]), ("t", vec![still, moves])]);
        let rows = |request: &ListPartitionReassignmentsRequest| -> Vec<(String, Vec<i32>)> {
            let row = |topic: &OngoingTopicReassignment| {
                (topic.name.to_string(), topic.partitions.iter().map(|partition| partition.partition_index).collect())
            };
            list(&image, request).topics.iter().map(row).collect()
        };
        let all = ListPartitionReassignmentsRequest::default().with_topics(None);
        assert_eq!(rows(&all), [("t".to_owned(), vec![1])]);
        let asked = |name: &str, indexes: &[i32]| {
            let topic = ListPartitionReassignmentsTopics::default().with_name(topic_name(name)).with_partition_indexes(indexes.to_vec());
            ListPartitionReassignmentsRequest::default().with_topics(Some(vec![topic]))
        };
        assert_eq!(rows(&asked("t", &[0, 1, 9])), [("t".to_owned(), vec![1])]);
        assert_eq!(rows(&asked("t", &[0])), []);
        assert_eq!(rows(&asked("none", &[0])), []);
        encodes(SPEC, |_| list(&image, &all));
    }
}
