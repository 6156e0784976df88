//! Golden bytes: what a fresh broker answers to fixed requests, per API key and version, with what differs from run to run (ids, ports,
//! paths, wording of errors) masked by name. `UPDATE_GOLDEN=1` rewrites `testdata/wire`; run against Apache Kafka it shows what ours should be:
//! all but `ApiVersions`, whose list is our own, came from there.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Request, StrBytes};
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::records::Batch;
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, eventually, golden};
use uuid::Uuid;

const TOPIC: &str = "golden";

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn name(value: &str) -> TopicName {
    TopicName(text(value))
}

/// A fresh broker with one topic of one partition, and what was recorded of it.
struct Recorder {
    /// Held so that it runs.
    _broker: Broker,
    conn: Conn,
    topic_id: Uuid,
    volatile: Vec<(&'static str, Vec<u8>)>,
    files: BTreeMap<String, String>,
}

impl Recorder {
    fn start() -> Recorder {
        let broker = Broker::spawn(BrokerOptions::default());
        let mut conn = Conn::open(broker.bootstrap());
        let topic = CreatableTopic::default().with_name(name(TOPIC)).with_num_partitions(1).with_replication_factor(1);
        let created = conn.call(7, &CreateTopicsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic]));
        assert_eq!(created.topics[0].error_code, 0);
        let topic_id = created.topics[0].topic_id;
        let metadata = conn.call(12, &MetadataRequest::default().with_topics(Some(vec![])));
        let port: i32 = broker.bootstrap().rsplit_once(':').expect("host:port").1.parse().expect("a port");
        let volatile = vec![
            ("topic id", topic_id.as_bytes().to_vec()),
            ("cluster id", metadata.cluster_id.expect("a cluster id").as_bytes().to_vec()),
            ("port", port.to_be_bytes().to_vec()),
        ];
        let mut recorder = Recorder { _broker: broker, conn, topic_id, volatile, files: BTreeMap::new() };
        eventually(SOON, "a leader that serves", || {
            let answer = recorder.conn.call(7, &list_offsets(7, -2, TOPIC));
            (answer.topics[0].partitions[0].error_code == 0).then_some(())
        });
        recorder
    }

    /// Asks in each version and records both directions; `what` names the case.
    fn record<R: Request>(&mut self, what: &str, versions: std::ops::RangeInclusive<i16>, make: impl Fn(i16) -> R) {
        self.record_masking(what, versions, make, |_| vec![]);
    }

    /// As `record`, with more that is volatile, taken from the answer.
    fn record_masking<R: Request>(
        &mut self,
        what: &str,
        versions: std::ops::RangeInclusive<i16>,
        make: impl Fn(i16) -> R,
        mask: impl Fn(&R::Response) -> Vec<(&'static str, Vec<u8>)>,
    ) {
        let api = ApiKey::try_from(R::KEY).map(|key| format!("{key:?}")).expect("a known key");
        for version in versions {
            let request = Conn::frame(1, version, &make(version));
            self.conn.write_frame(&request);
            let answer = self.conn.read_frame().unwrap_or_else(|| panic!("{api} v{version}, {what}: closed"));
            let decoded = Conn::answer::<R>(1, version, answer.clone());
            let mut volatile = mask(&decoded);
            volatile.extend(self.volatile.iter().cloned());
            let file = self.files.entry(api.clone()).or_default();
            *file += &format!("v{version} {what}\n> {}\n", golden::masked_hex(&request, &self.volatile));
            *file += &format!("< {}\n", golden::masked_hex(&answer, &volatile));
        }
    }

    /// Compares everything recorded, or rewrites it.
    fn finish(self) {
        assert!(!self.files.is_empty());
        for (api, text) in &self.files {
            golden::compare(&format!("wire/{api}.txt"), text);
        }
    }
}

fn produce(topic_id: Uuid, version: i16, partition: i32, records: &Bytes) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(records.clone()));
    let topic = TopicProduceData::default().with_partition_data(vec![data]);
    let topic = if version >= 13 { topic.with_topic_id(topic_id) } else { topic.with_name(name(TOPIC)) };
    ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic])
}

/// Without a session: epoch -1 asks for none, so that no id is made.
fn fetch(topic_id: Uuid, version: i16, partition: i32, offset: i64) -> FetchRequest {
    let partition = FetchPartition::default().with_partition(partition).with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_partitions(vec![partition]);
    let topic = if version >= 13 { topic.with_topic_id(topic_id) } else { topic.with_topic(name(TOPIC)) };
    FetchRequest::default().with_max_bytes(1 << 20).with_min_bytes(0).with_session_epoch(-1).with_topics(vec![topic])
}

/// The wording of errors is each broker's own; that there is one is not. In both encodings of a string: the older with a length of two
/// bytes, the compact one with a varint of the length plus one.
fn wording<'a>(messages: impl IntoIterator<Item = &'a Option<StrBytes>>) -> Vec<(&'static str, Vec<u8>)> {
    let both = |message: &StrBytes| {
        let (text, length) = (message.as_bytes(), message.len() + 1);
        let varint = if length < 0x80 { vec![length as u8] } else { vec![length as u8 | 0x80, (length >> 7) as u8] };
        [("message", [&(text.len() as u16).to_be_bytes(), text].concat()), ("message", [&varint[..], text].concat())]
    };
    messages.into_iter().flatten().filter(|message| !message.is_empty()).flat_map(both).collect()
}

fn list_offsets(version: i16, timestamp: i64, topic: &str) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default().with_name(name(topic)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    if version >= 10 { request.with_timeout_ms(1_000) } else { request }
}

#[test]
fn records_in_and_out() {
    let mut recorder = Recorder::start();
    let id = recorder.topic_id;
    let good = Batch::of(&["one", "two"]).encode();
    let mut broken = good.to_vec();
    *broken.last_mut().expect("bytes") ^= 1;
    let broken = broken.into();
    recorder.record("a batch", 3..=13, |version| produce(id, version, 0, &good));
    recorder.record("a partition that does not exist", 3..=13, |version| produce(id, version, 9, &good));
    recorder.record("a batch whose checksum is wrong", 3..=13, |version| produce(id, version, 0, &broken));
    recorder.record("the last batch", 4..=18, |version| fetch(id, version, 0, 20));
    recorder.record("beyond the end", 4..=18, |version| fetch(id, version, 0, 5_000));
    recorder.record("a partition that does not exist", 4..=18, |version| fetch(id, version, 9, 0));
    recorder.finish();
}

#[test]
fn offsets() {
    let mut recorder = Recorder::start();
    let batch = produce(recorder.topic_id, 9, 0, &Batch::of(&["one", "two", "three"]).encode());
    assert_eq!(recorder.conn.call(9, &batch).responses[0].partition_responses[0].error_code, 0);
    recorder.record("the end", 1..=10, |version| list_offsets(version, -1, TOPIC));
    recorder.record("the start", 1..=10, |version| list_offsets(version, -2, TOPIC));
    recorder.record("the newest timestamp", 7..=10, |version| list_offsets(version, -3, TOPIC));
    recorder.record("the local start", 8..=10, |version| list_offsets(version, -4, TOPIC));
    recorder.record("a time", 1..=10, |version| list_offsets(version, 1_700_000_000_000, TOPIC));
    recorder.record("a time after all records", 1..=10, |version| list_offsets(version, 1_900_000_000_000, TOPIC));
    recorder.record("a topic that does not exist", 1..=10, |version| list_offsets(version, -1, "nowhere"));
    let epoch_end = |epoch| {
        let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(-1).with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default().with_topic(name(TOPIC)).with_partitions(vec![partition]);
        OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
    };
    recorder.record("the current epoch", 2..=4, |_| epoch_end(0));
    recorder.record("an epoch to come", 2..=4, |_| epoch_end(7));
    recorder.record("records that may go", 0..=2, |_| delete_records(1));
    recorder.record("records that do not exist", 0..=2, |_| delete_records(99));
    recorder.finish();
}

fn delete_records(before: i64) -> DeleteRecordsRequest {
    let partition = DeleteRecordsPartition::default().with_offset(before);
    let topic = DeleteRecordsTopic::default().with_name(name(TOPIC)).with_partitions(vec![partition]);
    DeleteRecordsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic])
}

#[test]
fn the_cluster() {
    let mut recorder = Recorder::start();
    let about = |topics: Option<Vec<&str>>| {
        let named = |topic: &str| MetadataRequestTopic::default().with_name(Some(name(topic)));
        let topics = topics.map(|topics| topics.into_iter().map(named).collect());
        MetadataRequest::default().with_topics(topics)
    };
    let quiet = |version, request: MetadataRequest| request.with_allow_auto_topic_creation(version < 4);
    recorder.record("one topic", 0..=13, |version| quiet(version, about(Some(vec![TOPIC]))));
    recorder.record("every topic", 1..=13, |version| quiet(version, about(None)));
    recorder.record("no topic", 1..=13, |version| quiet(version, about(Some(vec![]))));
    recorder.record("a topic that does not exist", 4..=13, |version| quiet(version, about(Some(vec!["nowhere"]))));
    recorder.record("a name that may not exist", 4..=13, |version| quiet(version, about(Some(vec!["no/where"]))));
    recorder.record("brokers", 0..=2, |_| DescribeClusterRequest::default());
    recorder.record("one topic", 0..=0, |_| {
        let topic = kafka_protocol::messages::describe_topic_partitions_request::TopicRequest::default().with_name(name(TOPIC));
        DescribeTopicPartitionsRequest::default().with_topics(vec![topic]).with_response_partition_limit(10)
    });
    recorder.record("a partition without producers", 0..=0, |_| {
        let topic = kafka_protocol::messages::describe_producers_request::TopicRequest::default().with_name(name(TOPIC));
        DescribeProducersRequest::default().with_topics(vec![topic.with_partition_indexes(vec![0, 9])])
    });
    recorder.record_masking(
        "one topic",
        1..=4,
        |_| {
            let topic = kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic::default().with_topic(name(TOPIC));
            DescribeLogDirsRequest::default().with_topics(Some(vec![topic.with_partitions(vec![0])]))
        },
        |answer| {
            let dir = &answer.results[0];
            let path = dir.log_dir.as_bytes();
            let counted = |length: &[u8]| [length, path].concat();
            vec![
                ("path", counted(&(path.len() as i16).to_be_bytes())),
                ("path", counted(&[path.len() as u8 + 1])),
                ("total", dir.total_bytes.to_be_bytes().to_vec()),
                ("usable", dir.usable_bytes.to_be_bytes().to_vec()),
            ]
        },
    );
    recorder.record("topics", 1..=1, |_| ListConfigResourcesRequest::default().with_resource_types(vec![2]));
    recorder.finish();
}

#[test]
fn topics() {
    let mut recorder = Recorder::start();
    let created = |answer: &CreateTopicsResponse| wording(answer.topics.iter().map(|topic| &topic.error_message));
    let grown = |answer: &CreatePartitionsResponse| wording(answer.results.iter().map(|topic| &topic.error_message));
    let deleted = |answer: &DeleteTopicsResponse| wording(answer.responses.iter().map(|topic| &topic.error_message));
    let create = |version: i16, topic: &str, partitions, replicas, configs: &[(&str, &str)]| {
        let configs = configs.iter().map(|(key, value)| CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value))));
        let topic = CreatableTopic::default().with_name(name(topic)).with_num_partitions(partitions).with_replication_factor(replicas);
        let topic = topic.with_configs(configs.collect());
        CreateTopicsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic]).with_validate_only(version % 2 == 0)
    };
    recorder.record_masking("a topic there is", 2..=7, |version| create(version, TOPIC, 1, 1, &[]), created);
    recorder.record_masking("a name that may not exist", 2..=7, |version| create(version, "no/where", 1, 1, &[]), created);
    recorder.record_masking("no partitions", 2..=7, |version| create(version, "new", 0, 1, &[]), created);
    recorder.record_masking("too many replicas", 2..=7, |version| create(version, "new", 1, 2, &[]), created);
    recorder.record_masking(
        "a setting that does not exist",
        2..=7,
        |version| create(version, "new", 1, 1, &[("no.such.key", "1")]),
        created,
    );
    recorder.record_masking(
        "a setting out of its range",
        2..=7,
        |version| create(version, "new", 1, 1, &[("segment.bytes", "-5")]),
        created,
    );
    recorder.record_masking("a topic that may be", 2..=2, |version| create(version, "new", 3, 1, &[("retention.ms", "1000")]), created);
    recorder.record_masking("a topic", 3..=3, |version| create(version, "made", 3, 1, &[("retention.ms", "1000")]), created);

    recorder.record_masking("more partitions, only to see", 0..=3, |_| grow(TOPIC, 3), grown);
    recorder.record_masking("fewer partitions", 0..=3, |_| grow(TOPIC, 0), grown);
    recorder.record_masking("as many partitions", 0..=3, |_| grow(TOPIC, 1), grown);
    recorder.record_masking("a topic that does not exist", 0..=3, |_| grow("nowhere", 2), grown);

    recorder.record_masking("a topic that does not exist", 1..=6, |version| delete(version, "nowhere"), deleted);
    recorder.record_masking("a topic", 3..=3, |version| delete(version, "made"), deleted);
    recorder.finish();
}

fn grow(topic: &str, count: i32) -> CreatePartitionsRequest {
    use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
    let topic = CreatePartitionsTopic::default().with_name(name(topic)).with_count(count).with_assignments(None);
    CreatePartitionsRequest::default().with_timeout_ms(30_000).with_validate_only(true).with_topics(vec![topic])
}

fn delete(version: i16, topic: &str) -> DeleteTopicsRequest {
    use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
    let request = DeleteTopicsRequest::default().with_timeout_ms(30_000);
    match version {
        6.. => request.with_topics(vec![DeleteTopicState::default().with_name(Some(name(topic)))]),
        _ => request.with_topic_names(vec![name(topic)]),
    }
}

#[test]
fn settings() {
    let mut recorder = Recorder::start();
    let described = |answer: &DescribeConfigsResponse| wording(answer.results.iter().map(|resource| &resource.error_message));
    let incremented = |answer: &IncrementalAlterConfigsResponse| wording(answer.responses.iter().map(|resource| &resource.error_message));
    let altered = |answer: &AlterConfigsResponse| wording(answer.responses.iter().map(|resource| &resource.error_message));
    recorder.record_masking("two settings of a topic", 1..=4, |_| describe(TOPIC), described);
    recorder.record_masking("settings of a topic that does not exist", 1..=4, |_| describe("nowhere"), described);
    recorder.record_masking("a setting, only to see", 0..=1, |_| increment("retention.ms", Some("1234")), incremented);
    recorder.record_masking("a setting that does not exist", 0..=1, |_| increment("no.such.key", Some("1")), incremented);
    recorder.record_masking("a setting that is no number", 0..=1, |_| increment("retention.ms", Some("soon")), incremented);
    recorder.record_masking("a setting, only to see", 0..=2, |_| alter("1234"), altered);
    recorder.record_masking("a setting that is no number", 0..=2, |_| alter("soon"), altered);
    recorder.finish();
}

fn describe(topic: &str) -> DescribeConfigsRequest {
    use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
    let keys = Some(vec![text("retention.ms"), text("cleanup.policy")]);
    let resource = DescribeConfigsResource::default().with_resource_type(2).with_resource_name(text(topic)).with_configuration_keys(keys);
    DescribeConfigsRequest::default().with_include_synonyms(true).with_resources(vec![resource])
}

fn increment(key: &str, value: Option<&str>) -> IncrementalAlterConfigsRequest {
    use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let config = AlterableConfig::default().with_name(text(key)).with_value(value.map(text));
    let resource = AlterConfigsResource::default().with_resource_type(2).with_resource_name(text(TOPIC)).with_configs(vec![config]);
    IncrementalAlterConfigsRequest::default().with_validate_only(true).with_resources(vec![resource])
}

fn alter(retention: &str) -> AlterConfigsRequest {
    use kafka_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let config = AlterableConfig::default().with_name(text("retention.ms")).with_value(Some(text(retention)));
    let resource = AlterConfigsResource::default().with_resource_type(2).with_resource_name(text(TOPIC)).with_configs(vec![config]);
    AlterConfigsRequest::default().with_validate_only(true).with_resources(vec![resource])
}

#[test]
fn producers() {
    let mut recorder = Recorder::start();
    let ask = |version: i16| {
        let request = InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(i32::MAX);
        if version >= 3 { request.with_producer_id(ProducerId(-1)).with_producer_epoch(-1) } else { request }
    };
    eventually(SOON, "a producer id", || (recorder.conn.call(0, &ask(0)).error_code == 0).then_some(()));
    recorder.record_masking("a new producer", 0..=5, ask, |answer| vec![("producer id", answer.producer_id.0.to_be_bytes().to_vec())]);
    recorder.finish();
}

#[test]
fn api_versions_lists_the_table() {
    let mut recorder = Recorder::start();
    let ask = |version: i16| match version {
        3.. => ApiVersionsRequest::default().with_client_software_name(text("golden")).with_client_software_version(text("1")),
        _ => ApiVersionsRequest::default(),
    };
    recorder.record_masking("all", 0..=4, ask, |answer| vec![("features epoch", answer.finalized_features_epoch.to_be_bytes().to_vec())]);
    recorder.finish();
}
