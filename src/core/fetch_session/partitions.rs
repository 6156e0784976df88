//! The partitions of one fetch session: found by key, walked in turn, moved to the end of the turn. No allocation but to add.

use super::{Facts, Key, Params, Wanted};
use crate::core::types::Offset;
use slab::Slab;
use std::collections::BTreeMap;

/// No partition: the end of the turn.
const END: usize = usize::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Partitions {
    slots: Slab<Slot>,
    index: BTreeMap<Key, usize>,
    first: usize,
    last: usize,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    params: Params,
    /// What the client was last told; -1 if it has to be told anew.
    high_watermark: Offset,
    log_start: Offset,
    before: usize,
    after: usize,
}

impl Partitions {
    pub(super) fn with_capacity(capacity: usize) -> Partitions {
        Partitions { slots: Slab::with_capacity(capacity), index: BTreeMap::new(), first: END, last: END }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Changes what is asked of a partition, or adds it at the end of the turn with what the client knows of it.
    pub(super) fn put(&mut self, key: Key, params: Params, high_watermark: Offset, log_start: Offset) {
        if let Some(slot) = self.index.get(&key) {
            self.slots[*slot].params = params;
            return;
        }
        let slot = self.slots.insert(Slot { key: key.clone(), params, high_watermark, log_start, before: END, after: END });
        self.index.insert(key, slot);
        self.append(slot);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        if let Some(slot) = self.index.remove(key) {
            self.unlink(slot);
            self.slots.remove(slot);
        }
    }

    /// Everything that is asked, in turn.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = Vec::with_capacity(self.len());
        let mut at = self.first;
        while let Some(slot) = self.slots.get(at) {
            wanted.push(Wanted { key: slot.key.clone(), params: slot.params, slot: at });
            at = slot.after;
        }
        wanted
    }

    /// Notes what is about to be answered; false if the client knows it all. A partition that gives records goes to the end of the turn.
    pub(super) fn shows(&mut self, at: usize, facts: &Facts) -> bool {
        let Some(slot) = self.slots.get_mut(at) else { return false };
        let news = slot.high_watermark != facts.high_watermark || slot.log_start != facts.log_start;
        slot.high_watermark = if facts.error { Offset::NONE } else { facts.high_watermark };
        slot.log_start = facts.log_start;
        if facts.records {
            self.unlink(at);
            self.append(at);
        }
        news || facts.records || facts.error || facts.diverging
    }

    fn append(&mut self, at: usize) {
        let last = std::mem::replace(&mut self.last, at);
        (self.slots[at].before, self.slots[at].after) = (last, END);
        match self.slots.get_mut(last) {
            Some(last) => last.after = at,
            None => self.first = at,
        }
    }

    fn unlink(&mut self, at: usize) {
        let (before, after) = (self.slots[at].before, self.slots[at].after);
        match self.slots.get_mut(before) {
            Some(slot) => slot.after = after,
            None => self.first = after,
        }
        match self.slots.get_mut(after) {
            Some(slot) => slot.before = before,
            None => self.last = before,
        }
    }
}
