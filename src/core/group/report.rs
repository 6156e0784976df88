//! What there is to tell of all groups, a page at a time: whoever watches asks for the next page when it has the last one, so that a
//! coordinator of many groups does other things in between.

use std::ops::Bound;
use std::sync::Arc;

use super::Coordinator;
use crate::core::types::{Offset, TopicId};

/// Where a page ended: with a group, or with one of its offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    group: Arc<str>,
    within: Option<(Arc<str>, i32)>,
}

/// A group, or a part of one whose offsets are on several pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// Its id.
    pub group: Arc<str>,
    /// How many members it has.
    pub members: usize,
    /// Committed offsets by topic (with its id, zero if it was not known) and partition.
    pub offsets: Vec<(Arc<str>, TopicId, i32, Offset)>,
    /// Whether a page before this one has more of its offsets.
    pub continued: bool,
}

impl Coordinator {
    /// The groups after that mark, about `most` groups and offsets together; and where to go on, if there may be more. What changes between
    /// pages may be on neither.
    pub fn report(&self, after: Option<&Mark>, most: usize) -> (Vec<GroupReport>, Option<Mark>) {
        let (mut page, mut told) = (Vec::new(), 0);
        let start = match after {
            None => Bound::Unbounded,
            Some(Mark { group, within: None }) => Bound::Excluded(&**group),
            Some(Mark { group, within: Some(_) }) => Bound::Included(&**group),
        };
        for (id, group) in self.groups.range::<str, _>((start, Bound::Unbounded)) {
            let within = after.filter(|mark| mark.group == *id).and_then(|mark| mark.within.as_ref());
            let members = group.view().members;
            let mut report = GroupReport { group: id.clone(), members, offsets: Vec::new(), continued: within.is_some() };
            let mut offsets = self.offsets.after(id, within).peekable();
            while let Some((topic, index, offset)) = offsets.next() {
                report.offsets.push((topic.clone(), offset.topic_id, index, offset.offset));
                told += 1;
                if told >= most && offsets.peek().is_some() {
                    page.push(report);
                    return (page, Some(Mark { group: id.clone(), within: Some((topic.clone(), index)) }));
                }
            }
            page.push(report);
            told += 1;
            if told >= most {
                return (page, Some(Mark { group: id.clone(), within: None }));
            }
        }
        (page, None)
    }
}
