//! The vocabulary that every layer shares: offsets, epochs, ids. Numbers that mean different things have different types.

use std::fmt;

/// Position of a record in a partition: the first record has offset 0. Also used for "one past" positions (log end, high watermark).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub i64);

impl Offset {
    /// Kafka's "no offset" on the wire.
    pub const NONE: Offset = Offset(-1);
}

impl std::ops::Add<i64> for Offset {
    type Output = Offset;
    fn add(self, n: i64) -> Offset {
        Offset(self.0 + n)
    }
}

impl std::ops::Sub<Offset> for Offset {
    type Output = i64;
    fn sub(self, other: Offset) -> i64 {
        self.0 - other.0
    }
}

/// Leader epoch of a partition, or epoch of the metadata quorum. -1 on the wire means "do not check" or "unknown".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub i32);

impl Epoch {
    /// Unknown, or not to be checked.
    pub const NONE: Epoch = Epoch(-1);
}

/// Node id of a broker or controller (`node.id`); -1 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

impl BrokerId {
    /// No broker: the leader of a leaderless partition.
    pub const NONE: BrokerId = BrokerId(-1);
}

/// Milliseconds since the Unix epoch: record timestamps, and the `now` that the core is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);

impl Millis {
    /// Milliseconds from `earlier` to `self`; negative if the clock went back.
    pub fn since(self, earlier: Millis) -> i64 {
        self.0 - earlier.0
    }
}

/// 128-bit identity: a topic, a log directory, a process incarnation. Zero means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id(pub u128);

/// Identity of a topic; survives nothing: a topic made again under the same name has another id.
pub type TopicId = Id;
/// Identity of a log directory (`directory.id` in `meta.properties`).
pub type DirectoryId = Id;

impl Id {
    /// No identity.
    pub const ZERO: Id = Id(0);
    /// The topic id of `__cluster_metadata`, and the reserved directory id UNASSIGNED.
    pub const ONE: Id = Id(1);
    /// Whether this is the zero id.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for Id {
    /// 22 characters of URL-safe base64, as Kafka prints its ids.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for i in 0..22 {
            let shift = 122 - 6 * i;
            let bits = if shift >= 0 { self.0 >> shift } else { self.0 << -shift };
            write!(f, "{}", BASE64[(bits & 63) as usize] as char)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Id {
    type Err = BadId;
    /// Reads what `Display` writes; also accepts a trailing `==`.
    fn from_str(text: &str) -> Result<Id, BadId> {
        let text = text.trim_end_matches('=');
        if text.len() != 22 {
            return Err(BadId);
        }
        let mut value: u128 = 0;
        for (i, c) in text.bytes().enumerate() {
            let bits = BASE64.iter().position(|b| *b == c).ok_or(BadId)? as u128;
            let shift = 122 - 6 * i as i32;
            if shift >= 0 {
                value |= bits << shift;
            } else if bits & ((1 << -shift) - 1) != 0 {
                return Err(BadId);
            } else {
                value |= bits >> -shift;
            }
        }
        Ok(Id(value))
    }
}

/// The text is not 22 characters of URL-safe base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadId;

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is 22 characters of URL-safe base64")
    }
}

impl std::error::Error for BadId {}

/// One partition of one topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicId,
    /// Index of the partition, from 0.
    pub partition: i32,
}

/// How many replicas must have a batch before its producer is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// 0: no answer at all.
    None,
    /// 1: the leader's log.
    Leader,
    /// -1: every in-sync replica.
    All,
}

/// Which records a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Up to the high watermark.
    ReadUncommitted,
    /// Up to the last stable offset.
    ReadCommitted,
}

/// Who reads, which decides how far: a consumer to the high watermark (or last stable offset), a follower to the log end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A client.
    Consumer(Isolation),
    /// A replica of the partition on that broker.
    Follower(BrokerId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_print() {
        for id in [Id(0), Id(1), Id(u128::MAX), Id(0x0123_4567_89ab_cdef_0011_2233_4455_6677)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(Id(1).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!("MkU3OEVBNTcwNTJENDM2Qg".parse::<Id>().map(|id| id.to_string()), Ok("MkU3OEVBNTcwNTJENDM2Qg".into()));
        assert_eq!("short".parse::<Id>(), Err(BadId));
        assert_eq!("AAAAAAAAAAAAAAAAAAAAA!".parse::<Id>(), Err(BadId));
        assert_eq!("AAAAAAAAAAAAAAAAAAAAAR".parse::<Id>(), Err(BadId), "bits beyond the 128th must be zero");
    }
}
