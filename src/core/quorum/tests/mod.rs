//! The quorum's rules as tables and timelines. What many nodes do to each other is `src/sim`'s.

mod alone;

use super::records::*;
use super::*;
use crate::core::chance::Seeded;
use crate::core::types::Id;

/// A node with its time and its chance.
struct Node {
    quorum: Quorum,
    now: i64,
    chance: Seeded,
}

impl std::ops::Deref for Node {
    type Target = Quorum;
    fn deref(&self) -> &Quorum {
        &self.quorum
    }
}

fn config(me: i32, voters: &[i32]) -> Config {
    let voters = voters.iter().map(|id| BrokerId(*id)).collect();
    Config { me: BrokerId(me), directory: Id(500), voters, timing: Timing::default() }
}

/// A log from 0 that is on disk, with one epoch.
fn log(end: i64, last_epoch: i32) -> RecoveredLog {
    let epochs = if end > 0 { vec![(Epoch(last_epoch), Offset(0))] } else { Vec::new() };
    let base_epoch = Some(Epoch(if end > 0 { 0 } else { last_epoch }));
    RecoveredLog { end: Offset(end), durable: Offset(end), base_epoch, epochs, ..RecoveredLog::empty() }
}

impl Node {
    fn start(config: Config, log: RecoveredLog, stored: ElectionState) -> (Node, Vec<Effect>) {
        let (mut chance, mut fx) = (Seeded(1), Vec::new());
        let quorum = Quorum::start(config, log, stored, &mut Cx { now: Millis(0), chance: &mut chance, fx: &mut fx }).unwrap();
        (Node { quorum, now: 0, chance }, fx)
    }

    fn with<T>(&mut self, fx: &mut Vec<Effect>, what: impl FnOnce(&mut Quorum, &mut Cx) -> T) -> T {
        what(&mut self.quorum, &mut Cx { now: Millis(self.now), chance: &mut self.chance, fx })
    }

    fn append(&mut self, count: i64, fx: &mut Vec<Effect>) -> Result<(Epoch, Offset), NotLeader> {
        self.with(fx, |quorum, cx| quorum.append(count, cx))
    }

    fn flushed(&mut self, upto: i64, fx: &mut Vec<Effect>) {
        let generation = self.quorum.log.generation;
        self.with(fx, |quorum, cx| quorum.flushed(Offset(upto), generation, cx));
    }

    fn resign(&mut self, fx: &mut Vec<Effect>) {
        self.with(fx, |quorum, cx| quorum.resign(cx));
    }
}
