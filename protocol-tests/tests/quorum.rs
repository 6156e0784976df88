//! Three controllers as processes: they elect, the leader is killed again and again, and all have the same log in the end.

use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::{ApiVersionsRequest, DescribeQuorumRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::net::TcpListener;
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, eventually};

const LOG: &str = "__cluster_metadata-0/00000000000000000000.log";

/// Free ports, each of another socket.
fn ports() -> Vec<u16> {
    let sockets: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    sockets.iter().map(|socket| socket.local_addr().expect("bound").port()).collect()
}

fn controllers() -> Vec<Broker> {
    let ports = ports();
    let voters: Vec<String> = ports.iter().enumerate().map(|(at, port)| format!("{}@127.0.0.1:{port}", at + 1)).collect();
    let options = |at: usize| BrokerOptions { node_id: Some(at as i32 + 1), ..BrokerOptions::default() };
    let start = |(at, port): (usize, &u16)| {
        let options = options(at)
            .set("process.roles", "controller")
            .set("controller.listener.names", "CONTROLLER")
            .set("listeners", format!("CONTROLLER://127.0.0.1:{port}"))
            .set("controller.quorum.voters", voters.join(","))
            .set("understudy.cluster.id", "MkU3OEVBNTcwNTJENDM2Qg");
        Broker::spawn(options)
    };
    ports.iter().enumerate().map(start).collect()
}

/// Epoch, high watermark and slowest voter's log end, if the node leads.
fn leads(node: &Broker) -> Option<(i32, i64, i64)> {
    let partition = PartitionData::default().with_partition_index(0);
    let name = TopicName(StrBytes::from_static_str("__cluster_metadata"));
    let topic = TopicData::default().with_topic_name(name).with_partitions(vec![partition]);
    let mut conn = Conn::try_open(node.bootstrap()).ok()?;
    let answer = conn.call(2, &DescribeQuorumRequest::default().with_topics(vec![topic]));
    let row = &answer.topics[0].partitions[0];
    let slowest = row.current_voters.iter().map(|voter| voter.log_end_offset).min().unwrap_or(-1);
    (row.error_code == 0 && row.high_watermark > 0).then_some((row.leader_epoch, row.high_watermark, slowest))
}

fn leader(nodes: &[Broker], but: Option<usize>) -> (usize, i32) {
    eventually(SOON, "a leader of the quorum", || {
        (0..nodes.len()).filter(|at| Some(*at) != but).find_map(|at| Some((at, leads(&nodes[at])?.0)))
    })
}

#[test]
fn three_controllers_survive_the_death_of_their_leader_again_and_again() {
    let mut nodes = controllers();
    let (mut led, mut epoch) = leader(&nodes, None);
    for _ in 0..4 {
        nodes[led].kill9();
        let (next, newer) = leader(&nodes, Some(led));
        assert!(next != led && newer > epoch, "node {} leads epoch {newer} after node {} led {epoch}", next + 1, led + 1);
        nodes[led].restart();
        (led, epoch) = (next, newer);
        eventually(SOON, "all voters with all of the log", || leads(&nodes[led]).filter(|(_, end, slowest)| end == slowest));
    }
    // An orderly stop names a successor, who needs no timeout to take over.
    nodes[led].terminate();
    let (next, newer) = leader(&nodes, Some(led));
    assert!(newer > epoch);
    nodes[led].restart();
    eventually(SOON, "all voters with all of the log", || leads(&nodes[next]).filter(|(_, end, slowest)| end == slowest));
    nodes.iter_mut().for_each(Broker::kill9);
    let logs: Vec<Vec<u8>> = nodes.iter().map(|node| std::fs::read(node.data_dir().join(LOG)).expect("a log")).collect();
    assert!(
        !logs[0].is_empty() && logs[0] == logs[1] && logs[1] == logs[2],
        "logs of {:?} bytes",
        logs.iter().map(Vec::len).collect::<Vec<_>>()
    );
}

#[test]
fn a_controllers_listener_serves_the_quorum_and_no_clients() {
    let nodes = controllers();
    let answer = Conn::open(nodes[0].bootstrap())
        .call(3, &ApiVersionsRequest::default().with_client_software_name(word()).with_client_software_version(word()));
    let keys: Vec<i16> = answer.api_keys.iter().map(|api| api.api_key).collect();
    assert_eq!(keys, [1, 18, 52, 53, 54, 55, 59]);
}

fn word() -> StrBytes {
    StrBytes::from_static_str("test")
}
