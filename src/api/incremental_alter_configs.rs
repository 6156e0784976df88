//! IncrementalAlterConfigs (key 44), v0-1 (KIP-339).
//!
//! Sets, deletes, appends to and subtracts from single settings of topics and brokers, each resource all or nothing.
//!
//! Log levels of brokers cannot be set: there are no loggers of that kind here.

use super::resources::{self, Answers, Row, check_entries, check_is_here, check_settings, invalid};
use super::{Call, Cx, Outcome, Spec, ask, settings};
use crate::config::alter::{ListChange, change_broker_list};
use crate::config::{Config, Settings};
use crate::core::controller::request::{AlterConfigs, ConfigOp};
use crate::core::controller::{Answer, ConfigResource, Image, Refusal, Request, ResourceType, Why};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(44, "IncrementalAlterConfigs", 0, 1).carried();

/// The number of the operation that needs no value.
const DELETE: i8 = 1;

/// Checks what is this broker's to check, and has the controller do the rest.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: IncrementalAlterConfigsRequest) -> Outcome<IncrementalAlterConfigsResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let checked = check(&cx.broker.config, &cx.image(), &request);
        let asked: Vec<AlterConfigs> = checked.iter().filter_map(|row| row.as_ref().ok()?.clone()).collect();
        let answers = if asked.is_empty() {
            Answers::none()
        } else {
            let ask = Request::AlterConfigs { resources: asked.clone(), validate_only: request.validate_only };
            match ask::controller(&cx, ask, None).await {
                Ok(Answer::Configs(answers)) => Answers::new(answers),
                _ => Answers::timed_out(asked.iter().map(|alter| &alter.resource)),
            }
        };
        let rows = request.resources.iter().zip(checked).map(|(resource, checked)| {
            let (code, message): Row = match checked {
                Ok(Some(asked)) => answers.of(&asked.resource),
                Ok(None) => (ErrorCode::None, None),
                Err(refusal) => ask::refused(refusal),
            };
            AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_error_code(call.error(code))
                .with_error_message(message)
        });
        IncrementalAlterConfigsResponse::default().with_responses(rows.collect())
    })
}

/// What to ask the controller about each resource (`None`: nothing, all is done), or why not to.
fn check(config: &Config, image: &Image, request: &IncrementalAlterConfigsRequest) -> Vec<Result<Option<AlterConfigs>, Refusal>> {
    let named_once = resources::doubled(request.resources.iter().map(|r| (r.resource_type, r.resource_name.as_str())));
    let check = |resource: &AlterConfigsResource| {
        named_once(resource.resource_type, &resource.resource_name)?;
        check_one(config, image, resource)
    };
    request.resources.iter().map(check).collect()
}

fn check_one(config: &Config, image: &Image, resource: &AlterConfigsResource) -> Result<Option<AlterConfigs>, Refusal> {
    let name = resource.resource_name.as_str();
    let complete = |config: &AlterableConfig| config.value.is_some() || config.config_operation == DELETE;
    check_entries(resource.configs.iter().map(|config| (config.name.as_str(), complete(config))))?;
    let kind =
        resources::kind(resource.resource_type).ok_or_else(|| invalid(format!("Unknown resource type {}", resource.resource_type)))?;
    if kind == ResourceType::BrokerLogger {
        return check_loggers(config, resource).map(|()| None);
    }
    if kind == ResourceType::Broker && !name.is_empty() {
        check_is_here(config, name)?;
    }
    let mut changes = Vec::with_capacity(resource.configs.len());
    for change in &resource.configs {
        let op =
            operation(change.config_operation).ok_or_else(|| invalid(format!("Unknown operations type {}", change.config_operation)))?;
        changes.push((change.name.to_string(), op, change.value.as_ref().map(|value| value.to_string())));
    }
    if kind == ResourceType::Broker {
        check_settings(config, image, name, &changed(settings::of(image, ResourceType::Broker, name), &changes)?)?;
    }
    Ok(Some(AlterConfigs { resource: ConfigResource { kind, name: name.into() }, changes }))
}

fn operation(id: i8) -> Option<ConfigOp> {
    Some(match id {
        0 => ConfigOp::Set,
        DELETE => ConfigOp::Delete,
        2 => ConfigOp::Append,
        3 => ConfigOp::Subtract,
        _ => return None,
    })
}

/// A broker's settings as they would be.
fn changed(mut settings: Settings, changes: &[(String, ConfigOp, Option<String>)]) -> Result<Settings, Refusal> {
    for (name, op, value) in changes {
        let value = value.as_deref().unwrap_or_default();
        let list = |change| {
            let present = settings.get(name).map(String::as_str);
            change_broker_list(name, present, change, value).map_err(|refused| Refusal::new(Why::InvalidConfig, refused.to_string()))
        };
        let new = match op {
            ConfigOp::Delete => {
                settings.remove(name);
                continue;
            }
            ConfigOp::Set => value.to_owned(),
            ConfigOp::Append => list(ListChange::Append)?,
            ConfigOp::Subtract => list(ListChange::Subtract)?,
        };
        settings.insert(name.clone(), new);
    }
    Ok(settings)
}

/// There are no loggers: only nothing can be changed of them.
fn check_loggers(config: &Config, resource: &AlterConfigsResource) -> Result<(), Refusal> {
    let name = resource.resource_name.as_str();
    let id: i32 = name.parse().map_err(|_| invalid(format!("Node id must be an integer, but it is: {name}")))?;
    if id != config.node_id {
        return Err(invalid(format!("Unexpected node id. Expected {}, but received {id}", config.node_id)));
    }
    match resource.configs.first() {
        None => Ok(()),
        Some(config) => Err(match operation(config.config_operation) {
            Some(ConfigOp::Append) => invalid("APPEND operation is not allowed for the BROKER_LOGGER resource"),
            Some(ConfigOp::Subtract) => invalid("SUBTRACT operation is not allowed for the BROKER_LOGGER resource"),
            Some(_) => Refusal::new(Why::InvalidConfig, format!("Logger {} does not exist!", config.name)),
            None => invalid(format!("Unknown operations type {}", config.config_operation)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{broker, image_of};

    type Change<'a> = (&'a str, i8, Option<&'a str>);

    fn resource(kind: i8, name: &str, changes: &[Change<'_>]) -> AlterConfigsResource {
        let change = |(name, op, value): &Change<'_>| {
            AlterableConfig::default().with_name(text(name)).with_config_operation(*op).with_value(value.map(text))
        };
        AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configs(changes.iter().map(change).collect())
    }

    fn checked(resources: Vec<AlterConfigsResource>) -> Vec<Result<Option<AlterConfigs>, Refusal>> {
        let request = IncrementalAlterConfigsRequest::default().with_resources(resources);
        check(&Config::defaults(), &image_of([broker(1)], []), &request)
    }

    #[test]
    fn what_a_broker_refuses_itself() {
        let (request, config) = (Why::InvalidRequest, Why::InvalidConfig);
        let rows: &[(i8, &str, &[Change<'_>], Why, &str)] = &[
            (2, "t", &[("a", 0, Some("1")), ("a", 1, None)], request, "Error due to duplicate config keys"),
            (2, "t", &[("a", 0, None), ("b", 1, None), ("c", 2, None)], request, "Null value not supported for : a, c"),
            (2, "t", &[("a", 9, Some("1"))], request, "Unknown operations type 9"),
            (3, "t", &[], request, "Unknown resource type 3"),
            (4, "x", &[], request, "Node id must be an integer, but it is: x"),
            (4, "2", &[], request, "Unexpected broker id, expected 1, but received 2"),
            (
                4,
                "1",
                &[("log.retention.ms", 0, Some("x"))],
                request,
                "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
            ),
            (4, "", &[("node.id", 0, Some("2"))], request, "Cannot update these configs dynamically: [node.id]"),
            (4, "1", &[("num.io.threads", 2, Some("2"))], config, "Config value append is not allowed for config key: num.io.threads"),
            (8, "1", &[("kafka", 0, Some("INFO"))], config, "Logger kafka does not exist!"),
            (8, "1", &[("kafka", 3, Some("INFO"))], request, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource"),
            (8, "2", &[], request, "Unexpected node id. Expected 1, but received 2"),
        ];
        for (kind, name, changes, why, message) in rows {
            let refused = checked(vec![resource(*kind, name, changes)]).remove(0).unwrap_err();
            assert_eq!((refused.why, refused.message.as_deref()), (*why, Some(*message)), "{kind} {name} {changes:?}");
        }
    }

    #[test]
    fn what_is_good_goes_to_the_controller() {
        let topic = resource(2, "t", &[("cleanup.policy", 2, Some("compact")), ("retention.ms", 1, None)]);
        let broker = resource(4, "1", &[("log.cleanup.policy", 2, Some("compact"))]);
        let rows = checked(vec![topic, broker, resource(8, "1", &[])]);
        let asked: Vec<_> = rows.into_iter().map(|row| row.unwrap()).collect();
        let changes =
            vec![("cleanup.policy".into(), ConfigOp::Append, Some("compact".into())), ("retention.ms".into(), ConfigOp::Delete, None)];
        assert_eq!(asked[0], Some(AlterConfigs { resource: ConfigResource::topic("t"), changes }));
        assert!(asked[1].is_some());
        assert_eq!(asked[2], None);
    }

    #[test]
    fn a_resource_named_twice_is_refused_twice() {
        let rows = checked(vec![resource(2, "t", &[]), resource(2, "u", &[]), resource(2, "t", &[])]);
        assert_eq!(rows.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false]);
    }
}
