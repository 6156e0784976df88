//! Which part of a log is dirty, and whether that is enough to compact it.

use super::LastRecord;
use super::run::{Input, Task};
use crate::core::types::{Millis, Offset};
use crate::log::error::LogError;
use crate::log::partition_log::Log;
use crate::log::storage::Storage;
use crate::log::walk;

/// What there is to compact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dirt {
    /// Below, each key stands at most once (and tombstones, for their time).
    pub from: Offset,
    /// Compaction looks no further: the base of a segment.
    pub upto: Offset,
    /// Bytes of segments that begin below `from`.
    pub clean_bytes: u64,
    /// Bytes of segments of which something lies between `from` and `upto`.
    pub dirty_bytes: u64,
    /// For how many milliseconds something has been dirty longer than `max.compaction.lag.ms`.
    pub overdue_ms: i64,
    /// When time alone makes more of it, if nothing else happens: a record outgrows `min.compaction.lag.ms` or `max.compaction.lag.ms`.
    pub due: Option<Millis>,
    /// `min.cleanable.dirty.ratio` when this was found.
    pub threshold: f64,
}

impl Dirt {
    /// How much of the log is dirty, from 0 to 1.
    pub fn ratio(&self) -> f64 {
        match self.clean_bytes + self.dirty_bytes {
            0 => 0.0,
            all => self.dirty_bytes as f64 / all as f64,
        }
    }

    /// Whether it is worth compacting.
    pub fn is_enough(&self) -> bool {
        self.upto > self.from && self.dirty_bytes > 0 && (self.overdue_ms > 0 || self.ratio() > self.threshold)
    }
}

impl<S: Storage> Log<S> {
    /// What lies below was compacted (`cleaner-offset-checkpoint`).
    pub fn cleaned_to(&self) -> Offset {
        self.cleaned_to
    }

    /// Takes over what a checkpoint or a finished task says. Too large an offset is of another log and counts as nothing.
    pub fn set_cleaned_to(&mut self, offset: Offset) {
        self.cleaned_to = if offset > self.end { self.start } else { offset };
    }

    /// Takes over what a task with that count of cuts did; returns whether it is still of this log.
    pub fn set_compacted(&mut self, offset: Offset, generation: u64) -> bool {
        let valid = generation == self.generation;
        if valid {
            self.set_cleaned_to(offset);
        }
        valid
    }

    /// How much there is to compact. `stable` is the last stable offset: nothing at or beyond it is touched, nor is the segment that is
    /// appended to, nor records younger than `min.compaction.lag.ms`.
    pub fn dirt(&self, stable: Offset, now: Millis) -> Result<Dirt, LogError> {
        let config = &self.config;
        let from = if self.cleaned_to > self.end { self.start } else { self.cleaned_to.max(self.start) };
        let mut dirt = Dirt {
            from,
            upto: from,
            clean_bytes: 0,
            dirty_bytes: 0,
            overdue_ms: 0,
            due: None,
            threshold: config.min_cleanable_dirty_ratio,
        };
        let mut due = |at: i64| dirt.due = Some(dirt.due.map_or(Millis(at), |due| due.min(Millis(at))));
        let mut oldest = i64::MAX;
        for (at, segment) in self.closed.iter().enumerate() {
            let next = self.segment(at + 1).map_or(self.end, |next| next.base);
            if segment.base < from {
                dirt.clean_bytes += segment.size;
            }
            if next <= from {
                continue;
            }
            if config.max_compaction_lag_ms < i64::MAX
                && let Some(first) = self.first_timestamp(at)?
            {
                oldest = oldest.min(first.0);
            }
            if next > stable {
                break;
            }
            if config.min_compaction_lag_ms > 0 {
                let newest = self.max_of(at)?.timestamp.0;
                let ripe = newest.saturating_add(config.min_compaction_lag_ms);
                if newest >= 0 && ripe > now.0 {
                    due(ripe);
                    break;
                }
            }
            dirt.dirty_bytes += segment.size;
            dirt.upto = next;
        }
        if oldest < i64::MAX {
            let limit = oldest.saturating_add(config.max_compaction_lag_ms);
            if limit < now.0 {
                dirt.overdue_ms = now.0 - limit;
            } else {
                due(limit + 1);
            }
        }
        Ok(dirt)
    }

    /// Largest timestamp of the first batch of closed segment number `at`, if it is one.
    fn first_timestamp(&self, at: usize) -> Result<Option<Millis>, LogError> {
        let Some(segment) = self.closed.get(at).filter(|segment| segment.size > 0) else { return Ok(None) };
        let file = self.files.get(&segment.log).map_err(|e| self.read_error(e))?;
        let first = walk::find(&*file, 0, segment.size, |_| true).map_err(|e| self.read_error(e))?;
        Ok(first.map(|(header, _)| header.max_timestamp).filter(|stamp| stamp.0 > 0))
    }

    /// Closes the segment that is appended to if its first record is older than `max.compaction.lag.ms`, so that it can be compacted though
    /// nothing is appended any more. Returns whether it was closed: the caller writes a producer snapshot at the log end and has it synced.
    pub fn roll_overdue(&mut self, now: Millis) -> Result<bool, LogError> {
        self.usable()?;
        let lag = self.config.max_compaction_lag_ms;
        let Some(active) = self.active.as_ref().filter(|active| self.config.compact && lag < i64::MAX && active.segment.size > 0) else {
            return Ok(false);
        };
        if active.age(&self.files, now, now).map_err(|e| self.read_error(e))? < lag {
            return Ok(false);
        }
        self.roll(self.end, now)
    }

    /// The work that `dirt` stands for. `producers`: what those that are still known appended last below
    /// [`Dirt::upto`].
    pub fn compaction(&self, dirt: &Dirt, mut producers: Vec<LastRecord>, now: Millis) -> Task<S> {
        producers.sort_unstable_by_key(|last| last.producer_id);
        let mut inputs = Vec::new();
        for (at, segment) in self.closed.iter().enumerate() {
            let next = self.segment(at + 1).map_or(self.end, |next| next.base);
            if next > dirt.upto {
                break;
            }
            inputs.push(Input { base: segment.base, next, size: segment.size, log: segment.log.clone() });
        }
        Task {
            files: self.files.clone(),
            dir: self.dir.clone(),
            config: self.config.clone(),
            generation: self.generation,
            from: dirt.from,
            upto: dirt.upto,
            now,
            producers,
            inputs,
        }
    }
}
