//! A broker's data directory across processes: whose it is, and what is in it after every kind of end.

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{FetchRequest, MetadataRequest, ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::records::{Batch, read};
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, eventually};

const TOPIC: &str = "kept";
/// Marks a directory whose logs need no recovery.
const CLEAN: &str = ".kafka_cleanshutdown";

fn name() -> TopicName {
    TopicName(StrBytes::from_static_str(TOPIC))
}

/// Appends a value with acks=all and returns its offset; makes the topic if need be.
fn append(broker: &Broker, value: &str) -> i64 {
    let mut conn = Conn::open(broker.bootstrap());
    let partition = PartitionProduceData::default().with_index(0).with_records(Some(Batch::of(&[value]).encode()));
    let topic = TopicProduceData::default().with_name(name()).with_partition_data(vec![partition]);
    let produce = ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
    eventually(SOON, "an acknowledged record", || {
        let mut answer = conn.call(9, &produce);
        let partition = answer.responses.remove(0).partition_responses.remove(0);
        if partition.error_code == 3 {
            use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
            let topic = MetadataRequestTopic::default().with_name(Some(name()));
            conn.call(9, &MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true));
        }
        (partition.error_code == 0).then_some(partition.base_offset)
    })
}

/// Every value of the partition, in order.
fn values(broker: &Broker) -> Vec<String> {
    let mut conn = Conn::open(broker.bootstrap());
    let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(name()).with_partitions(vec![partition]);
    let fetch = FetchRequest::default().with_max_wait_ms(100).with_min_bytes(1).with_max_bytes(1 << 20).with_topics(vec![topic]);
    let mut answer = eventually(SOON, "a leader", || {
        let mut answer = conn.call(11, &fetch);
        (answer.responses[0].partitions[0].error_code == 0).then(|| answer.responses.remove(0).partitions.remove(0))
    });
    let batches = read(answer.records.take().unwrap_or_default());
    let records = batches.into_iter().flat_map(|batch| batch.records);
    records.map(|record| String::from_utf8(record.value.expect("a value").to_vec()).expect("text")).collect()
}

/// A key of the directory's `meta.properties`.
fn meta(broker: &Broker, key: &str) -> String {
    let text = std::fs::read_to_string(broker.data_dir().join("meta.properties")).expect("meta.properties");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
}

#[test]
fn a_directory_in_use_is_refused() {
    let broker = Broker::spawn(BrokerOptions::default());
    append(&broker, "a");
    let second = Broker::refused(BrokerOptions::default().on(&broker.data_dir()));
    assert!(!second.status.success(), "{second:?}");
    assert!(second.said.contains(&broker.data_dir().display().to_string()), "it names the directory: {}", second.said);
    assert_eq!(append(&broker, "b"), 1, "the first one is not disturbed");
}

#[test]
fn another_nodes_directory_is_refused() {
    let mut broker = Broker::spawn(BrokerOptions { node_id: Some(17), ..BrokerOptions::default() });
    assert_eq!(meta(&broker, "node.id"), "17");
    broker.terminate();
    let other = Broker::refused(BrokerOptions { node_id: Some(23), ..BrokerOptions::default() }.on(&broker.data_dir()));
    assert!(!other.status.success(), "{other:?}");
    assert!(other.said.contains("17") && other.said.contains("23"), "it names both nodes: {}", other.said);
    broker.restart();
}

#[test]
fn directories_of_two_clusters_are_refused() {
    let mut ours = Broker::spawn(BrokerOptions::default());
    let mut theirs = Broker::spawn(BrokerOptions::default());
    let ids = [meta(&ours, "cluster.id"), meta(&theirs, "cluster.id")];
    assert_ne!(ids[0], ids[1], "each first start makes a cluster of its own");
    ours.terminate();
    theirs.terminate();
    let both = format!("{},{}", ours.data_dir().display(), theirs.data_dir().display());
    let mixed = Broker::refused(BrokerOptions::default().set("log.dirs", both));
    assert!(!mixed.status.success(), "{mixed:?}");
    assert!(ids.iter().all(|id| mixed.said.contains(id)), "it names both clusters {ids:?}: {}", mixed.said);
}

#[test]
fn sigterm_stops_cleanly() {
    let mut broker = Broker::spawn(BrokerOptions::default());
    append(&broker, "before");
    let ended = broker.terminate();
    assert!(ended.status.success(), "{ended:?}");
    assert!(broker.data_dir().join(CLEAN).exists(), "a clean stop is marked");
    broker.restart();
    assert!(!broker.data_dir().join(CLEAN).exists(), "the mark does not outlive the start, or a crash would look clean");
    assert_eq!(values(&broker), ["before"]);
    assert_eq!(append(&broker, "after"), 1);
    assert_eq!(values(&broker), ["before", "after"]);
}

#[test]
fn kill_9_loses_nothing_acknowledged() {
    let mut broker = Broker::spawn(BrokerOptions::default());
    let cluster = meta(&broker, "cluster.id");
    let mut expected = Vec::new();
    for life in 0..4 {
        for n in 0..25 {
            let value = format!("{life}/{n}");
            assert_eq!(append(&broker, &value), expected.len() as i64);
            expected.push(value);
        }
        broker.kill9();
        assert!(!broker.data_dir().join(CLEAN).exists());
        broker.restart();
        assert_eq!(values(&broker), expected, "life {life}");
    }
    assert_eq!(meta(&broker, "cluster.id"), cluster);
}

/// The last position must not wait for a change that never comes.
#[test]
fn a_partition_that_went_idle_has_its_high_watermark_in_the_checkpoint() {
    let broker = Broker::spawn(BrokerOptions::default().set("replica.high.watermark.checkpoint.interval.ms", 100));
    append(&broker, "the only one");
    let checkpoint = broker.data_dir().join("replication-offset-checkpoint");
    eventually(SOON, "the high watermark on disk", || {
        let text = std::fs::read_to_string(&checkpoint).unwrap_or_default();
        text.lines().any(|line| line == format!("{TOPIC} 0 1")).then_some(())
    });
}

#[test]
fn health_follows_the_broker() {
    let broker = Broker::spawn(BrokerOptions::default());
    assert_eq!(broker.http("/live").0, 200);
    assert_eq!(broker.http("/ready").0, 200);
    assert_eq!(broker.http("/metrics?profile=nonsense").0, 400);
    append(&broker, "counted");
    let metrics = broker.metrics();
    for series in [
        "kafka_server_brokertopicmetrics_messagesin_total 1",
        "kafka_server_brokertopicmetrics_messagesin_total{topic=\"kept\"} 1",
        "kafka_log_log_logendoffset{topic=\"kept\",partition=\"0\"} 1",
        "kafka_controller_kafkacontroller_activecontrollercount 1",
        "kafka_server_kafkaserver_brokerstate 3",
        "kafka_controller_controllerstats_uncleanleaderelections_total 0",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} is not in\n{metrics}");
    }
}
