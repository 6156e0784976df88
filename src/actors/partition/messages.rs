//! What one may say to a [`Partition`](super::Partition). One message per partition and request; batches stay encoded.

use crate::actors::log_io::Round;
use crate::core::producer::{ProducerRefused, ProducerView};
use crate::core::types::{Acks, BrokerId, Epoch, Isolation, Millis, Offset, Reader};
use crate::log::compact::{Cleaned, SwapRefused, Task};
use crate::log::storage::{Fs, Storage};
use crate::log::validate::{BatchRefused, Origin};
use crate::log::{LogConfig, Range, SegmentFiles};
use crate::rt::Reply;
use actix::prelude::*;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use tokio::sync::Notify;

/// Append exactly one encoded batch. From: `api::produce`, coordinators. Lost: the client retries; sequences make that safe.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Append {
    /// The batch as the client sent it.
    pub records: Bytes,
    /// When to answer.
    pub acks: Acks,
    /// What the sender may do.
    pub origin: Origin,
    /// The answer; with `Acks::None` it says only whether the connection must be closed.
    pub reply: Reply<Result<Appended, AppendRefused>>,
}

/// The batch is in the log, as far as its `acks` asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base: Offset,
    /// The broker's timestamp on a LogAppendTime topic.
    pub log_append_time: Option<Millis>,
    /// Where the log starts.
    pub log_start: Offset,
}

/// Why nothing was appended, or why it cannot be acknowledged. Section 3.1 of the semantics reference has the order.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AppendRefused {
    /// This replica does not lead the partition.
    #[error("not the leader")]
    NotLeader(Leadership),
    /// Fewer in-sync replicas than `min.insync.replicas`; nothing appended.
    #[error("fewer in-sync replicas than min.insync.replicas")]
    NotEnoughReplicas,
    /// Appended, but by then fewer replicas were in sync than `min.insync.replicas`.
    #[error("appended, but fewer in-sync replicas than min.insync.replicas are left")]
    NotEnoughReplicasAfterAppend,
    /// The batch itself is not acceptable.
    #[error(transparent)]
    Batch(#[from] BatchRefused),
    /// Its producer id, epoch or sequence is not acceptable.
    #[error(transparent)]
    Producer(#[from] ProducerRefused),
    /// The batch is larger than a whole segment may be.
    #[error("the batch is larger than segment.bytes")]
    LargerThanSegment,
    /// The disk refused, or the log directory is offline; the text says which.
    #[error("{0}")]
    Storage(Arc<str>),
    /// The partition was deleted or moved away meanwhile.
    #[error("the partition is gone")]
    Gone,
}

/// Who leads, as far as this replica knows; hint for clients (KIP-951).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership {
    /// The leader, `NONE` if unknown.
    pub leader: BrokerId,
    /// Its epoch.
    pub epoch: Epoch,
}

/// A long poll over one or more partitions: counts the bytes that became visible and wakes its fetch when there are enough.
#[derive(Debug)]
pub struct FetchWait {
    missing: AtomicI64,
    wake: Notify,
}

impl FetchWait {
    /// Waits for `bytes` more than were there at the first read.
    pub fn new(bytes: i64) -> Arc<FetchWait> {
        Arc::new(FetchWait { missing: AtomicI64::new(bytes.max(1)), wake: Notify::new() })
    }

    /// `bytes` more can be read; called by partitions.
    pub fn arrived(&self, bytes: i64) {
        if self.missing.fetch_sub(bytes, Relaxed) <= bytes {
            self.wake.notify_one();
        }
    }

    /// Bytes still missing. What has not changed has not been told of anything.
    pub fn missing(&self) -> i64 {
        self.missing.load(Relaxed)
    }

    /// Something happened that the fetch must answer at once: leadership lost, log truncated, partition deleted.
    pub fn disturb(&self) {
        self.missing.store(0, Relaxed);
        self.wake.notify_one();
    }

    /// Until enough arrived or something disturbed.
    pub async fn ready(&self) {
        self.wake.notified().await;
    }
}

/// Where to read from. From: `api::fetch`. Lost: the fetch sees `Gone` and answers NOT_LEADER_OR_FOLLOWER.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Read {
    /// First offset wanted.
    pub from: Offset,
    /// At most so many bytes, but at least the first batch.
    pub max_bytes: u32,
    /// Who reads.
    pub reader: Reader,
    /// The leader epoch that the reader believes in, `NONE` if it does not say.
    pub current_epoch: Epoch,
    /// Epoch of the last record the reader has, `NONE` if it does not say (KIP-595).
    pub last_fetched_epoch: Epoch,
    /// To be told of what becomes readable after this answer.
    pub wait: Option<Arc<FetchWait>>,
    /// The answer.
    pub reply: Reply<Result<ReadAnswer, ReadRefused>>,
}

/// A file range to send, and the partition's positions at that moment.
pub struct ReadAnswer<S: Storage = Fs> {
    /// High watermark.
    pub high_watermark: Offset,
    /// Last stable offset.
    pub last_stable: Offset,
    /// Log start.
    pub log_start: Offset,
    /// The bytes, `None` when there is nothing to read yet.
    pub range: Option<Range<S>>,
    /// The reader's log differs from here on: (epoch, end of that epoch here).
    pub diverging: Option<(Epoch, Offset)>,
}

/// Why a read was refused. Section 3.2 of the semantics reference has the order.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReadRefused {
    /// This replica does not lead the partition.
    #[error("not the leader")]
    NotLeader(Leadership),
    /// The reader's leader epoch is older than ours.
    #[error("the reader's leader epoch is older")]
    FencedEpoch(Leadership),
    /// The reader's leader epoch is newer than ours.
    #[error("the reader's leader epoch is newer")]
    UnknownEpoch,
    /// Below the log start or beyond the log end.
    #[error("offset out of range")]
    OutOfRange,
    /// `cleanup.policy` is compact alone: records go when newer ones take their place, and not otherwise.
    #[error("records of a topic that is only compacted cannot be deleted")]
    OnlyCompacted,
    /// The disk refused, or the log directory is offline.
    #[error("{0}")]
    Storage(Arc<str>),
    /// The partition was deleted or moved away meanwhile.
    #[error("the partition is gone")]
    Gone,
}

/// Which offset a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetQuery {
    /// -2, and -4 as nothing is tiered: the log start.
    Earliest,
    /// -1: the end that this reader may see.
    Latest,
    /// -3: the record with the largest timestamp.
    MaxTimestamp,
    /// The first record with this timestamp or a later one.
    At(Millis),
}

/// Find an offset. From: `api::list_offsets`. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ListOffset {
    /// Which.
    pub query: OffsetQuery,
    /// Who asks: replicas see the log end, consumers what their isolation lets them.
    pub reader: Reader,
    /// The leader epoch that the asker believes in.
    pub current_epoch: Epoch,
    /// The answer; `None` if no record is late enough.
    pub reply: Reply<Result<Option<FoundOffset>, ReadRefused>>,
}

/// An offset with its leader epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset.
    pub offset: Offset,
    /// Its record's timestamp, -1 where the question was not about time.
    pub timestamp: Millis,
    /// Leader epoch of that offset, `NONE` if unknown.
    pub epoch: Epoch,
}

/// Where an epoch ends. From: `api::offset_for_leader_epoch`. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct EpochEnd {
    /// The leader epoch that the asker believes in.
    pub current_epoch: Epoch,
    /// The epoch asked about.
    pub epoch: Epoch,
    /// The answer: largest epoch not above it, and its end; `None` if undefined (section 3.4).
    pub reply: Reply<Result<Option<(Epoch, Offset)>, ReadRefused>>,
}

/// Raise the log start. From: `api::delete_records`. Lost: answered `Gone`; the client repeats.
#[derive(Message)]
#[rtype(result = "()")]
pub struct DeleteRecords {
    /// New log start; `Offset::NONE` means the high watermark.
    pub before: Offset,
    /// The answer: the low watermark.
    pub reply: Reply<Result<Offset, ReadRefused>>,
}

/// Known producers. From: `api::describe_producers`. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ListProducers {
    /// The answer.
    pub reply: Reply<Result<Vec<ProducerView>, ReadRefused>>,
}

/// Sizes and positions; opens a lazily opened log. From: `api::describe_log_dirs`, the shard. Lost: answered `Gone`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Describe {
    /// The answer.
    pub reply: Reply<Result<Positions, ReadRefused>>,
}

/// Where a partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Positions {
    /// First offset that can be read.
    pub log_start: Offset,
    /// First offset that is not known to be replicated.
    pub high_watermark: Offset,
    /// Offset that the next record gets.
    pub log_end: Offset,
    /// Bytes in its segments.
    pub size: u64,
    /// How many segments.
    pub segments: usize,
}

/// What the controller decided about this replica. From: the shard. Lost: with the actor; the next incarnation gets the newest.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct Assign {
    /// The decision.
    pub role: Role,
    /// Effective topic configuration.
    pub config: Arc<PartitionConfig>,
}

/// What the controller decided about a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Who leads.
    pub leadership: Leadership,
    /// Rises with every change of the partition.
    pub partition_epoch: Epoch,
    /// All replicas, in assignment order.
    pub replicas: Vec<BrokerId>,
    /// Those in sync.
    pub isr: Vec<BrokerId>,
}

/// The effective configuration of a topic, resolved once per change and shared by its partitions.
#[derive(Debug, Clone)]
pub struct PartitionConfig {
    /// How batches are checked and stored.
    pub rules: crate::log::validate::Rules,
    /// Segments, indexes, retention.
    pub log: Arc<LogConfig>,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// `replica.lag.time.max.ms`.
    pub replica_lag_max_ms: i64,
    /// `flush.messages`: sync after so many records.
    pub flush_messages: i64,
    /// `flush.ms`: sync what is older.
    pub flush_ms: i64,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// `cleanup.policy` has `delete`.
    pub deletes: bool,
    /// `cleanup.policy` has `compact`.
    pub compacts: bool,
}

/// Time passed: retention, producer expiry. From: the shard. Lost: the next one does it.
#[derive(Message, Clone, Copy)]
#[rtype(result = "()")]
pub struct Tick {
    /// Wall clock.
    pub now: Millis,
}

/// `flush.ms` has passed: sync what is not on disk. From: the shard. Lost: the next one does it.
#[derive(Message, Clone, Copy)]
#[rtype(result = "()")]
pub struct Flush;

/// Report positions that changed since the last checkpoint to the log directory's thread; the files are written when all have. From: the
/// shard. Lost: with the partition, which the others do not wait for.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Checkpoint(pub Arc<Round>);

/// Is there still something to compact? From: the cleaner. Lost: answered `Gone`; whoever comes next says what there is.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Compact {
    /// The answer: the work, if it is still worth it.
    pub reply: Reply<Option<Work>>,
}

/// A compaction to be done away from the partition.
pub struct Work {
    /// What to do.
    pub task: Task<Fs>,
    /// Set by the partition when it is not wanted any more.
    pub stop: Arc<AtomicBool>,
    /// Deletes what was replaced.
    pub io: crate::actors::log_io::Handle,
    /// `file.delete.delay.ms`.
    pub delete_delay_ms: i64,
}

/// Put a rewritten segment in place. From: the cleaner. Lost: its files are removed at the next start.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Swap {
    /// The segment.
    pub cleaned: Cleaned,
    /// The answer: files to remove, once the directory is synced.
    pub reply: Reply<Result<SegmentFiles, SwapRefused>>,
}

/// The work is over. From: the cleaner. Lost: with the actor; the next incarnation compacts anew.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Compacted {
    /// What is compacted now, and the log's count of cuts when the work was given out; None if it was not finished.
    pub cleaned: Option<(Offset, u64)>,
}

/// Stop: answer all that wait, write what a clean start needs, close. From: the shard at shutdown. Lost: an unclean start later.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Close {
    /// Answered when the log is closed: whether its files can be trusted at the next start.
    pub reply: Reply<bool>,
}

/// The replica is no longer wanted here: answer all that wait and delete the files. From: the shard. Lost: the directory stays, and is
/// found stray at the next start.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Delete;

/// Consumers may see so far with this isolation.
pub fn visible(isolation: Isolation, high_watermark: Offset, last_stable: Offset) -> Offset {
    match isolation {
        Isolation::ReadUncommitted => high_watermark,
        Isolation::ReadCommitted => last_stable,
    }
}
