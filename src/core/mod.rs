//! The rules, as plain values: no clock, no randomness, no files, no sockets, no actors.
//!
//! Methods take `now` and inputs, change `self`, and return values or push effects. Nothing here imports another layer.

pub mod chance;
pub mod controller;
pub mod producer;
pub mod quorum;
pub mod election;
pub mod placement;
pub mod types;
