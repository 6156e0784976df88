//! CreateTopics (key 19), v2-7.
//!
//! Makes topics, all that can be made of a request in one append, or tells whether they could be made (`validate_only`).
//! * v2 throttle time. v4 counts of -1: the controller's defaults (KIP-464).
//! * v5 the answer has the counts and the configuration that the topic got (KIP-525).
//! * v6 THROTTLING_QUOTA_EXCEEDED is understood (KIP-599; there are no such quotas here). v7 topic ids in the answer.

use super::settings::Dynamic;
use super::terms::{text, topic_name, uuid};
use super::{Call, Cx, Outcome, Spec, ask};
use crate::config::{ConfigEntry, Describer, Settings};
use crate::core::controller::request::{CreatedTopic, NewTopic};
use crate::core::controller::{Answer, Refusal, Request};
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;
use std::collections::HashMap;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(19, "CreateTopics", 2, 7).carried();

/// Has the controller make topics.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: CreateTopicsRequest) -> Outcome<CreateTopicsResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let topics: Vec<NewTopic> = request.topics.iter().map(new_topic).collect();
        let ask = Request::CreateTopics { topics, validate_only: request.validate_only };
        let Ok(Answer::CreateTopics(made)) = ask::controller(&cx, ask, Some(request.timeout_ms)).await else {
            return timed_out(&call, &request);
        };
        let dynamic = Dynamic::new(&cx.broker, &cx.image());
        let describer = dynamic.describer(&cx.broker);
        respond(&call, &request, made, &describer)
    })
}

fn new_topic(topic: &CreatableTopic) -> NewTopic {
    NewTopic {
        name: topic.name.to_string(),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic
            .assignments
            .iter()
            .map(|replicas| (replicas.partition_index, replicas.broker_ids.iter().map(|id| BrokerId(id.0)).collect()))
            .collect(),
        configs: topic.configs.iter().map(|config| (config.name.to_string(), config.value.as_ref().map(|v| v.to_string()))).collect(),
    }
}

fn timed_out(call: &Call, request: &CreateTopicsRequest) -> CreateTopicsResponse {
    let rows = request.topics.iter().map(|topic| {
        CreatableTopicResult::default()
            .with_name(topic.name.clone())
            .with_error_code(call.error(ErrorCode::RequestTimedOut))
            .with_error_message(None)
    });
    CreateTopicsResponse::default().with_topics(rows.collect())
}

fn respond(
    call: &Call,
    request: &CreateTopicsRequest,
    made: Vec<(String, Result<CreatedTopic, Refusal>)>,
    describer: &Describer<'_>,
) -> CreateTopicsResponse {
    let asked: HashMap<&str, &CreatableTopic> = request.topics.iter().map(|topic| (topic.name.as_str(), topic)).collect();
    let rows = made.into_iter().map(|(name, result)| {
        let row = CreatableTopicResult::default().with_name(topic_name(&name));
        match result {
            Err(refusal) => {
                let (code, message) = ask::refused(refusal);
                row.with_error_code(call.error(code)).with_error_message(message)
            }
            Ok(created) => {
                let overrides = asked.get(name.as_str()).map(|topic| overrides(topic)).unwrap_or_default();
                let configs = if call.version >= 5 { describer.topic(&overrides) } else { Vec::new() };
                row.with_topic_id(uuid(created.id))
                    .with_error_message(None)
                    .with_num_partitions(created.partitions)
                    .with_replication_factor(created.replication_factor)
                    .with_configs(Some(configs.into_iter().map(config).collect()))
            }
        }
    });
    CreateTopicsResponse::default().with_topics(rows.collect())
}

fn overrides(topic: &CreatableTopic) -> Settings {
    topic.configs.iter().filter_map(|config| Some((config.name.to_string(), config.value.as_ref()?.to_string()))).collect()
}

fn config(entry: ConfigEntry) -> CreatableTopicConfigs {
    CreatableTopicConfigs::default()
        .with_name(text(&entry.name))
        .with_value(entry.value.map(StrBytes::from_string))
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.id())
        .with_is_sensitive(entry.sensitive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::config::Config;
    use crate::core::controller::Why;
    use crate::core::types::Id;
    use kafka_protocol::messages::create_topics_request::CreatableTopicConfig;

    fn request() -> CreateTopicsRequest {
        let config = CreatableTopicConfig::default().with_name(text("retention.ms")).with_value(Some(text("7")));
        let topic = |name: &str| CreatableTopic::default().with_name(topic_name(name));
        CreateTopicsRequest::default().with_topics(vec![topic("new").with_configs(vec![config]), topic("old")])
    }

    fn answer(call: &Call) -> CreateTopicsResponse {
        let created = CreatedTopic { id: Id(9), partitions: 3, replication_factor: 1 };
        let made = vec![("new".into(), Ok(created)), ("old".into(), Err(Refusal::new(Why::TopicAlreadyExists, "there")))];
        let (config, none) = (Config::defaults(), Settings::new());
        respond(call, &request(), made, &Describer::new(&config, &none, &none))
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, answer);
        encodes(SPEC, |call| timed_out(call, &request()));
    }

    #[test]
    fn a_made_topic_is_told_with_its_configuration() {
        let answer = answer(&call(SPEC, 7));
        let (made, refused) = (&answer.topics[0], &answer.topics[1]);
        assert_eq!((made.error_code, &made.error_message, made.num_partitions, made.replication_factor), (0, &None, 3, 1));
        let configs = made.configs.as_ref().unwrap();
        let retention = configs.iter().find(|config| &*config.name == "retention.ms").unwrap();
        assert_eq!((retention.value.as_deref(), retention.config_source), (Some("7"), 1));
        assert!(configs.len() > 30 && configs.is_sorted_by_key(|config| config.name.to_string()));
        assert_eq!((refused.error_code, refused.error_message.as_deref(), refused.num_partitions), (36, Some("there"), -1));
        assert_eq!(refused.configs, Some(vec![]));
    }
}
