//! The other nodes of the quorum: requests of the rules go out here, and come back as messages.

use super::{Answered, Parts, PeerClosed, Quorum};
use crate::core::quorum::message::{BatchMeta, Request, Response, SendFailed, Serial};
use crate::core::types::BrokerId;
use crate::log::batch::Batches;
use crate::peer::{NoAnswer, Peer, Question, Settings};
use crate::rt::Tell;
use crate::wire::quorum::{self as wire, Asking};
use actix::Addr;
use bytes::Bytes;
use std::collections::HashMap;
use std::time::Duration;

/// An answer holds a fetch or a part of a snapshot, or one batch that is larger.
const FRAME_MAX: usize = 64 << 20;

/// A voter and where it listens.
#[derive(Debug, Clone)]
pub struct Voter {
    /// Its id.
    pub id: BrokerId,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

pub(super) struct Peers {
    peers: HashMap<BrokerId, Peer>,
    voters: Vec<Voter>,
    me: BrokerId,
    patience: Duration,
    asking: Asking,
}

impl Peers {
    pub(super) fn new(parts: &Parts) -> Peers {
        let me = parts.config.me;
        let own = parts.voters.iter().find(|voter| voter.id == me);
        let listener = own.map_or_else(Default::default, |own| (parts.listener.clone(), own.host.clone(), own.port));
        Peers {
            peers: HashMap::new(),
            voters: parts.voters.clone(),
            me,
            patience: Duration::from_millis(parts.config.timing.request.max(1) as u64),
            asking: Asking { cluster_id: parts.cluster_id.clone(), listener },
        }
    }

    pub(super) fn send(&mut self, to: BrokerId, serial: Serial, request: Request, quorum: Addr<Quorum>) {
        let Some(voter) = self.voters.iter().find(|voter| voter.id == to) else {
            return quorum.tell(Answered { from: to, serial, outcome: Err(SendFailed::Disconnected) });
        };
        let peer = self.peers.entry(to).or_insert_with(|| {
            let settings = Settings {
                address: format!("{}:{}", voter.host, voter.port),
                client_id: format!("raft-client-{}", self.me.0),
                connect: self.patience,
                patience: self.patience,
                max_frame: FRAME_MAX,
            };
            let told = quorum.clone();
            Peer::new(settings, move || told.tell(PeerClosed { peer: to }))
        });
        let key = wire::key(&request);
        let asking = self.asking.clone();
        peer.ask(Question {
            key,
            versions: wire::versions(&request),
            body: Box::new(move |version| wire::encode(&request, version, &asking)),
            answer: Box::new(move |answer| quorum.tell(Answered { from: to, serial, outcome: read(key, answer, to) })),
        });
    }
}

fn read(key: i16, answer: Result<(i16, Bytes), NoAnswer>, from: BrokerId) -> Result<Response, SendFailed> {
    let (version, body) = answer.map_err(|e| {
        tracing::debug!(from = from.0, key, "no answer: {e}");
        match e {
            NoAnswer::Disconnected(_) => SendFailed::Disconnected,
            NoAnswer::Unsupported => SendFailed::Unsupported,
            NoAnswer::Malformed(_) => SendFailed::Malformed,
        }
    })?;
    match wire::decode(key, version, body) {
        Ok(Response::Fetch(mut fetched)) => {
            fetched.records.batches = batches(&fetched.records.bytes);
            Ok(Response::Fetch(fetched))
        }
        Ok(response) => Ok(response),
        Err(e) => {
            tracing::warn!(from = from.0, key, "a node of the metadata quorum refuses, or its answer makes no sense: {e}");
            Err(SendFailed::Malformed)
        }
    }
}

/// The sound batches at the beginning of what a leader sent; the last one may be cut off.
fn batches(bytes: &[u8]) -> Vec<BatchMeta> {
    let sound = Batches::new(bytes).map_while(|batch| batch.ok().filter(|batch| batch.header.check_crc(batch.bytes).is_ok()));
    let of = |batch: crate::log::batch::Batch| BatchMeta {
        base: batch.header.base_offset,
        last: batch.header.last_offset(),
        epoch: batch.header.leader_epoch,
        size: batch.bytes.len(),
    };
    sound.map(of).collect()
}
