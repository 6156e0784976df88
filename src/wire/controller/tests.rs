//! What a broker writes, a controller reads; what it answers, the broker reads.

use super::*;
use crate::core::controller::records::{BrokerEpoch, Endpoint, Feature, LeaderRecovery};
use crate::core::controller::request::{AlterPartition, BrokerState, Heartbeat, NewTopic, ProducerIdBlock, Registration, Why};
use crate::core::types::{BrokerId, Epoch, Id, Offset};
use kafka_protocol::messages::{
    AllocateProducerIdsResponse, BrokerHeartbeatResponse, BrokerRegistrationResponse, CreateTopicsRequest, EnvelopeRequest,
    EnvelopeResponse,
};

fn written(request: &Request) -> (i16, Bytes) {
    let (key, versions) = say(request).expect("brokers ask this");
    let version = *versions.end();
    let body = encode(request, version).unwrap().freeze();
    guard::check(key, version, &body).expect("a request that we would take ourselves");
    (version, body)
}

fn registration_of() -> Registration {
    Registration {
        cluster_id: "c".into(),
        broker: BrokerId(3),
        incarnation_id: Id(77),
        endpoints: vec![Endpoint { name: "P".into(), host: "h".into(), port: 9092, security_protocol: SecurityProtocol::SaslSsl }],
        features: vec![Feature { name: "metadata.version".into(), min: 0, max: 30 }],
        rack: Some("r".into()),
        log_dirs: vec![Id(1234)],
        previous_epoch: Some(BrokerEpoch(9)),
        session_alive: false,
    }
}

#[test]
fn requests_come_over_whole() {
    let (version, body) = written(&Request::RegisterBroker(registration_of()));
    assert_eq!(registration(read(body, version).unwrap()), Some(registration_of()));
    let beat = Heartbeat {
        want_fence: true,
        want_shutdown: true,
        offline_dirs: vec![Id(5)],
        ..Heartbeat::new(BrokerId(3), BrokerEpoch(8), Offset(70))
    };
    let (version, body) = written(&Request::Heartbeat(beat.clone()));
    assert_eq!(heartbeat(&read(body, version).unwrap()), beat);
    let row = AlterPartition {
        partition: 2,
        leader_epoch: Epoch(4),
        partition_epoch: Epoch(6),
        isr: vec![(BrokerId(3), BrokerEpoch(8)), (BrokerId(1), BrokerEpoch(2))],
        recovery: LeaderRecovery::Recovering,
    };
    let alter = Request::AlterPartitions { broker: BrokerId(3), broker_epoch: BrokerEpoch(8), topics: vec![(Id(9), vec![row])] };
    let (version, body) = written(&alter);
    assert_eq!(alter_partitions(read(body, version).unwrap(), version), Some(alter));
    let directories = vec![(Id(5), vec![(Id(9), vec![0, 2])])];
    let assign = Request::AssignDirectories { broker: BrokerId(3), broker_epoch: BrokerEpoch(8), directories };
    let (version, body) = written(&assign);
    assert_eq!(assign_directories(read(body, version).unwrap()), assign);
    let topic = NewTopic {
        name: "t".into(),
        partitions: 3,
        replication_factor: -1,
        assignments: vec![],
        configs: vec![("a".into(), Some("b".into()))],
    };
    let (version, body) = written(&Request::CreateTopics { topics: vec![topic], validate_only: false });
    let read: CreateTopicsRequest = read(body, version).unwrap();
    assert_eq!((read.topics[0].name.as_str(), read.topics[0].num_partitions, read.topics[0].configs.len()), ("t", 3, 1));
    assert!(say(&Request::Balance).is_none() && encode(&Request::Balance, 0).is_err());
}

#[test]
fn answers_are_read_and_refusals_told_apart() {
    let answer = |message: &BrokerRegistrationResponse| decode(62, 4, bytes(message, 4).unwrap().freeze());
    let registered = BrokerRegistrationResponse::default().with_broker_epoch(7);
    assert_eq!(answer(&registered), Ok(Answer::RegisterBroker(Ok(BrokerEpoch(7)))));
    let of = |code: ErrorCode| answer(&registered.clone().with_error_code(code.code()));
    assert_eq!(of(ErrorCode::DuplicateBrokerRegistration), Ok(Answer::RegisterBroker(Err(Why::DuplicateBrokerRegistration.into()))));
    assert_eq!(of(ErrorCode::NotController), Err(NoAnswer::NotController));
    assert_eq!(of(ErrorCode::UnknownServerError), Err(NoAnswer::Other(ErrorCode::UnknownServerError)));
    let beaten = BrokerHeartbeatResponse::default().with_is_caught_up(true).with_is_fenced(false).with_should_shut_down(true);
    let state = BrokerState { caught_up: true, fenced: false, shutting_down: false, may_stop: true };
    assert_eq!(decode(63, 1, bytes(&beaten, 1).unwrap().freeze()), Ok(Answer::Heartbeat(Ok(state))));
    let ids = AllocateProducerIdsResponse::default().with_producer_id_start(5000.into()).with_producer_id_len(1000);
    let block = ProducerIdBlock { first: 5000, count: 1000 };
    assert_eq!(decode(67, 0, bytes(&ids, 0).unwrap().freeze()), Ok(Answer::AllocateProducerIds(Ok(block))));
    assert!(matches!(decode(67, 0, Bytes::from_static(b"\0")), Err(NoAnswer::Malformed(_))));
}

#[test]
fn envelopes_say_who_asks_as_kafka_does() {
    let body = envelope(Bytes::from_static(b"request"), [10, 0, 0, 7].into(), 0).unwrap().freeze();
    guard::check(ENVELOPE, 0, &body).unwrap();
    let read: EnvelopeRequest = read(body, 0).unwrap();
    assert_eq!((&read.request_data[..], &read.client_host_address[..]), (&b"request"[..], &[10, 0, 0, 7][..]));
    assert_eq!(read.request_principal.as_deref(), Some(&b"\0\0\x05User\x0aANONYMOUS\0\0"[..]));
    let answer = |answer: EnvelopeResponse| opened(0, bytes(&answer, 0).unwrap().freeze());
    let good = EnvelopeResponse::default().with_response_data(Some(Bytes::from_static(b"answer")));
    assert_eq!(answer(good.clone()), Ok(Bytes::from_static(b"answer")));
    assert_eq!(answer(good.with_error_code(ErrorCode::NotController.code())), Err(NoAnswer::NotController));
    assert!(answer(EnvelopeResponse::default().with_response_data(None)).is_err());
}
