//! A Metadata answer whose partitions are written straight into bytes: a topic may have ten thousand, and every client asks. All else is
//! the message library's; its rows, once decoded, are what is written here (a test compares).

use crate::api::Response;
use crate::api::dispatch::Respond;
use crate::core::types::{BrokerId, Epoch};
use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::MetadataResponse;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::protocol::Encodable;

/// The version from which arrays are compact and structs have tags.
const FLEXIBLE: i16 = 9;

/// An answer.
pub struct Answer {
    /// Everything but the topics, which it must not have.
    pub head: MetadataResponse,
    /// Topics without partitions, and theirs.
    pub topics: Vec<(MetadataResponseTopic, Rows)>,
}

/// The partitions of a topic in the layout of one version.
pub struct Rows {
    version: i16,
    count: usize,
    bytes: BytesMut,
}

/// One partition.
pub struct Row<'a, I> {
    /// Error number.
    pub error: i16,
    /// Index in the topic.
    pub index: i32,
    /// Leader, or none.
    pub leader: BrokerId,
    /// Its epoch.
    pub leader_epoch: Epoch,
    /// Replicas.
    pub replicas: &'a [BrokerId],
    /// In-sync replicas.
    pub isr: &'a [BrokerId],
    /// Replicas that cannot serve.
    pub offline: I,
}

impl Rows {
    /// None yet; room for `partitions` of few replicas.
    pub fn new(version: i16, partitions: usize) -> Rows {
        Rows { version, count: 0, bytes: BytesMut::with_capacity(partitions * 48) }
    }

    /// Adds one.
    pub fn push<I: Iterator<Item = BrokerId> + Clone>(&mut self, row: Row<'_, I>) {
        self.count += 1;
        let (bytes, version) = (&mut self.bytes, self.version);
        bytes.put_i16(row.error);
        bytes.put_i32(row.index);
        bytes.put_i32(row.leader.0);
        if version >= 7 {
            bytes.put_i32(row.leader_epoch.0);
        }
        put_ids(bytes, version, row.replicas.iter().copied());
        put_ids(bytes, version, row.isr.iter().copied());
        if version >= 5 {
            put_ids(bytes, version, row.offline);
        }
        if version >= FLEXIBLE {
            bytes.put_u8(0);
        }
    }
}

impl Respond for Answer {
    fn respond(&self, version: i16, into: &mut Response) -> Result<(), String> {
        let bytes = &mut into.bytes;
        bytes.reserve(self.topics.iter().map(|(_, rows)| rows.bytes.len() + 64).sum());
        self.head.encode(bytes, version).map_err(|e| e.to_string())?;
        // After the topics: the cluster's operations, the error, the tags.
        let tail = cut(bytes, version, usize::from((8..=10).contains(&version)) * 4 + usize::from(version >= 13) * 2);
        put_len(bytes, version, self.topics.len());
        for (topic, rows) in &self.topics {
            topic.encode(bytes, version).map_err(|e| e.to_string())?;
            // After the partitions: the topic's operations, the tags.
            let tail = cut(bytes, version, usize::from(version >= 8) * 4);
            put_len(bytes, version, rows.count);
            bytes.put_slice(&rows.bytes);
            bytes.put_slice(&tail);
        }
        bytes.put_slice(&tail);
        Ok(())
    }
}

/// Takes off the end what comes after an array that is empty, and the empty array. `fields`: bytes of the fields after it.
fn cut(bytes: &mut BytesMut, version: i16, fields: usize) -> BytesMut {
    let (array, tags) = if version >= FLEXIBLE { (1, 1) } else { (4, 0) };
    let tail = bytes.split_off(bytes.len() - fields - tags);
    bytes.truncate(bytes.len() - array);
    tail
}

fn put_ids(bytes: &mut BytesMut, version: i16, ids: impl Iterator<Item = BrokerId> + Clone) {
    put_len(bytes, version, ids.clone().count());
    ids.for_each(|id| bytes.put_i32(id.0));
}

fn put_len(bytes: &mut BytesMut, version: i16, len: usize) {
    if version < FLEXIBLE {
        return bytes.put_i32(len as i32);
    }
    let mut left = len as u32 + 1;
    while left >= 0x80 {
        bytes.put_u8(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.put_u8(left as u8);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use kafka_protocol::messages::metadata_response::MetadataResponsePartition;
    use kafka_protocol::messages::{self, metadata_response::MetadataResponseBroker};
    use kafka_protocol::protocol::Decodable;
    use proptest::prelude::*;

    /// What a client reads of an answer; that it writes the same bytes again is checked.
    pub fn read(answer: &Answer, version: i16) -> MetadataResponse {
        let mut written = Response { bytes: BytesMut::new(), splices: Vec::new() };
        answer.respond(version, &mut written).unwrap();
        let bytes = written.bytes.freeze();
        let read = MetadataResponse::decode(&mut bytes.clone(), version).unwrap();
        let mut again = BytesMut::new();
        read.encode(&mut again, version).unwrap();
        assert_eq!(again, bytes, "v{version}");
        read
    }

    fn ids() -> impl Strategy<Value = Vec<i32>> {
        proptest::collection::vec(0..5, 0..4)
    }

    proptest! {
        #[test]
        fn the_message_library_reads_what_was_meant(
            version in 5i16..=13,
            rows in proptest::collection::vec((0i16..9, any::<i32>(), -1..4i32, any::<i32>(), ids(), ids(), ids()), 0..200),
            topics in 0usize..4,
        ) {
            let brokers = |ids: &[i32]| ids.iter().map(|id| BrokerId(*id)).collect::<Vec<_>>();
            let theirs = |ids: &[i32]| ids.iter().map(|id| messages::BrokerId(*id)).collect::<Vec<_>>();
            let one = || {
                let mut bytes = Rows::new(version, rows.len());
                for (error, index, leader, epoch, replicas, isr, offline) in &rows {
                    bytes.push(Row {
                        error: *error,
                        index: *index,
                        leader: BrokerId(*leader),
                        leader_epoch: Epoch(*epoch),
                        replicas: &brokers(replicas),
                        isr: &brokers(isr),
                        offline: brokers(offline).into_iter(),
                    });
                }
                (MetadataResponseTopic::default().with_is_internal(true), bytes)
            };
            let head = MetadataResponse::default().with_brokers(vec![MetadataResponseBroker::default()]).with_controller_id(messages::BrokerId(4));
            let answer = Answer { head, topics: (0..topics).map(|_| one()).collect() };
            let read = read(&answer, version);
            prop_assert_eq!((read.topics.len(), read.controller_id.0, read.brokers.len()), (topics, 4, 1));
            let expected: Vec<_> = rows
                .iter()
                .map(|(error, index, leader, epoch, replicas, isr, offline)| {
                    MetadataResponsePartition::default()
                        .with_error_code(*error)
                        .with_partition_index(*index)
                        .with_leader_id(messages::BrokerId(*leader))
                        .with_leader_epoch(if version >= 7 { *epoch } else { -1 })
                        .with_replica_nodes(theirs(replicas))
                        .with_isr_nodes(theirs(isr))
                        .with_offline_replicas(theirs(offline))
                })
                .collect();
            for topic in &read.topics {
                prop_assert_eq!(&topic.partitions, &expected);
            }
        }
    }
}
