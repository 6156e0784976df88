//! What the controller asks the config layer: whether a resource may have the settings that somebody wants for it.

use super::alter::{Refused, broker_list_default, check_broker, check_topic, topic_list_default};
use super::broker::Config;
use super::dynamic::Settings;
use super::group_keys::check_group;
use crate::core::controller::records::ResourceType;
use crate::core::controller::{ConfigResource, ConfigRules, Configs, Image, Refusal, Why};
use std::sync::{Arc, Mutex};

/// With this feature on, a partition's eligible leader replicas depend on `min.insync.replicas`: brokers must not differ in it (KIP-966).
const ELR: &str = "eligible.leader.replicas.version";
const MIN_ISR: &str = "min.insync.replicas";

/// The rules of this node, which judges topics by its own configuration with its dynamic settings.
pub struct Rules {
    config: Arc<Config>,
    /// The configuration as dynamic settings changed it, for the settings it was last made of.
    current: Mutex<Option<Current>>,
}

#[derive(Clone)]
struct Current {
    all_brokers: Configs,
    this_broker: Configs,
    config: Arc<Config>,
}

impl Rules {
    /// `config` as the process was started with.
    pub fn new(config: Arc<Config>) -> Rules {
        Rules { config, current: Mutex::new(None) }
    }

    fn node(&self) -> String {
        self.config.node_id.to_string()
    }

    fn current(&self, image: &Image) -> Arc<Config> {
        let (all_brokers, this_broker) = (set(image, ""), set(image, &self.node()));
        let mut current = self.current.lock().expect("no holder of this lock panics");
        if let Some(current) = current.as_ref().filter(|c| c.all_brokers == all_brokers && c.this_broker == this_broker) {
            return current.config.clone();
        }
        let config = Arc::new(self.config.with_dynamic(&settings(&all_brokers), &settings(&this_broker)));
        *current = Some(Current { all_brokers, this_broker, config: config.clone() });
        config
    }

    fn check_broker(&self, image: &Image, name: &str, new: &Configs) -> Result<(), Refusal> {
        if image.feature(ELR) > 0 {
            let (old, new) = (set(image, name).get(MIN_ISR).cloned(), new.get(MIN_ISR).cloned());
            if !name.is_empty() && old != new {
                return Err(invalid("Broker-level min.insync.replicas cannot be altered while ELR is enabled."));
            }
            if name.is_empty() && old.is_some() && new.is_none() {
                return Err(invalid("Cluster-level min.insync.replicas cannot be removed while ELR is enabled."));
            }
        }
        let own = self.node();
        let (other, of_one_broker) = match name {
            "" => (own.as_str(), false),
            name if name == own => ("", true),
            // Another broker checked what is its own before it asked.
            _ => return Ok(()),
        };
        check_broker(&self.config, &settings(&set(image, other)), &settings(new), of_one_broker).map_err(|refused| refusal(&refused, false))
    }
}

impl ConfigRules for Rules {
    fn check(&self, image: &Image, resource: &ConfigResource, new: &Configs) -> Result<(), Refusal> {
        match resource.kind {
            ResourceType::Topic => check_topic(&self.current(image), &settings(new)).map_err(|refused| refusal(&refused, true)),
            ResourceType::Broker => self.check_broker(image, &resource.name, new),
            // Nothing here would act on them.
            ResourceType::ClientMetrics => Err(Refusal::new(Why::InvalidRequest, "This broker takes no client metrics.")),
            ResourceType::Group => check_group(&self.current(image), &settings(new)).map_err(|refused| refusal(&refused, true)),
            ResourceType::BrokerLogger => Err(Refusal::new(Why::InvalidRequest, "Log levels are not kept in the metadata log.")),
        }
    }

    fn list_default(&self, kind: ResourceType, name: &str) -> Option<String> {
        let default = match kind {
            ResourceType::Topic => topic_list_default(name),
            ResourceType::Broker => broker_list_default(name),
            ResourceType::BrokerLogger | ResourceType::ClientMetrics | ResourceType::Group => None,
        };
        default.map(str::to_owned)
    }
}

fn set(image: &Image, broker: &str) -> Configs {
    image.configs(ResourceType::Broker, broker).cloned().unwrap_or_default()
}

fn settings(configs: &Configs) -> Settings {
    configs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn refusal(refused: &Refused, of_topic: bool) -> Refusal {
    let why = if refused.is_invalid_request(of_topic) { Why::InvalidRequest } else { Why::InvalidConfig };
    Refusal::new(why, refused.to_string())
}

fn invalid(message: &str) -> Refusal {
    Refusal::new(Why::InvalidConfig, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::controller::Record;
    use crate::core::controller::records::{self, FeatureLevel};
    use crate::core::types::{BrokerId, Offset};

    fn image(log: &[Record]) -> Image {
        let mut image = Image::empty("c");
        for (offset, record) in log.iter().enumerate() {
            image.apply(Offset(offset as i64), record).unwrap();
        }
        image
    }

    fn config(kind: ResourceType, resource: &str, name: &str, value: &str) -> Record {
        let (resource_name, name, value) = (resource.into(), name.into(), Some(value.into()));
        Record::Config(records::Config { resource_type: kind, resource_name, name, value })
    }

    fn configs(pairs: &[(&str, &str)]) -> Configs {
        pairs.iter().map(|(name, value)| (Arc::from(*name), Arc::from(*value))).collect()
    }

    fn check(image: &Image, resource: ConfigResource, new: &[(&str, &str)]) -> Option<(Why, String)> {
        let rules = Rules::new(Arc::new(Config::defaults()));
        rules.check(image, &resource, &configs(new)).err().map(|refusal| (refusal.why, refusal.message.unwrap()))
    }

    #[test]
    fn topics_and_brokers_are_refused_with_their_own_errors() {
        let image = image(&[]);
        let (topic, one, all) = (ConfigResource::topic("t"), ConfigResource::broker(BrokerId(1)), ConfigResource::broker_default());
        let why = |resource: &ConfigResource, name, value| check(&image, resource.clone(), &[(name, value)]).map(|(why, _)| why);
        assert_eq!(why(&topic, "retention.ms", "1"), None);
        assert_eq!(why(&topic, "retention.ms", "soon"), Some(Why::InvalidConfig));
        assert_eq!(why(&topic, "no.such.key", "1"), Some(Why::InvalidConfig));
        assert_eq!(why(&one, "log.retention.ms", "1"), None);
        assert_eq!(why(&one, "log.retention.ms", "soon"), Some(Why::InvalidRequest));
        assert_eq!(why(&all, "node.id", "2"), Some(Why::InvalidRequest));
        assert_eq!(why(&ConfigResource::broker(BrokerId(2)), "node.id", "2"), None, "that broker checks");
        let group = ConfigResource { kind: ResourceType::Group, name: "g".into() };
        assert_eq!(why(&group, "consumer.session.timeout.ms", "50000"), None);
        assert_eq!(why(&group, "consumer.session.timeout.ms", "1"), Some(Why::InvalidConfig));
        for kind in [ResourceType::ClientMetrics, ResourceType::BrokerLogger] {
            assert_eq!(why(&ConfigResource { kind, name: "x".into() }, "a", "1"), Some(Why::InvalidRequest));
        }
    }

    #[test]
    fn topics_are_judged_by_the_dynamic_configuration_of_the_moment() {
        let rules = Rules::new(Arc::new(Config::defaults()));
        let new = configs(&[("min.compaction.lag.ms", "500")]);
        let topic = ConfigResource::topic("t");
        assert_eq!(rules.check(&image(&[]), &topic, &new), Ok(()));
        let with = image(&[config(ResourceType::Broker, "", "log.cleaner.max.compaction.lag.ms", "100")]);
        assert_eq!(rules.check(&with, &topic, &new).unwrap_err().why, Why::InvalidConfig);
        assert_eq!(rules.check(&image(&[]), &topic, &new), Ok(()));
    }

    #[test]
    fn with_eligible_leader_replicas_the_cluster_has_one_minimum() {
        let set = config(ResourceType::Broker, "", MIN_ISR, "1");
        let off = image(std::slice::from_ref(&set));
        let on = image(&[set, Record::FeatureLevel(FeatureLevel { name: ELR.into(), level: 1 })]);
        let (one, all) = (ConfigResource::broker(BrokerId(1)), ConfigResource::broker_default());
        assert_eq!(check(&off, one.clone(), &[(MIN_ISR, "2")]), None);
        assert_eq!(check(&off, all.clone(), &[]), None);
        let message = |resource: &ConfigResource, new| check(&on, resource.clone(), new).map(|(_, message)| message);
        assert!(message(&one, &[(MIN_ISR, "2")]).unwrap().starts_with("Broker-level min.insync.replicas"));
        assert!(message(&all, &[]).unwrap().starts_with("Cluster-level min.insync.replicas"));
        assert_eq!(message(&all, &[(MIN_ISR, "2")]), None);
    }

    #[test]
    fn lists_have_defaults_and_others_none() {
        let rules = Rules::new(Arc::new(Config::defaults()));
        let default = |kind, name| rules.list_default(kind, name);
        assert_eq!(default(ResourceType::Topic, "cleanup.policy").as_deref(), Some("delete"));
        assert_eq!(default(ResourceType::Broker, "log.cleanup.policy").as_deref(), Some("delete"));
        assert_eq!(default(ResourceType::Topic, "retention.ms"), None);
        assert_eq!(default(ResourceType::Group, "cleanup.policy"), None);
    }
}
