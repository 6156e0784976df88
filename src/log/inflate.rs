//! Decompression of a batch's payload, step by step and in bounded memory.
//!
//! Memory: gzip 32 KiB; snappy one block, which is the whole batch for clients that do not frame (see [`SNAPPY_BLOCK_MAX`]); lz4 two
//! blocks of at most 4 MiB; zstd the window of its frame, at most 128 MiB (level 22), of which only what is written is touched.

use super::batch::Compression;
use super::codec::CodecError;
use std::io::{self, Read};
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

/// What one snappy block may inflate to, unless it is more than a quarter of that when compressed. Snappy has no window: a copy may reach
/// back to the start of its block.
pub const SNAPPY_BLOCK_MAX: usize = 64 * 1024 * 1024;
/// Snappy's best element makes 64 bytes of 3; a block that claims more than this factor lies.
const SNAPPY_RATIO_MAX: usize = 22;
pub(super) const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
pub(super) const XERIAL_HEADER: usize = 16;
const LZ4_MAGIC: [u8; 4] = 0x184D_2204u32.to_le_bytes();
/// The flag in an LZ4 frame descriptor that says its blocks do not refer to each other.
const LZ4_INDEPENDENT: u8 = 0x20;

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
