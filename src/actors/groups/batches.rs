//! The records of a coordinator as batches of its partition: built to be appended, and read back when it loads.

use crate::core::group::GroupRecord;
use crate::core::types::{Epoch, Millis, Offset};
use crate::log::Range;
use crate::log::batch::{BatchError, Batches};
use crate::log::builder::BatchBuilder;
use crate::log::codec::{CodecError, inflate};
use crate::log::records::{RecordError, Records};
use crate::log::storage::{Storage, read_exact_at};
use crate::wire::records::{BadRecord, group};
use bytes::Bytes;

/// What a batch of the partition may inflate to. Brokers write their records as they are; only other software compresses them.
const INFLATED_MAX: usize = 256 * 1024 * 1024;

/// Records that were read.
pub struct Chunk {
    /// The records, in order.
    pub records: Vec<GroupRecord>,
    /// Where to go on.
    pub next: Offset,
}

/// Why a partition cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The disk refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// No batch where one should be.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A codec that nobody knows.
    #[error("no codec has the number {0}")]
    Codec(i16),
    /// Records that cannot be inflated.
    #[error(transparent)]
    Inflate(#[from] CodecError),
    /// A record that is none.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Nothing that can be read where records should be.
    #[error("there is no whole batch at offset {}", .0.0)]
    Nothing(Offset),
}

/// One batch of those records, for the partition to append.
pub fn build(records: &[GroupRecord], now: Millis) -> Result<Bytes, BadRecord> {
    let mut batch = BatchBuilder::new(Offset(0), Epoch::NONE, now);
    for record in records {
        let (key, value) = group::encode(record)?;
        batch.push(0, Some(&key), value.as_deref());
    }
    Ok(batch.finish().map(Bytes::from).unwrap_or_default())
}

/// Reads the whole batches of a range that are at or after `from`.
pub fn read<S: Storage>(range: &Range<S>, from: Offset) -> Result<Chunk, Unreadable> {
    let mut bytes = vec![0; range.len as usize];
    read_exact_at(&*range.file, range.position, &mut bytes)?;
    let chunk = take_apart(&bytes, from)?;
    if chunk.next <= from {
        return Err(Unreadable::Nothing(from));
    }
    Ok(chunk)
}

fn take_apart(bytes: &[u8], from: Offset) -> Result<Chunk, Unreadable> {
    let mut chunk = Chunk { records: Vec::new(), next: from };
    for batch in Batches::new(bytes) {
        let batch = batch?;
        chunk.next = chunk.next.max(batch.header.next_offset());
        // Offsets in transactions are not written by this broker yet: none of them counts without its marker.
        if batch.header.is_control() || batch.header.is_transactional() || batch.header.last_offset() < from {
            continue;
        }
        let codec = batch.header.compression().ok_or(Unreadable::Codec(batch.header.attributes & 7))?;
        let payload = inflate(codec, batch.payload(), INFLATED_MAX)?;
        for record in Records::new(&batch.header, &payload) {
            let record = record?;
            if record.offset < from {
                continue;
            }
            match group::decode(record.key.unwrap_or_default(), record.value) {
                Ok(record) => chunk.records.push(record),
                // Of groups that this version does not have: those of the newer protocols, share groups, streams groups.
                Err(BadRecord::UnknownType(_)) => {}
                Err(e) => tracing::warn!(offset = record.offset.0, "a record of a group cannot be read and is skipped: {e}"),
            }
        }
    }
    Ok(chunk)
}
