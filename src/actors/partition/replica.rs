//! One replica: its log and the rules around it, without the actor. What must be done besides is returned, not done.
//!
//! The order on append is Kafka's (semantics reference, 4.2): check leadership and ISR, check the batch, check its producer, note the
//! epoch, write, advance the log end, then the high watermark.

use super::messages::*;
use crate::core::epochs::EpochCache;
use crate::core::producer::{ProducerBatch, Producers, Verdict};
use crate::core::replica::{Begin, Leader, Rules, View};
use crate::core::types::{Acks, BrokerId, Epoch, Id, Isolation, Millis, Offset, Reader, TopicId};
use crate::log::batch::BatchHeader;
use crate::log::dirs::{self, DirName, marked_dir_name};
use crate::log::storage::Storage;
use crate::log::validate::{self, Origin};
use crate::log::{Files, Log, LogError, OpenHints, ReadError, SegmentFiles, SyncTarget, checkpoint};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A replica that is open.
pub struct Replica<S: Storage> {
    files: Files<S>,
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
    snapshot_at: Option<Offset>,
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
    /// A flush is due: what was appended counts only when it is on disk.
    pub flush: bool,
}

/// What opening a replica needs to know.
pub struct Place<S: Storage> {
    /// The open files.
    pub files: Files<S>,
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
    /// Whether everything that was written is there: the process died, not the machine.
    pub survived: bool,
    /// Everything below is on disk.
    pub recovery_point: Offset,
    /// Where the log starts, if not at a segment's base.
    pub log_start: Option<Offset>,
    /// What lies below was compacted.
    pub cleaned_to: Option<Offset>,
}

impl<S: Storage> Replica<S> {
    /// Opens what is on disk, or prepares an empty log that touches the disk at its first append. After an unclean stop this reads
    /// everything above the recovery point. `before` is the high watermark that the last run noted.
    pub fn open(place: Place<S>, role: Role, config: &PartitionConfig, now: Millis) -> Result<Replica<S>, LogError> {
        let Place { files, dir, at, found } = place;
        let empty = Log::create(&files, dir.clone(), at.topic, Offset(0), config.log.clone());
        let found = match found {
            Some(_) if is_of_another_topic(&files, &dir, at.topic)? => {
                set_aside(&files, &dir)?;
                None
            }
            found => found,
        };
        let Some(found) = found else {
            return Ok(Replica {
                files,
                log: empty,
                epochs: EpochCache::default(),
                producers: Producers::new(),
                leader: None,
                role,
                snapshot_at: None,
            });
        };
        let mut epochs = EpochCache::from_entries(checkpoint::read_epochs(files.storage(), &dir)?);
        let (snapshot_at, mut producers) = newest_snapshot(&empty, config, now)?;
        let hints = OpenHints {
            clean: found.clean,
            survived: found.survived,
            recovery_point: found.recovery_point,
            log_start: found.log_start.unwrap_or(Offset(0)),
            replay_from: snapshot_at.unwrap_or(Offset(0)),
        };
        let mut replay = |batch: &BatchHeader| {
            epochs.assign(batch.leader_epoch, batch.base_offset);
            if batch.has_producer() && snapshot_at.is_none_or(|at| batch.base_offset >= at) {
                producers.appended(&producer_batch(batch), batch.base_offset, batch.max_timestamp, now);
            }
        };
        let opened = Log::open(&files, dir, hints, config.log.clone(), now, &mut replay)?;
        if let Some(cut) = &opened.cut {
            tracing::warn!(segment = %cut.path.display(), position = cut.position, bytes = cut.bytes, "the log was cut at its first bad batch: {}", cut.why);
        }
        crate::log::remove_files(files.storage(), &opened.dropped)?;
        let mut log = opened.log;
        if log.topic_id().is_zero() {
            log.adopt_topic_id(at.topic)?;
        }
        if let Some(offset) = found.cleaned_to {
            log.set_cleaned_to(offset);
        }
        epochs.truncate_to(log.end());
        epochs.advance_start(log.start());
        Ok(Replica { files, log, epochs, producers, leader: None, role, snapshot_at })
    }

    /// Takes over a decision of the controller. Returns whether the leadership of this replica began or ended.
    pub fn assign(&mut self, role: Role, node: BrokerId, config: &PartitionConfig, now: Millis) -> Result<bool, LogError> {
        let leads = role.leadership.leader == node;
        let same_epoch = self.leader.as_ref().is_some_and(|leader| leader.epoch() == role.leadership.epoch);
        let changed = leads != self.leader.is_some() || leads && !same_epoch;
        if leads && !same_epoch {
            let end = self.log.end();
            let (epoch, high_watermark) = (role.leadership.epoch, self.high_watermark());
            let begin = Begin { me: node, epoch, view: view(&role), rules: rules(config), log_end: end, high_watermark };
            self.leader = Some(Leader::new(begin, now));
            self.note_epoch(epoch, end)?;
        } else if leads {
            if let Some(leader) = &mut self.leader {
                leader.set_rules(rules(config), now);
                leader.decided(view(&role), now);
            }
        } else {
            self.leader = None;
        }
        self.role = role;
        Ok(changed)
    }

    fn note_epoch(&mut self, epoch: Epoch, start: Offset) -> Result<(), LogError> {
        if self.epochs.assign(epoch, start) && self.log.is_materialised() {
            self.write_epochs()?;
        }
        Ok(())
    }

    /// Brings `leader-epoch-checkpoint` up to date. Not synced: the log's batches carry their epochs, and recovery reads them.
    fn write_epochs(&self) -> Result<(), LogError> {
        checkpoint::write_epochs(self.files.storage(), self.log.dir(), self.epochs.entries(), false)
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
    pub fn append(
        &mut self,
        records: &[u8],
        acks: Acks,
        origin: Origin,
        config: &PartitionConfig,
        now: Millis,
    ) -> Result<InLog, AppendRefused> {
        let Some(leader) = &mut self.leader else { return Err(AppendRefused::NotLeader(self.role.leadership)) };
        if acks == Acks::All && !leader.has_enough_replicas() {
            return Err(AppendRefused::NotEnoughReplicas);
        }
        let epoch = leader.epoch();
        let prepared = validate::prepare(records, &config.rules, origin, now)?;
        let header = *prepared.header();
        if header.size() as u64 > config.log.segment_bytes {
            return Err(AppendRefused::LargerThanSegment);
        }
        let log_start = self.log.start();
        let append_time = |timestamp| config.rules.log_append_time.then_some(timestamp);
        if header.has_producer() {
            match self.producers.check(&producer_batch(&header)) {
                Verdict::Fresh => {}
                Verdict::Duplicate { base_offset, last_offset, timestamp } => {
                    let appended = Appended { base: base_offset, log_append_time: append_time(timestamp), log_start };
                    return Ok(InLog { appended, end: last_offset + 1, bytes: 0, records: 0, rolled: false, flush: false });
                }
                Verdict::Refused(refused) => return Err(refused.into()),
            }
        }
        let first = !self.log.is_materialised();
        let written = self.log.append(header, prepared.payload(), epoch, now).map_err(storage_refused)?;
        if first {
            self.write_epochs().map_err(storage_refused)?;
        }
        if written.rolled {
            self.snapshot_producers(written.base);
        }
        if header.has_producer() {
            self.producers.appended(&producer_batch(&header), written.base, header.max_timestamp, now);
        }
        let end = self.log.end();
        let flush = self.leader.as_mut().is_some_and(|leader| leader.appended(end, config.flush_messages, now));
        let appended = Appended { base: written.base, log_append_time: append_time(header.max_timestamp), log_start };
        Ok(InLog { appended, end, bytes: header.size(), records: header.count, rolled: written.rolled, flush })
    }

    /// What to sync for everything appended so far.
    pub fn sync_target(&self) -> Option<SyncTarget<S>> {
        self.log.sync_target()
    }

    /// A target is on disk.
    pub fn synced(&mut self, target: &SyncTarget<S>, now: Millis) {
        self.log.mark_synced(target);
        if let Some(leader) = &mut self.leader {
            leader.flushed(self.log.recovery_point(), now);
        }
        // What lies below the recovery point is never replayed, so older snapshots have no use; the newest two stay, one for a torn file.
        let keep = self.snapshot_at;
        if let Err(e) = self.log.remove_snapshots(|at| keep.is_some_and(|keep| at < keep) && at < self.log.recovery_point()) {
            tracing::warn!("cannot remove old producer snapshots: {e}");
        }
    }

    /// Offsets below count as far as this replica's own log is concerned.
    pub fn counted(&self) -> Offset {
        self.leader.as_ref().map_or(self.log.end(), Leader::counted)
    }

    /// Writes the producers' state at an offset, so that a restart need not read what lies below.
    pub fn snapshot_producers(&mut self, at: Offset) {
        if self.producers.is_empty() && self.snapshot_at.is_none() || !self.log.is_materialised() {
            return;
        }
        // Without the snapshot the next start reads more; nothing is lost.
        match self.log.write_snapshot(at, &self.producers.encode_snapshot()) {
            Ok(()) => self.snapshot_at = Some(at),
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
    pub fn read(&self, read: &Read) -> Result<ReadAnswer<S>, ReadRefused> {
        self.check_epoch(read.current_epoch)?;
        let mut answer = ReadAnswer {
            high_watermark: self.high_watermark(),
            last_stable: self.last_stable(),
            log_start: self.log.start(),
            range: None,
            diverging: None,
        };
        if read.from < self.log.start() {
            return Err(ReadRefused::OutOfRange);
        }
        // Before the end is looked at: a reader beyond it may have read what was cut off, and must be told so.
        if read.last_fetched_epoch != Epoch::NONE {
            let Some((epoch, end)) = self.epochs.end_offset_for(read.last_fetched_epoch, self.log.end()) else {
                return Err(ReadRefused::OutOfRange);
            };
            if epoch < read.last_fetched_epoch || end < read.from {
                answer.diverging = Some((epoch, end));
                return Ok(answer);
            }
        }
        if read.from > self.log.end() {
            return Err(ReadRefused::OutOfRange);
        }
        let upto = self.readable(read.reader);
        if read.from < upto {
            answer.range = self.log.read(read.from, read.max_bytes, upto).map_err(read_refused)?;
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
            OffsetQuery::MaxTimestamp => Ok(self.log.max_timestamp().map_err(read_failed)?.map(|at| found(at.offset, at.timestamp))),
            OffsetQuery::At(timestamp) => {
                let first = self.log.offset_for_timestamp(timestamp).map_err(read_failed)?;
                Ok(first.filter(|at| at.offset < upto).map(|at| found(at.offset, at.timestamp)))
            }
        }
    }

    /// Answers OffsetForLeaderEpoch.
    pub fn epoch_end(&self, current: Epoch, epoch: Epoch) -> Result<Option<(Epoch, Offset)>, ReadRefused> {
        self.check_epoch(current)?;
        Ok(self.epochs.end_offset_for(epoch, self.log.end()))
    }

    /// Raises the log start to `before` (or the high watermark); returns it.
    pub fn delete_records(&mut self, before: Offset, config: &PartitionConfig) -> Result<(Offset, SegmentFiles), ReadRefused> {
        self.check_epoch(Epoch::NONE)?;
        if config.compacts && !config.deletes {
            return Err(ReadRefused::OnlyCompacted);
        }
        let high_watermark = self.high_watermark();
        let before = if before == Offset::NONE { high_watermark } else { before };
        if before.0 < 0 || before > high_watermark {
            return Err(ReadRefused::OutOfRange);
        }
        let files = self.log.advance_start(before).map_err(read_failed)?;
        self.log_start_moved();
        Ok((self.log.start(), files))
    }

    /// What retention says may go: files for the caller to remove.
    pub fn retention(&mut self, now: Millis) -> Result<SegmentFiles, LogError> {
        let files = self.log.retention(now, self.high_watermark())?;
        self.log_start_moved();
        Ok(files)
    }

    fn log_start_moved(&mut self) {
        if self.epochs.advance_start(self.log.start())
            && self.log.is_materialised()
            && let Err(e) = self.write_epochs()
        {
            tracing::warn!("cannot write leader-epoch-checkpoint, the old one is repaired at the next start: {e}");
        }
    }

    /// Where the replica stands.
    pub fn positions(&self) -> Positions {
        Positions {
            log_start: self.log.start(),
            high_watermark: self.high_watermark(),
            log_end: self.log.end(),
            size: self.log.size_bytes(),
            segments: self.log.segment_count(),
        }
    }
}

/// Whether the directory belongs to an earlier topic of the same name, deleted while this broker was down.
fn is_of_another_topic<S: Storage>(files: &Files<S>, dir: &Path, topic: TopicId) -> Result<bool, LogError> {
    let found = dirs::read_partition_metadata(files.storage(), dir)?;
    Ok(found.is_some_and(|found| !found.is_zero() && found != topic))
}

/// Gives the directory of an earlier topic another name, so that it is in nobody's way and nothing is lost.
fn set_aside<S: Storage>(files: &Files<S>, dir: &Path) -> Result<(), LogError> {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let DirName::Log(topic, partition) = DirName::parse(&name) else { return Ok(()) };
    let aside = dir.with_file_name(marked_dir_name(&topic, partition, Id(uuid::Uuid::new_v4().as_u128()), "stray"));
    tracing::warn!(dir = %dir.display(), "belongs to an earlier topic of this name: set aside as {}; delete it if nobody misses it", aside.display());
    files.storage().rename(dir, &aside).map_err(|e| LogError::io("rename", dir, e))
}

/// The newest snapshot that can be read, and the producers in it.
fn newest_snapshot<S: Storage>(log: &Log<S>, config: &PartitionConfig, now: Millis) -> Result<(Option<Offset>, Producers), LogError> {
    for at in log.snapshot_offsets()?.into_iter().rev() {
        match Producers::decode_snapshot(&log.read_snapshot(at)?, now, config.producer_id_expiration_ms) {
            Ok(producers) => return Ok((Some(at), producers)),
            Err(e) => tracing::warn!(dir = %log.dir().display(), "skipping the producer snapshot at {}: {e}", at.0),
        }
    }
    Ok((None, Producers::new()))
}

/// What the role says to a leader.
fn view(role: &Role) -> View {
    View { partition_epoch: role.partition_epoch, replicas: role.replicas.clone(), isr: role.isr.clone() }
}

fn rules(config: &PartitionConfig) -> Rules {
    Rules { min_insync: config.min_insync_replicas, lag_max: config.replica_lag_max_ms }
}

fn producer_batch(header: &BatchHeader) -> ProducerBatch {
    ProducerBatch {
        producer_id: header.producer_id,
        epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        offset_delta: header.last_offset_delta,
    }
}

/// What a failed write means to whoever asked.
pub fn storage_refused(error: LogError) -> AppendRefused {
    AppendRefused::Storage(Arc::from(error.to_string()))
}

/// What a failed read means to whoever asked.
pub fn read_failed(error: LogError) -> ReadRefused {
    ReadRefused::Storage(Arc::from(error.to_string()))
}

fn read_refused(error: ReadError) -> ReadRefused {
    match error {
        ReadError::OutOfRange { .. } => ReadRefused::OutOfRange,
        ReadError::Log(error) => read_failed(error),
    }
}
