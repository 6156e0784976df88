//! Resources of configuration as the configuration APIs name them, and what a broker checks of a change before it asks the controller.

use super::ask;
use super::settings;
use crate::config::alter::check_broker;
use crate::config::{Config, Settings};
use crate::core::controller::{ConfigResource, Image, Refusal, ResourceType, Why};
use crate::wire::error::ErrorCode;
use kafka_protocol::protocol::StrBytes;
use std::collections::HashMap;

const KINDS: [ResourceType; 5] =
    [ResourceType::Topic, ResourceType::Broker, ResourceType::BrokerLogger, ResourceType::ClientMetrics, ResourceType::Group];

/// The kind of that number.
pub fn kind(id: i8) -> Option<ResourceType> {
    KINDS.into_iter().find(|kind| number(*kind) == id)
}

/// The number of that kind.
pub const fn number(kind: ResourceType) -> i8 {
    match kind {
        ResourceType::Topic => 2,
        ResourceType::Broker => 4,
        ResourceType::BrokerLogger => 8,
        ResourceType::ClientMetrics => 16,
        ResourceType::Group => 32,
    }
}

/// Error and message of one resource's row.
pub type Row = (ErrorCode, Option<StrBytes>);

/// A row of a bad request.
pub fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Why::InvalidRequest, message)
}

/// Whether a broker's name is this broker's id, which alone may be judged here.
pub fn check_is_here(config: &Config, name: &str) -> Result<(), Refusal> {
    let id: i32 = name.parse().map_err(|_| invalid(format!("Node id must be an integer, but it is: {name}")))?;
    if id != config.node_id {
        return Err(invalid(format!("Unexpected broker id, expected {}, but received {name}", config.node_id)));
    }
    Ok(())
}

/// Whether this broker, or all, may have these dynamic settings. The broker's own check comes before the controller's.
pub fn check_settings(config: &Config, image: &Image, name: &str, proposed: &Settings) -> Result<(), Refusal> {
    let own = config.node_id.to_string();
    let other = settings::of(image, ResourceType::Broker, if name.is_empty() { &own } else { "" });
    check_broker(config, &other, proposed, !name.is_empty()).map_err(|refused| {
        let why = if refused.is_invalid_request(false) { Why::InvalidRequest } else { Why::InvalidConfig };
        Refusal::new(why, refused.to_string())
    })
}

/// Which resources are named more than once, each row of which is refused.
pub fn doubled<'a>(resources: impl Iterator<Item = (i8, &'a str)>) -> impl Fn(i8, &str) -> Result<(), Refusal> {
    let mut times: HashMap<(i8, &str), usize> = HashMap::new();
    for resource in resources {
        *times.entry(resource).or_default() += 1;
    }
    let doubled: Vec<(i8, String)> = times.into_iter().filter(|(_, n)| *n > 1).map(|((kind, name), _)| (kind, name.to_owned())).collect();
    move |kind, name| match doubled.iter().any(|(k, n)| *k == kind && n == name) {
        true => Err(invalid("Each resource must appear at most once.")),
        false => Ok(()),
    }
}

/// Whether no name is there twice and no value is missing.
pub fn check_entries<'a>(entries: impl Iterator<Item = (&'a str, bool)>) -> Result<(), Refusal> {
    let mut seen = std::collections::HashSet::new();
    let mut unset = Vec::new();
    for (name, has_value) in entries {
        if !seen.insert(name) {
            return Err(invalid("Error due to duplicate config keys"));
        }
        if !has_value {
            unset.push(name);
        }
    }
    match unset.is_empty() {
        true => Ok(()),
        false => Err(invalid(format!("Null value not supported for : {}", unset.join(", ")))),
    }
}

/// The controller's answers, found by resource.
pub struct Answers(HashMap<ConfigResource, Row>);

impl Answers {
    /// Nobody was asked: nothing was left to ask.
    pub fn none() -> Answers {
        Answers(HashMap::new())
    }

    /// What the controller said.
    pub fn new(answers: Vec<(ConfigResource, Result<(), Refusal>)>) -> Answers {
        Answers(answers.into_iter().map(|(resource, result)| (resource, ask::outcome(result))).collect())
    }

    /// The controller said nothing in time.
    pub fn timed_out<'a>(asked: impl Iterator<Item = &'a ConfigResource>) -> Answers {
        Answers(asked.map(|resource| (resource.clone(), (ErrorCode::RequestTimedOut, None))).collect())
    }

    /// What was said of that resource.
    pub fn of(&self, resource: &ConfigResource) -> Row {
        self.0.get(resource).cloned().unwrap_or((ErrorCode::UnknownServerError, None))
    }
}
