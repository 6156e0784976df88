//! Compaction: of the records with one key only the last stays. Offsets stay what they were; batches keep their base and last offset,
//! producer, sequence and epoch, so followers and consumers notice nothing but gaps. Rules: reference sections 4.11, 5.2, 6.1; KIP-58,
//! KIP-534.
//!
//! 1. [`Log::dirt`](super::Log::dirt) says how much of a log is worth compacting (`plan`).
//! 2. [`Log::compaction`](super::Log::compaction) makes a [`Task`], which is run elsewhere while the log goes on being appended to and
//!    read: it reads the dirty part and notes the last offset of each key (`map`), then writes every segment anew that lies below
//!    (`rewrite`, `output`). It reads sealed segments only, and writes only `.cleaned` files.
//! 3. For each new segment the log's owner calls [`Log::swap`](super::Log::swap): renames, nothing else.
//!
//! What a crash leaves is put right when the log is opened (`leftovers`), as Apache Kafka does with the same files.

mod map;
mod output;
mod plan;
mod reader;
mod rewrite;
mod run;
mod swap;
#[cfg(test)]
mod tests;
mod txn;

pub use map::MapLimits;
pub use plan::Dirt;
pub use run::{Settings, Stats, Task};
pub use swap::{Cleaned, SwapRefused};

use super::error::LogError;
use crate::core::types::Offset;

/// The task is not wanted any more: the partition is closed, deleted or cut, or the process stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the compaction was called off")]
pub struct Stopped;

/// Asked in the middle of the work: waits as long as the throttle wants, and says whether to go on.
pub trait Pace {
    /// So many bytes were read or written.
    fn io(&mut self, bytes: u64) -> Result<(), Stopped>;
}

/// A log could not be compacted. It is as it was before, or compacted in part.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// Nobody's fault.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The segments changed under the task: retention or a truncation took some. The next task starts from what is there.
    #[error("the segments changed meanwhile")]
    Changed,
    /// The disk refused, or what it holds is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// One batch has more keys than the map has room for.
    #[error("the batch at offset {at} has more keys than the map of offsets has room for ({room}); raise log.cleaner.dedupe.buffer.size", at = at.0)]
    NoRoom {
        /// Its base offset.
        at: Offset,
        /// How many keys the map takes.
        room: u64,
    },
    /// Records that were compressed anew took more room, and the segment was as large as one can be.
    #[error("the segment at offset {base} would grow beyond 2 GiB; lower segment.bytes and compact other topics meanwhile", base = base.0)]
    Grown {
        /// Its base offset.
        base: Offset,
    },
}

/// What a producer that is still known appended last: the batch that must stay, because it carries the sequence number that is to be
/// followed (or, after a marker, the epoch).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRecord {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// The last offset of its last batch of records; None if a marker came after a new epoch began.
    pub last_offset: Option<Offset>,
}
