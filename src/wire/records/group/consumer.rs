//! The records of the consumer protocol (KIP-848). All values are flexible and of version 0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::{BadRecord, Read, name, text, text_or_null};
use crate::core::group::assign::Assignment;
use crate::core::group::records::{
    ClassicMemberMetadata, ConsumerGroupMetadata, ConsumerMemberMetadata, ConsumerRecord, CurrentAssignment, EpochAssignment, GroupRecord,
    MemberState, ResolvedRegex, TargetMetadata,
};
use crate::core::group::request::Protocol;
use crate::core::types::{Millis, TopicId};
use crate::wire::records::codec::{Reader, Tag, Writer, content};

/// Kinds of keys.
const GROUP: i16 = 3;
const LEGACY_TOPICS: i16 = 4;
const MEMBER: i16 = 5;
const TARGET: i16 = 6;
const TARGET_MEMBER: i16 = 7;
const CURRENT: i16 = 8;
const REGEX: i16 = 16;

/// The only version of every value.
const VERSION: i16 = 0;

/// The record of that kind, whose key goes on in `key`.
pub(super) fn decode(kind: i16, key: &mut Reader, value: Option<&[u8]>) -> Read<GroupRecord> {
    if !matches!(kind, GROUP..=CURRENT | REGEX) {
        return Err(BadRecord::UnknownType(u32::from(kind as u16)));
    }
    let group = name(key)?;
    let record = match kind {
        GROUP => ConsumerRecord::Group(read(value, "ConsumerGroupMetadataValue", metadata)?),
        LEGACY_TOPICS => {
            ConsumerRecord::LegacyTopics { present: read(value, "ConsumerGroupPartitionMetadataValue", legacy_topics)?.is_some() }
        }
        MEMBER => {
            ConsumerRecord::Member { member: name(key)?, value: read(value, "ConsumerGroupMemberMetadataValue", member)?.map(Box::new) }
        }
        TARGET => ConsumerRecord::Target(read(value, "ConsumerGroupTargetAssignmentMetadataValue", target)?),
        TARGET_MEMBER => ConsumerRecord::TargetMember {
            member: name(key)?,
            value: read(value, "ConsumerGroupTargetAssignmentMemberValue", target_member)?,
        },
        CURRENT => {
            ConsumerRecord::Current { member: name(key)?, value: read(value, "ConsumerGroupCurrentMemberAssignmentValue", current)? }
        }
        _ => ConsumerRecord::Regex { pattern: name(key)?, value: read(value, "ConsumerGroupRegularExpressionValue", regex)? },
    };
    Ok(GroupRecord::Consumer { group, record })
}

/// Writes the key of that record.
pub(super) fn write_key(w: &mut Writer, group: &str, record: &ConsumerRecord) {
    let (kind, second) = match record {
        ConsumerRecord::Group(_) => (GROUP, None),
        ConsumerRecord::LegacyTopics { .. } => (LEGACY_TOPICS, None),
        ConsumerRecord::Member { member, .. } => (MEMBER, Some(member)),
        ConsumerRecord::Target(_) => (TARGET, None),
        ConsumerRecord::TargetMember { member, .. } => (TARGET_MEMBER, Some(member)),
        ConsumerRecord::Current { member, .. } => (CURRENT, Some(member)),
        ConsumerRecord::Regex { pattern, .. } => (REGEX, Some(pattern)),
    };
    w.i16(kind);
    w.classic_text(group);
    if let Some(second) = second {
        w.classic_text(second);
    }
}

/// Writes the value of that record, if it has one. Whether it has.
pub(super) fn write_value(w: &mut Writer, record: &ConsumerRecord) -> bool {
    match record {
        ConsumerRecord::Group(value) => write(w, value.as_ref(), write_metadata),
        // What it said is not kept, as nobody asks: one that is written again names no topics.
        ConsumerRecord::LegacyTopics { present } => write(w, present.then_some(&()), write_no_topics),
        ConsumerRecord::Member { value, .. } => write(w, value.as_deref(), write_member),
        ConsumerRecord::Target(value) => write(w, value.as_ref(), write_target),
        ConsumerRecord::TargetMember { value, .. } => write(w, value.as_ref(), write_target_member),
        ConsumerRecord::Current { value, .. } => write(w, value.as_ref(), write_current),
        ConsumerRecord::Regex { value, .. } => write(w, value.as_ref(), write_regex),
    }
}

/// A value: its version, then what `fields` reads, which is all of it.
fn read<T>(value: Option<&[u8]>, record: &'static str, fields: impl FnOnce(&mut Reader) -> Read<T>) -> Read<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let mut r = Reader::new(value);
    let version = r.i16()?;
    if version != VERSION {
        return Err(BadRecord::UnknownVersion { record, version: u32::from(version as u16) });
    }
    let value = fields(&mut r)?;
    r.end()?;
    Ok(Some(value))
}

/// A value: its version, then what `fields` writes. Whether there is one.
fn write<T>(w: &mut Writer, value: Option<&T>, fields: impl FnOnce(&mut Writer, &T)) -> bool {
    if let Some(value) = value {
        w.i16(VERSION);
        fields(w, value);
    }
    value.is_some()
}

fn names(r: &mut Reader) -> Read<BTreeSet<Arc<str>>> {
    Ok(r.list(|r| text(r, true))?.into_iter().collect())
}

fn write_names(w: &mut Writer, names: &BTreeSet<Arc<str>>) {
    w.list(&Vec::from_iter(names), |w, name| w.text(name));
}

fn metadata(r: &mut Reader) -> Read<ConsumerGroupMetadata> {
    let mut metadata = ConsumerGroupMetadata { epoch: r.i32()?, metadata_hash: 0 };
    r.tags(|number, content| match number {
        0 => {
            metadata.metadata_hash = content.i64()?;
            Ok(Tag::Read)
        }
        _ => Ok(Tag::Unknown),
    })?;
    Ok(metadata)
}

fn write_metadata(w: &mut Writer, metadata: &ConsumerGroupMetadata) {
    w.i32(metadata.epoch);
    w.tags(&[(0, (metadata.metadata_hash != 0).then(|| content(|w| w.i64(metadata.metadata_hash))))]);
}

fn legacy_topics(r: &mut Reader) -> Read<()> {
    r.list(|r| {
        r.id()?;
        r.str_or_null()?;
        r.i32()?;
        r.list(|r| {
            r.i32()?;
            r.list(|r| r.str_or_null().map(|_| ()))?;
            r.no_tags()
        })?;
        r.no_tags()
    })?;
    r.no_tags()
}

fn write_no_topics(w: &mut Writer, (): &()) {
    w.list(&[], |_, (): &()| {});
    w.no_tags();
}

fn member(r: &mut Reader) -> Read<ConsumerMemberMetadata> {
    let mut member = ConsumerMemberMetadata {
        instance: text_or_null(r, true)?,
        rack: text_or_null(r, true)?,
        client_id: text(r, true)?,
        client_host: text(r, true)?,
        topics: names(r)?,
        regex: text_or_null(r, true)?,
        rebalance_timeout: r.i32()?,
        server_assignor: text_or_null(r, true)?,
        classic: None,
    };
    r.tags(|number, content| match number {
        0 => {
            member.classic = classic(content)?;
            Ok(Tag::Read)
        }
        _ => Ok(Tag::Unknown),
    })?;
    Ok(member)
}

/// A tagged struct that may be null begins with a number that says whether it is.
fn classic(r: &mut Reader) -> Read<Option<ClassicMemberMetadata>> {
    if r.uvarint()? == 0 {
        return Ok(None);
    }
    let session_timeout = r.i32()?;
    let protocols = r.list(|r| {
        let name = text(r, true)?;
        let metadata = r.bytes_or_null()?.map(Bytes::copy_from_slice).ok_or(BadRecord::Length)?;
        r.no_tags()?;
        Ok(Protocol { name, metadata })
    })?;
    r.no_tags()?;
    Ok(Some(ClassicMemberMetadata { session_timeout, protocols }))
}

fn write_member(w: &mut Writer, member: &ConsumerMemberMetadata) {
    w.text_or_null(member.instance.as_deref());
    w.text_or_null(member.rack.as_deref());
    w.text(&member.client_id);
    w.text(&member.client_host);
    write_names(w, &member.topics);
    w.text_or_null(member.regex.as_deref());
    w.i32(member.rebalance_timeout);
    w.text_or_null(member.server_assignor.as_deref());
    // The null is written out: for Kafka a field that is not there is not null but a struct of defaults, which is a classic member.
    let classic = content(|w| match &member.classic {
        None => w.uvarint(0),
        Some(classic) => {
            w.uvarint(1);
            w.i32(classic.session_timeout);
            w.list(&classic.protocols, |w, protocol| {
                w.text(&protocol.name);
                w.bytes(&protocol.metadata);
                w.no_tags();
            });
            w.no_tags();
        }
    });
    w.tags(&[(0, Some(classic))]);
}

fn target(r: &mut Reader) -> Read<TargetMetadata> {
    let mut target = TargetMetadata { epoch: r.i32()?, computed: None };
    r.tags(|number, content| match number {
        0 => {
            target.computed = Some(Millis(content.i64()?)).filter(|at| at.0 != 0);
            Ok(Tag::Read)
        }
        _ => Ok(Tag::Unknown),
    })?;
    Ok(target)
}

fn write_target(w: &mut Writer, target: &TargetMetadata) {
    w.i32(target.epoch);
    w.tags(&[(0, target.computed.filter(|at| at.0 != 0).map(|at| content(|w| w.i64(at.0))))]);
}

fn target_member(r: &mut Reader) -> Read<Assignment> {
    let topics = r.list(|r| {
        let topic: TopicId = r.id()?;
        let partitions: BTreeSet<i32> = r.list(Reader::i32)?.into_iter().collect();
        r.no_tags()?;
        Ok((topic, partitions))
    })?;
    r.no_tags()?;
    Ok(topics.into_iter().collect())
}

fn write_target_member(w: &mut Writer, assignment: &Assignment) {
    w.list(&Vec::from_iter(assignment), |w, (topic, partitions)| {
        w.id(**topic);
        w.list(&Vec::from_iter(*partitions), |w, partition| w.i32(**partition));
        w.no_tags();
    });
    w.no_tags();
}

fn current(r: &mut Reader) -> Read<CurrentAssignment> {
    let (epoch, previous_epoch) = (r.i32()?, r.i32()?);
    let state = match r.i8()? {
        0 => MemberState::Stable,
        1 => MemberState::UnrevokedPartitions,
        2 => MemberState::UnreleasedPartitions,
        _ => MemberState::Unknown,
    };
    let (assigned, revoking) = (epochs(r, epoch)?, epochs(r, epoch)?);
    r.no_tags()?;
    Ok(CurrentAssignment { epoch, previous_epoch, state, assigned, revoking })
}

/// What does not say since when, or not of all (before 4.3), counts as assigned in the member's epoch.
fn epochs(r: &mut Reader, default: i32) -> Read<EpochAssignment> {
    // A static member that is away has a negative one.
    let default = default.max(0);
    let topics = r.list(|r| {
        let (topic, partitions) = (r.id()?, r.list(Reader::i32)?);
        let mut epochs = None;
        r.tags(|number, content| match number {
            0 => {
                epochs = content.list_or_null(Reader::i32)?;
                Ok(Tag::Read)
            }
            _ => Ok(Tag::Unknown),
        })?;
        let epochs = epochs.filter(|epochs| epochs.len() == partitions.len()).unwrap_or_else(|| vec![default; partitions.len()]);
        Ok((topic, partitions.into_iter().zip(epochs).collect::<BTreeMap<i32, i32>>()))
    })?;
    Ok(topics.into_iter().collect())
}

fn write_current(w: &mut Writer, current: &CurrentAssignment) {
    w.i32(current.epoch);
    w.i32(current.previous_epoch);
    w.i8(match current.state {
        MemberState::Stable => 0,
        MemberState::UnrevokedPartitions => 1,
        MemberState::UnreleasedPartitions => 2,
        MemberState::Unknown => 127,
    });
    for assignment in [&current.assigned, &current.revoking] {
        w.list(&Vec::from_iter(assignment), |w, (topic, partitions)| {
            w.id(**topic);
            w.list(&Vec::from_iter(partitions.keys()), |w, partition| w.i32(**partition));
            let epochs = Vec::from_iter(partitions.values());
            w.tags(&[(0, (!epochs.is_empty()).then(|| content(|w| w.list(&epochs, |w, epoch| w.i32(**epoch)))))]);
        });
    }
    w.no_tags();
}

fn regex(r: &mut Reader) -> Read<ResolvedRegex> {
    let regex = ResolvedRegex { topics: names(r)?, version: r.i64()?, resolved: Millis(r.i64()?) };
    r.no_tags()?;
    Ok(regex)
}

fn write_regex(w: &mut Writer, regex: &ResolvedRegex) {
    write_names(w, &regex.topics);
    w.i64(regex.version);
    w.i64(regex.resolved.0);
    w.no_tags();
}

#[cfg(test)]
mod tests;
