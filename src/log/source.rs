//! Bytes that records are read from: a slice, or (in `window`) a small window over a decompressor; and one step for the records that
//! nearly all are.

use super::records::Fault;
use super::varint::{varint, varlong};

/// One record as it lies in its source.
pub(super) struct Parts<P> {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Option<P>,
    pub(super) value: Option<P>,
}

/// Bytes that records are read from, front to back.
pub(super) trait Source {
    /// What stands for a range of bytes: a slice where there is one.
    type Span: Copy;
    /// Bytes taken so far.
    fn position(&self) -> u64;
    /// An upper bound of what is left, if known without reading on.
    fn left(&self) -> u64;
    /// The next byte.
    fn byte(&mut self) -> Result<u8, Fault>;
    /// A zigzag integer of 32 bits.
    fn varint(&mut self) -> Result<i32, Fault>;
    /// A zigzag integer of 64 bits.
    fn varlong(&mut self) -> Result<i64, Fault>;
    /// The next `n` bytes.
    fn take(&mut self, n: u32) -> Result<Self::Span, Fault>;
    /// The bytes since an earlier position.
    fn since(&self, position: u64) -> Self::Span;
    /// [`Fault::Trailing`] unless everything is taken.
    fn finish(&mut self) -> Result<(), Fault>;
    /// The next record, taken, if [`quick`] can read it; else nothing is taken.
    fn quick(&mut self) -> Option<Parts<Self::Span>>;
}

/// The value and the length of an unsigned varint of one to three bytes.
#[inline(always)]
fn small(w: u32) -> Option<(u32, usize)> {
    if w & 0x80 == 0 {
        Some((w & 0x7f, 1))
    } else if w & 0x8000 == 0 {
        Some((w & 0x7f | w >> 1 & 0x3f80, 2))
    } else if w & 0x80_0000 == 0 {
        Some((w & 0x7f | w >> 1 & 0x3f80 | w >> 2 & 0x1f_c000, 3))
    } else {
        None
    }
}

/// A key or value: where it lies (None: null) and where it ends.
#[inline(always)]
fn small_field(bytes: &[u8], at: usize) -> Option<(Option<(usize, usize)>, usize)> {
    let (n, len) = small(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))?;
    let start = at + len;
    match n {
        1 => Some((None, start)),
        n if n & 1 == 0 => Some((Some((start, start + n as usize / 2)), start + n as usize / 2)),
        _ => None,
    }
}

/// Reads the record at the start of `bytes` if it has the shape of nearly all: below 8 KiB, no headers, whole, not at the very end. It
/// must accept nothing that `records` refuses; what it does not know, `records` reads field by field and judges. Returns the record and its size.
#[inline(always)]
pub(super) fn quick(bytes: &[u8]) -> Option<(Parts<(usize, usize)>, usize)> {
    let mut w = u64::from_le_bytes(*bytes.first_chunk()?);
    let (length, len) = small(w as u32 & 0xff_ffff).filter(|(n, len)| n & 1 == 0 && *len < 3)?;
    w >>= 8 * len + 8; // and the attributes
    let (timestamp, timestamp_len) = small(w as u32 & 0xff_ffff).filter(|(_, len)| *len < 3)?;
    w >>= 8 * timestamp_len;
    let (offset, offset_len) = small(w as u32)?;
    let (key, at) = small_field(bytes, len + 1 + timestamp_len + offset_len)?;
    let (value, at) = small_field(bytes, at)?;
    if *bytes.get(at)? != 0 || at + 1 != len + length as usize / 2 {
        return None;
    }
    let zigzag = |n: u32| (n >> 1) as i32 ^ -((n & 1) as i32);
    Some((Parts { timestamp_delta: zigzag(timestamp).into(), offset_delta: zigzag(offset), key, value }, at + 1))
}

/// Uncompressed records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Slice<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Slice<'a> {
        Slice { all: bytes, rest: bytes }
    }
}

impl<'a> Source for Slice<'a> {
    type Span = &'a [u8];

    #[inline(always)]
    fn position(&self) -> u64 {
        (self.all.len() - self.rest.len()) as u64
    }

    #[inline(always)]
    fn left(&self) -> u64 {
        self.rest.len() as u64
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.rest.split_first().ok_or(Fault::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<i32, Fault> {
        let (n, len) = varint(self.rest)?;
        self.rest = &self.rest[len..];
        Ok(n)
    }

    #[inline(always)]
    fn varlong(&mut self) -> Result<i64, Fault> {
        let (n, len) = varlong(self.rest)?;
        self.rest = &self.rest[len..];
        Ok(n)
    }

    #[inline(always)]
    fn take(&mut self, n: u32) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(n as usize).ok_or(Fault::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn since(&self, position: u64) -> &'a [u8] {
        &self.all[position as usize..self.all.len() - self.rest.len()]
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if self.rest.is_empty() { Ok(()) } else { Err(Fault::Trailing) }
    }

    #[inline(always)]
    fn quick(&mut self) -> Option<Parts<&'a [u8]>> {
        let (r, size) = quick(self.rest)?;
        let (record, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        let span = |(from, to): (usize, usize)| &record[from..to];
        Some(Parts { timestamp_delta: r.timestamp_delta, offset_delta: r.offset_delta, key: r.key.map(span), value: r.value.map(span) })
    }
}
