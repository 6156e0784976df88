//! Opening a log that is on disk. After an orderly stop its files are trusted. Otherwise everything past the recovery point is walked and checked,
//! the log is cut at the first byte that is no batch, and indexes are made anew. On the way the caller sees the batches it asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::batch::BatchHeader;
use super::dirs;
use super::error::LogError;
use super::files::Files;
use super::index::{Index, TimeEntry};
use super::leftovers::{Found, tidy};
use super::options::{LogConfig, OpenHints};
use super::partition_log::Log;
use super::retention::SegmentFiles;
use super::segment::{Active, Segment, path_of};
use super::storage::{File, Storage};
use super::walk::{Step, WALK_BUFFER, Walker};
use crate::core::types::{Millis, Offset};

/// An opened log, and what had to be done for it.
pub struct Opened<S: Storage> {
    /// The log.
    pub log: Log<S>,
    /// Where it was cut, if it was.
    pub cut: Option<Cut>,
    /// Files of segments that were dropped; for the caller to remove.
    pub dropped: SegmentFiles,
    /// Bytes of segments that were walked.
    pub walked: u64,
}

/// Where a log was cut during recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment's `.log`.
    pub path: PathBuf,
    /// Byte at which it was cut.
    pub position: u64,
    /// Bytes that fell away in this file.
    pub bytes: u64,
    /// What was wrong there.
    pub why: String,
}

/// What walking one segment gave.
struct Walked {
    index: Index,
    /// Offset after the last batch; the segment's base if there is none.
    end: Offset,
    /// Bytes that are batches.
    size: u64,
    bad: Option<String>,
}

impl<S: Storage> Log<S> {
    /// Opens the log in `dir`, which is there. `replay` is called for each batch that ends at or after `hints.replay_from`, in order; after a cut
    /// only batches before it were shown. The log's topic id is zero if the directory does not say (any more). If the log ends below `hints.log_start`, it is emptied and starts there.
    pub fn open(
        files: &Files<S>,
        dir: PathBuf,
        hints: OpenHints,
        config: Arc<LogConfig>,
        now: Millis,
        replay: &mut dyn FnMut(&BatchHeader),
    ) -> Result<Opened<S>, LogError> {
        let found = tidy(files.storage(), &dir)?;
        let topic_id = match dirs::read_partition_metadata(files.storage(), &dir) {
            // It is synced with the first data: a power cut before may have torn it.
            Err(LogError::BadFile { path, .. }) if !hints.clean => {
                files.storage().remove(&path).map_err(|e| LogError::io("remove", &path, e))?;
                None
            }
            other => other?,
        };
        let mut log = Log::create(files, dir, topic_id.unwrap_or_default(), hints.log_start, config);
        log.recovery_point = hints.recovery_point;
        // Names in the directory may not be on disk yet, after a crash.
        log.names = u64::from(!hints.clean);
        let mut opened = Opened { log, cut: None, dropped: SegmentFiles::default(), walked: 0 };
        opened.load(found, hints, now, replay)?;
        Ok(opened)
    }
}

/// What is needed to look at one segment after the other.
struct Loading<'a, S: Storage> {
    opened: &'a mut Opened<S>,
    hints: OpenHints,
    replay: &'a mut dyn FnMut(&BatchHeader),
    /// Where the next batch that is to be shown ends at the earliest.
    replay_from: Offset,
    buf: Vec<u8>,
}

impl<S: Storage> Opened<S> {
    fn load(
        &mut self,
        found: BTreeMap<Offset, Found>,
        hints: OpenHints,
        now: Millis,
        replay: &mut dyn FnMut(&BatchHeader),
    ) -> Result<(), LogError> {
        let bases: Vec<Offset> = found.keys().copied().collect();
        let mut loading = Loading { opened: self, hints, replay, replay_from: hints.replay_from, buf: Vec::new() };
        let mut found = found.into_iter().zip(bases.iter().skip(1).copied().map(Some).chain([None]));
        let mut last = None;
        for ((base, on_disk), next) in found.by_ref() {
            let log = &mut loading.opened.log;
            let segment = Segment::new(base, on_disk.size, log.files.handle(path_of(&log.dir, base, "log")), now);
            // A segment is checked if it ends after the recovery point; the last one always may.
            let unsafe_ = !hints.clean && next.is_none_or(|next| next > hints.recovery_point);
            let end = last.as_ref().map_or(base, |walked: &Walked| walked.end);
            // Unless compaction made it, a hole is where unsynced data was lost.
            if unsafe_ && !log.config.compact && hints.recovery_point.0 > 0 && end >= hints.recovery_point && end < base {
                let position = log.closed.back().map_or(0, |s| s.size);
                loading.opened.note_cut(position, 0, format!("the next segment starts at {}, not at {}", base.0, end.0));
                loading.opened.drop_segment(segment)?;
                break;
            }
            if next.is_some_and(|next| next <= hints.replay_from) && !unsafe_ && on_disk.indexed() {
                log.closed.push_back(segment);
                continue;
            }
            let mut walked = loading.segment(&segment, unsafe_, on_disk.indexed())?;
            // Apache Kafka leaves a segment empty if compaction took all of it.
            let compacted = loading.opened.log.config.compact && on_disk.size == 0;
            if next.is_some() && unsafe_ && walked.size == 0 && !compacted {
                walked.bad.get_or_insert("the segment is empty".into());
            }
            let file = loading.opened.log.files.get(&segment.log);
            loading.opened.log.closed.push_back(Segment { size: walked.size, ..segment });
            let bad = walked.bad.take();
            let size = walked.size;
            last = Some(walked);
            let Some(why) = bad else { continue };
            let path = path_of(&loading.opened.log.dir, base, "log");
            if !unsafe_ && next.is_some() {
                return Err(LogError::Corrupt {
                    path,
                    position: size,
                    why: format!(
                        "{why}; it had been on disk: restore it, or remove the partition's directory to fetch it from another replica"
                    ),
                });
            }
            file.and_then(|f| f.set_len(size)).map_err(|e| LogError::io("cut", &path, e))?;
            loading.opened.note_cut(size, on_disk.size - size, why);
            break;
        }
        for ((base, on_disk), _) in found {
            let log = self.log.files.handle(path_of(&self.log.dir, base, "log"));
            self.drop_segment(Segment::new(base, on_disk.size, log, now))?;
        }
        let Some(Walked { index, end, .. }) = last else { return Ok(()) };
        let log = &mut self.log;
        log.active = log.closed.pop_back().map(|segment| Active::new(segment, index));
        log.end = end;
        log.start = hints.log_start.max(log.segment(0).map_or(end, |s| s.base));
        log.recovery_point = if hints.clean { end } else { hints.recovery_point.min(end) };
        if end < log.start {
            let dropped = log.truncate_fully_and_start_at(log.start, now)?;
            self.dropped.bytes += dropped.bytes;
            self.dropped.paths.extend(dropped.paths);
        }
        Ok(())
    }

    fn note_cut(&mut self, position: u64, bytes: u64, why: String) {
        let path = self.log.closed.back().map_or(self.log.dir.clone(), |s| s.log.path());
        self.cut = Some(Cut { path, position, bytes, why });
    }

    fn drop_segment(&mut self, segment: Segment<S>) -> Result<(), LogError> {
        self.log.names += 1;
        self.log.set_aside(&segment, &mut self.dropped)
    }
}

impl<S: Storage> Loading<'_, S> {
    /// Walks a segment: by its indexes if they may be trusted and hold what they should, otherwise all of it.
    fn segment(&mut self, segment: &Segment<S>, unsafe_: bool, indexed: bool) -> Result<Walked, LogError> {
        if !unsafe_ && indexed {
            let log = &self.opened.log;
            let index = load_index(log, segment)?;
            if let Some(index) = index {
                let walked = self.walk(segment, Some(index))?;
                if walked.bad.is_none() {
                    return Ok(walked);
                }
            }
        }
        let mut walked = self.walk(segment, None)?;
        walked.index.note_time();
        let (offsets, times) = index_paths(&self.opened.log, segment);
        walked.index.rewrite(self.opened.log.files.storage(), &offsets, &times)?;
        Ok(walked)
    }

    /// With an index: from where the index or the replay needs it, taking the batches' word. Without: all of it, checking what lies past the
    /// recovery point (everything, if the files should have been right).
    fn walk(&mut self, segment: &Segment<S>, index: Option<Index>) -> Result<Walked, LogError> {
        self.buf.resize(WALK_BUFFER, 0);
        let path = segment.log.path();
        let error = |e| LogError::io("read", &path, e);
        let file = self.opened.log.files.get(&segment.log).map_err(error)?;
        let trusted = index.is_some();
        let index = index.unwrap_or_else(|| Index::new(segment.base));
        let from = if trusted { index.floor(self.replay_from).min(index.last_position()) } else { 0 };
        let checked_from = if self.hints.clean { segment.base } else { self.hints.recovery_point };
        let survived = self.hints.survived && !self.hints.clean;
        let check = |header: &BatchHeader| !trusted && !survived && header.last_offset() >= checked_from;
        let mut out = Walked { index, end: segment.base, size: from, bad: None };
        let mut max = out.index.max();
        let mut walker = Walker::new(&*file, from, segment.size, &mut self.buf);
        loop {
            let (header, position) = match walker.next(check).map_err(error)? {
                Step::Batch(header, position) => (header, position),
                Step::End => break,
                Step::Bad(_, why) => {
                    out.bad = Some(why);
                    break;
                }
            };
            if header.base_offset < out.end || header.last_offset() - segment.base > i64::from(i32::MAX) {
                out.bad = Some(format!("a batch at offset {} after offset {}", header.base_offset.0, out.end.0));
                break;
            }
            if header.last_offset() >= self.replay_from {
                (self.replay)(&header);
                self.replay_from = header.next_offset();
            }
            if trusted {
                if header.max_timestamp > max.timestamp {
                    max = TimeEntry { timestamp: header.max_timestamp, offset: header.last_offset() };
                }
            } else {
                out.index.note(&header, position, self.opened.log.config.index_interval_bytes);
            }
            out.end = header.next_offset();
            out.size = position + header.size() as u64;
        }
        self.opened.walked += out.size - from;
        if trusted {
            out.index.set_max(max);
        }
        Ok(out)
    }
}

fn index_paths<S: Storage>(log: &Log<S>, segment: &Segment<S>) -> (PathBuf, PathBuf) {
    (path_of(&log.dir, segment.base, "index"), path_of(&log.dir, segment.base, "timeindex"))
}

/// The index of a closed segment from its files; None if they cannot be right.
fn load_index<S: Storage>(log: &Log<S>, segment: &Segment<S>) -> Result<Option<Index>, LogError> {
    let (offsets, times) = index_paths(log, segment);
    Index::load(log.files.storage(), segment.base, segment.size, &offsets, &times)
}

impl<S: Storage> Log<S> {
    /// The index of a closed segment, to append to it again; made anew from the batches if its files are damaged.
    pub(super) fn index_of(&self, segment: &Segment<S>) -> Result<Index, LogError> {
        if let Some(index) = load_index(self, segment)? {
            return Ok(index);
        }
        let mut index = Index::new(segment.base);
        let file = self.files.get(&segment.log).map_err(|e| self.read_error(e))?;
        let interval = self.config.index_interval_bytes;
        let mut position = 0;
        super::walk::find(&*file, 0, segment.size, |header| {
            index.note(header, position, interval);
            position += header.size() as u64;
            false
        })
        .map_err(|e| self.read_error(e))?;
        let (offsets, times) = index_paths(self, segment);
        index.rewrite(self.files.storage(), &offsets, &times)?;
        Ok(index)
    }
}
