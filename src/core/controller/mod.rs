//! The controller: what the cluster's metadata is, and who may change it.

pub mod records;
