//! The records of a coordinator as batches of its partition: built to be appended, and read back when it loads.

use crate::core::group::GroupRecord;
use crate::core::types::Offset;
use crate::log::Range;
use crate::log::batch::{BatchError, Batches};
use crate::log::codec::{CodecError, inflate};
use crate::log::records::{RecordError, Records};
use crate::log::storage::{Storage, read_exact_at};
use crate::wire::records::BadRecord;
use crate::wire::records::group::{self, Names};

/// What a batch of the partition may inflate to. Brokers write their records as they are; only other software compresses them.
const INFLATED_MAX: usize = 256 * 1024 * 1024;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How many records.
    pub records: usize,
    /// How many offsets of transactions were passed over.
    pub transactional: usize,
    /// Where to go on.
    pub next: Offset,
}

/// The records of one write as bytes.
#[derive(Default)]
pub struct Encoded {
    bytes: Vec<u8>,
    /// Where each key and each value ends; no value where the record is a tombstone.
    ends: Vec<(usize, Option<usize>)>,
}

/// What a record takes in a batch besides key and value, at most.
const RECORD_OVERHEAD: usize = 24;

impl Encoded {
    /// The bytes of those records.
    pub fn of(records: &[GroupRecord]) -> Result<Encoded, BadRecord> {
        let mut encoded = Encoded { bytes: Vec::with_capacity(128), ends: Vec::with_capacity(records.len()) };
        for record in records {
            let ends = group::encode_into(record, &mut encoded.bytes)?;
            encoded.ends.push(ends);
        }
        Ok(encoded)
    }

    /// Bytes in a batch, at most.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * RECORD_OVERHEAD
    }

    /// Key and value of each record.
    pub fn each(&self, mut one: impl FnMut(&[u8], Option<&[u8]>)) {
        let mut start = 0;
        for (key, value) in &self.ends {
            one(&self.bytes[start..*key], value.map(|value| &self.bytes[*key..value]));
            start = value.unwrap_or(*key);
        }
    }
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

/// Reads the whole batches of a range and hands out their records that are at or after `from`, in order.
pub fn read<S: Storage>(range: &Range<S>, from: Offset, take: impl FnMut(GroupRecord)) -> Result<Chunk, Unreadable> {
    let mut bytes = vec![0; range.len as usize];
    read_exact_at(&*range.file, range.position, &mut bytes)?;
    let chunk = take_apart(&bytes, from, take)?;
    if chunk.next <= from {
        return Err(Unreadable::Nothing(from));
    }
    Ok(chunk)
}

fn take_apart(bytes: &[u8], from: Offset, mut take: impl FnMut(GroupRecord)) -> Result<Chunk, Unreadable> {
    let (mut chunk, mut names) = (Chunk { records: 0, transactional: 0, next: from }, Names::default());
    for batch in Batches::new(bytes) {
        let batch = batch?;
        chunk.next = chunk.next.max(batch.header.next_offset());
        if batch.header.is_control() || batch.header.last_offset() < from {
            continue;
        }
        // Offsets in transactions are not written by this broker yet: none of them counts without its marker.
        if batch.header.is_transactional() {
            chunk.transactional += batch.header.count.max(0) as usize;
            continue;
        }
        let codec = batch.header.compression().ok_or(Unreadable::Codec(batch.header.attributes & 7))?;
        let payload = inflate(codec, batch.payload(), INFLATED_MAX)?;
        for record in Records::new(&batch.header, &payload) {
            let record = record?;
            if record.offset < from {
                continue;
            }
            match group::decode_with(&mut names, record.key.unwrap_or_default(), record.value) {
                Ok(record) => {
                    chunk.records += 1;
                    take(record);
                }
                // Of groups that this version does not have: share groups, streams groups.
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
    use crate::core::types::{Epoch, Millis};
    use crate::log::builder::BatchBuilder;
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
        let mut batch = BatchBuilder::new(Offset(base), Epoch::NONE, Millis(5));
        Encoded::of(records).expect("they can be written").each(|key, value| batch.push(0, Some(key), value));
        batch.finish().expect("there are some")
    }

    fn taken(bytes: &[u8], from: i64) -> Result<(Vec<GroupRecord>, Offset), Unreadable> {
        let mut records = Vec::new();
        let chunk = take_apart(bytes, Offset(from), |record| records.push(record))?;
        assert_eq!(chunk.records, records.len());
        Ok((records, chunk.next))
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
        let whole = taken(&bytes, 10).expect("our own batches");
        assert_eq!(whole, ([records.to_vec(), vec![group(3)]].concat(), Offset(14)));
        let later = taken(&bytes, 12).expect("our own batches");
        assert_eq!(later, (vec![offset(1, None), group(3)], Offset(14)), "from the middle of a batch");
        let cut = taken(&bytes[..bytes.len() - 1], 10).expect("the range ends within a batch");
        assert_eq!(cut, (records.to_vec(), Offset(13)));
    }

    #[test]
    fn offsets_in_transactions_are_counted() {
        let bytes = [raw(0, |batch| batch.transactional().producer(5, 0, 0), &[0, 1]), at(1, &[group(3)])].concat();
        let chunk = take_apart(&bytes, Offset(0), |_| {}).expect("whole batches");
        assert_eq!((chunk.records, chunk.transactional, chunk.next), (1, 1, Offset(2)));
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
        assert_eq!(taken(&bytes.concat(), 0).expect("whole batches"), (vec![group(1)], Offset(5)));
        let mut broken = at(0, &[group(1)]);
        broken[16] = 9;
        assert!(matches!(taken(&broken, 0), Err(Unreadable::Batch(_))));
    }
}
