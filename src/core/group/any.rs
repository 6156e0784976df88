//! A group of either protocol, for what does not depend on which.

use std::sync::Arc;

use super::request::{GroupView, Kind, Listed, State, Why};
use super::writes::Cx;
use super::{GroupRecord, classic, consumer};
use crate::core::types::Millis;

/// A group.
#[derive(Debug)]
pub(super) enum Group {
    /// Its members assign, or it has only offsets.
    Classic(Box<classic::Group>),
    /// The broker assigns.
    Consumer(Box<consumer::Group>),
}

impl Group {
    /// A classic group without members.
    pub(super) fn new(id: Arc<str>, since: Option<Millis>) -> Group {
        Group::from(classic::Group::new(id, since))
    }

    pub(super) fn id(&self) -> &Arc<str> {
        match self {
            Group::Classic(group) => &group.id,
            Group::Consumer(group) => &group.id,
        }
    }

    pub(super) fn as_classic(&mut self) -> Option<&mut classic::Group> {
        match self {
            Group::Classic(group) => Some(group),
            Group::Consumer(_) => None,
        }
    }

    pub(super) fn as_consumer(&mut self) -> Option<&mut consumer::Group> {
        match self {
            Group::Classic(_) => None,
            Group::Consumer(group) => Some(group),
        }
    }

    /// Whether a member reads that topic, as far as one can know.
    pub(super) fn reads(&self, topic: &str) -> bool {
        match self {
            Group::Classic(group) => group.reads(topic),
            Group::Consumer(group) => group.reads(topic),
        }
    }

    /// From when on the retention of its offsets counts: `None` while they are kept whatever their age, otherwise that time, or none for
    /// each offset's own.
    pub(super) fn retention_start(&self) -> Option<Option<Millis>> {
        match self {
            Group::Classic(group) => group.retention_start(),
            // What members read is kept for that reason.
            Group::Consumer(_) => Some(None),
        }
    }

    /// Nobody is in it and nobody is about to be.
    pub(super) fn is_deserted(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_deserted(),
            Group::Consumer(group) => group.is_empty(),
        }
    }

    pub(super) fn check_delete(&self) -> Result<(), Why> {
        match self {
            Group::Classic(group) => group.check_delete(),
            Group::Consumer(group) => group.check_delete(),
        }
    }

    pub(super) fn check_offset_delete(&self) -> Result<(), Why> {
        match self {
            Group::Classic(group) => group.check_offset_delete(),
            Group::Consumer(_) => Ok(()),
        }
    }

    /// The records that take it out of the log.
    pub(super) fn tombstones(&self) -> Vec<GroupRecord> {
        match self {
            Group::Classic(group) => vec![GroupRecord::Group { group: group.id.clone(), value: None }],
            Group::Consumer(group) => group.tombstones(),
        }
    }

    pub(super) fn kind_and_state(&self) -> (Kind, State) {
        match self {
            Group::Classic(group) => (Kind::Classic, group.state()),
            Group::Consumer(group) => (Kind::Consumer, group.state()),
        }
    }

    pub(super) fn listed(&self) -> Listed {
        match self {
            Group::Classic(group) => group.listed(),
            Group::Consumer(group) => group.listed(),
        }
    }

    pub(super) fn view(&self) -> GroupView<'_> {
        match self {
            Group::Classic(group) => group.view(),
            Group::Consumer(group) => group.view(),
        }
    }

    /// Takes down everything that waits or is to ring.
    pub(super) fn close(&mut self, why: Why, cx: &mut Cx<'_>) {
        match self {
            Group::Classic(group) => group.close(why, cx),
            Group::Consumer(group) => group.close(cx),
        }
    }
}

impl From<classic::Group> for Group {
    fn from(group: classic::Group) -> Group {
        Group::Classic(Box::new(group))
    }
}

impl From<consumer::Group> for Group {
    fn from(group: consumer::Group) -> Group {
        Group::Consumer(Box::new(group))
    }
}
