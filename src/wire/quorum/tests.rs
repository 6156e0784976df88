//! Everything that nodes say comes back the same, in every version, and answers are walked before they are decoded.

use super::*;
use crate::core::quorum::message::*;
use crate::core::quorum::records::SnapshotId;
use crate::core::types::{Epoch, Offset};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages;
use kafka_protocol::protocol::{Decodable, Encodable};

fn asking() -> Asking {
    Asking { cluster_id: "MkU3OEVBNTcwNTJENDM2Qg".into(), listener: ("CONTROLLER".into(), "host1".into(), 9093) }
}

fn requests() -> Vec<Request> {
    let (two, three) = (BrokerId(2), BrokerId(3));
    vec![
        Request::Vote(VoteRequest {
            voter: Some((two, Id::ZERO)),
            candidate: three,
            directory: Id(77),
            epoch: Epoch(5),
            last_epoch: Epoch(4),
            log_end: Offset(99),
            pre_vote: true,
        }),
        Request::BeginEpoch(BeginEpoch { voter: Some((two, Id::ZERO)), leader: three, epoch: Epoch(5) }),
        Request::EndEpoch(EndEpoch { leader: three, epoch: Epoch(5), successors: vec![(two, Id(7)), (BrokerId(1), Id::ZERO)] }),
        Request::Fetch(FetchRequest {
            replica: two,
            directory: Id(7),
            epoch: Epoch(5),
            offset: Offset(99),
            last_epoch: Epoch(4),
            max_wait: 500,
            max_bytes: 1 << 20,
            high_watermark: Some(Offset(90)),
        }),
        Request::FetchSnapshot(SnapshotRequest {
            replica: two,
            directory: Id(7),
            epoch: Epoch(5),
            id: SnapshotId { end: Offset(50), epoch: Epoch(2) },
            position: 1 << 20,
            max_bytes: 4096,
        }),
    ]
}

fn read(key: i16, version: i16, body: BytesMut) -> Option<Request> {
    crate::wire::guard::check(key, version, &body).expect("what we write passes the guard");
    let mut body = body.freeze();
    match key {
        1 => fetch(messages::FetchRequest::decode(&mut body, version).unwrap(), version),
        52 => vote(messages::VoteRequest::decode(&mut body, version).unwrap()),
        53 => begin(messages::BeginQuorumEpochRequest::decode(&mut body, version).unwrap()),
        54 => end(messages::EndQuorumEpochRequest::decode(&mut body, version).unwrap()),
        _ => snapshot(messages::FetchSnapshotRequest::decode(&mut body, version).unwrap()),
    }
}

#[test]
fn requests_come_back_the_same() {
    for request in requests() {
        for version in versions(&request) {
            let body = encode(&request, version, &asking()).unwrap_or_else(|e| panic!("{request:?} v{version}: {e}"));
            let got = read(key(&request), version, body).unwrap();
            if version == *versions(&request).end() {
                assert_eq!(got, request);
            }
            assert_eq!(key(&got), key(&request));
        }
    }
    let Request::Vote(mut vote) = requests().remove(0) else { panic!("a vote") };
    assert_eq!(versions(&Request::Vote(vote)), 2..=2, "a pre-vote cannot be said in an older version");
    vote.pre_vote = false;
    assert_eq!(versions(&Request::Vote(vote)), 0..=2);
}

#[test]
fn what_is_about_another_topic_is_no_request_of_the_quorum() {
    let one = |topic: &'static str, index| {
        let partition = messages::vote_request::PartitionData::default().with_partition_index(index);
        let data = messages::vote_request::TopicData::default();
        data.with_topic_name(TopicName(StrBytes::from_static_str(topic))).with_partitions(vec![partition])
    };
    let of = |topics| vote(messages::VoteRequest::default().with_topics(topics));
    assert!(of(vec![one(TOPIC, 0)]).is_some());
    for topics in [vec![], vec![one("t", 0)], vec![one(TOPIC, 1)], vec![one(TOPIC, 0), one(TOPIC, 0)]] {
        assert_eq!(of(topics), None);
    }
}

fn answers() -> Vec<Response> {
    let head = Head { refused: None, epoch: Epoch(5), leader: Some(BrokerId(3)) };
    let refused = Head { refused: Some(Problem::FencedEpoch), leader: None, ..head };
    let fetched = |detour, bytes: &'static [u8]| {
        let records = Records { batches: Vec::new(), bytes: Bytes::from_static(bytes) };
        Response::Fetch(Fetched { head, high_watermark: Some(Offset(9)), log_start: Offset(4), detour, records })
    };
    let id = SnapshotId { end: Offset(50), epoch: Epoch(2) };
    vec![
        Response::Vote { head, granted: true },
        Response::Vote { head: refused, granted: false },
        Response::BeginEpoch(head),
        Response::EndEpoch(refused),
        fetched(None, b"batches"),
        fetched(Some(Detour::Diverging { epoch: Epoch(2), end: Offset(7) }), b""),
        fetched(Some(Detour::Snapshot(id)), b""),
        Response::FetchSnapshot(SnapshotPart { head, id, size: 100, position: 40, bytes: Bytes::from_static(b"part") }),
    ]
}

fn write(response: &Response, version: i16) -> (i16, BytesMut) {
    let at = Endpoint { node: BrokerId(3), host: "host3".into(), port: 9093 };
    let mut out = BytesMut::new();
    let key = match response.clone() {
        Response::Vote { head, granted } => vote_answer(head, granted, Some(&at), version).encode(&mut out, version).map(|()| 52),
        Response::BeginEpoch(head) => begin_answer(head, Some(&at), version).encode(&mut out, version).map(|()| 53),
        Response::EndEpoch(head) => end_answer(head, Some(&at), version).encode(&mut out, version).map(|()| 54),
        Response::Fetch(fetched) => fetch_answer(fetched, Some(&at), version).encode(&mut out, version).map(|()| 1),
        Response::FetchSnapshot(part) => snapshot_answer(part, Some(&at), version).encode(&mut out, version).map(|()| 59),
    };
    (key.unwrap_or_else(|e| panic!("{response:?} v{version}: {e}")), out)
}

#[test]
fn answers_come_back_the_same() {
    for response in answers() {
        let versions = match response {
            Response::Fetch(_) => 13..=18,
            Response::Vote { .. } => 0..=2,
            _ => 0..=1,
        };
        for version in versions {
            let (key, body) = write(&response, version);
            assert_eq!(decode(key, version, body.freeze()), Ok(response.clone()), "v{version}");
        }
    }
}

#[test]
fn what_is_cut_or_claims_too_much_is_no_answer() {
    for response in answers() {
        let version = if matches!(response, Response::Fetch(_)) { 18 } else { 1 };
        let (key, body) = write(&response, version);
        for cut in 0..body.len() {
            assert!(decode(key, version, body.clone().freeze().slice(..cut)).is_err(), "{response:?} cut at {cut}");
        }
    }
    // A list of two thousand million topics in six bytes.
    let claims = Bytes::from_static(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0x07]);
    assert!(decode(52, 2, claims).is_err());
}
