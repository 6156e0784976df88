//! A classic group as it comes from a consumer group, or goes to one.

use std::sync::Arc;

use bytes::Bytes;

use super::member::{Member, kept};
use super::{CONSUMER, Group};
use crate::core::group::GroupRecord;
use crate::core::group::request::{Protocol, State};
use crate::core::group::writes::Cx;
use crate::core::types::Millis;

/// A member on its way between the protocols.
#[derive(Debug, Clone)]
pub(in crate::core::group) struct Migrant {
    pub(in crate::core::group) id: Arc<str>,
    pub(in crate::core::group) instance: Option<Arc<str>>,
    pub(in crate::core::group) client_id: Arc<str>,
    pub(in crate::core::group) client_host: Arc<str>,
    pub(in crate::core::group) session_timeout: i32,
    pub(in crate::core::group) rebalance_timeout: i32,
    pub(in crate::core::group) protocols: Vec<Protocol>,
    /// What it said for the protocol that was chosen; of no use on the way here.
    pub(in crate::core::group) metadata: Bytes,
    pub(in crate::core::group) assignment: Bytes,
}

impl Group {
    /// The generation, and all members.
    pub(in crate::core::group) fn migrants(&self) -> (i32, Vec<Migrant>) {
        let chosen = self.protocol.clone().or_else(|| self.elect_protocol());
        let members = self.members.iter().map(|(id, member)| Migrant {
            id: id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            session_timeout: member.session_timeout,
            rebalance_timeout: member.rebalance_timeout,
            protocols: member.protocols.clone(),
            metadata: member.metadata(chosen.as_deref()),
            assignment: member.assignment.clone(),
        });
        (self.generation, members.collect())
    }

    /// How many members it has.
    pub(in crate::core::group) fn size(&self) -> usize {
        self.members.len()
    }

    /// A stable group of those members.
    pub(in crate::core::group) fn from_migrants(id: Arc<str>, generation: i32, migrants: Vec<Migrant>, now: Millis) -> Group {
        let mut group = Group::new(id, Some(now));
        group.generation = generation;
        for migrant in migrants {
            let member = Member {
                instance: migrant.instance,
                client_id: migrant.client_id,
                client_host: migrant.client_host,
                session_timeout: migrant.session_timeout,
                rebalance_timeout: migrant.rebalance_timeout,
                protocols: kept(&migrant.protocols),
                assignment: migrant.assignment,
                join: None,
                sync: None,
                is_new: false,
                session: Default::default(),
            };
            group.add(migrant.id, member, &CONSUMER.into());
        }
        group.state = State::Stable;
        group.protocol = group.elect_protocol();
        group.subscribed = group.subscriptions();
        group
    }

    /// The group as a record.
    pub(in crate::core::group) fn stable_record(&self) -> GroupRecord {
        self.record(|member| member.assignment.clone())
    }

    /// Has its members join again.
    pub(in crate::core::group) fn rebalance(&mut self, reason: &str, cx: &mut Cx<'_>) -> Option<GroupRecord> {
        self.rebalance_or_complete(|| reason.to_owned(), cx)
    }
}
