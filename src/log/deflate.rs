//! Compression of a batch's payload, step by step and with a hard cap: output stops at the limit, not after it.

use super::codec::{Codec, CodecError};
use super::inflate::{XERIAL_HEADER, XERIAL_MAGIC};
use std::io::{self, Write};

/// The block size of Java's snappy framing.
const XERIAL_BLOCK: usize = 32 * 1024;

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
