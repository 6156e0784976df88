//! Reads the batches of a segment whole, one after the other, in large reads into one buffer. Every checksum is checked: a record that
//! was damaged on the disk must not be given a new one.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::{CompactError, Pace};
use crate::log::batch::{Batch, BatchHeader, HEADER_SIZE};
use crate::log::error::LogError;
use crate::log::storage::{File, read_exact_at};

pub(super) struct BatchReader<'a, F> {
    file: &'a F,
    path: &'a Path,
    /// What the buffer holds of the file starts there.
    from: u64,
    /// The part of the buffer that holds something, from the next batch on.
    held: Range<usize>,
    end: u64,
    buf: Vec<u8>,
    /// Bytes of the buffer, unless a batch is larger.
    usual: usize,
}

impl<'a, F: File> BatchReader<'a, F> {
    /// Over `[at, end)` of the file, where a batch starts at `at`; `path` is for errors. Give it the buffer of an earlier one.
    pub fn new(file: &'a F, path: &'a Path, at: u64, end: u64, buf: Vec<u8>, usual: usize) -> BatchReader<'a, F> {
        BatchReader { file, path, from: at, held: 0..0, end, buf, usual: usual.max(HEADER_SIZE) }
    }

    /// The buffer, for the next one.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buf
    }

    /// Where the next batch starts in the file.
    pub fn position(&self) -> u64 {
        self.from + self.held.start as u64
    }

    /// Has the buffer hold `need` bytes from the next batch on; they are known to be in the file.
    fn hold(&mut self, need: usize, pace: &mut dyn Pace) -> Result<(), CompactError> {
        if self.held.len() >= need {
            return Ok(());
        }
        self.from = self.position();
        self.buf.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        let size = need.max(self.usual);
        if self.buf.len() < size {
            self.buf.resize(size, 0);
        } else if self.buf.len() > size {
            self.buf.truncate(size.max(self.held.end));
            self.buf.shrink_to(size);
        }
        let at = self.from + self.held.end as u64;
        let more = (self.end - at).min((self.buf.len() - self.held.end) as u64) as usize;
        let into = &mut self.buf[self.held.end..self.held.end + more];
        read_exact_at(self.file, at, into).map_err(|e| LogError::io("read", self.path, e))?;
        self.held.end += more;
        pace.io(more as u64)?;
        Ok(())
    }

    fn bad(&self, why: impl ToString) -> CompactError {
        LogError::Corrupt { path: self.path.to_owned(), position: self.position(), why: why.to_string() }.into()
    }

    /// The next batch, and whether it is the last; None at the end.
    pub fn next(&mut self, pace: &mut dyn Pace) -> Result<Option<(Batch<'_>, bool)>, CompactError> {
        let position = self.position();
        let left = self.end - position;
        if left == 0 {
            return Ok(None);
        }
        if left < HEADER_SIZE as u64 {
            return Err(self.bad(format!("{left} bytes are left, less than a header")));
        }
        self.hold(HEADER_SIZE, pace)?;
        let header = BatchHeader::parse(&self.buf[self.held.clone()]).map_err(|e| self.bad(e))?;
        let size = header.size();
        if size as u64 > left {
            return Err(self.bad(io::Error::new(io::ErrorKind::UnexpectedEof, format!("a batch of {size} bytes is cut off after {left}"))));
        }
        if header.last_offset_delta < 0 || header.base_offset.0 < 0 {
            return Err(self.bad(format!("offsets {} + {}", header.base_offset.0, header.last_offset_delta)));
        }
        self.hold(size, pace)?;
        let at = self.held.start;
        if let Err(e) = header.check_crc(&self.buf[at..at + size]) {
            return Err(self.bad(e));
        }
        self.held.start += size;
        Ok(Some((Batch { position: position as usize, header, bytes: &self.buf[at..at + size] }, size as u64 == left)))
    }
}
