//! The four codecs of record batches: decompression through a bounded window, compression with a hard cap. Knows nothing of records
//! except how to feed them to the walk.
//!
//! Memory: gzip 32 KiB; snappy one block, which is the whole batch for clients that do not frame (see [`SNAPPY_BLOCK_MAX`]); lz4 two
//! blocks of at most 4 MiB; zstd the window of its frame, at most 128 MiB (level 22), of which only what is written is touched.

use super::batch::Compression;
use super::records::{Fault, Source, varint, varlong};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

/// Bytes of inflated records in memory at once during a walk.
pub const WINDOW: usize = 64 * 1024;
/// What one batch may inflate to: what a batch's own length field could say. Clients cannot hold more; without a bound 36 kB could keep a
/// thread busy for minutes.
pub const INFLATED_MAX: u64 = i32::MAX as u64;
/// What one snappy block may inflate to, unless it is more than a quarter of that when compressed. Snappy has no window: a copy may reach
/// back to the start of its block.
pub const SNAPPY_BLOCK_MAX: usize = 64 * 1024 * 1024;
/// Snappy's best element makes 64 bytes of 3; a block that claims more than this factor lies.
const SNAPPY_RATIO_MAX: usize = 22;
/// The block size of Java's snappy framing.
const XERIAL_BLOCK: usize = 32 * 1024;
const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER: usize = 16;
const LZ4_MAGIC: [u8; 4] = 0x184D_2204u32.to_le_bytes();
/// The flag in an LZ4 frame descriptor that says its blocks do not refer to each other.
const LZ4_INDEPENDENT: u8 = 0x20;
/// Longest varint, and so the least that the window holds before one is read.
const LONGEST_VARINT: usize = 10;

/// Compressed data that cannot be read, or output that may not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Not what its codec writes, or a checksum inside is wrong.
    #[error("the compressed data is broken")]
    Broken,
    /// It ends too early.
    #[error("the compressed data is cut off")]
    Cut,
    /// More bytes follow its end.
    #[error("bytes follow the compressed data")]
    Trailing,
    /// LZ4 blocks that refer to earlier ones, which Java's consumers cannot read.
    #[error("the LZ4 frame has dependent blocks, which Kafka's consumers cannot read")]
    DependentBlocks,
    /// More than it may inflate to.
    #[error("the compressed data inflates to more than a batch may hold")]
    TooLong,
    /// The recompressed batch exceeds the limit.
    #[error("the batch exceeds its limit when written with the topic's codec")]
    OverLimit,
    /// A compressor refused its settings.
    #[error("the compressor refused to work")]
    Compressor,
}

/// Decompresses step by step.
pub enum Inflater<'a> {
    /// Not compressed.
    Plain(&'a [u8]),
    /// Members one after the other.
    Gzip(Box<flate2::bufread::MultiGzDecoder<&'a [u8]>>),
    /// Blocks, or one block.
    Snappy(Snappy<'a>),
    /// One frame.
    Lz4(Box<lz4_flex::frame::FrameDecoder<Tail<'a>>>),
    /// Frames one after the other.
    Zstd(Zstd<'a>),
}

impl<'a> Inflater<'a> {
    /// Over the payload of a batch.
    pub fn new(codec: Compression, payload: &'a [u8]) -> Result<Inflater<'a>, CodecError> {
        Ok(match codec {
            Compression::None => Inflater::Plain(payload),
            Compression::Gzip => Inflater::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(payload))),
            Compression::Snappy => Inflater::Snappy(Snappy::new(payload)?),
            Compression::Lz4 => {
                match payload {
                    [a, b, c, d, flags, ..] if [*a, *b, *c, *d] == LZ4_MAGIC => {
                        if flags & LZ4_INDEPENDENT == 0 {
                            return Err(CodecError::DependentBlocks);
                        }
                    }
                    _ => return Err(CodecError::Broken),
                }
                Inflater::Lz4(Box::new(lz4_flex::frame::FrameDecoder::new(Tail { bytes: payload, ran_out: false })))
            }
            Compression::Zstd => Inflater::Zstd(Zstd::new(payload)?),
        })
    }

    /// Writes the next inflated bytes to the start of `out` (not empty) and returns how many; 0 at the end, when the whole input has been
    /// taken and its checksums were right.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        match self {
            Inflater::Plain(rest) => rest.read(out).map_err(|_| CodecError::Broken),
            Inflater::Gzip(decoder) => decoder.read(out).map_err(broken),
            Inflater::Snappy(snappy) => snappy.read(out),
            Inflater::Lz4(decoder) => match decoder.read(out).map_err(broken)? {
                0 if decoder.get_ref().ran_out => Err(CodecError::Cut),
                0 if !decoder.get_ref().bytes.is_empty() => Err(CodecError::Trailing),
                n => Ok(n),
            },
            Inflater::Zstd(zstd) => zstd.read(out),
        }
    }
}

fn broken(e: io::Error) -> CodecError {
    if e.kind() == io::ErrorKind::UnexpectedEof { CodecError::Cut } else { CodecError::Broken }
}

/// A slice as a reader that remembers whether more was wanted than it had.
#[derive(Debug)]
pub struct Tail<'a> {
    bytes: &'a [u8],
    ran_out: bool,
}

impl Read for Tail<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.ran_out |= self.bytes.len() < out.len();
        self.bytes.read(out)
    }
}

/// Snappy: Java's framing (header, then length-prefixed blocks) or one raw block.
#[derive(Debug)]
pub struct Snappy<'a> {
    input: &'a [u8],
    framed: bool,
    block: Vec<u8>,
    at: usize,
}

impl<'a> Snappy<'a> {
    fn new(payload: &'a [u8]) -> Result<Snappy<'a>, CodecError> {
        if payload.is_empty() {
            return Err(CodecError::Cut);
        }
        let framed = payload.starts_with(XERIAL_MAGIC);
        let input = if framed { payload.get(XERIAL_HEADER..).ok_or(CodecError::Cut)? } else { payload };
        Ok(Snappy { input, framed, block: Vec::new(), at: 0 })
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        while self.at == self.block.len() {
            if self.input.is_empty() {
                return Ok(0);
            }
            self.next_block()?;
        }
        let n = out.len().min(self.block.len() - self.at);
        out[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }

    fn next_block(&mut self) -> Result<(), CodecError> {
        let block = if self.framed {
            let (length, rest) = self.input.split_first_chunk::<4>().ok_or(CodecError::Cut)?;
            let (block, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or(CodecError::Cut)?;
            self.input = rest;
            block
        } else {
            std::mem::take(&mut self.input)
        };
        let claimed = snap::raw::decompress_len(block).map_err(|_| CodecError::Broken)?;
        if claimed > block.len().saturating_mul(SNAPPY_RATIO_MAX) {
            return Err(CodecError::Broken);
        }
        if claimed > SNAPPY_BLOCK_MAX.max(block.len().saturating_mul(4)) {
            return Err(CodecError::TooLong);
        }
        self.block.resize(claimed, 0);
        self.at = 0;
        let n = snap::raw::Decoder::new().decompress(block, &mut self.block).map_err(|_| CodecError::Broken)?;
        self.block.truncate(n);
        Ok(())
    }
}

/// Zstandard frames.
pub struct Zstd<'a> {
    decoder: zstd::stream::raw::Decoder<'static>,
    input: &'a [u8],
    frame_done: bool,
}

impl<'a> Zstd<'a> {
    fn new(payload: &'a [u8]) -> Result<Zstd<'a>, CodecError> {
        let decoder = zstd::stream::raw::Decoder::new().map_err(|_| CodecError::Broken)?;
        Ok(Zstd { decoder, input: payload, frame_done: false })
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        let mut output = OutBuffer::around(out);
        loop {
            if self.input.is_empty() && self.frame_done {
                return Ok(0);
            }
            let mut input = InBuffer::around(self.input);
            let hint = self.decoder.run(&mut input, &mut output).map_err(|_| CodecError::Broken)?;
            let taken = input.pos();
            self.input = &self.input[taken..];
            self.frame_done = hint == 0;
            if output.pos() > 0 {
                return Ok(output.pos());
            }
            if self.input.is_empty() && !self.frame_done {
                return Err(CodecError::Cut);
            }
        }
    }
}

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

    fn finish(&mut self) -> Result<(), Fault> {
        if self.ahead()?.is_empty() { Ok(()) } else { Err(Fault::Trailing) }
    }
}

/// All of a payload, inflated; borrowed if it is not compressed. [`CodecError::TooLong`] beyond `limit` bytes.
pub fn inflate(codec: Compression, payload: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, CodecError> {
    if codec == Compression::None {
        return Ok(Cow::Borrowed(payload));
    }
    let mut inflater = Inflater::new(codec, payload)?;
    let mut out = Vec::new();
    loop {
        let had = out.len();
        let step = WINDOW.max(had).min(limit.saturating_sub(had).saturating_add(1));
        out.resize(had + step, 0);
        let n = inflater.read(&mut out[had..])?;
        out.truncate(had + n);
        if n == 0 {
            return Ok(Cow::Owned(out));
        }
        if out.len() > limit {
            return Err(CodecError::TooLong);
        }
    }
}

/// A codec with its level, as `compression.type` and `compression.<codec>.level` set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Records as they are.
    None,
    /// Level 1 to 9, or -1 for the default.
    Gzip {
        /// As zlib counts.
        level: i32,
    },
    /// Has no levels.
    Snappy,
    /// Its level is not used: the compressor has one speed.
    Lz4,
    /// Level -131072 to 22.
    Zstd {
        /// As zstd counts.
        level: i32,
    },
}

impl Codec {
    /// What it writes into the attributes.
    pub fn compression(self) -> Compression {
        match self {
            Codec::None => Compression::None,
            Codec::Gzip { .. } => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd { .. } => Compression::Zstd,
        }
    }
}

/// Output that refuses to grow beyond its limit.
#[derive(Debug)]
pub struct Capped {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            self.over = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses step by step into a vector of bounded size.
pub(super) enum Deflater {
    Plain(Capped),
    Gzip(flate2::write::GzEncoder<Capped>),
    Snappy { out: Capped, block: Vec<u8> },
    Lz4(Box<lz4_flex::frame::FrameEncoder<Capped>>),
    Zstd(zstd::stream::write::Encoder<'static, Capped>),
}

impl Deflater {
    /// Writes after `prefix` zero bytes, which the batch's header will take; all in all at most `limit` bytes.
    pub(super) fn new(codec: Codec, prefix: usize, limit: usize) -> Result<Deflater, CodecError> {
        let mut out = Capped { bytes: vec![0; prefix], limit, over: prefix > limit };
        if out.over {
            return Err(CodecError::OverLimit);
        }
        Ok(match codec {
            Codec::None => Deflater::Plain(out),
            Codec::Gzip { level } => {
                let level = u32::try_from(level).map_or_else(|_| flate2::Compression::default(), |l| flate2::Compression::new(l.min(9)));
                Deflater::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            Codec::Snappy => {
                let mut header = [0; XERIAL_HEADER];
                header[..8].copy_from_slice(XERIAL_MAGIC);
                header[11] = 1; // version
                header[15] = 1; // least version that can read it
                out.write_all(&header).map_err(|_| CodecError::OverLimit)?;
                Deflater::Snappy { out, block: Vec::with_capacity(XERIAL_BLOCK) }
            }
            Codec::Lz4 => {
                let info = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
                Deflater::Lz4(Box::new(lz4_flex::frame::FrameEncoder::with_frame_info(info, out)))
            }
            Codec::Zstd { level } => Deflater::Zstd(zstd::stream::write::Encoder::new(out, level).map_err(|_| CodecError::Compressor)?),
        })
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), CodecError> {
        let done = match self {
            Deflater::Plain(out) => out.write_all(bytes),
            Deflater::Gzip(encoder) => encoder.write_all(bytes),
            Deflater::Snappy { out, block } => {
                let mut done = Ok(());
                while done.is_ok() && !bytes.is_empty() {
                    let (now, later) = bytes.split_at(bytes.len().min(XERIAL_BLOCK - block.len()));
                    block.extend_from_slice(now);
                    bytes = later;
                    if block.len() == XERIAL_BLOCK {
                        done = snappy_block(out, block);
                    }
                }
                done
            }
            Deflater::Lz4(encoder) => encoder.write_all(bytes),
            Deflater::Zstd(encoder) => encoder.write_all(bytes),
        };
        done.map_err(|_| self.why())
    }

    /// The output, prefix included.
    pub(super) fn finish(self) -> Result<Vec<u8>, CodecError> {
        let out = match self {
            Deflater::Plain(out) => Ok(out),
            Deflater::Gzip(encoder) => encoder.finish(),
            Deflater::Snappy { mut out, mut block } => {
                if block.is_empty() {
                    Ok(out)
                } else {
                    snappy_block(&mut out, &mut block).map(|()| out)
                }
            }
            Deflater::Lz4(encoder) => encoder.finish().map_err(io::Error::from),
            Deflater::Zstd(encoder) => encoder.finish(),
        };
        // The compressors write to memory: only the limit can stop them here.
        out.map(|out| out.bytes).map_err(|_| CodecError::OverLimit)
    }

    fn why(&self) -> CodecError {
        let over = match self {
            Deflater::Plain(out) | Deflater::Snappy { out, .. } => out.over,
            Deflater::Gzip(encoder) => encoder.get_ref().over,
            Deflater::Lz4(encoder) => encoder.get_ref().over,
            Deflater::Zstd(encoder) => encoder.get_ref().over,
        };
        if over { CodecError::OverLimit } else { CodecError::Compressor }
    }
}

fn snappy_block(out: &mut Capped, block: &mut Vec<u8>) -> io::Result<()> {
    let packed = snap::raw::Encoder::new().compress_vec(block).map_err(io::Error::other)?;
    out.write_all(&(packed.len() as u32).to_be_bytes())?;
    out.write_all(&packed)?;
    block.clear();
    Ok(())
}
