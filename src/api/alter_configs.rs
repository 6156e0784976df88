//! AlterConfigs (key 33), v0-2.
//!
//! Replaces all settings of topics and brokers: those not named are deleted. Superseded by IncrementalAlterConfigs.
//! * v1 throttle time.

use super::resources::{self, Answers, Row, check_entries, check_is_here, check_settings, invalid};
use super::{Call, Cx, Outcome, Spec, ask};
use crate::config::Config;
use crate::core::controller::request::ReplaceConfigs;
use crate::core::controller::{Answer, ConfigResource, Image, Refusal, Request, ResourceType};
use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(33, "AlterConfigs", 0, 2).carried();

/// Checks what is this broker's to check, and has the controller do the rest.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: AlterConfigsRequest) -> Outcome<AlterConfigsResponse> {
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let checked = check(&cx.broker.config, &cx.image(), &request);
        let asked: Vec<ReplaceConfigs> = checked.iter().filter_map(|row| row.as_ref().ok().cloned()).collect();
        let answers = if asked.is_empty() {
            Answers::none()
        } else {
            let ask = Request::ReplaceConfigs { resources: asked.clone(), validate_only: request.validate_only };
            match ask::controller(&cx, ask, None).await {
                Ok(Answer::Configs(answers)) => Answers::new(answers),
                _ => Answers::timed_out(asked.iter().map(|replace| &replace.resource)),
            }
        };
        let rows = request.resources.iter().zip(checked).map(|(resource, checked)| {
            let (code, message): Row = match checked {
                Ok(asked) => answers.of(&asked.resource),
                Err(refusal) => ask::refused(refusal),
            };
            AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_error_code(call.error(code))
                .with_error_message(message)
        });
        AlterConfigsResponse::default().with_responses(rows.collect())
    })
}

/// What to ask the controller about each resource, or why not to.
fn check(config: &Config, image: &Image, request: &AlterConfigsRequest) -> Vec<Result<ReplaceConfigs, Refusal>> {
    let named_once = resources::doubled(request.resources.iter().map(|r| (r.resource_type, r.resource_name.as_str())));
    let check = |resource: &AlterConfigsResource| {
        named_once(resource.resource_type, &resource.resource_name)?;
        check_one(config, image, resource)
    };
    request.resources.iter().map(check).collect()
}

fn check_one(config: &Config, image: &Image, resource: &AlterConfigsResource) -> Result<ReplaceConfigs, Refusal> {
    let name = resource.resource_name.as_str();
    check_entries(resource.configs.iter().map(|config| (config.name.as_str(), config.value.is_some())))?;
    let configs: Vec<(String, Option<String>)> =
        resource.configs.iter().map(|config| (config.name.to_string(), config.value.as_ref().map(|value| value.to_string()))).collect();
    let kind = match resources::kind(resource.resource_type) {
        Some(ResourceType::BrokerLogger) | None => return Err(invalid(format!("Unknown resource type {}", resource.resource_type))),
        Some(kind) => kind,
    };
    if kind == ResourceType::Broker {
        if !name.is_empty() {
            check_is_here(config, name)?;
        }
        let proposed = configs.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
        check_settings(config, image, name, &proposed)?;
    }
    Ok(ReplaceConfigs { resource: ConfigResource { kind, name: name.into() }, configs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{broker, image_of};
    use kafka_protocol::messages::alter_configs_request::AlterableConfig;

    fn checked(kind: i8, name: &str, settings: &[(&str, Option<&str>)]) -> Result<ReplaceConfigs, String> {
        let setting = |(name, value): &(&str, Option<&str>)| AlterableConfig::default().with_name(text(name)).with_value(value.map(text));
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configs(settings.iter().map(setting).collect());
        let request = AlterConfigsRequest::default().with_resources(vec![resource]);
        let mut rows = check(&Config::defaults(), &image_of([broker(1)], []), &request);
        rows.remove(0).map_err(|refusal| refusal.message.unwrap())
    }

    #[test]
    fn topics_go_to_the_controller_and_brokers_are_checked_first() {
        let asked = ReplaceConfigs { resource: ConfigResource::topic("t"), configs: vec![("retention.ms".into(), Some("x".into()))] };
        assert_eq!(checked(2, "t", &[("retention.ms", Some("x"))]), Ok(asked));
        assert!(checked(4, "", &[("log.retention.ms", Some("7"))]).is_ok());
        let refused = |kind, name, settings| checked(kind, name, settings).unwrap_err();
        assert!(refused(4, "1", &[("log.retention.ms", Some("x"))]).starts_with("Invalid value x"));
        assert_eq!(refused(4, "7", &[]), "Unexpected broker id, expected 1, but received 7");
        assert_eq!(refused(2, "t", &[("a", None)]), "Null value not supported for : a");
        assert_eq!(refused(8, "1", &[]), "Unknown resource type 8");
    }
}
