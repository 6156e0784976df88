//! `Partition`: one per hosted replica. Owns its log and the rules around it; the only one that touches either.
//!
//! * Lifecycle: created by its `Shard` when the metadata says so; opens its log when first asked; closed, deleted or re-created by the
//!   shard. After a panic the shard makes a new one, which recovers from disk.
//! * Thread: its shard's. Appends and reads of cached data run inside the handler; syncs, recovery and deletion go to `LogIo`.
//! * Asked by: connections (`api`), the shard. While the log opens, questions wait here in order.
//! * A restart loses what waited: every question is answered `Gone`.

mod compaction;
pub mod messages;
pub mod replica;
mod serve;
mod upkeep;
mod waits;

use super::log_io;
use super::shard::{Child, ShardContext};
use crate::core::purgatory::Purgatory;
use crate::core::types::TopicPartition;
use crate::log::LogError;
use crate::log::storage::Fs;
use crate::rt::{DeathWatch, Gone, Reply, clock};
use actix::prelude::*;
use compaction::Compaction;
use messages::*;
use replica::{Found, Place, Replica};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use understudy_metrics::{PartitionGauges, TopicMetrics};
use waits::Waits;

/// See the module.
pub struct Partition {
    at: TopicPartition,
    topic: Arc<str>,
    dir: PathBuf,
    shard: Rc<ShardContext>,
    io: log_io::Handle,
    role: Role,
    config: Arc<PartitionConfig>,
    state: State,
    waits: Waits,
    /// Produce requests that wait for the high watermark.
    committing: Purgatory<Waiting>,
    /// Produce requests that wait for the disk (`flush.messages`).
    flushing: Purgatory<Waiting>,
    /// A sync is on its way; the next one takes everything appended meanwhile.
    sync_in_flight: bool,
    /// A segment was completed since the last sync: the recovery point is worth a checkpoint of its own.
    rolled: bool,
    /// Positions changed since the last checkpoint.
    dirty: bool,
    compaction: Compaction,
    gauges: Arc<PartitionGauges>,
    traffic: Arc<TopicMetrics>,
    _watch: DeathWatch<Child>,
}

/// A produce request that is in the log but not yet to be answered.
struct Waiting {
    appended: Appended,
    reply: Reply<Result<Appended, AppendRefused>>,
}

enum State {
    /// Not opened yet; `None` if there is nothing on disk.
    Closed(Option<Found>),
    /// `LogIo` recovers it; these wait.
    Opening(VecDeque<Ask>),
    /// Serving.
    Open(Box<Replica<Fs>>),
    /// The disk refused, or it died too often; says why.
    Offline(Arc<str>),
    /// Deleted or shut down.
    Gone,
}

/// A question that may have to wait until the log is open.
enum Ask {
    Append(Append),
    Read(Read),
    ListOffset(ListOffset),
    EpochEnd(EpochEnd),
    DeleteRecords(DeleteRecords),
    ListProducers(ListProducers),
    Describe(Describe),
}

/// What a shard says when it creates a partition.
pub struct NewReplica {
    /// Which.
    pub at: TopicPartition,
    /// The topic's name.
    pub topic: Arc<str>,
    /// Its directory.
    pub dir: PathBuf,
    /// The thread of the log directory.
    pub io: log_io::Handle,
    /// What is on disk.
    pub found: Option<Found>,
    /// What the controller decided.
    pub role: Role,
    /// The topic's configuration.
    pub config: Arc<PartitionConfig>,
    /// Why it may not serve: it died too often.
    pub offline: Option<Arc<str>>,
}

/// The log is open, or could not be opened. From: a recovery thread. Lost: with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Opened {
    outcome: Result<Result<Box<Replica<Fs>>, LogError>, Gone>,
}

/// Files were synced. From: `LogIo`. Lost: with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Synced {
    outcome: Result<log_io::Synced, Gone>,
}

impl Partition {
    /// A partition that has not touched its log yet.
    pub fn new(new: NewReplica, shard: Rc<ShardContext>, watch: DeathWatch<Child>) -> Partition {
        let gauges = shard.metrics.partitions.host(&new.topic, new.at.partition);
        let traffic = shard.metrics.topics.topic(&new.topic);
        let state = match new.offline {
            Some(why) => State::Offline(why),
            None => State::Closed(new.found),
        };
        let partition = Partition {
            at: new.at,
            topic: new.topic,
            dir: new.dir,
            io: new.io,
            role: new.role,
            config: new.config,
            state,
            waits: Waits::default(),
            committing: Purgatory::default(),
            flushing: Purgatory::default(),
            sync_in_flight: false,
            rolled: false,
            dirty: false,
            compaction: Compaction::default(),
            gauges,
            traffic,
            shard,
            _watch: watch,
        };
        partition.show_role();
        partition
    }

    /// Publishes what the role says.
    fn show_role(&self) {
        let gauges = &self.gauges;
        gauges.leading.set(i64::from(self.role.leadership.leader == self.shard.node));
        gauges.in_sync.set(self.role.isr.len() as i64);
        gauges.replicas.set(self.role.replicas.len() as i64);
        gauges.min_in_sync.set(self.config.min_insync_replicas as i64);
        gauges.offline.set(i64::from(matches!(self.state, State::Offline(_))));
    }

    /// Publishes where the log stands.
    fn show_positions(&self) {
        if let State::Open(replica) = &self.state {
            let at = replica.positions();
            self.gauges.log_start.set(at.log_start.0);
            self.gauges.log_end.set(at.log_end.0);
            self.gauges.log_size.set(at.size as i64);
            self.gauges.segments.set(at.segments as i64);
        }
    }

    /// Makes the log open, or starts to. What is clean or empty opens at once; what must be recovered is read by `LogIo`'s threads.
    fn open(&mut self, ctx: &mut Context<Self>) {
        let State::Closed(found) = self.state else { return };
        let place = Place { files: self.shard.files.clone(), dir: self.dir.clone(), at: self.at, found };
        let (role, config) = (self.role.clone(), self.config.clone());
        if found.is_some_and(|found| !found.clean) {
            self.state = State::Opening(VecDeque::new());
            let reply = Reply::to(ctx.address(), |outcome| Opened { outcome });
            let recover = move || reply.send(Replica::open(place, role, &config, clock::now()).map(Box::new));
            return self.io.tell(log_io::Job::Run(Box::new(recover)));
        }
        let opened = Replica::open(place, role, &config, clock::now()).map(Box::new);
        self.opened(opened, ctx);
    }

    fn opened(&mut self, opened: Result<Box<Replica<Fs>>, LogError>, ctx: &Context<Self>) {
        let opened = opened.and_then(|mut replica| {
            replica.assign(self.role.clone(), self.shard.node, &self.config, clock::now())?;
            Ok(replica)
        });
        self.state = match opened {
            Ok(replica) => State::Open(replica),
            Err(e) => {
                tracing::error!(partition = %self.name(), "the log cannot be opened, the partition is offline: {e}");
                State::Offline(Arc::from(e.to_string()))
            }
        };
        self.show_role();
        self.show_positions();
        self.touched();
        self.look_for_dirt(ctx);
    }

    /// Topic and index, for logs.
    fn name(&self) -> String {
        format!("{}-{}", self.topic, self.at.partition)
    }

    /// Positions changed: the shard's next checkpoint asks for them.
    fn touched(&mut self) {
        if !self.dirty {
            self.dirty = true;
            self.shard.dirty.borrow_mut().push(self.at);
        }
    }

    /// The disk failed under an open log: nothing is served from it any more until a restart.
    fn disk_failed(&mut self, why: Arc<str>) {
        tracing::error!(partition = %self.name(), dir = %self.io.dir.display(), "the disk failed, the partition is offline until a restart: {why}");
        self.state = State::Offline(why.clone());
        self.stop_compacting();
        self.refuse_waiting(&AppendRefused::Storage(why));
        self.show_role();
    }

    /// Everyone who waits gets this answer, and long polls ask again.
    fn refuse_waiting(&mut self, why: &AppendRefused) {
        for waiting in self.committing.drain().chain(self.flushing.drain()) {
            waiting.reply.send(Err(why.clone()));
        }
        self.waits.disturb();
    }
}

impl Actor for Partition {
    type Context = Context<Self>;
}

impl Handler<Opened> for Partition {
    type Result = ();
    fn handle(&mut self, m: Opened, ctx: &mut Context<Self>) {
        let State::Opening(asks) = &mut self.state else { return };
        let asks = std::mem::take(asks);
        match m.outcome {
            Ok(outcome) => self.opened(outcome, ctx),
            Err(Gone) => self.state = State::Offline(Arc::from("the recovery of the log was abandoned")),
        }
        for ask in asks {
            self.ask(ask, ctx);
        }
    }
}

macro_rules! asks {
    ($($message:ident),*) => {
        $(impl Handler<$message> for Partition {
            type Result = ();
            fn handle(&mut self, m: $message, ctx: &mut Context<Self>) {
                self.ask(Ask::$message(m), ctx);
            }
        })*
    };
}

asks!(Append, Read, ListOffset, EpochEnd, DeleteRecords, ListProducers, Describe);
