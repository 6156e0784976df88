//! The edge of the broker: framing, order, refusals, and what one peer may cost another.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, FetchRequest, MetadataRequest, TopicName};
use kafka_protocol::protocol::{Decodable, StrBytes};
use understudy_protocol_tests::patience::SOON;
use understudy_protocol_tests::{Broker, BrokerOptions, Conn, Running, Watch, eventually};

fn answers(conn: &mut Conn) {
    assert_eq!(conn.call(0, &ApiVersionsRequest::default()).error_code, 0);
}

/// A fetch that finds nothing and waits for it.
fn waiting_fetch(topic: &str, max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(TopicName(StrBytes::from_string(topic.into()))).with_partitions(vec![partition]);
    FetchRequest::default().with_max_wait_ms(max_wait_ms).with_min_bytes(1).with_max_bytes(1 << 20).with_topics(vec![topic])
}

/// Makes a topic by asking for it, and waits until it can be read.
fn auto_create(bootstrap: &str, topic: &str) {
    use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
    let mut conn = Conn::open(bootstrap);
    let name = TopicName(StrBytes::from_string(topic.into()));
    let wanted = MetadataRequest::default()
        .with_topics(Some(vec![MetadataRequestTopic::default().with_name(Some(name))]))
        .with_allow_auto_topic_creation(true);
    eventually(SOON, "a topic made by asking for it", || {
        let topic = conn.call(9, &wanted).topics.remove(0);
        (topic.error_code == 0).then_some(())
    });
    let look = waiting_fetch(topic, 0);
    eventually(SOON, "a leader that serves", || (conn.call(11, &look).responses[0].partitions[0].error_code == 0).then_some(()));
}

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let broker = Running::start();
    auto_create(broker.bootstrap(), "pipelined");
    let mut conn = Conn::open(broker.bootstrap());
    let fetch = waiting_fetch("pipelined", 300);
    let watch = Watch::start();
    let first = conn.post(11, &fetch);
    let rest: Vec<i32> = (0..50).map(|_| conn.post(0, &ApiVersionsRequest::default())).collect();
    let metadata = conn.post(12, &MetadataRequest::default().with_topics(Some(vec![])));
    assert_eq!(conn.take::<FetchRequest>(11, first).error_code, 0);
    assert!(watch.elapsed() >= Duration::from_millis(250), "the fetch was answered after {:?} without having waited", watch.elapsed());
    for correlation in rest {
        assert_eq!(conn.take::<ApiVersionsRequest>(0, correlation).error_code, 0);
    }
    assert_eq!(conn.take::<MetadataRequest>(12, metadata).brokers.len(), 1);
}

#[test]
fn a_frame_may_come_in_pieces() {
    let broker = Running::start();
    let frame = Conn::frame(
        7,
        3,
        &ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("x"))
            .with_client_software_version(StrBytes::from_static_str("1")),
    );
    let mut whole = BytesMut::new();
    whole.put_i32(frame.len() as i32);
    whole.extend_from_slice(&frame);
    let mut conn = Conn::open(broker.bootstrap());
    let mut half = Conn::open(broker.bootstrap());
    half.write_raw(&whole[..whole.len() / 2]);
    for byte in whole.iter() {
        conn.write_raw(&[*byte]);
    }
    let answer = Conn::answer::<ApiVersionsRequest>(7, 3, conn.read_frame().expect("an answer"));
    assert_eq!(answer.error_code, 0);
    half.write_raw(&whole[whole.len() / 2..]);
    half.write_raw(&whole);
    for _ in 0..2 {
        assert_eq!(Conn::answer::<ApiVersionsRequest>(7, 3, half.read_frame().expect("an answer")).error_code, 0);
    }
    half.write_raw(&whole[..5]);
    half.finish_writing();
    half.expect_close("half a frame and no more");
}

#[test]
fn what_is_not_kafka_closes_and_costs_nobody_else() {
    let broker = Running::start();
    let header = |key: i16, version: i16| {
        let mut frame = BytesMut::new();
        frame.put_i16(key);
        frame.put_i16(version);
        frame.put_i32(1);
        frame.put_i16(-1);
        frame.freeze()
    };
    let framed = |frame: Bytes| {
        let mut whole = BytesMut::new();
        whole.put_i32(frame.len() as i32);
        whole.extend_from_slice(&frame);
        whole.freeze()
    };
    let table: [(&str, Bytes); 9] = [
        ("an unknown key", framed(header(9999, 0))),
        ("a negative key", framed(header(-1, 0))),
        ("a version of Metadata that does not exist", framed(header(3, 99))),
        ("a negative version of Metadata", framed(header(3, -1))),
        ("a body that ends early", framed(header(3, 4))),
        ("an empty frame", framed(Bytes::new())),
        ("a negative length", Bytes::from_static(&[0xff, 0xff, 0xff, 0xff])),
        ("a length beyond socket.request.max.bytes", Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff])),
        ("HTTP", Bytes::from_static(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")),
    ];
    let mut bystander = Conn::open(broker.bootstrap());
    for (what, bytes) in table {
        let mut conn = Conn::open(broker.bootstrap());
        conn.write_raw(&bytes);
        conn.expect_close(what);
        answers(&mut bystander);
    }
}

#[test]
fn tls_and_http_on_the_kafka_port_are_recognised() {
    let broker = Broker::spawn(BrokerOptions::default());
    // A TLS 1.x record: handshake, 3.1, 512 bytes, client hello.
    let hello = [&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03][..], &[7; 506]].concat();
    for (bytes, word) in [(&hello[..], "TLS"), (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP")] {
        let mut conn = Conn::open(broker.bootstrap());
        conn.write_raw(bytes);
        conn.expect_close(word);
        eventually(SOON, &format!("a line in the log about {word}"), || broker.said().contains(word).then_some(()));
    }
}

/// KIP-511: a client that is too new learns what the broker speaks, in the oldest layout.
#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let broker = Running::start();
    let mut conn = Conn::open(broker.bootstrap());
    let mut frame = BytesMut::new();
    frame.put_i16(18);
    frame.put_i16(99);
    frame.put_i32(5);
    frame.put_i16(-1);
    frame.put_u8(0); // no tagged fields: versions from 3 on have header 2
    frame.put_slice(b"a body that nobody knows");
    conn.write_frame(&frame);
    let mut answer = conn.read_frame().expect("an answer");
    assert_eq!(answer.split_to(4), 5i32.to_be_bytes()[..], "correlation id");
    let answer_v0 = ApiVersionsResponse::decode(&mut answer, 0).expect("version 0");
    assert!(answer.is_empty(), "{} bytes after it", answer.len());
    assert_eq!(answer_v0.error_code, 35);
    let ranges: Vec<_> = answer_v0.api_keys.iter().map(|api| api.api_key).collect();
    assert_eq!(ranges, [18], "it says which versions of ApiVersions exist, and nothing else");
    answers(&mut conn);
}

#[test]
fn a_connection_without_requests_is_closed() {
    let broker = Broker::spawn(BrokerOptions::default().set("connections.max.idle.ms", 1_000));
    let mut idle = Conn::open(broker.bootstrap());
    answers(&mut idle);
    let mut never_spoke = Conn::open(broker.bootstrap());
    let watch = Watch::start();
    let closed = std::thread::spawn(move || {
        idle.expect_close("idle");
        never_spoke.expect_close("idle from the start");
        watch.elapsed()
    });
    let mut busy = Conn::open(broker.bootstrap());
    eventually(SOON, "the idle connections' end", || {
        answers(&mut busy);
        closed.is_finished().then_some(())
    });
    let after = closed.join().expect("closed, not answered");
    assert!(after >= Duration::from_millis(900), "closed after {after:?}");
    answers(&mut busy);
}

#[test]
fn a_connection_whose_answer_is_on_its_way_is_not_idle() {
    let broker = Broker::spawn(BrokerOptions::default().set("connections.max.idle.ms", 500));
    auto_create(broker.bootstrap(), "slow");
    let mut conn = Conn::open(broker.bootstrap());
    assert_eq!(conn.call(11, &waiting_fetch("slow", 2_000)).error_code, 0);
}

#[test]
fn connections_per_address_are_counted() {
    let broker = Broker::spawn(BrokerOptions::default().set("max.connections.per.ip", 2));
    let mut first = Conn::open(broker.bootstrap());
    let mut second = Conn::open(broker.bootstrap());
    answers(&mut first);
    answers(&mut second);
    if let Ok(mut third) = Conn::try_open(broker.bootstrap()) {
        third.expect_close("one too many");
    }
    answers(&mut first);
    drop(second);
    eventually(SOON, "room for another connection", || {
        let mut next = Conn::try_open(broker.bootstrap()).ok()?;
        next.try_write_raw(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff]).ok()?;
        next.read_frame().map(|_| ())
    });
    answers(&mut first);
}

/// Memory is counted as bytes arrive: peers that announce much and send little cost themselves only. (Apache Kafka reserves what they
/// announce, and twenty of them stop it.)
#[test]
fn announced_bytes_are_not_memory() {
    let broker = Broker::spawn(BrokerOptions::default().set("queued.max.request.bytes", 64 << 20));
    answers(&mut Conn::open(broker.bootstrap()));
    let before = broker.resident_bytes();
    let liars: Vec<Conn> = (0..40)
        .map(|_| {
            let mut conn = Conn::open(broker.bootstrap());
            let mut bytes = BytesMut::new();
            bytes.put_i32(100 << 20);
            bytes.put_slice(&[0, 0, 0, 9, 0, 0, 0, 1]);
            conn.write_raw(&bytes);
            conn
        })
        .collect();
    for _ in 0..10 {
        answers(&mut Conn::open(broker.bootstrap()));
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "{} liars cost {grown} bytes", liars.len());
}
