//! What consumers of the classic protocol put into JoinGroup and SyncGroup: subscriptions and assignments, as bytes that the broker only
//! reads and writes where a group moves between the protocols (KIP-848). All versions, 0 to 3; later ones begin with the same fields.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

/// The newest version that is written.
const VERSION_MAX: i16 = 3;

/// Partitions by topic name, as they are on the wire.
pub(super) type Named = Vec<(Arc<str>, Vec<i32>)>;

/// What a member says when it joins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subscription {
    /// Of the format; the member understands assignments of that version.
    pub(super) version: i16,
    /// What it reads.
    pub(super) topics: BTreeSet<Arc<str>>,
    /// What it has (v1).
    pub(super) owned: Named,
    /// `client.rack` (v3).
    pub(super) rack: Option<Arc<str>>,
}

/// What a member was assigned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Assigned {
    /// The partitions.
    pub(super) partitions: Named,
    /// An assignor of the client's own has put something in that only it understands.
    pub(super) has_user_data: bool,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn i16(&mut self) -> Option<i16> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i16::from_be_bytes(*bytes))
    }

    fn i32(&mut self) -> Option<i32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_be_bytes(*bytes))
    }

    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let size = usize::try_from(self.i16()?).ok()?;
        std::str::from_utf8(self.take(size)?).ok()
    }

    /// Empty where there are none.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.i32()? {
            -1 => Some(&[]),
            size => self.take(usize::try_from(size).ok()?),
        }
    }

    /// As many as are announced; each takes bytes, so a count that lies ends with them.
    fn each(&mut self, mut one: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let count = self.i32()?;
        for _ in 0..count {
            one(self)?;
        }
        (count >= 0).then_some(())
    }

    fn named(&mut self) -> Option<Named> {
        let mut all = Named::new();
        self.each(|reader| {
            let topic = Arc::from(reader.text()?);
            let mut partitions = Vec::new();
            reader.each(|reader| reader.i32().map(|index| partitions.push(index)))?;
            all.push((topic, partitions));
            Some(())
        })?;
        Some(all)
    }
}

impl Subscription {
    /// Reads it; `None` if it is not what a consumer sends.
    pub(super) fn read(bytes: &[u8]) -> Option<Subscription> {
        let mut reader = Reader(bytes);
        let version = reader.i16().filter(|version| *version >= 0)?;
        let mut own = Subscription { version, ..Subscription::default() };
        reader.each(|reader| reader.text().map(|topic| _ = own.topics.insert(topic.into())))?;
        reader.bytes()?;
        if version >= 1 {
            own.owned = reader.named()?;
        }
        if version >= 2 {
            reader.i32()?;
        }
        if version >= 3 {
            own.rack = match reader.i16()? {
                -1 => None,
                size => {
                    let text = std::str::from_utf8(reader.take(usize::try_from(size).ok()?)?).ok()?;
                    Some(text.into()).filter(|_| !text.is_empty())
                }
            };
        }
        Some(own)
    }
}

impl Assigned {
    /// Reads it; `None` if it is not what a consumer sends. No bytes are no partitions.
    pub(super) fn read(bytes: &[u8]) -> Option<Assigned> {
        if bytes.is_empty() {
            return Some(Assigned::default());
        }
        let mut reader = Reader(bytes);
        reader.i16().filter(|version| *version >= 0)?;
        let partitions = reader.named()?;
        let has_user_data = !reader.bytes()?.is_empty();
        Some(Assigned { partitions, has_user_data })
    }

    /// Writes it for a member that understands that version.
    pub(super) fn write(version: i16, partitions: &[(Arc<str>, Vec<i32>)]) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(version.clamp(0, VERSION_MAX));
        // Topic names have 249 bytes at most, so no length is cut off.
        out.put_i32(partitions.len() as i32);
        for (topic, indexes) in partitions {
            out.put_i16(topic.len() as i16);
            out.put_slice(topic.as_bytes());
            out.put_i32(indexes.len() as i32);
            indexes.iter().for_each(|index| out.put_i32(*index));
        }
        out.put_i32(-1);
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_of_every_version() {
        let v0 = b"\0\0\0\0\0\x02\0\x01b\0\x02aa\xff\xff\xff\xff";
        let own = Subscription::read(v0).expect("v0");
        assert_eq!((own.version, own.topics.len(), own.owned.len(), own.rack), (0, 2, 0, None));
        let v1 = b"\0\x01\0\0\0\x01\0\x01b\0\0\0\x01x\0\0\0\x01\0\x01b\0\0\0\x02\0\0\0\0\0\0\0\x05";
        assert_eq!(Subscription::read(v1).expect("v1").owned, [("b".into(), vec![0, 5])]);
        let v3 = [&v1[..1], b"\x03", &v1[2..], b"\0\0\0\x07\0\x04rack"].concat();
        assert_eq!(Subscription::read(&v3).expect("v3").rack.as_deref(), Some("rack"));
        let none = [&v1[..1], b"\x03", &v1[2..], b"\0\0\0\x07\xff\xff"].concat();
        assert_eq!(Subscription::read(&none).expect("v3").rack, None);
        for cut in 0..v3.len() {
            assert_eq!(Subscription::read(&v3[..cut]), None, "{cut}");
        }
        assert_eq!(Subscription::read(b"\0\0\x7f\xff\xff\xff\0\x01a"), None, "a count that lies costs nothing");
    }

    #[test]
    fn assignments_come_back_as_they_were_written() {
        let partitions = vec![(Arc::from("t"), vec![0, 2]), (Arc::from("u"), vec![1])];
        for (version, written) in [(0, 0), (2, 2), (9, 3), (-1, 0)] {
            let bytes = Assigned::write(version, &partitions);
            assert_eq!(bytes[..2], i16::to_be_bytes(written));
            assert_eq!(Assigned::read(&bytes), Some(Assigned { partitions: partitions.clone(), has_user_data: false }));
        }
        assert_eq!(Assigned::read(b""), Some(Assigned::default()));
        assert_eq!(&Assigned::write(1, &[])[..], b"\0\x01\0\0\0\0\xff\xff\xff\xff");
        assert!(Assigned::read(b"\0\x01\0\0\0\0\0\0\0\x01x").expect("with user data").has_user_data);
        assert_eq!(Assigned::read(b"\0\x01\0\0\0\x01"), None);
    }
}
