//! What tests need to speak to a broker from outside: a child process that can be killed, a raw wire client, records, patience. Only for
//! tests: everything panics with the reason and what the broker said.
//!
//! `BOOTSTRAP=host:port cargo test ...` points the tests that use `Running` at a broker that runs already (Apache Kafka, say), so that
//! what they expect stays honest.

pub mod broker;
pub mod golden;
pub mod patience;
pub mod records;
pub mod wire;

pub use broker::{Broker, BrokerOptions, Running};
pub use patience::{Watch, eventually};
pub use wire::Conn;
