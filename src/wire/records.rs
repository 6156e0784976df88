//! The bytes of the records in the metadata log. What they mean is `core::controller`'s business.
//!
//! A record's value is a frame version (always 1), the record's type and its version, all variable-length, and then the body with compact
//! lengths and tagged fields. Tagged fields that no schema knows are skipped. [`control`] has the quorum's own records, [`quorum_state`]
//! its file, [`group`] the records of another log: `__consumer_offsets`.

mod codec;
pub mod control;
pub mod group;
mod metadata;
pub mod quorum_state;

use thiserror::Error;

use crate::core::controller::records::Record;

/// The frame version that Kafka writes since 3.0, and the only one that can be read.
const FRAME_VERSION: u32 = 1;

/// Why bytes are no record, or a record cannot become bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadRecord {
    /// The bytes end within a value.
    #[error("the record ends within a value")]
    CutShort,
    /// A frame version that nobody writes.
    #[error("metadata records of frame version {0} cannot be read; Kafka writes version 1 since 3.0")]
    FrameVersion(u32),
    /// A type that this broker does not know.
    #[error("unknown record type {0}: the log was written for features that this broker does not have")]
    UnknownType(u32),
    /// A version of a known record that this broker does not know.
    #[error("unknown version {version} of {record}: the log was written by a newer broker")]
    UnknownVersion {
        /// Kafka's name of the record.
        record: &'static str,
        /// As read, or as asked for.
        version: u32,
    },
    /// A value outside what its field may hold.
    #[error("{field} cannot be {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// A count or length that the rest of the record cannot hold, or a number of more than 32 bits.
    #[error("a length or count that does not fit in the record")]
    Length,
    /// Bytes left over.
    #[error("{0} bytes after the end of the record")]
    Trailing(usize),
    /// A value that only later versions of the record can carry.
    #[error("{field} cannot be written in version {version} of the record")]
    FieldNeedsNewer {
        /// The field.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A text of more than 32,767 bytes.
    #[error("a text of {0} bytes is too long for a record")]
    TextTooLong(usize),
}

/// The record in that value, and the version it was written in.
pub fn decode(value: &[u8]) -> Result<(Record, i16), BadRecord> {
    let mut reader = codec::Reader::new(value);
    let frame = reader.uvarint()?;
    if frame != FRAME_VERSION {
        return Err(BadRecord::FrameVersion(frame));
    }
    let (kind, version) = (reader.uvarint()?, reader.uvarint()?);
    let record = metadata::decode(&mut reader, kind, version)?;
    reader.end()?;
    Ok((record, version as i16))
}

/// Appends the value of that record in that version to `out`; an error leaves `out` with a part of it.
pub fn encode(record: &Record, version: i16, out: &mut Vec<u8>) -> Result<(), BadRecord> {
    let (kind, name, last) = metadata::describe(record);
    if !(0..=last).contains(&version) {
        return Err(BadRecord::UnknownVersion { record: name, version: version as u16 as u32 });
    }
    let mut writer = codec::Writer::new(out);
    writer.uvarint(FRAME_VERSION);
    writer.uvarint(kind);
    writer.uvarint(version as u32);
    metadata::encode(&mut writer, record, version)
}

/// The version in which Kafka 4.3 writes that record at that level of `metadata.version` (7 is 3.3-IV3, 30 is 4.3-IV0).
pub fn version_at(record: &Record, level: i16) -> i16 {
    /// Adds log directories (KIP-858).
    const DIRECTORIES: i16 = 17;
    /// Adds eligible leader replicas (KIP-966).
    const ELR: i16 = 23;
    /// Adds cordoned log directories (KIP-1066).
    const CORDONED: i16 = 30;
    match record {
        Record::RegisterBroker(_) if level >= CORDONED => 4,
        Record::RegisterBroker(_) if level >= DIRECTORIES => 3,
        Record::RegisterBroker(_) if level >= 8 => 2,
        Record::RegisterBroker(_) => 1,
        Record::Partition(_) | Record::PartitionChange(_) if level >= ELR => 2,
        Record::Partition(_) | Record::PartitionChange(_) if level >= DIRECTORIES => 1,
        // The lowest version that can carry what it says, at any level.
        Record::BrokerRegistrationChange(change) if change.cordoned_log_dirs.is_some() => 3,
        Record::BrokerRegistrationChange(change) if !change.log_dirs.is_empty() => 2,
        Record::BrokerRegistrationChange(change) if change.in_controlled_shutdown => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
