//! Settings of topics, brokers, client metrics and groups. What a value may be is for the config layer to say, by `ConfigRules`.

use std::collections::BTreeSet;

use super::draft::{Draft, Sink};
use super::entities::{ConfigResource, Configs};
use super::leaders::{ELR_VERSION, MIN_ISR, UNCLEAN_ELECTION};
use super::records::{self, Record, ResourceType};
use super::request::{AlterConfigs, ConfigOp, Refusal, ReplaceConfigs, Why};
use super::{Controller, Image, topics};
use crate::core::types::BrokerId;

/// Longest value, as Kafka has it.
const MAX_VALUE_LENGTH: usize = i16::MAX as usize;

/// What the config layer knows of settings.
pub trait ConfigRules {
    /// Whether the resource may have exactly the settings `new`. `image` tells what it and others have now. A refusal is `InvalidConfig`,
    /// but for the values that a Kafka broker calls an `InvalidRequest`.
    fn check(&self, image: &Image, resource: &ConfigResource, new: &Configs) -> Result<(), Refusal>;

    /// The default of a setting that is a list, which can be appended to and subtracted from; `None` if it is no list.
    fn list_default(&self, kind: ResourceType, name: &str) -> Option<String>;
}

/// New values by name: `None` deletes.
type Changes = Vec<(String, Option<String>)>;

type Answers = Vec<(ConfigResource, Result<(), Refusal>)>;

impl Controller {
    pub(super) fn alter_configs(&self, resources: Vec<AlterConfigs>, sink: Sink<'_>) -> Answers {
        let all = resources.into_iter().map(|alter| (alter.resource, alter.changes)).collect();
        self.each_resource(all, sink, |resource, old, changes: &Vec<(String, ConfigOp, Option<String>)>| {
            check_names(changes.iter().map(|(name, _, _)| name))?;
            check_values(changes.iter().filter(|(_, op, _)| *op != ConfigOp::Delete).map(|(name, _, value)| (name, value)))?;
            changes.iter().map(|(name, op, value)| Ok((name.clone(), self.altered(resource, old, name, *op, value.as_deref())?))).collect()
        })
    }

    pub(super) fn replace_configs(&self, resources: Vec<ReplaceConfigs>, sink: Sink<'_>) -> Answers {
        let all = resources.into_iter().map(|replace| (replace.resource, replace.configs)).collect();
        self.each_resource(all, sink, |_, old, configs: &Changes| {
            check_names(configs.iter().map(|(name, _)| name))?;
            check_values(configs.iter().map(|(name, value)| (name, value)))?;
            let named: BTreeSet<&str> = configs.iter().map(|(name, _)| name.as_str()).collect();
            let dropped = old.keys().filter(|name| !named.contains(&***name)).map(|name| (name.to_string(), None));
            Ok(configs.iter().cloned().chain(dropped).collect())
        })
    }

    /// Answers for each resource: those named twice are refused, the others all change or stay, each for itself.
    fn each_resource<T>(
        &self,
        resources: Vec<(ConfigResource, T)>,
        mut sink: Sink<'_>,
        changes_of: impl Fn(&ConfigResource, &Configs, &T) -> Result<Changes, Refusal>,
    ) -> Answers {
        let (mut seen, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        for (resource, _) in &resources {
            if !seen.insert(resource) {
                doubled.insert(resource.clone());
            }
        }
        let mut answers = Vec::with_capacity(resources.len());
        for (resource, asked) in resources {
            let result = if doubled.contains(&resource) {
                Err(Refusal::new(Why::InvalidRequest, "Each resource must appear at most once."))
            } else {
                let old = self.image.configs(resource.kind, &resource.name).cloned().unwrap_or_default();
                changes_of(&resource, &old, &asked).and_then(|changes| self.change_configs(&resource, &old, changes, &mut sink))
            };
            answers.push((resource, result));
        }
        answers
    }

    /// The new value of a setting; `None` if it is deleted or stays unset.
    fn altered(
        &self,
        resource: &ConfigResource,
        old: &Configs,
        name: &str,
        op: ConfigOp,
        value: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        let operation = match op {
            ConfigOp::Set => return Ok(value.map(str::to_string)),
            ConfigOp::Delete => return Ok(None),
            ConfigOp::Append => "APPEND",
            ConfigOp::Subtract => "SUBTRACT",
        };
        let Some(default) = self.settings.rules.list_default(resource.kind, name) else {
            let message = format!("Can't {operation} to key {name} because its type is not LIST.");
            return Err(Refusal::new(Why::InvalidConfig, message));
        };
        let present = old.get(name).map_or(default.as_str(), |value| value);
        let mut elements: Vec<&str> = present.split(',').filter(|element| !element.is_empty()).collect();
        for element in value.unwrap_or_default().split(',') {
            match op {
                ConfigOp::Append if !elements.contains(&element) => elements.push(element),
                ConfigOp::Subtract => elements.retain(|present| *present != element),
                _ => {}
            }
        }
        Ok(Some(elements.join(",")))
    }

    fn change_configs(&self, resource: &ConfigResource, old: &Configs, changes: Changes, sink: &mut Sink<'_>) -> Result<(), Refusal> {
        let mut new = old.clone();
        for (name, value) in &changes {
            match value {
                Some(value) if is_too_long(value) => return Err(too_long()),
                Some(value) => new.insert(name.as_str().into(), value.as_str().into()),
                None => new.remove(name.as_str()),
            };
        }
        check_resource_name(resource)?;
        self.settings.rules.check(&self.image, resource, &new)?;
        self.check_exists(resource)?;
        // A broker reloads what a setting points at (a key store, say) when the setting is written again with the same value (KAFKA-14136).
        let reload = resource.kind == ResourceType::Broker;
        sink.extend(
            changes.into_iter().filter(|(name, value)| reload || old.get(name.as_str()).map(|old| &**old) != value.as_deref()).map(
                |(name, value)| {
                    Record::Config(records::Config { resource_type: resource.kind, resource_name: resource.name.to_string(), name, value })
                },
            ),
        );
        Ok(())
    }

    /// What follows from changed settings, in the same append. Who is eligible rests on `min.insync.replicas` as it was; a partition whose ISR
    /// is empty keeps what it has, as nothing was committed in it since. And where unclean elections are allowed now, they happen now.
    pub(super) fn configs_changed(&self, draft: &mut Draft<'_>) {
        let changed: Vec<records::Config> = draft.records.iter().filter_map(config_record).cloned().collect();
        for config in changed {
            let topic = (config.resource_type == ResourceType::Topic).then_some(config.resource_name.as_str());
            match config.name.as_str() {
                MIN_ISR if self.image.feature(ELR_VERSION) > 0 => self.clear_elr(topic, draft),
                UNCLEAN_ELECTION if config.value.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("true")) => {
                    let of_all = config.resource_type == ResourceType::Broker && config.resource_name.is_empty();
                    if topic.is_some() || of_all {
                        self.loss_is_allowed_now(topic, draft);
                    }
                }
                _ => {}
            }
        }
    }

    fn clear_elr(&self, topic: Option<&str>, draft: &mut Draft<'_>) {
        draft.records.push(Record::ClearElr(topic.unwrap_or_default().into()));
        for at in self.leaderless_partitions() {
            let Some((known, partition)) = self.image.topic(at.topic).zip(self.image.partition(*at)) else { continue };
            let nothing_left = partition.elr.is_empty() && partition.last_known_elr.is_empty();
            if topic.is_some_and(|topic| *topic != *known.name) || !partition.isr.is_empty() || nothing_left {
                continue;
            }
            draft.records.push(Record::PartitionChange(records::PartitionChange {
                elr: Some(partition.elr.clone()),
                last_known_elr: Some(partition.last_known_elr.clone()),
                ..records::PartitionChange::new(at.topic, at.partition)
            }));
        }
    }

    fn check_exists(&self, resource: &ConfigResource) -> Result<(), Refusal> {
        let name = &resource.name;
        match resource.kind {
            ResourceType::Topic if self.image.topic_by_name(name).is_none() => {
                Err(Refusal::new(Why::UnknownTopicOrPartition, format!("The topic '{name}' does not exist.")))
            }
            ResourceType::Broker if !name.is_empty() => {
                let id = name.parse().map(BrokerId).ok();
                let registered = id.is_some_and(|id| self.image.broker(id).is_some() || self.image.controllers.contains_key(&id));
                if registered { Ok(()) } else { Err(Refusal::new(Why::BrokerIdNotRegistered, format!("No node with id {name} found."))) }
            }
            _ => Ok(()),
        }
    }
}

fn config_record(record: &Record) -> Option<&records::Config> {
    match record {
        Record::Config(config) => Some(config),
        _ => None,
    }
}

fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Refusal::new(Why::InvalidRequest, "Error due to duplicate config keys"));
        }
    }
    Ok(())
}

fn check_values<'a>(changes: impl Iterator<Item = (&'a String, &'a Option<String>)>) -> Result<(), Refusal> {
    let unset: Vec<&str> = changes.filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str()).collect();
    if unset.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(Why::InvalidRequest, format!("Null value not supported for : {}", unset.join(", "))))
}

fn check_resource_name(resource: &ConfigResource) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(Why::InvalidRequest, message));
    let name = &resource.name;
    match resource.kind {
        ResourceType::Topic if name.is_empty() => invalid("Default topic resources are not allowed.".into()),
        ResourceType::Topic => topics::check_name(name),
        ResourceType::Broker if name.is_empty() => Ok(()),
        ResourceType::Broker => match name.parse::<i32>() {
            Ok(id) if id < 0 => invalid("Invalid negative broker ID.".into()),
            Ok(_) => Ok(()),
            Err(_) => invalid("Unable to parse broker name as a base 10 number.".into()),
        },
        ResourceType::Group if name.is_empty() => invalid("Default group resources are not allowed.".into()),
        ResourceType::BrokerLogger => invalid("Log levels are not kept in the metadata log.".into()),
        ResourceType::Group | ResourceType::ClientMetrics => Ok(()),
    }
}

pub(super) fn is_too_long(value: &str) -> bool {
    value.len() > MAX_VALUE_LENGTH && value.encode_utf16().count() > MAX_VALUE_LENGTH
}

pub(super) fn too_long() -> Refusal {
    let message = format!("The configuration value cannot be added because it exceeds the maximum value size of {MAX_VALUE_LENGTH} bytes.");
    Refusal::new(Why::InvalidConfig, message)
}
