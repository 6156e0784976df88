//! What comes before a request's body: which request it is, and who asks. Not the body, and not which versions this broker serves.

use std::borrow::Cow;

use thiserror::Error;

use super::guard;

/// Tagged fields that a header may carry. Kafka has none so far.
pub const MAX_TAGS: u32 = 1024;

/// The key of ApiVersions, whose answer never has tagged fields in its header and which is answered in every version.
pub const API_VERSIONS: i16 = 18;

/// A request header (versions 1 and 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// Which kind of request.
    pub key: i16,
    /// In which version: as asked, whether or not it is known.
    pub version: i16,
    /// Number that the answer must repeat.
    pub correlation_id: i32,
    /// Name that the client gives itself; empty if it gives none. Bad UTF-8 is replaced. Not to be trusted in labels, paths or logs.
    pub client_id: Cow<'a, str>,
}

/// Why the header is refused. The connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadHeader {
    /// The frame ends within the header.
    #[error("the request ends within its header")]
    CutShort,
    /// No request has that key.
    #[error("no request has key {0}")]
    UnknownKey(i16),
    /// The client id's length is neither -1 nor that of a text within the frame.
    #[error("the client id has a length of {0}")]
    ClientId(i16),
    /// The header's tagged fields do not fit in the frame, or are too many.
    #[error("the header's tagged fields are malformed")]
    Tags,
}

/// Whether requests of that kind and version have compact lengths and tagged fields, also in their header. False for unknown keys.
pub fn flexible(key: i16, version: i16) -> bool {
    guard::api(key).is_some_and(|api| api.flexible(version))
}

/// The version of the header of the answer to such a request: 0 is the correlation id alone, 1 adds tagged fields.
pub fn response_header_version(key: i16, version: i16) -> i16 {
    i16::from(key != API_VERSIONS && flexible(key, version))
}

/// Reads the header at the start of a frame (the length prefix taken off); also returns the body, which is unchecked.
pub fn parse(frame: &[u8]) -> Result<(RequestHeader<'_>, &[u8]), BadHeader> {
    let (key, rest) = i16_at(frame)?;
    let (version, rest) = i16_at(rest)?;
    let (correlation_id, rest) = rest.split_first_chunk().ok_or(BadHeader::CutShort)?;
    let known = guard::api(key).ok_or(BadHeader::UnknownKey(key))?;
    let (length, rest) = i16_at(rest)?;
    let (client_id, mut rest) = match usize::try_from(length) {
        Ok(length) => rest.split_at_checked(length).ok_or(BadHeader::ClientId(length as i16))?,
        Err(_) if length == -1 => (&[][..], rest),
        Err(_) => return Err(BadHeader::ClientId(length)),
    };
    if known.flexible(version) {
        rest = skip_tags(rest).ok_or(BadHeader::Tags)?;
    }
    let correlation_id = i32::from_be_bytes(*correlation_id);
    Ok((RequestHeader { key, version, correlation_id, client_id: String::from_utf8_lossy(client_id) }, rest))
}

fn i16_at(bytes: &[u8]) -> Result<(i16, &[u8]), BadHeader> {
    let (value, rest) = bytes.split_first_chunk().ok_or(BadHeader::CutShort)?;
    Ok((i16::from_be_bytes(*value), rest))
}

fn skip_tags(bytes: &[u8]) -> Option<&[u8]> {
    let (count, mut rest) = uvarint(bytes)?;
    if count > MAX_TAGS {
        return None;
    }
    for _ in 0..count {
        let (_number, after) = uvarint(rest)?;
        let (size, after) = uvarint(after)?;
        rest = after.get(size as usize..)?;
    }
    Some(rest)
}

fn uvarint(mut bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return (shift < 28 || *byte <= 0x0f).then_some((value, bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a client id with its length, and those after it.
    type Parts<'a> = (&'a [u8], &'a [u8]);

    fn head(key: i16, version: i16, client_id: &[u8], rest: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(key.to_be_bytes());
        out.extend(version.to_be_bytes());
        out.extend(77i32.to_be_bytes());
        out.extend(client_id);
        out.extend(rest);
        out
    }

    #[test]
    fn headers_of_both_versions() {
        let table: [(i16, i16, Parts, &str, &[u8]); 8] = [
            (3, 1, (b"\0\x02me", b"body"), "me", b"body"),
            (3, 1, (b"\xff\xff", b"body"), "", b"body"),
            (3, 12, (b"\0\x02me", b"\0body"), "me", b"body"),
            (3, 12, (b"\0\0", b"\x02\x05\x01!\x07\0body"), "", b"body"),
            (18, 99, (b"\0\x06future", b"\0\xff\xff"), "future", b"\xff\xff"),
            (18, 2, (b"\0\x01x", b""), "x", b""),
            (18, -1, (b"\0\x01x", b"y"), "x", b"y"),
            (47, 0, (b"\0\x03a\xffb", b""), "a\u{fffd}b", b""),
        ];
        for (key, version, (client_id, rest), name, body) in table {
            let frame = head(key, version, client_id, rest);
            let want = RequestHeader { key, version, correlation_id: 77, client_id: name.into() };
            assert_eq!(parse(&frame), Ok((want, body)), "key {key} v{version}");
        }
    }

    #[test]
    fn a_sound_client_id_is_borrowed() {
        let frame = head(3, 1, b"\0\x02me", b"");
        assert!(matches!(parse(&frame).unwrap().0.client_id, Cow::Borrowed("me")));
    }

    #[test]
    fn bad_headers() {
        let many = [&b"\x81\x08"[..], &[1u8, 0].repeat(1025)].concat();
        let table: [(i16, i16, Parts, BadHeader); 10] = [
            (4, 7, (b"\0\0", b""), BadHeader::UnknownKey(4)),
            (-1, 0, (b"\0\0", b""), BadHeader::UnknownKey(-1)),
            (999, 0, (b"\0\0", b""), BadHeader::UnknownKey(999)),
            (3, 1, (b"\xff\xfe", b"xy"), BadHeader::ClientId(-2)),
            (3, 1, (b"\x80\0", b"xy"), BadHeader::ClientId(i16::MIN)),
            (3, 1, (b"\x7f\xff", b"xy"), BadHeader::ClientId(i16::MAX)),
            (3, 12, (b"\0\0", b"\xff\xff\xff\xff\x0f"), BadHeader::Tags),
            (3, 12, (b"\0\0", b"\x01\x05\x02!"), BadHeader::Tags),
            (3, 12, (b"\0\0", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), BadHeader::Tags),
            (3, 12, (b"\0\0", &many), BadHeader::Tags),
        ];
        for (key, version, (client_id, rest), want) in table {
            assert_eq!(parse(&head(key, version, client_id, rest)), Err(want), "key {key} v{version}");
        }
        let whole = head(3, 12, b"\0\x02me", b"\x01\x05\x01!");
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_err(), "{cut} bytes");
        }
        assert!(parse(&whole).is_ok());
    }

    #[test]
    fn response_headers() {
        let table = [(18, 0, 0), (18, 4, 0), (3, 8, 0), (3, 9, 1), (0, 13, 1), (17, 1, 0), (999, 0, 0)];
        for (key, version, want) in table {
            assert_eq!(response_header_version(key, version), want, "key {key} v{version}");
        }
    }
}
