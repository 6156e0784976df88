//! A small window over a decompressor, through which the walk reads records of any size.

use super::batch::{BatchHeader, Compression};
use super::codec::CodecError;
use super::deflate::Deflater;
use super::inflate::Inflater;
use super::records::{Deltas, Fault, RecordError, Seen, walk};
use super::source::{Parts, Slice, Source, quick};
use super::varint::{varint, varlong};
use std::ops::ControlFlow;

/// Bytes of inflated records in memory at once during a walk.
pub const WINDOW: usize = 64 * 1024;
/// What one batch may inflate to: what a batch's own length field could say. Clients cannot hold more; without a bound 36 kB could keep a
/// thread busy for minutes.
pub const INFLATED_MAX: u64 = i32::MAX as u64;
/// Longest varint, and so the least that the window holds before one is read.
const LONGEST_VARINT: usize = 10;

/// Where a [`Window`] gets its bytes: a decompressor, or one whose output is compressed again on the way.
pub(super) trait Feed {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, CodecError>;
}

impl Feed for Inflater<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        Inflater::read(self, out)
    }
}

/// A decompressor whose output goes into a compressor as well.
pub(super) struct Tee<'a> {
    pub(super) from: Inflater<'a>,
    pub(super) to: Deflater,
}

impl Feed for Tee<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        let n = self.from.read(out)?;
        self.to.write(&out[..n])?;
        Ok(n)
    }
}

/// The walk's source over compressed records: [`WINDOW`] bytes, whatever the size of a record.
pub(super) struct Window<F> {
    pub(super) feed: F,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Bytes taken before the window's start.
    before: u64,
    dry: bool,
}

impl<F: Feed> Window<F> {
    pub(super) fn new(feed: F) -> Window<F> {
        Window { feed, buffer: vec![0; WINDOW], at: 0, end: 0, before: 0, dry: false }
    }

    /// Reads on into the free end of the window.
    fn read_on(&mut self) -> Result<(), Fault> {
        let n = self.feed.read(&mut self.buffer[self.end..])?;
        self.end += n;
        self.dry = n == 0;
        if self.before + self.end as u64 > INFLATED_MAX { Err(CodecError::TooLong.into()) } else { Ok(()) }
    }

    /// Moves what is left to the front and reads until a varint fits, or the end.
    #[inline(never)]
    fn refill(&mut self) -> Result<(), Fault> {
        self.buffer.copy_within(self.at..self.end, 0);
        self.before += self.at as u64;
        self.end -= self.at;
        self.at = 0;
        while self.end < LONGEST_VARINT && !self.dry {
            self.read_on()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn ahead(&mut self) -> Result<&[u8], Fault> {
        if self.end - self.at < LONGEST_VARINT && !self.dry {
            self.refill()?;
        }
        Ok(&self.buffer[self.at..self.end])
    }
}

impl<F: Feed> Source for Window<F> {
    type Span = ();

    #[inline(always)]
    fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    #[inline(always)]
    fn left(&self) -> u64 {
        INFLATED_MAX - self.position()
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.ahead()?.first().ok_or(Fault::Short)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<i32, Fault> {
        let (n, len) = varint(self.ahead()?)?;
        self.at += len;
        Ok(n)
    }

    #[inline(always)]
    fn varlong(&mut self) -> Result<i64, Fault> {
        let (n, len) = varlong(self.ahead()?)?;
        self.at += len;
        Ok(n)
    }

    #[inline(always)]
    fn take(&mut self, n: u32) -> Result<(), Fault> {
        let mut n = n as usize;
        while n > self.end - self.at {
            n -= self.end - self.at;
            self.before += self.end as u64;
            (self.at, self.end) = (0, 0);
            self.read_on()?;
            if self.dry {
                return Err(Fault::Short);
            }
        }
        self.at += n;
        Ok(())
    }

    fn since(&self, _: u64) {}

    #[inline(always)]
    fn quick(&mut self) -> Option<Parts<()>> {
        let (r, size) = quick(&self.buffer[self.at..self.end])?;
        self.at += size;
        Some(Parts { timestamp_delta: r.timestamp_delta, offset_delta: r.offset_delta, key: r.key.map(|_| ()), value: r.value.map(|_| ()) })
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if self.ahead()?.is_empty() { Ok(()) } else { Err(Fault::Trailing) }
    }
}

/// Walks all records of a batch through bounded memory and shows each to `visit`, which may stop the walk. `payload`: the bytes after the
/// header, compressed as it says. A codec that nobody has is [`CodecError::Broken`].
#[inline]
pub fn visit(header: &BatchHeader, payload: &[u8], deltas: Deltas, visit: impl FnMut(Seen) -> ControlFlow<()>) -> Result<(), RecordError> {
    let start = |e: CodecError| RecordError { index: 0, fault: e.into() };
    match header.compression().ok_or(start(CodecError::Broken))? {
        Compression::None => walk(&mut Slice::new(payload), header, deltas, visit),
        codec => walk(&mut Window::new(Inflater::new(codec, payload).map_err(start)?), header, deltas, visit),
    }
}
