//! DescribeLogDirs (key 35), v1-4.
//!
//! The log directories of this broker: their partitions with their sizes, and the room on their file systems.
//! * v1 throttle time is the client's to keep (KIP-219). v2 flexible. v3 error of the whole request. v4 total and usable bytes (KIP-827).
//! * A directory that holds only the metadata log is not one of them. Partitions that cannot be opened are left out, as Kafka leaves out
//!   those of an offline directory. There are no future replicas, and a replica's lag is what its high watermark is ahead of its end.

use super::partitions::{Asked, ask};
use super::{Call, Cx, Outcome, Spec, terms};
use crate::actors::partition::messages::{Describe, Positions};
use crate::core::types::TopicPartition;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_log_dirs_response::{DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The row.
pub const SPEC: Spec = Spec::new(35, "DescribeLogDirs", 1, 4);

/// One directory's partitions: by topic name, the index of each and the question to it.
type Partitions = BTreeMap<Arc<str>, Vec<(i32, Asked<Positions>)>>;

/// Asks every partition that is wanted, then answers by directory.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeLogDirsRequest) -> Outcome<DescribeLogDirsResponse> {
    let wanted = request.topics.map(|topics| {
        let image = cx.image();
        let topics = topics.into_iter().filter_map(|named| Some((image.topic_by_name(&named.topic)?.id, named.partitions)));
        let partitions = topics.flat_map(|(topic, partitions)| partitions.into_iter().map(move |partition| TopicPartition { topic, partition }));
        partitions.collect::<HashSet<_>>()
    });
    let mut dirs: Vec<Partitions> = cx.broker.disk.for_partitions().iter().map(|_| Partitions::new()).collect();
    let hosted = cx.broker.routes.all();
    for (at, route) in hosted.into_iter().filter(|(at, _)| wanted.as_ref().is_none_or(|wanted| wanted.contains(at))) {
        if let Some(dir) = dirs.get_mut(route.dir) {
            dir.entry(route.topic).or_default().push((at.partition, ask(cx, at, |reply| Describe { reply })));
        }
    }
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let mut results = Vec::with_capacity(dirs.len());
        for (dir, partitions) in cx.broker.disk.for_partitions().iter().zip(dirs) {
            results.push(result(&cx, &call, &dir.absolute(), partitions).await);
        }
        DescribeLogDirsResponse::default().with_results(results)
    })
}

async fn result(cx: &Cx, call: &Call, dir: &Path, partitions: Partitions) -> DescribeLogDirsResult {
    let result = DescribeLogDirsResult::default().with_log_dir(terms::text(&dir.to_string_lossy()));
    let room = match rustix::fs::statvfs(dir) {
        Ok(room) => room,
        Err(e) => {
            tracing::warn!(dir = %dir.display(), "the room of a log directory cannot be told: {e}");
            return result.with_error_code(call.error(ErrorCode::KafkaStorageError));
        }
    };
    let mut topics = Vec::with_capacity(partitions.len());
    for (name, asked) in partitions {
        let mut rows = Vec::with_capacity(asked.len());
        for (index, asked) in asked {
            // Gone or offline: not in this directory, as far as anybody can use it.
            let Ok(at) = asked.answer(cx).await else { continue };
            rows.push(
                DescribeLogDirsPartition::default()
                    .with_partition_index(index)
                    .with_partition_size(at.size as i64)
                    .with_offset_lag((at.high_watermark.0 - at.log_end.0).max(0)),
            );
        }
        rows.sort_by_key(|row| row.partition_index);
        if !rows.is_empty() {
            topics.push(DescribeLogDirsTopic::default().with_name(terms::topic_name(&name)).with_partitions(rows));
        }
    }
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(room.f_frsize)).unwrap_or(i64::MAX);
    let result = result.with_topics(topics);
    match call.version >= 4 {
        true => result.with_total_bytes(bytes(room.f_blocks)).with_usable_bytes(bytes(room.f_bavail)),
        false => result,
    }
}
