//! One replica: its log and the rules around it, without the actor. What must be done besides is returned, not done.
//!
//! The order on append is Kafka's (semantics reference, 4.2): check leadership and ISR, check the batch, check its producer, note the
//! epoch, write, advance the log end, then the high watermark.

use super::messages::*;
use crate::core::epochs::EpochCache;
use crate::core::producer::{Producers, Verdict};
use crate::core::replica::Leader;
use crate::core::types::{Acks, BrokerId, Epoch, Isolation, Millis, Offset, Reader};
use crate::log::batch::BatchHeader;
use crate::log::storage::Storage;
use crate::log::validate::{self, Origin, Prepared};
use crate::log::{Log, LogError, OpenHints, checkpoint};
use std::path::PathBuf;
use std::sync::Arc;

/// A replica that is open.
pub struct Replica<S: Storage> {
    /// Its log.
    pub log: Log<S>,
    /// Which epoch starts where.
    pub epochs: EpochCache,
    /// Idempotent producers.
    pub producers: Producers,
    /// The leader's view; `None` while this replica does not lead.
    pub leader: Option<Leader>,
    /// The newest decision about it.
    pub role: Role,
    /// Offset of the newest producer snapshot.
    snapshot_at: Offset,
}

/// An append that is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InLog {
    /// The answer, once it may be given.
    pub appended: Appended,
    /// Offset after its last record.
    pub end: Offset,
    /// Bytes written; 0 for a duplicate.
    pub bytes: usize,
    /// Records written; 0 for a duplicate.
    pub records: i32,
    /// The append began a new segment: the one before is complete and may be synced.
    pub rolled: bool,
}

/// What opening a replica needs to know.
pub struct Place<S: Storage> {
    /// The storage.
    pub storage: S,
    /// The partition's directory.
    pub dir: PathBuf,
    /// The topic, for `partition.metadata`.
    pub at: crate::core::types::TopicPartition,
    /// What the last run left about it; `None` if there is no directory yet.
    pub found: Option<Found>,
}

/// What the last run left about a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Whether the files can be trusted as they are.
    pub clean: bool,
    /// Everything below is on disk.
    pub recovery_point: Offset,
    /// Where the log starts, if not at a segment's base.
    pub log_start: Option<Offset>,
}

impl<S: Storage> Replica<S> {
    /// Opens what is on disk, or prepares an empty log that touches the disk at its first append. After an unclean stop this reads
    /// everything above the recovery point.
    pub fn open(place: Place<S>, role: Role, config: &PartitionConfig, now: Millis) -> Result<Replica<S>, LogError> {
        let Place { storage, dir, at, found } = place;
        let mut producers = Producers::new(config.producer_id_expiration_ms);
        let Some(found) = found else {
            let log = Log::create(storage, dir, at.topic, Offset(0), config.log.clone());
            return Ok(Replica { log, epochs: EpochCache::default(), producers, leader: None, role, snapshot_at: Offset(0) });
        };
        let mut epochs = match storage.read_small(&dir.join(checkpoint::LEADER_EPOCHS)) {
            Ok(Some(text)) => EpochCache::decode(&text).unwrap_or_default(),
            _ => EpochCache::default(),
        };
        let (snapshot_at, snapshot) = crate::log::newest_snapshot(&storage, &dir)?;
        if let Some(bytes) = snapshot {
            producers = Producers::decode(&bytes, config.producer_id_expiration_ms, now).unwrap_or_else(|_| Producers::new(config.producer_id_expiration_ms));
        }
        let hints = OpenHints { clean: found.clean, recovery_point: found.recovery_point, log_start: found.log_start, replay_from: snapshot_at };
        let mut replay = |batch: &BatchHeader| {
            epochs.assign(batch.leader_epoch, batch.base_offset);
            if batch.has_producer() {
                producers.replay(batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.base_offset, batch.last_offset_delta, batch.max_timestamp);
            }
        };
        let log = Log::open(storage, dir, at.topic, hints, config.log.clone(), &mut replay)?;
        epochs.truncate_to(log.end());
        epochs.advance_start(log.start());
        Ok(Replica { log, epochs, producers, leader: None, role, snapshot_at })
    }

    /// Takes over a decision of the controller. Returns whether the leadership of this replica began or ended.
    pub fn assign(&mut self, role: Role, node: BrokerId, config: &PartitionConfig) -> Result<bool, LogError> {
        let leads = role.leadership.leader == node;
        let same_epoch = self.leader.as_ref().is_some_and(|leader| leader.epoch() == role.leadership.epoch);
        let changed = leads != self.leader.is_some() || leads && !same_epoch;
        if leads && !same_epoch {
            let end = self.log.end();
            self.leader = Some(Leader::new(node, role.leadership.epoch, role.isr.clone(), role.replicas.len(), end, config.min_insync_replicas));
            self.note_epoch(role.leadership.epoch, end)?;
        } else if leads {
            if let Some(leader) = &mut self.leader {
                leader.set_isr(role.isr.clone());
                leader.set_min_insync_replicas(config.min_insync_replicas, role.replicas.len());
            }
        } else {
            self.leader = None;
        }
        self.role = role;
        Ok(changed)
    }

    fn note_epoch(&mut self, epoch: Epoch, start: Offset) -> Result<(), LogError> {
        if self.epochs.assign(epoch, start) && self.log.is_materialised() {
            self.log.write_epochs(&self.epochs.encode())?;
        }
        Ok(())
    }

    /// The high watermark: everything below is committed.
    pub fn high_watermark(&self) -> Offset {
        self.leader.as_ref().map_or(self.log.start(), Leader::high_watermark)
    }

    /// The last stable offset. No transactions are open, so it is the high watermark.
    pub fn last_stable(&self) -> Offset {
        self.high_watermark()
    }

    /// Appends one batch as the leader.
    pub fn append(&mut self, records: &[u8], acks: Acks, origin: Origin, config: &PartitionConfig, now: Millis) -> Result<InLog, AppendRefused> {
        let Some(leader) = &mut self.leader else { return Err(AppendRefused::NotLeader(self.role.leadership)) };
        if acks == Acks::All && !leader.has_enough_replicas() {
            return Err(AppendRefused::NotEnoughReplicas);
        }
        let epoch = leader.epoch();
        let prepared = validate::prepare(records, &config.rules, origin, now)?;
        let (header, body) = match &prepared {
            Prepared::AsSent { header, bytes } => (header, &bytes[crate::log::batch::HEADER_SIZE..]),
            Prepared::Rewritten { header, bytes } => (header, &bytes[crate::log::batch::HEADER_SIZE..]),
        };
        if header.size() as u64 > config.log.segment_bytes {
            return Err(AppendRefused::LargerThanSegment);
        }
        let log_start = self.log.start();
        let log_append_time = config.rules.log_append_time.then_some(header.max_timestamp);
        if header.has_producer() {
            match self.producers.check(header.producer_id, header.producer_epoch, header.base_sequence, header.count)? {
                Verdict::Fresh => {}
                Verdict::Duplicate(first) => {
                    let appended = Appended { base: first.base_offset, log_append_time: config.rules.log_append_time.then_some(first.timestamp), log_start };
                    return Ok(InLog { appended, end: first.last_offset + 1, bytes: 0, records: 0, rolled: false });
                }
            }
        }
        let base = self.log.end();
        let was_materialised = self.log.is_materialised();
        let written = self.log.append(*header, body, epoch, now).map_err(storage_refused)?;
        if !was_materialised {
            self.log.write_epochs(&self.epochs.encode()).map_err(storage_refused)?;
        }
        if header.has_producer() {
            self.producers.appended(header.producer_id, header.producer_epoch, header.base_sequence, base, header.last_offset_delta, header.max_timestamp);
        }
        if written.rolled {
            self.snapshot_producers(base);
        }
        let end = self.log.end();
        leader.appended(end);
        let appended = Appended { base, log_append_time, log_start };
        Ok(InLog { appended, end, bytes: header.size(), records: header.count, rolled: written.rolled })
    }

    /// Writes the producers' state at an offset, so that a restart need not read what lies below.
    pub fn snapshot_producers(&mut self, at: Offset) {
        if self.producers.is_empty() && self.snapshot_at == Offset(0) {
            return;
        }
        // Without the snapshot the next start reads more; nothing is lost.
        match self.log.write_snapshot(at, &self.producers.encode()) {
            Ok(()) => self.snapshot_at = at,
            Err(e) => tracing::warn!("cannot write a producer snapshot: {e}"),
        }
    }

    /// Checks that this replica leads and that the asker's idea of the epoch is right.
    pub fn check_epoch(&self, current: Epoch) -> Result<&Leader, ReadRefused> {
        let Some(leader) = &self.leader else { return Err(ReadRefused::NotLeader(self.role.leadership)) };
        if current != Epoch::NONE && current < leader.epoch() {
            return Err(ReadRefused::FencedEpoch(self.role.leadership));
        }
        if current > leader.epoch() {
            return Err(ReadRefused::UnknownEpoch);
        }
        Ok(leader)
    }

    fn readable(&self, reader: Reader) -> Offset {
        match reader {
            Reader::Consumer(Isolation::ReadUncommitted) => self.high_watermark(),
            Reader::Consumer(Isolation::ReadCommitted) => self.last_stable(),
            Reader::Follower(_) => self.log.end(),
        }
    }

    /// Finds what a reader may have.
    pub fn read(&self, read: &Read) -> Result<ReadOf<S>, ReadRefused> {
        self.check_epoch(read.current_epoch)?;
        let mut answer = ReadOf {
            high_watermark: self.high_watermark(),
            last_stable: self.last_stable(),
            log_start: self.log.start(),
            range: None,
            diverging: None,
        };
        if read.from < self.log.start() || read.from > self.log.end() {
            return Err(ReadRefused::OutOfRange);
        }
        if read.last_fetched_epoch != Epoch::NONE {
            let Some((epoch, end)) = self.epochs.end_offset_for(read.last_fetched_epoch, self.log.end()) else {
                return Err(ReadRefused::OutOfRange);
            };
            if epoch < read.last_fetched_epoch || end < read.from {
                answer.diverging = Some((epoch, end));
                return Ok(answer);
            }
        }
        let upto = self.readable(read.reader);
        if read.from < upto {
            answer.range = self.log.read(read.from, read.max_bytes as usize, upto).map_err(read_failed)?;
        }
        Ok(answer)
    }

    /// Answers ListOffsets.
    pub fn list_offset(&self, query: OffsetQuery, reader: Reader, current: Epoch) -> Result<Option<FoundOffset>, ReadRefused> {
        self.check_epoch(current)?;
        let found = |offset, timestamp| FoundOffset { offset, timestamp, epoch: self.epochs.epoch_for(offset).unwrap_or(Epoch::NONE) };
        let upto = self.readable(reader);
        match query {
            OffsetQuery::Earliest => Ok(Some(found(self.log.start(), Millis(-1)))),
            OffsetQuery::Latest => {
                let epoch = self.role.leadership.epoch;
                Ok(Some(FoundOffset { offset: upto, timestamp: Millis(-1), epoch }))
            }
            OffsetQuery::MaxTimestamp => Ok(self.log.max_timestamp().map_err(read_failed)?.map(|(offset, timestamp)| found(offset, timestamp))),
            OffsetQuery::At(timestamp) => {
                let first = self.log.offset_for_timestamp(timestamp).map_err(read_failed)?;
                Ok(first.filter(|(offset, _)| *offset < upto).map(|(offset, timestamp)| found(offset, timestamp)))
            }
        }
    }

    /// Answers OffsetForLeaderEpoch.
    pub fn epoch_end(&self, current: Epoch, epoch: Epoch) -> Result<Option<(Epoch, Offset)>, ReadRefused> {
        self.check_epoch(current)?;
        Ok(self.epochs.end_offset_for(epoch, self.log.end()))
    }

    /// Raises the log start to `before` (or the high watermark); returns it.
    pub fn delete_records(&mut self, before: Offset) -> Result<Offset, ReadRefused> {
        self.check_epoch(Epoch::NONE)?;
        let high_watermark = self.high_watermark();
        let before = if before == Offset::NONE { high_watermark } else { before };
        if before.0 < 0 || before > high_watermark {
            return Err(ReadRefused::OutOfRange);
        }
        self.log.advance_start(before).map_err(read_failed)?;
        self.epochs.advance_start(self.log.start());
        Ok(self.log.start())
    }

    /// Where the replica stands.
    pub fn positions(&self) -> Positions {
        Positions {
            log_start: self.log.start(),
            high_watermark: self.high_watermark(),
            log_end: self.log.end(),
            size: self.log.size_bytes(),
            segments: self.log.segments(),
        }
    }
}

/// See [`ReadAnswer`]; over any storage.
#[derive(Debug)]
pub struct ReadOf<S: Storage> {
    /// High watermark.
    pub high_watermark: Offset,
    /// Last stable offset.
    pub last_stable: Offset,
    /// Log start.
    pub log_start: Offset,
    /// What to send.
    pub range: Option<crate::log::Range<S>>,
    /// Where the reader's log differs.
    pub diverging: Option<(Epoch, Offset)>,
}

/// What a failed write means to whoever asked.
pub fn storage_refused(error: LogError) -> AppendRefused {
    AppendRefused::Storage(Arc::from(error.to_string()))
}

/// What a failed read means to whoever asked.
pub fn read_failed(error: LogError) -> ReadRefused {
    ReadRefused::Storage(Arc::from(error.to_string()))
}
