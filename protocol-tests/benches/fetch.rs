//! What it costs to write a Fetch answer: rows without records (an idle poll), with a few bytes that are copied, with a range that is
//! spliced in by the socket.

#![allow(missing_docs)]

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use understudy::api::fetch::reply::{FetchReply, Records, Row};
use understudy::api::{Call, Respond, Response};
use understudy::core::fetch_session::TopicRef;
use understudy::core::types::Id;
use understudy::log::{Fs, Storage};
use understudy::rt::clock;
use understudy::wire::error::ErrorCode;
use understudy_metrics::{Families, Registry};

const VERSION: i16 = 17;

fn encode(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("00000000000000000000.log");
    std::fs::write(&path, vec![7; 1 << 20]).expect("to write a file");
    let file = Arc::new(Fs.open(&path).expect("the file is there"));
    let metrics = Families::new(&Registry::new()).api("Fetch", 4..=18, &[]);
    let call = Rc::new(Call::new(1, VERSION, 1, "bench".into(), clock::moment(), metrics));

    let mut group = c.benchmark_group("fetch_encode");
    for (name, rows, len) in [("idle_1", 1, 0), ("idle_1000", 1000, 0), ("copied_1_KiB", 1, 1024), ("spliced_1_MiB", 1, 1 << 20)] {
        let row = |partition| {
            let mut row = Row::failed(TopicRef::Id(Id(7)), partition, ErrorCode::None);
            row.records = (len > 0).then(|| Records { file: file.clone(), position: 0, len });
            row
        };
        let reply = FetchReply {
            call: call.clone(),
            error: ErrorCode::None,
            session: 1,
            rows: (0..rows).map(row).collect(),
            endpoints: Vec::new(),
            quorum: None,
        };
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut response = Response { bytes: BytesMut::with_capacity(256), splices: Vec::new() };
                reply.respond(VERSION, &mut response).expect("an answer that can be written");
                black_box(response)
            })
        });
    }
}

criterion_group!(fetches, encode);
criterion_main!(fetches);
