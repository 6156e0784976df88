//! Which topics a member of a consumer group subscribes to, read from the metadata it joins with.
//!
//! Only what all versions of Kafka's consumer protocol begin with: the version and the topics. Nobody else here looks into that metadata.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Adds the topics of that metadata to `topics`; `None` if it is not what a consumer sends.
pub(super) fn add_topics(metadata: &[u8], topics: &mut BTreeSet<Arc<str>>) -> Option<()> {
    let (version, rest) = metadata.split_first_chunk()?;
    if i16::from_be_bytes(*version) < 0 {
        return None;
    }
    let (count, mut rest) = rest.split_first_chunk()?;
    let count = i32::from_be_bytes(*count);
    for _ in 0..count {
        let (size, after) = rest.split_first_chunk()?;
        let (name, after) = after.split_at_checked(usize::try_from(i16::from_be_bytes(*size)).ok()?)?;
        let name = std::str::from_utf8(name).ok()?;
        if !topics.contains(name) {
            topics.insert(name.into());
        }
        rest = after;
    }
    (count >= 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(metadata: &[u8]) -> Option<Vec<String>> {
        let mut topics = BTreeSet::new();
        add_topics(metadata, &mut topics)?;
        Some(topics.iter().map(|t| t.to_string()).collect())
    }

    #[test]
    fn topics_of_every_version() {
        assert_eq!(read(b"\0\0\0\0\0\0\xff\xff\xff\xff"), Some(vec![]));
        assert_eq!(read(b"\0\x03\0\0\0\x02\0\x01b\0\x02aa\0\0\0\0rest"), Some(vec!["aa".into(), "b".into()]));
    }

    #[test]
    fn what_is_not_a_subscription() {
        for bytes in [
            &b""[..],
            b"\0",
            b"\0\0\0\0\0\x01",
            b"\0\0\0\0\0\x01\0\x02a",
            b"\0\0\0\0\0\x01\xff\xff",
            b"\xff\xff\0\0\0\0",
            b"\0\0\xff\xff\xff\xff",
        ] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
        assert_eq!(read(b"\0\0\x7f\xff\xff\xff\0\x01a"), None, "a count that lies costs nothing");
        assert_eq!(read(b"\0\0\0\0\0\x01\0\x01\xff"), None, "not UTF-8");
    }
}
