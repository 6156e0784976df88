//! The receiving half of a connection: bytes in, whole frames out.
//!
//! An idle connection holds no buffer. What arrives is read into a buffer that all connections of a shard share; whole small frames are
//! split off it without a copy, and only the beginning of an incomplete frame moves to a buffer of the connection's own. That buffer
//! grows with what has arrived, not with what was announced, except that a connection that has sent a frame of some size before is
//! trusted to do so again.

use super::admission::Admission;
use crate::wire::frame::{self, BadFrame};
use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Size of the buffer that the connections of a shard read into.
pub const SHARED_BUFFER: usize = 128 * 1024;

/// The first buffer of a frame that is still arriving holds at least so much.
const FIRST_BUFFER: usize = 4 * 1024;

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    /// So many bytes.
    Bytes(usize),
    /// Nothing more at the moment.
    Nothing,
    /// The peer has closed its side.
    Closed,
}

/// Bytes that arrived and are not yet split into frames.
pub struct Inbox {
    bytes: BytesMut,
    admission: Arc<Admission>,
    max_frame: usize,
    largest: usize,
}

impl Inbox {
    /// Nothing arrived yet.
    pub fn new(admission: Arc<Admission>, max_frame: usize) -> Inbox {
        Inbox { bytes: BytesMut::new(), admission, max_frame, largest: 0 }
    }

    /// Whether more of the current frame may be read now: small ones always, large ones while the process has room.
    pub fn may_read(&self) -> bool {
        self.bytes.len() < super::admission::ALWAYS_ADMITTED || self.admission.is_open()
    }

    /// Reads once without waiting.
    pub fn read(&mut self, stream: &TcpStream, shared: &RefCell<BytesMut>) -> io::Result<Arrived> {
        let got = if self.bytes.is_empty() { self.read_shared(stream, &mut shared.borrow_mut()) } else { self.read_own(stream) };
        match got {
            Ok(0) => Ok(Arrived::Closed),
            Ok(n) => {
                self.admission.take(n);
                Ok(Arrived::Bytes(n))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Arrived::Nothing),
            Err(e) => Err(e),
        }
    }

    fn read_shared(&mut self, stream: &TcpStream, shared: &mut BytesMut) -> io::Result<usize> {
        shared.clear();
        if shared.capacity() < SHARED_BUFFER / 2 {
            shared.reserve(SHARED_BUFFER);
        }
        let n = stream.try_read_buf(shared)?;
        self.bytes = shared.split();
        Ok(n)
    }

    fn read_own(&mut self, stream: &TcpStream) -> io::Result<usize> {
        if self.bytes.capacity() == self.bytes.len() {
            self.bytes.reserve(self.bytes.len().max(FIRST_BUFFER));
        }
        stream.try_read_buf(&mut self.bytes)
    }

    /// The next whole frame, without its size prefix. The caller gives its bytes and the prefix's four back to the admission.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, BadFrame> {
        let Some(size) = frame::size(&self.bytes, self.max_frame)? else { return Ok(None) };
        if self.bytes.len() < 4 + size {
            return Ok(None);
        }
        let mut frame = self.bytes.split_to(4 + size);
        self.largest = self.largest.max(size);
        let _ = frame.split_to(4);
        Ok(Some(frame.freeze()))
    }

    /// Moves an incomplete frame out of the shared buffer. To be called when `next_frame` has no more.
    pub fn settle(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
            return;
        }
        let announced = match frame::size(&self.bytes, self.max_frame) {
            Ok(Some(size)) => 4 + size,
            _ => 4,
        };
        let trusted = announced.min(4 + self.largest);
        let room = announced.min((self.bytes.len() * 2).max(FIRST_BUFFER)).max(trusted);
        if self.bytes.capacity() < room || self.shares_buffer(room) {
            let mut own = BytesMut::with_capacity(room);
            own.extend_from_slice(&self.bytes);
            self.bytes = own;
        }
    }

    /// A small beginning must not keep the whole shared buffer alive.
    fn shares_buffer(&self, room: usize) -> bool {
        self.bytes.capacity() > room.max(FIRST_BUFFER) * 2
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.admission.give(self.bytes.len());
    }
}
