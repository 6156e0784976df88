//! `Quorum`: this node's voter. A shell around `core::quorum`: owns the metadata log, `quorum-state` and the snapshots, and talks to the other nodes.
//!
//! * Lifecycle: started by the node after `Link` and `Controller`; a panic ends the process.
//! * Thread: control. Asked by: `Controller` (records to append), handlers (who leads; what other nodes ask). Told by: the directory's disk
//!   thread, other nodes' answers.
//! * Nothing counts before it is on disk: an append is followed by a sync, and only then by `Committed`.

mod apply;
mod effects;
mod peers;
pub mod snapshot;
pub mod store;

use super::controller::{Controller, Lead, Random};
use super::link::Link;
use super::log_io::{self, Job};
use crate::core::controller::Image;
use crate::core::controller::records::Record;
use crate::core::quorum::message::{Request, Response, SendFailed, Serial, Ticket};
use crate::core::quorum::records::SnapshotId;
use crate::core::quorum::snapshots::SnapshotRule;
use crate::core::quorum::{self as rules, Config, Cx, ReplicaView};
use crate::core::types::{BrokerId, Epoch, Millis, Offset};
use crate::log::builder::BatchBuilder;
use crate::log::{Fs, LogError};
use crate::rt::{Essential, Gone, Reply, Tell, clock};
use crate::wire::records;
use actix::prelude::*;
use peers::Peers;
pub use peers::Voter;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use understudy_metrics::Families;

/// How long a node that stops waits for the others to know.
const FAREWELL: Duration = Duration::from_secs(1);

/// See the module.
pub struct Quorum {
    rules: Option<rules::Quorum>,
    store: Store,
    parts: Parts,
    peers: Peers,
    /// Appended by this node as the leader and not yet committed, oldest first.
    uncommitted: VecDeque<Batch>,
    /// Everything below was handed to `Link`.
    applied: Offset,
    /// Who waits for an answer of the rules.
    tickets: HashMap<Ticket, Reply<Response>>,
    last_ticket: u64,
    /// The timer that is set, and for when.
    timer: Option<(Millis, SpawnHandle)>,
    /// When the actor started, by both clocks: the rules' time does not go back with the wall clock.
    begun: (Millis, clock::Moment),
    snapshot_running: bool,
    /// Who waits for the log to be closed.
    closing: Option<Reply<()>>,
    _essential: Essential,
}

struct Batch {
    base: Offset,
    last: Offset,
    epoch: Epoch,
    bytes: usize,
    records: Arc<Vec<Record>>,
}

/// Append metadata records as one batch, if this node still leads. From: `Controller`. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AppendRecords {
    /// The epoch that the controller leads.
    pub epoch: Epoch,
    /// The offset that the first record gets: only the controller appends, so it knows.
    pub base: Offset,
    /// The records.
    pub records: Arc<Vec<Record>>,
}

/// The log was synced. From: the disk thread. Lost: with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Flushed {
    upto: Offset,
    generation: u64,
    /// Nothing, if there was nothing to sync.
    outcome: Result<Option<log_io::Synced>, Gone>,
}

/// Another node asks. From: handlers. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ask {
    /// What.
    pub request: Request,
    /// The answer, now or when there is news.
    pub reply: Reply<Response>,
}

/// Another node answered, or did not. From: its connection. Lost: the request counts as unanswered after its time.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Answered {
    from: BrokerId,
    serial: Serial,
    outcome: Result<Response, SendFailed>,
}

/// The connection to another node broke. From: the connection. Lost: the rules notice by silence.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PeerClosed {
    peer: BrokerId,
}

/// The image that a new leader begins with. From: `Link`. Lost: with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct GotLeadImage {
    epoch: Epoch,
    image: Result<Arc<Image>, Gone>,
}

/// How the quorum stands. From: `api::describe_quorum`, metrics. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Describe {
    /// The answer.
    pub reply: Reply<QuorumView>,
}

/// How the quorum stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumView {
    /// Who leads, if known.
    pub leader: Option<BrokerId>,
    /// The epoch.
    pub epoch: Epoch,
    /// Everything below is committed; -1 if unknown.
    pub high_watermark: Offset,
    /// The voters.
    pub voters: Vec<ReplicaView>,
    /// Who else fetches from this leader.
    pub observers: Vec<ReplicaView>,
}

/// The image for a snapshot. From: `Link`. Lost: the snapshot is due again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct GotImage {
    image: Result<Arc<Image>, Gone>,
}

/// A snapshot is on disk, or could not be written. From: the disk thread. Lost: the snapshot is due again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct SnapshotWritten {
    outcome: Result<Result<(SnapshotId, u64), LogError>, Gone>,
}

/// Close the metadata log. From: the node, at the end. Lost: the next start recovers it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct CloseLog {
    /// Answered when it is closed.
    pub reply: Reply<()>,
}

/// What a quorum needs besides its store.
pub struct Parts {
    /// Who this node is, who votes, how long everything takes.
    pub config: Config,
    /// The voters' addresses.
    pub voters: Vec<Voter>,
    /// Name of the listener on which voters talk.
    pub listener: String,
    /// Id of the cluster.
    pub cluster_id: String,
    /// Everything below is in the image that `Link` begins with.
    pub applied: Offset,
    /// That directory's thread.
    pub io: log_io::Handle,
    /// Whom to tell what is committed.
    pub link: Addr<Link>,
    /// Whom to tell that it leads.
    pub controller: Addr<Controller>,
    /// Metric handles.
    pub metrics: Families,
    /// When a snapshot is due.
    pub snapshots: SnapshotRule,
    /// The level of `metadata.version` that new records are written for.
    pub level: i16,
}

impl Quorum {
    /// A node of the quorum that starts when its actor does.
    pub fn new(store: Store, parts: Parts) -> Quorum {
        Quorum {
            rules: None,
            store,
            peers: Peers::new(&parts),
            uncommitted: VecDeque::new(),
            applied: parts.applied,
            tickets: HashMap::new(),
            last_ticket: 0,
            timer: None,
            begun: (clock::now(), clock::moment()),
            snapshot_running: false,
            closing: None,
            parts,
            _essential: Essential("quorum"),
        }
    }

    /// The rules' time.
    fn now(&self) -> Millis {
        Millis(self.begun.0.0 + self.begun.1.elapsed().as_millis() as i64)
    }

    /// Gives the rules an input and performs what they want.
    fn step(&mut self, ctx: &mut Context<Self>, input: impl FnOnce(&mut rules::Quorum, &mut Cx)) {
        let now = self.now();
        let Some(rules) = &mut self.rules else { return };
        let mut fx = Vec::new();
        input(rules, &mut Cx { now, chance: &mut Random, fx: &mut fx });
        self.perform(fx, ctx);
    }

    /// Sets the timer for what is due next.
    fn wind(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.rules.as_ref().and_then(rules::Quorum::next_deadline) else {
            if let Some((_, timer)) = self.timer.take() {
                ctx.cancel_future(timer);
            }
            return;
        };
        if self.timer.is_some_and(|(set, _)| set <= at) {
            // It rings early at worst, and is then set anew.
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let wait = Duration::from_millis(at.since(self.now()).max(0) as u64);
        let timer = ctx.run_later(wait, |quorum, ctx| {
            quorum.timer = None;
            quorum.step(ctx, |rules, cx| rules.tick(cx));
        });
        self.timer = Some((at, timer));
    }

    fn view(&self) -> QuorumView {
        let Some(rules) = &self.rules else {
            let (voters, observers) = (Vec::new(), Vec::new());
            return QuorumView { leader: None, epoch: Epoch::NONE, high_watermark: Offset::NONE, voters, observers };
        };
        QuorumView {
            leader: rules.leader(),
            epoch: rules.epoch(),
            high_watermark: rules.high_watermark().unwrap_or(Offset::NONE),
            voters: rules.voter_views(self.now()),
            observers: rules.observer_views(),
        }
    }

    fn show(&self) {
        let Some(rules) = &self.rules else { return };
        let raft = &self.parts.metrics.raft;
        raft.current_leader.set(i64::from(rules.leader().unwrap_or(BrokerId::NONE).0));
        raft.current_epoch.set(i64::from(rules.epoch().0));
        raft.high_watermark.set(rules.high_watermark().unwrap_or(Offset::NONE).0);
        raft.log_end_offset.set(self.store.log.end().0);
        self.parts.metrics.raft_state(rules.role().name());
    }

    fn close(&mut self) {
        let Some(reply) = self.closing.take() else { return };
        if let Err(e) = self.store.log.close() {
            tracing::warn!("the metadata log could not be closed properly, the next start recovers it: {e}");
        }
        reply.send(());
    }
}

/// The metadata log cannot be written: the broker cannot go on, and says so.
fn die(error: &dyn std::fmt::Display) {
    tracing::error!("the metadata log cannot be written, stopping: {error}");
    std::process::exit(1);
}

impl Actor for Quorum {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let mut fx = Vec::new();
        let mut cx = Cx { now: self.now(), chance: &mut Random, fx: &mut fx };
        match rules::Quorum::start(self.parts.config.clone(), self.store.recovered(), self.store.state, &mut cx) {
            Ok(rules) => self.rules = Some(rules),
            Err(e) => {
                tracing::error!("{e}");
                std::process::exit(1);
            }
        }
        self.perform(fx, ctx);
    }
}

impl Handler<AppendRecords> for Quorum {
    type Result = ();
    fn handle(&mut self, m: AppendRecords, ctx: &mut Context<Self>) {
        let now = self.now();
        let Some(rules) = self.rules.as_mut().filter(|rules| rules.is_leader() && rules.epoch() == m.epoch) else {
            // Another leads by now: the controller hears of it and tells whoever waits.
            return;
        };
        let mut fx = Vec::new();
        let taken = rules.append(m.records.len() as i64, &mut Cx { now, chance: &mut Random, fx: &mut fx });
        let (epoch, base) = taken.expect("it leads");
        assert_eq!(base, m.base, "the controller and its quorum disagree about the log end");
        let mut batch = BatchBuilder::new(base, epoch, clock::now());
        let mut value = Vec::new();
        for record in m.records.iter() {
            value.clear();
            records::encode(record, records::version_at(record, self.parts.level), &mut value)
                .expect("the controller makes records that the level can carry");
            batch.push(0, None, Some(&value));
        }
        if let Err(e) = self.append(batch, epoch, m.records) {
            return die(&e);
        }
        self.perform(fx, ctx);
    }
}

impl Handler<Flushed> for Quorum {
    type Result = ();
    fn handle(&mut self, m: Flushed, ctx: &mut Context<Self>) {
        match m.outcome {
            Ok(Some((target, Ok(())))) => self.store.log.mark_synced(&target),
            Ok(Some((_, Err(e)))) => return die(&e),
            Ok(None) => {}
            Err(Gone) => return,
        }
        self.step(ctx, |rules, cx| rules.flushed(m.upto, m.generation, cx));
    }
}

impl Handler<Ask> for Quorum {
    type Result = ();
    fn handle(&mut self, m: Ask, ctx: &mut Context<Self>) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tickets.insert(ticket, m.reply);
        self.step(ctx, |rules, cx| rules.request(ticket, m.request, cx));
    }
}

impl Handler<Answered> for Quorum {
    type Result = ();
    fn handle(&mut self, m: Answered, ctx: &mut Context<Self>) {
        self.step(ctx, |rules, cx| rules.response(m.from, m.serial, m.outcome, cx));
    }
}

impl Handler<PeerClosed> for Quorum {
    type Result = ();
    fn handle(&mut self, m: PeerClosed, ctx: &mut Context<Self>) {
        self.step(ctx, |rules, cx| rules.disconnected(m.peer, cx));
    }
}

impl Handler<Describe> for Quorum {
    type Result = ();
    fn handle(&mut self, m: Describe, _: &mut Context<Self>) {
        m.reply.send(self.view());
    }
}

impl Handler<GotLeadImage> for Quorum {
    type Result = ();
    fn handle(&mut self, m: GotLeadImage, ctx: &mut Context<Self>) {
        let (Ok(image), Some(rules)) = (m.image, &self.rules) else { return };
        if rules.is_leader() && rules.epoch() == m.epoch {
            let lead = Lead { epoch: m.epoch, next: rules.log_end(), image: (*image).clone(), quorum: ctx.address() };
            self.parts.controller.tell(lead);
        }
    }
}

impl Handler<GotImage> for Quorum {
    type Result = ();
    fn handle(&mut self, m: GotImage, ctx: &mut Context<Self>) {
        let Ok(image) = m.image else {
            self.snapshot_running = false;
            return;
        };
        self.parts.snapshots.taken(clock::now());
        let reply = Reply::to(ctx.address(), |outcome| SnapshotWritten { outcome });
        let (dir, level) = (self.store.log.dir().to_owned(), self.parts.level);
        self.parts.io.tell(Job::Run(Box::new(move || reply.send(snapshot::write(&Fs, &dir, &image, level, clock::now())))));
    }
}

impl Handler<SnapshotWritten> for Quorum {
    type Result = ();
    fn handle(&mut self, m: SnapshotWritten, _: &mut Context<Self>) {
        self.snapshot_running = false;
        let (id, size) = match m.outcome {
            Ok(Ok(made)) => made,
            Ok(Err(e)) => return tracing::warn!("no snapshot of the metadata, trying again later: {e}"),
            Err(Gone) => return,
        };
        let Some(rules) = &mut self.rules else { return };
        rules.snapshot_made(id, size);
        match self.store.forget_old() {
            Ok(paths) => {
                rules.log_started(self.store.log.start());
                paths.into_iter().for_each(|path| self.parts.io.tell(Job::Remove { path, at: clock::now() }));
            }
            Err(e) => tracing::warn!("the metadata log keeps what its snapshot covers: {e}"),
        }
    }
}

impl Handler<CloseLog> for Quorum {
    type Result = ();
    fn handle(&mut self, m: CloseLog, ctx: &mut Context<Self>) {
        self.closing = Some(m.reply);
        self.step(ctx, |rules, cx| rules.stop(cx));
        ctx.run_later(FAREWELL, |quorum, _| quorum.close());
    }
}
