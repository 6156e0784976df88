//! DescribeConfigs (key 32), v1-4.
//!
//! The configuration of topics, of this broker, and of all brokers, with where each value comes from.
//! * v1 sources and synonyms (KIP-226). v2 throttle time. v3 types and documentation (KIP-569).
//!
//! A broker describes itself only. It has no loggers whose level could be set (KIP-412): the list of them is empty. Client metrics and
//! groups are not described: nothing here is configured by them.

use super::settings::{self, Dynamic};
use super::terms::text;
use super::{Call, Cx, Outcome, Spec, ask, resources};
use crate::config::{ConfigEntry, Describer, Synonym};
use crate::core::controller::{Image, Refusal, ResourceType, check_name};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;
use resources::invalid;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(32, "DescribeConfigs", 1, 4);

/// Describes configuration.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeConfigsRequest) -> Outcome<DescribeConfigsResponse> {
    let image = cx.image();
    let dynamic = Dynamic::new(&cx.broker, &image);
    Outcome::Now(describe(call, &image, cx.broker.node.0, &dynamic.describer(&cx.broker), &request))
}

fn describe(call: &Call, image: &Image, node: i32, describer: &Describer<'_>, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
    let known = request.resources.iter().all(|resource| resources::kind(resource.resource_type).is_some());
    let rows = request.resources.iter().map(|resource| {
        let row =
            DescribeConfigsResult::default().with_resource_type(resource.resource_type).with_resource_name(resource.resource_name.clone());
        if !known {
            let message = ErrorCode::InvalidRequest.sentence().map(StrBytes::from_static_str);
            return row.with_error_code(call.error(ErrorCode::InvalidRequest)).with_error_message(message);
        }
        match entries(image, node, describer, resource) {
            Ok(Some(entries)) => row.with_configs(shown(call, request, resource, entries)),
            Ok(None) => row.with_error_code(call.error(ErrorCode::UnknownTopicOrPartition)),
            Err(refusal) => {
                let (code, message) = ask::refused(refusal);
                row.with_error_code(call.error(code)).with_error_message(message)
            }
        }
    });
    DescribeConfigsResponse::default().with_results(rows.collect())
}

/// The entries of a resource; `None` for a topic that there is not.
fn entries(
    image: &Image,
    node: i32,
    describer: &Describer<'_>,
    resource: &DescribeConfigsResource,
) -> Result<Option<Vec<ConfigEntry>>, Refusal> {
    let name = resource.resource_name.as_str();
    match resources::kind(resource.resource_type) {
        Some(ResourceType::Topic) => {
            check_name(name)?;
            let there = image.topic_by_name(name).is_some();
            Ok(there.then(|| describer.topic(&settings::of(image, ResourceType::Topic, name))))
        }
        Some(ResourceType::Broker) if name.is_empty() => Ok(Some(describer.all_brokers())),
        Some(ResourceType::Broker) if id(name)? == node => Ok(Some(describer.broker())),
        Some(ResourceType::Broker) => Err(invalid(format!("Unexpected broker id, expected {node} or empty string, but received {name}"))),
        Some(ResourceType::BrokerLogger) if name.is_empty() => Err(invalid("Broker id must not be empty")),
        Some(ResourceType::BrokerLogger) if id(name)? == node => Ok(Some(Vec::new())),
        Some(ResourceType::BrokerLogger) => Err(invalid(format!("Unexpected broker id, expected {node} but received {name}"))),
        Some(ResourceType::ClientMetrics) => Err(invalid("Unsupported resource type: CLIENT_METRICS")),
        Some(ResourceType::Group) if name.is_empty() => Err(invalid("Group name must not be empty")),
        Some(ResourceType::Group) => Ok(Some(describer.group(&settings::of(image, ResourceType::Group, name)))),
        None => Err(invalid("Unsupported resource type: UNKNOWN")),
    }
}

fn id(name: &str) -> Result<i32, Refusal> {
    name.parse().map_err(|_| invalid(format!("Broker id must be an integer, but it is: {name}")))
}

/// Those asked for, as the version shows them.
fn shown(
    call: &Call,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
    entries: Vec<ConfigEntry>,
) -> Vec<DescribeConfigsResourceResult> {
    let keys = resource.configuration_keys.as_deref().unwrap_or_default();
    let asked = entries.into_iter().filter(|entry| keys.is_empty() || keys.iter().any(|key| key.as_str() == entry.name));
    let documented = call.version >= 3 && request.include_documentation;
    asked
        .map(|entry| {
            let synonyms = if request.include_synonyms { entry.synonyms } else { Vec::new() };
            DescribeConfigsResourceResult::default()
                .with_name(text(&entry.name))
                .with_value(entry.value.map(StrBytes::from_string))
                .with_read_only(entry.read_only)
                .with_config_source(entry.source.id())
                .with_is_sensitive(entry.sensitive)
                .with_synonyms(synonyms.into_iter().map(synonym).collect())
                .with_config_type(entry.config_type.map_or(0, |kind| kind.id()))
                .with_documentation(entry.documentation.filter(|_| documented).map(StrBytes::from_static_str))
        })
        .collect()
}

fn synonym(synonym: Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym::default()
        .with_name(StrBytes::from_string(synonym.name))
        .with_value(synonym.value.map(StrBytes::from_string))
        .with_source(synonym.source.id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};
    use crate::config::{Config, Settings};

    fn resource(kind: i8, name: &str) -> DescribeConfigsResource {
        DescribeConfigsResource::default().with_resource_type(kind).with_resource_name(text(name)).with_configuration_keys(None)
    }

    fn request(resources: Vec<DescribeConfigsResource>) -> DescribeConfigsRequest {
        DescribeConfigsRequest::default().with_resources(resources)
    }

    fn answer(call: &Call, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1], &[1])])]);
        let (config, none) = (Config::defaults(), Settings::new());
        describe(call, &image, 1, &Describer::new(&config, &none, &none), request)
    }

    #[test]
    fn every_version_can_be_written() {
        let all = request(vec![resource(2, "t"), resource(4, "1"), resource(2, "none")]).with_include_synonyms(true);
        encodes(SPEC, |call| answer(call, &all.clone().with_include_documentation(call.version >= 3)));
    }

    #[test]
    fn each_kind_of_resource_has_its_own_refusals() {
        let malformed = "Topic name is invalid";
        for (kind, name, error, message) in [
            (2, "t", 0, ""),
            (2, "none", 3, ""),
            (2, "a b", 17, malformed),
            (4, "", 0, ""),
            (4, "1", 0, ""),
            (4, "2", 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
            (4, "x", 42, "Broker id must be an integer, but it is: x"),
            (8, "1", 0, ""),
            (8, "", 42, "Broker id must not be empty"),
            (8, "2", 42, "Unexpected broker id, expected 1 but received 2"),
            (16, "m", 42, "Unsupported resource type: CLIENT_METRICS"),
            (32, "g", 0, ""),
            (32, "", 42, "Group name must not be empty"),
            (3, "g", 42, "This most likely occurs"),
        ] {
            let answer = answer(&call(SPEC, 4), &request(vec![resource(kind, name)]));
            let row = &answer.results[0];
            let said = row.error_message.as_deref().unwrap();
            assert!(
                row.error_code == error && said.starts_with(message) && message.is_empty() == said.is_empty(),
                "{kind} {name}: {row:?}"
            );
        }
        let both = answer(&call(SPEC, 4), &request(vec![resource(2, "t"), resource(3, "")]));
        assert!(both.results.iter().all(|row| row.error_code == 42 && row.configs.is_empty()), "an unknown type spoils the request");
    }

    #[test]
    fn keys_synonyms_and_documentation_only_if_asked_for() {
        let some = resource(2, "t").with_configuration_keys(Some(vec![text("retention.bytes"), text("no.such.key")]));
        let plain = answer(&call(SPEC, 4), &request(vec![some.clone()]));
        let [entry] = plain.results[0].configs.as_slice() else { panic!("{plain:?}") };
        assert_eq!((&*entry.name, entry.value.as_deref(), entry.config_source, entry.config_type), ("retention.bytes", Some("-1"), 5, 5));
        assert_eq!((entry.synonyms.len(), &entry.documentation), (0, &None));
        let asked = request(vec![some]).with_include_synonyms(true).with_include_documentation(true);
        let told = answer(&call(SPEC, 4), &asked);
        let entry = &told.results[0].configs[0];
        assert_eq!((&*entry.synonyms[0].name, entry.synonyms[0].source), ("log.retention.bytes", 5));
        assert!(entry.documentation.is_some());
        let all = answer(&call(SPEC, 4), &request(vec![resource(2, "t").with_configuration_keys(Some(vec![]))]));
        assert!(all.results[0].configs.len() > 30, "an empty list means all");
    }
}
