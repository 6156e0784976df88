//! Everything between bytes and typed messages. It knows no sockets and no requests' meanings.
//!
//! The order for an incoming request: [`frame`] finds its length, [`header`] names it, [`guard`] walks its body; only then may the
//! message crate decode it, because the crate reserves memory for whatever an array claims to hold.

pub mod error;
pub mod frame;
pub mod guard;
pub mod header;
pub mod quorum;
pub mod records;
