//! Connections: how many, and for how long. A peer that is slow, silent or endless costs one of a fixed number of places for a bounded time.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::routes::{HttpState, routes};

/// What a listener's connections may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Open connections; more wait in the kernel's backlog.
    connections: usize,
    /// Time for a request's head, and how long a kept-alive connection may be silent.
    head: Duration,
    /// After this a connection is closed as soon as its answer is out.
    lifetime: Duration,
    /// How long that last answer may take to be read by the peer.
    farewell: Duration,
    /// Bytes of a request's head, and of each connection's buffers.
    buffer_bytes: usize,
}

const LIMITS: Limits = Limits {
    connections: 64,
    head: Duration::from_secs(20),
    lifetime: Duration::from_secs(600),
    farewell: Duration::from_secs(30),
    buffer_bytes: 64 * 1024,
};

/// Out of file descriptors or the like: a moment later there may be some.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Answers requests for the life of the node; dropping the future closes the listener, not the connections. Runs in a tokio runtime with
/// time enabled.
pub async fn serve(listener: TcpListener, state: Arc<HttpState>) {
    serve_within(listener, routes(state), LIMITS).await
}

async fn serve_within(listener: TcpListener, router: Router, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let place = places.clone().acquire_owned().await.expect("nobody closes the semaphore");
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    converse(stream, router, limits).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// One connection, to its end. Errors are the peer's business: it went away, or it does not speak HTTP.
async fn converse(stream: TcpStream, router: Router, limits: Limits) {
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(limits.buffer_bytes)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        if timeout(limits.farewell, connection).await.is_err() {
            tracing::debug!("an HTTP peer does not read its answer");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use understudy_metrics::{Families, Registry};

    use super::*;

    struct Node {
        address: std::net::SocketAddr,
        serves: Arc<AtomicBool>,
    }

    async fn start(limits: Limits) -> Node {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serves = Arc::new(AtomicBool::new(false));
        let seen = serves.clone();
        let families = Families::new(&Registry::new());
        let state = HttpState {
            metrics: Box::new(move |profiles| Box::pin(std::future::ready(Some(families.render(profiles, 0))))),
            live: Box::new(|| Ok(())),
            ready: Box::new(move || if seen.load(SeqCst) { Ok(()) } else { Err("recovering logs: 3 of 7 done".into()) }),
            elections: Box::new(|limit, topic| format!("{limit} {topic:?}")),
        };
        tokio::spawn(serve_within(listener, routes(Arc::new(state)), limits));
        Node { address, serves }
    }

    impl Node {
        async fn raw(&self, request: &str) -> String {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }

        async fn get(&self, path: &str) -> (u16, String) {
            let answer = self.raw(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await;
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
            (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
        }
    }

    #[tokio::test]
    async fn live_and_ready_answer_for_themselves() {
        let node = start(LIMITS).await;
        assert_eq!(node.get("/live").await, (200, "live\n".into()));
        assert_eq!(node.get("/ready").await, (503, "recovering logs: 3 of 7 done\n".into()));
        node.serves.store(true, SeqCst);
        assert_eq!(node.get("/ready").await, (200, "ready\n".into()));
    }

    #[tokio::test]
    async fn elections_are_asked_for_by_number_and_topic() {
        let node = start(LIMITS).await;
        assert_eq!(node.get("/api/elections").await, (200, "100 None".into()));
        assert_eq!(node.get("/api/elections?limit=3&topic=a%20b").await, (200, "3 Some(\"a b\")".into()));
        assert_eq!(node.get("/api/elections?limit=many").await.0, 400);
    }

    #[tokio::test]
    async fn metrics_follow_the_profile() {
        let node = start(LIMITS).await;
        let (status, all) = node.get("/metrics").await;
        assert_eq!(status, 200);
        assert!(all.contains("kafka_server_replicamanager_leadercount 0") && all.contains("understudy_connections 0"), "{all}");
        let (_, kafka) = node.get("/metrics?profile=kafka&other=1").await;
        assert!(kafka.contains("kafka_") && !kafka.contains("understudy_"), "{kafka}");
        let (_, both) = node.get("/metrics?profile=kafka&profile=native").await;
        assert!(both.contains("kafka_") && both.contains("understudy_"), "{both}");
        let (status, reason) = node.get("/metrics?profile=confluent").await;
        assert!(status == 400 && reason.contains("profile=native"), "{status} {reason}");
        let head = node.raw("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(head.to_ascii_lowercase().contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    }

    #[tokio::test]
    async fn other_paths_methods_and_protocols_are_refused() {
        let node = start(LIMITS).await;
        assert_eq!(node.get("/").await.0, 404);
        let answer = node.raw("DELETE /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        let answer = node.raw("\u{0}\u{0}\u{0}\u{12} this is Kafka\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        let endless = format!("GET /{} HTTP/1.1\r\n", "a".repeat(LIMITS.buffer_bytes));
        let answer = node.raw(&endless).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "a head beyond the buffer is refused: {answer:.100}");
    }

    #[tokio::test]
    async fn one_connection_serves_many_requests() {
        let node = start(LIMITS).await;
        let twice = "GET /live HTTP/1.1\r\nhost: x\r\n\r\nGET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let answers = node.raw(twice).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{answers}");
    }

    #[tokio::test]
    async fn a_silent_peer_loses_its_place() {
        let node = start(Limits { connections: 1, head: Duration::from_millis(50), ..LIMITS }).await;
        let mut silent = TcpStream::connect(node.address).await.unwrap();
        silent.write_all(b"GET /live HTTP/1.1\r\nhost:").await.unwrap();
        // The only place is taken: this waits in the backlog until the silent peer is sent away.
        assert_eq!(node.get("/live").await.0, 200);
        let mut rest = Vec::new();
        silent.read_to_end(&mut rest).await.unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("200"), "half a request has no answer");
    }

    #[tokio::test]
    async fn a_connection_ends_after_its_lifetime() {
        let node = start(Limits { connections: 1, lifetime: Duration::from_millis(50), ..LIMITS }).await;
        let answer = node.raw("GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(node.get("/live").await.0, 200, "its place is free again");
    }
}
