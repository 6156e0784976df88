//! The four codecs of record batches: what they are called, what can go wrong, and a whole payload inflated at once. Step by step:
//! `inflate` and `deflate`; through a small window: `window`. None of them knows records.

use super::batch::Compression;
use super::inflate::Inflater;
use super::window::WINDOW;
use std::borrow::Cow;

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

/// All of a payload, inflated; borrowed if it is not compressed. [`CodecError::TooLong`] beyond `limit` bytes.
pub fn inflate(codec: Compression, payload: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, CodecError> {
    if codec == Compression::None {
        return Ok(Cow::Borrowed(payload));
    }
    let mut out = Vec::new();
    inflate_into(codec, payload, limit, &mut out)?;
    Ok(Cow::Owned(out))
}

/// The same into a vector of the caller's, which is emptied first.
pub(super) fn inflate_into(codec: Compression, payload: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let mut inflater = Inflater::new(codec, payload)?;
    out.clear();
    loop {
        let had = out.len();
        let step = WINDOW.max(had).min(limit.saturating_sub(had).saturating_add(1));
        out.resize(had + step, 0);
        let n = inflater.read(&mut out[had..])?;
        out.truncate(had + n);
        if n == 0 {
            return Ok(());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testkit::{self, HOWS, How, Rec};

    #[test]
    fn compressed_data_must_be_whole_and_end_where_the_batch_does() {
        let records: Vec<Rec> = (0..300).map(|i| Rec::new(i, 0, Some(b"key"), Some(&i.to_be_bytes()))).collect();
        let plain = testkit::write(&records);
        for how in HOWS.into_iter().filter(|h| *h != How::Plain) {
            let payload = how.compress(&plain);
            assert_eq!(inflate(how.codec(), &payload, plain.len()).as_deref(), Ok(&plain[..]));
            assert_eq!(inflate(how.codec(), &payload, plain.len() - 1), Err(CodecError::TooLong));
            for cut in [0, 1, 10, payload.len() / 2, payload.len() - 1] {
                assert!(inflate(how.codec(), &payload[..cut], 1 << 20).is_err(), "{how:?} cut at {cut} of {}", payload.len());
            }
            let long = [payload, vec![0]].concat();
            assert!(inflate(how.codec(), &long, 1 << 20).is_err(), "{how:?} with a byte more");
        }
        let info = lz4_flex::frame::FrameInfo::new().block_mode(lz4_flex::frame::BlockMode::Linked);
        let mut linked = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        std::io::Write::write_all(&mut linked, &plain).unwrap();
        assert_eq!(inflate(Compression::Lz4, &linked.finish().unwrap(), 1 << 20), Err(CodecError::DependentBlocks));
        let mut claims = Vec::new();
        claims.extend([0xff, 0xff, 0xff, 0xff, 0x0f]); // 2^32 - 1 bytes
        claims.extend([0; 40]);
        assert_eq!(inflate(Compression::Snappy, &claims, 1 << 20), Err(CodecError::Broken), "a snappy block cannot inflate that much");
    }
}
