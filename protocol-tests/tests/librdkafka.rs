//! librdkafka as applications use it: every codec, every acks, idempotence, admin, offsets by time, and kill -9 in the middle of a load.
//! Consumers assign partitions themselves.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders, OwnedMessage};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::util::Timeout;
use rdkafka::{Offset, TopicPartitionList};
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, Running, Watch, eventually};

/// Where a message is (partition and offset), or why it is nowhere.
type Became = Result<(i32, i64), KafkaError>;

/// What became of each message, by the number its sender gave it.
#[derive(Default)]
struct Deliveries(Mutex<BTreeMap<usize, Became>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, number: Box<usize>) {
        let became = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap().insert(*number, became);
    }
}

type Sender = ThreadedProducer<Deliveries>;

fn config(bootstrap: &str, settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    settings.iter().for_each(|(key, value)| {
        config.set(*key, *value);
    });
    config
}

fn sender(bootstrap: &str, settings: &[(&str, &str)]) -> Sender {
    config(bootstrap, settings).create_with_context(Deliveries::default()).expect("a producer")
}

type Numbered<'a> = BaseRecord<'a, [u8], [u8], Box<usize>>;

/// The message that its sender calls `number`.
fn message(topic: &str, partition: i32, number: usize) -> Numbered<'_> {
    BaseRecord::with_opaque_to(topic, Box::new(number)).partition(partition)
}

/// Hands a message to librdkafka, waiting for room in its queue.
fn send(sender: &Sender, mut message: Numbered<'_>) {
    while let Err((error, back)) = sender.send(message) {
        assert_eq!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull), "{error}");
        std::thread::yield_now();
        message = back;
    }
}

/// Waits for everything that was sent and returns where each message is.
fn delivered(sender: &Sender) -> Vec<(i32, i64)> {
    sender.flush(Timeout::After(SOON)).expect("everything is delivered in time");
    let deliveries = sender.context().0.lock().unwrap();
    deliveries.iter().map(|(number, became)| became.clone().unwrap_or_else(|error| panic!("message {number}: {error}"))).collect()
}

fn consumer(bootstrap: &str, topic: &str, partition: i32, from: Offset) -> BaseConsumer {
    let settings = [("group.id", "assigned"), ("enable.auto.commit", "false"), ("enable.partition.eof", "false")];
    let consumer: BaseConsumer = config(bootstrap, &settings).create().expect("a consumer");
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(topic, partition, from).unwrap();
    consumer.assign(&assignment).expect("an assignment");
    consumer
}

/// The first `count` messages of a partition.
fn consume(bootstrap: &str, topic: &str, partition: i32, count: usize) -> Vec<OwnedMessage> {
    let consumer = consumer(bootstrap, topic, partition, Offset::Beginning);
    let mut messages = Vec::new();
    let watch = Watch::start();
    while messages.len() < count {
        assert!(watch.elapsed() < SOON, "{} of {count} messages of {topic}-{partition}", messages.len());
        if let Some(message) = consumer.poll(Duration::from_millis(100)) {
            messages.push(message.expect("a message").detach());
        }
    }
    messages
}

fn admin(bootstrap: &str) -> AdminClient<DefaultClientContext> {
    config(bootstrap, &[]).create().expect("an admin client")
}

/// Runs one admin call.
fn wait<T>(call: impl std::future::Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(call)
}

/// A topic that nothing else uses.
fn topic(bootstrap: &str, name: &str, partitions: i32) -> String {
    let name = format!("{name}-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
    let new = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
    let created = wait(admin(bootstrap).create_topics([&new], &AdminOptions::new())).expect("an answer");
    assert_eq!(created, [Ok(name.clone())]);
    name
}

#[test]
fn every_codec_comes_back_as_it_was_sent() {
    let broker = Running::start();
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let topic = topic(broker.bootstrap(), codec, 1);
        let sender = sender(broker.bootstrap(), &[("compression.codec", codec), ("linger.ms", "20")]);
        let payload = |n: usize| format!("{n} {}", "compressible ".repeat(n % 50));
        for n in 0..300 {
            let (key, value) = (format!("key {n}"), payload(n));
            let headers = OwnedHeaders::new()
                .insert(Header { key: "n", value: Some(&n.to_string()) })
                .insert(Header { key: "null", value: None::<&[u8]> })
                .insert(Header { key: "n", value: Some("again") });
            let mut record = message(&topic, 0, n).timestamp(1_700_000_000_000 + n as i64).headers(headers);
            if n % 3 != 0 {
                record = record.key(key.as_bytes());
            }
            if n % 5 != 0 {
                record = record.payload(value.as_bytes());
            }
            send(&sender, record);
        }
        let offsets: Vec<i64> = delivered(&sender).into_iter().map(|(_, offset)| offset).collect();
        assert_eq!(offsets, (0..300).collect::<Vec<i64>>(), "{codec}");
        for (n, read) in consume(broker.bootstrap(), &topic, 0, 300).iter().enumerate() {
            let (key, value) = (format!("key {n}"), payload(n));
            assert_eq!(read.offset(), n as i64, "{codec}");
            assert_eq!(read.key(), (n % 3 != 0).then_some(key.as_bytes()), "{codec}, message {n}");
            assert_eq!(read.payload(), (n % 5 != 0).then_some(value.as_bytes()), "{codec}, message {n}");
            assert_eq!(read.timestamp().to_millis(), Some(1_700_000_000_000 + n as i64), "{codec}, message {n}");
            let headers: Vec<_> =
                read.headers().expect("headers").iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect();
            let expected = [("n", Some(n.to_string())), ("null", None), ("n", Some("again".into()))];
            let expected: Vec<_> = expected.map(|(key, value)| (key.to_owned(), value.map(String::into_bytes))).into();
            assert_eq!(headers, expected, "{codec}, message {n}");
        }
    }
}

#[test]
fn every_acks_appends() {
    let broker = Running::start();
    for acks in ["0", "1", "all"] {
        let topic = topic(broker.bootstrap(), &format!("acks-{acks}"), 1);
        let sender = sender(broker.bootstrap(), &[("acks", acks)]);
        (0..50).for_each(|n| send(&sender, message(&topic, 0, n).payload(n.to_string().as_bytes())));
        let delivered = delivered(&sender);
        assert_eq!(delivered.len(), 50, "acks={acks}");
        let values = consume(broker.bootstrap(), &topic, 0, 50).into_iter().map(|message| message.payload().unwrap().to_vec());
        assert_eq!(values.collect::<Vec<_>>(), (0..50).map(|n| n.to_string().into_bytes()).collect::<Vec<_>>(), "acks={acks}");
    }
}

#[test]
fn an_idempotent_producer_keeps_order_in_each_partition() {
    let broker = Running::start();
    let topic = topic(broker.bootstrap(), "idempotent", 3);
    let sender = sender(broker.bootstrap(), &[("enable.idempotence", "true"), ("batch.num.messages", "20"), ("linger.ms", "1")]);
    for n in 0..6_000 {
        send(&sender, message(&topic, (n % 3) as i32, n).payload(n.to_string().as_bytes()));
    }
    for (n, (partition, offset)) in delivered(&sender).into_iter().enumerate() {
        assert_eq!((partition, offset), ((n % 3) as i32, (n / 3) as i64));
    }
    for partition in 0..3 {
        let messages = consume(broker.bootstrap(), &topic, partition, 2_000);
        let values: Vec<usize> = messages.iter().map(number).collect();
        assert_eq!(values, (0..2_000).map(|n| n * 3 + partition as usize).collect::<Vec<_>>());
    }
}

#[test]
fn a_topic_is_made_described_changed_grown_and_deleted() {
    let broker = Running::start();
    let admin = admin(broker.bootstrap());
    let options = AdminOptions::new();
    let name = format!("admin-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
    let new = NewTopic::new(&name, 2, TopicReplication::Fixed(1)).set("retention.ms", "123456").set("max.message.bytes", "65536");
    assert_eq!(wait(admin.create_topics([&new], &options)).unwrap(), [Ok(name.clone())]);
    let again = wait(admin.create_topics([&new], &options)).unwrap();
    assert_eq!(again, [Err((name.clone(), RDKafkaErrorCode::TopicAlreadyExists))]);
    eventually(SOON, "two partitions", || (partitions_of(&admin, &name) == 2).then_some(()));

    let described = |key: &str| {
        let answers = wait(admin.describe_configs([&ResourceSpecifier::Topic(&name)], &options)).unwrap();
        let resource = answers.into_iter().next().unwrap().unwrap();
        let entry = resource.entry_map().remove(key).unwrap_or_else(|| panic!("no {key}"));
        (entry.value.clone(), entry.is_default)
    };
    assert_eq!(described("retention.ms"), (Some("123456".into()), false));
    assert_eq!(described("max.message.bytes"), (Some("65536".into()), false));
    assert_eq!(described("cleanup.policy"), (Some("delete".into()), true));

    // AlterConfigs replaces everything: what is not named falls back to its default.
    let alter = AlterConfig::new(ResourceSpecifier::Topic(&name)).set("retention.ms", "9999");
    assert!(wait(admin.alter_configs([&alter], &options)).unwrap().iter().all(Result::is_ok));
    eventually(SOON, "the changed setting", || (described("retention.ms").0.as_deref() == Some("9999")).then_some(()));
    assert_eq!(described("max.message.bytes").0.as_deref(), Some("1048588"));

    let grow = NewPartitions::new(&name, 5);
    assert_eq!(wait(admin.create_partitions([&grow], &options)).unwrap(), [Ok(name.clone())]);
    eventually(SOON, "five partitions", || (partitions_of(&admin, &name) == 5).then_some(()));
    let shrink = NewPartitions::new(&name, 3);
    let refused = wait(admin.create_partitions([&shrink], &options)).unwrap();
    assert_eq!(refused, [Err((name.clone(), RDKafkaErrorCode::InvalidPartitions))]);

    assert_eq!(wait(admin.delete_topics(&[&name], &options)).unwrap(), [Ok(name.clone())]);
    let gone = wait(admin.delete_topics(&[&name], &options)).unwrap();
    assert_eq!(gone, [Err((name.clone(), RDKafkaErrorCode::UnknownTopicOrPartition))]);
    eventually(SOON, "the topic's end in the list of topics", || {
        let metadata = admin.inner().fetch_metadata(None, SOON).expect("metadata");
        metadata.topics().iter().all(|topic| topic.name() != name).then_some(())
    });
}

fn partitions_of(admin: &AdminClient<DefaultClientContext>, topic: &str) -> usize {
    let metadata = admin.inner().fetch_metadata(Some(topic), SOON).expect("metadata");
    metadata.topics()[0].partitions().len()
}

#[test]
fn offsets_are_found_by_time_and_at_both_ends() {
    let broker = Running::start();
    let topic = topic(broker.bootstrap(), "times", 1);
    let sender = sender(broker.bootstrap(), &[("batch.num.messages", "7")]);
    let time = |n: i64| 1_700_000_000_000 + 1_000 * n;
    (0..100).for_each(|n| send(&sender, message(&topic, 0, n as usize).timestamp(time(n)).payload(b"x")));
    delivered(&sender);
    let consumer = consumer(broker.bootstrap(), &topic, 0, Offset::Beginning);
    assert_eq!(consumer.fetch_watermarks(&topic, 0, SOON).unwrap(), (0, 100));
    let table = [
        (time(0) - 5, Offset::Offset(0)),
        (time(0), Offset::Offset(0)),
        (time(41), Offset::Offset(41)),
        (time(41) + 1, Offset::Offset(42)),
        (time(99), Offset::Offset(99)),
        (time(99) + 1, Offset::End),
    ];
    for (asked, expected) in table {
        let mut times = TopicPartitionList::new();
        times.add_partition_offset(&topic, 0, Offset::Offset(asked)).unwrap();
        let found = consumer.offsets_for_times(times, SOON).expect("offsets");
        assert_eq!(found.elements()[0].offset(), expected, "at {asked}");
    }
}

#[test]
fn metadata_names_the_broker_and_the_leaders() {
    let broker = Running::start();
    let topic = topic(broker.bootstrap(), "metadata", 4);
    let metadata = admin(broker.bootstrap()).inner().fetch_metadata(Some(&topic), SOON).expect("metadata");
    assert_eq!(metadata.brokers().len(), 1);
    let (host, port) = broker.bootstrap().rsplit_once(':').unwrap();
    let node = &metadata.brokers()[0];
    assert_eq!((node.id(), node.host(), node.port().to_string().as_str()), (1, host, port));
    let partitions = metadata.topics()[0].partitions();
    assert_eq!(partitions.len(), 4);
    for (at, partition) in partitions.iter().enumerate() {
        assert_eq!((partition.id(), partition.leader()), (at as i32, 1));
        assert_eq!((partition.replicas(), partition.isr()), (&[1][..], &[1][..]));
    }
}

fn number(message: &OwnedMessage) -> usize {
    std::str::from_utf8(message.payload().expect("a value")).unwrap().parse().expect("a number")
}

/// Sends `total` numbered messages to three partitions, kills the broker when some of them are acknowledged, starts it again, and returns
/// what each partition holds in the end.
fn load_through_a_kill(idempotent: bool) -> [Vec<usize>; 3] {
    const TOTAL: usize = 30_000;
    let mut broker = Broker::spawn(BrokerOptions::default());
    let bootstrap = broker.bootstrap().to_owned();
    let topic = topic(&bootstrap, "killed", 3);
    let settings = [
        ("acks", "all"),
        ("enable.idempotence", if idempotent { "true" } else { "false" }),
        ("batch.num.messages", "50"),
        ("linger.ms", "1"),
        ("message.timeout.ms", "60000"),
        ("reconnect.backoff.max.ms", "100"),
        ("retry.backoff.ms", "20"),
    ];
    let sender = sender(&bootstrap, &settings);
    let acknowledged = || sender.context().0.lock().unwrap().values().filter(|became| became.is_ok()).count();
    for n in 0..TOTAL {
        send(&sender, message(&topic, (n % 3) as i32, n).payload(n.to_string().as_bytes()));
        if n == TOTAL / 2 {
            eventually(SOON, "some acknowledgements", || (acknowledged() > 1_000).then_some(()));
            broker.kill9();
            broker.restart();
        }
    }
    let places = delivered(&sender);
    assert_eq!(places.len(), TOTAL);
    let held = [0, 1, 2].map(|partition| {
        let probe = consumer(&bootstrap, &topic, partition, Offset::Beginning);
        let (start, end) = probe.fetch_watermarks(&topic, partition, SOON).expect("offsets");
        assert_eq!(start, 0);
        consume(&bootstrap, &topic, partition, end as usize)
    });
    // Every acknowledged message is where the acknowledgement said.
    for (n, (partition, offset)) in places.into_iter().enumerate() {
        let there = held[partition as usize].get(offset as usize).map(number);
        assert_eq!(there, Some(n), "message {n}, acknowledged at {partition}/{offset}");
    }
    held.map(|messages| messages.iter().map(number).collect())
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    for (partition, values) in load_through_a_kill(false).into_iter().enumerate() {
        let distinct: std::collections::BTreeSet<usize> = values.into_iter().collect();
        assert_eq!(distinct.len(), 10_000, "partition {partition} has every message");
    }
}

#[test]
fn idempotence_keeps_order_and_uniqueness_through_kill_9() {
    for (partition, values) in load_through_a_kill(true).into_iter().enumerate() {
        let expected: Vec<usize> = (0..10_000).map(|n| n * 3 + partition).collect();
        assert_eq!(values, expected, "partition {partition}");
    }
}
