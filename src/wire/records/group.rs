//! The bytes of the records in `__consumer_offsets`. What they mean is `core::group`'s business. Rules: reference section 5.4.
//!
//! Keys begin with a type, values with a version, two bytes each. Keys and old values have classic lengths; values from version 4 on are
//! flexible. Read: everything that Kafka ever wrote of offsets, classic groups and consumer groups (those in [`consumer`]). Written: what
//! Kafka 4.3 writes.

mod consumer;

use std::sync::Arc;

use bytes::Bytes;

use super::BadRecord;
use super::codec::{Reader, Tag, Writer, content};
use crate::core::group::{CommittedOffset, GroupMetadata, GroupRecord, MemberMetadata};
use crate::core::types::{Epoch, Id, Millis, Offset};

type Read<T> = Result<T, BadRecord>;

/// Kinds of keys: an offset as it was written before 0.8.2, an offset, a group.
const LEGACY_OFFSET: i16 = 0;
const OFFSET: i16 = 1;
const GROUP: i16 = 2;

/// The first version of either value with compact lengths and tagged fields, and the last that is known.
const FLEXIBLE: i16 = 4;
/// The only version of an offset's value with a time of expiry.
const EXPIRING: i16 = 1;
/// The version in which groups are written.
const GROUP_VERSION: i16 = 3;
/// "Not known" and "not set".
const NONE: i64 = -1;

/// Names in the record before: most records have the same again, and need no copy of their own.
#[derive(Default)]
pub struct Names {
    group: Arc<str>,
    topic: Arc<str>,
}

/// `last`, if it says that; and from now on it does.
fn again(last: &mut Arc<str>, text: &str) -> Arc<str> {
    if **last != *text {
        *last = Arc::from(text);
    }
    last.clone()
}

/// The record with that key and value. A key of a kind that this broker does not know is [`BadRecord::UnknownType`]: readers skip it.
pub fn decode(key: &[u8], value: Option<&[u8]>) -> Read<GroupRecord> {
    decode_with(&mut Names::default(), key, value)
}

/// The same for one of many records.
pub fn decode_with(names: &mut Names, key: &[u8], value: Option<&[u8]>) -> Read<GroupRecord> {
    let mut reader = Reader::new(key);
    let kind = reader.i16()?;
    let record = match kind {
        LEGACY_OFFSET | OFFSET => {
            let group = again(&mut names.group, reader.classic_str_or_null()?.ok_or(BadRecord::Length)?);
            let topic = again(&mut names.topic, reader.classic_str_or_null()?.ok_or(BadRecord::Length)?);
            let partition = reader.i32()?;
            GroupRecord::Offset { group, topic, partition, value: value.map(offset).transpose()? }
        }
        GROUP => GroupRecord::Group { group: name(&mut reader)?, value: value.map(group).transpose()? },
        other => consumer::decode(other, &mut reader, value)?,
    };
    reader.end()?;
    Ok(record)
}

/// Key and value of that record; no value if it is a tombstone.
pub fn encode(record: &GroupRecord) -> Read<(Vec<u8>, Option<Vec<u8>>)> {
    let mut key = Vec::new();
    let (split, end) = encode_into(record, &mut key)?;
    let value = key.split_off(split);
    Ok((key, end.map(|_| value)))
}

/// Appends key and value of that record to `out`: where the key ends, and where the value does; no value if it is a tombstone. An error
/// leaves `out` with a part of it.
pub fn encode_into(record: &GroupRecord, out: &mut Vec<u8>) -> Read<(usize, Option<usize>)> {
    write_key(record, out)?;
    let split = out.len();
    let has_value = write_value(record, out)?;
    Ok((split, has_value.then_some(out.len())))
}

fn write_key(record: &GroupRecord, out: &mut Vec<u8>) -> Read<()> {
    let mut w = Writer::new(out);
    match record {
        GroupRecord::Offset { group, topic, partition, .. } => {
            w.i16(OFFSET);
            w.classic_text(group);
            w.classic_text(topic);
            w.i32(*partition);
        }
        GroupRecord::Group { group, .. } => {
            w.i16(GROUP);
            w.classic_text(group);
        }
        GroupRecord::Consumer { group, record } => consumer::write_key(&mut w, group, record),
    }
    w.done()
}

/// Whether there is one.
fn write_value(record: &GroupRecord, out: &mut Vec<u8>) -> Read<bool> {
    let mut w = Writer::new(out);
    let written = match record {
        GroupRecord::Offset { value, .. } => value.as_ref().map(|value| write_offset(&mut w, value)).is_some(),
        GroupRecord::Group { value, .. } => value.as_ref().map(|value| write_group(&mut w, value)).is_some(),
        GroupRecord::Consumer { record, .. } => consumer::write_value(&mut w, record),
    };
    w.done().map(|()| written)
}

fn version(r: &mut Reader, record: &'static str) -> Read<i16> {
    let version = r.i16()?;
    if (0..=FLEXIBLE).contains(&version) {
        Ok(version)
    } else {
        Err(BadRecord::UnknownVersion { record, version: u32::from(version as u16) })
    }
}

fn name(r: &mut Reader) -> Read<Arc<str>> {
    r.classic_str_or_null()?.map(Arc::from).ok_or(BadRecord::Length)
}

fn text_or_null(r: &mut Reader, flexible: bool) -> Read<Option<Arc<str>>> {
    let text = if flexible { r.str_or_null()? } else { r.classic_str_or_null()? };
    // Most offsets have no note: the empty text is shared.
    Ok(text.map(|text| if text.is_empty() { Arc::default() } else { Arc::from(text) }))
}

fn text(r: &mut Reader, flexible: bool) -> Read<Arc<str>> {
    text_or_null(r, flexible)?.ok_or(BadRecord::Length)
}

fn bytes(r: &mut Reader, flexible: bool) -> Read<Bytes> {
    let bytes = if flexible { r.bytes_or_null()? } else { r.classic_bytes_or_null()? };
    bytes.map(Bytes::copy_from_slice).ok_or(BadRecord::Length)
}

fn time(millis: i64) -> Option<Millis> {
    (millis != NONE).then_some(Millis(millis))
}

fn offset(value: &[u8]) -> Read<CommittedOffset> {
    let mut reader = Reader::new(value);
    let r = &mut reader;
    let version = version(r, "OffsetCommitValue")?;
    let flexible = version >= FLEXIBLE;
    let mut offset = CommittedOffset {
        offset: Offset(r.i64()?),
        leader_epoch: if version >= 3 { r.epoch()? } else { Epoch::NONE },
        metadata: text(r, flexible)?,
        committed: Millis(r.i64()?),
        expires: if version == EXPIRING { time(r.i64()?) } else { None },
        topic_id: Id::ZERO,
    };
    if flexible {
        r.tags(|number, content| match number {
            0 => {
                offset.topic_id = content.id()?;
                Ok(Tag::Read)
            }
            _ => Ok(Tag::Unknown),
        })?;
    }
    r.end()?;
    Ok(offset)
}

fn write_offset(w: &mut Writer, offset: &CommittedOffset) {
    match offset.expires {
        Some(expires) => {
            w.i16(EXPIRING);
            w.i64(offset.offset.0);
            w.classic_text(&offset.metadata);
            w.i64(offset.committed.0);
            w.i64(expires.0);
        }
        None => {
            w.i16(FLEXIBLE);
            w.i64(offset.offset.0);
            w.i32(offset.leader_epoch.0);
            w.text(&offset.metadata);
            w.i64(offset.committed.0);
            w.tags(&[(0, (!offset.topic_id.is_zero()).then(|| content(|w| w.id(offset.topic_id))))]);
        }
    }
}

fn group(value: &[u8]) -> Read<GroupMetadata> {
    let mut reader = Reader::new(value);
    let r = &mut reader;
    let version = version(r, "GroupMetadataValue")?;
    let flexible = version >= FLEXIBLE;
    let protocol_type = Some(text(r, flexible)?).filter(|kind| !kind.is_empty());
    let (generation, protocol, leader) = (r.i32()?, text_or_null(r, flexible)?, text_or_null(r, flexible)?);
    let since = if version >= 2 { time(r.i64()?) } else { None };
    let members = if flexible { r.list(|r| member(r, version))? } else { classic_list(r, |r| member(r, version))? };
    if flexible {
        r.no_tags()?;
    }
    r.end()?;
    Ok(GroupMetadata { protocol_type, generation, protocol, leader, since, members })
}

fn classic_list<T>(r: &mut Reader, mut one: impl FnMut(&mut Reader) -> Read<T>) -> Read<Vec<T>> {
    let count = usize::try_from(r.i32()?).map_err(|_| BadRecord::Length)?;
    if count > r.left() {
        return Err(BadRecord::Length);
    }
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(one(r)?);
    }
    Ok(list)
}

fn member(r: &mut Reader, version: i16) -> Read<MemberMetadata> {
    let flexible = version >= FLEXIBLE;
    let id = text(r, flexible)?;
    let instance = if version >= 3 { text_or_null(r, flexible)? } else { None };
    let (client_id, client_host) = (text(r, flexible)?, text(r, flexible)?);
    let rebalance_timeout = if version >= 1 { r.i32()? } else { -1 };
    let session_timeout = r.i32()?;
    let member = MemberMetadata {
        member: id,
        instance,
        client_id,
        client_host,
        rebalance_timeout: if rebalance_timeout == -1 { session_timeout } else { rebalance_timeout },
        session_timeout,
        subscription: bytes(r, flexible)?,
        assignment: bytes(r, flexible)?,
    };
    if flexible {
        r.no_tags()?;
    }
    Ok(member)
}

fn write_group(w: &mut Writer, group: &GroupMetadata) {
    w.i16(GROUP_VERSION);
    w.classic_text(group.protocol_type.as_deref().unwrap_or_default());
    w.i32(group.generation);
    w.classic_text_or_null(group.protocol.as_deref());
    w.classic_text_or_null(group.leader.as_deref());
    w.i64(group.since.map_or(NONE, |since| since.0));
    w.i32(group.members.len() as i32);
    for member in &group.members {
        w.classic_text(&member.member);
        w.classic_text_or_null(member.instance.as_deref());
        w.classic_text(&member.client_id);
        w.classic_text(&member.client_host);
        w.i32(member.rebalance_timeout);
        w.i32(member.session_timeout);
        w.classic_bytes(&member.subscription);
        w.classic_bytes(&member.assignment);
    }
}

#[cfg(test)]
mod tests;
