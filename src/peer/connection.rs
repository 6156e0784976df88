//! One connection at a time to one peer: connect, learn its versions, then requests and answers until it breaks.

use super::{NoAnswer, Question, Settings};
use crate::rt::clock::moment;
use crate::wire::{guard, header};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::protocol::Decodable;
use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout, timeout_at};

/// The version of ApiVersions that is asked: the first with compact fields, which every peer of a quorum speaks.
const API_VERSIONS_VERSION: i16 = 3;

/// How long to wait for bytes when no answer is missing.
const LONG: Duration = Duration::from_secs(3600);

/// Bytes read at a time at least.
const READ: usize = 16 * 1024;

/// A request whose answer is missing.
struct Waiting {
    correlation: i32,
    key: i16,
    version: i16,
    answer: Box<dyn FnOnce(Result<(i16, Bytes), NoAnswer>)>,
    deadline: Instant,
}

/// Serves questions until nobody asks any more.
pub(super) async fn run(settings: Settings, mut asked: Receiver<Question>, closed: impl Fn()) {
    while let Some(first) = asked.recv().await {
        let mut connection = match connect(&settings).await {
            Ok(connection) => connection,
            Err(e) => {
                // Whoever asked meanwhile is not to wait for another attempt.
                let refuse = |question: Question| (question.answer)(Err(NoAnswer::Disconnected(e.to_string())));
                refuse(first);
                while let Ok(question) = asked.try_recv() {
                    refuse(question);
                }
                continue;
            }
        };
        let ended = connection.serve(first, &mut asked).await;
        let why = ended.map_or_else(|e| e.to_string(), |()| "closed".to_owned());
        for waiting in connection.waiting.drain(..) {
            (waiting.answer)(Err(NoAnswer::Disconnected(why.clone())));
        }
        closed();
    }
}

struct Connection<'a> {
    settings: &'a Settings,
    stream: TcpStream,
    /// Versions that the peer speaks, by key.
    versions: Vec<(i16, RangeInclusive<i16>)>,
    waiting: VecDeque<Waiting>,
    read: BytesMut,
    correlation: i32,
}

fn invalid(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

async fn connect(settings: &Settings) -> io::Result<Connection<'_>> {
    let connecting = async {
        let stream = TcpStream::connect(&settings.address).await?;
        stream.set_nodelay(true)?;
        let mut connection =
            Connection { settings, stream, versions: Vec::new(), waiting: VecDeque::new(), read: BytesMut::new(), correlation: 0 };
        connection.learn_versions().await?;
        Ok(connection)
    };
    timeout(settings.connect, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl Connection<'_> {
    async fn learn_versions(&mut self) -> io::Result<()> {
        let mut body = BytesMut::new();
        for word in ["understudy", env!("CARGO_PKG_VERSION")] {
            body.put_u8(word.len() as u8 + 1);
            body.put_slice(word.as_bytes());
        }
        body.put_u8(0);
        self.write(header::API_VERSIONS, API_VERSIONS_VERSION, &body).await?;
        let answer = loop {
            match self.next_frame()? {
                Some(frame) => break frame,
                None => self.fill().await?,
            }
        };
        let body = answer.get(4..).map(|_| answer.slice(4..)).ok_or_else(|| invalid("an answer without a header"))?;
        guard::check_answer(header::API_VERSIONS, API_VERSIONS_VERSION, &body).map_err(invalid)?;
        self.versions = versions(body)?;
        Ok(())
    }

    async fn serve(&mut self, first: Question, asked: &mut Receiver<Question>) -> io::Result<()> {
        self.ask(first).await?;
        loop {
            while let Some(frame) = self.next_frame()? {
                self.answer(frame)?;
            }
            let deadline = self.waiting.front().map_or_else(|| moment().deadline(LONG), |waiting| waiting.deadline);
            tokio::select! {
                question = asked.recv() => match question {
                    Some(question) => self.ask(question).await?,
                    None => return Ok(()),
                },
                filled = timeout_at(deadline, fill(&mut self.stream, &mut self.read)) => match filled {
                    Ok(filled) => filled?,
                    Err(_) if self.waiting.is_empty() => {}
                    Err(_) => return Err(io::ErrorKind::TimedOut.into()),
                },
            }
        }
    }

    async fn ask(&mut self, question: Question) -> io::Result<()> {
        let Question { key, versions, body, answer } = question;
        let theirs = self.versions.iter().find(|(known, _)| *known == key).map(|(_, range)| range);
        let common = theirs.map(|theirs| (*versions.start().max(theirs.start()), *versions.end().min(theirs.end())));
        let Some((_, version)) = common.filter(|(low, high)| low <= high) else {
            answer(Err(NoAnswer::Unsupported));
            return Ok(());
        };
        let body = match body(version) {
            Ok(body) => body,
            Err(e) => {
                answer(Err(NoAnswer::Malformed(e)));
                return Ok(());
            }
        };
        let deadline = moment().deadline(self.settings.patience);
        let correlation = self.correlation;
        self.waiting.push_back(Waiting { correlation, key, version, answer, deadline });
        timeout_at(deadline, self.write(key, version, &body)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn write(&mut self, key: i16, version: i16, body: &[u8]) -> io::Result<()> {
        let client = self.settings.client_id.as_bytes();
        let mut out = BytesMut::with_capacity(body.len() + client.len() + 16);
        out.put_u32(0);
        out.put_i16(key);
        out.put_i16(version);
        out.put_i32(self.correlation);
        out.put_i16(client.len() as i16);
        out.put_slice(client);
        if header::flexible(key, version) {
            out.put_u8(0);
        }
        out.put_slice(body);
        let size = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&size.to_be_bytes());
        self.correlation = self.correlation.wrapping_add(1);
        self.stream.write_all(&out).await
    }

    async fn fill(&mut self) -> io::Result<()> {
        fill(&mut self.stream, &mut self.read).await
    }

    /// The next whole answer, without its size.
    fn next_frame(&mut self) -> io::Result<Option<Bytes>> {
        let Some(prefix) = self.read.first_chunk::<4>() else { return Ok(None) };
        let size = i32::from_be_bytes(*prefix);
        let size = usize::try_from(size).ok().filter(|size| (4..=self.settings.max_frame).contains(size));
        let size = size.ok_or_else(|| invalid("an answer of an impossible size"))?;
        if self.read.len() < 4 + size {
            return Ok(None);
        }
        self.read.advance(4);
        Ok(Some(self.read.split_to(size).freeze()))
    }

    fn answer(&mut self, mut frame: Bytes) -> io::Result<()> {
        let correlation = frame.get_i32();
        let waiting = self.waiting.pop_front().filter(|waiting| waiting.correlation == correlation);
        let Some(waiting) = waiting else { return Err(invalid("an answer to nothing that was asked")) };
        if header::response_header_version(waiting.key, waiting.version) == 1 && (!frame.has_remaining() || frame.get_u8() != 0) {
            (waiting.answer)(Err(NoAnswer::Malformed("tagged fields in a header".into())));
            return Err(invalid("tagged fields in a header"));
        }
        (waiting.answer)(Ok((waiting.version, frame)));
        Ok(())
    }
}

async fn fill(stream: &mut TcpStream, into: &mut BytesMut) -> io::Result<()> {
    into.reserve(READ);
    if stream.read_buf(into).await? == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

fn versions(mut body: Bytes) -> io::Result<Vec<(i16, RangeInclusive<i16>)>> {
    let answer = ApiVersionsResponse::decode(&mut body, API_VERSIONS_VERSION).map_err(invalid)?;
    if answer.error_code != 0 {
        return Err(invalid("the peer does not say which versions it speaks"));
    }
    Ok(answer.api_keys.iter().map(|api| (api.api_key, api.min_version..=api.max_version)).collect())
}
