//! `Groups`: the coordinator of the groups of one partition of `__consumer_offsets`, on the shard that leads it. A shell around
//! `core::group`: reads the partition into it, hands it requests and the time, and appends what it decides.
//!
//! * Lifecycle: created by its `Shard` with the leadership, unloaded with it; after a panic the shard makes a new one, which reads again.
//! * Thread: the partition's shard. What the log holds is read and replayed on a thread of the log directory.
//! * Asked by: handlers. Tells: its partition. A restart loses what waited: every request is answered `Gone`.
//! * While it reads, requests are refused with COORDINATOR_LOAD_IN_PROGRESS: clients ask again.

mod batches;
mod counts;
pub mod messages;
mod news;
mod outgoing;

use super::controller::Random;
use super::log_io::{Handle, Job};
use super::partition::Partition;
use super::partition::messages::{Append, AppendRefused, Appended, Describe, Positions, Read, ReadAnswer, ReadRefused};
use crate::core::controller::Image;
use crate::core::group::{self, Answer, Coordinator, Effect, Ticket, Why, WriteId};
use crate::core::types::{Acks, BrokerId, Epoch, Millis, Offset, Reader, TopicPartition};
use crate::log::validate::Origin;
use crate::rt::clock::{self, Moment};
use crate::rt::{DeathWatch, Gone, Reply, Tell};
use actix::prelude::*;
use batches::{Chunk, Encoded, Unreadable};
use counts::Counts;
use messages::{Ask, Report, TOPIC, TopicsDeleted, Unload};
use news::News;
use outgoing::{Full, Outgoing};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use understudy_metrics::Families;

/// How late the gauges may be.
const COUNT_DELAY: Duration = Duration::from_secs(1);

/// Groups and offsets on a page of a report: some tens of microseconds.
const PAGE: usize = 1_000;

/// The name of a shard's child: the coordinator of the groups of that partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupsOf(pub TopicPartition);

/// What a shard says when it creates a coordinator.
pub struct NewGroups {
    /// The partition.
    pub at: TopicPartition,
    /// Its actor.
    pub partition: Addr<Partition>,
    /// The thread of its log directory.
    pub io: Handle,
    /// This node.
    pub node: BrokerId,
    /// How groups are run.
    pub settings: group::Settings,
    /// The topics that there are.
    pub topics: Arc<Image>,
    /// `offsets.load.buffer.size`: bytes read at a time.
    pub load_bytes: u32,
    /// Metric handles.
    pub metrics: Families,
}

/// See the module.
pub struct Groups {
    at: TopicPartition,
    partition: Addr<Partition>,
    io: Handle,
    node: BrokerId,
    load_bytes: u32,
    state: State,
    /// Requests that wait for their answer.
    waiting: FxHashMap<Ticket, Reply<Answer>>,
    /// The next ticket.
    next: Ticket,
    /// Writes that are told to the partition when the mailbox is empty.
    outgoing: Outgoing,
    /// The newest, for a coordinator that is away.
    news: News,
    timer: Option<(Millis, SpawnHandle)>,
    counts: Counts,
    /// The groups are to be counted in a moment.
    counting: bool,
    chance: Random,
    _watch: DeathWatch<GroupsOf>,
}

enum State {
    /// Reads its partition. The coordinator is away while records are replayed into it, on a thread of the log directory.
    Loading(Option<Box<Coordinator>>, Progress),
    /// Serves.
    Active(Box<Coordinator>),
    /// The partition cannot be read, or the leadership is gone.
    Failed,
}

/// How far the reading is.
struct Progress {
    begun: Moment,
    records: usize,
    /// Offsets of transactions, which this version does not know.
    transactional: usize,
}

/// The partition said where it stands. From: the partition. Lost: with it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Found(Result<Result<Positions, ReadRefused>, Gone>);

/// The partition said where the next records are. From: the partition. Lost: with it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ranged {
    from: Offset,
    outcome: Result<Result<ReadAnswer, ReadRefused>, Gone>,
}

/// Records were read and replayed. From: a thread of the log directory. Lost: with the process.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Taken(Result<Result<(Box<Coordinator>, Chunk), Unreadable>, Gone>);

/// The mailbox has been worked through: what was decided goes to the partition. From: itself. Lost: never, nothing lies between.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Send;

/// Writes are committed, or are not in the log. From: the partition. Lost: with it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Written {
    writes: Vec<WriteId>,
    outcome: Result<Result<Appended, AppendRefused>, Gone>,
}

impl Groups {
    /// A coordinator that has read nothing yet.
    pub fn new(new: NewGroups, watch: DeathWatch<GroupsOf>) -> Groups {
        let news = News { settings: new.settings.clone(), topics: new.topics.clone() };
        let coordinator = Box::new(Coordinator::new(new.settings, new.topics));
        Groups {
            at: new.at,
            partition: new.partition,
            io: new.io,
            node: new.node,
            load_bytes: new.load_bytes,
            state: State::Loading(Some(coordinator), Progress { begun: clock::moment(), records: 0, transactional: 0 }),
            waiting: FxHashMap::default(),
            next: Ticket(0),
            outgoing: Outgoing::default(),
            news,
            timer: None,
            counts: Counts::new(new.metrics),
            counting: false,
            chance: Random,
            _watch: watch,
        }
    }

    /// Asks the partition for what lies at `from`, up to its log end: what is not committed yet will be, or this leadership ends.
    fn read(&self, from: Offset, ctx: &mut Context<Self>) {
        self.partition.tell(Read {
            from,
            max_bytes: self.load_bytes,
            reader: Reader::Follower(self.node),
            current_epoch: Epoch::NONE,
            last_fetched_epoch: Epoch::NONE,
            wait: None,
            reply: Reply::to(ctx.address(), move |outcome| Ranged { from, outcome }),
        });
    }

    fn cannot_load(&mut self, why: impl std::fmt::Display) {
        tracing::error!(partition = self.at.partition, "the groups of a partition of {TOPIC} cannot be read and are not served: {why}");
        self.state = State::Failed;
    }

    /// Has the coordinator do something, performs what comes of it, and sets the timer.
    fn act(&mut self, ctx: &mut Context<Self>, act: impl FnOnce(&mut Coordinator, Millis, &mut Random, &mut Vec<Effect>)) {
        let State::Active(coordinator) = &mut self.state else { return };
        let now = clock::now();
        let mut effects = Vec::new();
        act(coordinator, now, &mut self.chance, &mut effects);
        while !effects.is_empty() {
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Answer(ticket, answer) => answer_ticket(&mut self.waiting, ticket, answer),
                    Effect::Append(write, records) => match Encoded::of(&records) {
                        Ok(records) => {
                            if self.outgoing.is_empty() {
                                ctx.notify(Send);
                            }
                            if let Some(full) = self.outgoing.add(write, &records, now) {
                                append(&self.partition, full, ctx);
                            }
                        }
                        Err(e) => {
                            tracing::error!("what a group's members sent cannot be stored: {e}");
                            coordinator.failed(write, Why::UnknownServerError, now, &mut effects);
                        }
                    },
                }
            }
        }
        if let Some(due) = coordinator.deadline() {
            self.wake_at(due, now, ctx);
        }
        self.count_soon(ctx);
    }

    /// Brings the gauges up to date in a moment, for all that happens until then.
    fn count_soon(&mut self, ctx: &mut Context<Self>) {
        if !std::mem::replace(&mut self.counting, true) {
            ctx.run_later(COUNT_DELAY, |groups, _| {
                groups.counting = false;
                if let State::Active(coordinator) = &groups.state {
                    groups.counts.show(coordinator);
                }
            });
        }
    }

    /// Wakes the coordinator when it is due. A timer that rings too early costs less than setting it anew with each heartbeat.
    fn wake_at(&mut self, due: Millis, now: Millis, ctx: &mut Context<Self>) {
        if let Some((at, timer)) = self.timer.take() {
            if at <= due {
                self.timer = Some((at, timer));
                return;
            }
            ctx.cancel_future(timer);
        }
        let wait = Duration::from_millis(due.since(now).max(1) as u64);
        let timer = ctx.run_later(wait, |groups, ctx| {
            groups.timer = None;
            groups.act(ctx, |coordinator, now, _, effects| coordinator.tick(now, effects));
        });
        self.timer = Some((due, timer));
    }
}

fn answer_ticket(waiting: &mut FxHashMap<Ticket, Reply<Answer>>, ticket: Ticket, answer: Answer) {
    if let Some(reply) = waiting.remove(&ticket) {
        reply.send(answer);
    }
}

/// Appends a batch; the partition's answer comes back as [`Written`].
fn append(partition: &Addr<Partition>, full: Full, ctx: &Context<Groups>) {
    let Full { batch, writes } = full;
    let origin = Origin { client: false, zstd_allowed: true };
    let reply = Reply::to(ctx.address(), move |outcome| Written { writes, outcome });
    partition.tell(Append { records: batch, acks: Acks::All, origin, reply });
}

/// What a refused append means to those who wait for it.
fn refused(outcome: Result<Result<Appended, AppendRefused>, Gone>) -> Result<(), Why> {
    match outcome {
        // What the in-sync replicas had is committed, however few of them are left by now.
        Ok(Ok(_) | Err(AppendRefused::NotEnoughReplicasAfterAppend)) => Ok(()),
        Ok(Err(AppendRefused::NotEnoughReplicas)) => Err(Why::CoordinatorNotAvailable),
        Ok(Err(AppendRefused::NotLeader(_) | AppendRefused::Storage(_) | AppendRefused::Gone)) | Err(Gone) => Err(Why::NotCoordinator),
        Ok(Err(e @ (AppendRefused::Batch(_) | AppendRefused::Producer(_) | AppendRefused::LargerThanSegment))) => {
            tracing::error!("a write of a group coordinator was refused: {e}");
            Err(Why::UnknownServerError)
        }
    }
}

impl Actor for Groups {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.partition.tell(Describe { reply: Reply::to(ctx.address(), Found) });
    }
}

impl Handler<Found> for Groups {
    type Result = ();
    fn handle(&mut self, m: Found, ctx: &mut Context<Self>) {
        match m.0 {
            Ok(Ok(positions)) => self.read(positions.log_start, ctx),
            Ok(Err(e)) => self.cannot_load(e),
            Err(e) => self.cannot_load(e),
        }
    }
}

impl Handler<Ranged> for Groups {
    type Result = ();
    fn handle(&mut self, m: Ranged, ctx: &mut Context<Self>) {
        let answer = match m.outcome {
            Ok(Ok(answer)) => answer,
            Ok(Err(e)) => return self.cannot_load(e),
            Err(e) => return self.cannot_load(e),
        };
        let State::Loading(coordinator, progress) = &mut self.state else { return };
        let Some(mut coordinator) = coordinator.take() else { return };
        if let Some(range) = answer.range {
            let reply = Reply::to(ctx.address(), Taken);
            let replay = move || {
                let chunk = batches::read(&range, m.from, |record| coordinator.replay(record));
                reply.send(chunk.map(|chunk| (coordinator, chunk)));
            };
            return self.io.tell(Job::Run(Box::new(replay)));
        }
        tracing::debug!(partition = self.at.partition, records = progress.records, took = ?progress.begun.elapsed(), "groups are loaded");
        if progress.transactional > 0 {
            tracing::warn!(
                partition = self.at.partition,
                offsets = progress.transactional,
                "offsets that were committed in transactions are not known to this version: their groups go on from older ones, or from \
                 auto.offset.reset; set them with kafka-consumer-groups --reset-offsets before the groups start"
            );
        }
        self.news.tell(&mut coordinator);
        self.state = State::Active(coordinator);
        self.act(ctx, |coordinator, now, _, effects| coordinator.loaded(now, effects));
    }
}

impl Handler<Taken> for Groups {
    type Result = ();
    fn handle(&mut self, m: Taken, ctx: &mut Context<Self>) {
        let (coordinator, chunk) = match m.0 {
            Ok(Ok(taken)) => taken,
            Ok(Err(e)) => return self.cannot_load(e),
            Err(e) => return self.cannot_load(e),
        };
        let State::Loading(place, progress) = &mut self.state else { return };
        *place = Some(coordinator);
        progress.records += chunk.records;
        progress.transactional += chunk.transactional;
        self.read(chunk.next, ctx);
    }
}

impl Handler<Written> for Groups {
    type Result = ();
    fn handle(&mut self, m: Written, ctx: &mut Context<Self>) {
        let outcome = refused(m.outcome);
        self.act(ctx, |coordinator, now, _, effects| {
            for write in m.writes {
                match outcome {
                    Ok(()) => coordinator.committed(write, now, effects),
                    Err(why) => coordinator.failed(write, why, now, effects),
                }
            }
        });
    }
}

impl Handler<Send> for Groups {
    type Result = ();
    fn handle(&mut self, _: Send, ctx: &mut Context<Self>) {
        if let Some(full) = self.outgoing.take() {
            append(&self.partition, full, ctx);
        }
    }
}

impl Handler<Ask> for Groups {
    type Result = ();
    fn handle(&mut self, m: Ask, ctx: &mut Context<Self>) {
        let why = match self.state {
            State::Active(_) => {
                let ticket = self.next;
                self.next = Ticket(ticket.0 + 1);
                self.waiting.insert(ticket, m.reply);
                return self.act(ctx, |coordinator, now, chance, effects| coordinator.ask(ticket, m.request, now, chance, effects));
            }
            State::Loading(..) => Why::LoadInProgress,
            State::Failed => Why::NotCoordinator,
        };
        m.reply.send(m.request.refusal(why));
    }
}

impl Handler<Report> for Groups {
    type Result = ();
    fn handle(&mut self, m: Report, _: &mut Context<Self>) {
        m.reply.send(match &self.state {
            State::Active(coordinator) => coordinator.report(m.after.as_ref(), PAGE),
            State::Loading(..) | State::Failed => (Vec::new(), None),
        });
    }
}

impl Handler<TopicsDeleted> for Groups {
    type Result = ();
    fn handle(&mut self, m: TopicsDeleted, ctx: &mut Context<Self>) {
        self.act(ctx, |coordinator, now, _, effects| coordinator.topics_deleted(&m.0, now, effects));
    }
}

impl Handler<Unload> for Groups {
    type Result = ();
    fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        if let State::Active(coordinator) = std::mem::replace(&mut self.state, State::Failed) {
            let mut effects = Vec::new();
            coordinator.unload(&mut effects);
            for effect in effects {
                if let Effect::Answer(ticket, answer) = effect {
                    answer_ticket(&mut self.waiting, ticket, answer);
                }
            }
        }
        ctx.stop();
    }
}
