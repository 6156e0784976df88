//! Walks the batches of a segment file: headers only, hopping over the records, or with every byte checked against its checksum. Reads in
//! chunks into one buffer of the caller's; a batch larger than the buffer is checked piece by piece.

use std::io;

use super::batch::{BatchHeader, CRC_START, HEADER_SIZE};
use super::storage::{File, read_exact_at};
use crate::core::types::Offset;

/// Bytes of the buffer for a walk of a whole segment: large enough for few system calls, small enough to stay in the cache.
pub(super) const WALK_BUFFER: usize = 256 * 1024;
/// Bytes of the buffer for a short look.
pub(super) const LOOK_BUFFER: usize = 4096;

/// What the walk found next.
#[derive(Debug)]
pub(super) enum Step {
    /// A batch that starts there.
    Batch(BatchHeader, u64),
    /// The end of the bytes that were to be walked.
    End,
    /// No batch starts at that position.
    Bad(u64, String),
}

pub(super) struct Walker<'a, F> {
    file: &'a F,
    buf: &'a mut [u8],
    /// The part of the file that `buf` holds.
    held: std::ops::Range<u64>,
    at: u64,
    end: u64,
    /// The last batch was so large that the next header is not worth a whole buffer.
    sparse: bool,
}

impl<'a, F: File> Walker<'a, F> {
    /// Over `[at, end)` of the file, where `at` is the start of a batch. The buffer has at least [`HEADER_SIZE`] bytes.
    pub fn new(file: &'a F, at: u64, end: u64, buf: &'a mut [u8]) -> Walker<'a, F> {
        Walker { file, buf, held: 0..0, at, end, sparse: false }
    }

    /// The bytes from `from` that the buffer holds, at least `need`; reads them if it does not hold so many.
    fn window(&mut self, from: u64, need: usize) -> io::Result<&[u8]> {
        if from < self.held.start || from + need as u64 > self.held.end {
            let most = if self.sparse { self.buf.len().min(LOOK_BUFFER) } else { self.buf.len() };
            let n = (self.end - from).min(most as u64) as usize;
            read_exact_at(self.file, from, &mut self.buf[..n])?;
            self.held = from..from + n as u64;
        }
        Ok(&self.buf[(from - self.held.start) as usize..(self.held.end - self.held.start) as usize])
    }

    /// The next batch. With `check`, its checksum is compared with its bytes if `check` says so for its header.
    pub fn next(&mut self, check: impl Fn(&BatchHeader) -> bool) -> io::Result<Step> {
        let at = self.at;
        let left = self.end - at;
        if left == 0 {
            return Ok(Step::End);
        }
        if left < HEADER_SIZE as u64 {
            return Ok(Step::Bad(at, format!("{left} bytes are left, less than a header")));
        }
        let window = self.window(at, HEADER_SIZE)?;
        let header = match BatchHeader::parse(window) {
            Ok(header) => header,
            Err(e) => return Ok(Step::Bad(at, e.to_string())),
        };
        let size = header.size() as u64;
        if size > left {
            return Ok(Step::Bad(at, format!("a batch of {size} bytes is cut off after {left}")));
        }
        if header.last_offset_delta < 0 || header.base_offset.0 < 0 {
            return Ok(Step::Bad(at, format!("offsets {} + {}", header.base_offset.0, header.last_offset_delta)));
        }
        if check(&header) {
            self.sparse = false;
            let (mut from, end) = (at + CRC_START as u64, at + size);
            let mut crc = 0;
            while from < end {
                let window = self.window(from, 1)?;
                let n = ((end - from) as usize).min(window.len());
                crc = crc32c::crc32c_append(crc, &window[..n]);
                from += n as u64;
            }
            if crc != header.crc {
                return Ok(Step::Bad(at, format!("checksum {crc:#010x}, the header says {:#010x}", header.crc)));
            }
        } else {
            self.sparse = size >= self.buf.len() as u64 / 4;
        }
        self.at = at + size;
        Ok(Step::Batch(header, at))
    }
}

/// The first batch at or after `at` for which `found` holds, by headers only. None if there is none before `end`, or no batch at all.
pub(super) fn find<F: File>(
    file: &F,
    at: u64,
    end: u64,
    mut found: impl FnMut(&BatchHeader) -> bool,
) -> io::Result<Option<(BatchHeader, u64)>> {
    let mut buf = [0; LOOK_BUFFER];
    let mut walker = Walker::new(file, at, end, &mut buf);
    loop {
        match walker.next(|_| false)? {
            Step::Batch(header, position) if found(&header) => return Ok(Some((header, position))),
            Step::Batch(..) => {}
            Step::End => return Ok(None),
            Step::Bad(position, why) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("no valid batch at position {position}: {why}")));
            }
        }
    }
}

/// The first batch at or after `at` that ends at or after `offset`.
pub(super) fn find_offset<F: File>(file: &F, at: u64, end: u64, offset: Offset) -> io::Result<Option<(BatchHeader, u64)>> {
    find(file, at, end, |header| header.last_offset() >= offset)
}
