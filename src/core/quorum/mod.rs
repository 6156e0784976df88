//! The metadata quorum.

pub mod records;
