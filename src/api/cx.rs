//! What a handler may use: the published metadata, the routes to partitions, the way to the controller, and who asks.

use crate::actors::link::Link;
use crate::actors::quorum::Quorum;
use crate::actors::routes::Routes;
use crate::actors::shard::Disk;
use crate::config::Config;
use crate::core::controller::Image;
use crate::core::controller::records::Feature;
use crate::core::fetch_session::Sessions;
use crate::core::types::BrokerId;
use crate::rt::clock::Moment;
use crate::wire::error::ErrorCode;
use actix::Addr;
use arc_swap::{ArcSwap, Guard};
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use understudy_metrics::{ApiMetrics, Families, Spent};

/// The broker as its handlers see it; one per process, shared by all shards.
pub struct Broker {
    /// This node.
    pub node: BrokerId,
    /// The cluster's id.
    pub cluster_id: Arc<str>,
    /// Static configuration.
    pub config: Arc<Config>,
    /// Configuration with the dynamic settings of the metadata over it.
    pub current: Arc<ArcSwap<Current>>,
    /// The newest metadata that this broker has applied.
    pub image: Arc<ArcSwap<Image>>,
    /// Partitions hosted here.
    pub routes: Arc<Routes>,
    /// The way to the active controller.
    pub link: Addr<Link>,
    /// The metadata quorum's voter on this node.
    pub quorum: Addr<Quorum>,
    /// The log directories.
    pub disk: Arc<Disk>,
    /// Fetch sessions of all connections.
    pub sessions: std::sync::Mutex<Sessions>,
    /// The feature levels that this broker can run at.
    pub features: Vec<Feature>,
    /// Metric handles.
    pub metrics: Families,
    /// Metric handles by API key, from [`api_metrics`].
    pub apis: Vec<Option<Arc<ApiMetrics>>>,
}

/// The broker's configuration as it is now.
#[derive(Debug)]
pub struct Current {
    /// All keys.
    pub config: Config,
    /// `max.connections.per.ip.overrides`, resolved. Names that resolve to nothing limit nobody.
    pub per_address: HashMap<IpAddr, i32>,
}

impl Current {
    /// Resolves what is named in `config`.
    pub fn new(config: Config) -> Current {
        let named = config.connection_limits().unwrap_or_default();
        let resolved = named.iter().flat_map(|(host, limit)| {
            let addresses = (host.as_str(), 0).to_socket_addrs().into_iter().flatten();
            addresses.map(|address| (address.ip(), *limit))
        });
        Current { per_address: resolved.collect(), config }
    }
}

/// Who is at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The listener it came in by.
    pub listener: Arc<str>,
    /// Whether that is one of the metadata quorum's.
    pub quorum: bool,
}

/// What a handler gets; cheap to clone into a future.
#[derive(Clone)]
pub struct Cx {
    /// The broker.
    pub broker: Arc<Broker>,
    /// The peer.
    pub peer: Rc<Peer>,
}

impl Cx {
    /// The metadata at this moment. Take it once per request, so that an answer is of one piece.
    pub fn image(&self) -> Guard<Arc<Image>> {
        self.broker.image.load()
    }
}

/// One request's header, and where what becomes of it is counted.
pub struct Call {
    /// API key.
    pub key: i16,
    /// API version; for an ApiVersions request of an unsupported version it is 0, the layout of the answer.
    pub version: i16,
    /// To be repeated in the answer.
    pub correlation: i32,
    /// What the client calls itself; not to be trusted in labels, paths or logs.
    pub client_id: Box<str>,
    /// When it arrived.
    pub received: Moment,
    /// The API's metrics.
    pub metrics: Arc<ApiMetrics>,
    errors: Cell<u32>,
    /// What the request is counted as besides.
    also: OnceCell<Arc<ApiMetrics>>,
}

impl Call {
    /// A request that has just arrived.
    pub fn new(key: i16, version: i16, correlation: i32, client_id: Box<str>, received: Moment, metrics: Arc<ApiMetrics>) -> Call {
        Call { key, version, correlation, client_id, received, metrics, errors: Cell::new(0), also: OnceCell::new() }
    }

    /// Counts the request as another kind too, as Kafka does with FetchConsumer and FetchFollower. Once for a request.
    pub fn count_also_as(&self, metrics: Arc<ApiMetrics>) {
        // A second kind is never given: each handler runs once.
        let _ = self.also.set(metrics);
    }

    fn counted(&self) -> impl Iterator<Item = &ApiMetrics> {
        [Some(&self.metrics), self.also.get()].into_iter().flatten().map(|metrics| &**metrics)
    }

    /// Counts where the request's time went.
    pub fn spent(&self, spent: Spent) {
        self.counted().for_each(|metrics| metrics.spent(spent));
    }

    /// Counts an error that goes into the answer and gives its number. Every code of an answer passes here.
    pub fn error(&self, code: ErrorCode) -> i16 {
        if code != ErrorCode::None {
            self.errors.set(self.errors.get() + 1);
            self.counted().for_each(|metrics| metrics.error(code.name()));
        }
        code as i16
    }

    /// The answer is complete: counts the request, and NONE if it names no error.
    pub fn answered(&self) {
        for metrics in self.counted() {
            metrics.request(self.version);
            if self.errors.get() == 0 {
                metrics.none();
            }
        }
    }
}

impl Broker {
    /// `max.connections` and `max.connections.per.ip` (with its overrides) as they are now for that address.
    pub fn connection_limits(&self, from: IpAddr) -> (usize, usize) {
        let current = self.current.load();
        let own = current.per_address.get(&from).copied();
        (current.config.max_connections as usize, own.unwrap_or(current.config.max_connections_per_ip) as usize)
    }

    /// The metrics of an API of the table.
    pub fn api_metrics(&self, key: i16) -> Option<&Arc<ApiMetrics>> {
        self.apis.get(usize::try_from(key).ok()?)?.as_ref()
    }
}

/// Metric handles of every API of the table, by key.
pub fn api_metrics(families: &Families) -> Vec<Option<Arc<ApiMetrics>>> {
    let keys = super::TABLE.iter().map(|spec| spec.key as usize + 1).max().unwrap_or(0);
    let mut handles = vec![None; keys];
    for spec in super::TABLE {
        handles[spec.key as usize] = Some(families.api(spec.name, spec.min..=spec.max, &[]));
    }
    handles
}
