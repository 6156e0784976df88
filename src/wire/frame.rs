//! The four bytes before each request: how long it is, and whether it can be a request at all. Not the reading of sockets.

use thiserror::Error;

/// Bytes of the length prefix.
pub const PREFIX: usize = 4;

/// A request holds at least its key, its version and its correlation id.
pub const MIN_SIZE: usize = 8;

/// Why a connection is closed before its first request was read. `Tls` and `Http` are told apart so that an operator can see what knocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadFrame {
    /// A TLS client on a plaintext listener.
    #[error("the peer speaks TLS, and this listener is plaintext: check the peer's security.protocol")]
    Tls,
    /// An HTTP client on a Kafka listener.
    #[error("the peer speaks HTTP, and this listener speaks Kafka's protocol")]
    Http,
    /// The length is negative.
    #[error("the peer announced a request of {0} bytes")]
    Negative(i32),
    /// The length has no room for a header.
    #[error("the peer announced a request of {0} bytes; the least is {MIN_SIZE}")]
    TooSmall(usize),
    /// The length is above the limit.
    #[error("the peer announced a request of {size} bytes; socket.request.max.bytes allows {max}")]
    TooLarge {
        /// As announced.
        size: usize,
        /// As configured.
        max: usize,
    },
}

/// The size in bytes of the request that starts with `seen`, the prefix not counted; `None` until the whole prefix is there.
///
/// `max` is `socket.request.max.bytes`. A size above it that is really the first bytes of a TLS hello or an HTTP request is named so;
/// a size within the limit never is, whatever its bytes.
pub fn size(seen: &[u8], max: usize) -> Result<Option<usize>, BadFrame> {
    let Some(prefix) = seen.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let announced = i32::from_be_bytes(*prefix);
    let Ok(size) = usize::try_from(announced) else {
        return Err(BadFrame::Negative(announced));
    };
    if size < MIN_SIZE {
        return Err(BadFrame::TooSmall(size));
    }
    if size > max {
        return Err(match prefix {
            [0x16, 0x03, ..] => BadFrame::Tls,
            b"GET " | b"HEAD" | b"POST" | b"PUT " | b"DELE" | b"CONN" | b"OPTI" | b"TRAC" | b"PATC" | b"PRI " => BadFrame::Http,
            _ => BadFrame::TooLarge { size, max },
        });
    }
    Ok(Some(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 100 << 20;

    #[test]
    fn lengths() {
        let table = [
            (8, Ok(Some(8))),
            (100 << 20, Ok(Some(MAX))),
            ((100 << 20) + 1, Err(BadFrame::TooLarge { size: MAX + 1, max: MAX })),
            (i32::MAX, Err(BadFrame::TooLarge { size: i32::MAX as usize, max: MAX })),
            (7, Err(BadFrame::TooSmall(7))),
            (0, Err(BadFrame::TooSmall(0))),
            (-1, Err(BadFrame::Negative(-1))),
            (i32::MIN, Err(BadFrame::Negative(i32::MIN))),
        ];
        for (announced, want) in table {
            assert_eq!(size(&announced.to_be_bytes(), MAX), want, "{announced}");
        }
    }

    #[test]
    fn nothing_is_said_before_the_prefix_is_whole_and_more_bytes_change_nothing() {
        for cut in 0..PREFIX {
            assert_eq!(size(&[0xff; PREFIX][..cut], MAX), Ok(None));
        }
        assert_eq!(size(&[0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], MAX), Ok(Some(9)));
    }

    #[test]
    fn other_protocols_are_named() {
        assert_eq!(size(b"\x16\x03\x01\x02\x00\x01", MAX), Err(BadFrame::Tls));
        for verb in [
            "GET / HTTP/1.1",
            "POST /x",
            "PUT /x",
            "HEAD /",
            "OPTIONS *",
            "DELETE /",
            "PATCH /",
            "CONNECT a:1",
            "TRACE /",
            "PRI * HTTP/2.0",
        ] {
            assert_eq!(size(verb.as_bytes(), MAX), Err(BadFrame::Http), "{verb}");
        }
        assert_eq!(size(b"GETX", MAX), Err(BadFrame::TooLarge { size: 0x47455458, max: MAX }));
    }

    #[test]
    fn a_length_within_a_larger_limit_is_a_length() {
        assert_eq!(size(b"\x16\x03\x01\x00", 0x1700_0000), Ok(Some(0x1603_0100)));
    }
}
