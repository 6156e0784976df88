//! An answer as it goes to the socket: bytes with places where ranges of log files go.

use crate::log::storage::FsFile;
use bytes::BytesMut;
use std::sync::Arc;

/// One framed answer.
#[derive(Debug, Default)]
pub struct Response {
    /// Size prefix, header and body, without the spliced parts.
    pub bytes: BytesMut,
    /// File ranges to send, in order of their place.
    pub splices: Vec<Splice>,
}

/// A file range inside an answer.
#[derive(Debug)]
pub struct Splice {
    /// How many of `Response::bytes` go out before it.
    pub at: usize,
    /// The file; held so that retention may unlink it meanwhile.
    pub file: Arc<FsFile>,
    /// Where in the file.
    pub position: u64,
    /// How many bytes.
    pub len: u32,
}

impl Response {
    /// Bytes on the wire, spliced parts included.
    pub fn wire_len(&self) -> usize {
        self.bytes.len() + self.splices.iter().map(|splice| splice.len as usize).sum::<usize>()
    }

    /// Fills in the size prefix: the first four bytes of `bytes` are its place.
    pub fn seal(mut self) -> Response {
        let size = (self.wire_len() - 4) as u32;
        self.bytes[..4].copy_from_slice(&size.to_be_bytes());
        self
    }
}
