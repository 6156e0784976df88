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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::group::{CommittedOffset, GroupMetadata};
    use std::sync::Arc;

    fn offset(partition: i32, offset: Option<i64>) -> GroupRecord {
        let value = offset.map(|offset| CommittedOffset {
            offset: Offset(offset),
            leader_epoch: Epoch(3),
            metadata: Arc::from("note"),
            committed: Millis(1_000),
            expires: None,
            topic_id: Default::default(),
        });
        GroupRecord::Offset { group: "g".into(), topic: "t".into(), partition, value }
    }

    fn group(generation: i32) -> GroupRecord {
        let value = GroupMetadata {
            protocol_type: Some("consumer".into()),
            generation,
            protocol: None,
            leader: None,
            since: Some(Millis(7)),
            members: vec![],
        };
        GroupRecord::Group { group: "g".into(), value: Some(value) }
    }

    /// The batch as the log holds it at that offset.
    fn at(base: i64, records: &[GroupRecord]) -> Vec<u8> {
        let mut bytes = build(records, Millis(5)).expect("they can be written").to_vec();
        bytes[..8].copy_from_slice(&base.to_be_bytes());
        bytes
    }

    fn raw(base: i64, make: impl FnOnce(BatchBuilder) -> BatchBuilder, key: &[u8]) -> Vec<u8> {
        let mut batch = make(BatchBuilder::new(Offset(base), Epoch(0), Millis(5)));
        batch.push(0, Some(key), Some(b"x"));
        batch.finish().expect("one record")
    }

    #[test]
    fn what_is_written_is_read_back() {
        let records = [offset(0, Some(9)), group(2), offset(1, None)];
        let bytes = [at(10, &records), at(13, &[group(3)])].concat();
        let chunk = take_apart(&bytes, Offset(10)).expect("our own batches");
        assert_eq!((chunk.records, chunk.next), ([records.to_vec(), vec![group(3)]].concat(), Offset(14)));
        let later = take_apart(&bytes, Offset(12)).expect("our own batches");
        assert_eq!((later.records, later.next), (vec![offset(1, None), group(3)], Offset(14)), "from the middle of a batch");
        let cut = take_apart(&bytes[..bytes.len() - 1], Offset(10)).expect("the range ends within a batch");
        assert_eq!((cut.records.len(), cut.next), (3, Offset(13)));
    }

    #[test]
    fn what_is_not_for_us_is_passed_over() {
        let share_group = [0, 11, 0, 1, b'g'];
        let bytes = [
            raw(0, |batch| batch.control(), &[0, 0, 0, 1]),
            raw(1, |batch| batch.transactional().producer(5, 0, 0), &share_group),
            raw(2, |batch| batch, &share_group),
            raw(3, |batch| batch, &[0]),
            at(4, &[group(1)]),
        ];
        let chunk = take_apart(&bytes.concat(), Offset(0)).expect("whole batches");
        assert_eq!((chunk.records, chunk.next), (vec![group(1)], Offset(5)));
        let mut broken = at(0, &[group(1)]);
        broken[16] = 9;
        assert!(matches!(take_apart(&broken, Offset(0)), Err(Unreadable::Batch(_))));
    }
}
