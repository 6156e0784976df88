//! DescribeTopicPartitions (key 75), v0 (KIP-966).
//!
//! Topics in name order, a page at a time: at most `max.request.partition.size.limit` partitions, and a cursor where more are left.

use super::nodes::Nodes;
use super::terms::{TOPIC_OPERATIONS, is_internal, topic_name, uuid};
use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::{Image, Partition, Topic, check_name};
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{self, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(75, "DescribeTopicPartitions", 0, 0);

/// Describes a page of topics.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeTopicPartitionsRequest) -> Outcome<DescribeTopicPartitionsResponse> {
    let limit = cx.broker.config.max_request_partition_size_limit;
    Outcome::Now(describe(call, &cx.image(), &cx.peer.listener, limit, &request))
}

fn describe(
    call: &Call,
    image: &Image,
    listener: &str,
    limit: i32,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let (from, first) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index),
        None => ("", 0),
    };
    let named: BTreeSet<&str> = request.topics.iter().map(|topic| topic.name.as_str()).filter(|name| *name >= from).collect();
    let lost = !request.topics.is_empty() && request.cursor.is_some() && !named.contains(from);
    if lost || first < 0 {
        let refused = request.topics.iter().map(|topic| row(&topic.name).with_error_code(call.error(ErrorCode::InvalidRequest)));
        return DescribeTopicPartitionsResponse::default().with_topics(refused.collect());
    }
    let left = limit.min(request.response_partition_limit).max(1);
    let mut page = Page { nodes: Nodes::new(image, listener), left, topics: Vec::new(), cursor: None };
    let start = |name: &str| if name == from { first } else { 0 };
    if request.topics.is_empty() {
        image.topics_from(from).all(|topic| page.add(topic, start(&topic.name)));
    } else {
        named.into_iter().all(|name| match image.topic_by_name(name) {
            Some(topic) => page.add(topic, start(name)),
            None => page.add_unknown(call, name),
        });
    }
    DescribeTopicPartitionsResponse::default().with_topics(page.topics).with_next_cursor(page.cursor)
}

fn row(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default().with_name(Some(topic_name(name)))
}

struct Page<'a> {
    nodes: Nodes<'a>,
    left: i32,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    cursor: Option<Cursor>,
}

impl Page<'_> {
    /// Whether there is room; if not, the next page begins with this topic.
    fn has_room(&mut self, name: &str) -> bool {
        if self.left == 0 {
            self.cut(name, 0);
        }
        self.left > 0
    }

    fn cut(&mut self, name: &str, partition: i32) {
        self.cursor = Some(Cursor::default().with_topic_name(topic_name(name)).with_partition_index(partition));
    }

    /// Adds what fits of a topic. Whether the next one may follow.
    fn add(&mut self, topic: &Topic, start: i32) -> bool {
        if !self.has_room(&topic.name) {
            return false;
        }
        let end = (topic.partitions.len() as i32).min(start.saturating_add(self.left));
        let partitions: Vec<_> =
            topic.partitions.range(start..end.max(start)).map(|(at, partition)| self.partition(*at, partition)).collect();
        self.left -= partitions.len() as i32;
        self.topics.push(
            row(&topic.name)
                .with_topic_id(uuid(topic.id))
                .with_is_internal(is_internal(&topic.name))
                .with_partitions(partitions)
                .with_topic_authorized_operations(TOPIC_OPERATIONS),
        );
        let whole = end as usize >= topic.partitions.len();
        if !whole {
            self.cut(&topic.name, end);
        }
        whole
    }

    fn add_unknown(&mut self, call: &Call, name: &str) -> bool {
        if !self.has_room(name) {
            return false;
        }
        let error = if check_name(name).is_ok() { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::InvalidTopicException };
        let row = row(name).with_error_code(call.error(error)).with_is_internal(is_internal(name));
        self.topics.push(row.with_topic_authorized_operations(TOPIC_OPERATIONS));
        true
    }

    fn partition(&self, index: i32, partition: &Partition) -> DescribeTopicPartitionsResponsePartition {
        let all = |ids: &[BrokerId]| ids.iter().map(|id| messages::BrokerId(id.0)).collect::<Vec<_>>();
        DescribeTopicPartitionsResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(messages::BrokerId(self.nodes.leader(partition).unwrap_or(BrokerId::NONE).0))
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(all(&partition.replicas))
            .with_isr_nodes(all(&partition.isr))
            .with_eligible_leader_replicas(Some(all(&partition.elr)))
            .with_last_known_elr(Some(all(&partition.last_known_elr)))
            .with_offline_replicas(self.nodes.offline(partition).map(|id| messages::BrokerId(id.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};
    use kafka_protocol::messages::describe_topic_partitions_request::{Cursor as From, TopicRequest};

    fn request(topics: &[&str], limit: i32, from: Option<(&str, i32)>) -> DescribeTopicPartitionsRequest {
        let cursor = from.map(|(name, at)| From::default().with_topic_name(topic_name(name)).with_partition_index(at));
        DescribeTopicPartitionsRequest::default()
            .with_topics(topics.iter().map(|name| TopicRequest::default().with_name(topic_name(name))).collect())
            .with_response_partition_limit(limit)
            .with_cursor(cursor)
    }

    fn answer(call: &Call, request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
        let partitions = |n| vec![partition(1, &[1, 2], &[1]); n];
        let image = image_of([broker(1)], [("a", partitions(3)), ("b", partitions(1)), ("c", partitions(2))]);
        describe(call, &image, "PLAINTEXT", 100, request)
    }

    type Told = (Vec<(String, i16, Vec<i32>)>, Option<(String, i32)>);

    fn told(request: DescribeTopicPartitionsRequest) -> Told {
        let answer = answer(&call(SPEC, 0), &request);
        let rows = answer.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| partition.partition_index).collect();
            (topic.name.as_ref().unwrap().to_string(), topic.error_code, partitions)
        });
        (rows.collect(), answer.next_cursor.map(|cursor| (cursor.topic_name.to_string(), cursor.partition_index)))
    }

    fn row(name: &str, error: i16, partitions: &[i32]) -> (String, i16, Vec<i32>) {
        (name.into(), error, partitions.to_vec())
    }

    fn at(name: &str, partition: i32) -> Option<(String, i32)> {
        Some((name.into(), partition))
    }

    #[test]
    fn pages_follow_each_other_without_gaps() {
        let (a, b, c) = (row("a", 0, &[0, 1, 2]), row("b", 0, &[0]), row("c", 0, &[0, 1]));
        assert_eq!(told(request(&[], 100, None)), (vec![a.clone(), b.clone(), c.clone()], None));
        assert_eq!(told(request(&[], 2, None)), (vec![row("a", 0, &[0, 1])], at("a", 2)));
        assert_eq!(told(request(&[], 2, Some(("a", 2)))), (vec![row("a", 0, &[2]), b.clone()], at("c", 0)));
        assert_eq!(told(request(&[], 2, Some(("c", 0)))), (vec![c.clone()], None));
        assert_eq!(told(request(&[], 0, Some(("c", 1)))), (vec![row("c", 0, &[1])], None), "a limit below 1 is 1");
        assert_eq!(told(request(&[], 9, Some(("c", 9)))), (vec![row("c", 0, &[])], None));
        assert_eq!(told(request(&["c", "b", "b"], 9, None)), (vec![b, c], None));
    }

    #[test]
    fn unknown_and_bad_names_are_rows_and_lost_cursors_are_refused() {
        assert_eq!(told(request(&["none", "a b"], 9, None)), (vec![row("a b", 17, &[]), row("none", 3, &[])], None));
        assert_eq!(told(request(&["a"], 9, Some(("b", 0)))), (vec![row("a", 42, &[])], None));
        assert_eq!(told(request(&["a"], 9, Some(("a", -1)))), (vec![row("a", 42, &[])], None));
    }

    #[test]
    fn a_row_says_all_of_a_partition() {
        encodes(SPEC, |call| answer(call, &request(&["a", "none"], 2, None)));
        let answer = answer(&call(SPEC, 0), &request(&["b"], 9, None));
        let row = &answer.topics[0].partitions[0];
        assert_eq!((row.leader_id.0, row.leader_epoch, row.error_code), (1, 5, 0));
        assert_eq!((row.replica_nodes.len(), row.isr_nodes.len(), row.offline_replicas[0].0), (2, 1, 2));
        assert_eq!((row.eligible_leader_replicas.as_deref(), answer.topics[0].topic_authorized_operations), (Some(&[][..]), 3576));
    }
}
