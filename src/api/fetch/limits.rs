//! How much of what can be read goes into one answer: Kafka's byte limits, applied in request order (semantics reference, 3.2).

/// What one partition could give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable {
    /// Bytes that can be read, whole batches.
    pub len: u32,
    /// Bytes of the first batch.
    pub first: u32,
    /// The partition's own limit.
    pub limit: u32,
}

/// What one partition gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Bytes; may end inside a batch, but only behind a whole one.
    pub len: u32,
    /// The limits left room, but not enough for one batch.
    pub cut: bool,
}

/// What is left of an answer's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left: u32,
    /// Nothing was given yet: the next partition with data gives a whole batch, whatever the limits.
    whole_batch: bool,
}

impl Budget {
    /// An answer of at most so many bytes of records.
    pub fn new(max_bytes: u32) -> Budget {
        Budget { left: max_bytes, whole_batch: true }
    }

    /// What the next partition may give.
    pub fn take(&mut self, readable: Readable) -> Taken {
        let mut limit = readable.limit.min(self.left);
        if self.whole_batch {
            limit = limit.max(readable.first);
        }
        if limit < readable.first {
            return Taken { len: 0, cut: limit > 0 };
        }
        let len = readable.len.min(limit);
        self.whole_batch &= len == 0;
        self.left = self.left.saturating_sub(len);
        Taken { len, cut: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that can be read, bytes of the first batch, own limit.
    type Partition = (u32, u32, u32);

    fn share_out(max_bytes: u32, partitions: &[Partition]) -> Vec<u32> {
        let mut budget = Budget::new(max_bytes);
        partitions.iter().map(|(len, first, limit)| budget.take(Readable { len: *len, first: *first, limit: *limit }).len).collect()
    }

    #[test]
    fn bytes_go_to_partitions_in_order() {
        let table: &[(&str, u32, &[Partition], &[u32])] = &[
            ("all fits", 1000, &[(300, 100, 500), (300, 100, 500)], &[300, 300]),
            ("the first gives one batch over its limit", 1000, &[(300, 100, 1), (300, 100, 99)], &[100, 0]),
            ("and over the answer's limit", 99, &[(300, 100, 500), (300, 100, 500)], &[100, 0]),
            ("also when the limits are 0", 0, &[(300, 100, 0), (300, 100, 0)], &[100, 0]),
            ("the first with data", 0, &[(0, 0, 500), (300, 100, 500), (300, 100, 500)], &[0, 100, 0]),
            ("the rest goes to the next, cut behind a whole batch", 450, &[(300, 100, 500), (300, 100, 500)], &[300, 150]),
            ("but not less than a whole batch", 399, &[(300, 100, 500), (300, 100, 500)], &[300, 0]),
            ("a smaller batch later may fit", 350, &[(300, 100, 500), (300, 100, 500), (40, 40, 500)], &[300, 0, 40]),
            ("each is cut at its own limit", 1000, &[(300, 100, 250), (300, 100, 250)], &[250, 250]),
            ("no partitions", 1000, &[], &[]),
        ];
        for (what, max_bytes, partitions, expected) in table {
            assert_eq!(share_out(*max_bytes, partitions), *expected, "{what}");
        }
    }

    #[test]
    fn a_batch_that_does_not_fit_is_not_the_same_as_no_room() {
        let readable = Readable { len: 300, first: 100, limit: 500 };
        let mut budget = Budget::new(350);
        budget.take(readable);
        assert_eq!(budget.take(readable), Taken { len: 0, cut: true });
        let mut budget = Budget::new(300);
        budget.take(readable);
        assert_eq!(budget.take(readable), Taken { len: 0, cut: false });
    }
}
