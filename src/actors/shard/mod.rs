//! `Shard`: one per data thread. Creates, restarts and removes the partitions of its thread; no request passes through it.
//!
//! * Lifecycle: started by the node with its thread, stopped with it. A panic here ends the process.
//! * Owns: the partitions whose hash falls to this thread, their restart budgets, the timers for all of them.
//! * Told by: `Link` (what the metadata says), its children's death watches, its own timer.

mod coordinators;
mod deaths;
mod disk;
mod settings;

use coordinators::Coordinators;
use deaths::Deaths;
pub use disk::{Dir, Disk};
pub use settings::{Settings, current};

use super::cleaner::Cleaner;
use super::log_io::{Job, NewPartition, Round};
use super::partition::messages::{Assign, Checkpoint, Close, Delete, Flush, Leadership, Role, Tick};
use super::partition::replica::Found;
use super::partition::{NewReplica, Partition};
use super::routes::{Route, Routes};
use crate::core::controller::{Delta, Image};
use crate::core::types::{BrokerId, Offset, TopicPartition};
use crate::log::Files;
use crate::log::storage::Fs;
use crate::rt::{DeathWatch, Died, Essential, Reply, Tell, clock, port};
use actix::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use understudy_metrics::{ActorMetrics, Families};

/// What the actors of one shard share. Not `Send`: it lives and dies with the thread.
pub struct ShardContext {
    /// This node.
    pub node: BrokerId,
    /// Open files of this process.
    pub files: Files<Fs>,
    /// Metric handles.
    pub metrics: Families,
    /// Compacts logs.
    pub cleaner: Cleaner,
    /// Partitions whose positions changed since the last checkpoint.
    pub dirty: RefCell<Vec<TopicPartition>>,
    /// When a refusal of the disk was last logged.
    pub disk_logged: Cell<Option<clock::Moment>>,
}

/// Refusals of the disk are logged at most once in this time; a full disk refuses every append.
const DISK_LOG_INTERVAL: Duration = Duration::from_secs(10);

impl ShardContext {
    /// Logs that the disk refused an append, unless that was said a moment ago.
    pub fn log_disk_refusal(&self, partition: &str, why: &str) {
        if self.disk_logged.get().is_none_or(|at| at.elapsed() >= DISK_LOG_INTERVAL) {
            self.disk_logged.set(Some(clock::moment()));
            tracing::error!(partition, "the disk refuses appends, reads and deletes go on: {why}");
        }
    }
}

/// A child of a shard.
pub type Child = TopicPartition;

/// See the module.
pub struct Shard {
    index: usize,
    shards: usize,
    context: Rc<ShardContext>,
    disk: Arc<Disk>,
    routes: Arc<Routes>,
    settings: Settings,
    hosted: FxHashMap<TopicPartition, Hosted>,
    coordinators: Coordinators,
    image: Arc<Image>,
    deaths: Arc<ActorMetrics>,
    retention: clock::Moment,
    flushed: clock::Moment,
    closing: bool,
    _essential: Essential,
}

struct Hosted {
    partition: Addr<Partition>,
    topic: Arc<str>,
    generation: u32,
    deaths: Deaths,
    assigned: Assign,
    dir: usize,
    /// `flush.ms` is set.
    flushes_by_time: bool,
}

/// Which shard a partition belongs to.
pub fn shard_of(at: TopicPartition, shards: usize) -> usize {
    let mut hasher = FxHasher::default();
    at.hash(&mut hasher);
    (hasher.finish() >> 32) as usize % shards.max(1)
}

/// The metadata changed. From: `Link`. Lost: never; `Link` waits for the answer before it publishes the image.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Apply {
    /// The metadata from now on.
    pub image: Arc<Image>,
    /// What changed.
    pub delta: Arc<Delta>,
    /// Answered when every partition that the image names here can be reached.
    pub reply: Reply<()>,
}

/// Close every partition. From: the node. Lost: an unclean start later.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Shutdown {
    /// Answered when all are closed: whether the files of all of them can be trusted at the next start.
    pub reply: Reply<bool>,
}

impl Shard {
    /// A shard without partitions.
    pub fn new(index: usize, shards: usize, context: ShardContext, disk: Arc<Disk>, routes: Arc<Routes>, settings: Settings) -> Shard {
        let deaths = context.metrics.actor("partition");
        Shard {
            index,
            shards,
            context: Rc::new(context),
            disk,
            routes,
            image: Arc::new(Image::empty("")),
            settings,
            hosted: FxHashMap::default(),
            coordinators: Coordinators::default(),
            deaths,
            retention: clock::moment(),
            flushed: clock::moment(),
            closing: false,
            _essential: Essential("shard"),
        }
    }

    /// What the image says of a partition here; `None` if no replica of it belongs on this broker.
    fn decided(&self, at: TopicPartition) -> Option<(Arc<str>, Role)> {
        let topic = self.image.topic(at.topic)?;
        let partition = topic.partition(at.partition)?;
        if !partition.replicas.contains(&self.context.node) {
            return None;
        }
        let role = Role {
            leadership: Leadership { leader: partition.leader, epoch: partition.leader_epoch },
            partition_epoch: partition.partition_epoch,
            replicas: partition.replicas.clone(),
            isr: partition.isr.clone(),
        };
        Some((topic.name.clone(), role))
    }

    /// Brings the partitions that changed in line with the image.
    fn apply(&mut self, delta: &Delta, ctx: &mut Context<Self>) {
        let (mut added, mut removed, mut made) = (Vec::new(), Vec::new(), Vec::new());
        self.forget_offsets(delta);
        for topic in delta.topics_deleted.values() {
            self.settings.forget(topic.id);
            for partition in topic.partitions.keys() {
                removed.extend(self.remove(TopicPartition { topic: topic.id, partition: *partition }));
            }
            self.context.metrics.topics.remove(&topic.name);
        }
        let (index, shards) = (self.index, self.shards);
        for at in delta.partitions.iter().copied().filter(|at| shard_of(*at, shards) == index) {
            match self.decided(at) {
                None => removed.extend(self.remove(at)),
                Some((topic, role)) => {
                    let config = self.settings.of(&self.image, at.topic, &topic);
                    let leads = role.leadership.leader == self.context.node;
                    match self.hosted.get_mut(&at) {
                        Some(hosted) => hosted.assign(Assign { role, config }),
                        None => added.push((at, self.host(at, topic.clone(), Assign { role, config }, &mut made, ctx))),
                    }
                    self.coordinate(at, &topic, leads, ctx);
                }
            }
        }
        self.routes.change(&added, &removed);
        for (dir, partitions) in made_by_dir(made) {
            self.disk.dirs[dir].io.tell(Job::Materialise(partitions));
        }
        self.reconfigure(delta);
    }

    /// Tells partitions about configuration that changed without the partitions themselves changing.
    fn reconfigure(&mut self, delta: &Delta) {
        let Some(topics) = self.settings.changed(&self.image, delta) else { return };
        for (at, hosted) in &mut self.hosted {
            if topics.as_ref().is_none_or(|topics| topics.contains(&at.topic)) {
                let config = self.settings.of(&self.image, at.topic, &hosted.topic);
                hosted.assign(Assign { role: hosted.assigned.role.clone(), config });
            }
        }
    }

    /// Starts to host a partition.
    fn host(
        &mut self,
        at: TopicPartition,
        topic: Arc<str>,
        assigned: Assign,
        made: &mut Vec<(usize, NewPartition)>,
        ctx: &mut Context<Self>,
    ) -> Route {
        let (dir, found) = self.disk.place(&topic, at.partition);
        if found.is_none() {
            made.push((dir, NewPartition { dir: self.disk.path(dir, &topic, at.partition), topic: at.topic }));
        }
        let partition = self.create(at, &topic, &assigned, dir, found, 0, None, ctx);
        let route = Route { partition: partition.clone(), topic: topic.clone(), dir };
        let flushes_by_time = assigned.config.flush_ms < i64::MAX;
        self.hosted.insert(at, Hosted { partition, topic, generation: 0, deaths: Deaths::default(), assigned, dir, flushes_by_time });
        route
    }

    #[allow(clippy::too_many_arguments)]
    fn create(
        &self,
        at: TopicPartition,
        topic: &Arc<str>,
        assigned: &Assign,
        dir: usize,
        found: Option<Found>,
        generation: u32,
        offline: Option<Arc<str>>,
        ctx: &mut Context<Self>,
    ) -> Addr<Partition> {
        let new = NewReplica {
            at,
            topic: topic.clone(),
            dir: self.disk.path(dir, topic, at.partition),
            io: self.disk.dirs[dir].io.clone(),
            found,
            role: assigned.role.clone(),
            config: assigned.config.clone(),
            offline,
        };
        let watch = DeathWatch::new(at, generation, ctx.address().recipient());
        Partition::new(new, self.context.clone(), watch).start()
    }

    fn remove(&mut self, at: TopicPartition) -> Option<TopicPartition> {
        let hosted = self.hosted.remove(&at)?;
        self.stop_coordinating(at);
        self.disk.left(hosted.dir);
        hosted.partition.tell(Delete);
        Some(at)
    }

    /// The periodic work: checkpoints of what changed, retention and `flush.ms` when due.
    fn housekeeping(&mut self) {
        let dirty = std::mem::take(&mut *self.context.dirty.borrow_mut());
        if !dirty.is_empty() {
            let round = Arc::new(Round::new(self.disk.dirs.iter().map(|dir| dir.io.clone())));
            for hosted in dirty.iter().filter_map(|at| self.hosted.get(at)) {
                hosted.partition.tell(Checkpoint(round.clone()));
            }
        }
        if self.retention.elapsed() >= self.settings.retention_check_interval() {
            self.retention = clock::moment();
            let now = clock::now();
            self.hosted.values().for_each(|hosted| hosted.partition.tell(Tick { now }));
        }
    }

    /// `flush.ms` of those partitions that have it.
    fn flush_by_time(&mut self) {
        self.flushed = clock::moment();
        self.hosted.values().filter(|hosted| hosted.flushes_by_time).for_each(|hosted| hosted.partition.tell(Flush));
    }

    fn schedule_flush(&self, ctx: &mut Context<Self>) {
        ctx.run_later(self.settings.flush_interval(), |shard, ctx| {
            shard.flush_by_time();
            shard.schedule_flush(ctx);
        });
    }
}

fn made_by_dir(made: Vec<(usize, NewPartition)>) -> FxHashMap<usize, Vec<NewPartition>> {
    let mut by_dir: FxHashMap<usize, Vec<NewPartition>> = FxHashMap::default();
    for (dir, partition) in made {
        by_dir.entry(dir).or_default().push(partition);
    }
    by_dir
}

impl Hosted {
    fn assign(&mut self, assigned: Assign) {
        if self.assigned.role == assigned.role && Arc::ptr_eq(&self.assigned.config, &assigned.config) {
            return;
        }
        self.flushes_by_time = assigned.config.flush_ms < i64::MAX;
        self.assigned = assigned.clone();
        self.partition.tell(assigned);
    }
}

impl Actor for Shard {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(self.settings.checkpoint_interval(), |shard, _| shard.housekeeping());
        ctx.run_later(self.settings.initial_task_delay(), |shard, _| {
            let now = clock::now();
            shard.hosted.values().for_each(|hosted| hosted.partition.tell(Tick { now }));
        });
        self.schedule_flush(ctx);
    }
}

impl Handler<Apply> for Shard {
    type Result = ();
    fn handle(&mut self, m: Apply, ctx: &mut Context<Self>) {
        let old = std::mem::replace(&mut self.image, m.image);
        if !self.closing {
            self.tell_topics(&old, &m.delta);
            self.apply(&m.delta, ctx);
        }
        m.reply.send(());
    }
}

impl Handler<Shutdown> for Shard {
    type Result = ();
    fn handle(&mut self, m: Shutdown, _: &mut Context<Self>) {
        self.closing = true;
        self.stop_all_coordinators();
        let answers: Vec<_> = self
            .hosted
            .drain()
            .map(|(_, hosted)| {
                let (reply, answer) = port();
                hosted.partition.tell(Close { reply });
                answer
            })
            .collect();
        actix::spawn(async move {
            let mut clean = true;
            for answer in answers {
                // One that died meanwhile left its files as they were.
                clean &= answer.await.unwrap_or(false);
            }
            m.reply.send(clean);
        });
    }
}

impl Handler<Died<Child>> for Shard {
    type Result = ();
    fn handle(&mut self, m: Died<Child>, ctx: &mut Context<Self>) {
        if m.panicked {
            self.deaths.died(true);
        }
        let Some(hosted) = self.hosted.get_mut(&m.name).filter(|hosted| m.panicked && hosted.generation == m.generation) else { return };
        let (topic, assigned, dir, generation) = (hosted.topic.clone(), hosted.assigned.clone(), hosted.dir, hosted.generation + 1);
        let mut deaths = std::mem::take(&mut hosted.deaths);
        let times = deaths.another();
        let name = format!("{topic}-{}", m.name.partition);
        let offline = (times >= deaths::ALLOWED)
            .then(|| Arc::from(format!("{name} died {times} times within {} s; see the log, then restart", deaths::WINDOW.as_secs())));
        tracing::error!(partition = name, deaths = times, offline = offline.is_some(), "a partition died; its log is recovered from disk");
        let found = Found { clean: false, survived: false, recovery_point: Offset(0), log_start: None, cleaned_to: None };
        let partition = self.create(m.name, &topic, &assigned, dir, Some(found), generation, offline, ctx);
        self.routes.change(&[(m.name, Route { partition: partition.clone(), topic: topic.clone(), dir })], &[]);
        let flushes_by_time = assigned.config.flush_ms < i64::MAX;
        self.hosted.insert(m.name, Hosted { partition, topic, generation, deaths, assigned, dir, flushes_by_time });
        self.deaths.restarts.inc();
        self.restart_coordinator(m.name, ctx);
    }
}
