//! Group coordination: who is in which group, who assigns, and how far each group has read.
//!
//! A [`Coordinator`] has the groups of one partition of `__consumer_offsets`. Requests come with a ticket; what is to be done comes out as
//! effects: answers to tickets, and records to append. Membership lives in memory and runs ahead of the records, which only tell the next
//! coordinator where to go on; offsets change when their records are committed. Rules: reference section 3.8, KIP-345, KIP-394, KIP-814.

mod any;
pub mod assign;
mod classic;
mod consumer;
mod consumers;
mod coordinator;
mod embedded;
mod offsets;
mod partition;
pub mod pattern;
pub mod records;
pub mod report;
pub mod request;
mod serve;
mod subscription;
mod timers;
mod topics;
mod upkeep;
mod writes;

pub use consumer::check_beat;
pub use coordinator::Coordinator;
pub use partition::partition_of;
pub use records::{CommittedOffset, GroupMetadata, GroupRecord, MemberMetadata};
pub use request::{Answer, Effect, Request, Settings, Ticket, Why, WriteId};
pub use topics::Topics;

#[cfg(test)]
mod tests;
