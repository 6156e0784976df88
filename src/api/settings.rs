//! Configuration in the metadata as the config layer takes it.

use super::Broker;
use crate::config::{Describer, Settings};
use crate::core::controller::{Image, ResourceType};

/// What is set on a resource.
pub fn of(image: &Image, kind: ResourceType, name: &str) -> Settings {
    let set = image.configs(kind, name).into_iter().flatten();
    set.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// The dynamic configuration of brokers that counts on this one.
pub struct Dynamic {
    all_brokers: Settings,
    this_broker: Settings,
}

impl Dynamic {
    /// As the image has it.
    pub fn new(broker: &Broker, image: &Image) -> Dynamic {
        Dynamic {
            all_brokers: of(image, ResourceType::Broker, ""),
            this_broker: of(image, ResourceType::Broker, &broker.node.0.to_string()),
        }
    }

    /// Describes what it comes to, over the broker's own configuration.
    pub fn describer<'a>(&'a self, broker: &'a Broker) -> Describer<'a> {
        Describer::new(&broker.config, &self.all_brokers, &self.this_broker)
    }
}
