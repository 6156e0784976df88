//! Takes new connections of one listener on one shard's thread.

use super::admission::Connections;
use super::connection::{self, Shared};
use crate::api::{Broker, Cx, Peer};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Connections that the kernel may hold until they are accepted.
pub const BACKLOG: i32 = 4096;

/// Pause after an accept that failed for want of file handles or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Opens a listening socket; port 0 picks a free one.
pub fn bind(host: &str, port: u16) -> io::Result<std::net::TcpListener> {
    use std::net::ToSocketAddrs;
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, format!("{host} names no address"));
    for address in (host, port).to_socket_addrs()? {
        match bind_one(address) {
            Ok(listener) => return Ok(listener),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn bind_one(address: std::net::SocketAddr) -> io::Result<std::net::TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts for ever, on the listener of that name; `quorum` says whether it is one of the metadata quorum's. Several shards may accept from clones of one socket; the kernel gives each connection to one of them.
pub async fn accept(
    listener: TcpListener,
    (name, quorum): (Arc<str>, bool),
    broker: Arc<Broker>,
    connections: Arc<Connections>,
    shared: Rc<Shared>,
) {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted) {
                    continue;
                }
                tracing::warn!(
                    listener = &*name,
                    "cannot accept a connection: {e}; raise the limit of open files (ulimit -n) if it is that"
                );
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (max, per_address) = broker.connection_limits(address.ip());
        let seat = match connections.enter(address.ip(), max, per_address) {
            Ok(seat) => seat,
            Err(why) => {
                tracing::debug!(%address, "connection turned away: {why}");
                continue;
            }
        };
        if let Err(e) = stream.set_nodelay(true) {
            tracing::trace!(%address, "gone before it was served: {e}");
            continue;
        }
        let cx = Cx { broker: broker.clone(), peer: Rc::new(Peer { address, listener: name.clone(), quorum }) };
        actix::spawn(connection::serve(stream, cx, shared.clone(), seat));
    }
}
