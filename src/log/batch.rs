//! The 61-byte header of a record batch of format 2: read by value, written back, its checksum; the batches of a byte range. The records
//! inside are `records`' business, their compression `codec`'s; `builder` writes the broker's own.
//!
//! Layout: reference section 5.2. Base offset and leader epoch lie before the checksummed part, so a log sets both without a new one.

use crate::core::types::{Epoch, Millis, Offset};

pub use super::builder::BatchBuilder;

/// Bytes of a batch before its records.
pub const HEADER_SIZE: usize = 61;
/// Bytes before the part that the length field counts: base offset and the field itself.
pub const LENGTH_OVERHEAD: usize = 12;
/// Where the checksummed part starts: the attributes.
pub const CRC_START: usize = 21;
/// The only format the broker stores.
pub const MAGIC: i8 = 2;

const MAGIC_AT: usize = 16;
const CODEC_BITS: i16 = 0x07;
const LOG_APPEND_TIME_BIT: i16 = 0x08;
/// The batch belongs to a transaction.
pub const TRANSACTIONAL_BIT: i16 = 0x10;
pub(super) const CONTROL_BIT: i16 = 0x20;
const DELETE_HORIZON_BIT: i16 = 0x40;

/// How the records of a batch are compressed: attribute bits 0 to 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Records as they are.
    None,
    /// One or more gzip members.
    Gzip,
    /// Snappy, in Java's framing or as one raw block.
    Snappy,
    /// One LZ4 frame.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Compression {
    /// The codec of that number; 5 to 7 are nobody's.
    pub fn from_id(id: i16) -> Option<Compression> {
        Some(match id {
            0 => Compression::None,
            1 => Compression::Gzip,
            2 => Compression::Snappy,
            3 => Compression::Lz4,
            4 => Compression::Zstd,
            _ => return None,
        })
    }

    /// Its number in the attributes.
    pub fn id(self) -> i16 {
        self as i16
    }

    /// The name in configs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Whose clock the timestamps of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's, one per record.
    CreateTime,
    /// The broker's: every record has the batch's max timestamp.
    LogAppendTime,
}

/// Bytes that are not a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the batch does.
    #[error("a batch of {need} bytes is cut off after {have}")]
    Short {
        /// Bytes of the header or batch.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// Format 0 or 1, or no batch at all.
    #[error("the batch is of format {0}; only format 2 is stored")]
    Magic(i8),
    /// The length field is less than a header needs.
    #[error("the batch says it is {0} bytes long, which is less than its header")]
    Length(i32),
    /// The checksum does not fit the bytes.
    #[error("the batch at offset {base_offset} has checksum {computed:#010x}, its header says {stored:#010x}")]
    Crc {
        /// As the header says.
        base_offset: i64,
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
}

/// The header of one batch, by value. The magic byte is always 2 and therefore no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record (also after compaction removed it). 0 in a batch from a client.
    pub base_offset: Offset,
    /// Bytes after the length field. At least 49 in a parsed header.
    pub length: i32,
    /// Epoch of the leader that appended it. -1 from a client.
    pub leader_epoch: Epoch,
    /// CRC-32C from the attributes to the end.
    pub crc: u32,
    /// Codec, timestamp type and flags; unknown bits are kept.
    pub attributes: i16,
    /// Offset of the last record minus base offset.
    pub last_offset_delta: i32,
    /// What the records' timestamps are relative to; the delete horizon if that flag is set.
    pub base_timestamp: Millis,
    /// Largest timestamp, or the append time; -1 if the records have none.
    pub max_timestamp: Millis,
    /// -1: not an idempotent producer.
    pub producer_id: i64,
    /// -1 without producer id.
    pub producer_epoch: i16,
    /// Sequence number of the first record, -1 without producer id.
    pub base_sequence: i32,
    /// Number of records.
    pub count: i32,
}

fn array<const N: usize>(bytes: &[u8; HEADER_SIZE], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`. The records need not be there; see [`BatchHeader::whole`].
    ///
    /// Errors: [`BatchError::Magic`] as soon as the magic byte is there and not 2, [`BatchError::Short`] below 61 bytes,
    /// [`BatchError::Length`] if the length field leaves no room for the header.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        match bytes.get(MAGIC_AT) {
            None => return Err(BatchError::Short { need: HEADER_SIZE, have: bytes.len() }),
            Some(2) => {}
            Some(other) => return Err(BatchError::Magic(*other as i8)),
        }
        let Some(b) = bytes.first_chunk::<HEADER_SIZE>() else {
            return Err(BatchError::Short { need: HEADER_SIZE, have: bytes.len() });
        };
        let length = i32::from_be_bytes(array(b, 8));
        if length < (HEADER_SIZE - LENGTH_OVERHEAD) as i32 {
            return Err(BatchError::Length(length));
        }
        Ok(BatchHeader {
            base_offset: Offset(i64::from_be_bytes(array(b, 0))),
            length,
            leader_epoch: Epoch(i32::from_be_bytes(array(b, 12))),
            crc: u32::from_be_bytes(array(b, 17)),
            attributes: i16::from_be_bytes(array(b, 21)),
            last_offset_delta: i32::from_be_bytes(array(b, 23)),
            base_timestamp: Millis(i64::from_be_bytes(array(b, 27))),
            max_timestamp: Millis(i64::from_be_bytes(array(b, 35))),
            producer_id: i64::from_be_bytes(array(b, 43)),
            producer_epoch: i16::from_be_bytes(array(b, 51)),
            base_sequence: i32::from_be_bytes(array(b, 53)),
            count: i32::from_be_bytes(array(b, 57)),
        })
    }

    /// The 61 bytes, the checksum as the field says.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
        let mut b = [0; HEADER_SIZE];
        b[0..8].copy_from_slice(&self.base_offset.0.to_be_bytes());
        b[8..12].copy_from_slice(&self.length.to_be_bytes());
        b[12..16].copy_from_slice(&self.leader_epoch.0.to_be_bytes());
        b[16] = MAGIC as u8;
        b[17..21].copy_from_slice(&self.crc.to_be_bytes());
        b[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        b[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        b[27..35].copy_from_slice(&self.base_timestamp.0.to_be_bytes());
        b[35..43].copy_from_slice(&self.max_timestamp.0.to_be_bytes());
        b[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        b[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        b[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        b[57..61].copy_from_slice(&self.count.to_be_bytes());
        b
    }

    /// The whole batch at the start of `bytes`, or [`BatchError::Short`].
    #[inline]
    pub fn whole<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], BatchError> {
        bytes.get(..self.size()).ok_or(BatchError::Short { need: self.size(), have: bytes.len() })
    }

    /// Bytes of the whole batch, header included.
    pub fn size(&self) -> usize {
        self.length as usize + LENGTH_OVERHEAD
    }

    /// Offset of the last record (also after compaction removed it).
    pub fn last_offset(&self) -> Offset {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The offset after this batch.
    pub fn next_offset(&self) -> Offset {
        self.last_offset() + 1
    }

    /// Sequence number of the last record, wrapping after 2^31-1 to 0; -1 without sequence.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { self.base_sequence.wrapping_add(self.last_offset_delta) & i32::MAX }
    }

    /// The codec; None for a number that no codec has.
    pub fn compression(&self) -> Option<Compression> {
        Compression::from_id(self.attributes & CODEC_BITS)
    }

    /// Whose clock the timestamps are.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME_BIT == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Whether its records are control records, which applications never see.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// When tombstones and transaction markers of this batch may go, if compaction has decided that.
    pub fn delete_horizon(&self) -> Option<Millis> {
        (self.attributes & DELETE_HORIZON_BIT != 0).then_some(self.base_timestamp)
    }

    /// Sets or takes away the delete horizon. The records' timestamps are relative to it, so with a new one the caller writes them anew.
    pub fn set_delete_horizon(&mut self, horizon: Option<Millis>) {
        match horizon {
            Some(horizon) => {
                self.attributes |= DELETE_HORIZON_BIT;
                self.base_timestamp = horizon;
            }
            None => self.attributes &= !DELETE_HORIZON_BIT,
        }
    }

    /// Whether it comes from an idempotent producer.
    pub fn has_producer(&self) -> bool {
        self.producer_id >= 0
    }

    /// Sets the codec bits.
    pub fn set_compression(&mut self, codec: Compression) {
        self.attributes = self.attributes & !CODEC_BITS | codec.id();
    }

    /// Sets the timestamp type bit.
    pub fn set_timestamp_type(&mut self, kind: TimestampType) {
        match kind {
            TimestampType::CreateTime => self.attributes &= !LOG_APPEND_TIME_BIT,
            TimestampType::LogAppendTime => self.attributes |= LOG_APPEND_TIME_BIT,
        }
    }

    /// The checksum of this header's fields and `records`, the bytes after it.
    pub fn crc_with(&self, records: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.encode()[CRC_START..]), records)
    }

    /// Compares the stored checksum with the bytes of `batch`, the whole batch as [`BatchHeader::whole`] gives it.
    pub fn check_crc(&self, batch: &[u8]) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(batch.get(CRC_START..).unwrap_or_default());
        if computed == self.crc { Ok(()) } else { Err(BatchError::Crc { base_offset: self.base_offset.0, stored: self.crc, computed }) }
    }
}

/// One batch in a range of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Where it starts in the range.
    pub position: usize,
    /// Its header.
    pub header: BatchHeader,
    /// All of it, header included. The checksum is not checked.
    pub bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The bytes after the header, compressed as the header says.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_SIZE..]
    }
}

/// The whole batches of a range of bytes, in order. A batch that is cut off at the end of the range ends the iteration quietly (as a
/// fetched range may end), see [`Batches::position`]; anything else that is no batch is an error, after which nothing follows.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl<'a> Batches<'a> {
    /// Over `bytes`, from its start.
    pub fn new(bytes: &'a [u8]) -> Batches<'a> {
        Batches { bytes, position: 0, failed: false }
    }

    /// Where the next batch starts; after the end, how many bytes whole batches took.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let rest = &self.bytes[self.position..];
        let found = BatchHeader::parse(rest).and_then(|header| Ok((header, header.whole(rest)?)));
        match found {
            Ok((header, bytes)) => {
                let position = self.position;
                self.position += bytes.len();
                Some(Ok(Batch { position, header, bytes }))
            }
            Err(BatchError::Short { .. }) => None,
            Err(e) => {
                self.failed = true;
                Some(Err(e))
            }
        }
    }
}

#[cfg(test)]
mod tests;
