//! `Node`: the process. Makes the threads and the actors, joins the cluster, and takes everything down again in order.
//!
//! * Thread: control, the System's own; the shards have arbiters of their own.
//! * What ends the process: a lost metadata log, a panic of a singleton, a second signal. Partitions may die and come back.

mod cleaner;
mod directories;
mod exporter;
mod history;
mod join;
mod listen;
mod scrape;

use super::cleaner::Cleaner;
use super::controller::Controller;
use super::elections::{Elections, SharedBook};
use super::link::{Link, Registered};
use super::log_io::Job;
use super::quorum::store::Store;
use super::quorum::{CloseLog, Parts, Quorum, Voter, snapshot};
use super::routes::Routes;
use super::shard::{self, Disk, Settings, Shard, ShardContext, Shutdown};
use crate::api::cx::Current;
use crate::api::{self, Broker};
use crate::config::{Config, Rules};
use crate::core::controller::records::Feature;
use crate::core::controller::{self as rules, Image};
use crate::core::fetch_session::Sessions;
use crate::core::quorum;
use crate::core::quorum::snapshots::SnapshotRule;
use crate::core::types::{BrokerId, DirectoryId};
use crate::http::{self, HttpState};
use crate::log::dirs::{CleanShutdown, DirLock};
use crate::log::{Files, Fs, LogConfig, LogError};
use crate::net::admission::{Admission, Connections};
use crate::rt::{Tell, clock, port};
use actix::prelude::*;
use arc_swap::ArcSwap;
use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use understudy_metrics::Families;

/// The level of `metadata.version` that this broker writes (4.3-IV0).
pub const METADATA_LEVEL: i16 = 30;
/// The level of eligible leader replicas (KIP-966) that this version supports, and that a new cluster begins with.
const ELR_LEVEL: i16 = 1;

/// The level of `group.version` at which there are consumer groups (KIP-848).
const GROUP_LEVEL: i16 = 1;

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum CannotStart {
    /// A log directory.
    #[error(transparent)]
    Directory(#[from] directories::BadDirectory),
    /// The metadata on disk.
    #[error(transparent)]
    Metadata(#[from] super::quorum::store::Damaged),
    /// A log directory's thread.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A listener.
    #[error("cannot listen on {address}: {source}; is another broker running there? change {key}, or use port 0 for a free one")]
    Listen {
        /// Where.
        address: String,
        /// The key that says so.
        key: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A broker whose controllers run elsewhere.
    #[error("this version's brokers need a controller in the same process: process.roles must be controller, or broker,controller")]
    NoController,
    /// The controller refused this broker.
    #[error("the controller refused this broker: {0}")]
    Refused(String),
}

/// Life of the node, as `/ready` and `/live` tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    Starting,
    Serving,
    Stopping,
}

/// Runs a broker until it is told to stop.
pub fn serve(config: Config) -> ExitCode {
    let begun = clock::moment();
    let system = System::new();
    let outcome = system.block_on(async move {
        let node = match Node::start(config).await {
            Ok(node) => node,
            Err(e) => {
                tracing::error!("cannot start: {e}");
                return ExitCode::FAILURE;
            }
        };
        println!("{}", node.ready_line(begun.elapsed()));
        told_to_stop().await;
        tokio::spawn(async {
            told_to_stop().await;
            tracing::warn!("told to stop again: stopping at once, the next start recovers");
            std::process::exit(1);
        });
        node.stop().await
    });
    System::current().stop();
    outcome
}

/// A broker on a thread of this process, for tests and for programs that bring their own.
pub struct InProcess {
    /// Host and port for clients.
    pub kafka: String,
    /// Host and port of metrics and health; empty if `http.listen` is.
    pub http: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<ExitCode>,
}

/// Starts a broker in this process and returns when it serves. It takes no signals: [`InProcess::stop`] ends it.
///
/// Errors: what [`serve`] would have logged.
pub fn spawn(config: Config) -> Result<InProcess, String> {
    let (stop, stopped) = oneshot::channel();
    let (tell, started) = std::sync::mpsc::channel();
    let run = move || {
        System::new().block_on(async move {
            match Node::start(config).await {
                Ok(node) => {
                    let _ = tell.send(Ok((node.kafka.clone(), node.http.clone())));
                    let _ = stopped.await;
                    node.stop().await
                }
                Err(e) => {
                    let _ = tell.send(Err(e.to_string()));
                    ExitCode::FAILURE
                }
            }
        })
    };
    let thread = std::thread::Builder::new().name("understudy".into()).spawn(run).map_err(|e| e.to_string())?;
    let (kafka, http) = started.recv().map_err(|_| "the broker's thread died while it started".to_owned())??;
    Ok(InProcess { kafka, http, stop, thread })
}

impl InProcess {
    /// Stops the broker in order. Returns whether the next start can trust its files.
    pub fn stop(self) -> bool {
        let _ = self.stop.send(());
        self.thread.join().is_ok_and(|code| code == ExitCode::SUCCESS)
    }
}

/// SIGTERM or Ctrl-C.
async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        tracing::error!("signals cannot be caught: only kill -9 will stop this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// A running broker.
struct Node {
    broker: Arc<Broker>,
    shards: Vec<Addr<Shard>>,
    /// The shards' threads live as long as these.
    arbiters: Vec<Arbiter>,
    disk: Arc<Disk>,
    quorum: Addr<Quorum>,
    /// The directories are ours as long as these live.
    _locks: Vec<DirLock>,
    phase: Arc<AtomicU8>,
    /// Its broker epoch; -1 if it is no broker.
    epoch: i64,
    kafka: String,
    controllers: String,
    http: String,
}

impl Node {
    async fn start(config: Config) -> Result<Node, CannotStart> {
        if !config.is_controller() {
            return Err(CannotStart::NoController);
        }
        let config = Arc::new(config);
        let node = BrokerId(config.node_id);
        let metrics = Families::new(&understudy_metrics::Registry::new());
        let phase = Arc::new(AtomicU8::new(Phase::Starting as u8));
        metrics.lifecycle.broker_state.set(1);

        let mut prepared = directories::prepare(&config)?;
        metrics.identity(node.0, &prepared.cluster_id);
        let files = Files::new(Fs, open_files(&config));
        let disk = Arc::new(directories::open(&prepared, &config)?);
        let metadata = prepared.metadata();
        let clean = metadata.clean.is_some();
        let (voters, addresses) = voters(&config);
        let (store, image) =
            Store::open(&files, &metadata.path, &prepared.cluster_id, voters.clone(), clean, metadata_log(&config), clock::now())?;

        let listeners = listen::bind_all(&config)?;
        let quorum_listeners = listen::bind_quorum(&config)?;
        let http = listen::bind_http(&config)?;

        let features = features();
        let settings = rules::Settings {
            default_partitions: config.num_partitions,
            default_replication_factor: config.default_replication_factor as i16,
            unclean_election: config.unclean_leader_election_enable,
            min_insync_replicas: config.min_insync_replicas.max(1) as usize,
            features: features.clone(),
            rules: Arc::new(Rules::new(config.clone())),
        };
        let book = SharedBook::default();
        let shown = Elections::new(book.clone(), metrics.clone());
        let begin = rules::bootstrap(
            METADATA_LEVEL,
            &[(rules::ELR_VERSION, ELR_LEVEL), ("group.version", GROUP_LEVEL)],
            config.min_insync_replicas.max(1) as usize,
        );
        let balance = Duration::from_secs(config.leader_imbalance_check_interval_seconds.max(1) as u64);
        let balance = config.auto_leader_rebalance_enable.then_some(balance);
        let controller = Controller::new(settings, begin, shown, balance).start();
        let routes = Arc::new(Routes::default());
        let cleaner = cleaner::make(&shard::current(&config, &image, node), &disk);
        metrics.add_source(cleaner.clone());
        let (shards, arbiters) = start_shards(&config, node, &files, &metrics, &cleaner, &disk, &routes);
        let level = snapshot::level(&image, METADATA_LEVEL);
        let published = Arc::new(ArcSwap::from_pointee(Image::empty(&prepared.cluster_id)));
        let current = Arc::new(ArcSwap::from_pointee(Current::new((*config).clone())));
        let (fixed, publish) = (config.clone(), current.clone());
        let reconfigured = Box::new(move |image: &Image| {
            let current = shard::current(&fixed, image, node);
            cleaner.configure(cleaner::settings(&current));
            publish.store(Arc::new(Current::new(current)));
        });
        let applied = if voters.len() == 1 { store.log.end() } else { image.offset() + 1 };
        let link = Link::new(node, image, published.clone(), shards.clone(), controller.clone(), reconfigured).start();
        let parts = Parts {
            config: quorum_config(&config, voters, metadata.id),
            voters: addresses,
            listener: config.endpoints.controller_listeners.first().map_or_else(String::new, |listener| listener.name.clone()),
            cluster_id: prepared.cluster_id.clone(),
            applied,
            io: disk.dirs[metadata.index].io.clone(),
            link: link.clone(),
            controller: controller.clone(),
            metrics: metrics.clone(),
            snapshots: snapshot_rule(&config),
            level,
        };
        let quorum = Quorum::new(store, parts).start();

        let broker = Arc::new(Broker {
            node,
            cluster_id: prepared.cluster_id.as_str().into(),
            config: config.clone(),
            current,
            image: published,
            routes,
            link: link.clone(),
            quorum: quorum.clone(),
            disk: disk.clone(),
            sessions: Sessions::new(config.max_incremental_fetch_session_cache_slots as usize).into(),
            features,
            apis: api::cx::api_metrics(&metrics),
            metrics: metrics.clone(),
        });
        let admission = Arc::new(Admission::new(config.understudy_admitted_bytes_max as usize));
        let connections = Connections::new();
        metrics.add_source(scrape::BrokerSource::new(broker.clone(), admission.clone(), connections.clone()));
        let http_address = http.as_ref().map(|(address, _)| address.clone()).unwrap_or_default();
        if let Some((_, listener)) = http {
            start_http(listener, &broker, &phase, book);
        }

        let controllers = quorum_listeners.first().map(|listener| listener.address.clone()).unwrap_or_default();
        for listener in quorum_listeners {
            listen::accept_everywhere(&arbiters, &broker, &admission, &connections, listener);
        }
        let mut epoch = -1;
        if config.is_broker() {
            if config.endpoints.voters.len() > 1 {
                tracing::warn!("this version's brokers know only the controller of their own node: this one waits until that leads");
            }
            let advertised = listen::advertised(&config, &listeners);
            epoch = join::join(&broker, &controller, advertised, prepared.directory_ids(), prepared.previous_epoch()).await?.0;
            link.tell(Registered { epoch });
            directories::set_strays_aside(&disk);
        }
        let kafka = listeners.first().map(|listener| listener.address.clone()).unwrap_or_default();
        for listener in listeners {
            listen::accept_everywhere(&arbiters, &broker, &admission, &connections, listener);
        }
        phase.store(Phase::Serving as u8, Relaxed);
        metrics.lifecycle.broker_state.set(3);
        let locks = std::mem::take(&mut prepared.locks);
        Ok(Node { broker, shards, arbiters, disk, quorum, _locks: locks, phase, epoch, kafka, controllers, http: http_address })
    }

    /// What a script waits for.
    fn ready_line(&self, took: Duration) -> String {
        let Node { broker, kafka, controllers, http, .. } = self;
        let http = if http.is_empty() { "off" } else { http };
        let listens = if broker.config.is_broker() { format!("kafka={kafka}") } else { format!("controller={controllers}") };
        format!("ready {listens} http={http} node={} cluster={} in {} ms", broker.node.0, broker.cluster_id, took.as_millis())
    }

    /// Takes everything down so that the next start can trust the files.
    async fn stop(self) -> ExitCode {
        self.phase.store(Phase::Stopping as u8, Relaxed);
        self.broker.metrics.lifecycle.broker_state.set(6);
        tracing::info!("stopping");
        let mut clean = true;
        for shard in &self.shards {
            let (reply, answer) = port();
            shard.tell(Shutdown { reply });
            clean &= answer.await.unwrap_or(false);
        }
        let (reply, answer) = port();
        self.quorum.tell(CloseLog { reply });
        let _ = answer.await;
        let mut code = ExitCode::SUCCESS;
        for dir in &self.disk.dirs {
            if let Err(e) = finish(dir, clean.then_some(self.epoch)).await {
                tracing::error!(dir = %dir.io.dir.display(), "the directory could not be left in order, the next start recovers it: {e}");
                code = ExitCode::FAILURE;
            }
        }
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        tracing::info!("stopped");
        code
    }
}

/// Everything written goes to the disk, then the checkpoints, and last the marker that says so; without an epoch there is no marker, and
/// the next start recovers.
async fn finish(dir: &super::shard::Dir, epoch: Option<i64>) -> Result<(), LogError> {
    let (reply, answer) = port();
    dir.io.tell(Job::Finish(reply));
    answer.await.map_err(|gone| LogError::io("close", &dir.io.dir, std::io::Error::other(gone)))??;
    epoch.map_or(Ok(()), |epoch| CleanShutdown::new(epoch).write(&Fs, &dir.io.dir))
}

/// The feature levels that this broker can run at. What is listed with a highest level of 0 exists by name only.
fn features() -> Vec<Feature> {
    let rows = [
        ("metadata.version", 7, METADATA_LEVEL),
        ("group.version", 0, GROUP_LEVEL),
        ("transaction.version", 0, 0),
        ("kraft.version", 0, 0),
        (rules::ELR_VERSION, 0, ELR_LEVEL),
    ];
    rows.into_iter().map(|(name, min, max)| Feature { name: name.into(), min, max }).collect()
}

/// How many files may stay open: as configured, else most of what the system allows.
fn open_files(config: &Config) -> usize {
    match config.understudy_open_files_max {
        0 => {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let allowed = limit.current.unwrap_or(u64::MAX).min(1 << 20) as usize;
            crate::log::files::DEFAULT_OPEN_FILES.min(allowed / 2)
        }
        configured => configured as usize,
    }
}

/// The voters of the quorum, in id order, and where they listen; this node alone if none are configured.
fn voters(config: &Config) -> (Vec<BrokerId>, Vec<Voter>) {
    let configured = &config.endpoints.voters;
    let mut ids: Vec<BrokerId> = configured.iter().map(|voter| BrokerId(voter.id)).collect();
    if ids.is_empty() {
        ids.push(BrokerId(config.node_id));
    }
    ids.sort();
    let address = |voter: &crate::config::Voter| Voter { id: BrokerId(voter.id), host: voter.host.clone(), port: voter.port };
    (ids, configured.iter().map(address).collect())
}

fn quorum_config(config: &Config, voters: Vec<BrokerId>, directory: DirectoryId) -> quorum::Config {
    let millis = i64::from;
    let timing = quorum::Timing {
        election: millis(config.controller_quorum_election_timeout_ms),
        fetch: millis(config.controller_quorum_fetch_timeout_ms),
        request: millis(config.controller_quorum_request_timeout_ms),
        backoff: millis(config.controller_quorum_retry_backoff_ms),
        succession: millis(config.controller_quorum_election_backoff_max_ms),
        fetch_bytes: config.controller_quorum_fetch_max_bytes as u32,
        snapshot_bytes: config.controller_quorum_fetch_snapshot_max_bytes as u32,
        ..quorum::Timing::default()
    };
    quorum::Config { me: BrokerId(config.node_id), directory, voters, timing }
}

fn metadata_log(config: &Config) -> LogConfig {
    LogConfig {
        segment_bytes: config.metadata_log_segment_bytes as u64,
        segment_ms: config.metadata_log_segment_ms,
        delete: false,
        ..LogConfig::default()
    }
}

fn snapshot_rule(config: &Config) -> SnapshotRule {
    let bytes = config.metadata_log_max_record_bytes_between_snapshots as u64;
    SnapshotRule::new(bytes, config.metadata_log_max_snapshot_interval_ms, clock::now())
}

/// One data thread for two cores, unless configured: a hop between threads costs more than anything a request does.
fn shard_count(config: &Config) -> usize {
    match config.understudy_shards {
        0 => std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)),
        configured => configured as usize,
    }
}

fn start_shards(
    config: &Arc<Config>,
    node: BrokerId,
    files: &Files<Fs>,
    metrics: &Families,
    cleaner: &Cleaner,
    disk: &Arc<Disk>,
    routes: &Arc<Routes>,
) -> (Vec<Addr<Shard>>, Vec<Arbiter>) {
    let shards = shard_count(config);
    let start = |index| {
        let arbiter = Arbiter::new();
        let (config, files, metrics, disk, routes) = (config.clone(), files.clone(), metrics.clone(), disk.clone(), routes.clone());
        let cleaner = cleaner.clone();
        let shard = Shard::start_in_arbiter(&arbiter.handle(), move |_| {
            let context = ShardContext { node, files, metrics, cleaner, dirty: RefCell::default(), disk_logged: Cell::new(None) };
            Shard::new(index, shards, context, disk, routes, Settings::new(node, config))
        });
        (shard, arbiter)
    };
    (0..shards).map(start).unzip()
}

fn start_http(listener: std::net::TcpListener, broker: &Arc<Broker>, phase: &Arc<AtomicU8>, book: SharedBook) {
    let (families, exporter, phase) = (broker.metrics.clone(), Arc::new(exporter::Exporter::new(broker.clone())), phase.clone());
    let ready = move || match phase.load(Relaxed) {
        at if at == Phase::Serving as u8 => Ok(()),
        at if at == Phase::Stopping as u8 => Err("stopping".to_owned()),
        _ => Err("starting: the metadata log is being read, or this broker is not yet registered".to_owned()),
    };
    let state = HttpState {
        metrics: Box::new(move |profiles| Box::pin(exporter::scrape(families.clone(), exporter.clone(), profiles))),
        // Singletons end the process when they die, so a process that answers here lives.
        live: Box::new(|| Ok(())),
        ready: Box::new(ready),
        elections: Box::new(move |limit, topic| history::json(&book, limit, topic)),
    };
    match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            actix::spawn(http::serve(listener, Arc::new(state)));
        }
        Err(e) => tracing::error!("no metrics: {e}"),
    }
}
