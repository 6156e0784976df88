//! The work of a compaction, away from the log's owner: notes the keys of the dirty part, then rewrites group after group of segments and
//! hands each new one over.

use std::path::PathBuf;
use std::sync::Arc;

use super::map::{Hash, MapLimits, OffsetMap};
use super::output::{Output, PARTS, discard};
use super::reader::BatchReader;
use super::rewrite::{Filter, Inflated, first_key};
use super::swap::Cleaned;
use super::txn::{self, AbortedTxn, Transactions};
use super::{CompactError, LastRecord, Pace};
use crate::core::types::{Millis, Offset};
use crate::log::error::LogError;
use crate::log::files::{Files, Handle};
use crate::log::index;
use crate::log::options::LogConfig;
use crate::log::retention::DELETED;
use crate::log::segment::path_of;
use crate::log::storage::{File, Storage};

/// Means for a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// For the map of offsets.
    pub map: MapLimits,
    /// Bytes that are read, and written, at a time (`log.cleaner.io.buffer.size`, halved and divided by the threads).
    pub io_buffer: usize,
    /// Random, so that nobody can choose keys whose hashes are the same.
    pub secret: [u64; 2],
}

/// What a task did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stats {
    /// Everything below is compacted now.
    pub cleaned_to: Offset,
    /// Bytes of the dirty part, which were read for their keys.
    pub mapped_bytes: u64,
    /// Bytes that were read to be rewritten.
    pub read_bytes: u64,
    /// Bytes that were left of them.
    pub kept_bytes: u64,
    /// Records that were read to be rewritten; those in batches that were copied without a look do not count.
    pub read_records: u64,
    /// How many of them were left.
    pub kept_records: u64,
    /// Records without a key, from a time when the topic was not compacted: they are dropped.
    pub keyless: u64,
    /// How full the map became, of 1.
    pub utilization: f64,
    /// Segments that were replaced.
    pub replaced: usize,
    /// Segments that took their place.
    pub written: usize,
}

/// A sealed segment.
pub(super) struct Input<S: Storage> {
    pub base: Offset,
    /// Base of the one after it.
    pub next: Offset,
    pub size: u64,
    pub log: Handle<S>,
}

/// A compaction to be run. Reads what is sealed and writes `.cleaned` files; knows nothing of the log that it is of.
pub struct Task<S: Storage> {
    pub(super) files: Files<S>,
    pub(super) dir: PathBuf,
    pub(super) config: Arc<LogConfig>,
    pub(super) generation: u64,
    pub(super) from: Offset,
    pub(super) upto: Offset,
    pub(super) now: Millis,
    pub(super) producers: Vec<LastRecord>,
    pub(super) inputs: Vec<Input<S>>,
}

/// Buffers that last for the task.
#[derive(Default)]
struct Buffers {
    read: Vec<u8>,
    inflated: Inflated,
    /// Of one batch.
    keys: Vec<(Hash, Offset)>,
}

impl<S: Storage> Task<S> {
    /// The log's count of cuts when the task was made: its result is of use only if it is still the same.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The partition's directory.
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// Does the work. `swap` hands a rewritten segment to the log's owner and returns when it is in place and its name on the disk. After
    /// an error no `.cleaned` file is left.
    pub fn run(
        &self,
        settings: &Settings,
        pace: &mut dyn Pace,
        swap: &mut dyn FnMut(Cleaned) -> Result<(), CompactError>,
    ) -> Result<Stats, CompactError> {
        let aborted = txn::read_indexes(self.files.storage(), &self.dir)?;
        let mut buffers = Buffers::default();
        let mut stats = Stats::default();
        let (map, end) = self.map(settings, &aborted, &mut buffers, &mut stats, pace)?;
        stats.utilization = map.utilization();
        stats.cleaned_to = end;
        let mut filter = Filter {
            map: &map,
            end,
            now: self.now,
            delete_retention_ms: self.config.delete_retention_ms,
            producers: &self.producers,
            transactions: Transactions::new(&aborted),
            inflated: buffers.inflated,
            hashes: Vec::new(),
            stats,
        };
        let count = self.inputs.partition_point(|input| input.base < end);
        let mut rest = &self.inputs[..count];
        while let Some(first) = rest.first() {
            let done = self.rewrite(rest, settings, &mut buffers.read, &mut filter, pace).and_then(|(taken, cleaned)| {
                let group;
                (group, rest) = rest.split_at(taken);
                let Some(cleaned) = cleaned else { return Ok(()) };
                self.make_way(group)?;
                filter.stats.replaced += group.len();
                filter.stats.written += 1;
                swap(cleaned)
            });
            if done.is_err() {
                discard(self.files.storage(), &self.dir, first.base);
            }
            done?;
        }
        Ok(filter.stats)
    }

    /// The last offset of each key in the dirty part, as far as the map has room, and where that part ends.
    fn map(
        &self,
        settings: &Settings,
        aborted: &[AbortedTxn],
        buffers: &mut Buffers,
        stats: &mut Stats,
        pace: &mut dyn Pace,
    ) -> Result<(OffsetMap, Offset), CompactError> {
        let most = (self.upto - self.from).max(0) as u64;
        let mut map = OffsetMap::new(settings.map, most, settings.secret);
        let mut transactions = Transactions::new(aborted);
        let mut end = self.from;
        for input in self.inputs.iter().filter(|input| input.next > self.from) {
            let path = input.log.path();
            let file = self.files.get(&input.log).map_err(|e| LogError::io("open", &path, e))?;
            let at = if input.base < self.from { self.floor(input)? } else { 0 };
            let mut reader = BatchReader::new(&*file, &path, at, input.size, std::mem::take(&mut buffers.read), settings.io_buffer);
            while let Some((batch, _)) = reader.next(pace)? {
                stats.mapped_bytes += batch.bytes.len() as u64;
                let header = batch.header;
                if header.is_control() {
                    transactions.marker(&header, first_key(&batch, &path)?);
                } else if !transactions.records(&header) && header.last_offset() >= self.from {
                    buffers.keys.clear();
                    buffers.inflated.each(&batch, &path, |record| {
                        if let Some(key) = record.key.filter(|_| record.offset >= self.from) {
                            buffers.keys.push((map.hash(key), record.offset));
                        }
                    })?;
                    map.touch(buffers.keys.iter().map(|(hash, _)| *hash));
                    let full = buffers.keys.iter().any(|(hash, offset)| map.put(*hash, *offset).is_err());
                    if full && end == self.from {
                        return Err(CompactError::NoRoom { at: header.base_offset, room: map.capacity() });
                    }
                    if full {
                        return Ok((map, end));
                    }
                }
                end = end.max(header.next_offset());
            }
            buffers.read = reader.into_buffer();
            // Also over the gap that an earlier compaction may have left.
            end = end.max(input.next);
        }
        Ok((map, end))
    }

    /// Where in a segment to start reading for the first dirty offset.
    fn floor(&self, input: &Input<S>) -> Result<u64, CompactError> {
        let path = path_of(&self.dir, input.base, "index");
        let found = self.files.storage().open(&path).and_then(|file| index::floor_in(&file, input.base, self.from));
        Ok(found.map_err(|e| LogError::io("read", &path, e))?.min(input.size))
    }

    /// Whether one more segment goes into the output: sizes, sizes of indexes and the span of offsets must fit. What has no records yet is
    /// always continued: a segment without any gives a reader nothing, and some clients take that for a batch that is too large for them.
    fn fits(&self, output: &Output<'_, S>, base: Offset, next: &Input<S>) -> Result<bool, CompactError> {
        let len = |part: &str| -> Result<u64, CompactError> {
            let path = path_of(&self.dir, next.base, part);
            Ok(self.files.storage().open(&path).and_then(|file| file.len()).map_err(|e| LogError::io("open", &path, e))?)
        };
        let most = i32::MAX as u64;
        let size = output.size() + next.size;
        if next.next - base > i64::from(i32::MAX) || size > most {
            return Ok(false);
        }
        if !output.has_records() {
            return Ok(true);
        }
        let limit = u64::from(self.config.segment_index_bytes);
        let (offsets, times) = output.index_bytes();
        Ok(size <= self.config.segment_bytes && offsets + len("index")? <= limit && times + len("timeindex")? <= limit)
    }

    /// Writes what stays of the first of `inputs`, and of those after it that fit, into one segment. Returns how many it took, and the
    /// segment; None if that would be the one that is there.
    fn rewrite(
        &self,
        inputs: &[Input<S>],
        settings: &Settings,
        buf: &mut Vec<u8>,
        filter: &mut Filter<'_>,
        pace: &mut dyn Pace,
    ) -> Result<(usize, Option<Cleaned>), CompactError> {
        let storage = self.files.storage();
        let base = inputs[0].base;
        let mut output = Output::create(storage, &self.dir, base, self.config.index_interval_bytes, settings.io_buffer)?;
        let (mut taken, mut modified, mut changed) = (0, Millis(0), false);
        loop {
            let input = &inputs[taken];
            taken += 1;
            // Apache Kafka leaves empty ones; they go with the one before.
            taken += inputs[taken..].iter().take_while(|input| input.size == 0).count();
            let next = inputs.get(taken);
            let path = input.log.path();
            let file = self.files.get(&input.log).map_err(|e| LogError::io("open", &path, e))?;
            modified = modified.max(file.modified().map_err(|e| LogError::io("look at", &path, e))?);
            let mut reader = BatchReader::new(&*file, &path, 0, input.size, std::mem::take(buf), settings.io_buffer);
            let ends = |output: &Output<'_, S>| match next {
                Some(next) => self.fits(output, base, next).map(|fits| !fits),
                None => Ok(true),
            };
            while let Some((batch, last)) = reader.next(pace)? {
                // The last batch of a segment stays, empty if need be: so no offset is ever missing between two segments, and none is empty.
                let stays = |output: &Output<'_, S>| if last { ends(output) } else { Ok(false) };
                changed |= filter.pass(&batch, &path, &stays, &mut output, pace)?;
            }
            *buf = reader.into_buffer();
            if ends(&output)? {
                break;
            }
        }
        let aborted = filter.transactions.take_kept();
        if output.size() == 0 || !changed && taken == 1 {
            discard(storage, &self.dir, base);
            return Ok((taken, None));
        }
        let written = output.finish(&aborted, modified, pace)?;
        let replaced = inputs[..taken].iter().map(|input| (input.base, input.size)).collect();
        let (size, max, aborted) = (written.size, written.max, !aborted.is_empty());
        Ok((taken, Some(Cleaned { inputs: replaced, size, max, aborted, generation: self.generation })))
    }

    /// Removes what earlier swaps set aside under the names that the next one needs: a rename over a large file takes as long as freeing it.
    fn make_way(&self, group: &[Input<S>]) -> Result<(), CompactError> {
        for (input, part) in group.iter().flat_map(|input| PARTS.iter().map(move |part| (input, part))) {
            let mut path = path_of(&self.dir, input.base, part).into_os_string();
            path.push(DELETED);
            match self.files.storage().remove(path.as_ref()) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(LogError::io("remove", path.as_ref(), e).into()),
                _ => {}
            }
        }
        Ok(())
    }
}
