//! What can go wrong with a log on disk, said for the one who has to do something about it.

use std::io;
use std::path::{Path, PathBuf};

use super::storage;
use crate::core::types::Offset;

/// An operation on a log failed. The log itself is as it was before, unless it says [`LogError::Broken`].
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No room: reads and deletes go on, appends are refused until there is room.
    #[error("no space left for {path}: free space on that disk, or lower the retention of its topics")]
    Full {
        /// The file or directory that would have grown.
        path: PathBuf,
    },
    /// The disk refused.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A write failed half way and could not be undone; nothing is appended any more until the log is opened again.
    #[error("the log in {dir} could not undo a failed write and takes no more; check that disk, then restart")]
    Broken {
        /// The partition's directory.
        dir: PathBuf,
    },
    /// The batch does not fit in a segment.
    #[error("a batch of {size} bytes does not fit in a segment of {limit} (segment.bytes)")]
    BatchTooLarge {
        /// Bytes of the batch.
        size: u64,
        /// `segment.bytes`.
        limit: u64,
    },
    /// A replicated batch does not continue the log.
    #[error("a batch at offset {got} cannot follow a log that ends at {end}", got = got.0, end = end.0)]
    OutOfOrder {
        /// Where the log ends.
        end: Offset,
        /// The batch's base offset.
        got: Offset,
    },
    /// Bytes that should be batches are none.
    #[error("{path}: no valid batch at position {position}: {why}")]
    Corrupt {
        /// The file, or the partition's directory if the bytes were on their way to it.
        path: PathBuf,
        /// Byte of the file or of the given range.
        position: u64,
        /// What is wrong.
        why: String,
    },
    /// A small file (checkpoint, properties) cannot be understood.
    #[error("{path}: {why}")]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// Another process has the directory.
    #[error("{dir} is locked by another process: one broker or tool at a time may use a log directory")]
    Locked {
        /// The log directory.
        dir: PathBuf,
    },
}

impl LogError {
    /// From an I/O error while `doing` (an infinitive: "write", "open") something to `path`.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> LogError {
        let path = path.to_owned();
        if storage::is_full(&source) { LogError::Full { path } } else { LogError::Io { path, doing, source } }
    }
}

/// A read was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset is not in the log.
    #[error("offset {from} is outside the log, which has [{start}, {end}]", from = from.0, start = start.0, end = end.0)]
    OutOfRange {
        /// What was asked for.
        from: Offset,
        /// Log start.
        start: Offset,
        /// Log end: the last offset that may be asked for.
        end: Offset,
    },
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}
