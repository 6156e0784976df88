//! Replication of one partition: a leader that knows who follows how far, and followers that know what to cut off.
//!
//! [`Leader`] keeps the high watermark and proposes changes of the ISR to the controller; [`follower`] has what a follower decides on the
//! answers of its leader. Neither reads a log: offsets come in, offsets go out. Rules: semantics reference, section 4.

pub mod follower;
mod isr;
mod leader;
mod progress;

pub use isr::{Answered, ProposalRefused};
pub use leader::{Begin, FollowerFetch, Leader, NotFollowed, Proposal, Rules, View};
pub use progress::{Behind, Progress};

#[cfg(test)]
mod tests;
