//! The broker's own batches: control records, coordinators' records, metadata records.

use super::batch::{BatchHeader, CONTROL_BIT, HEADER_SIZE, LENGTH_OVERHEAD, TRANSACTIONAL_BIT};
use super::varint::{put_varint, varint_size};
use crate::core::types::{Epoch, Millis, Offset};

/// Writes one uncompressed batch of the broker's own: control records, coordinators' records, metadata records. For batches of bounded
/// size: the caller looks at [`BatchBuilder::size`].
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: BatchHeader,
    /// Room for the header, then the records.
    bytes: Vec<u8>,
}

impl BatchBuilder {
    /// An empty batch. `timestamp` is what its records' timestamps are relative to.
    pub fn new(base_offset: Offset, leader_epoch: Epoch, timestamp: Millis) -> BatchBuilder {
        let header = BatchHeader {
            base_offset,
            length: 0,
            leader_epoch,
            crc: 0,
            attributes: 0,
            last_offset_delta: -1,
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: 0,
        };
        BatchBuilder { header, bytes: vec![0; HEADER_SIZE] }
    }

    /// Makes its records control records.
    pub fn control(mut self) -> BatchBuilder {
        self.header.attributes |= CONTROL_BIT;
        self
    }

    /// Makes it part of a transaction.
    pub fn transactional(mut self) -> BatchBuilder {
        self.header.attributes |= TRANSACTIONAL_BIT;
        self
    }

    /// Names the producer; `base_sequence` is -1 for coordinators and markers.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> BatchBuilder {
        (self.header.producer_id, self.header.producer_epoch, self.header.base_sequence) = (id, epoch, base_sequence);
        self
    }

    /// Appends a record, `delta` milliseconds after the batch's timestamp.
    pub fn push(&mut self, delta: i64, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.header.last_offset_delta += 1;
        self.header.count += 1;
        self.header.max_timestamp = self.header.max_timestamp.max(Millis(self.header.base_timestamp.0.saturating_add(delta)));
        put_record(&mut self.bytes, delta, self.header.last_offset_delta, key, value);
    }

    /// Number of records.
    pub fn count(&self) -> i32 {
        self.header.count
    }

    /// Bytes of the batch so far, header included.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The batch, whole and with its checksum; None if it has no records.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        if self.header.count == 0 {
            return None;
        }
        self.header.length = i32::try_from(self.bytes.len() - LENGTH_OVERHEAD).expect("our own batches are far below 2 GiB");
        self.header.crc = self.header.crc_with(&self.bytes[HEADER_SIZE..]);
        self.bytes[..HEADER_SIZE].copy_from_slice(&self.header.encode());
        Some(self.bytes)
    }
}

/// Appends one record without headers.
fn put_record(out: &mut Vec<u8>, timestamp_delta: i64, offset_delta: i32, key: Option<&[u8]>, value: Option<&[u8]>) {
    let field = |f: Option<&[u8]>| f.map_or(1, |b| varint_size(b.len() as i64) + b.len());
    let length = 1 + varint_size(timestamp_delta) + varint_size(offset_delta.into()) + field(key) + field(value) + 1;
    put_varint(out, length as i64);
    out.push(0);
    put_varint(out, timestamp_delta);
    put_varint(out, offset_delta.into());
    for field in [key, value] {
        match field {
            None => put_varint(out, -1),
            Some(bytes) => {
                put_varint(out, bytes.len() as i64);
                out.extend_from_slice(bytes);
            }
        }
    }
    put_varint(out, 0);
}
