//! Understudy: a Kafka-compatible broker made of actors.
#![doc = include_str!("ARCHITECTURE.md")]

pub mod actors;
pub mod api;
pub mod cli;
pub mod config;
pub mod core;
pub mod http;
pub mod log;
pub mod net;
pub mod peer;
pub mod rt;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
#[cfg(test)]
mod tidy;
pub mod wire;

pub use actors::node::{InProcess, serve, spawn};
