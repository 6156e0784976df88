//! Listeners: bound before anything is promised, advertised with their real ports, accepted from on every shard's thread.

use super::CannotStart;
use crate::api::Broker;
use crate::config::{Config, Endpoint};
use crate::core::controller::records;
use crate::net::acceptor;
use crate::net::admission::{Admission, Connections};
use crate::net::connection::{Limits, Shared};
use actix::Arbiter;
use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A bound listener.
pub struct Listener {
    /// Its name.
    pub name: Arc<str>,
    /// Host and port as a client on this machine reaches it.
    pub address: String,
    /// The port that was bound.
    pub port: u16,
    /// Whether it is one of the metadata quorum's.
    quorum: bool,
    socket: std::net::TcpListener,
}

/// Binds the listeners for clients.
pub fn bind_all(config: &Config) -> Result<Vec<Listener>, CannotStart> {
    config.endpoints.listeners.iter().map(|endpoint| bind(endpoint, false)).collect()
}

/// Binds the listeners of the metadata quorum.
pub fn bind_quorum(config: &Config) -> Result<Vec<Listener>, CannotStart> {
    config.endpoints.controller_listeners.iter().map(|endpoint| bind(endpoint, true)).collect()
}

fn bind(endpoint: &Endpoint, quorum: bool) -> Result<Listener, CannotStart> {
    let host = endpoint.host.clone().unwrap_or_default();
    let refused = |source| CannotStart::Listen { address: format!("{host}:{}", endpoint.port), key: "listeners", source };
    let socket = acceptor::bind(&host, endpoint.port).map_err(refused)?;
    let bound = socket.local_addr().map_err(refused)?;
    Ok(Listener { name: endpoint.name.as_str().into(), address: bound.to_string(), port: bound.port(), quorum, socket })
}

/// Binds `http.listen`, if there is one; returns its address too.
pub fn bind_http(config: &Config) -> Result<Option<(String, std::net::TcpListener)>, CannotStart> {
    let Some((host, port)) = config.http_address() else { return Ok(None) };
    let refused = |source| CannotStart::Listen { address: format!("{host}:{port}"), key: "http.listen", source };
    let socket = acceptor::bind(&host, port).map_err(refused)?;
    let address = socket.local_addr().map_err(refused)?.to_string();
    Ok(Some((address, socket)))
}

/// What clients are told: the advertised listeners, with the ports that were bound where they say 0.
pub fn advertised(config: &Config, bound: &[Listener]) -> Vec<records::Endpoint> {
    let told = |endpoint: &Endpoint| {
        let same = bound.iter().find(|listener| *listener.name == *endpoint.name);
        records::Endpoint {
            name: endpoint.name.clone(),
            host: endpoint.host.clone().unwrap_or_else(host_name),
            port: if endpoint.port == 0 { same.map_or(0, |listener| listener.port) } else { endpoint.port },
            security_protocol: records::SecurityProtocol::Plaintext,
        }
    };
    config.endpoints.advertised.iter().map(told).collect()
}

/// The machine's name, as Kafka advertises a listener without a host.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Accepts from the listener on every shard's thread.
pub fn accept_everywhere(
    arbiters: &[Arbiter],
    broker: &Arc<Broker>,
    admission: &Arc<Admission>,
    connections: &Arc<Connections>,
    listener: Listener,
) {
    let config = &broker.config;
    let limits = Limits {
        max_frame: config.socket_request_max_bytes as usize,
        in_flight: config.understudy_connection_requests_max as usize,
        idle: Duration::from_millis(config.connections_max_idle_ms.max(0) as u64),
    };
    for arbiter in arbiters {
        let (broker, admission, connections, name) = (broker.clone(), admission.clone(), connections.clone(), listener.name.clone());
        let quorum = listener.quorum;
        let socket = match listener.socket.try_clone() {
            Ok(socket) => socket,
            Err(e) => {
                tracing::error!(listener = &*name, "one thread less accepts connections: {e}");
                continue;
            }
        };
        arbiter.spawn_fn(move || match tokio::net::TcpListener::from_std(socket) {
            Ok(socket) => {
                let shared =
                    Rc::new(Shared { buffer: RefCell::new(BytesMut::new()), admission, limits, strangers_logged: Cell::default() });
                actix::spawn(acceptor::accept(socket, (name, quorum), broker, connections, shared));
            }
            Err(e) => tracing::error!(listener = &*name, "cannot accept connections: {e}"),
        });
    }
}
