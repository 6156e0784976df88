//! The log of one partition: a row of segments, the last of which is appended to. Owned by one actor: no locks, no threads of its own.
//!
//! An append is one vectored write of header and records as they came, with base offset and leader epoch set. What must reach the disk is handed
//! to the directory's I/O thread as a [`SyncTarget`](super::sync::SyncTarget). Reading gives file ranges, never bytes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::{BatchHeader, Batches, HEADER_SIZE};
use super::dirs;
use super::error::LogError;
use super::files::Files;
use super::index::Index;
use super::options::LogConfig;
use super::segment::{Active, Segment, path_of};
use super::storage::{File, Storage, write_at};
use crate::core::types::{Epoch, Millis, Offset, TopicId};

/// Positions in index entries are 32-bit and signed for Kafka.
const LARGEST_SEGMENT: u64 = i32::MAX as u64;

/// The log of one partition.
pub struct Log<S: Storage> {
    pub(super) files: Files<S>,
    pub(super) dir: PathBuf,
    pub(super) topic_id: TopicId,
    pub(super) config: Arc<LogConfig>,
    /// Closed segments, oldest first.
    pub(super) closed: VecDeque<Segment<S>>,
    /// None as long as nothing is on disk.
    pub(super) active: Option<Active<S>>,
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) recovery_point: Offset,
    /// What lies below was compacted.
    pub(super) cleaned_to: Offset,
    /// Counts changes of names in the directory, and of its own.
    pub(super) names: u64,
    /// How many of them are on disk.
    pub(super) names_synced: u64,
    /// Counts cuts: what was synced before a cut says nothing about what was appended after it.
    pub(super) generation: u64,
    pub(super) broken: bool,
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub base: Offset,
    /// Offset of the last one.
    pub last: Offset,
    /// Bytes of the argument that were appended; all of them on a leader.
    pub bytes: usize,
    /// Batches that were appended.
    pub batches: u32,
    /// Base offset of the segment that they are in.
    pub segment: Offset,
    /// Where they start in it.
    pub position: u64,
    /// A new segment was started for them. The caller writes a producer snapshot at `base` (before it counts these batches), and has what
    /// was closed synced.
    pub rolled: bool,
}

impl<S: Storage> Log<S> {
    /// A log that has nothing on disk yet: the first append makes its directory and files, or [`Log::materialise`].
    pub fn create(files: &Files<S>, dir: PathBuf, topic_id: TopicId, start: Offset, config: Arc<LogConfig>) -> Log<S> {
        Log {
            files: files.clone(),
            dir,
            topic_id,
            config,
            closed: VecDeque::new(),
            active: None,
            start,
            end: start,
            recovery_point: start,
            cleaned_to: start,
            names: 0,
            names_synced: 0,
            generation: 0,
            broken: false,
        }
    }

    /// Log start offset: nothing below can be read.
    pub fn start(&self) -> Offset {
        self.start
    }

    /// Log end offset: what the next record gets.
    pub fn end(&self) -> Offset {
        self.end
    }

    /// Everything below is known to be on disk.
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }

    /// The partition's directory, whether it is there or not.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether a failed write could not be undone: nothing is appended any more until the log is opened again.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whose log it is; zero if the directory does not say.
    pub fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    /// Base offset of the first segment. The log start lies at or above it.
    pub fn first_segment(&self) -> Offset {
        self.segment(0).map_or(self.start, |segment| segment.base)
    }

    /// Writes down whose log it is, where the directory did not say. The caller has made sure that it can be no other topic's.
    pub fn adopt_topic_id(&mut self, topic_id: TopicId) -> Result<(), LogError> {
        if self.active.is_some() {
            dirs::write_partition_metadata(self.files.storage(), &self.dir, topic_id)?;
            self.names += 1;
        }
        self.topic_id = topic_id;
        Ok(())
    }

    /// Whether there is anything on disk.
    pub fn is_materialised(&self) -> bool {
        self.active.is_some()
    }

    /// Settings in force.
    pub fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// Changes the settings; they count from the next operation on.
    pub fn set_config(&mut self, config: Arc<LogConfig>) {
        self.config = config;
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.segments().map(|s| s.size).sum()
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        self.segments().count()
    }

    /// All segments, oldest first.
    pub(super) fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment<S>> {
        self.closed.iter().chain(self.active.as_ref().map(|a| &a.segment))
    }

    pub(super) fn segment(&self, at: usize) -> Option<&Segment<S>> {
        self.closed.get(at).or(self.active.as_ref().map(|a| &a.segment))
    }

    /// Makes directory, topic id file and first segment, if there is nothing yet.
    pub fn materialise(&mut self, now: Millis) -> Result<(), LogError> {
        if self.active.is_some() {
            return Ok(());
        }
        let storage = self.files.storage();
        storage.create_dir(&self.dir).map_err(|e| LogError::io("create", &self.dir, e))?;
        if !self.topic_id.is_zero() {
            dirs::write_partition_metadata(storage, &self.dir, self.topic_id)?;
        }
        self.names += 1;
        let segment = self.new_segment(self.end, now)?;
        let index = Index::new(segment.base);
        self.active = Some(Active::new(segment, index));
        Ok(())
    }

    pub(super) fn new_segment(&self, base: Offset, now: Millis) -> Result<Segment<S>, LogError> {
        let segment = Segment::create(&self.files, &self.dir, base, now)?;
        if self.config.preallocate {
            let path = path_of(&self.dir, base, "log");
            let file = self.files.get(&segment.log).map_err(|e| LogError::io("open", &path, e))?;
            file.reserve(self.config.segment_bytes).map_err(|e| LogError::io("preallocate", &path, e))?;
        }
        Ok(segment)
    }

    pub(super) fn usable(&self) -> Result<(), LogError> {
        if self.broken { Err(LogError::Broken { dir: self.dir.clone() }) } else { Ok(()) }
    }

    /// Appends a batch as its leader: at the log end, in `leader_epoch`. `body` is what follows the 61 bytes of the header; its checksum is the
    /// caller's business, and so are records and size limits other than `segment.bytes`.
    ///
    /// Errors leave the log as it was. [`LogError::Full`] is a full disk, [`LogError::BatchTooLarge`] the producer's fault.
    pub fn append(&mut self, header: BatchHeader, body: &[u8], leader_epoch: Epoch, now: Millis) -> Result<Appended, LogError> {
        assert_eq!(header.size(), HEADER_SIZE + body.len(), "header and body are one batch");
        let header = BatchHeader { base_offset: self.end, leader_epoch, ..header };
        let rolled = self.prepare(&header, now)?;
        let position = self.write(&header.encode(), body)?;
        let interval = self.config.index_interval_bytes;
        let active = self.active_mut();
        active.note(&header, interval);
        let segment = active.segment.base;
        self.end = header.next_offset();
        Ok(Appended { base: header.base_offset, last: header.last_offset(), bytes: header.size(), batches: 1, segment, position, rolled })
    }

    /// Appends batches as their leader has them: offsets and epochs are kept, checksums are checked. Takes as many as go into one segment in one
    /// write, at least one; the caller comes back with the rest (`bytes` says from where). A batch that is cut off at the end of `batches` is left.
    ///
    /// Errors: [`LogError::OutOfOrder`] if a batch starts below the log end, [`LogError::Corrupt`] if a batch is none.
    pub fn append_as_follower(&mut self, batches: &[u8], now: Millis) -> Result<Option<Appended>, LogError> {
        let bad = |position: usize, e: super::batch::BatchError| LogError::Corrupt {
            path: self.dir.clone(),
            position: position as u64,
            why: e.to_string(),
        };
        let mut walk = Batches::new(batches);
        let Some(first) = walk.next() else { return Ok(None) };
        let first = first.map_err(|e| bad(0, e))?;
        first.header.check_crc(first.bytes).map_err(|e| bad(0, e))?;
        let in_order = |header: &BatchHeader, end: Offset| {
            if header.base_offset < end || header.last_offset_delta < 0 {
                return Err(LogError::OutOfOrder { end, got: header.base_offset });
            }
            Ok(())
        };
        in_order(&first.header, self.end)?;
        let rolled = self.prepare(&first.header, now)?;
        let mut last = first.header;
        let mut bytes = first.bytes.len();
        for batch in walk {
            // What is wrong or does not fit is looked at when the caller comes back with it.
            let Ok(batch) = batch else { break };
            let wrong = batch.header.check_crc(batch.bytes).is_err() || in_order(&batch.header, last.next_offset()).is_err();
            if wrong || !self.fits(&batch.header, bytes as u64, now)? {
                break;
            }
            last = batch.header;
            bytes += batch.bytes.len();
        }
        let position = self.write(&batches[..bytes], &[])?;
        let interval = self.config.index_interval_bytes;
        let active = self.active_mut();
        let mut count = 0;
        for batch in Batches::new(&batches[..bytes]).flatten() {
            active.note(&batch.header, interval);
            count += 1;
        }
        let segment = active.segment.base;
        self.end = last.next_offset();
        Ok(Some(Appended { base: first.header.base_offset, last: last.last_offset(), bytes, batches: count, segment, position, rolled }))
    }

    fn active_mut(&mut self) -> &mut Active<S> {
        self.active.as_mut().expect("prepare() has made a segment")
    }

    /// Sees to it that there is a segment that takes the batch; whether it is a new one after another.
    fn prepare(&mut self, header: &BatchHeader, now: Millis) -> Result<bool, LogError> {
        self.usable()?;
        assert!(header.last_offset_delta >= 0, "offsets rise within a batch");
        let limit = self.config.segment_bytes.min(LARGEST_SEGMENT);
        if header.size() as u64 > limit {
            return Err(LogError::BatchTooLarge { size: header.size() as u64, limit });
        }
        self.materialise(now)?;
        if self.fits(header, 0, now)? {
            return Ok(false);
        }
        self.roll(header.base_offset.max(self.end), now)
    }

    /// Whether the active segment takes the batch after `more` further bytes (reference section 5.1 on rolling).
    fn fits(&self, header: &BatchHeader, more: u64, now: Millis) -> Result<bool, LogError> {
        let Some(active) = &self.active else { return Ok(true) };
        let segment = &active.segment;
        let size = segment.size + more;
        if header.last_offset() - segment.base > i64::from(i32::MAX)
            || size + header.size() as u64 > self.config.segment_bytes.min(LARGEST_SEGMENT)
        {
            return Ok(false);
        }
        if segment.size == 0 {
            return Ok(true);
        }
        if active.index.is_full(self.config.offset_entries(), self.config.time_entries()) {
            return Ok(false);
        }
        let age = active.age(&self.files, header.max_timestamp, now).map_err(|e| LogError::io("read", &self.dir, e))?;
        Ok(age <= self.config.roll_after(segment.base, segment.created))
    }

    /// Closes the active segment and starts one at `base`; whether one was closed (an empty one is replaced instead).
    pub(super) fn roll(&mut self, base: Offset, now: Millis) -> Result<bool, LogError> {
        let Some(active) = &mut self.active else { return Ok(false) };
        if active.segment.size == 0 {
            if active.segment.base != base {
                let old = active.segment.base;
                let segment = self.new_segment(base, now)?;
                self.active = Some(Active::new(segment, Index::new(base)));
                self.names += 1;
                super::retention::remove_segment_files(self.files.storage(), &self.dir, old)?;
            }
            return Ok(false);
        }
        active.seal(&self.files, &self.dir)?;
        if self.config.preallocate {
            let path = path_of(&self.dir, active.segment.base, "log");
            let size = active.segment.size;
            self.files.get(&active.segment.log).and_then(|f| f.set_len(size)).map_err(|e| LogError::io("trim", &path, e))?;
        }
        let segment = self.new_segment(base, now)?;
        self.names += 1;
        let old = self.active.replace(Active::new(segment, Index::new(base)));
        self.closed.extend(old.map(|a| a.segment));
        Ok(true)
    }

    /// Writes at the end of the active segment; says where that was. After an error the file is as before, or the log is broken.
    #[inline]
    fn write(&mut self, head: &[u8], body: &[u8]) -> Result<u64, LogError> {
        let active = self.active.as_ref().expect("prepare() has made a segment");
        let position = active.segment.size;
        let failed = match self.files.get(&active.segment.log) {
            Err(e) => return Err(LogError::io("open", &active.segment.log.path(), e)),
            Ok(file) => match write_at(&*file, position, head, body) {
                Ok(()) => return Ok(position),
                Err(e) => {
                    if file.set_len(position).is_err() {
                        self.broken = true;
                    }
                    e
                }
            },
        };
        Err(LogError::io("write", &active.segment.log.path(), failed))
    }

    /// Writes index entries that are only in memory; cheap if there are none.
    pub fn flush_indexes(&mut self) -> Result<(), LogError> {
        match &mut self.active {
            Some(active) => active.flush_index(&self.files, &self.dir),
            None => Ok(()),
        }
    }

    /// Brings the files in the state that an orderly stop leaves: indexes complete, with the largest timestamp as last entry. Nothing is synced.
    /// The log may go on being used.
    pub fn close(&mut self) -> Result<(), LogError> {
        let Some(active) = &mut self.active else { return Ok(()) };
        active.seal(&self.files, &self.dir)?;
        active.segment.max.set(None);
        if self.config.preallocate {
            let (path, size) = (path_of(&self.dir, active.segment.base, "log"), active.segment.size);
            self.files.get(&active.segment.log).and_then(|f| f.set_len(size)).map_err(|e| LogError::io("trim", &path, e))?;
        }
        Ok(())
    }

    /// The log is to be deleted, or set aside: its directory gets that name (see [`dirs::marked_dir_name`]) and the log is no more. The new path, for
    /// the caller to have removed; None if there never was anything on disk.
    pub fn set_aside_as(self, name: &str) -> Result<Option<PathBuf>, LogError> {
        if self.active.is_none() {
            return Ok(None);
        }
        let to = self.dir.with_file_name(name);
        self.files.storage().rename(&self.dir, &to).map_err(|e| LogError::io("rename", &self.dir, e))?;
        Ok(Some(to))
    }
}
