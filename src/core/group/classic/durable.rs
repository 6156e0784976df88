//! A group as a record, and back.

use std::sync::Arc;

use bytes::Bytes;

use super::Group;
use super::member::Member;
use crate::core::group::request::{Protocol, State};
use crate::core::group::writes::Cx;
use crate::core::group::{GroupMetadata, GroupRecord, MemberMetadata};

impl Group {
    /// The group with that assignment.
    pub(super) fn record(&self, assignment: impl Fn(&Member) -> Bytes) -> GroupRecord {
        self.record_of(|_, member| assignment(member))
    }

    pub(super) fn record_of(&self, assignment: impl Fn(&str, &Member) -> Bytes) -> GroupRecord {
        let members = self.members.iter().map(|(id, member)| MemberMetadata {
            member: id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout,
            session_timeout: member.session_timeout,
            subscription: member.metadata(self.protocol.as_deref()),
            assignment: assignment(id, member),
        });
        let value = GroupMetadata {
            protocol_type: self.protocol_type.clone(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            since: self.since,
            members: members.collect(),
        };
        GroupRecord::Group { group: self.id.clone(), value: Some(value) }
    }

    /// A group that has no members and never had: what is written of it.
    pub(in crate::core::group) fn empty_record(&self) -> GroupRecord {
        let value =
            GroupMetadata { protocol_type: None, generation: 0, protocol: None, leader: None, since: self.since, members: Vec::new() };
        GroupRecord::Group { group: self.id.clone(), value: Some(value) }
    }

    /// The group that was written.
    pub(in crate::core::group) fn from_record(id: Arc<str>, value: GroupMetadata) -> Group {
        let mut group = Group::new(id, value.since);
        group.generation = value.generation;
        group.protocol_type = value.protocol_type.filter(|kind| !kind.is_empty());
        group.protocol = value.protocol;
        group.leader = value.leader;
        let kind = group.protocol_type.clone().unwrap_or_default();
        let name = group.protocol.clone().unwrap_or_default();
        for member in value.members {
            let loaded = Member {
                instance: member.instance,
                client_id: member.client_id,
                client_host: member.client_host,
                session_timeout: member.session_timeout,
                rebalance_timeout: member.rebalance_timeout,
                protocols: vec![Protocol { name: name.clone(), metadata: Bytes::copy_from_slice(&member.subscription) }],
                assignment: Bytes::copy_from_slice(&member.assignment),
                join: None,
                sync: None,
                is_new: false,
                session: Default::default(),
            };
            group.add(member.member, loaded, &kind);
        }
        if !group.members.is_empty() {
            group.state = State::Stable;
        }
        group.subscribed = group.subscriptions();
        group
    }

    /// The group was read from the log: its members' sessions start now.
    pub(in crate::core::group) fn loaded(&mut self, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        ids.iter().for_each(|id| self.set_session(id, None, cx));
        let (size, max) = (self.members.len(), cx.settings.max_size);
        if size > max { self.prepare(format!("{size} members where group.max.size is {max}"), cx) } else { None }
    }
}
