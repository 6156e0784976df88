//! Brokers and controllers as several processes: all join, any of them takes what is the controller's, and deaths are noticed soon.

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DescribeClusterRequest, DescribeQuorumRequest, InitProducerIdRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use std::net::TcpListener;
use std::time::Duration;
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, Watch, eventually};

/// Room for a loaded machine beside what is promised for a quiet one.
const LOADED: u32 = 4;

/// Free ports, each of another socket.
fn ports(count: usize) -> Vec<u16> {
    let sockets: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    sockets.iter().map(|socket| socket.local_addr().expect("bound").port()).collect()
}

fn node(id: usize, roles: &str, listeners: String, voters: &str) -> BrokerOptions {
    BrokerOptions { node_id: Some(id as i32), ..BrokerOptions::default() }
        .set("process.roles", roles)
        .set("controller.listener.names", "CONTROLLER")
        .set("listeners", listeners)
        .set("controller.quorum.voters", voters)
        .set("offsets.topic.replication.factor", 1)
}

/// Starts all of them at once: none is ready before a majority of the voters runs.
fn start(options: Vec<BrokerOptions>) -> Vec<Broker> {
    std::thread::scope(|scope| {
        let starting: Vec<_> = options.into_iter().map(|options| scope.spawn(|| Broker::spawn(options))).collect();
        starting.into_iter().map(|broker| broker.join().expect("it starts")).collect()
    })
}

fn combined() -> Vec<Broker> {
    start(three())
}

fn three() -> Vec<BrokerOptions> {
    let ports = ports(6);
    let voters: Vec<String> = (0..3).map(|at| format!("{}@127.0.0.1:{}", at + 1, ports[at])).collect();
    let listeners = |at: usize| format!("PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}", ports[3 + at], ports[at]);
    (0..3).map(|at| node(at + 1, "broker,controller", listeners(at), &voters.join(","))).collect()
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

/// Makes a topic through that node; its error.
fn create(through: &Broker, topic: &str, partitions: i32, replicas: i16) -> i16 {
    let topic = CreatableTopic::default().with_name(name(topic)).with_num_partitions(partitions).with_replication_factor(replicas);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(20_000);
    Conn::open(through.bootstrap()).call(7, &request).topics[0].error_code
}

fn topic(at: &Broker, topic: &str) -> MetadataResponseTopic {
    let asked = MetadataRequestTopic::default().with_name(Some(name(topic)));
    let request = MetadataRequest::default().with_topics(Some(vec![asked])).with_allow_auto_topic_creation(false);
    Conn::open(at.bootstrap()).call(12, &request).topics.remove(0)
}

/// The brokers that node knows, and whether they are fenced.
fn brokers(at: &Broker) -> Vec<(i32, bool)> {
    let answer = Conn::open(at.bootstrap()).call(2, &DescribeClusterRequest::default().with_include_fenced_brokers(true));
    answer.brokers.iter().map(|broker| (broker.broker_id.0, broker.is_fenced)).collect()
}

fn all_alive(at: &Broker, ids: &[i32]) {
    let wanted: Vec<(i32, bool)> = ids.iter().map(|id| (*id, false)).collect();
    eventually(SOON, "all brokers unfenced", || (brokers(at) == wanted).then_some(()));
}

/// Who leads the quorum, asked of any node: place in the list.
fn leader(at: &Broker) -> usize {
    let topic = TopicData::default()
        .with_topic_name(name("__cluster_metadata"))
        .with_partitions(vec![PartitionData::default().with_partition_index(0)]);
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    eventually(SOON, "a leader of the quorum", || {
        let answer = Conn::open(at.bootstrap()).call(2, &request);
        let row = &answer.topics[0].partitions[0];
        (row.error_code == 0).then(|| row.leader_id.0 as usize - 1)
    })
}

fn leads(topic: &MetadataResponseTopic) -> Vec<i32> {
    topic.partitions.iter().map(|partition| partition.leader_id.0).collect()
}

#[test]
fn three_combined_nodes_are_one_cluster() {
    let nodes = combined();
    for (at, node) in nodes.iter().enumerate() {
        all_alive(node, &[1, 2, 3]);
        let made = format!("through-{}", at + 1);
        assert_eq!(create(node, &made, 3, 3), 0, "through node {}", at + 1);
        for (other, reader) in nodes.iter().enumerate() {
            let seen = eventually(SOON, "the topic everywhere", || Some(topic(reader, &made)).filter(|topic| topic.error_code == 0));
            assert_eq!((seen.partitions.len(), seen.partitions[0].isr_nodes.len()), (3, 3), "{made} as node {} sees it", other + 1);
        }
        assert_eq!(create(node, &made, 1, 1), 36, "it exists, says the controller through node {}", at + 1);
    }
    let leaders: Vec<usize> = nodes.iter().map(leader).collect();
    assert_eq!(leaders, [leaders[0]; 3], "every node says the same of the quorum");
    for (at, node) in nodes.iter().enumerate() {
        let active = node.metric("kafka_controller_kafkacontroller_activecontrollercount");
        assert_eq!(active, Some(f64::from(u8::from(at == leaders[0]))), "node {}", at + 1);
    }
    let id = |node: &Broker| {
        let request = InitProducerIdRequest::default().with_transactional_id(None).with_producer_id((-1).into()).with_producer_epoch(-1);
        eventually(SOON, "a producer id", || {
            let answer = Conn::open(node.bootstrap()).call(4, &request);
            (answer.error_code == 0).then_some(answer.producer_id.0)
        })
    };
    let mut ids: Vec<i64> = nodes.iter().map(id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each node has ids of its own: {ids:?}");
}

#[test]
fn the_death_of_the_controller_stops_metadata_for_a_moment() {
    let mut nodes = combined();
    let mut commits = Vec::new();
    for round in 0..3 {
        nodes.iter().for_each(|node| all_alive(node, &[1, 2, 3]));
        let dies = leader(&nodes[0]);
        let survivor = (dies + 1) % 3;
        nodes[dies].kill9();
        let watch = Watch::start();
        assert_eq!(create(&nodes[survivor], &format!("after-{round}"), 1, 1), 0);
        commits.push(watch.elapsed());
        let dead = dies as i32 + 1;
        eventually(SOON, "the dead controller's broker fenced", || brokers(&nodes[survivor]).contains(&(dead, true)).then_some(()));
        println!("round {round}: next commit after {:?}, fenced after {:?}", commits[round], watch.elapsed());
        let restarted = Watch::start();
        nodes[dies].restart();
        println!("round {round}: registered again after {:?}", restarted.elapsed());
    }
    assert!(commits.iter().all(|took| *took < Duration::from_secs(1) * LOADED), "{commits:?}");
}

#[test]
fn a_dead_broker_leads_nothing_soon() {
    let mut nodes = combined();
    nodes.iter().for_each(|node| all_alive(node, &[1, 2, 3]));
    assert_eq!(create(&nodes[0], "led", 12, 3), 0);
    let controller = leader(&nodes[0]);
    let dies = (controller + 1) % 3;
    let (dead, survivor) = (dies as i32 + 1, &nodes[(controller + 2) % 3].bootstrap().to_owned());
    let survivors = (controller + 2) % 3;
    eventually(SOON, "it leads something", || leads(&topic(&nodes[survivors], "led")).contains(&dead).then_some(()));
    nodes[dies].kill9();
    let watch = Watch::start();
    eventually(SOON, "fenced", || brokers(&nodes[survivors]).contains(&(dead, true)).then_some(()));
    let fenced = watch.elapsed();
    let seen = topic(&nodes[survivors], "led");
    assert!(seen.partitions.iter().all(|p| p.leader_id.0 > 0 && p.leader_id.0 != dead), "{survivor}: {:?}", leads(&seen));
    assert!(seen.partitions.iter().all(|p| p.isr_nodes.iter().all(|id| id.0 != dead)), "it is in no ISR");
    let restarted = Watch::start();
    nodes[dies].restart();
    println!("fenced and replaced after {fenced:?}, registered again after {:?}", restarted.elapsed());
    assert!(fenced < Duration::from_secs(1) * LOADED, "{fenced:?}");
    all_alive(&nodes[survivors], &[1, 2, 3]);
}

#[test]
fn a_broker_that_stops_hands_over_first() {
    let mut nodes = combined();
    nodes.iter().for_each(|node| all_alive(node, &[1, 2, 3]));
    assert_eq!(create(&nodes[0], "handed", 12, 3), 0);
    for (stops, looks) in [(1, 2), (0, 2)] {
        let gone = stops as i32 + 1;
        let watch = Watch::start();
        let ended = nodes[stops].terminate();
        println!("node {gone} stopped after {:?}", watch.elapsed());
        assert!(ended.status.success() && ended.said.contains("leaderships are handed over"), "{}", ended.said);
        assert!(brokers(&nodes[looks]).contains(&(gone, true)), "fenced by its own wish before it is gone");
        let seen = topic(&nodes[looks], "handed");
        assert!(!leads(&seen).contains(&gone) && !leads(&seen).contains(&-1), "{:?}", leads(&seen));
        nodes[stops].restart();
        all_alive(&nodes[looks], &[1, 2, 3]);
    }
}

#[test]
fn a_broker_alone_joins_a_controller_alone() {
    let ports = ports(2);
    let voters = format!("1@127.0.0.1:{}", ports[0]);
    let mut nodes = start(vec![
        node(1, "controller", format!("CONTROLLER://127.0.0.1:{}", ports[0]), &voters),
        node(2, "broker", format!("PLAINTEXT://127.0.0.1:{}", ports[1]), &voters),
    ]);
    assert_eq!(brokers(&nodes[1]), [(2, false)]);
    assert_eq!(create(&nodes[1], "t", 2, 1), 0);
    eventually(SOON, "leaders", || (leads(&topic(&nodes[1], "t")) == [2, 2]).then_some(()));
    nodes[0].kill9();
    nodes[0].restart();
    assert_eq!(create(&nodes[1], "after", 1, 1), 0, "the controller came back and the broker found it");
    nodes[1].kill9();
    nodes[1].restart();
    assert_eq!(leads(&topic(&nodes[1], "t")), [2, 2]);
    // Who stops while its controller is gone does not wait for it for ever.
    nodes[0].kill9();
    assert!(nodes[1].terminate().status.success());
}

#[test]
fn the_wiped_and_the_foreign_do_not_get_in() {
    let options = three();
    let mut nodes = start(options.clone());
    nodes.iter().for_each(|node| all_alive(node, &[1, 2, 3]));
    let cluster = Conn::open(nodes[0].bootstrap()).call(2, &DescribeClusterRequest::default()).cluster_id.to_string();
    let keep = leader(&nodes[0]);
    for at in (0..3).filter(|at| *at != keep) {
        nodes[at].kill9();
        // Another home, so an empty directory.
        let ended = Broker::refused(options[at].clone());
        assert!(!ended.status.success() && ended.said.contains(&format!("was a voter of cluster {cluster} already")), "{}", ended.said);
        let ended = Broker::refused(options[at].clone().set("understudy.cluster.id", "MkU3OEVBNTcwNTJENDM2Qg"));
        assert!(ended.said.contains("belong to cluster MkU3OEVBNTcwNTJENDM2Qg") && ended.said.contains(&cluster), "{}", ended.said);
        nodes[at].restart();
        all_alive(&nodes[keep], &[1, 2, 3]);
    }
}
