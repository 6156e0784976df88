//! Opening a log that is on disk. After an orderly stop its files are trusted. Otherwise everything past the recovery point is walked and checked,
//! the log is cut at the first byte that is no batch, and indexes are made anew. On the way the caller sees the batches it asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::BatchHeader;
use super::dirs;
use super::error::LogError;
use super::files::Files;
use super::index::{Index, OFFSET_ENTRY, TIME_ENTRY, TimeEntry};
use super::options::{LogConfig, OpenHints};
use super::partition_log::Log;
use super::retention::{DELETED, SegmentFiles};
use super::segment::{Active, Segment, parse_name, path_of};
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

struct Found {
    size: u64,
    index: Option<u64>,
    times: Option<u64>,
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
    /// only batches before it were shown. If the log ends below `hints.log_start`, it is emptied and starts there.
    pub fn open(
        files: &Files<S>, dir: PathBuf, hints: OpenHints, config: Arc<LogConfig>, now: Millis, replay: &mut dyn FnMut(&BatchHeader),
    ) -> Result<Opened<S>, LogError> {
        let found = tidy(files.storage(), &dir)?;
        let topic_id = dirs::read_partition_metadata(files.storage(), &dir)?.unwrap_or_default();
        let mut log = Log::create(files, dir, topic_id, hints.log_start, config);
        log.recovery_point = hints.recovery_point;
        // Names in the directory may not be on disk yet, after a crash.
        log.names = u64::from(!hints.clean);
        let mut opened = Opened { log, cut: None, dropped: SegmentFiles::default(), walked: 0 };
        opened.load(found, hints, now, replay)?;
        Ok(opened)
    }
}

/// Takes away what an interrupted deletion or compaction left, and lists the segments.
fn tidy<S: Storage>(storage: &S, dir: &Path) -> Result<BTreeMap<Offset, Found>, LogError> {
    let mut found: BTreeMap<Offset, Found> = BTreeMap::new();
    let entries = storage.list(dir).map_err(|e| LogError::io("list", dir, e))?;
    let mut indexes = Vec::new();
    for entry in &entries {
        let path = dir.join(&entry.name);
        let Some((base, suffix)) = parse_name(&entry.name) else { continue };
        match suffix {
            "log" => {
                found.insert(base, Found { size: entry.len, index: None, times: None });
            }
            "index" | "timeindex" => indexes.push((base, suffix, entry.len, path)),
            _ if suffix.ends_with(DELETED) || suffix.ends_with(".cleaned") || suffix.ends_with(".tmp") => {
                storage.remove(&path).map_err(|e| LogError::io("remove", &path, e))?;
            }
            _ => {}
        }
    }
    for (base, suffix, len, path) in indexes {
        match (found.get_mut(&base), suffix) {
            (Some(found), "index") => found.index = Some(len),
            (Some(found), _) => found.times = Some(len),
            (None, _) => storage.remove(&path).map_err(|e| LogError::io("remove", &path, e))?,
        }
    }
    Ok(found)
}

impl Found {
    /// Whether the index files may be what they should.
    fn indexed(&self) -> bool {
        self.index.is_some_and(|n| n.is_multiple_of(OFFSET_ENTRY as u64)) && self.times.is_some_and(|n| n.is_multiple_of(TIME_ENTRY as u64))
    }
}

impl<S: Storage> Opened<S> {
    fn load(
        &mut self, found: BTreeMap<Offset, Found>, hints: OpenHints, now: Millis, replay: &mut dyn FnMut(&BatchHeader),
    ) -> Result<(), LogError> {
        let bases: Vec<Offset> = found.keys().copied().collect();
        let mut found = found.into_iter().enumerate();
        let mut expected: Option<Offset> = None;
        let mut last: Option<(Index, Offset)> = None;
        let mut buf = Vec::new();
        for (i, (base, on_disk)) in found.by_ref() {
            let next = bases.get(i + 1).copied();
            let path = path_of(&self.log.dir, base, "log");
            let segment = Segment::new(base, on_disk.size, self.log.files.handle(path.clone()), now);
            // A segment is checked if it ends after the recovery point; the last one always may.
            let unsafe_ = !hints.clean && next.is_none_or(|next| next > hints.recovery_point);
            // Segments are closed with something in them, and follow each other without a hole unless compaction made it.
            let hole = unsafe_ && hints.recovery_point.0 > 0 && expected.is_some_and(|e| e != base && e >= hints.recovery_point);
            if hole && !self.log.config.compact {
                let position = self.log.closed.back().map_or(0, |s| s.size);
                self.cut(position, 0, format!("the next segment starts at {}, not here", base.0));
                self.drop_segment(segment)?;
                break;
            }
            let replayed = next.is_none_or(|next| next > hints.replay_from);
            if !unsafe_ && on_disk.indexed() && !replayed && next.is_some() {
                self.log.closed.push_back(segment);
                expected = None;
                continue;
            }
            buf.resize(WALK_BUFFER, 0);
            let mut walked = if unsafe_ || !on_disk.indexed() {
                self.walk(&segment, None, &hints, &mut buf, replay)?
            } else {
                let index = Index::load(
                    self.log.files.storage(),
                    base,
                    on_disk.size,
                    &path_of(&self.log.dir, base, "index"),
                    &path_of(&self.log.dir, base, "timeindex"),
                )?;
                self.walk(&segment, index, &hints, &mut buf, replay)?
            };
            let mut segment = segment;
            let bad = walked.bad.take();
            segment.size = walked.size;
            let size = segment.size;
            let empty_but_not_last = unsafe_ && next.is_some() && size == 0;
            if let Some(why) = bad.or(empty_but_not_last.then(|| "the segment is empty".into())) {
                let file = self.log.files.get(&segment.log).map_err(|e| LogError::io("open", &path, e))?;
                file.set_len(size).map_err(|e| LogError::io("cut", &path, e))?;
                self.log.closed.push_back(segment);
                self.cut(size, on_disk.size - size, why);
                last = Some((walked.index, walked.end));
                break;
            }
            if next.is_some() {
                walked.index.note_time();
            }
            self.log.closed.push_back(segment);
            expected = Some(walked.end);
            last = Some((walked.index, walked.end));
        }
        for (_, (base, on_disk)) in found {
            let log = self.log.files.handle(path_of(&self.log.dir, base, "log"));
            self.drop_segment(Segment::new(base, on_disk.size, log, now))?;
        }
        let Some((index, end)) = last else { return Ok(()) };
        self.log.active = self.log.closed.pop_back().map(|segment| Active::new(segment, index));
        self.log.end = end;
        self.log.start = hints.log_start.max(self.log.segment(0).map_or(end, |s| s.base));
        if end < self.log.start {
            let dropped = self.log.truncate_fully_and_start_at(self.log.start, now)?;
            self.dropped.bytes += dropped.bytes;
            self.dropped.paths.extend(dropped.paths);
        }
        self.log.recovery_point = if hints.clean { end } else { hints.recovery_point.min(end) };
        Ok(())
    }

    fn cut(&mut self, position: u64, bytes: u64, why: String) {
        let path = self.log.closed.back().map_or(self.log.dir.clone(), |s| s.log.path());
        self.cut = Some(Cut { path, position, bytes, why });
    }

    fn drop_segment(&mut self, segment: Segment<S>) -> Result<(), LogError> {
        self.log.names += 1;
        self.log.set_aside(&segment, &mut self.dropped)
    }

    /// Walks a segment: with an index that is trusted, from where the index or the replay needs it; without, all of it, checking what lies past the
    /// recovery point, and writes new indexes.
    fn walk(
        &mut self, segment: &Segment<S>, index: Option<Index>, hints: &OpenHints, buf: &mut [u8], replay: &mut dyn FnMut(&BatchHeader),
    ) -> Result<Walked, LogError> {
        let path = segment.log.path();
        let error = |e| LogError::io("read", &path, e);
        let file = self.log.files.get(&segment.log).map_err(error)?;
        let trusted = index.is_some();
        let index = index.unwrap_or_else(|| Index::new(segment.base));
        let from = if trusted { index.floor(hints.replay_from).min(index.last_position()) } else { 0 };
        let check = |header: &BatchHeader| !trusted && !hints.clean && header.last_offset() >= hints.recovery_point;
        let mut out = Walked { index, end: segment.base, size: from, bad: None };
        let mut max = out.index.max();
        let mut walker = Walker::new(&*file, from, segment.size, buf);
        loop {
            let (header, position) = match walker.next(check).map_err(error)? {
                Step::Batch(header, position) => (header, position),
                Step::End => break,
                Step::Bad(_, why) => {
                    out.bad = Some(why);
                    break;
                }
            };
            // The first batch seen may lie anywhere above the base.
            if header.base_offset < out.end || header.last_offset() - segment.base > i64::from(i32::MAX) {
                out.bad = Some(format!("a batch at offset {} after offset {}", header.base_offset.0, out.end.0));
                break;
            }
            if header.last_offset() >= hints.replay_from {
                replay(&header);
            }
            if trusted {
                if header.max_timestamp > max.timestamp {
                    max = TimeEntry { timestamp: header.max_timestamp, offset: header.last_offset() };
                }
            } else {
                out.index.note(&header, position, self.log.config.index_interval_bytes);
            }
            out.end = header.next_offset();
            out.size = position + header.size() as u64;
        }
        self.walked += out.size - from;
        if trusted {
            out.index.set_max(max);
        } else {
            let dir = &self.log.dir;
            out.index.note_time();
            out.index.rewrite(self.log.files.storage(), &path_of(dir, segment.base, "index"), &path_of(dir, segment.base, "timeindex"))?;
        }
        Ok(out)
    }
}
