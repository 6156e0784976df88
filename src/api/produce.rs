//! Produce (key 0), v3-13; v0 is advertised, as old clients judge a broker by it, and refused (KAFKA-18659).
//!
//! Appends record batches to partition leaders, one batch per partition.
//! * acks=0: no answer; an error closes the connection, so that the client looks for the leader again.
//! * acks=1: answered when the batch is in the leader's log (and on disk, if `flush.messages` asks for that).
//! * acks=all: answered when the high watermark has passed the batch, or REQUEST_TIMED_OUT; the batch stays in the log then.
//!
//! v3 record batches of format 2 (KIP-98) · v5 log start offset · v6 client-side throttling · v7 zstd (KIP-110) · v8 errors per record
//! (KIP-467) · v9 flexible · v10 current leader and its endpoint on NOT_LEADER_OR_FOLLOWER (KIP-951) · v11 TRANSACTION_ABORTABLE
//! (KIP-890) · v12 implicit AddPartitionsToTxn (KIP-890) · v13 topic ids (KIP-516).
//! Not done: transactions. A transactional batch is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

use super::terms::is_internal;
use super::{Call, Cx, Outcome, Spec};
use crate::actors::partition::messages::{Append, AppendRefused, Appended};
use crate::core::controller::Image;
use crate::core::producer::ProducerRefused;
use crate::core::types::{Acks, Id, TopicPartition};
use crate::log::batch::TRANSACTIONAL_BIT;
use crate::log::validate::{BatchRefused, Origin};
use crate::rt::{Answer, Tell, port};
use crate::wire::error::ErrorCode;
use bytes::Bytes;
use futures_util::future::{Either, select};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The row.
pub const SPEC: Spec = Spec::new(0, "Produce", 3, 13).advertised_from(0).pipelined();

/// Clients with this id may write to internal topics, as Kafka's own tools do.
const ADMIN_CLIENT: &str = "__admin_client";

/// Versions from which topics are named by id.
const TOPIC_IDS: i16 = 13;

/// Where the row's answer comes from.
enum Row {
    /// Refused before it came to a partition.
    Refused(ErrorCode),
    /// The partition answers.
    Asked(Answer<Result<Appended, AppendRefused>>),
}

struct Rows {
    topic: TopicProduceResponse,
    partitions: Vec<(i32, Row)>,
}

/// Tells every partition its batch, in the order of the request.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ProduceRequest) -> Outcome<ProduceResponse> {
    let acks = match request.acks {
        0 => Some(Acks::None),
        1 => Some(Acks::Leader),
        -1 => Some(Acks::All),
        _ => None,
    };
    let transactional = request.topic_data.iter().flat_map(|topic| &topic.partition_data).any(is_transactional);
    let image = cx.image();
    let mut rows = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        let all = match acks {
            _ if transactional => Err(ErrorCode::TransactionalIdAuthorizationFailed),
            None => Err(ErrorCode::InvalidRequiredAcks),
            Some(acks) => Ok(acks),
        };
        rows.push(begin(cx, call, &image, topic, all));
    }
    let (cx, call) = (cx.clone(), call.clone());
    if acks == Some(Acks::None) {
        return Outcome::Silent(Box::pin(async move { all_fine(rows).await }));
    }
    let limit = (acks == Some(Acks::All)).then(|| Duration::from_millis(request.timeout_ms.max(0) as u64));
    Outcome::later(async move { gather(&cx, &call, rows, limit).await })
}

fn is_transactional(partition: &PartitionProduceData) -> bool {
    let attributes = partition.records.as_ref().and_then(|records| records.get(21..23));
    attributes.is_some_and(|bytes| i16::from_be_bytes([bytes[0], bytes[1]]) & TRANSACTIONAL_BIT != 0)
}

/// Stage one of one topic.
fn begin(cx: &Cx, call: &Call, image: &Image, data: TopicProduceData, acks: Result<Acks, ErrorCode>) -> Rows {
    let by_id = call.version >= TOPIC_IDS;
    let known = match by_id {
        true => image.topic(Id(data.topic_id.as_u128())),
        false => image.topic_by_name(data.name.as_str()),
    };
    let internal = known.is_some_and(|topic| is_internal(&topic.name)) && *call.client_id != *ADMIN_CLIENT;
    if let Some(topic) = known {
        cx.broker.metrics.topics.topic(&topic.name).total_produce_requests.add(data.partition_data.len() as u64);
    }
    let mut rows = Vec::with_capacity(data.partition_data.len());
    for partition in data.partition_data {
        let index = partition.index;
        let row = match (acks, known) {
            (Err(all), _) => Row::Refused(all),
            (Ok(_), None) => Row::Refused(if by_id { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition }),
            (Ok(_), Some(topic)) if topic.partition(index).is_none() => Row::Refused(ErrorCode::UnknownTopicOrPartition),
            (Ok(_), Some(_)) if internal => Row::Refused(ErrorCode::InvalidTopicException),
            (Ok(acks), Some(topic)) => {
                let at = TopicPartition { topic: topic.id, partition: index };
                append(cx, call, at, partition.records.unwrap_or_default(), acks)
            }
        };
        rows.push((index, row));
    }
    Rows { topic: TopicProduceResponse::default().with_name(data.name).with_topic_id(data.topic_id), partitions: rows }
}

fn append(cx: &Cx, call: &Call, at: TopicPartition, records: Bytes, acks: Acks) -> Row {
    let (reply, answer) = port();
    let origin = Origin { client: true, zstd_allowed: call.version >= 7 };
    let told = cx.broker.routes.with(at, |route| route.partition.tell(Append { records, acks, origin, reply }));
    match told {
        Some(()) => Row::Asked(answer),
        None => Row::Refused(ErrorCode::NotLeaderOrFollower),
    }
}

/// Whether every row of an acks=0 request was appended.
async fn all_fine(rows: Vec<Rows>) -> bool {
    let mut fine = true;
    for (_, row) in rows.into_iter().flat_map(|rows| rows.partitions) {
        fine &= match row {
            Row::Refused(_) => false,
            Row::Asked(answer) => matches!(answer.await, Ok(Ok(_))),
        };
    }
    fine
}

/// Stage two: waits for the partitions, at most until `limit` after the request's arrival.
async fn gather(cx: &Cx, call: &Call, rows: Vec<Rows>, limit: Option<Duration>) -> ProduceResponse {
    let mut response = ProduceResponse::default();
    for Rows { mut topic, partitions } in rows {
        for (index, row) in partitions {
            let outcome = match row {
                Row::Refused(code) => Err(Failed::plain(code)),
                Row::Asked(answer) => match limit {
                    None => outcome(answer.await),
                    Some(limit) => {
                        let deadline = Box::pin(tokio::time::sleep_until(call.received.deadline(limit)));
                        match select(answer, deadline).await {
                            Either::Left((answer, _)) => outcome(answer),
                            Either::Right(_) => Err(Failed::plain(ErrorCode::RequestTimedOut)),
                        }
                    }
                },
            };
            topic.partition_responses.push(answer_row(call, index, outcome));
        }
        let failed = topic.partition_responses.iter().filter(|row| row.error_code != 0).count();
        if failed > 0 {
            count_failed(cx, call, &topic, failed);
        }
        response.responses.push(topic);
    }
    if call.version >= 10 {
        name_leaders(cx, call, &mut response);
    }
    response
}

fn count_failed(cx: &Cx, call: &Call, topic: &TopicProduceResponse, failed: usize) {
    let image = cx.image();
    let known = if call.version >= TOPIC_IDS { image.topic(Id(topic.topic_id.as_u128())) } else { image.topic_by_name(topic.name.as_str()) };
    let topics = &cx.broker.metrics.topics;
    match known {
        Some(topic) => topics.topic(&topic.name).failed_produce_requests.add(failed as u64),
        None => topics.no_topic.failed_produce_requests.add(failed as u64),
    }
}

/// What a failed row says.
struct Failed {
    code: ErrorCode,
    message: Option<String>,
    records: Vec<(i32, String)>,
}

impl Failed {
    fn plain(code: ErrorCode) -> Failed {
        Failed { code, message: None, records: Vec::new() }
    }
}

fn outcome(answer: Result<Result<Appended, AppendRefused>, crate::rt::Gone>) -> Result<Appended, Failed> {
    match answer {
        Ok(Ok(appended)) => Ok(appended),
        Ok(Err(refused)) => Err(failed(refused)),
        // The partition's actor died or moved: the client finds the leader anew.
        Err(crate::rt::Gone) => Err(Failed::plain(ErrorCode::NotLeaderOrFollower)),
    }
}

fn failed(refused: AppendRefused) -> Failed {
    use ErrorCode::*;
    let plain = Failed::plain;
    match refused {
        AppendRefused::NotLeader(_) => plain(NotLeaderOrFollower),
        AppendRefused::NotEnoughReplicas => plain(ErrorCode::NotEnoughReplicas),
        AppendRefused::NotEnoughReplicasAfterAppend => plain(ErrorCode::NotEnoughReplicasAfterAppend),
        AppendRefused::LargerThanSegment => plain(RecordListTooLarge),
        AppendRefused::Storage(_) => plain(KafkaStorageError),
        AppendRefused::Gone => plain(UnknownTopicOrPartition),
        AppendRefused::Producer(ProducerRefused::StaleEpoch { .. }) => plain(InvalidProducerEpoch),
        AppendRefused::Producer(ProducerRefused::OutOfOrder { .. }) => plain(OutOfOrderSequenceNumber),
        AppendRefused::Batch(batch) => match batch {
            BatchRefused::NotOneBatch(_) | BatchRefused::WrongMagic(_) => plain(InvalidRecord),
            BatchRefused::UnsupportedCompression => plain(UnsupportedCompressionType),
            BatchRefused::Corrupt(_) => plain(CorruptMessage),
            BatchRefused::TooLarge { .. } => plain(MessageTooLarge),
            BatchRefused::Invalid { message, record_errors } => Failed { code: InvalidRecord, message: Some(message), records: record_errors },
            BatchRefused::InvalidTimestamp { message, record_errors } => {
                Failed { code: InvalidTimestamp, message: Some(message), records: record_errors }
            }
        },
    }
}

fn answer_row(call: &Call, index: i32, outcome: Result<Appended, Failed>) -> PartitionProduceResponse {
    let row = PartitionProduceResponse::default().with_index(index);
    match outcome {
        Ok(Appended { base, log_append_time, log_start }) => row
            .with_base_offset(base.0)
            .with_log_append_time_ms(log_append_time.map_or(-1, |time| time.0))
            .with_log_start_offset(log_start.0),
        Err(Failed { code, message, records }) => {
            let errors = records.into_iter().map(|(index, message)| {
                BatchIndexAndErrorMessage::default()
                    .with_batch_index(index)
                    .with_batch_index_error_message(Some(StrBytes::from_string(message)))
            });
            row.with_error_code(call.error(code))
                .with_base_offset(-1)
                .with_record_errors(errors.collect())
                .with_error_message(message.map(StrBytes::from_string))
        }
    }
}

/// Names leaders, and their endpoints, for rows that were sent to the wrong broker.
fn name_leaders(cx: &Cx, call: &Call, response: &mut ProduceResponse) {
    let not_leader = ErrorCode::NotLeaderOrFollower as i16;
    if !response.responses.iter().flat_map(|topic| &topic.partition_responses).any(|row| row.error_code == not_leader) {
        return;
    }
    let image: Arc<Image> = cx.broker.image.load_full();
    for topic in &mut response.responses {
        let known = match call.version >= TOPIC_IDS {
            true => image.topic(Id(topic.topic_id.as_u128())),
            false => image.topic_by_name(topic.name.as_str()),
        };
        for row in topic.partition_responses.iter_mut().filter(|row| row.error_code == not_leader) {
            let Some(partition) = known.and_then(|topic| topic.partition(row.index)) else { continue };
            row.current_leader = LeaderIdAndEpoch::default().with_leader_id(partition.leader.0.into()).with_leader_epoch(partition.leader_epoch.0);
            let Some(broker) = image.broker(partition.leader) else { continue };
            let Some(endpoint) = broker.endpoints.iter().find(|endpoint| *endpoint.name == *cx.peer.listener) else { continue };
            if response.node_endpoints.iter().all(|node| node.node_id.0 != broker.id.0) {
                let node = NodeEndpoint::default()
                    .with_node_id(broker.id.0.into())
                    .with_host(StrBytes::from_string(endpoint.host.to_string()))
                    .with_port(i32::from(endpoint.port))
                    .with_rack(broker.rack.as_ref().map(|rack| StrBytes::from_string(rack.to_string())));
                response.node_endpoints.push(node);
            }
        }
    }
}
