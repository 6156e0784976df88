//! The network: who hears whom, how late, how often. Connections are TCP's: an answer to a process that has died since is lost.

use crate::core::chance::Chance;
use crate::core::types::BrokerId;
use std::collections::BTreeSet;

/// See the module. Odds are one in so many; 0 is never.
#[derive(Debug, Clone)]
pub struct Network {
    /// Odds that a message is lost.
    pub loss: usize,
    /// Odds that it comes twice.
    pub doubling: usize,
    /// Odds that it takes long.
    pub stall: usize,
    /// Milliseconds that a stalled message takes at most.
    pub stall_max: usize,
    /// Milliseconds that others take at most; more than one lets them overtake each other.
    pub delay_max: usize,
    /// From whom to whom nothing comes.
    cut: BTreeSet<(BrokerId, BrokerId)>,
}

/// Whether it happens, by odds.
pub fn happens(odds: usize, chance: &mut dyn Chance) -> bool {
    odds > 0 && chance.below(odds) == 0
}

impl Network {
    /// A network of chance.
    pub fn new(chance: &mut dyn Chance) -> Network {
        Network {
            loss: [0, 0, 200, 40, 10][chance.below(5)],
            doubling: [0, 100, 20][chance.below(3)],
            stall: [0, 300, 50][chance.below(3)],
            stall_max: 1 + chance.below(1500),
            delay_max: 1 + chance.below(20),
            cut: BTreeSet::new(),
        }
    }

    /// From now on nothing goes wrong.
    pub fn heal(&mut self) {
        (self.loss, self.doubling, self.stall) = (0, 0, 0);
        self.cut.clear();
    }

    /// All cuts are mended; losses stay.
    pub fn mend(&mut self) {
        self.cut.clear();
    }

    /// Nothing comes from one to the other any more.
    pub fn cut(&mut self, from: BrokerId, to: BrokerId) {
        self.cut.insert((from, to));
    }

    /// Whether anything comes from one to the other.
    pub fn connects(&self, from: BrokerId, to: BrokerId) -> bool {
        !self.cut.contains(&(from, to))
    }

    /// Milliseconds that the next message takes.
    pub fn delay(&self, chance: &mut dyn Chance) -> i64 {
        let stalled = happens(self.stall, chance);
        1 + chance.below(if stalled { self.stall_max } else { self.delay_max }) as i64
    }
}
