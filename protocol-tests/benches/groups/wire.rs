//! A broker as its clients see it: CPU time of its process for each heartbeat and each commit, memory for ten thousand groups, and how long
//! a million offsets take to load after a restart.
//!
//! CPU time and not the clock, because clients and broker share this machine's cores.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use understudy_protocol_tests::patience::{SOON, Watch};
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, eventually};

use crate::report;

const TOPIC: &str = "read";
const PARTITIONS: i32 = 1_000;
/// Connections that have a request under way at any time.
const CLIENTS: usize = 64;

/// All of them.
pub fn run() {
    let options = BrokerOptions::default().set("group.initial.rebalance.delay.ms", 0).set("offsets.topic.num.partitions", 1);
    let mut broker = Broker::spawn(options.set("group.max.session.timeout.ms", 1_800_000));
    prepare(&broker);
    heartbeats(&broker);
    commits(&broker);
    memory(&broker);
    loading(&mut broker);
}

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn group(name: &str) -> GroupId {
    GroupId(text(name))
}

fn prepare(broker: &Broker) {
    let mut conn = Conn::open(broker.bootstrap());
    let topic = CreatableTopic::default().with_name(TopicName(text(TOPIC))).with_num_partitions(PARTITIONS).with_replication_factor(1);
    let made = conn.call(5, &CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000));
    assert_eq!(made.topics[0].error_code, 0, "{made:?}");
    let find = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
    eventually(SOON, "a coordinator", || (conn.call(4, &find).coordinators[0].error_code == 0).then_some(()));
    eventually(SOON, "the coordinator to have loaded", || (commit_of(&mut conn, "g", 0..1, 1) == 0).then_some(()));
}

fn commit_request(name: &str, partitions: std::ops::Range<i32>, offset: i64) -> OffsetCommitRequest {
    let partitions = partitions.map(|index| {
        let partition = OffsetCommitRequestPartition::default().with_partition_index(index).with_committed_offset(offset);
        partition.with_committed_metadata(Some(StrBytes::default()))
    });
    let topic = OffsetCommitRequestTopic::default().with_name(TopicName(text(TOPIC))).with_partitions(partitions.collect());
    OffsetCommitRequest::default().with_group_id(group(name)).with_generation_id_or_member_epoch(-1).with_topics(vec![topic])
}

fn commit_of(conn: &mut Conn, name: &str, partitions: std::ops::Range<i32>, offset: i64) -> i16 {
    let answer = conn.call(8, &commit_request(name, partitions, offset));
    answer.topics[0].partitions.iter().map(|partition| partition.error_code).find(|code| *code != 0).unwrap_or(0)
}

/// The one member of a group of its own, in its first generation.
fn member(conn: &mut Conn, name: &str) -> StrBytes {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(Bytes::from_static(&[0; 40]));
    let join = JoinGroupRequest::default()
        .with_group_id(group(name))
        .with_session_timeout_ms(1_800_000)
        .with_rebalance_timeout_ms(30_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let told = conn.call(5, &join);
    assert_eq!(told.error_code, 79, "a member id is to be used");
    let joined = conn.call(5, &join.with_member_id(told.member_id));
    assert_eq!((joined.error_code, joined.generation_id), (0, 1), "{joined:?}");
    let id = joined.member_id;
    let row = SyncGroupRequestAssignment::default().with_member_id(id.clone()).with_assignment(Bytes::from_static(&[0; 60]));
    let sync = SyncGroupRequest::default().with_group_id(group(name)).with_generation_id(1).with_member_id(id.clone());
    let synced = conn.call(3, &sync.with_assignments(vec![row]));
    assert_eq!(synced.error_code, 0);
    id
}

/// Sends each connection's frame and takes its answer, all at the same time, for so many rounds. CPU time that the broker took for them.
fn rounds(broker: &Broker, count: usize, frames: &[Bytes], check: impl Fn(Bytes)) -> (Duration, Duration) {
    let mut conns: Vec<Conn> = frames.iter().map(|_| Conn::open(broker.bootstrap())).collect();
    let mut round = || {
        conns.iter_mut().zip(frames).for_each(|(conn, frame)| conn.write_frame(frame));
        conns.iter_mut().for_each(|conn| check(conn.read_frame().expect("an answer")));
    };
    (0..20).for_each(|_| round());
    let (before, watch) = (broker.cpu_time(), Watch::start());
    (0..count).for_each(|_| round());
    (broker.cpu_time() - before, watch.elapsed())
}

fn heartbeats(broker: &Broker) {
    let mut conn = Conn::open(broker.bootstrap());
    let frames: Vec<Bytes> = (0..CLIENTS)
        .map(|at| {
            let name = format!("beating-{at}");
            let id = member(&mut conn, &name);
            Conn::frame(1, 3, &HeartbeatRequest::default().with_group_id(group(&name)).with_generation_id(1).with_member_id(id))
        })
        .collect();
    let count = 2_000;
    let check = |frame| assert_eq!(Conn::answer::<HeartbeatRequest>(1, 3, frame).error_code, 0);
    let (cpu, clock) = rounds(broker, count, &frames, check);
    println!("heartbeats over the wire: {:.0} a second", (count * CLIENTS) as f64 / clock.as_secs_f64());
    report("heartbeat over the wire, CPU", cpu, count * CLIENTS, Duration::from_micros(10));
}

fn commits(broker: &Broker) {
    let frames: Vec<Bytes> = (0..CLIENTS as i32).map(|at| Conn::frame(1, 8, &commit_request("committing", at..at + 1, 1_000))).collect();
    let count = 3_000;
    let check = |frame| assert_eq!(Conn::answer::<OffsetCommitRequest>(1, 8, frame).topics[0].partitions[0].error_code, 0);
    let (cpu, clock) = rounds(broker, count, &frames, check);
    println!("commits over the wire: {:.0} a second", (count * CLIENTS) as f64 / clock.as_secs_f64());
    report("commit of one partition over the wire, CPU", cpu, count * CLIENTS, Duration::from_micros(20));
}

fn memory(broker: &Broker) {
    let mut conn = Conn::open(broker.bootstrap());
    let before = broker.resident_bytes();
    for at in 0..10_000 {
        let name = format!("service-{at}-consumers");
        let id = member(&mut conn, &name);
        let mut request = commit_request(&name, 0..10, 1);
        (request.member_id, request.generation_id_or_member_epoch) = (id, 1);
        assert_eq!(conn.call(8, &request).topics[0].partitions[9].error_code, 0);
    }
    let grown = (broker.resident_bytes().saturating_sub(before)) >> 20;
    println!("10,000 groups of a member and ten offsets each: {grown} MiB (limit 100 MiB)");
    assert!(grown <= 100);
}

fn loading(broker: &mut Broker) {
    let mut conn = Conn::open(broker.bootstrap());
    for at in 0..1_000 {
        assert_eq!(commit_of(&mut conn, &format!("reader-{at}"), 0..PARTITIONS, at), 0);
    }
    drop(conn);
    let ended = broker.terminate();
    assert!(ended.status.success(), "{}", ended.said);
    broker.restart();
    let start = Watch::start();
    let mut conn = Conn::open(broker.bootstrap());
    let topic = OffsetFetchRequestTopics::default().with_name(TopicName(text(TOPIC))).with_partition_indexes((0..PARTITIONS).collect());
    let fetch = |at: i64| {
        let asked = OffsetFetchRequestGroup::default().with_group_id(group(&format!("reader-{at}"))).with_topics(Some(vec![topic.clone()]));
        OffsetFetchRequest::default().with_groups(vec![asked])
    };
    eventually(SOON, "the offsets to be loaded", || (conn.call(8, &fetch(0)).groups[0].error_code == 0).then_some(()));
    let (took, cpu) = (start.elapsed(), broker.cpu_time());
    for at in 0..1_000 {
        let rows = conn.call(8, &fetch(at)).groups.remove(0).topics.remove(0).partitions;
        assert!(rows.len() == PARTITIONS as usize && rows.iter().all(|row| row.committed_offset == at), "all are back");
    }
    println!("loading 1,000,000 offsets after a restart: {took:?} by the clock (limit 1s on an idle machine)");
    report("loading 1,000,000 offsets and what else a start takes, CPU", cpu, 1, Duration::from_secs(1));
    println!("resident after loading them: {} MiB", broker.resident_bytes() >> 20);
}
