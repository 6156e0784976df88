//! The rules, as plain values: no clock, no randomness, no files, no sockets, no actors.
//!
//! Methods take `now` and inputs, change `self`, and return values or push effects. Nothing here imports another layer.

pub mod producer;
pub mod types;
