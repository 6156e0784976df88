//! The segment that a rewrite makes: `.cleaned` files with their indexes, on the disk before anybody hears of them.

use std::path::{Path, PathBuf};

use super::txn::{self, AbortedTxn};
use super::{CompactError, Pace};
use crate::core::types::{Millis, Offset};
use crate::log::batch::BatchHeader;
use crate::log::error::LogError;
use crate::log::index::{Index, TimeEntry};
use crate::log::segment::path_of;
use crate::log::storage::{File, Storage, write_at};

/// Suffix of files that are being written.
pub(super) const CLEANED: &str = ".cleaned";
/// What a segment consists of.
pub(super) const PARTS: [&str; 4] = ["log", "index", "timeindex", "txnindex"];
/// After so many bytes the file is synced, so that no sync of somebody else has to wait for more of ours.
const SYNC_EVERY: u64 = 8 << 20;
/// Positions in index entries are 32-bit and signed for Kafka.
const LARGEST: u64 = i32::MAX as u64;

/// The path of a segment's file while it is being written.
pub(super) fn cleaned_path(dir: &Path, base: Offset, part: &str) -> PathBuf {
    let mut path = path_of(dir, base, part).into_os_string();
    path.push(CLEANED);
    path.into()
}

/// Removes the files of an unfinished or unwanted rewrite; what cannot be removed is removed at the next start.
pub(super) fn discard<S: Storage>(storage: &S, dir: &Path, base: Offset) {
    for part in PARTS {
        let _ = storage.remove(&cleaned_path(dir, base, part));
    }
}

pub(super) struct Output<'a, S: Storage> {
    storage: &'a S,
    dir: &'a Path,
    base: Offset,
    path: PathBuf,
    file: S::File,
    index: Index,
    interval: u32,
    /// Bytes of batches so far, those in `buf` included.
    size: u64,
    records: bool,
    written: u64,
    synced: u64,
    buf: Vec<u8>,
    usual: usize,
}

/// A segment that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub size: u64,
    pub max: TimeEntry,
}

impl<'a, S: Storage> Output<'a, S> {
    /// An empty `.cleaned` segment. Writes in pieces of `usual` bytes.
    pub fn create(storage: &'a S, dir: &'a Path, base: Offset, interval: u32, usual: usize) -> Result<Output<'a, S>, CompactError> {
        let path = cleaned_path(dir, base, "log");
        let file = storage.create(&path).map_err(|e| LogError::io("create", &path, e))?;
        let buf = Vec::new();
        Ok(Output {
            storage,
            dir,
            base,
            path,
            file,
            index: Index::new(base),
            interval,
            size: 0,
            records: false,
            written: 0,
            synced: 0,
            buf,
            usual,
        })
    }

    /// Bytes of batches so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether there is a batch with records.
    pub fn has_records(&self) -> bool {
        self.records
    }

    /// Bytes of its offset index and of its time index.
    pub fn index_bytes(&self) -> (u64, u64) {
        self.index.bytes()
    }

    /// Appends a batch: `head` and then `body`.
    pub fn push(&mut self, header: &BatchHeader, head: &[u8], body: &[u8], pace: &mut dyn Pace) -> Result<(), CompactError> {
        let size = head.len() + body.len();
        if self.size + size as u64 > LARGEST {
            return Err(CompactError::Grown { base: self.base });
        }
        self.index.note(header, self.size, self.interval);
        self.size += size as u64;
        self.records |= header.count > 0;
        if self.buf.len() + size > self.usual {
            let buffered = std::mem::take(&mut self.buf);
            self.write(&buffered, &[], pace)?;
            self.buf = buffered;
            self.buf.clear();
        }
        if size > self.usual {
            return self.write(head, body, pace);
        }
        self.buf.extend_from_slice(head);
        self.buf.extend_from_slice(body);
        Ok(())
    }

    fn write(&mut self, head: &[u8], body: &[u8], pace: &mut dyn Pace) -> Result<(), CompactError> {
        write_at(&self.file, self.written, head, body).map_err(|e| LogError::io("write", &self.path, e))?;
        let n = (head.len() + body.len()) as u64;
        self.written += n;
        if self.written - self.synced >= SYNC_EVERY {
            self.sync()?;
        }
        Ok(pace.io(n)?)
    }

    fn sync(&mut self) -> Result<(), CompactError> {
        self.synced = self.written;
        Ok(self.file.sync_data().map_err(|e| LogError::io("sync", &self.path, e))?)
    }

    /// Completes the files and brings them to the disk. `modified`: when the newest of the segments it replaces was last written to.
    pub fn finish(mut self, aborted: &[AbortedTxn], modified: Millis, pace: &mut dyn Pace) -> Result<Written, CompactError> {
        let rest = std::mem::take(&mut self.buf);
        self.write(&rest, &[], pace)?;
        self.sync()?;
        self.index.note_time();
        let (offsets, times) = (cleaned_path(self.dir, self.base, "index"), cleaned_path(self.dir, self.base, "timeindex"));
        self.index.rewrite(self.storage, &offsets, &times)?;
        let mut parts = vec![offsets, times];
        if !aborted.is_empty() {
            let path = cleaned_path(self.dir, self.base, "txnindex");
            let write = |file: S::File| write_at(&file, 0, &txn::encode(aborted), &[]);
            self.storage.create(&path).and_then(write).map_err(|e| LogError::io("write", &path, e))?;
            parts.push(path);
        }
        for path in parts {
            self.storage.open(&path).and_then(|f| f.sync_data()).map_err(|e| LogError::io("sync", &path, e))?;
        }
        // Retention of records without timestamps goes by it. Some file systems do not let it be set, which only makes them stay longer.
        let _ = self.file.set_modified(modified);
        Ok(Written { size: self.size, max: self.index.max() })
    }
}
