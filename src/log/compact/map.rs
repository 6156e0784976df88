//! The last offset of each key of the part that is to be compacted, in memory of a fixed size. Keys are not kept: a keyed 128-bit hash
//! (SipHash-1-3) stands for each. With a secret that changes with every run nobody can make keys that collide, and by chance it takes
//! some 10^16 keys in one map before two do with a probability of one in a million; Apache Kafka trusts MD5 with the same number of bits.
//!
//! Open addressing over one array. Where an entry belongs rises with its hash, and entries lie in the order of their hashes: a search
//! for a key that is not there ends as soon as one for a key that is, also in a table that is nearly full.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

use crate::core::types::Offset;

/// Bytes of one entry.
pub(super) const ENTRY: u64 = 24;
/// Entries that the smallest map has room for.
const LEAST: u64 = 64;
/// Room that is made at the end when entries run over it.
const OVERRUN: usize = 1024;
/// Stands for no entry: no hash is used that has this as its first half.
const FREE: u64 = u64::MAX;

/// How much memory a map may take, and how full it may become.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapLimits {
    /// `log.cleaner.dedupe.buffer.size`, divided by the threads.
    pub bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`.
    pub load: f64,
}

/// Both halves of a key's hash.
pub(super) type Hash = [u64; 2];

/// The key was not taken: the map is as full as it may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

pub(super) struct OffsetMap {
    secret: [u64; 2],
    /// Two halves of the hash, and the offset; followed by room for entries that belong near the end.
    slots: Vec<[u64; 3]>,
    /// Slots that entries belong to.
    homes: u64,
    used: u64,
    most: u64,
}

impl OffsetMap {
    /// An empty map for at most `keys` keys, or as many as the limits allow.
    pub fn new(limits: MapLimits, keys: u64, secret: [u64; 2]) -> OffsetMap {
        let load = limits.load.clamp(0.05, 0.95);
        let allowed = (limits.bytes / ENTRY).max(LEAST);
        let homes = ((keys as f64 / load) as u64).saturating_add(LEAST).min(allowed);
        let most = ((homes as f64 * load) as u64).max(1);
        let mut slots = Vec::with_capacity(homes as usize + (homes as usize).min(OVERRUN));
        slots.resize(homes as usize, [FREE, 0, 0]);
        OffsetMap { secret, slots, homes, used: 0, most }
    }

    /// How many keys it has.
    #[cfg(test)]
    pub fn len(&self) -> u64 {
        self.used
    }

    /// The most keys that it takes.
    pub fn capacity(&self) -> u64 {
        self.most
    }

    /// How full it is, of 1.
    pub fn utilization(&self) -> f64 {
        self.used as f64 / self.homes as f64
    }

    /// What stands for a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Hash {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write(key);
        let hash = hasher.finish128();
        [hash.h1.min(FREE - 1), hash.h2]
    }

    /// Has the processor fetch what several searches will look at first: their misses of the cache then overlap.
    pub fn touch(&self, hashes: impl Iterator<Item = Hash>) {
        let seen = hashes.fold(0, |seen, hash| seen ^ self.slots[self.home(hash)][0]);
        std::hint::black_box(seen);
    }

    fn home(&self, hash: Hash) -> usize {
        ((u128::from(hash[0]) * u128::from(self.homes)) >> 64) as usize
    }

    /// The slot that has the hash, or the one where it should be.
    fn find(&self, hash: Hash) -> Result<usize, usize> {
        let mut at = self.home(hash);
        while let Some(slot) = self.slots.get(at) {
            let found = [slot[0], slot[1]];
            if found >= hash {
                return if found == hash { Ok(at) } else { Err(at) };
            }
            at += 1;
        }
        Err(at)
    }

    /// Notes that the key is at `offset`, which is larger than any that was noted for it.
    pub fn put(&mut self, hash: Hash, offset: Offset) -> Result<(), Full> {
        let at = match self.find(hash) {
            Ok(at) => {
                self.slots[at][2] = offset.0 as u64;
                return Ok(());
            }
            Err(at) => at,
        };
        if self.used >= self.most {
            return Err(Full);
        }
        self.used += 1;
        let mut carried = [hash[0], hash[1], offset.0 as u64];
        for slot in &mut self.slots[at..] {
            std::mem::swap(slot, &mut carried);
            if carried[0] == FREE {
                return Ok(());
            }
        }
        // What belongs to the last slots runs over the end, by as much as one cluster; not worth a vector of twice the size.
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(OVERRUN);
        }
        self.slots.push(carried);
        Ok(())
    }

    /// The last offset that was noted for the key.
    pub fn get(&self, hash: Hash) -> Option<Offset> {
        let at = self.find(hash).ok()?;
        Some(Offset(self.slots[at][2] as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn map(bytes: u64, load: f64, keys: u64) -> OffsetMap {
        OffsetMap::new(MapLimits { bytes, load }, keys, [1, 2])
    }

    proptest! {
        #[test]
        fn it_is_a_map(keys in prop::collection::vec(0u16..3000, 1..4000), load in 0.1f64..0.95) {
            let mut map = map(2000 * ENTRY, load, u64::MAX);
            let mut model = HashMap::new();
            for (offset, key) in keys.iter().enumerate() {
                let offset = Offset(offset as i64);
                let taken = map.put(map.hash(&key.to_be_bytes()), offset);
                if taken.is_err() {
                    prop_assert_eq!(map.len(), map.capacity());
                    prop_assert!(!model.contains_key(key));
                } else {
                    model.insert(*key, offset);
                }
            }
            for key in 0u16..3000 {
                prop_assert_eq!(map.get(map.hash(&key.to_be_bytes())), model.get(&key).copied());
            }
            prop_assert_eq!(map.len(), model.len() as u64);
        }
    }

    #[test]
    fn it_takes_no_more_memory_than_it_needs_or_may() {
        assert!(map(128 << 20, 0.9, 1000).slots.capacity() < 2300, "for a thousand keys");
        let small = map(24_000, 0.9, 1 << 40);
        assert_eq!((small.slots.len(), small.capacity()), (1000, 900));
        let mut full = map(24_000, 0.9, 1 << 40);
        let taken = (0u64..2000).filter(|key| full.put(full.hash(&key.to_le_bytes()), Offset(*key as i64)).is_ok()).count();
        assert_eq!(taken, 900);
        assert!(full.slots.len() < 1100, "{} slots", full.slots.len());
        assert!(full.put(full.hash(&5u64.to_le_bytes()), Offset(9999)).is_ok(), "a key that is there needs no room");
        assert_eq!(full.get(full.hash(&5u64.to_le_bytes())), Some(Offset(9999)));
        assert!((full.utilization() - 0.9).abs() < 0.01);
        assert!(map(0, 5.0, 0).capacity() >= 1, "at least something");
    }

    #[test]
    fn another_secret_gives_other_hashes() {
        let one = OffsetMap::new(MapLimits { bytes: 1 << 20, load: 0.9 }, 10, [1, 2]);
        let two = OffsetMap::new(MapLimits { bytes: 1 << 20, load: 0.9 }, 10, [1, 3]);
        assert_ne!(one.hash(b"key"), two.hash(b"key"));
        assert_ne!(one.hash(b""), one.hash(b"\0"));
    }
}
