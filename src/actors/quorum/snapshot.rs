//! Snapshots of the metadata: `<end offset>-<epoch>.checkpoint` beside the log's segments, in Kafka's format: a header control batch,
//! batches of records, a footer control batch. A file without its footer is no snapshot.

use super::store::Damaged;
use crate::core::controller::{Image, METADATA_VERSION};
use crate::core::quorum::records::{ControlRecord, SnapshotId};
use crate::core::types::{Epoch, Millis, Offset};
use crate::log::LogError;
use crate::log::batch::Batches;
use crate::log::builder::BatchBuilder;
use crate::log::records::Records;
use crate::log::storage::{Storage, read_file, replace_file};
use crate::wire::records;
use std::path::{Path, PathBuf};

/// Suffix of the files.
pub const SUFFIX: &str = ".checkpoint";

/// Bytes of records in one batch.
const BATCH_BYTES: usize = 1 << 20;

/// A snapshot larger than this is not read.
const LARGEST: u64 = 4 << 30;

impl SnapshotId {
    /// The file in `dir`.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{:020}-{:010}{SUFFIX}", self.end.0, self.epoch.0))
    }

    /// Reads a file name; `None` for other files.
    pub fn parse(name: &str) -> Option<SnapshotId> {
        let (end, epoch) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        let digits = |text: &str, len| text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
        (digits(end, 20) && digits(epoch, 10))
            .then(|| Some(SnapshotId { end: Offset(end.parse().ok()?), epoch: Epoch(epoch.parse().ok()?) }))?
    }
}

/// The snapshots in `dir` with their sizes in bytes, oldest first.
pub fn list<S: Storage>(storage: &S, dir: &Path) -> Result<Vec<(SnapshotId, u64)>, LogError> {
    let entries = storage.list(dir).map_err(|e| LogError::io("list", dir, e))?;
    let mut ids: Vec<_> = entries.iter().filter_map(|entry| Some((SnapshotId::parse(&entry.name)?, entry.len))).collect();
    ids.sort();
    Ok(ids)
}

/// Writes a snapshot of `image`, safe against a power cut; returns its id and its size in bytes.
pub fn write<S: Storage>(storage: &S, dir: &Path, image: &Image, level: i16, now: Millis) -> Result<(SnapshotId, u64), LogError> {
    let id = SnapshotId { end: image.offset() + 1, epoch: image.epoch() };
    let bytes = encode(image, level, now);
    let path = id.path(dir);
    replace_file(storage, &path, &bytes, true).map_err(|e| LogError::io("write", &path, e))?;
    Ok((id, bytes.len() as u64))
}

fn encode(image: &Image, level: i16, now: Millis) -> Vec<u8> {
    let epoch = image.epoch();
    let mut out = Vec::new();
    let mut next = Offset(0);
    let control = |record, next: &mut Offset, out: &mut Vec<u8>| {
        let (key, value) = records::control::encode(&record).expect("snapshot control records have fixed versions");
        let mut batch = BatchBuilder::new(*next, epoch, now).control();
        batch.push(0, Some(&key), Some(&value));
        *next = *next + 1;
        out.extend(batch.finish().into_iter().flatten());
    };
    control(ControlRecord::SnapshotHeader(now), &mut next, &mut out);
    let mut batch = BatchBuilder::new(next, epoch, now);
    let mut value = Vec::new();
    for record in image.records() {
        value.clear();
        records::encode(&record, records::version_at(&record, level), &mut value).expect("the image came from records of this level");
        batch.push(0, None, Some(&value));
        next = next + 1;
        if batch.size() >= BATCH_BYTES {
            out.extend(std::mem::replace(&mut batch, BatchBuilder::new(next, epoch, now)).finish().into_iter().flatten());
        }
    }
    out.extend(batch.finish().into_iter().flatten());
    control(ControlRecord::SnapshotFooter, &mut next, &mut out);
    out
}

/// Reads a snapshot into an image that stands at its end. `Ok(None)`: it has no footer, so it was never finished.
pub fn read<S: Storage>(storage: &S, dir: &Path, id: &SnapshotId, cluster_id: &str) -> Result<Option<Image>, Damaged> {
    let path = id.path(dir);
    let bytes = read_file(storage, &path, LARGEST).map_err(|e| LogError::io("read", &path, e))?;
    let damaged = |why: String| Damaged::Snapshot { path: path.clone(), why };
    let mut image = Image::empty(cluster_id);
    let mut finished = false;
    for batch in Batches::new(&bytes) {
        let batch = batch.map_err(|e| damaged(e.to_string()))?;
        batch.header.check_crc(batch.bytes).map_err(|e| damaged(e.to_string()))?;
        for record in Records::new(&batch.header, batch.payload()) {
            let record = record.map_err(|e| damaged(format!("{e:?}")))?;
            let value = record.value.unwrap_or_default();
            if batch.header.is_control() {
                let control = records::control::decode(record.key.unwrap_or_default(), value).map_err(|e| damaged(e.to_string()))?;
                finished |= control == ControlRecord::SnapshotFooter;
            } else {
                let (record, _) = records::decode(value).map_err(|e| damaged(e.to_string()))?;
                image.apply(id.end + -1, &record).map_err(|e| damaged(e.to_string()))?;
            }
        }
    }
    image.advance(id.end + -1, id.epoch);
    Ok(finished.then_some(image))
}

/// The level of `metadata.version` of an image, or `otherwise` if it has none yet.
pub fn level(image: &Image, otherwise: i16) -> i16 {
    match image.feature(METADATA_VERSION) {
        0 => otherwise,
        level => level,
    }
}
