//! The controller: cluster metadata as records of one log.

pub mod entities;
pub mod image;

pub use entities::{
    Broker, BrokerEpoch, ConfigResource, Configs, ControllerNode, Endpoint, Partition, RecoveryState, ResourceKind, SupportedFeature, Topic,
};
pub use image::{Image, ProducerIds};
