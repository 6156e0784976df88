//! Record batches, format 2: a builder with a knob for each field a test turns, and a reader for uncompressed ones. Compressed batches are
//! librdkafka's business.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 61;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;

/// A record of a test: no headers, since none of the raw tests needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Absent, or any bytes.
    pub key: Option<Bytes>,
    /// Absent, or any bytes.
    pub value: Option<Bytes>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl Record {
    /// A value without key at a fixed time, so that golden bytes stay.
    pub fn value(value: &str) -> Record {
        Record { key: None, value: Some(Bytes::copy_from_slice(value.as_bytes())), timestamp: 1_700_000_000_000 }
    }
}

/// What is written into the header of a batch.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The records, in order.
    pub records: Vec<Record>,
    /// Base offset: what a producer sends is 0, and replaced by the broker.
    pub base_offset: i64,
    /// -1 without idempotence.
    pub producer_id: i64,
    /// -1 without idempotence.
    pub producer_epoch: i16,
    /// -1 without idempotence.
    pub base_sequence: i32,
}

impl Batch {
    /// A batch as a producer without idempotence sends it.
    pub fn of(values: &[&str]) -> Batch {
        let records = values.iter().map(|value| Record::value(value)).collect();
        Batch { records, base_offset: 0, producer_id: -1, producer_epoch: -1, base_sequence: -1 }
    }

    /// The same from an idempotent producer.
    pub fn sequenced(mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Batch {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (producer_id, producer_epoch, base_sequence);
        self
    }

    /// Its bytes, with a right checksum.
    pub fn encode(&self) -> Bytes {
        let first = self.records.first().map_or(-1, |record| record.timestamp);
        let last = self.records.iter().map(|record| record.timestamp).max().unwrap_or(-1);
        let mut out = BytesMut::new();
        out.put_i64(self.base_offset);
        out.put_i32(0); // length, below
        out.put_i32(-1); // leader epoch: the broker's
        out.put_i8(2);
        out.put_u32(0); // checksum, below
        out.put_i16(0);
        out.put_i32(self.records.len() as i32 - 1);
        out.put_i64(first);
        out.put_i64(last);
        out.put_i64(self.producer_id);
        out.put_i16(self.producer_epoch);
        out.put_i32(self.base_sequence);
        out.put_i32(self.records.len() as i32);
        for (delta, record) in self.records.iter().enumerate() {
            put_record(&mut out, delta as i64, record.timestamp - first, record);
        }
        let length = out.len() as i32 - 12;
        out[8..12].copy_from_slice(&length.to_be_bytes());
        seal(&mut out);
        out.freeze()
    }
}

/// Writes the checksum of a batch whose bytes were changed on purpose.
pub fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
    batch[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
}

/// A batch as a fetch returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Epoch of the leader that took it.
    pub leader_epoch: i32,
    /// The records.
    pub records: Vec<Record>,
}

/// Takes uncompressed batches apart, checking their checksums. A last one that is cut short, as fetches may return it, is left out.
///
/// # Panics
/// If a batch is not what a broker may send.
pub fn read(mut bytes: Bytes) -> Vec<Read> {
    let mut out = Vec::new();
    while bytes.len() >= HEADER_BYTES {
        let length = 12 + i32::from_be_bytes(bytes[8..12].try_into().expect("four bytes")) as usize;
        if bytes.len() < length {
            break;
        }
        out.push(read_batch(bytes.split_to(length)));
    }
    out
}

fn read_batch(mut batch: Bytes) -> Read {
    let crc = u32::from_be_bytes(batch[CRC_AT..ATTRIBUTES_AT].try_into().expect("four bytes"));
    assert_eq!(crc, crc32c::crc32c(&batch[ATTRIBUTES_AT..]), "checksum");
    let base_offset = batch.get_i64();
    batch.advance(4);
    let leader_epoch = batch.get_i32();
    assert_eq!(batch.get_i8(), 2, "format");
    batch.advance(4);
    let attributes = batch.get_i16();
    assert_eq!(attributes & 7, 0, "this reader knows no codecs");
    batch.advance(4);
    let first = batch.get_i64();
    batch.advance(8 + 8 + 2 + 4);
    let count = batch.get_i32();
    let records = (0..count).map(|_| read_record(&mut batch, first)).collect();
    assert!(batch.is_empty(), "{} bytes after the last record", batch.len());
    Read { base_offset, leader_epoch, records }
}

fn read_record(from: &mut Bytes, first_timestamp: i64) -> Record {
    let length = get_varlong(from) as usize;
    let mut body = from.split_to(length);
    body.advance(1);
    let timestamp = first_timestamp + get_varlong(&mut body);
    get_varlong(&mut body);
    let mut bytes = || match get_varlong(&mut body) {
        -1 => None,
        length => Some(body.split_to(length as usize)),
    };
    Record { key: bytes(), value: bytes(), timestamp }
}

fn put_record(out: &mut BytesMut, offset_delta: i64, timestamp_delta: i64, record: &Record) {
    let mut body = BytesMut::new();
    body.put_i8(0);
    put_varlong(&mut body, timestamp_delta);
    put_varlong(&mut body, offset_delta);
    for bytes in [&record.key, &record.value] {
        put_varlong(&mut body, bytes.as_ref().map_or(-1, |bytes| bytes.len() as i64));
        body.extend_from_slice(bytes.as_deref().unwrap_or_default());
    }
    put_varlong(&mut body, 0); // headers
    put_varlong(out, body.len() as i64);
    out.extend_from_slice(&body);
}

/// Zigzag and seven bits to a byte, least significant first.
fn put_varlong(out: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest > 0x7f {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

fn get_varlong(from: &mut Bytes) -> i64 {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = from.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (value >> 1) as i64 ^ -((value & 1) as i64);
        }
    }
    panic!("a varint of more than ten bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut batch = Batch::of(&["a", "", &"long".repeat(100)]);
        batch.records[1] = Record { key: Some(Bytes::from_static(b"k")), value: None, timestamp: 1_600_000_000_000 };
        batch.base_offset = 70;
        let mut bytes = BytesMut::from(&batch.encode()[..]);
        bytes.extend_from_slice(&Batch::of(&["second"]).encode());
        let read = read(bytes.freeze());
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].base_offset, &read[0].records), (70, &batch.records));
        assert_eq!(read[1].records, [Record::value("second")]);
    }

    #[test]
    fn the_crate_reads_it_too() {
        let bytes = Batch::of(&["a", "b"]).sequenced(7, 1, 3).encode();
        let set = kafka_protocol::records::RecordBatchDecoder::decode(&mut bytes.clone()).unwrap();
        let seen: Vec<_> = set.records.iter().map(|record| (record.offset, record.sequence, record.producer_id)).collect();
        assert_eq!(seen, [(0, 3, 7), (1, 4, 7)]);
    }
}
