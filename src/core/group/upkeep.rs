//! What happens to groups and offsets without a member's doing: expiry, deletion by operators, topics that go.

use std::sync::Arc;

use super::GroupRecord;
use super::any::Group;
use super::coordinator::Coordinator;
use super::offsets::{self, InFlight};
use super::records::ConsumerRecord;
use super::request::{Answer, DeleteOffsets, DeletedTopic, Effect, Rows, Ticket, Why};
use super::writes::Then;
use crate::core::types::Millis;

/// Tombstones of one write, so that a batch stays well below what a partition accepts.
const PER_WRITE: usize = 1_000;

impl Coordinator {
    /// OffsetDelete.
    pub(super) fn delete_offsets(&mut self, ticket: Ticket, request: DeleteOffsets, now: Millis, fx: &mut Vec<Effect>) {
        let group = match self.groups.get(&request.group) {
            None => Err(Why::GroupIdNotFound),
            Some(group) => group.check_offset_delete().map(|()| group),
        };
        let group = match group {
            Ok(group) => group,
            Err(why) => return fx.push(Effect::Answer(ticket, Answer::DeleteOffsets(Err(why)))),
        };
        let mut records = Vec::new();
        let known = self.known_offsets(&request.group);
        let rows = request.topics.into_iter().map(|rows| {
            let read = group.reads(&rows.topic);
            let partitions = rows.partitions.into_iter().map(|(index, ())| {
                if read {
                    return (index, Err(Why::GroupSubscribedToTopic));
                }
                let key = (request.group.clone(), rows.topic.clone(), index);
                if known.contains(&key) {
                    records.push(offsets::tombstone(&key.0, &key.1, index));
                }
                (index, Ok(()))
            });
            let partitions = partitions.collect();
            Rows { topic: rows.topic, id: rows.id, partitions }
        });
        let rows = rows.collect();
        self.cx(now, fx).write(records, Then::Answer(ticket, Answer::DeleteOffsets(Ok(rows))));
    }

    /// DeleteGroups. The groups are gone at once for whoever comes after; if the tombstones cannot be written, they come back.
    pub(super) fn delete_groups(&mut self, ticket: Ticket, ids: Vec<Arc<str>>, now: Millis, fx: &mut Vec<Effect>) {
        let (mut records, mut gone) = (Vec::new(), Vec::new());
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            let result = match self.groups.get(&id) {
                None => Err(Why::GroupIdNotFound),
                Some(group) => group.check_delete(),
            };
            if result.is_ok() {
                records.extend(self.known_offsets(&id).iter().map(|(group, topic, index)| offsets::tombstone(group, topic, *index)));
                records.extend(self.groups.get(&id).map(Group::tombstones).unwrap_or_default());
                gone.extend(self.take_out(&id, now, fx));
            }
            rows.push((id, result));
        }
        let answer = Answer::DeleteGroups(Ok(rows));
        let then =
            if records.is_empty() { Then::Answer(ticket, answer) } else { Then::Deleted { answer: Some((ticket, answer)), groups: gone } };
        self.cx(now, fx).write(records, then);
    }

    /// Forgets the offsets of topics that were deleted. From whoever sees the metadata, to every coordinator.
    pub fn topics_deleted(&mut self, topics: &[DeletedTopic], now: Millis, fx: &mut Vec<Effect>) {
        let of_deleted = |topic: &Arc<str>, id| topics.iter().any(|t| t.name == *topic && (t.id == id || id.is_zero()));
        let stored = self.offsets.in_topics(topics).map(|(group, topic, index, offset)| (group, topic, index, Some(offset)));
        let keys: InFlight = stored
            .chain(self.writes.offsets())
            .filter(|(_, topic, _, offset)| offset.is_some_and(|offset| of_deleted(topic, offset.topic_id)))
            .map(|(group, topic, index, _)| (group.clone(), topic.clone(), index))
            .collect();
        let records: Vec<GroupRecord> = keys.iter().map(|(group, topic, index)| offsets::tombstone(group, topic, *index)).collect();
        for records in records.chunks(PER_WRITE) {
            self.cx(now, fx).write(records, Then::Nothing);
        }
    }

    /// Lets offsets expire, and groups that have nothing left.
    pub(super) fn expire(&mut self, now: Millis, fx: &mut Vec<Effect>) {
        let in_flight: InFlight = self.writes.offsets().map(|(group, topic, index, _)| (group.clone(), topic.clone(), index)).collect();
        let (mut records, mut done) = (Vec::new(), Vec::new());
        for (id, group) in &self.groups {
            let busy = in_flight.range((id.clone(), "".into(), i32::MIN)..).next().is_some_and(|(group, _, _)| group == id);
            let mut left = busy;
            match group.retention_start() {
                Some(start) => {
                    let start = |committed| start.unwrap_or(committed);
                    for (topic, index, offset) in self.offsets.of(id) {
                        let key = (id.clone(), topic.clone(), index);
                        let goes =
                            !group.reads(topic) && offsets::is_expired(offset, start, &self.settings, now) && !in_flight.contains(&key);
                        if goes {
                            records.push(offsets::tombstone(id, topic, index));
                        } else {
                            left = true;
                        }
                    }
                }
                None => left |= self.offsets.has(id),
            }
            if !left && group.is_deserted() {
                records.extend(group.tombstones());
                done.push(id.clone());
            }
        }
        let mut done: Vec<Group> = done.iter().filter_map(|id| self.take_out(id, now, fx)).collect();
        for records in records.chunks(PER_WRITE) {
            // The last of a group's tombstones is that of the group itself.
            let is_last = |record: &GroupRecord| {
                matches!(record, GroupRecord::Group { .. } | GroupRecord::Consumer { record: ConsumerRecord::Group(None), .. })
            };
            let these = |group: &Group| records.iter().any(|record| is_last(record) && record.group() == group.id());
            let split = done.iter().position(|group| !these(group)).unwrap_or(done.len());
            let rest = done.split_off(split);
            let groups = std::mem::replace(&mut done, rest);
            self.cx(now, fx).write(records, Then::Deleted { answer: None, groups });
        }
    }

    /// What of that group is committed or under way.
    fn known_offsets(&self, group: &Arc<str>) -> InFlight {
        let stored = self.offsets.of(group).map(|(topic, index, _)| (group.clone(), topic.clone(), index));
        let coming = self.writes.offsets().filter(|(of, _, _, _)| *of == group);
        stored.chain(coming.map(|(group, topic, index, _)| (group.clone(), topic.clone(), index))).collect()
    }

    /// Takes an empty group out, with the member ids that were given out for it.
    fn take_out(&mut self, id: &str, now: Millis, fx: &mut Vec<Effect>) -> Option<Group> {
        let mut group = self.groups.remove(id)?;
        group.close(Why::UnknownMemberId, &mut self.cx(now, fx));
        Some(group)
    }
}
