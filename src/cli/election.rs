//! `election history`: asks a running node for its election book (`/api/elections`) and prints the JSON that it answers.

use crate::core::controller::{Refusal, check_name};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a node may take to be reached, and between two pieces of its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than a full book takes.
const MAX_ANSWER: u64 = 64 << 20;

/// The book cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// `http.listen` is empty.
    #[error("this configuration has no http.listen: name the node's address with --override http.listen=HOST:PORT")]
    NoAddress,
    /// No topic can have that name.
    #[error("--topic: {0}")]
    Topic(#[from] Refusal),
    /// Nobody answers there.
    #[error("{address} does not answer: {source} (--override http.listen=HOST:PORT names another node)")]
    Unreachable {
        /// The address that was asked.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody answers, but not with a book.
    #[error("{address} answers something else than an election book: {answer}")]
    NoBook {
        /// The address that was asked.
        address: String,
        /// The first line of the answer.
        answer: String,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
}

/// Prints the latest elections that the node at `address` decided, at most `limit`, of one topic if it is named.
pub fn history(address: Option<(String, u16)>, limit: usize, topic: Option<&str>, out: &mut dyn Write) -> Result<(), ElectionError> {
    let (host, port) = address.ok_or(ElectionError::NoAddress)?;
    // What a topic may be called needs no escapes in a path.
    topic.map_or(Ok(()), check_name)?;
    let topic = topic.map(|topic| format!("&topic={topic}")).unwrap_or_default();
    let address = format!("{host}:{port}");
    let answer = get(&host, port, &format!("/api/elections?limit={limit}{topic}"))
        .map_err(|source| ElectionError::Unreachable { address: address.clone(), source })?;
    let book = answer.split_once("\r\n\r\n").filter(|(head, _)| head.split(' ').nth(1) == Some("200"));
    let Some((_, book)) = book else {
        let first = answer.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
        return Err(ElectionError::NoBook { address, answer: first });
    };
    writeln!(out, "{book}")?;
    Ok(())
}

fn get(host: &str, port: u16, path: &str) -> io::Result<String> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
                let mut answer = Vec::new();
                stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
                return Ok(String::from_utf8_lossy(&answer).into_owned());
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A node that answers one question with that, and what it was asked.
    fn answering(answer: &'static str, topic: Option<&str>) -> (Result<String, ElectionError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let node = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1000];
            let n = stream.read(&mut asked).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&asked[..n]).into_owned()
        });
        let mut out = Vec::new();
        let result = history(Some(("127.0.0.1".into(), port)), 7, topic, &mut out);
        let asked = node.join().unwrap().lines().next().unwrap().to_owned();
        (result.map(|()| String::from_utf8(out).unwrap()), asked)
    }

    #[test]
    fn the_book_is_printed_as_it_comes() {
        let (printed, asked) = answering("HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"elections\":[]}", Some("a.b"));
        assert_eq!(printed.unwrap(), "{\"elections\":[]}\n");
        assert_eq!(asked, "GET /api/elections?limit=7&topic=a.b HTTP/1.1");
    }

    #[test]
    fn what_is_no_book_says_so() {
        let (printed, _) = answering("HTTP/1.1 404 Not Found\r\n\r\n", None);
        assert!(printed.unwrap_err().to_string().ends_with("something else than an election book: HTTP/1.1 404 Not Found"));
        let none = history(None, 1, None, &mut Vec::new()).unwrap_err().to_string();
        assert!(none.contains("http.listen=HOST:PORT"), "{none}");
        assert!(matches!(history(Some(("x".into(), 1)), 1, Some("a b"), &mut Vec::new()), Err(ElectionError::Topic(_))));
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nobody = history(Some(("127.0.0.1".into(), free)), 1, None, &mut Vec::new());
        assert!(matches!(nobody, Err(ElectionError::Unreachable { .. })), "{nobody:?}");
    }
}
