//! The actors: thin shells that read a message, call the core, and perform what it decided.

pub mod cleaner;
pub mod controller;
pub mod elections;
pub mod groups;
pub mod link;
pub mod log_io;
pub mod node;
pub mod partition;
pub mod quorum;
pub mod routes;
pub mod shard;
