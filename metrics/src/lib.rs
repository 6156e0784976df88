//! The metric families of a node and the cells behind them. Touching a cell is one relaxed atomic operation; everything else (sums,
//! labels, text) happens when somebody scrapes. A leaf: it knows nothing of the broker.
//!
//! A new metric is a row in `family.rs`, a cell in the file of its owner, and `UPDATE_GOLDEN=1 cargo test -p understudy-metrics`. Labels
//! never carry what a client can choose freely: client ids, principals, offsets, error texts.

mod actors;
mod api;
mod cell;
mod elections;
mod families;
mod family;
mod handles;
mod partitions;
mod process;
mod profile;
mod sink;
mod timing;
mod topics;

pub use actors::ActorMetrics;
pub use api::{ApiMetrics, Spent};
pub use cell::{Counter, Gauge};
pub use elections::{ElectionReason, ElectionType, Elections};
pub use families::{Families, NodeMetrics};
pub use family::{Family, Kind};
pub use handles::{ConsumerGroups, Edge, FetchSessions, Groups, Lifecycle, Raft, Refusals, Replicas};
pub use partitions::{Detail, PartitionGauges, Partitions};
pub use profile::{Profiles, UnknownProfile};
/// The registry a node shows itself in; whoever makes the node makes one.
pub use prometheus::Registry;
pub use sink::{MAX_SERIES, Sink, Source};
pub use timing::{QUANTILES, Summary, Timing};
pub use topics::{TopicMetrics, Topics};
