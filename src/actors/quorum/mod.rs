//! `Quorum`: this node's voter. A shell around `core::quorum`: owns the metadata log, `quorum-state` and the snapshots.
//!
//! * Lifecycle: started by the node after `Link` and `Controller`; a panic ends the process.
//! * Thread: control. Asked by: `Controller` (records to append), handlers (who leads). Told by: the directory's disk thread.
//! * Nothing counts before it is on disk: an append is followed by a sync, and only then by `Committed`.

pub mod snapshot;
pub mod store;

use super::controller::{Controller, Lead, Random};
use super::link::{Committed, Link, TakeImage};
use super::log_io::{self, Job};
use crate::core::controller::records::Record;
use crate::core::controller::{Image, METADATA_VERSION};
use crate::core::quorum::records::{ControlRecord, ElectionState, LeaderChange};
use crate::core::quorum::snapshots::SnapshotRule;
use crate::core::quorum::{self as rules, Config, Cx, Effect, Timing, VoterView};
use crate::core::types::{BrokerId, DirectoryId, Epoch, Offset};
use crate::log::batch::{BatchHeader, HEADER_SIZE};
use crate::log::builder::BatchBuilder;
use crate::log::{Fs, LogError};
use crate::rt::{Essential, Gone, Reply, Tell, clock};
use crate::wire::records;
use actix::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use store::Store;
use understudy_metrics::Families;

/// See the module.
pub struct Quorum {
    rules: Option<rules::Quorum>,
    store: Store,
    io: log_io::Handle,
    link: Addr<Link>,
    controller: Addr<Controller>,
    metrics: Families,
    /// Appended and not yet committed, oldest first.
    uncommitted: VecDeque<Batch>,
    snapshots: SnapshotRule,
    snapshot_running: bool,
    node: BrokerId,
    directory: DirectoryId,
    /// The level of `metadata.version`, which decides how records are written.
    level: i16,
    _essential: Essential,
}

struct Batch {
    base: Offset,
    last: Offset,
    epoch: Epoch,
    bytes: usize,
    records: Arc<Vec<Record>>,
}

/// Append metadata records as one batch. From: `Controller`. Lost: never, they share a thread.
#[derive(Message)]
#[rtype(result = "()")]
pub struct AppendRecords {
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
    outcome: Result<log_io::Synced, Gone>,
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
    pub voters: Vec<VoterView>,
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
    outcome: Result<Result<Offset, LogError>, Gone>,
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
    /// This node.
    pub node: BrokerId,
    /// The directory of the metadata log.
    pub directory: DirectoryId,
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
    /// A voter that starts when its actor does.
    pub fn new(store: Store, parts: Parts) -> Quorum {
        let Parts { node, directory, io, link, controller, metrics, snapshots, level } = parts;
        Quorum {
            rules: None,
            store,
            io,
            link,
            controller,
            metrics,
            uncommitted: VecDeque::new(),
            snapshots,
            snapshot_running: false,
            node,
            directory,
            level,
            _essential: Essential("quorum"),
        }
    }

    fn perform(&mut self, fx: Vec<Effect>, ctx: &mut Context<Self>) {
        for effect in fx {
            let done = match effect {
                Effect::PersistState(state) => self.persist(&state),
                Effect::AppendLeaderChange { epoch, offset, record } => self.append_leader_change(epoch, offset, record),
                Effect::Flush { upto, generation } => {
                    self.flush(upto, generation, ctx);
                    Ok(())
                }
                Effect::Committed { upto } => {
                    self.committed(upto, ctx);
                    Ok(())
                }
                Effect::BecameLeader { epoch } => {
                    let next = self.rules.as_ref().map_or(Offset(0), rules::Quorum::log_end);
                    self.controller.tell(Lead { epoch, next, quorum: ctx.address() });
                    Ok(())
                }
                Effect::Resigned { .. } => Ok(()),
                other => unreachable!("a quorum of one has no peers: {other:?}"),
            };
            if let Err(e) = done {
                return die(&e);
            }
        }
        self.show();
    }

    fn persist(&self, state: &ElectionState) -> Result<(), LogError> {
        self.store.write_state(state)
    }

    fn append_leader_change(&mut self, epoch: Epoch, offset: Offset, record: LeaderChange) -> Result<(), LogError> {
        let mut batch = BatchBuilder::new(offset, epoch, clock::now()).control();
        let (key, value) = records::control::encode(&ControlRecord::LeaderChange(record)).expect("a LeaderChange has a fixed version");
        batch.push(0, Some(&key), Some(&value));
        self.append(batch, epoch, Arc::default())
    }

    fn append(&mut self, batch: BatchBuilder, epoch: Epoch, records: Arc<Vec<Record>>) -> Result<(), LogError> {
        let bytes = batch.finish().expect("a batch of the quorum holds records");
        let header = BatchHeader::parse(&bytes).expect("our own batch has a header");
        let appended = self.store.log.append(header, &bytes[HEADER_SIZE..], epoch, clock::now())?;
        self.uncommitted.push_back(Batch { base: appended.base, last: appended.last, epoch, bytes: bytes.len(), records });
        Ok(())
    }

    fn flush(&mut self, upto: Offset, generation: u64, ctx: &mut Context<Self>) {
        let reply = Reply::to(ctx.address(), move |outcome| Flushed { upto, generation, outcome });
        let target = self.store.log.sync_target().expect("a flush follows an append");
        self.io.tell(Job::Sync(log_io::Asked { target, reply }));
    }

    fn committed(&mut self, upto: Offset, ctx: &mut Context<Self>) {
        while self.uncommitted.front().is_some_and(|batch| batch.last < upto) {
            let Some(Batch { base, last, epoch, bytes, records }) = self.uncommitted.pop_front() else { break };
            for record in records.iter() {
                if let Record::FeatureLevel(level) = record
                    && level.name == METADATA_VERSION
                {
                    self.level = level.level;
                }
            }
            self.snapshots.applied(bytes);
            self.link.tell(Committed { base, epoch, last, records });
        }
        if !self.snapshot_running && self.snapshots.due(clock::now()).is_some() {
            self.snapshot_running = true;
            let reply = Reply::to(ctx.address(), |image| GotImage { image });
            self.link.tell(TakeImage { reply });
        }
    }

    fn view(&self) -> QuorumView {
        let Some(rules) = &self.rules else {
            return QuorumView { leader: None, epoch: Epoch::NONE, high_watermark: Offset::NONE, voters: Vec::new() };
        };
        QuorumView {
            leader: rules.leader(),
            epoch: rules.epoch(),
            high_watermark: rules.high_watermark().unwrap_or(Offset::NONE),
            voters: rules.voters(),
        }
    }

    fn show(&self) {
        let view = self.view();
        let raft = &self.metrics.raft;
        raft.current_leader.set(i64::from(view.leader.unwrap_or(BrokerId::NONE).0));
        raft.current_epoch.set(i64::from(view.epoch.0));
        raft.high_watermark.set(view.high_watermark.0);
        raft.log_end_offset.set(self.store.log.end().0);
        self.metrics.raft_state(self.rules.as_ref().map_or("unattached", |rules| rules.role().name()));
    }
}

/// The metadata log cannot be written: the broker cannot go on, and says so.
fn die(error: &LogError) {
    tracing::error!("the metadata log cannot be written, stopping: {error}");
    std::process::exit(1);
}

impl Actor for Quorum {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let mut fx = Vec::new();
        let config = Config { me: self.node, directory: self.directory, voters: vec![self.node], timing: Timing::default() };
        let mut cx = Cx { now: clock::now(), chance: &mut Random, fx: &mut fx };
        match rules::Quorum::start(config, self.store.recovered(), self.store.state, &mut cx) {
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
        let Some(rules) = &mut self.rules else { return };
        let mut fx = Vec::new();
        let (epoch, base) = rules
            .append(m.records.len() as i64, &mut Cx { now: clock::now(), chance: &mut Random, fx: &mut fx })
            .expect("only the active controller appends, and it is active while this node leads");
        assert_eq!(base, m.base, "the controller and its quorum disagree about the log end");
        let mut batch = BatchBuilder::new(base, epoch, clock::now());
        let mut value = Vec::new();
        for record in m.records.iter() {
            value.clear();
            records::encode(record, records::version_at(record, self.level), &mut value)
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
            Ok((target, Ok(()))) => self.store.log.mark_synced(&target),
            Ok((_, Err(e))) => return die(&e),
            Err(Gone) => return,
        }
        let Some(rules) = &mut self.rules else { return };
        let mut fx = Vec::new();
        rules.flushed(m.upto, m.generation, &mut Cx { now: clock::now(), chance: &mut Random, fx: &mut fx });
        self.perform(fx, ctx);
    }
}

impl Handler<Describe> for Quorum {
    type Result = ();
    fn handle(&mut self, m: Describe, _: &mut Context<Self>) {
        m.reply.send(self.view());
    }
}

impl Handler<GotImage> for Quorum {
    type Result = ();
    fn handle(&mut self, m: GotImage, ctx: &mut Context<Self>) {
        let Ok(image) = m.image else {
            self.snapshot_running = false;
            return;
        };
        self.snapshots.taken(clock::now());
        let reply = Reply::to(ctx.address(), |outcome| SnapshotWritten { outcome });
        let (dir, level) = (self.store.log.dir().to_owned(), self.level);
        self.io.tell(Job::Run(Box::new(move || reply.send(snapshot::write(&Fs, &dir, &image, level, clock::now())))));
    }
}

impl Handler<SnapshotWritten> for Quorum {
    type Result = ();
    fn handle(&mut self, m: SnapshotWritten, _: &mut Context<Self>) {
        self.snapshot_running = false;
        let end = match m.outcome {
            Ok(Ok(end)) => end,
            Ok(Err(e)) => return tracing::warn!("no snapshot of the metadata, trying again later: {e}"),
            Err(Gone) => return,
        };
        match self.store.forget_below(end) {
            Ok(paths) => paths.into_iter().for_each(|path| self.io.tell(Job::Remove { path, at: clock::now() })),
            Err(e) => tracing::warn!("the metadata log keeps what its snapshot covers: {e}"),
        }
    }
}

impl Handler<CloseLog> for Quorum {
    type Result = ();
    fn handle(&mut self, m: CloseLog, _: &mut Context<Self>) {
        if let Some(rules) = &mut self.rules {
            rules.stop(&mut Cx { now: clock::now(), chance: &mut Random, fx: &mut Vec::new() });
        }
        if let Err(e) = self.store.log.close() {
            tracing::warn!("the metadata log could not be closed properly, the next start recovers it: {e}");
        }
        m.reply.send(());
    }
}
