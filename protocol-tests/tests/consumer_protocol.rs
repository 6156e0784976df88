//! librdkafka with `group.protocol=consumer` (KIP-848): two members that subscribe by a regular expression, kill -9 of the broker between
//! them, topics that come later, and the move from the classic protocol.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, eventually};

const PARTITIONS: i32 = 3;

fn broker() -> Broker {
    Broker::spawn(
        BrokerOptions::default()
            .set("offsets.topic.num.partitions", 4)
            .set("group.initial.rebalance.delay.ms", 0)
            .set("group.consumer.min.heartbeat.interval.ms", 300)
            .set("group.consumer.heartbeat.interval.ms", 300)
            .set("group.consumer.assignment.interval.ms", 0),
    )
}

fn config(broker: &Broker) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.bootstrap()).set("reconnect.backoff.max.ms", "500");
    config
}

fn create(broker: &Broker, topics: &[&str]) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().expect("an admin client");
    let new: Vec<NewTopic> = topics.iter().map(|name| NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1))).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let made = runtime.block_on(admin.create_topics(&new, &AdminOptions::new())).expect("an answer");
    made.into_iter().for_each(|topic| _ = topic.expect("a topic"));
}

/// One message for each number and partition.
fn send(broker: &Broker, topic: &str, numbers: std::ops::Range<i64>) {
    let producer: ThreadedProducer<_> = config(broker).set("acks", "all").create().expect("a producer");
    for number in numbers {
        for partition in 0..PARTITIONS {
            let value = number.to_string();
            let record: BaseRecord<str, str> = BaseRecord::to(topic).partition(partition).payload(&value);
            producer.send(record).map_err(|(error, _)| error).expect("room in the queue");
        }
    }
    producer.flush(SOON).expect("all delivered");
}

struct Member {
    consumer: BaseConsumer,
    read: BTreeSet<(String, i32, i64)>,
    /// How many messages it was given, the same ones again too.
    given: usize,
}

impl Member {
    fn new(broker: &Broker, group: &str, protocol: &str, subscription: &str) -> Member {
        let mut config = config(broker);
        config
            .set("group.id", group)
            .set("group.protocol", protocol)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("topic.metadata.refresh.interval.ms", "1000");
        if protocol == "classic" {
            config.set("heartbeat.interval.ms", "300").set("partition.assignment.strategy", "cooperative-sticky");
        }
        let consumer: BaseConsumer = config.create().expect("a consumer");
        consumer.subscribe(&[subscription]).expect("a subscription");
        Member { consumer, read: BTreeSet::new(), given: 0 }
    }

    /// Reads what is there for a moment, and commits it.
    fn poll(&mut self) {
        while let Some(message) = self.consumer.poll(Duration::from_millis(50)) {
            // While the broker is away there are errors; what comes after them counts.
            let Ok(message) = message else { continue };
            self.given += 1;
            self.read.insert((message.topic().to_owned(), message.partition(), message.offset()));
            _ = self.consumer.commit_message(&message, CommitMode::Async);
        }
    }

    fn partitions(&self) -> usize {
        self.consumer.assignment().map_or(0, |assignment| assignment.count())
    }
}

fn both_read(members: &mut [Member], what: &str, done: impl Fn(&[Member]) -> bool) {
    eventually(SOON * 3, what, || {
        members.iter_mut().for_each(Member::poll);
        done(members).then_some(())
    });
}

fn all_read(members: &[Member]) -> usize {
    members.iter().flat_map(|member| &member.read).collect::<BTreeSet<_>>().len()
}

fn committed(member: &Member, topic: &str) -> Vec<i64> {
    let mut asked = TopicPartitionList::new();
    (0..PARTITIONS).for_each(|partition| _ = asked.add_partition(topic, partition));
    let offsets = member.consumer.committed_offsets(asked, SOON).expect("offsets");
    let number = |offset: Offset| if let Offset::Offset(offset) = offset { offset } else { -1 };
    offsets.elements().iter().map(|element| number(element.offset())).collect()
}

#[test]
fn members_share_what_matches_and_go_on_after_kill_9() {
    let mut broker = broker();
    create(&broker, &["logs-a", "logs-b", "other"]);
    send(&broker, "logs-a", 0..20);
    send(&broker, "logs-b", 0..20);
    let mut members: Vec<Member> = (0..2).map(|_| Member::new(&broker, "g", "consumer", "^logs-.*")).collect();
    both_read(&mut members, "both members have their share and have read all", |members| {
        members.iter().all(|member| member.partitions() == 3) && all_read(members) == 120
    });
    eventually(SOON, "the commits are there", || {
        members.iter_mut().for_each(Member::poll);
        (committed(&members[0], "logs-a") == [20, 20, 20] && committed(&members[0], "logs-b") == [20, 20, 20]).then_some(())
    });
    let given = |members: &[Member]| members.iter().map(|member| member.given).sum::<usize>();
    let before = given(&members);
    broker.kill9();
    broker.restart();
    assert_eq!(committed(&members[1], "logs-a"), [20, 20, 20], "they survive");
    send(&broker, "logs-a", 20..30);
    both_read(&mut members, "both go on where they were", |members| {
        members.iter().all(|member| member.partitions() == 3) && all_read(members) == 150
    });
    assert_eq!(given(&members) - before, 30, "nothing was read twice");
    create(&broker, &["logs-c"]);
    send(&broker, "logs-c", 0..10);
    both_read(&mut members, "a topic that came later is read", |members| {
        members.iter().map(Member::partitions).sum::<usize>() == 9 && all_read(members) == 180
    });
    // One goes, and the other has it all.
    members.remove(0);
    both_read(&mut members, "the one that is left has all partitions", |members| members[0].partitions() == 9);
    let state = |state: &str| broker.metric(&format!("kafka_server_group_coordinator_metrics_consumer_group_count{{state=\"{state}\"}}"));
    eventually(SOON, "the gauges know", || {
        members[0].poll();
        (state("stable") == Some(1.0) && state("reconciling") == Some(0.0)).then_some(())
    });
}

#[test]
fn a_group_moves_from_the_classic_protocol_and_back() {
    let broker = broker();
    create(&broker, &["t"]);
    send(&broker, "t", 0..10);
    let mut members = vec![Member::new(&broker, "m", "classic", "t")];
    both_read(&mut members, "the classic member has read all", |members| members[0].partitions() == 3 && all_read(members) == 30);
    eventually(SOON, "the commits are there", || {
        members[0].poll();
        (committed(&members[0], "t") == [10, 10, 10]).then_some(())
    });
    members.push(Member::new(&broker, "m", "consumer", "t"));
    both_read(&mut members, "both have a share", |members| {
        members.iter().all(|member| member.partitions() > 0) && members.iter().map(Member::partitions).sum::<usize>() == 3
    });
    assert_eq!(broker.metric("kafka_server_group_coordinator_metrics_consumer_group_count{state=\"empty\"}"), Some(0.0));
    send(&broker, "t", 10..20);
    both_read(&mut members, "both read on", |members| all_read(members) == 60);
    assert_eq!(members[1].read.iter().map(|(_, _, offset)| *offset).min(), Some(10), "it goes on where the group was");
    members.remove(1);
    both_read(&mut members, "the classic member has all again", |members| members[0].partitions() == 3);
    eventually(SOON, "the gauges know", || {
        members[0].poll();
        (broker.metric("kafka_coordinator_group_groupmetadatamanager_numgroupsstable") == Some(1.0)).then_some(())
    });
}
