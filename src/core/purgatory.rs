//! Waiters keyed by the offset that frees them. Neither clocks nor answers: the owner parks, releases, and drops who gave up.

use super::types::Offset;
use std::collections::BTreeMap;

/// Waiters of one kind, for one partition.
#[derive(Debug)]
pub struct Purgatory<W> {
    by_offset: BTreeMap<(Offset, u64), W>,
    next: u64,
}

impl<W> Default for Purgatory<W> {
    fn default() -> Self {
        Purgatory { by_offset: BTreeMap::new(), next: 0 }
    }
}

impl<W> Purgatory<W> {
    /// Waits until the position reaches `until`.
    pub fn park(&mut self, until: Offset, waiter: W) {
        self.next += 1;
        self.by_offset.insert((until, self.next), waiter);
    }

    /// Frees everyone who waits for `reached` or less, in the order of their offsets, then of their coming.
    pub fn release(&mut self, reached: Offset) -> impl Iterator<Item = W> + use<W> {
        let later = self.by_offset.split_off(&(reached + 1, 0));
        std::mem::replace(&mut self.by_offset, later).into_values()
    }

    /// Frees everyone.
    pub fn drain(&mut self) -> impl Iterator<Item = W> + use<W> {
        std::mem::take(&mut self.by_offset).into_values()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_offset.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_offset.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_in_order_and_only_what_is_reached() {
        let mut purgatory = Purgatory::default();
        purgatory.park(Offset(7), "c");
        purgatory.park(Offset(5), "a");
        purgatory.park(Offset(5), "b");
        assert_eq!(purgatory.release(Offset(4)).count(), 0);
        assert_eq!(purgatory.release(Offset(6)).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(purgatory.len(), 1);
        assert_eq!(purgatory.drain().collect::<Vec<_>>(), ["c"]);
        assert!(purgatory.is_empty());
    }
}
