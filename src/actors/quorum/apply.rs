//! What is committed, on its way to `Link`: from memory what this node appended itself, the rest from the log.

use super::store::Damaged;
use super::{Batch, Quorum, die};
use crate::actors::link::{Committed, ReplaceImage, TakeImage};
use crate::core::controller::METADATA_VERSION;
use crate::core::controller::records::Record;
use crate::core::quorum::records::SnapshotId;
use crate::core::types::Offset;
use crate::log::LogError;
use crate::log::batch::Batches;
use crate::log::records::Records;
use crate::rt::{Reply, Tell, clock};
use crate::wire::records;
use actix::prelude::*;
use std::sync::Arc;

/// Bytes of the log read at a time.
const READ_BYTES: u32 = 1 << 20;

impl Quorum {
    /// Everything below `upto` is committed.
    pub(super) fn committed(&mut self, upto: Offset, ctx: &mut Context<Self>) -> Result<(), LogError> {
        while self.applied < upto {
            if self.uncommitted.front().is_some_and(|batch| batch.base == self.applied && batch.last < upto) {
                let Some(batch) = self.uncommitted.pop_front() else { break };
                self.apply(batch);
                continue;
            }
            let bytes = self.store.read(self.applied, READ_BYTES, upto)?;
            let before = self.applied;
            for batch in Batches::new(&bytes) {
                // What was read may end inside a batch; the next piece starts with it.
                let Ok(batch) = batch else { break };
                if batch.header.last_offset() < self.applied {
                    continue;
                }
                let records = if batch.header.is_control() { Vec::new() } else { self.decode(&batch.header, batch.payload()) };
                let (base, last, epoch) = (batch.header.base_offset, batch.header.last_offset(), batch.header.leader_epoch);
                self.apply(Batch { base, last, epoch, bytes: batch.bytes.len(), records: Arc::new(records) });
            }
            if self.applied == before {
                let why = format!("nothing can be read at offset {}, below the high watermark {}", before.0, upto.0);
                return Err(LogError::BadFile { path: self.store.log.dir().to_owned(), why });
            }
        }
        while self.uncommitted.front().is_some_and(|batch| batch.last < self.applied) {
            self.uncommitted.pop_front();
        }
        if !self.snapshot_running && self.parts.snapshots.due(clock::now()).is_some() {
            self.snapshot_running = true;
            let reply = Reply::to(ctx.address(), |image| super::GotImage { image });
            self.parts.link.tell(TakeImage { reply });
        }
        Ok(())
    }

    /// A committed record that cannot be read here can be read by nobody who runs this version: to go on without it would show wrong metadata.
    fn decode(&self, header: &crate::log::batch::BatchHeader, payload: &[u8]) -> Vec<Record> {
        let mut decoded = Vec::new();
        for record in Records::new(header, payload) {
            let outcome = record.map_err(|e| format!("{e:?}"));
            let outcome = outcome.and_then(|record| records::decode(record.value.unwrap_or_default()).map_err(|e| e.to_string()));
            match outcome {
                Ok((record, _)) => decoded.push(record),
                Err(why) => {
                    let (dir, offset) = (self.store.log.dir().to_owned(), header.base_offset);
                    die(&Damaged::Records { dir, offset, why });
                }
            }
        }
        decoded
    }

    fn apply(&mut self, batch: Batch) {
        let Batch { base, last, epoch, bytes, records } = batch;
        for record in records.iter() {
            if let Record::FeatureLevel(level) = record
                && level.name == METADATA_VERSION
            {
                self.parts.level = level.level;
            }
        }
        self.parts.snapshots.applied(bytes);
        self.applied = last + 1;
        self.parts.link.tell(Committed { base, epoch, last, records });
    }

    /// A snapshot of the leader's replaces the log, and the metadata with it.
    pub(super) fn load(&mut self, id: SnapshotId) {
        match self.store.load(id, &self.parts.cluster_id, clock::now()) {
            Ok(image) => {
                tracing::info!(end = id.end.0, epoch = id.epoch.0, "loaded a snapshot of the metadata from the leader");
                self.applied = id.end;
                self.uncommitted.clear();
                self.parts.level = super::snapshot::level(&image, self.parts.level);
                self.parts.snapshots.taken(clock::now());
                self.parts.link.tell(ReplaceImage { image: Box::new(image) });
            }
            Err(e) => die(&e),
        }
    }
}
