//! Understudy: a Kafka-compatible broker made of actors.

pub mod cli;
pub mod config;
pub mod core;
pub mod http;
pub mod log;
pub mod wire;
