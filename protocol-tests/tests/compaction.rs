//! A compacted topic through librdkafka: many updates of few keys and some deletions, compaction meanwhile, kill -9 in between; in the end
//! every key has its last value, under its old offset, and little else is left.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, eventually};

const TOPIC: &str = "table";

fn config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("group.id", "assigned").set("enable.partition.eof", "true");
    config.set("message.timeout.ms", "60000").set("reconnect.backoff.max.ms", "100").set("retry.backoff.ms", "20");
    config.set("enable.idempotence", "true").set("batch.num.messages", "20").set("linger.ms", "1");
    config
}

fn wait<T>(call: impl std::future::Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(call)
}

fn broker() -> Broker {
    // No pause, and no time for tombstones: what takes minutes elsewhere takes a second here.
    let options = BrokerOptions::default().set("log.cleaner.backoff.ms", 100).set("log.retention.check.interval.ms", 300);
    Broker::spawn(options.set("log.initial.task.delay.ms", 300).set("log.segment.delete.delay.ms", 0))
}

fn create(bootstrap: &str, settings: &[(&str, &str)]) -> AdminClient<DefaultClientContext> {
    let admin: AdminClient<_> = config(bootstrap).create().expect("an admin client");
    let mut new = NewTopic::new(TOPIC, 1, TopicReplication::Fixed(1));
    for (key, value) in settings {
        new = new.set(key, value);
    }
    assert_eq!(wait(admin.create_topics([&new], &AdminOptions::new())).expect("an answer"), [Ok(TOPIC.to_owned())]);
    admin
}

/// Everything in the topic: (offset, key, value).
fn read(bootstrap: &str) -> Vec<(i64, String, Option<String>)> {
    let consumer: BaseConsumer = config(bootstrap).create().expect("a consumer");
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(TOPIC, 0, Offset::Beginning).expect("a partition");
    consumer.assign(&assignment).expect("an assignment");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut out = Vec::new();
    loop {
        match consumer.poll(SOON).expect("in time") {
            Ok(message) => {
                out.push((message.offset(), text(message.key().expect("a key")), message.payload().map(text)));
            }
            Err(rdkafka::error::KafkaError::PartitionEOF(_)) => return out,
            Err(e) => panic!("{e}"),
        }
    }
}

/// Sends rounds of updates; returns what each key is left with.
fn update(producer: &BaseProducer, rounds: std::ops::Range<usize>, table: &mut BTreeMap<String, Option<String>>) {
    for round in rounds {
        for key in 0..100 {
            let (name, value) =
                (format!("key {key}"), (key % 10 != round % 10).then(|| format!("{key} in round {round} {}", "x".repeat(80))));
            loop {
                let mut record = BaseRecord::<str, str>::to(TOPIC).partition(0).key(&name);
                if let Some(value) = &value {
                    record = record.payload(value);
                }
                match producer.send(record) {
                    Ok(()) => break,
                    Err((e, _)) => assert_eq!(e.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull), "{e}"),
                }
                producer.poll(Duration::from_millis(1));
            }
            table.insert(name, value);
        }
    }
}

fn table(records: &[(i64, String, Option<String>)]) -> BTreeMap<String, Option<String>> {
    records.iter().map(|(_, key, value)| (key.clone(), value.clone())).collect()
}

#[test]
fn a_table_survives_compaction_and_kill_9() {
    let mut broker = broker();
    let bootstrap = broker.bootstrap().to_owned();
    create(
        &bootstrap,
        &[
            ("cleanup.policy", "compact"),
            ("internal.segment.bytes", "100000"),
            ("min.cleanable.dirty.ratio", "0.1"),
            ("compression.type", "lz4"),
        ],
    );
    let producer: BaseProducer = config(&bootstrap).create().expect("a producer");
    let mut expected = BTreeMap::new();
    for part in 0..3 {
        update(&producer, part * 100..part * 100 + 100, &mut expected);
        if part < 2 {
            // In the middle of what the cleaner does, whatever that is.
            producer.poll(Duration::from_millis(50));
            broker.kill9();
            broker.restart();
        }
    }
    producer.flush(SOON).expect("everything is delivered");
    let all = eventually(SOON, "compaction", || Some(read(&bootstrap)).filter(|records| records.len() < 5_000));
    let live = |table: BTreeMap<String, Option<String>>| table.into_iter().filter(|(_, value)| value.is_some()).collect::<BTreeMap<_, _>>();
    assert_eq!(live(table(&all)), live(expected.clone()), "the last value of each key");
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "offsets as they were");
    let consumer: BaseConsumer = config(&bootstrap).create().expect("a consumer");
    assert_eq!(consumer.fetch_watermarks(TOPIC, 0, SOON).expect("offsets"), (0, 30_000), "both ends as they were");

    broker.terminate();
    broker.restart();
    assert_eq!(live(table(&read(&bootstrap))), live(expected));
    let checkpoint = std::fs::read_to_string(broker.data_dir().join("cleaner-offset-checkpoint")).expect("the checkpoint");
    assert!(checkpoint.starts_with("0\n") && checkpoint.contains("table 0 "), "{checkpoint}");
}

#[test]
fn a_policy_that_changes_acts_at_once() {
    let broker = broker();
    let bootstrap = broker.bootstrap();
    let admin = create(bootstrap, &[("internal.segment.bytes", "20000"), ("min.cleanable.dirty.ratio", "0.1")]);
    let producer: BaseProducer = config(bootstrap).create().expect("a producer");
    let mut expected = BTreeMap::new();
    update(&producer, 0..20, &mut expected);
    producer.flush(SOON).expect("delivered");
    assert_eq!(read(bootstrap).len(), 2_000, "nothing is compacted");
    let alter = |policy: &str| {
        let alter = AlterConfig::new(ResourceSpecifier::Topic(TOPIC)).set("cleanup.policy", policy).set("internal.segment.bytes", "20000");
        let alter = alter.set("min.cleanable.dirty.ratio", "0.1");
        assert!(wait(admin.alter_configs([&alter], &AdminOptions::new())).expect("an answer").iter().all(Result::is_ok));
    };
    alter("compact");
    let left = eventually(SOON, "compaction", || Some(read(bootstrap).len()).filter(|left| *left < 500));
    alter("delete");
    update(&producer, 20..40, &mut expected);
    producer.flush(SOON).expect("delivered");
    assert_eq!(read(bootstrap).len(), left + 2_000, "and no more");
    alter("compact,delete");
    eventually(SOON, "compaction", || (read(bootstrap).len() < 500).then_some(()));
}

#[test]
fn committed_offsets_are_read_from_a_compacted_topic() {
    let mut broker = broker();
    let bootstrap = broker.bootstrap().to_owned();
    let admin = create(&bootstrap, &[]);
    let committed = |partition_offset: Option<i64>| {
        let consumer: BaseConsumer = config(&bootstrap).create().expect("a consumer");
        let mut list = TopicPartitionList::new();
        match partition_offset {
            Some(offset) => {
                list.add_partition_offset(TOPIC, 0, Offset::Offset(offset)).expect("an offset");
                consumer.commit(&list, rdkafka::consumer::CommitMode::Sync).expect("committed");
                offset
            }
            None => {
                list.add_partition(TOPIC, 0);
                let found = consumer.committed_offsets(list, SOON).expect("an answer");
                found.elements()[0].offset().to_raw().expect("an offset")
            }
        }
    };
    committed(Some(1));
    let alter = AlterConfig::new(ResourceSpecifier::Topic("__consumer_offsets"));
    let alter = alter.set("cleanup.policy", "compact").set("internal.segment.bytes", "16384").set("min.cleanable.dirty.ratio", "0.01");
    let answers = wait(admin.alter_configs([&alter], &AdminOptions::new())).expect("an answer");
    assert!(answers.len() == 1 && answers[0].is_ok(), "{answers:?}");
    let consumer: BaseConsumer = config(&bootstrap).create().expect("a consumer");
    for offset in 2..1_500 {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(TOPIC, 0, Offset::Offset(offset)).expect("an offset");
        consumer.commit(&list, rdkafka::consumer::CommitMode::Sync).expect("committed");
    }
    let checkpoint = broker.data_dir().join("cleaner-offset-checkpoint");
    eventually(SOON, "compaction", || std::fs::read_to_string(&checkpoint).ok().filter(|text| text.contains("__consumer_offsets")));
    broker.kill9();
    broker.restart();
    assert_eq!(committed(None), 1_499);
}

#[test]
fn a_damaged_segment_is_named_counted_and_compacted_once_it_is_repaired() {
    let broker = broker();
    let bootstrap = broker.bootstrap();
    let admin = create(bootstrap, &[("internal.segment.bytes", "20000")]);
    let producer: BaseProducer = config(bootstrap).create().expect("a producer");
    update(&producer, 0..20, &mut BTreeMap::new());
    producer.flush(SOON).expect("delivered");
    // A bit of the first record.
    let segment = broker.log_dir(TOPIC, 0).join("00000000000000000000.log");
    let flip = || {
        let mut bytes = std::fs::read(&segment).expect("the first segment");
        bytes[90] ^= 1;
        use std::io::{Seek, Write};
        let mut file = std::fs::OpenOptions::new().write(true).open(&segment).expect("the first segment");
        file.seek(std::io::SeekFrom::Start(90)).and_then(|_| file.write_all(&bytes[90..91])).expect("written");
    };
    let uncleanable = || {
        let text = broker.metrics();
        let row = text.lines().find(|line| line.starts_with("kafka_log_logcleanermanager_uncleanable_partitions_count{"));
        row.and_then(|row| row.rsplit(' ').next()?.parse::<f64>().ok()).expect("a gauge")
    };
    let alter = |ratio: &str| {
        let alter =
            AlterConfig::new(ResourceSpecifier::Topic(TOPIC)).set("cleanup.policy", "compact").set("internal.segment.bytes", "20000");
        let alter = alter.set("min.cleanable.dirty.ratio", ratio);
        assert!(wait(admin.alter_configs([&alter], &AdminOptions::new())).expect("an answer").iter().all(Result::is_ok));
    };
    assert_eq!(uncleanable(), 0.0);
    flip();
    alter("0.1");
    eventually(SOON, "a partition that cannot be compacted", || (uncleanable() == 1.0).then_some(()));
    let said = broker.said();
    assert!(said.contains("cannot be compacted") && said.contains("table-0") && said.contains("checksum"), "{said}");
    assert!(
        broker.log_dir(TOPIC, 0).read_dir().expect("its directory").flatten().all(|f| !f.path().to_string_lossy().ends_with(".cleaned"))
    );
    flip();
    alter("0.2");
    eventually(SOON, "compaction", || (read(bootstrap).len() < 500).then_some(()));
    eventually(SOON, "nothing that cannot be compacted", || (uncleanable() == 0.0).then_some(()));
}
