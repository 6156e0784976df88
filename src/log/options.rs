//! The settings of one log, as plain numbers, and what is known about it before it is opened.

use crate::core::types::{Millis, Offset};

/// Settings of one log. Names are those of the topic configs; see section 6.1 of the reference for meaning and defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is closed before it grows beyond.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is closed when it is older, by record time if records have one.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to so much is taken from `segment.ms`, differently for each segment.
    pub segment_jitter_ms: i64,
    /// `index.interval.bytes`: one index entry for more than so many bytes.
    pub index_interval_bytes: u32,
    /// `segment.index.bytes`: a segment is closed when one of its indexes would grow beyond.
    pub segment_index_bytes: u32,
    /// `retention.ms`; negative: for ever.
    pub retention_ms: i64,
    /// `retention.bytes`; negative: any size.
    pub retention_bytes: i64,
    /// Whether `cleanup.policy` contains `delete`: if not, only the log start offset removes segments.
    pub delete: bool,
    /// Whether `cleanup.policy` contains `compact`: offsets may then be missing in the middle.
    pub compact: bool,
    /// `min.cleanable.dirty.ratio`: a log is compacted when more of it is dirty.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: younger records are not compacted.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: when something is dirty for longer, the log is compacted however little it is.
    pub max_compaction_lag_ms: i64,
    /// `delete.retention.ms`: how long tombstones stay after the first compaction that saw them.
    pub delete_retention_ms: i64,
    /// `file.delete.delay.ms`: how long the caller waits before it removes files that retention has set aside.
    pub file_delete_delay_ms: i64,
    /// `preallocate`: reserve a segment's blocks when it is made.
    pub preallocate: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            index_interval_bytes: 4096,
            segment_index_bytes: 10 << 20,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            delete: true,
            compact: false,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: 24 * 3_600_000,
            file_delete_delay_ms: 60_000,
            preallocate: false,
        }
    }
}

impl LogConfig {
    /// Entries that an offset index may have.
    pub(super) fn offset_entries(&self) -> usize {
        self.segment_index_bytes as usize / super::index::OFFSET_ENTRY
    }

    /// Entries that a time index may have; one is kept for the entry that is forced when the segment is closed.
    pub(super) fn time_entries(&self) -> usize {
        (self.segment_index_bytes as usize / super::index::TIME_ENTRY).saturating_sub(1)
    }

    /// `segment.ms` less this segment's jitter. The jitter is drawn from the base offset, so that it is the same after a restart.
    pub(super) fn roll_after(&self, base: Offset, created: Millis) -> i64 {
        // A segment can be compacted once it is closed, so it may not stay open for longer than that may take.
        let most = if self.compact { self.segment_ms.min(self.max_compaction_lag_ms) } else { self.segment_ms };
        if self.segment_jitter_ms <= 0 {
            return most;
        }
        let mixed = (base.0 as u64 ^ (created.0 as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        most - (mixed % self.segment_jitter_ms.min(most).max(1) as u64) as i64
    }
}

/// What is known of a log before it is opened, from the checkpoints of its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHints {
    /// The directory was left by an orderly stop: its files are trusted.
    pub clean: bool,
    /// Everything written is there, synced or not: only the process died. A walk then takes the batches' word, and cuts a torn tail.
    pub survived: bool,
    /// Everything below is known to be on disk (`recovery-point-offset-checkpoint`); 0 if nothing is known.
    pub recovery_point: Offset,
    /// Log start offset (`log-start-offset-checkpoint`); 0 if it is not listed.
    pub log_start: Offset,
    /// Batches that end at or after this offset are shown to the caller. Usually the newest snapshot's offset.
    pub replay_from: Offset,
}
