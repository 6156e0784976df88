//! Performs what the rules want, strictly in order: disk first, then messages.

use super::{Batch, Quorum, die};
use crate::actors::controller::Renounce;
use crate::actors::link::TakeImage;
use crate::actors::log_io::{self, Job};
use crate::core::controller::records::Record;
use crate::core::quorum::Effect;
use crate::core::quorum::message::{Fetched, Problem, Records, Response, Ticket};
use crate::core::quorum::records::{ControlRecord, LeaderChange};
use crate::core::types::{Epoch, Offset};
use crate::log::LogError;
use crate::log::batch::{BatchHeader, HEADER_SIZE};
use crate::log::builder::BatchBuilder;
use crate::rt::{Reply, Tell, clock};
use crate::wire::records;
use actix::prelude::*;
use std::sync::Arc;

impl Quorum {
    /// Performs all of it, or ends the process.
    pub(super) fn perform(&mut self, fx: Vec<Effect>, ctx: &mut Context<Self>) {
        for effect in fx {
            if let Err(e) = self.perform_one(effect, ctx) {
                return die(&e);
            }
        }
        self.show();
        self.wind(ctx);
        if self.closing.is_some() && self.rules.as_ref().is_none_or(|rules| rules.may_stop()) {
            self.close();
        }
    }

    fn perform_one(&mut self, effect: Effect, ctx: &mut Context<Self>) -> Result<(), LogError> {
        match effect {
            Effect::PersistState(state) => self.store.write_state(&state)?,
            Effect::AppendLeaderChange { epoch, offset, record } => self.append_leader_change(epoch, offset, record)?,
            Effect::Append(records) => self.store.append_fetched(&records.bytes, clock::now())?,
            Effect::Truncate { to } => {
                tracing::warn!(from = self.store.log.end().0, to = to.0, "the metadata log is cut to agree with the leader's");
                self.store.truncate(to, clock::now())?;
            }
            Effect::Flush { upto, generation } => self.flush(upto, generation, ctx),
            Effect::Committed { upto } => self.committed(upto, ctx)?,
            Effect::BecameLeader { epoch } => {
                let reply = Reply::to(ctx.address(), move |image| super::GotLeadImage { epoch, image });
                self.parts.link.tell(TakeImage { reply });
            }
            Effect::Resigned { epoch } => {
                tracing::info!(epoch = epoch.0, "leads the metadata quorum no more");
                self.uncommitted.clear();
                self.parts.controller.tell(Renounce);
            }
            Effect::Send { to, serial, request } => self.peers.send(to, serial, request, ctx.address()),
            Effect::Answer { ticket, response } => self.answer(ticket, response),
            Effect::AnswerFetch { ticket, answer, from, upto, max_bytes } => {
                let bytes = self.store.read(from, max_bytes, upto)?;
                let records = Records { batches: Vec::new(), bytes };
                self.answer(ticket, Response::Fetch(Fetched { records, ..answer }));
            }
            Effect::AnswerSnapshot { ticket, mut answer, max_bytes } => {
                match self.store.read_snapshot(answer.id, answer.position, max_bytes) {
                    Ok(bytes) => answer.bytes = bytes,
                    Err(e) => {
                        tracing::warn!("a snapshot cannot be served: {e}");
                        answer.head.refused = Some(Problem::SnapshotNotFound);
                    }
                }
                self.answer(ticket, Response::FetchSnapshot(answer));
            }
            Effect::WriteSnapshot { id, position, bytes } => self.store.write_part(id, position, &bytes)?,
            Effect::LoadSnapshot { id } => self.load(id),
            Effect::DropSnapshot { id } => self.store.drop_part(id),
            Effect::Fatal(why) => {
                tracing::error!("stopping before it spreads: {why}");
                std::process::exit(1);
            }
        }
        Ok(())
    }

    fn answer(&mut self, ticket: Ticket, response: Response) {
        if let Some(reply) = self.tickets.remove(&ticket) {
            reply.send(response);
        }
    }

    fn append_leader_change(&mut self, epoch: Epoch, offset: Offset, record: LeaderChange) -> Result<(), LogError> {
        tracing::info!(epoch = epoch.0, votes = record.granting.len(), "elected leader of the metadata quorum");
        let mut batch = BatchBuilder::new(offset, epoch, clock::now()).control();
        let (key, value) = records::control::encode(&ControlRecord::LeaderChange(record)).expect("a LeaderChange has a fixed version");
        batch.push(0, Some(&key), Some(&value));
        self.append(batch, epoch, Arc::default())
    }

    /// Appends a batch of this node's own.
    pub(super) fn append(&mut self, batch: BatchBuilder, epoch: Epoch, records: Arc<Vec<Record>>) -> Result<(), LogError> {
        let bytes = batch.finish().expect("a batch of the quorum holds records");
        let header = BatchHeader::parse(&bytes).expect("our own batch has a header");
        let appended = self.store.log.append(header, &bytes[HEADER_SIZE..], epoch, clock::now())?;
        self.uncommitted.push_back(Batch { base: appended.base, last: appended.last, epoch, bytes: bytes.len(), records });
        Ok(())
    }

    fn flush(&mut self, upto: Offset, generation: u64, ctx: &mut Context<Self>) {
        let Some(target) = self.store.log.sync_target() else {
            return ctx.notify(super::Flushed { upto, generation, outcome: Ok(None) });
        };
        let reply = Reply::to(ctx.address(), move |outcome: Result<log_io::Synced, _>| super::Flushed {
            upto,
            generation,
            outcome: outcome.map(Some),
        });
        self.parts.io.tell(Job::Sync(log_io::Asked { target, reply }));
    }
}
