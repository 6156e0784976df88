//! Every version of the answer, against the message crate's encoder.

use super::*;
use crate::api::fetch::SPEC;
use crate::api::testkit;
use crate::core::types::Id;
use crate::log::{Fs, Storage};
use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData};
use kafka_protocol::messages::{self, FetchResponse};
use kafka_protocol::protocol::{Encodable, StrBytes};

/// A log file with recognisable bytes.
fn file() -> (tempfile::TempDir, Arc<FsFile>, Bytes) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("00000000000000000000.log");
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&path, &bytes).expect("the file can be written");
    let file = Fs.open(&path).expect("it is there");
    (dir, Arc::new(file), bytes.into())
}

/// What goes over the wire: splices replaced by what is in the file.
fn on_the_wire(response: &Response) -> Vec<u8> {
    let (mut out, mut sent) = (Vec::new(), 0);
    for splice in &response.splices {
        out.extend_from_slice(&response.bytes[sent..splice.at]);
        sent = splice.at;
        let at = out.len();
        out.resize(at + splice.len as usize, 0);
        read_exact_at(&*splice.file, splice.position, &mut out[at..]).expect("the file is long enough");
    }
    out.extend_from_slice(&response.bytes[sent..]);
    out
}

/// The same answer as the message crate has it.
fn by_the_crate(reply: &FetchReply, version: i16, file: &Bytes) -> Vec<u8> {
    let mut answer = FetchResponse::default();
    if version >= 7 {
        answer = answer.with_error_code(reply.error as i16).with_session_id(reply.session);
    }
    if version >= 16 {
        answer.node_endpoints = reply.endpoints.iter().map(endpoint).collect();
    }
    for rows in reply.rows.chunk_by(|a, b| a.topic == b.topic) {
        let topic = FetchableTopicResponse::default().with_partitions(rows.iter().map(|row| data(row, version, file)).collect());
        answer.responses.push(match &rows[0].topic {
            TopicRef::Name(name) => topic.with_topic(terms::topic_name(name)),
            TopicRef::Id(id) => topic.with_topic_id(terms::uuid(*id)),
        });
    }
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes, version).expect("the crate can write it");
    bytes.to_vec()
}

fn endpoint(endpoint: &Endpoint) -> NodeEndpoint {
    NodeEndpoint::default()
        .with_node_id(messages::BrokerId(endpoint.node.0))
        .with_host(StrBytes::from_string(endpoint.host.clone()))
        .with_port(i32::from(endpoint.port))
        .with_rack(endpoint.rack.as_deref().map(terms::text))
}

fn data(row: &Row, version: i16, file: &Bytes) -> PartitionData {
    let records = row.records.as_ref().map_or(Bytes::new(), |r| file.slice(r.position as usize..r.position as usize + r.len as usize));
    let mut data = PartitionData::default()
        .with_partition_index(row.partition)
        .with_error_code(storage_error_for(version, row.error) as i16)
        .with_high_watermark(row.high_watermark.0)
        .with_last_stable_offset(row.last_stable.0)
        .with_aborted_transactions(row.lists_aborted.then(Vec::new))
        .with_records(Some(records));
    if version >= 5 {
        data = data.with_log_start_offset(row.log_start.0);
    }
    if version >= FLEXIBLE {
        if let Some((epoch, end)) = row.diverging {
            data = data.with_diverging_epoch(EpochEndOffset::default().with_epoch(epoch.0).with_end_offset(end.0));
        }
        if let Some(leader) = row.leader {
            let leader = LeaderIdAndEpoch::default().with_leader_id(messages::BrokerId(leader.leader.0)).with_leader_epoch(leader.epoch.0);
            data = data.with_current_leader(leader);
        }
    }
    data
}

fn rows(by_id: bool, file: &Arc<FsFile>) -> Vec<Row> {
    let topic = |name: &str| if by_id { TopicRef::Id(Id(name.len() as u128 + 7)) } else { TopicRef::Name(Arc::from(name)) };
    let good = |name, partition, len| Row {
        high_watermark: Offset(1 << 40),
        last_stable: Offset(9),
        log_start: Offset(3),
        records: (len > 0).then(|| Records { file: file.clone(), position: 77, len }),
        ..Row::failed(topic(name), partition, ErrorCode::None)
    };
    let leadership = |id, epoch| Some(Leadership { leader: BrokerId(id), epoch: Epoch(epoch) });
    vec![
        good("a", 0, 0),
        good("a", 1, 120),
        good("a", 2, SPLICE_MIN),
        good("other", 0, SPLICE_MIN - 1),
        Row { lists_aborted: true, ..good("other", 1, 50_000) },
        Row { lists_aborted: true, ..Row::failed(topic("nowhere"), 5, ErrorCode::UnknownTopicOrPartition) },
        Row::failed(topic("a"), 3, ErrorCode::KafkaStorageError),
        Row { leader: leadership(2, 17), ..Row::failed(topic("a"), 4, ErrorCode::NotLeaderOrFollower) },
        Row { leader: leadership(-1, -1), ..Row::failed(topic("a"), 5, ErrorCode::FencedLeaderEpoch) },
        Row { diverging: Some((Epoch(3), Offset(12))), ..good("a", 6, 0) },
        Row { diverging: Some((Epoch(3), Offset(12))), leader: leadership(2, 18), ..good("a", 7, 200) },
    ]
}

#[test]
fn every_version_is_what_the_crate_writes() {
    let (_dir, log, contents) = file();
    for version in SPEC.min..=SPEC.max {
        for with_rows in [true, false] {
            let reply = FetchReply {
                quorum: None,
                call: Rc::new(testkit::call(SPEC, version)),
                error: if with_rows { ErrorCode::None } else { ErrorCode::FetchSessionIdNotFound },
                session: 1234,
                rows: if with_rows { rows(version >= TOPIC_IDS, &log) } else { Vec::new() },
                endpoints: vec![
                    Endpoint { node: BrokerId(2), host: "h".repeat(200), port: 65535, rack: None },
                    Endpoint { node: BrokerId(3), host: "i".into(), port: 1, rack: Some(Arc::from("r")) },
                ],
            };
            let mut response = Response::default();
            reply.respond(version, &mut response).expect("it can be written");
            assert_eq!(on_the_wire(&response), by_the_crate(&reply, version, &contents), "v{version}, rows: {with_rows}");
            assert_eq!(response.splices.len(), if with_rows { 2 } else { 0 }, "only large pieces are spliced");
        }
    }
}

#[test]
fn records_that_cannot_be_read_become_an_error() {
    let (_dir, log, contents) = file();
    let topic = TopicRef::Name(Arc::from("t"));
    let lost = Records { file: log, position: contents.len() as u64 - 10, len: 20 };
    let row = Row { high_watermark: Offset(5), records: Some(lost), ..Row::failed(topic.clone(), 0, ErrorCode::None) };
    let reply = |row| FetchReply {
        call: Rc::new(testkit::call(SPEC, 11)),
        error: ErrorCode::None,
        session: 0,
        rows: vec![row],
        endpoints: Vec::new(),
        quorum: None,
    };
    let mut response = Response::default();
    reply(row).respond(11, &mut response).expect("the answer itself can be written");
    let failed = reply(Row::failed(topic, 0, ErrorCode::KafkaStorageError));
    assert_eq!(on_the_wire(&response), by_the_crate(&failed, 11, &contents));
}
