//! Everything one node shows, in one value: the node makes it, actors keep a clone (or the handle they need) and touch single cells. No
//! statics, because several nodes may share a process.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

use crate::actors::ActorMetrics;
use crate::api::{ApiMetrics, collect_timing};
use crate::cell::{Counter, Gauge};
use crate::elections::Elections;
use crate::family::Family;
use crate::handles::{ConsumerGroups, Edge, FetchSessions, Groups, Lifecycle, Raft, Refusals, Replicas};
use crate::partitions::Partitions;
use crate::profile::Profiles;
use crate::sink::{Sink, Source};
use crate::timing::Timing;
use crate::topics::Topics;

/// The metric families of one node. Cheap to clone.
#[derive(Clone)]
pub struct Families {
    registry: Registry,
    node: Arc<NodeMetrics>,
}

impl std::ops::Deref for Families {
    type Target = NodeMetrics;

    fn deref(&self) -> &NodeMetrics {
        &self.node
    }
}

/// The handles, by who holds them.
#[derive(Default)]
pub struct NodeMetrics {
    /// What leaders here did to their ISRs.
    pub replicas: Replicas,
    /// Connections and admission.
    pub edge: Edge,
    /// The fetch session cache.
    pub fetch_sessions: FetchSessions,
    /// Consumer groups by state.
    pub groups: Groups,
    /// Groups of the consumer protocol by state.
    pub consumer_groups: ConsumerGroups,
    /// Batches refused, by why.
    pub refusals: Refusals,
    /// State of the broker.
    pub lifecycle: Lifecycle,
    /// The metadata quorum.
    pub raft: Raft,
    /// Traffic by topic.
    pub topics: Topics,
    /// State by hosted replica.
    pub partitions: Partitions,
    /// Elections this controller decided.
    pub elections: Elections,
    /// How long flushes to disk take.
    pub log_flush: Timing,
    apis: Named<ApiMetrics>,
    actors: Named<ActorMetrics>,
    purgatories: Named<Gauge>,
    refused: Named<Counter>,
    bounds: Mutex<Vec<(String, i64)>>,
    log_dirs: Mutex<Vec<(String, Arc<Gauge>)>>,
    processors: Mutex<Vec<(String, String, Arc<Gauge>)>>,
    raft_state: RwLock<&'static str>,
    identity: RwLock<Option<(String, String)>>,
    sources: Mutex<Vec<Box<dyn Source>>>,
    dropped: Counter,
    now_ms: AtomicI64,
}

/// Handles by a name that the code knows; made once, at start, so a list will do.
struct Named<T>(Mutex<Vec<(&'static str, Arc<T>)>>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Mutex::default())
    }
}

impl<T> Named<T> {
    fn get_or(&self, name: &'static str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = lock(&self.0);
        if let Some((_, found)) = all.iter().find(|(known, _)| *known == name) {
            return found.clone();
        }
        let made = Arc::new(make());
        all.push((name, made.clone()));
        made
    }

    fn each(&self, mut visit: impl FnMut(&'static str, &T)) {
        lock(&self.0).iter().for_each(|(name, value)| visit(name, value));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|broken| broken.into_inner())
}

impl Families {
    /// Handles at 0, shown by `registry`.
    ///
    /// # Panics
    /// If the registry already shows a node: each node has a registry of its own.
    pub fn new(registry: &Registry) -> Families {
        let node = Arc::new(NodeMetrics::default());
        let collector = NodeCollector { node: node.clone(), descriptions: descriptions() };
        registry.register(Box::new(collector)).expect("one node to a registry");
        Families { registry: registry.clone(), node }
    }

    /// The text of what `fill` puts, which is of families that the registry does not show.
    pub fn render_only(&self, now_ms: i64, fill: impl FnOnce(&mut Sink)) -> String {
        let mut sink = Sink::new(now_ms);
        fill(&mut sink);
        self.node.dropped.add(sink.dropped());
        TextEncoder::new().encode_to_string(&sink.into_families()).expect("families have names and samples")
    }

    /// The text a scrape gets, as of `now_ms` (milliseconds since the Unix epoch).
    pub fn render(&self, profiles: Profiles, now_ms: i64) -> String {
        self.node.now_ms.store(now_ms, Relaxed);
        let shown: Vec<MetricFamily> = self.registry.gather().into_iter().filter(|family| profiles.shows(family.name())).collect();
        TextEncoder::new().encode_to_string(&shown).expect("families have names and samples")
    }
}

impl NodeMetrics {
    /// The handle of an API by Kafka's name for it (`FetchConsumer` and `FetchFollower` too), made on the first call with the versions it
    /// counts and the errors that shall be visible at 0 before they happen. Later calls get the same handle.
    pub fn api(&self, name: &'static str, versions: RangeInclusive<i16>, errors: &[&'static str]) -> Arc<ApiMetrics> {
        self.apis.get_or(name, || ApiMetrics::new(name, versions, errors))
    }

    /// The handle of a kind of actor, made on the first call.
    pub fn actor(&self, kind: &'static str) -> Arc<ActorMetrics> {
        self.actors.get_or(kind, || ActorMetrics::new(kind))
    }

    /// How many requests wait in a purgatory, by Kafka's name for the operation (`Produce`, `Fetch`). Nothing is left behind by requests
    /// that no longer wait, so both of Kafka's numbers are this one.
    pub fn purgatory(&self, operation: &'static str) -> Arc<Gauge> {
        self.purgatories.get_or(operation, Gauge::default)
    }

    /// Connections that were closed by us for one reason (`max.connections.per.ip`, `tls_on_plaintext`).
    pub fn connections_refused(&self, reason: &'static str) -> Arc<Counter> {
        self.refused.get_or(reason, Counter::default)
    }

    /// Open connections of a listener on one shard. `edge.connections` is separate.
    pub fn processor_connections(&self, listener: &str, shard: usize) -> Arc<Gauge> {
        let shard = shard.to_string();
        let mut all = lock(&self.processors);
        if let Some((_, _, found)) = all.iter().find(|(l, s, _)| l == listener && *s == shard) {
            return found.clone();
        }
        let made = Arc::new(Gauge::default());
        all.push((listener.to_owned(), shard, made.clone()));
        made
    }

    /// 1 once the log directory failed.
    pub fn log_dir_offline(&self, dir: &str) -> Arc<Gauge> {
        let mut all = lock(&self.log_dirs);
        if let Some((_, found)) = all.iter().find(|(known, _)| known == dir) {
            return found.clone();
        }
        let made = Arc::new(Gauge::default());
        all.push((dir.to_owned(), made.clone()));
        made
    }

    /// Shows a limit by its config key or, without one, its name.
    pub fn bound(&self, name: &str, value: i64) {
        let mut all = lock(&self.bounds);
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, shown)) => *shown = value,
            None => all.push((name.to_owned(), value)),
        }
    }

    /// Names the state of the quorum, in Kafka's words (`leader`, `follower`, `observer`, `unattached`, ...).
    pub fn raft_state(&self, state: &'static str) {
        *self.raft_state.write().unwrap_or_else(|broken| broken.into_inner()) = state;
    }

    /// Names the node and its cluster.
    pub fn identity(&self, node_id: i32, cluster_id: &str) {
        *self.identity.write().unwrap_or_else(|broken| broken.into_inner()) = Some((node_id.to_string(), cluster_id.to_owned()));
    }

    /// Adds something to ask at every scrape, for the life of the node.
    pub fn add_source(&self, source: impl Source + 'static) {
        lock(&self.sources).push(Box::new(source));
    }

    fn collect(&self, out: &mut Sink) {
        self.replicas.collect(out);
        self.edge.collect(out);
        self.fetch_sessions.collect(out);
        self.groups.collect(out);
        self.consumer_groups.collect(out);
        self.refusals.collect(out);
        self.lifecycle.collect(out);
        self.raft.collect(out);
        self.elections.collect(out);
        self.topics.collect(out);
        self.partitions.collect(out);
        collect_timing(&self.log_flush, Family::LogFlushTimeMs, Family::LogFlushCount, &[], out);
        self.apis.each(|_, api| api.collect(out));
        self.actors.each(|_, actor| actor.collect(out));
        self.purgatories.each(|operation, waiting| {
            out.put(Family::PurgatorySize, &[operation], waiting.get() as f64);
            out.put(Family::DelayedOperations, &[operation], waiting.get() as f64);
        });
        self.refused.each(|reason, count| out.put(Family::ConnectionsRefused, &[reason], count.get() as f64));
        self.collect_labelled(out);
        crate::process::collect(out);
        lock(&self.sources).iter().for_each(|source| source.collect(out));
        self.dropped.add(out.dropped());
        out.put(Family::SeriesDropped, &[], self.dropped.get() as f64);
    }

    fn collect_labelled(&self, out: &mut Sink) {
        for (name, value) in lock(&self.bounds).iter() {
            out.put(Family::Bound, &[name], *value as f64);
        }
        for (dir, offline) in lock(&self.log_dirs).iter() {
            out.put(Family::LogDirectoryOffline, &[dir], offline.get() as f64);
        }
        for (listener, shard, open) in lock(&self.processors).iter() {
            out.put(Family::ConnectionCount, &[listener, shard], open.get() as f64);
        }
        let state = *self.raft_state.read().unwrap_or_else(|broken| broken.into_inner());
        if !state.is_empty() {
            out.put(Family::RaftCurrentState, &[state], 1.0);
        }
        out.put(Family::BuildInfo, &[env!("CARGO_PKG_VERSION")], 1.0);
        if let Some((node, cluster)) = &*self.identity.read().unwrap_or_else(|broken| broken.into_inner()) {
            out.put(Family::NodeInfo, &[node, cluster], 1.0);
        }
    }
}

/// What the registry holds. Not `Families` itself, which holds the registry.
struct NodeCollector {
    node: Arc<NodeMetrics>,
    descriptions: Vec<Desc>,
}

impl Collector for NodeCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut sink = Sink::new(self.node.now_ms.load(Relaxed));
        self.node.collect(&mut sink);
        sink.into_families()
    }
}

fn descriptions() -> Vec<Desc> {
    let described = |family: &Family| {
        let labels = family.labels().iter().map(|label| label.to_string()).collect();
        Desc::new(family.name().into(), family.help().into(), labels, Default::default()).expect("the table's names are valid")
    };
    Family::ALL.iter().map(described).collect()
}
