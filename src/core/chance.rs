//! Randomness that the core is given. The shell brings a real source, a test a seeded one, and replaying the same source replays everything.

use super::types::Id;

/// A source of random numbers.
pub trait Chance {
    /// The next 64 random bits.
    fn bits(&mut self) -> u64;

    /// A number below `bound`, which is not 0. The bias for small bounds is far below what placement could notice.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A new identity as Kafka makes them: a version 4 UUID, none of the reserved ones (the first hundred), and none that prints with a
    /// leading `-`, which command lines would take for an option.
    fn id(&mut self) -> Id {
        loop {
            let bits = (u128::from(self.bits()) << 64) | u128::from(self.bits());
            let id = Id(bits & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62));
            if id.0 >= 100 && !id.to_string().starts_with('-') {
                return id;
            }
        }
    }
}

/// A seeded source for tests and simulations (splitmix64).
#[cfg(any(test, feature = "sim"))]
#[derive(Debug, Clone)]
pub struct Seeded(pub u64);

#[cfg(any(test, feature = "sim"))]
impl Chance for Seeded {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_4_and_differ_and_never_look_like_an_option() {
        let mut chance = Seeded(1);
        let ids: Vec<Id> = (0..2000).map(|_| chance.id()).collect();
        assert!(ids.iter().all(|id| (id.0 >> 76) & 0xf == 4 && (id.0 >> 62) & 0b11 == 0b10));
        assert!(ids.iter().all(|id| !id.to_string().starts_with('-')));
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 2000);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut chance = Seeded(2);
        let mut seen = [0; 3];
        (0..300).for_each(|_| seen[chance.below(3)] += 1);
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    }
}
