//! A raw client: one connection, frames in and out, messages of the `kafka-protocol` crate. It does nothing on its own: no retries, no
//! ApiVersions, no metadata.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use crate::patience::SOON;

/// Larger answers are a fault of the broker.
const MAX_ANSWER_BYTES: usize = 128 << 20;

/// A connection to a broker.
pub struct Conn {
    stream: TcpStream,
    next_correlation: i32,
}

impl Conn {
    /// Connects; every read and write after that gives up after `SOON`.
    pub fn open(address: &str) -> Conn {
        Conn::try_open(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
    }

    /// As `open`, for a test that expects to be refused.
    ///
    /// # Errors
    /// As `connect`.
    pub fn try_open(address: &str) -> std::io::Result<Conn> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SOON))?;
        stream.set_write_timeout(Some(SOON))?;
        Ok(Conn { stream, next_correlation: 1 })
    }

    /// A request as a frame without its length.
    pub fn frame<R: Request>(correlation: i32, version: i16, request: &R) -> Bytes {
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(correlation)
            .with_client_id(Some(StrBytes::from_static_str("test")));
        let mut frame = BytesMut::new();
        header.encode(&mut frame, R::header_version(version)).expect("a header");
        request.encode(&mut frame, version).unwrap_or_else(|error| panic!("the test's request, key {} v{version}: {error}", R::KEY));
        frame.freeze()
    }

    /// An answer's body, after checking its header and that nothing is left over.
    pub fn answer<R: Request>(correlation: i32, version: i16, mut frame: Bytes) -> R::Response {
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(version)).expect("a response header");
        assert_eq!(header.correlation_id, correlation, "answers come in the order of the requests");
        let answer =
            R::Response::decode(&mut frame, version).unwrap_or_else(|error| panic!("the answer to key {} v{version}: {error}", R::KEY));
        assert_eq!(frame.remaining(), 0, "bytes after the answer to key {} v{version}", R::KEY);
        answer
    }

    /// Asks and waits for the answer.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let correlation = self.post(version, request);
        self.take::<R>(version, correlation)
    }

    /// Asks without waiting; returns the correlation id for `take`.
    pub fn post<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let correlation = self.next_correlation;
        self.next_correlation += 1;
        self.write_frame(&Conn::frame(correlation, version, request));
        correlation
    }

    /// The next answer.
    pub fn take<R: Request>(&mut self, version: i16, correlation: i32) -> R::Response {
        let frame = self.read_frame().unwrap_or_else(|| panic!("closed instead of answering key {} v{version}", R::KEY));
        Conn::answer::<R>(correlation, version, frame)
    }

    /// Writes a frame, length first.
    pub fn write_frame(&mut self, frame: &[u8]) {
        let mut bytes = BytesMut::with_capacity(4 + frame.len());
        bytes.put_i32(frame.len() as i32);
        bytes.extend_from_slice(frame);
        self.write_raw(&bytes);
    }

    /// Writes bytes as they are.
    pub fn write_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the broker takes our bytes");
    }

    /// As `write_raw`, for a broker that may have closed.
    ///
    /// # Errors
    /// As `write`.
    pub fn try_write_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next frame without its length; nothing if the broker closed.
    ///
    /// # Panics
    /// If it stays silent, or closes in the middle of a frame.
    pub fn read_frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => return None,
            Err(error) => panic!("no answer within {SOON:?}: {error}"),
        }
        let length = u32::from_be_bytes(length) as usize;
        assert!(length <= MAX_ANSWER_BYTES, "an answer of {length} bytes");
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).expect("the rest of the answer");
        Some(frame.into())
    }

    /// Says that nothing more will be written, as a client that shuts down half of the connection does.
    pub fn finish_writing(&mut self) {
        self.stream.shutdown(std::net::Shutdown::Write).expect("an open connection");
    }

    /// Waits for the broker to close; fails if it answers or keeps the connection.
    pub fn expect_close(&mut self, why: &str) {
        let answer = self.read_frame();
        assert!(answer.is_none(), "{why}: answered {answer:?} instead of closing");
    }
}
