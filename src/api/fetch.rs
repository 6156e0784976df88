//! Fetch (key 1), v4-18.
//!
//! Reads record batches as they are stored, from many partitions at once; waits up to `max_wait_ms` for `min_bytes`.
//! * v4 isolation level (KIP-98). v5 log start. v7 sessions (KIP-227). v9 leader epoch checked (KIP-320). v11 rack (KIP-392).
//! * v12 flexible, last fetched epoch and diverging epoch (KIP-595). v13 topic ids (KIP-516). v14 tiered storage error (KIP-405).
//! * v15 replica state instead of replica id (KIP-903). v16 current leader and its endpoint (KIP-951). v17 replica directory (KIP-853).
//! * v18 high watermark of the follower (KIP-1166).
//! * Only leaders are read, so there is never a preferred replica; replicas do not fetch from here yet and are refused as strangers; there
//!   are no transactions, so the last stable offset is the high watermark and no transaction is aborted.

mod ask;
mod limits;
mod metadata;
pub mod reply;

use super::{Audience, Call, Cx, Outcome, Spec};
use crate::actors::controller::Random;
use crate::actors::partition::messages::FetchWait;
use crate::core::fetch_session::{Ask, Context, Facts, Params, Refused, Sessions, TopicRef, Wanted};
use crate::core::types::Isolation;
use crate::rt::clock;
use crate::wire::error::ErrorCode;
use ask::{Reading, Round};
use kafka_protocol::messages::FetchRequest;
use reply::{Endpoint, FetchReply, Row, TOPIC_IDS};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use understudy_metrics::Gauge;

/// The row.
pub const SPEC: Spec = Spec::new(1, "Fetch", 4, 18).to(Audience::Everybody);

/// Versions from which rows name the leader.
const NAMES_LEADER: i16 = 16;

/// One request on its way to its answer.
struct Fetch {
    cx: Cx,
    call: Rc<Call>,
    context: Context,
    reading: Reading,
    /// Rows that were refused before any partition was asked, with what the session knows of them. Last in the answer.
    refused: Vec<(Wanted, Row)>,
    min_bytes: i64,
    max_wait: Duration,
}

/// Takes the request into its session, asks every partition once, and waits if that was not enough.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: FetchRequest) -> Outcome<FetchReply> {
    if cx.peer.quorum {
        return metadata::handle(cx, call, request);
    }
    let image = cx.image();
    let by_id = call.version >= TOPIC_IDS;
    let replica = if request.replica_id.0 != -1 { request.replica_id.0 } else { request.replica_state.replica_id.0 };
    let ask = Ask { session: request.session_id, epoch: request.session_epoch, by_id, follower: replica >= 0 };
    let kind = if ask.follower { "FetchFollower" } else { "FetchConsumer" };
    call.count_also_as(cx.broker.metrics.api(kind, SPEC.min..=SPEC.max, &[]));
    let (wanted, forgotten) = (ask::wanted(&image, &request, by_id), ask::forgotten(&request, by_id));
    let begun = with_sessions(cx, |sessions| sessions.begin(ask, wanted, forgotten, clock::now()));
    let (context, wanted) = match begun {
        Ok(begun) => begun,
        Err(refused) => return Outcome::Now(session_error(call, 0, refused)),
    };
    let max_bytes = request.max_bytes.clamp(0, cx.broker.config.fetch_max_bytes);
    let isolation = if request.isolation_level == 1 { Isolation::ReadCommitted } else { Isolation::ReadUncommitted };
    let (reading, refused) = ask::sort(cx, &image, wanted, isolation, max_bytes as u32, ask.follower);
    let fetch = Fetch {
        cx: cx.clone(),
        call: call.clone(),
        context,
        reading,
        refused,
        min_bytes: i64::from(request.min_bytes.min(max_bytes)),
        max_wait: Duration::from_millis(request.max_wait_ms.max(0) as u64),
    };
    if fetch.reading.is_empty() {
        return Outcome::Now(fetch.answer(Vec::new()));
    }
    let may_wait = fetch.min_bytes > 0 && !fetch.max_wait.is_zero();
    let wait = may_wait.then(|| FetchWait::new(fetch.min_bytes));
    let asked = fetch.reading.ask(&fetch.cx, wait.as_ref());
    Outcome::later(async move {
        let mut round = fetch.reading.collect(&fetch.cx, asked).await;
        if let Some(wait) = wait
            && round.may_wait()
            && round.bytes < fetch.min_bytes
            && fetch.more_came(&wait, round.bytes).await
        {
            let asked = fetch.reading.ask(&fetch.cx, None);
            round = fetch.reading.collect(&fetch.cx, asked).await;
        }
        let Round { rows, .. } = round;
        fetch.answer(rows)
    })
}

impl Fetch {
    /// Waits for what is missing after `had`, at most as long as the client wants. Whether anything changed, so that it is worth reading again.
    async fn more_came(&self, wait: &Arc<FetchWait>, had: i64) -> bool {
        wait.arrived(had);
        let _counted = Waiting::new(self.cx.broker.metrics.purgatory("Fetch"));
        let deadline = self.call.received.deadline(self.max_wait);
        // In vain or not: what is there then is the answer.
        let _ = tokio::time::timeout_at(deadline, wait.ready()).await;
        wait.missing() != self.min_bytes - had
    }

    /// Brings rows and session together. `rows` are those of the partitions that were read, in their order.
    fn answer(self, rows: Vec<Row>) -> FetchReply {
        let Fetch { cx, call, context, reading, refused, .. } = self;
        let refused = refused.into_iter();
        let mut all: Vec<(Wanted, Row)> = reading.into_wanted().zip(rows).chain(refused).collect();
        let mut session = 0;
        match context {
            Context::Sessionless => {}
            Context::Full { by_id, follower } => {
                let rows = all.iter().map(|(wanted, row)| (wanted.key.clone(), wanted.params, facts(row)));
                session = with_sessions(&cx, |sessions| sessions.create((by_id, follower), rows, clock::now(), &mut Random));
            }
            Context::Incremental { session: id, next, instance } => {
                session = id;
                let shown = with_sessions(&cx, |sessions| {
                    let mut answering = sessions.answering(id, next, instance)?;
                    all.retain(|(wanted, row)| answering.shows(wanted.slot, &facts(row)));
                    Ok(())
                });
                if let Err(refused) = shown {
                    return session_error(&call, id, refused);
                }
            }
        }
        let rows: Vec<Row> = all.into_iter().map(|(_, row)| row).collect();
        count(&cx, &rows);
        let endpoints = if call.version >= NAMES_LEADER { endpoints(&cx, &rows) } else { Vec::new() };
        FetchReply { call, error: ErrorCode::None, session, rows, endpoints, quorum: None }
    }
}

/// One fetch that waits, for as long as this lives: also if its client goes away.
struct Waiting(Arc<Gauge>);

impl Waiting {
    fn new(waiting: Arc<Gauge>) -> Waiting {
        waiting.inc();
        Waiting(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn facts(row: &Row) -> Facts {
    Facts {
        records: row.records.is_some(),
        error: row.error != ErrorCode::None,
        diverging: row.diverging.is_some(),
        high_watermark: row.high_watermark,
        log_start: row.log_start,
    }
}

fn session_error(call: &Rc<Call>, session: i32, refused: Refused) -> FetchReply {
    let error = match refused {
        Refused::UnknownSession => ErrorCode::FetchSessionIdNotFound,
        Refused::WrongEpoch => ErrorCode::InvalidFetchSessionEpoch,
        Refused::TopicNaming => ErrorCode::FetchSessionTopicIdError,
    };
    FetchReply { call: call.clone(), error, session, rows: Vec::new(), endpoints: Vec::new(), quorum: None }
}

/// Does something with the sessions, and shows how many there are then.
fn with_sessions<T>(cx: &Cx, act: impl FnOnce(&mut Sessions) -> T) -> T {
    let mut sessions = cx.broker.sessions.lock().unwrap_or_else(|broken| broken.into_inner());
    let done = act(&mut sessions);
    let shown = &cx.broker.metrics.fetch_sessions;
    shown.sessions.set(sessions.len() as i64);
    shown.partitions.set(sessions.partitions() as i64);
    shown.evictions.add(sessions.take_evictions());
    done
}

/// Counts what goes out, and what a broken disk kept back, by topic.
fn count(cx: &Cx, rows: &[Row]) {
    let topics = &cx.broker.metrics.topics;
    for rows in rows.chunk_by(|a, b| a.topic == b.topic) {
        let bytes: u64 = rows.iter().map(|row| u64::from(row.bytes())).sum();
        let failed = rows.iter().filter(|row| row.error == ErrorCode::KafkaStorageError).count() as u64;
        if bytes + failed == 0 {
            continue;
        }
        let image = cx.image();
        let topic = match &rows[0].topic {
            TopicRef::Name(name) => image.topic_by_name(name),
            TopicRef::Id(id) => image.topic(*id),
        };
        // The handles of a topic that is gone are gone too, and must not come back.
        if let Some(topic) = topic {
            let counted = topics.topic(&topic.name);
            counted.bytes_out.add(bytes);
            counted.failed_fetch_requests.add(failed);
        }
    }
}

/// How the leaders that rows name can be reached by this client.
fn endpoints(cx: &Cx, rows: &[Row]) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let image = cx.image();
    for leader in rows.iter().filter_map(|row| row.leader) {
        if endpoints.iter().any(|known| known.node == leader.leader) {
            continue;
        }
        let Some(broker) = image.broker(leader.leader).filter(|broker| !broker.fenced) else { continue };
        let Some(endpoint) = broker.endpoint(&cx.peer.listener) else { continue };
        endpoints.push(Endpoint { node: broker.id, host: endpoint.host.clone(), port: endpoint.port, rack: broker.rack.clone() });
    }
    endpoints
}
