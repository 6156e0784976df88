//! Groups of librdkafka's consumers while nothing stands still: members that come and go while a producer writes, and a broker that is
//! killed in the middle of a rebalance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::util::Timeout;
use rdkafka::{Offset, TopicPartitionList};
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, Watch, eventually};

const TOPIC: &str = "stormy";
const GROUP: &str = "storm";
const PARTITIONS: i32 = 6;

fn broker() -> Broker {
    let options = BrokerOptions::default().set("group.initial.rebalance.delay.ms", 0).set("offsets.topic.num.partitions", 3);
    let broker = Broker::spawn(options.set("group.min.session.timeout.ms", 100));
    let admin: AdminClient<DefaultClientContext> = config(&broker).create().expect("an admin client");
    let new = NewTopic::new(TOPIC, PARTITIONS, TopicReplication::Fixed(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let created = runtime.block_on(admin.create_topics([&new], &AdminOptions::new())).expect("an answer");
    assert_eq!(created, [Ok(TOPIC.to_owned())]);
    broker
}

fn config(broker: &Broker) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.bootstrap());
    config
}

fn member(broker: &Broker, strategy: &str) -> BaseConsumer {
    let mut config = config(broker);
    for (key, value) in [
        ("group.id", GROUP),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", "earliest"),
        ("partition.assignment.strategy", strategy),
        ("session.timeout.ms", "1500"),
        ("heartbeat.interval.ms", "100"),
        ("fetch.wait.max.ms", "50"),
        ("reconnect.backoff.max.ms", "200"),
    ] {
        config.set(key, value);
    }
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.subscribe(&[TOPIC]).expect("a subscription");
    consumer
}

/// What members have seen, by partition: offset and number of each record.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<i32, BTreeMap<i64, usize>>>);

impl Seen {
    fn add(&self, message: &impl Message) {
        let number = std::str::from_utf8(message.payload().expect("a value")).expect("text").parse().expect("a number");
        let mut seen = self.0.lock().expect("nobody panics");
        let before = seen.entry(message.partition()).or_default().insert(message.offset(), number);
        assert!(before.is_none_or(|before| before == number), "an offset has one record");
    }

    fn numbers(&self) -> BTreeSet<usize> {
        self.0.lock().expect("nobody panics").values().flat_map(|records| records.values().copied()).collect()
    }

    /// The offset after the last that anybody saw.
    fn end(&self, partition: i32) -> i64 {
        let seen = self.0.lock().expect("nobody panics");
        seen.get(&partition).and_then(|records| records.keys().next_back()).map_or(0, |last| last + 1)
    }
}

/// The partitions that a member has, as it says itself.
fn assigned(consumer: &BaseConsumer) -> BTreeSet<i32> {
    consumer.assignment().expect("an assignment").elements().iter().map(|element| element.partition()).collect()
}

/// Reads until told to stop, and commits what it has read and nothing else: what `commit_consumer_state` takes may be more, when
/// a consumer that is closed throws away what is in its queue.
fn take_part(consumer: &BaseConsumer, seen: &Seen, until: impl Fn() -> bool) {
    let mut read: BTreeMap<i32, i64> = BTreeMap::new();
    let mut since_commit = 0;
    while !until() {
        // Errors are what a rebalance, or a broker that is away, tells a consumer.
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(20)) {
            seen.add(&message);
            read.insert(message.partition(), message.offset() + 1);
            since_commit += 1;
        }
        if since_commit >= 20 {
            since_commit = 0;
            commit(consumer, std::mem::take(&mut read), CommitMode::Async);
        }
    }
    commit(consumer, read, CommitMode::Sync);
}

fn commit(consumer: &BaseConsumer, read: BTreeMap<i32, i64>, mode: CommitMode) {
    let (mut offsets, own) = (TopicPartitionList::new(), assigned(consumer));
    for (partition, offset) in read.into_iter().filter(|(partition, _)| own.contains(partition)) {
        offsets.add_partition_offset(TOPIC, partition, Offset::Offset(offset)).expect("an offset");
    }
    if offsets.count() > 0 {
        // Refused in the middle of a rebalance: whoever has the partition next reads it again.
        let _ = consumer.commit(&offsets, mode);
    }
}

fn committed(broker: &Broker) -> BTreeMap<i32, i64> {
    let mut config = config(broker);
    config.set("group.id", GROUP);
    let reader: BaseConsumer = config.create().expect("a consumer");
    let mut all = TopicPartitionList::new();
    (0..PARTITIONS).for_each(|partition| _ = all.add_partition(TOPIC, partition));
    let committed = reader.committed_offsets(all, Timeout::After(SOON)).expect("committed offsets");
    let offset = |offset| if let Offset::Offset(offset) = offset { offset } else { 0 };
    committed.elements().iter().map(|element| (element.partition(), offset(element.offset()))).collect()
}

/// Writes numbers until told to stop; how many.
fn write(broker: &Broker, stop: &AtomicBool) -> usize {
    let producer: BaseProducer = config(broker).set("acks", "all").set("linger.ms", "5").create().expect("a producer");
    let mut number: usize = 0;
    while !stop.load(SeqCst) {
        let text = number.to_string();
        let record = BaseRecord::<(), str>::to(TOPIC).partition(number as i32 % PARTITIONS).payload(&text);
        producer.send(record).map_err(|(error, _)| error).expect("room in the queue");
        number += 1;
        producer.poll(Duration::from_millis(if number.is_multiple_of(4) { 1 } else { 0 }));
    }
    producer.flush(Timeout::After(SOON)).expect("all is written");
    number
}

/// Set when a test ends, however: whoever still takes part must not keep it from ending.
struct AtEnd<'a>(&'a [&'a AtomicBool]);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|flag| flag.store(true, SeqCst));
    }
}

/// Every record is seen, no member is told of another's, and nothing is committed that nobody saw.
fn storm(strategy: &'static str) {
    let broker = broker();
    let (seen, stop, calm) = (Seen::default(), AtomicBool::new(false), AtomicBool::new(false));
    let written = std::thread::scope(|scope| {
        let _end = AtEnd(&[&stop, &calm]);
        let writer = scope.spawn(|| write(&broker, &stop));
        // One stays; three come and go, one of them without unsubscribing first.
        scope.spawn(|| {
            let consumer = member(&broker, strategy);
            take_part(&consumer, &seen, || calm.load(SeqCst));
        });
        let restless: Vec<_> = (0..3u64)
            .map(|at| {
                let (broker, seen, stop) = (&broker, &seen, &stop);
                scope.spawn(move || {
                    let mut times = 0;
                    while !stop.load(SeqCst) {
                        let consumer = member(broker, strategy);
                        let stay = Watch::start();
                        take_part(&consumer, seen, || stay.elapsed() > Duration::from_millis(400 + 170 * at) || stop.load(SeqCst));
                        times += 1;
                        if at != 0 {
                            consumer.unsubscribe();
                        }
                    }
                    times
                })
            })
            .collect();
        let watch = Watch::start();
        while watch.elapsed() < Duration::from_secs(6) {
            std::thread::sleep(Duration::from_millis(50));
            let (committed, ends) = (committed(&broker), (0..PARTITIONS).map(|partition| seen.end(partition)).collect::<Vec<_>>());
            for (partition, offset) in committed {
                assert!(offset <= ends[partition as usize], "{TOPIC}-{partition} is committed to {offset}, seen to {ends:?}");
            }
        }
        stop.store(true, SeqCst);
        let written = writer.join().expect("the writer");
        let times: Vec<usize> = restless.into_iter().map(|member| member.join().expect("a member")).collect();
        assert!(times.iter().all(|times| *times >= 2), "members came and went: {times:?}");
        eventually(SOON, "every record to be seen", || (seen.numbers().len() == written).then_some(()));
        calm.store(true, SeqCst);
        written
    });
    assert!(written > 1_000, "{written}");
    assert_eq!(seen.numbers(), (0..written).collect());
}

#[test]
fn every_record_is_read_while_members_come_and_go() {
    storm("range");
}

#[test]
fn every_record_is_read_while_members_come_and_go_cooperatively() {
    storm("cooperative-sticky");
}

#[test]
fn a_group_settles_after_kill_9_in_mid_rebalance_and_has_its_offsets() {
    let mut broker = broker();
    let (seen, stop) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    // Some records, read and committed by one member.
    let written = {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| write(&broker, &stop));
            std::thread::sleep(Duration::from_millis(500));
            stop.store(true, SeqCst);
            writer.join().expect("the writer")
        })
    };
    let first = member(&broker, "range");
    take_part(&first, &seen, || seen.numbers().len() == written);
    let before = eventually(SOON, "all to be committed", || {
        let committed = committed(&broker);
        (committed.values().sum::<i64>() == written as i64).then_some(committed)
    });

    for round in 0..3 {
        // More members than a moment ago: the group rebalances, and the broker dies in it.
        let members: Vec<BaseConsumer> = (0..3).map(|_| member(&broker, "range")).collect();
        let shares = Arc::new(Mutex::new(vec![BTreeSet::new(); members.len()]));
        let run: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(at, consumer)| {
                let (seen, stop, shares) = (seen.clone(), stop.clone(), shares.clone());
                std::thread::spawn(move || {
                    take_part(&consumer, &seen, || {
                        shares.lock().expect("nobody panics")[at] = assigned(&consumer);
                        stop.load(SeqCst)
                    });
                })
            })
            .collect();
        let watch = Watch::start();
        take_part(&first, &seen, || watch.elapsed() > Duration::from_millis(60 + 90 * round));
        broker.kill9();
        broker.restart();
        assert_eq!(committed(&broker), before, "round {round}: what was committed is");

        // All settle again: four members, each partition with one of them.
        eventually(SOON, "a stable group of four that has all partitions", || {
            let watch = Watch::start();
            take_part(&first, &seen, || watch.elapsed() > Duration::from_millis(100));
            let groups = first.fetch_group_list(Some(GROUP), Timeout::After(SOON)).ok()?;
            let group = groups.groups().iter().find(|group| group.name() == GROUP)?;
            let shares = shares.lock().expect("nobody panics");
            let mut all: Vec<i32> = shares.iter().flatten().copied().chain(assigned(&first)).collect();
            all.sort_unstable();
            (group.state() == "Stable" && group.members().len() == 4 && all == Vec::from_iter(0..PARTITIONS)).then_some(())
        });
        stop.store(true, SeqCst);
        run.into_iter().for_each(|member| member.join().expect("a member"));
        stop.store(false, SeqCst);
        eventually(SOON, "the others' leaving", || {
            let watch = Watch::start();
            take_part(&first, &seen, || watch.elapsed() > Duration::from_millis(50));
            (assigned(&first).len() == PARTITIONS as usize).then_some(())
        });
        assert_eq!(committed(&broker), before, "round {round}: nothing was read anew");
    }
    assert_eq!(seen.numbers(), (0..written).collect());
}
