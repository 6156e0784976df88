//! `Node`: the process. Makes the threads and the actors, joins the cluster, and takes everything down again in order.
//!
//! * Thread: control, the System's own; the shards have arbiters of their own.
//! * What ends the process: a lost metadata log, a panic of a singleton, a second signal. Partitions may die and come back.

mod cleaner;
mod cluster_id;
mod directories;
mod exporter;
mod history;
mod join;
mod listen;
mod scrape;
mod settings;

use super::cleaner::Cleaner;
use super::controller::Controller;
use super::elections::{Elections, SharedBook};
use super::link::{self, Arrivals, Link};
use super::log_io::Job;
use super::quorum::store::Store;
use super::quorum::{CloseLog, Parts, Quorum, snapshot};
use super::routes::Routes;
use super::sessions::Watching;
use super::shard::{self, Disk, Settings, Shard, ShardContext, Shutdown};
use crate::api::cx::Current;
use crate::api::{self, Broker};
use crate::config::{Config, Rules};
use crate::core::controller::{self as rules, Image};
use crate::core::fetch_session::Sessions;
use crate::core::types::BrokerId;
use crate::http::{self, HttpState};
use crate::log::dirs::{CleanShutdown, DirLock};
use crate::log::{Files, Fs, LogError};
use crate::net::admission::{Admission, Connections};
use crate::rt::{Tell, clock, port};
use actix::prelude::*;
use arc_swap::ArcSwap;
use cluster_id::Asking;
use settings::{features, metadata_log, millis, open_files, quorum_config, session_times, shard_count, snapshot_rule, speaking, voters};
use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering::Relaxed};
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
    /// It is not of this cluster.
    #[error(transparent)]
    Stranger(#[from] cluster_id::Stranger),
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
    /// Nobody said who the controllers are.
    #[error("controller.quorum.voters is empty: this version's brokers need the id and address of every controller there")]
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
        if !config.is_controller() && config.endpoints.voters.is_empty() {
            return Err(CannotStart::NoController);
        }
        let config = Arc::new(config);
        let node = BrokerId(config.node_id);
        let metrics = Families::new(&understudy_metrics::Registry::new());
        let phase = Arc::new(AtomicU8::new(Phase::Starting as u8));
        metrics.lifecycle.broker_state.set(1);

        let (voters, addresses) = voters(&config);
        let sole = voters == [node];
        let known = directories::known_cluster(&config)?;
        let cluster_id = match sole {
            true => known.unwrap_or_else(|| crate::cli::random_id().to_string()),
            false => Asking { me: node, voters: &addresses }.agree(known).await?,
        };
        let mut prepared = directories::prepare(&config, cluster_id)?;
        metrics.identity(node.0, &prepared.cluster_id);
        let files = Files::new(Fs, open_files(&config));
        let disk = Arc::new(directories::open(&prepared, &config)?);
        let metadata = prepared.metadata();
        let clean = metadata.clean.is_some();
        let voting = (voters.clone(), sole);
        let (store, image) = Store::open(&files, &metadata.path, &prepared.cluster_id, voting, clean, metadata_log(&config), clock::now())?;

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
        let arrivals = Arc::new(Arrivals::default());
        let watching = Watching { me: node, times: session_times(&config), arrivals: arrivals.clone() };
        let controller = Controller::new(settings, begin, shown, balance, watching).start();
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
        let applied = if sole { store.log.end() } else { image.offset() + 1 };
        let leader = Arc::new(AtomicI32::new(BrokerId::NONE.0));
        let link = link::Parts {
            node,
            sole,
            published: published.clone(),
            shards: shards.clone(),
            controller: controller.clone(),
            reconfigured,
            leader: leader.clone(),
            speaking: speaking(&config, &addresses),
            heartbeat: millis(config.broker_heartbeat_interval_ms),
        };
        let link = Link::new(image, link).start();
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
            controller: leader,
            arrivals,
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
            let advertised = listen::advertised(&config, &listeners);
            epoch = join::join(&broker, advertised, prepared.directory_ids(), prepared.previous_epoch()).await?.0;
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
        join::leave(&self.broker).await;
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
