//! The HTTP side of a node, on its own listener (`http.listen`): `/metrics`, `/live`, `/ready`, `/api/elections`. It knows no actor: the node
//! plugs in closures. Not for the Kafka port, and without authentication: bind it where operators are.

mod routes;
mod server;

pub use routes::{Health, HttpState, Scrape};
pub use server::serve;
