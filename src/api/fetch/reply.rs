//! The bytes of a Fetch answer, written by hand: record data of some size is not copied but left for the socket to take from its file.
//!
//! Layout by version: FetchResponse of Kafka 4.3, v4-18. The test compares every version with the message crate's encoder.

use crate::actors::partition::messages::Leadership;
use crate::api::dispatch::Respond;
use crate::api::response::{Response, Splice};
use crate::api::{Call, terms};
use crate::core::fetch_session::TopicRef;
use crate::core::types::{BrokerId, Epoch, Offset};
use crate::log::FsFile;
use crate::log::storage::read_exact_at;
use crate::wire::error::ErrorCode;
use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::FetchResponse;
use kafka_protocol::protocol::Encodable;
use std::rc::Rc;
use std::sync::Arc;

/// Record data from this size on is spliced in by sendfile; below it a copy is cheaper than the calls.
const SPLICE_MIN: u32 = 16 * 1024;
/// Versions from which lengths are compact and tags follow.
const FLEXIBLE: i16 = 12;
/// Versions from which topics are named by id.
pub const TOPIC_IDS: i16 = 13;

/// A whole answer.
pub struct FetchReply {
    /// Where errors are counted.
    pub call: Rc<Call>,
    /// Error of the session.
    pub error: ErrorCode,
    /// Id of the session, 0 for none.
    pub session: i32,
    /// In the order of the answer; rows of one topic that follow each other are written under one heading.
    pub rows: Vec<Row>,
    /// Where the leaders that rows name can be reached (v16).
    pub endpoints: Vec<Endpoint>,
    /// What the metadata quorum answers; then nothing of the above counts.
    pub quorum: Option<Box<FetchResponse>>,
}

impl FetchReply {
    /// An answer of the metadata quorum.
    pub fn of_quorum(call: &Rc<Call>, answer: FetchResponse) -> FetchReply {
        let (rows, endpoints) = (Vec::new(), Vec::new());
        FetchReply { call: call.clone(), error: ErrorCode::None, session: 0, rows, endpoints, quorum: Some(Box::new(answer)) }
    }
}

/// One partition's answer.
pub struct Row {
    /// The topic as the request names it.
    pub topic: TopicRef,
    /// Index of the partition.
    pub partition: i32,
    /// What went wrong.
    pub error: ErrorCode,
    /// High watermark.
    pub high_watermark: Offset,
    /// Last stable offset.
    pub last_stable: Offset,
    /// Log start.
    pub log_start: Offset,
    /// Where the reader's log differs.
    pub diverging: Option<(Epoch, Offset)>,
    /// Who leads instead (v16).
    pub leader: Option<Leadership>,
    /// The list of aborted transactions is there and empty; otherwise null.
    pub lists_aborted: bool,
    /// The records.
    pub records: Option<Records>,
}

/// A piece of a log file.
#[derive(Clone)]
pub struct Records {
    /// The file.
    pub file: Arc<FsFile>,
    /// Where in the file.
    pub position: u64,
    /// How many bytes; not 0.
    pub len: u32,
}

/// A node and how the asking client reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The node.
    pub node: BrokerId,
    /// Its host for this listener.
    pub host: String,
    /// And its port.
    pub port: u16,
    /// Its rack.
    pub rack: Option<Arc<str>>,
}

impl Row {
    /// A row with an error and without positions.
    pub fn failed(topic: TopicRef, partition: i32, error: ErrorCode) -> Row {
        Row {
            topic,
            partition,
            error,
            high_watermark: Offset::NONE,
            last_stable: Offset::NONE,
            log_start: Offset::NONE,
            diverging: None,
            leader: None,
            lists_aborted: false,
            records: None,
        }
    }

    /// Bytes of records.
    pub fn bytes(&self) -> u32 {
        self.records.as_ref().map_or(0, |records| records.len)
    }
}

impl Respond for FetchReply {
    fn respond(&self, version: i16, into: &mut Response) -> Result<(), String> {
        if let Some(answer) = &self.quorum {
            return answer.encode(&mut into.bytes, version).map_err(|e| e.to_string());
        }
        let copied: usize = self.rows.iter().map(|row| row.bytes()).filter(|bytes| *bytes < SPLICE_MIN).map(|bytes| bytes as usize).sum();
        into.bytes.reserve(64 + self.rows.len() * 64 + copied);
        Writer { version, flexible: version >= FLEXIBLE, into }.reply(self)
    }
}

struct Writer<'a> {
    version: i16,
    flexible: bool,
    into: &'a mut Response,
}

impl Writer<'_> {
    fn reply(mut self, reply: &FetchReply) -> Result<(), String> {
        self.bytes().put_i32(0);
        if self.version >= 7 {
            let error = reply.call.error(reply.error);
            self.bytes().put_i16(error);
            self.bytes().put_i32(reply.session);
        }
        let topics = || reply.rows.chunk_by(|a, b| a.topic == b.topic);
        self.count(topics().count());
        for rows in topics() {
            self.topic(&rows[0].topic)?;
            self.count(rows.len());
            for row in rows {
                self.row(&reply.call, row);
            }
            self.tags(0);
        }
        if self.version >= 16 && !reply.endpoints.is_empty() {
            self.tags(1);
            self.endpoints(&reply.endpoints)?;
        } else {
            self.tags(0);
        }
        Ok(())
    }

    fn bytes(&mut self) -> &mut BytesMut {
        &mut self.into.bytes
    }

    fn topic(&mut self, topic: &TopicRef) -> Result<(), String> {
        match topic {
            TopicRef::Id(id) if self.version >= TOPIC_IDS => self.bytes().put_u128(id.0),
            TopicRef::Name(name) if self.version < TOPIC_IDS => self.string(name)?,
            _ => return Err(format!("a topic is named the other way in v{}", self.version)),
        }
        Ok(())
    }

    /// Writes a row. Records that cannot be read any more make it an error.
    fn row(&mut self, call: &Call, row: &Row) {
        let start = self.into.bytes.len();
        if let Err(e) = self.whole_row(call, row) {
            tracing::warn!(partition = row.partition, "records could not be read for an answer: {e}");
            self.bytes().truncate(start);
            let failed = Row::failed(row.topic.clone(), row.partition, ErrorCode::KafkaStorageError);
            self.whole_row(call, &failed).expect("a row without records reads nothing");
        }
    }

    fn whole_row(&mut self, call: &Call, row: &Row) -> std::io::Result<()> {
        let version = self.version;
        let bytes = self.bytes();
        bytes.put_i32(row.partition);
        let error_at = bytes.len();
        bytes.put_i16(0);
        bytes.put_i64(row.high_watermark.0);
        bytes.put_i64(row.last_stable.0);
        if version >= 5 {
            bytes.put_i64(row.log_start.0);
        }
        match (row.lists_aborted, self.flexible) {
            (true, _) => self.count(0),
            (false, true) => self.bytes().put_u8(0),
            (false, false) => self.bytes().put_i32(-1),
        }
        if version >= 11 {
            self.bytes().put_i32(-1);
        }
        self.records(row.records.as_ref())?;
        let error = call.error(storage_error_for(version, row.error));
        self.bytes()[error_at..error_at + 2].copy_from_slice(&error.to_be_bytes());
        if self.flexible {
            let leader = row.leader.filter(|leader| (leader.leader, leader.epoch) != (BrokerId::NONE, Epoch::NONE));
            self.tags(u8::from(row.diverging.is_some()) + u8::from(leader.is_some()));
            let bytes = self.bytes();
            if let Some((epoch, end)) = row.diverging {
                bytes.put_slice(&[0, 13]);
                bytes.put_i32(epoch.0);
                bytes.put_i64(end.0);
                bytes.put_u8(0);
            }
            if let Some(leader) = leader {
                bytes.put_slice(&[1, 9]);
                bytes.put_i32(leader.leader.0);
                bytes.put_i32(leader.epoch.0);
                bytes.put_u8(0);
            }
        }
        Ok(())
    }

    fn records(&mut self, records: Option<&Records>) -> std::io::Result<()> {
        let len = records.map_or(0, |records| records.len);
        match self.flexible {
            true => terms::put_uvarint(self.bytes(), len + 1),
            false => self.bytes().put_u32(len),
        }
        let Some(records) = records else { return Ok(()) };
        let at = self.into.bytes.len();
        if len >= SPLICE_MIN {
            self.into.splices.push(Splice { at, file: records.file.clone(), position: records.position, len });
            return Ok(());
        }
        self.bytes().put_bytes(0, len as usize);
        read_exact_at(&*records.file, records.position, &mut self.into.bytes[at..])
    }

    fn endpoints(&mut self, endpoints: &[Endpoint]) -> Result<(), String> {
        let mut tag = Response::default();
        let mut writer = Writer { version: self.version, flexible: true, into: &mut tag };
        writer.count(endpoints.len());
        for endpoint in endpoints {
            writer.bytes().put_i32(endpoint.node.0);
            writer.string(&endpoint.host)?;
            writer.bytes().put_i32(i32::from(endpoint.port));
            match &endpoint.rack {
                Some(rack) => writer.string(rack)?,
                None => writer.bytes().put_u8(0),
            }
            writer.tags(0);
        }
        let bytes = self.bytes();
        bytes.put_u8(0);
        terms::put_uvarint(bytes, tag.bytes.len() as u32);
        bytes.put_slice(&tag.bytes);
        Ok(())
    }

    fn count(&mut self, count: usize) {
        match self.flexible {
            true => terms::put_uvarint(self.bytes(), count as u32 + 1),
            false => self.bytes().put_u32(count as u32),
        }
    }

    fn string(&mut self, text: &str) -> Result<(), String> {
        let len = i16::try_from(text.len()).map_err(|_| "a text is longer than the protocol allows".to_owned())?;
        match self.flexible {
            true => terms::put_uvarint(self.bytes(), len as u32 + 1),
            false => self.bytes().put_i16(len),
        }
        self.bytes().put_slice(text.as_bytes());
        Ok(())
    }

    /// How many tags follow, where the version has them.
    fn tags(&mut self, count: u8) {
        if self.flexible {
            self.bytes().put_u8(count);
        }
    }
}

#[cfg(test)]
mod tests;

/// Old clients do not know KAFKA_STORAGE_ERROR and would not try again.
fn storage_error_for(version: i16, error: ErrorCode) -> ErrorCode {
    if version <= 5 && error == ErrorCode::KafkaStorageError { ErrorCode::NotLeaderOrFollower } else { error }
}
