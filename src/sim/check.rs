//! What must hold after every event (`kraft.md` 9.2), by name. It sees all nodes at once, which no node does.

use super::disk::{Batch, Disk};
use crate::core::quorum::records::{ElectionState, SnapshotId};
use crate::core::types::{BrokerId, Epoch, Offset};
use std::collections::BTreeMap;

/// What every append anywhere was: log matching follows from it by induction.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    last: Offset,
    value: u64,
    epoch_before: Epoch,
}

#[derive(Debug)]
struct Agreed {
    batch: Batch,
    hash: u64,
}

/// A broken invariant: its name, and what was seen.
pub type Broken = (&'static str, String);

/// See the module.
#[derive(Debug, Default)]
pub struct Checks {
    leaders: BTreeMap<Epoch, BrokerId>,
    votes: BTreeMap<(BrokerId, Epoch), BrokerId>,
    written: BTreeMap<(Epoch, Offset), Written>,
    /// Everything that any node took for committed, by the offset after it.
    agreed: BTreeMap<Offset, Agreed>,
    agreed_end: Offset,
}

/// The hash of a log that goes on with `batch`.
pub fn extend(hash: u64, batch: &Batch) -> u64 {
    let words = [batch.base.0 as u64, batch.last.0 as u64, batch.epoch.0 as u64, batch.value];
    words.into_iter().fold(hash, |hash, word| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

impl Checks {
    /// Where the longest committed prefix ends that any node has seen.
    pub fn agreed_end(&self) -> Offset {
        self.agreed_end
    }

    /// A node leads.
    pub fn leads(&mut self, node: BrokerId, epoch: Epoch, disk: &Disk) -> Result<(), Broken> {
        let known = *self.leaders.entry(epoch).or_insert(node);
        if known != node {
            return Err(("one leader per epoch", format!("epoch {}: nodes {} and {}", epoch.0, known.0, node.0)));
        }
        let Some(last) = self.agreed.get(&self.agreed_end) else { return Ok(()) };
        // Votes may come so late that a newer leader has committed something meanwhile. Who leads an older epoch owes nothing to that, and can
        // commit nothing: a majority is in the newer one.
        if last.batch.epoch > epoch {
            return Ok(());
        }
        let held = disk.batch_ending_at(self.agreed_end).is_some_and(|(_, batch)| batch == last.batch) || disk.start >= self.agreed_end;
        if held {
            Ok(())
        } else {
            Err(("leader completeness", format!("node {} leads epoch {} without {:?}", node.0, epoch.0, last.batch)))
        }
    }

    /// A vote is shown, to another or by asking for others'.
    pub fn votes(&mut self, voter: BrokerId, epoch: Epoch, candidate: BrokerId) -> Result<(), Broken> {
        let known = *self.votes.entry((voter, epoch)).or_insert(candidate);
        if known == candidate {
            return Ok(());
        }
        Err(("one vote per epoch", format!("node {} voted for {} and {} in epoch {}", voter.0, known.0, candidate.0, epoch.0)))
    }

    /// `quorum-state` changes.
    pub fn persists(&self, node: BrokerId, old: &ElectionState, new: &ElectionState) -> Result<(), Broken> {
        let another_leader = old.leader.is_some() && new.leader != old.leader;
        let another_vote = new.voted.is_some() && old.voted.is_some() && new.voted.map(|vote| vote.0) != old.voted.map(|vote| vote.0);
        if new.epoch < old.epoch || new.epoch == old.epoch && (another_leader || another_vote) {
            return Err(("what is voted stays voted", format!("node {}: {old:?} becomes {new:?}", node.0)));
        }
        Ok(())
    }

    /// A message shows an epoch.
    pub fn shows(&self, node: BrokerId, epoch: Epoch, disk: &Disk) -> Result<(), Broken> {
        if epoch <= disk.state.epoch {
            return Ok(());
        }
        Err((
            "nothing shows before it is on disk",
            format!("node {} shows epoch {} and has {} on disk", node.0, epoch.0, disk.state.epoch.0),
        ))
    }

    /// A batch is appended, by its leader or by a follower; before it is.
    pub fn appends(&mut self, node: BrokerId, batch: &Batch, disk: &Disk) -> Result<(), Broken> {
        let Some(epoch_before) = disk.epoch_before(batch.base) else {
            return Err(("logs match", format!("node {} appends {batch:?} to a log that starts at {}", node.0, disk.start.0)));
        };
        let written = Written { last: batch.last, value: batch.value, epoch_before };
        let known = self.written.entry((batch.epoch, batch.base)).or_insert(Written { ..written });
        if *known == written {
            return Ok(());
        }
        Err(("logs match", format!("node {} appends {batch:?} after epoch {}, elsewhere it is {known:?}", node.0, epoch_before.0)))
    }

    /// The log is cut.
    pub fn cuts(&self, node: BrokerId, to: Offset, committed: Option<Offset>, leads: bool) -> Result<(), Broken> {
        if leads || committed.is_some_and(|committed| to < committed) {
            return Err(("nothing committed is cut", format!("node {} cuts to {} below {committed:?} (leads: {leads})", node.0, to.0)));
        }
        Ok(())
    }

    /// A leader takes everything below `upto` for committed: a majority must have it on disk.
    pub fn commits<'a>(&self, node: BrokerId, upto: Offset, last: &Batch, voters: impl Iterator<Item = &'a Disk>) -> Result<(), Broken> {
        let mut all = 0;
        let mut having = 0;
        for disk in voters {
            all += 1;
            let written = disk.batch_ending_at(upto).is_some_and(|(at, batch)| at < disk.synced && batch == *last);
            having += usize::from(written || disk.start >= upto);
        }
        if having > all / 2 {
            return Ok(());
        }
        Err(("committed is on a majority's disks", format!("node {} commits {} which {having} of {all} voters have", node.0, upto.0)))
    }

    /// A node applies a batch that it takes for committed; returns the hash of all up to it.
    pub fn applies(&mut self, node: BrokerId, hash: u64, batch: &Batch) -> Result<u64, Broken> {
        let hash = extend(hash, batch);
        let end = batch.last + 1;
        if let Some(agreed) = self.agreed.get(&end) {
            if agreed.batch == *batch && agreed.hash == hash {
                return Ok(hash);
            }
            return Err(("committed never changes", format!("node {} applies {batch:?} where {:?} was committed", node.0, agreed.batch)));
        }
        if end <= self.agreed_end || batch.base != self.agreed_end {
            return Err(("committed never changes", format!("node {} applies {batch:?} across others' bounds", node.0)));
        }
        self.agreed.insert(end, Agreed { batch: *batch, hash });
        self.agreed_end = end;
        Ok(hash)
    }

    /// A node has a snapshot, made or loaded.
    pub fn has_snapshot(&self, node: BrokerId, id: SnapshotId, hash: u64) -> Result<(), Broken> {
        match self.agreed.get(&id.end) {
            Some(agreed) if agreed.hash == hash && agreed.batch.epoch == id.epoch => Ok(()),
            _ => Err(("snapshots hold what is committed", format!("node {}: {id:?}", node.0))),
        }
    }
}
