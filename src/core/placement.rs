//! Where the replicas of new partitions go: racks in turn, the brokers of a rack in turn, fenced brokers last, from a random start.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chance::Chance;
use super::types::BrokerId;

/// A broker that may take replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The broker.
    pub id: BrokerId,
    /// Its rack; brokers without one share a rack of their own.
    pub rack: Option<Arc<str>>,
    /// Fenced brokers are used when all others have a replica, and never for the first.
    pub fenced: bool,
}

/// Why partitions cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotPlace {
    /// There must be at least one replica.
    #[error("Invalid replication factor {0}: the replication factor must be positive.")]
    NotPositive(i16),
    /// Nobody can lead.
    #[error("All brokers are currently fenced, or have all their log directories cordoned.")]
    AllFenced,
    /// A broker holds one replica of a partition at most.
    #[error(
        "The target replication factor of {wanted} cannot be reached because only {usable} broker(s) are registered or some brokers \
         have all their log directories cordoned."
    )]
    TooFew {
        /// Replicas asked for.
        wanted: i16,
        /// Brokers there are.
        usable: usize,
    },
}

/// The replicas of `partitions` new partitions, each list in assignment order with an unfenced broker first.
pub fn place(brokers: &[Candidate], partitions: usize, replicas: i16, chance: &mut dyn Chance) -> Result<Vec<Vec<BrokerId>>, CannotPlace> {
    if replicas <= 0 {
        return Err(CannotPlace::NotPositive(replicas));
    }
    let unfenced = brokers.iter().filter(|broker| !broker.fenced).count();
    if unfenced == 0 {
        return Err(CannotPlace::AllFenced);
    }
    let wanted = replicas as usize;
    if wanted > brokers.len() {
        return Err(CannotPlace::TooFew { wanted: replicas, usable: brokers.len() });
    }
    let mut racks = Racks::new(brokers, unfenced, chance);
    Ok((0..partitions).map(|_| racks.next(wanted, chance)).collect())
}

/// Brokers in a circle. Each round starts one further on than the round before.
#[derive(Default)]
struct Circle {
    brokers: Vec<BrokerId>,
    start: usize,
    taken: usize,
    round: usize,
}

impl Circle {
    fn new(mut brokers: Vec<BrokerId>, chance: &mut dyn Chance) -> Circle {
        brokers.sort();
        let start = if brokers.is_empty() { 0 } else { chance.below(brokers.len()) };
        Circle { brokers, start, taken: 0, round: 0 }
    }

    fn next(&mut self, round: usize) -> Option<BrokerId> {
        if self.brokers.is_empty() {
            return None;
        }
        if self.round != round {
            (self.round, self.taken, self.start) = (round, 0, (self.start + 1) % self.brokers.len());
        }
        if self.taken == self.brokers.len() {
            return None;
        }
        let broker = self.brokers[(self.start + self.taken) % self.brokers.len()];
        self.taken += 1;
        Some(broker)
    }
}

struct Rack {
    unfenced: Circle,
    fenced: Circle,
}

struct Racks {
    racks: Vec<Rack>,
    unfenced: usize,
    start: usize,
    round: usize,
}

impl Racks {
    fn new(brokers: &[Candidate], unfenced: usize, chance: &mut dyn Chance) -> Racks {
        let mut by_rack: BTreeMap<Option<&str>, (Vec<BrokerId>, Vec<BrokerId>)> = BTreeMap::new();
        for broker in brokers {
            let (unfenced, fenced) = by_rack.entry(broker.rack.as_deref()).or_default();
            if broker.fenced { fenced } else { unfenced }.push(broker.id);
        }
        let mut racks = Vec::with_capacity(by_rack.len());
        for (unfenced, fenced) in by_rack.into_values() {
            racks.push(Rack { unfenced: Circle::new(unfenced, chance), fenced: Circle::new(fenced, chance) });
        }
        let start = chance.below(racks.len());
        Racks { racks, unfenced, start, round: 0 }
    }

    /// The replicas of one more partition. There are enough brokers, and one of them is not fenced.
    fn next(&mut self, replicas: usize, chance: &mut dyn Chance) -> Vec<BrokerId> {
        // Once every unfenced broker has led, turn the order over so that the same sets do not come again.
        if self.round == self.unfenced && self.unfenced > 1 {
            self.shuffle(chance);
            self.round = 0;
        }
        let mut chosen = Vec::with_capacity(replicas);
        let mut first = self.start;
        loop {
            if let Some(leader) = self.racks[first].unfenced.next(self.round) {
                chosen.push(leader);
                break;
            }
            first = (first + 1) % self.racks.len();
        }
        let (mut rack, mut skip) = (self.start, Some(first));
        while chosen.len() < replicas {
            if skip == Some(rack) {
                // It gave the leader: this time round it is another rack's turn.
                skip = None;
            } else if let Some(broker) = self.racks[rack].next(self.round) {
                chosen.push(broker);
            }
            rack = (rack + 1) % self.racks.len();
        }
        self.round += 1;
        self.start = (self.start + 1) % self.racks.len();
        chosen
    }

    fn shuffle(&mut self, chance: &mut dyn Chance) {
        shuffle(&mut self.racks, chance);
        for rack in &mut self.racks {
            shuffle(&mut rack.unfenced.brokers, chance);
            shuffle(&mut rack.fenced.brokers, chance);
        }
    }
}

impl Rack {
    fn next(&mut self, round: usize) -> Option<BrokerId> {
        self.unfenced.next(round).or_else(|| self.fenced.next(round))
    }
}

fn shuffle<T>(all: &mut [T], chance: &mut dyn Chance) {
    for i in (1..all.len()).rev() {
        all.swap(i, chance.below(i + 1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::core::chance::Seeded;

    fn broker(id: i32, rack: &str, fenced: bool) -> Candidate {
        Candidate { id: BrokerId(id), rack: (!rack.is_empty()).then(|| rack.into()), fenced }
    }

    /// Always the first choice, so that the stripes can be read.
    struct Zero;
    impl Chance for Zero {
        fn bits(&mut self) -> u64 {
            0
        }
    }

    #[test]
    fn partitions_are_striped_over_racks_and_over_the_brokers_of_a_rack() {
        let all: Vec<_> = (0..9).map(|id| broker(id, ["a", "b", "c"][id as usize / 3], false)).collect();
        let placed = place(&all, 3, 3, &mut Zero).unwrap();
        let ids: Vec<Vec<i32>> = placed.iter().map(|replicas| replicas.iter().map(|id| id.0).collect()).collect();
        assert_eq!(ids, [[0, 3, 6], [4, 7, 1], [8, 2, 5]]);
    }

    #[test]
    fn what_cannot_be_placed_says_why() {
        let one = [broker(1, "", false)];
        let nine = place(&one, 1, 9, &mut Zero).unwrap_err();
        assert_eq!(nine, CannotPlace::TooFew { wanted: 9, usable: 1 });
        assert!(
            nine.to_string().starts_with("The target replication factor of 9 cannot be reached because only 1 broker(s) are registered")
        );
        assert_eq!(place(&[broker(1, "", true)], 1, 1, &mut Zero), Err(CannotPlace::AllFenced));
        assert_eq!(place(&one, 1, 0, &mut Zero), Err(CannotPlace::NotPositive(0)));
        assert_eq!(place(&[], 1, 1, &mut Zero), Err(CannotPlace::AllFenced));
    }

    proptest! {
        #[test]
        fn every_placement_is_legal(
            racks in proptest::collection::vec((0usize..4, any::<bool>()), 1..10),
            replicas in 1i16..6, partitions in 1usize..40, seed: u64,
        ) {
            let all: Vec<_> = racks.iter().enumerate().map(|(id, (rack, fenced))| broker(id as i32, ["", "a", "b", "c"][*rack], *fenced)).collect();
            let unfenced: BTreeSet<_> = all.iter().filter(|broker| !broker.fenced).map(|broker| broker.id).collect();
            match place(&all, partitions, replicas, &mut Seeded(seed)) {
                Err(CannotPlace::AllFenced) => prop_assert!(unfenced.is_empty()),
                Err(why) => prop_assert_eq!(why, CannotPlace::TooFew { wanted: replicas, usable: all.len() }),
                Ok(placed) => {
                    prop_assert_eq!(placed.len(), partitions);
                    for replicas_of_one in &placed {
                        prop_assert_eq!(replicas_of_one.len(), replicas as usize);
                        prop_assert_eq!(replicas_of_one.iter().collect::<BTreeSet<_>>().len(), replicas as usize, "no broker twice");
                        prop_assert!(unfenced.contains(&replicas_of_one[0]), "the leader is not fenced");
                    }
                }
            }
        }

        #[test]
        fn leaders_are_spread_evenly(brokers in 1i32..8, rounds in 1usize..5, seed: u64) {
            let all: Vec<_> = (0..brokers).map(|id| broker(id, "", false)).collect();
            let placed = place(&all, rounds * brokers as usize, 1, &mut Seeded(seed)).unwrap();
            let mut leads: BTreeMap<BrokerId, usize> = BTreeMap::new();
            placed.iter().for_each(|replicas| *leads.entry(replicas[0]).or_default() += 1);
            prop_assert!(leads.values().max().unwrap() - leads.values().min().unwrap() <= rounds);
        }
    }
}
