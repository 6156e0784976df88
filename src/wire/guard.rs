//! Walks a body, a request's or an answer's, before the message crate decodes it. It keeps nothing and allocates nothing.
//!
//! The crate reserves memory for as many elements as an array claims, and a process that asks for too much is aborted; so no byte of a
//! body reaches it unwalked. A body that passes decodes without panic, and what it decodes to is bounded by [`max_elements`].
//!
//! Where Kafka and the crate differ, this is what holds: bytes after the body are let through, as Kafka does; text that is not UTF-8 is
//! refused (Kafka replaces the bad characters, the crate refuses); lengths below -1 are refused (Kafka takes them for null).

pub mod sample;
mod schema;
#[rustfmt::skip]
mod table;
mod walk;

use thiserror::Error;

pub use schema::{Api, api, apis};

/// Why a body is refused, and where. The connection that sent it is closed, as Kafka does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {at} of the body: {fault}")]
pub struct Malformed {
    /// Offset in the body.
    pub at: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What can be wrong with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// No layout is known for the key or the version.
    #[error("no request has key {key} and version {version}")]
    UnknownRequest {
        /// As received.
        key: i16,
        /// As received.
        version: i16,
    },
    /// A value of fixed size lies beyond the end.
    #[error("{need} bytes are needed, {left} remain")]
    CutShort {
        /// Size of the value.
        need: usize,
        /// Bytes to the end.
        left: usize,
    },
    /// An array claims more than the rest of the body can hold.
    #[error("an array claims {claimed} elements, {left} bytes remain")]
    Count {
        /// As claimed.
        claimed: i64,
        /// Bytes to the end.
        left: usize,
    },
    /// A text or byte string is longer than the rest of the body, or than its kind may be.
    #[error("a length of {claimed}, {left} bytes remain")]
    Length {
        /// As claimed.
        claimed: i64,
        /// Bytes to the end.
        left: usize,
    },
    /// Null where the schema wants a value.
    #[error("a null that the schema forbids")]
    Null,
    /// A struct that may be null starts with neither 1 nor -1.
    #[error("a struct is marked {0}, neither present (1) nor null (-1)")]
    Presence(i8),
    /// A variable-length number of more than 32 bits.
    #[error("a variable-length number has more than 32 bits")]
    Varint,
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// A tagged field's content is longer or shorter than its size says.
    #[error("tagged field {tag} says it has {size} bytes, its content has {used}")]
    TagSize {
        /// Its number.
        tag: u32,
        /// As claimed.
        size: usize,
        /// As walked.
        used: usize,
    },
    /// A tagged field that exists, but not in this version.
    #[error("tagged field {0} does not exist in this version")]
    TagVersion(u32),
    /// More elements than a body of this size is allowed.
    #[error("more than {0} elements in all")]
    TooMany(usize),
}

/// Elements that any body may have: structs, texts and byte strings in arrays, and unknown tagged fields. Numbers in arrays do not count.
pub const FREE_ELEMENTS: usize = 16_384;

/// A body may have one more element for every so many bytes. Decoded, an element takes up to some 400 bytes, however short it came.
pub const BYTES_PER_ELEMENT: usize = 16;

/// No body may have more elements than this.
pub const MAX_ELEMENTS: usize = 1_000_000;

/// How many elements a body of that many bytes may have.
pub const fn max_elements(body: usize) -> usize {
    let allowed = FREE_ELEMENTS + body / BYTES_PER_ELEMENT;
    if allowed < MAX_ELEMENTS { allowed } else { MAX_ELEMENTS }
}

/// Checks that `body` is a request of that key and version, so that decoding it is safe. Costs some 100 ns for a small request; the
/// contents of byte strings and records are skipped, not read.
pub fn check(key: i16, version: i16, body: &[u8]) -> Result<(), Malformed> {
    let known = api(key).filter(|api| api.first <= version && version <= api.last);
    let Some(api) = known else {
        return Err(Malformed { at: 0, fault: Fault::UnknownRequest { key, version } });
    };
    walk::request(api, version, body)
}

/// The same for the body of an answer to a request of that key and version, of the few that this broker asks others.
pub fn check_answer(key: i16, version: i16, body: &[u8]) -> Result<(), Malformed> {
    let known = schema::answer(key).filter(|api| api.first <= version && version <= api.last);
    let Some(api) = known else {
        return Err(Malformed { at: 0, fault: Fault::UnknownRequest { key, version } });
    };
    walk::request(api, version, body)
}

#[cfg(test)]
mod tests;
