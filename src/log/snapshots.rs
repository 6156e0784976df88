//! The `.snapshot` files of a log: what producers had done up to an offset. Their content is the caller's (it carries its own checksum); here it
//! is kept, listed and dropped.

use std::io;

use super::error::LogError;
use super::partition_log::Log;
use super::segment::{parse_name, path_of};
use super::storage::{Storage, read_file, replace_file};
use crate::core::types::Offset;

/// Bytes that a snapshot has at most: a million producers.
const LIMIT: u64 = 64 << 20;

impl<S: Storage> Log<S> {
    /// Offsets at which there are snapshots, rising.
    pub fn snapshot_offsets(&self) -> Result<Vec<Offset>, LogError> {
        let entries = match self.files.storage().list(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(|e| LogError::io("list", &self.dir, e))?,
        };
        let mut offsets: Vec<_> =
            entries.iter().filter_map(|e| parse_name(&e.name)).filter(|(_, s)| *s == "snapshot").map(|(o, _)| o).collect();
        offsets.sort_unstable();
        Ok(offsets)
    }

    /// The snapshot at that offset, as it was written; it may be torn after a power cut.
    pub fn read_snapshot(&self, offset: Offset) -> Result<Vec<u8>, LogError> {
        let path = path_of(&self.dir, offset, "snapshot");
        read_file(self.files.storage(), &path, LIMIT).map_err(|e| LogError::io("read", &path, e))
    }

    /// Writes a snapshot. It is not synced: a lost one costs time at the next start, no more.
    pub fn write_snapshot(&self, offset: Offset, bytes: &[u8]) -> Result<(), LogError> {
        let path = path_of(&self.dir, offset, "snapshot");
        replace_file(self.files.storage(), &path, bytes, false).map_err(|e| LogError::io("write", &path, e))
    }

    /// Removes the snapshots whose offset `which` picks.
    pub fn remove_snapshots(&self, which: impl Fn(Offset) -> bool) -> Result<(), LogError> {
        for offset in self.snapshot_offsets()?.into_iter().filter(|o| which(*o)) {
            let path = path_of(&self.dir, offset, "snapshot");
            match self.files.storage().remove(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(LogError::io("remove", &path, e)),
                _ => {}
            }
        }
        Ok(())
    }
}
