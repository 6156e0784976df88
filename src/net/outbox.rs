//! The sending half of a connection: answers out, with ranges of log files spliced in by sendfile.

use crate::api::response::{Response, Splice};
use bytes::BytesMut;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io;
use std::os::fd::AsFd;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// One sendfile call takes at most so much, so that a long answer leaves room for the other connections of the shard.
const SPLICE_CHUNK: usize = 1 << 20;

/// Answers that are ready to go out, in order.
#[derive(Default)]
pub struct Outbox {
    bytes: BytesMut,
    splices: Vec<Splice>,
}

impl Outbox {
    /// Adds an answer behind the others. The first one is taken over without a copy.
    pub fn push(&mut self, response: Response) {
        if self.bytes.is_empty() && self.splices.is_empty() {
            self.bytes = response.bytes;
            self.splices = response.splices;
            return;
        }
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&response.bytes);
        self.splices.extend(response.splices.into_iter().map(|splice| Splice { at: splice.at + before, ..splice }));
    }

    /// Sends everything; `progress` is called whenever the peer took something.
    pub async fn flush(&mut self, stream: &TcpStream, mut progress: impl FnMut()) -> io::Result<()> {
        let (bytes, splices) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.splices));
        let mut sent = 0;
        for splice in &splices {
            write(stream, &bytes[sent..splice.at], true, &mut progress).await?;
            sent = splice.at;
            splice_file(stream, splice, &mut progress).await?;
        }
        write(stream, &bytes[sent..], false, &mut progress).await
    }
}

/// Sends all of `bytes`; `more` lets the kernel join them with what follows.
async fn write(stream: &TcpStream, mut bytes: &[u8], more: bool, progress: &mut impl FnMut()) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | if more { SendFlags::MORE } else { SendFlags::empty() };
    while !bytes.is_empty() {
        match stream.try_io(Interest::WRITABLE, || Ok(send(stream.as_fd(), bytes, flags)?)) {
            Ok(n) => {
                bytes = &bytes[n..];
                progress();
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Sends a range of a file from the page cache, without copying it through this process.
async fn splice_file(stream: &TcpStream, splice: &Splice, progress: &mut impl FnMut()) -> io::Result<()> {
    let (mut at, end) = (splice.position, splice.position + u64::from(splice.len));
    while at < end {
        let chunk = ((end - at) as usize).min(SPLICE_CHUNK);
        let sent = stream.try_io(Interest::WRITABLE, || {
            let mut offset = at;
            match rustix::fs::sendfile(stream.as_fd(), splice.file.as_fd(), Some(&mut offset), chunk) {
                Ok(n) => Ok(n),
                Err(Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
                Err(e) => Err(e.into()),
            }
        });
        match sent {
            // The length is already promised: a file that ends early (a truncated log) leaves no way to finish this answer.
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the log file ended before the range that was promised")),
            Ok(n) => {
                at += n as u64;
                progress();
                if at < end {
                    tokio::task::consume_budget().await;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
