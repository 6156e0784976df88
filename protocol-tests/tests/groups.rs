//! A consumer group by hand: a member joins, is assigned, commits and leaves, and what of that is there after kill -9.

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::StrBytes;
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::records::Batch;
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, eventually};

const TOPIC: &str = "read";
const GROUP: &str = "readers";
const ASSIGNMENT: &[u8] = b"what the leader says";

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn group() -> GroupId {
    GroupId(text(GROUP))
}

fn topic() -> TopicName {
    TopicName(text(TOPIC))
}

fn broker() -> Broker {
    Broker::spawn(BrokerOptions::default().set("group.initial.rebalance.delay.ms", 0).set("offsets.topic.num.partitions", 4))
}

/// A connection to the group's coordinator, which has to be made first.
fn coordinator(broker: &Broker) -> Conn {
    let mut conn = Conn::open(broker.bootstrap());
    let topics = vec![MetadataRequestTopic::default().with_name(Some(topic()))];
    conn.call(9, &MetadataRequest::default().with_topics(Some(topics)).with_allow_auto_topic_creation(true));
    let find = FindCoordinatorRequest::default().with_coordinator_keys(vec![text(GROUP)]);
    eventually(SOON, "a coordinator", || {
        let found = conn.call(4, &find).coordinators.remove(0);
        assert!([0, 15].contains(&found.error_code), "{found:?}");
        (found.error_code == 0).then(|| assert_eq!(broker.bootstrap(), format!("{}:{}", found.host.as_str(), found.port)))
    });
    conn
}

/// A member of the group.
struct Member {
    conn: Conn,
    id: StrBytes,
    generation: i32,
}

impl Member {
    /// Joins alone and is assigned what it says itself.
    fn join(mut conn: Conn) -> Member {
        let protocol = JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(Bytes::from_static(b"wants"));
        let join = |id: StrBytes| {
            JoinGroupRequest::default()
                .with_group_id(group())
                .with_session_timeout_ms(30_000)
                .with_rebalance_timeout_ms(30_000)
                .with_member_id(id)
                .with_protocol_type(text("consumer"))
                .with_protocols(vec![protocol.clone()])
        };
        let told = conn.call(5, &join(StrBytes::default()));
        assert_eq!((told.error_code, told.member_id.is_empty()), (79, false), "{told:?}");
        let joined = conn.call(5, &join(told.member_id));
        assert_eq!((joined.error_code, joined.members.len(), &joined.leader), (0, 1, &joined.member_id), "{joined:?}");
        let mut member = Member { conn, id: joined.member_id, generation: joined.generation_id };
        let assigned = member.sync(ASSIGNMENT);
        assert_eq!(assigned, ASSIGNMENT);
        member
    }

    fn sync(&mut self, assignment: &'static [u8]) -> Bytes {
        let row = SyncGroupRequestAssignment::default().with_member_id(self.id.clone()).with_assignment(Bytes::from_static(assignment));
        let sync = SyncGroupRequest::default().with_group_id(group()).with_generation_id(self.generation).with_member_id(self.id.clone());
        let synced = self.conn.call(3, &sync.with_assignments(vec![row]));
        assert_eq!(synced.error_code, 0, "{synced:?}");
        synced.assignment
    }

    fn heartbeat(&mut self) -> i16 {
        let beat = HeartbeatRequest::default().with_group_id(group()).with_generation_id(self.generation).with_member_id(self.id.clone());
        self.conn.call(3, &beat).error_code
    }

    fn commit(&mut self, offset: i64) -> i16 {
        let partition = OffsetCommitRequestPartition::default().with_partition_index(0).with_committed_offset(offset);
        let topic = OffsetCommitRequestTopic::default().with_name(topic()).with_partitions(vec![partition]);
        let commit = OffsetCommitRequest::default()
            .with_group_id(group())
            .with_generation_id_or_member_epoch(self.generation)
            .with_member_id(self.id.clone())
            .with_topics(vec![topic]);
        self.conn.call(7, &commit).topics[0].partitions[0].error_code
    }
}

/// The group's committed offset; -1 if there is none.
fn committed(broker: &Broker) -> i64 {
    let topic = OffsetFetchRequestTopics::default().with_name(topic()).with_partition_indexes(vec![0]);
    let asked = OffsetFetchRequestGroup::default().with_group_id(group()).with_topics(Some(vec![topic]));
    let fetch = OffsetFetchRequest::default().with_groups(vec![asked]);
    let mut conn = Conn::open(broker.bootstrap());
    // After a restart the coordinator may still be loading.
    let answer = eventually(SOON, "a coordinator that has loaded", || {
        let answer = conn.call(8, &fetch).groups.remove(0);
        (answer.error_code != 14).then_some(answer)
    });
    assert_eq!(answer.error_code, 0, "{answer:?}");
    answer.topics[0].partitions[0].committed_offset
}

#[test]
fn a_member_lives_through_kill_9_and_so_do_its_offsets() {
    let mut broker = broker();
    let mut member = Member::join(coordinator(&broker));
    assert_eq!((committed(&broker), member.commit(17), committed(&broker)), (-1, 0, 17));
    for offset in 18..22 {
        broker.kill9();
        broker.restart();
        member.conn = Conn::open(broker.bootstrap());
        assert_eq!(committed(&broker), offset - 1);
        assert_eq!(member.heartbeat(), 0, "its session goes on");
        assert_eq!(member.sync(b"too late"), ASSIGNMENT, "and so does its assignment");
        assert_eq!(member.commit(offset), 0);
    }
}

#[test]
fn a_group_is_shown_while_it_lives_and_after() {
    let broker = broker();
    let mut member = Member::join(coordinator(&broker));
    let gauge = |state: &str| broker.metric(&format!("kafka_coordinator_group_groupmetadatamanager_numgroups{state}"));
    eventually(SOON, "a stable group in the metrics", || (gauge("stable") == Some(1.0) && gauge("") == Some(1.0)).then_some(()));
    let describe = DescribeGroupsRequest::default().with_groups(vec![group()]);
    let described = member.conn.call(4, &describe).groups.remove(0);
    assert_eq!((described.group_state.as_str(), described.members.len()), ("Stable", 1));
    assert_eq!(described.members[0].member_assignment, ASSIGNMENT);
    assert_eq!(member.commit(1), 0);
    let leave = LeaveGroupRequest::default().with_group_id(group()).with_member_id(member.id.clone());
    assert_eq!(member.conn.call(2, &leave).error_code, 0);
    assert_eq!(member.heartbeat(), 25, "who left is unknown");
    eventually(SOON, "an empty group in the metrics", || (gauge("empty") == Some(1.0) && gauge("stable") == Some(0.0)).then_some(()));
    let delete = DeleteGroupsRequest::default().with_groups_names(vec![group()]);
    assert_eq!(member.conn.call(1, &delete).results[0].error_code, 0);
    assert_eq!(member.conn.call(0, &ListGroupsRequest::default()).groups.len(), 0);
    assert_eq!(committed(&broker), -1);
}

#[test]
fn an_unknown_member_is_refused() {
    let broker = broker();
    let mut member = Member::join(coordinator(&broker));
    let own = std::mem::replace(&mut member.id, text("nobody"));
    assert_eq!((member.heartbeat(), member.commit(1)), (25, 25));
    member.id = own;
    member.generation += 1;
    assert_eq!((member.heartbeat(), member.commit(1)), (22, 22));
    assert_eq!(committed(&broker), -1);
}

#[test]
fn lag_is_shown_to_who_asks_for_it() {
    let mut broker = broker();
    let mut member = Member::join(coordinator(&broker));
    let batch = Batch::of(&["a", "b", "c", "d", "e"]).encode();
    let partition = PartitionProduceData::default().with_index(0).with_records(Some(batch));
    let data = vec![TopicProduceData::default().with_name(topic()).with_partition_data(vec![partition])];
    let produced = member.conn.call(9, &ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(data));
    assert_eq!(produced.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(member.commit(2), 0);
    let show = |broker: &Broker| {
        let (status, text) = broker.http("/metrics?profile=kafka_exporter");
        assert_eq!(status, 200, "{text}");
        assert!(!text.contains("understudy_"), "only what is asked for");
        let mut lines: Vec<String> = text.lines().filter_map(|line| Some(line.strip_prefix("kafka_consumergroup_")?.to_owned())).collect();
        lines.sort_unstable();
        lines
    };
    let mut expected = [
        "current_offset_sum{consumergroup=\"readers\",topic=\"read\"} 2",
        "current_offset{consumergroup=\"readers\",topic=\"read\",partition=\"0\"} 2",
        "lag_sum{consumergroup=\"readers\",topic=\"read\"} 3",
        "lag{consumergroup=\"readers\",topic=\"read\",partition=\"0\"} 3",
        "members{consumergroup=\"readers\"} 1",
    ]
    .map(str::to_owned)
    .to_vec();
    expected.sort_unstable();
    assert_eq!(show(&broker), expected);
    assert!(!broker.metrics().contains("kafka_consumergroup_"), "only if asked for");
    // Nobody has opened the topic's log since: the scrape does.
    broker.kill9();
    broker.restart();
    eventually(SOON, "the lag after a restart", || (show(&broker) == expected).then_some(()));
}
