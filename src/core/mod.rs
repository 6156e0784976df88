//! The rules, as plain values: no clock, no randomness, no files, no sockets, no actors.
//!
//! Methods take `now` and inputs, change `self`, and return values or push effects. Nothing here imports another layer.

pub mod chance;
pub mod controller;
pub mod election;
pub mod epochs;
pub mod fetch_session;
pub mod group;
pub mod placement;
pub mod producer;
pub mod purgatory;
pub mod quorum;
pub mod replica;
pub mod types;
