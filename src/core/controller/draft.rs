//! A decision while it is made: its records, the elections among them, and what it rests on besides the image.

use super::records::Record;
use crate::core::election::{Claims, Election};

/// See the module.
pub(super) struct Draft<'a> {
    /// What to append, in order.
    pub records: Vec<Record>,
    /// Every change of a leader in them, the loss of one too.
    pub elections: Vec<Election>,
    /// What survivors say their logs hold.
    pub claims: &'a Claims,
}

impl<'a> Draft<'a> {
    pub fn new(claims: &'a Claims) -> Draft<'a> {
        Draft { records: Vec::new(), elections: Vec::new(), claims }
    }

    /// Where the records go that are not written if the request is only to be validated.
    pub fn unless(&mut self, validate_only: bool) -> Sink<'_> {
        Sink((!validate_only).then_some(&mut self.records))
    }
}

/// Where the records of a decision go: nowhere if it is only to be validated.
pub(super) struct Sink<'a>(Option<&'a mut Vec<Record>>);

impl Sink<'_> {
    pub fn extend(&mut self, records: impl IntoIterator<Item = Record>) {
        if let Some(all) = &mut self.0 {
            all.extend(records);
        }
    }
}
