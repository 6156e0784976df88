//! A simulated process: the rules of one node, its disk, and what it has applied.

use super::disk::Disk;
use crate::core::chance::Seeded;
use crate::core::quorum::records::SnapshotId;
use crate::core::quorum::{Config, Cx, Effect, Quorum};
use crate::core::types::{BrokerId, Epoch, Millis, Offset};

/// See the module.
#[derive(Debug)]
pub struct Node {
    /// Who it is and who votes.
    pub config: Config,
    /// The rules; none while the process is down.
    pub quorum: Option<Quorum>,
    /// What survives the process.
    pub disk: Disk,
    /// Counts processes.
    pub incarnation: u64,
    /// Milliseconds that its clock is ahead.
    pub ahead: i64,
    /// Until when it stands still.
    pub paused_until: i64,
    /// When it is due to be ticked, in the world's time.
    pub tick_at: Option<i64>,
    /// Below this it has applied everything.
    pub applied: Offset,
    /// The hash of that,
    pub hash: u64,
    /// and the epoch of its last batch.
    pub applied_epoch: Epoch,
    /// What it takes for committed.
    pub committed: Option<Offset>,
    /// The leadership it announced, and has not taken back.
    pub announced: Option<Epoch>,
    /// It knows nothing of pre-votes.
    pub is_old: bool,
    /// Its own randomness.
    pub chance: Seeded,
}

impl Node {
    /// A node that has never run.
    pub fn new(config: Config, is_old: bool, chance: Seeded) -> Node {
        Node {
            config,
            quorum: None,
            disk: Disk::new(),
            incarnation: 0,
            ahead: 0,
            paused_until: 0,
            tick_at: None,
            applied: Offset(0),
            hash: 0,
            applied_epoch: Epoch(0),
            committed: None,
            announced: None,
            is_old,
            chance,
        }
    }

    /// Its id.
    pub fn id(&self) -> BrokerId {
        self.config.me
    }

    /// Whether the process runs.
    pub fn is_up(&self) -> bool {
        self.quorum.is_some()
    }

    /// Whether it leads and has said so.
    pub fn leads(&self) -> bool {
        self.announced.is_some() && self.quorum.as_ref().is_some_and(Quorum::is_leader)
    }

    /// The process starts.
    pub fn start(&mut self, now: i64) -> Vec<Effect> {
        let log = self.disk.recover();
        self.incarnation += 1;
        (self.applied, self.hash, self.applied_epoch) = (Offset(0), 0, Epoch(0));
        if let Some((id, hash)) = self.disk.snapshots.iter().next_back() {
            (self.applied, self.hash, self.applied_epoch) = (id.end, *hash, id.epoch);
        }
        (self.committed, self.announced, self.tick_at) = (None, None, None);
        let mut fx = Vec::new();
        let mut cx = Cx { now: Millis(now + self.ahead), chance: &mut self.chance, fx: &mut fx };
        let started = Quorum::start(self.config.clone(), log, self.disk.state, &mut cx);
        self.quorum = Some(started.expect("a simulation does not reach the last epoch"));
        fx
    }

    /// The process is gone.
    pub fn stop(&mut self) {
        self.quorum = None;
        self.announced = None;
        self.paused_until = 0;
    }

    /// Gives the rules an input; nothing if the process is down.
    pub fn step(&mut self, now: i64, input: impl FnOnce(&mut Quorum, &mut Cx)) -> Vec<Effect> {
        let mut fx = Vec::new();
        if let Some(quorum) = &mut self.quorum {
            input(quorum, &mut Cx { now: Millis(now + self.ahead), chance: &mut self.chance, fx: &mut fx });
        }
        fx
    }

    /// When the rules want to be ticked, in the world's time.
    pub fn next_tick(&self) -> Option<i64> {
        self.quorum.as_ref()?.next_deadline().map(|at| at.0 - self.ahead)
    }

    /// A snapshot of what is applied, if there is none yet.
    pub fn make_snapshot(&mut self) -> Option<SnapshotId> {
        let id = SnapshotId { end: self.applied, epoch: self.applied_epoch };
        let news = self.disk.snapshots.keys().next_back().is_none_or(|last| last.end < id.end);
        let safe = self.committed.is_some_and(|committed| id.end <= committed) && id.end > self.disk.start;
        if !news || !safe {
            return None;
        }
        self.disk.snapshots.insert(id, self.hash);
        if let Some(quorum) = &mut self.quorum {
            quorum.snapshot_made(id, super::disk::SNAPSHOT_BYTES as u64);
        }
        Some(id)
    }

    /// Forgets the log below a snapshot.
    pub fn forget_below(&mut self, id: SnapshotId) {
        self.disk.advance_start(id.end);
        if let Some(quorum) = &mut self.quorum {
            quorum.log_started(id.end);
        }
    }
}
