//! The server side of the wire: acceptors, connections and the bounds on what they may take.
//!
//! Connections are plain tasks on a shard's thread, not actors: nobody sends them messages, they only await answers. Every bound on work
//! that enters the process lives here, as mailboxes have none.

pub mod acceptor;
pub mod admission;
pub mod connection;
mod inbox;
mod outbox;
