//! When a node writes a snapshot of the metadata: after so many bytes of records, or after so long with any (`kraft.md` 6.1).

use crate::core::types::Millis;

/// What asks for a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `metadata.log.max.record.bytes.between.snapshots` is exceeded.
    Bytes,
    /// `metadata.log.max.snapshot.interval.ms` has passed.
    Age,
}

/// Counts what a new snapshot would cover.
#[derive(Debug, Clone)]
pub struct SnapshotRule {
    max_bytes: u64,
    /// Milliseconds; 0 is never.
    max_age: i64,
    bytes: u64,
    since: Millis,
}

impl SnapshotRule {
    /// The rule of the two configuration keys; a `max_age` of 0 switches the interval off. `now`: the node starts.
    pub fn new(max_bytes: u64, max_age: i64, now: Millis) -> SnapshotRule {
        SnapshotRule { max_bytes, max_age, bytes: 0, since: now }
    }

    /// A committed batch of that size was applied.
    pub fn applied(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Whether it is time, asked when a committed batch has been applied and now and then: never in the middle of a batch
    /// (KAFKA-17713), nor of a metadata transaction.
    pub fn due(&self, now: Millis) -> Option<Reason> {
        if self.bytes == 0 {
            None
        } else if self.bytes >= self.max_bytes {
            Some(Reason::Bytes)
        } else if self.max_age > 0 && now.since(self.since) >= self.max_age {
            Some(Reason::Age)
        } else {
            None
        }
    }

    /// A snapshot was begun, or one was loaded.
    pub fn taken(&mut self, now: Millis) {
        self.bytes = 0;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_by_size_or_by_age_and_never_of_nothing() {
        let mut rule = SnapshotRule::new(100, 1000, Millis(0));
        assert_eq!(rule.due(Millis(5000)), None, "nothing new");
        rule.applied(60);
        assert_eq!(rule.due(Millis(999)), None);
        assert_eq!(rule.due(Millis(1000)), Some(Reason::Age));
        rule.applied(40);
        assert_eq!(rule.due(Millis(0)), Some(Reason::Bytes));
        rule.taken(Millis(1000));
        rule.applied(1);
        assert_eq!(rule.due(Millis(1999)), None);
        let mut ageless = SnapshotRule::new(100, 0, Millis(0));
        ageless.applied(99);
        assert_eq!(ageless.due(Millis(i64::MAX)), None);
    }
}
