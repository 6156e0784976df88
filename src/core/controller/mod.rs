//! The controller: what the cluster's metadata is, and who may change it.

pub mod delta;
pub mod entities;
pub mod image;
pub mod records;
mod replay;
mod snapshot;

pub use delta::{Change, Delta};
pub use entities::{Broker, ConfigResource, Configs, ControllerNode, Partition, Topic};
pub use image::Image;
pub use records::Record;
pub use replay::Contradiction;
