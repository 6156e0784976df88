//! The log on disk, synchronous and without actors. Imports only `core` types.

pub mod batch;
pub mod builder;
pub mod checkpoint;
pub mod codec;
pub mod compact;
mod deflate;
pub mod dirs;
pub mod error;
pub mod files;
pub mod index;
mod inflate;
mod leftovers;
pub mod mem;
pub mod options;
pub mod partition_log;
pub mod read;
pub mod records;
pub mod recovery;
pub mod retention;
mod segment;
mod snapshots;
mod source;
pub mod storage;
pub mod survival;
pub mod sync;
mod tear;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
mod tests;
mod timestamps;
mod truncate;
pub mod validate;
mod varint;
mod walk;
mod window;

pub use error::{LogError, ReadError};
pub use files::Files;
pub use mem::Mem;
pub use options::{LogConfig, OpenHints};
pub use partition_log::{Appended, Log};
pub use read::Range;
pub use recovery::{Cut, Opened};
pub use retention::{SegmentFiles, remove_files, remove_partition_dir};
pub use storage::{Fs, FsFile, Storage};
pub use sync::SyncTarget;

#[cfg(test)]
mod log_tests;
