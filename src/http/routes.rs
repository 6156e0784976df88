//! What is answered at which path.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use understudy_metrics::Profiles;

/// Fine, or why not, in words for the operator.
pub type Health = Result<(), String>;

/// The text of a scrape, once it is there; none if it could not be made, which the log explains.
pub type Scrape = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

/// What the node plugs in. The closures are called on the listener's thread and do not keep it: they read published state, and what takes
/// long enough to disturb a thread that serves clients, as tens of thousands of series do, happens on another one.
pub struct HttpState {
    /// Begins a scrape.
    pub metrics: Box<dyn Fn(Profiles) -> Scrape + Send + Sync>,
    /// Whether the process makes progress; an error means that restarting it would help.
    pub live: Box<dyn Fn() -> Health + Send + Sync>,
    /// Whether clients are served; an error says what is still missing.
    pub ready: Box<dyn Fn() -> Health + Send + Sync>,
    /// The latest elections as JSON: at most so many, of one topic if it is named.
    pub elections: Box<dyn Fn(usize, Option<&str>) -> String + Send + Sync>,
}

/// The version of Prometheus' text format that `/metrics` speaks.
const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn routes(state: Arc<HttpState>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/live", get(async |State(state): State<Arc<HttpState>>| health((state.live)(), "live\n")))
        .route("/ready", get(async |State(state): State<Arc<HttpState>>| health((state.ready)(), "ready\n")))
        .route("/api/elections", get(elections))
        .with_state(state)
}

/// `profile` may be given several times.
async fn metrics(State(state): State<Arc<HttpState>>, Query(query): Query<Vec<(String, String)>>) -> Response {
    let asked = query.iter().filter(|(key, _)| key == "profile").map(|(_, value)| value.as_str());
    let profiles = match Profiles::parse(asked) {
        Ok(profiles) => profiles,
        Err(unknown) => return (StatusCode::BAD_REQUEST, format!("{unknown}\n")).into_response(),
    };
    match (state.metrics)(profiles).await {
        Some(text) => ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], text).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be collected; the log says why\n").into_response(),
    }
}

/// Elections that are answered if the question names no `limit`.
const ELECTIONS: usize = 100;

/// What `/api/elections` may be asked.
#[derive(Debug, serde::Deserialize)]
struct Wanted {
    limit: Option<usize>,
    topic: Option<String>,
}

/// Off this thread, as `metrics` is.
async fn elections(State(state): State<Arc<HttpState>>, Query(wanted): Query<Wanted>) -> Response {
    let limit = wanted.limit.unwrap_or(ELECTIONS);
    match tokio::task::spawn_blocking(move || (state.elections)(limit, wanted.topic.as_deref())).await {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the elections could not be collected; the log says why\n").into_response(),
    }
}

fn health(health: Health, fine: &'static str) -> Response {
    match health {
        Ok(()) => fine.into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}
