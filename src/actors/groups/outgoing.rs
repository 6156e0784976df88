//! Writes on their way to the partition. What a coordinator decides while it works through its mailbox goes in one batch: appending costs
//! the same for one commit as for fifty that came together. A write that comes alone waits for nobody.

use super::batches::Encoded;
use crate::core::group::WriteId;
use crate::core::types::{Epoch, Millis, Offset};
use crate::log::builder::BatchBuilder;
use bytes::Bytes;

/// Bytes up to which writes share a batch; far below what a partition takes (`max.message.bytes`), as one that is refused is refused to all.
const SHARED_MAX: usize = 64 * 1024;

/// The batch that is being filled.
#[derive(Default)]
pub struct Outgoing {
    batch: Option<BatchBuilder>,
    writes: Vec<WriteId>,
}

/// A batch and whose writes it holds, in order.
pub struct Full {
    /// The batch, encoded.
    pub batch: Bytes,
    /// The writes.
    pub writes: Vec<WriteId>,
}

impl Outgoing {
    /// Adds a write. Returns the batch before it, if there is no room for both in one.
    pub fn add(&mut self, write: WriteId, records: &Encoded, now: Millis) -> Option<Full> {
        let full = if self.batch.as_ref().is_some_and(|batch| batch.size() + records.size() > SHARED_MAX) { self.take() } else { None };
        let batch = self.batch.get_or_insert_with(|| BatchBuilder::new(Offset(0), Epoch::NONE, now));
        records.each(|key, value| batch.push(0, Some(key), value));
        self.writes.push(write);
        full
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// What there is to send.
    pub fn take(&mut self) -> Option<Full> {
        let batch = self.batch.take()?.finish()?;
        Some(Full { batch: batch.into(), writes: std::mem::take(&mut self.writes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::group::GroupRecord;
    use crate::log::batch::Batches;

    fn write(text: &str) -> Encoded {
        let record = GroupRecord::Group { group: text.into(), value: None };
        Encoded::of(&[record.clone(), record]).expect("it can be written")
    }

    fn counts(full: &Full) -> Vec<i32> {
        Batches::new(&full.batch).map(|batch| batch.expect("a batch").header.count).collect()
    }

    #[test]
    fn writes_share_a_batch_until_it_is_large() {
        let mut outgoing = Outgoing::default();
        assert!(outgoing.is_empty() && outgoing.take().is_none());
        assert!(outgoing.add(WriteId(1), &write("a"), Millis(5)).is_none());
        assert!(outgoing.add(WriteId(2), &write("b"), Millis(5)).is_none());
        let large = "x".repeat(30_000);
        let full = outgoing.add(WriteId(3), &write(&large), Millis(5)).map(|full| (counts(&full), full.writes));
        assert!(full.is_none(), "60,000 bytes are not too much for one batch");
        let full = outgoing.add(WriteId(4), &write(&large), Millis(5)).expect("but 120,000 are");
        assert_eq!((counts(&full), full.writes), (vec![6], vec![WriteId(1), WriteId(2), WriteId(3)]));
        let full = outgoing.take().expect("the last");
        assert_eq!((counts(&full), full.writes, outgoing.is_empty()), (vec![2], vec![WriteId(4)], true));
    }
}
