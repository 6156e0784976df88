//! Topics that brokers have made themselves: those that clients name, and coordinators' own.

use super::{NoAnswer, outcome};
use crate::core::controller::request::{Answer, CreatedTopic, NewTopic, Refusal};
use crate::core::types::Id;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{self, CreateTopicsRequest, CreateTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

/// How long the controller may take, in milliseconds: brokers do not wait themselves, they ask again.
const PATIENCE: i32 = 30_000;

pub(super) fn create(topics: &[NewTopic], validate_only: bool) -> CreateTopicsRequest {
    let one = |topic: &NewTopic| {
        let assignments = topic.assignments.iter().map(|(index, replicas)| {
            CreatableReplicaAssignment::default()
                .with_partition_index(*index)
                .with_broker_ids(replicas.iter().map(|id| messages::BrokerId(id.0)).collect())
        });
        let configs = topic.configs.iter().map(|(name, value)| {
            CreatableTopicConfig::default()
                .with_name(StrBytes::from_string(name.clone()))
                .with_value(value.clone().map(StrBytes::from_string))
        });
        CreatableTopic::default()
            .with_name(TopicName(StrBytes::from_string(topic.name.clone())))
            .with_num_partitions(topic.partitions)
            .with_replication_factor(topic.replication_factor)
            .with_assignments(assignments.collect())
            .with_configs(configs.collect())
    };
    CreateTopicsRequest::default().with_topics(topics.iter().map(one).collect()).with_timeout_ms(PATIENCE).with_validate_only(validate_only)
}

pub(super) fn created(answer: CreateTopicsResponse) -> Result<Answer, NoAnswer> {
    let rows = answer.topics.into_iter().map(|topic| {
        let made = CreatedTopic {
            id: Id(topic.topic_id.as_u128()),
            partitions: topic.num_partitions,
            replication_factor: topic.replication_factor,
        };
        let message = topic.error_message.map(|message| message.to_string());
        let result = outcome(topic.error_code)?.map(|()| made).map_err(|refusal| Refusal { message, ..refusal });
        Ok((topic.name.to_string(), result))
    });
    Ok(Answer::CreateTopics(rows.collect::<Result<_, NoAnswer>>()?))
}
