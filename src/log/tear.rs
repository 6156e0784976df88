//! What crashes leave of files, for the storage in memory.

/// What a crash leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process died, the operating system did not: every change that was made is there.
    Process,
    /// The power went, and nothing but what was synced is there.
    Power,
    /// The power went; of what was not synced, some sectors are there, some are zero, some are missing. The number seeds the choice.
    Torn(u64),
}

/// A small generator, so that a seed gives the same torn disk everywhere (splitmix64).
pub(super) fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const SECTOR: usize = 512;

/// What a power cut may make of a file that was `old` when it was synced and `new` when the power went.
pub(super) fn tear(old: &[u8], new: &[u8], seed: &mut u64) -> Vec<u8> {
    let (low, high) = (old.len().min(new.len()), old.len().max(new.len()));
    let len = low + (next(seed) % (high - low + 1) as u64) as usize;
    let mut out = Vec::with_capacity(len);
    for start in (0..len).step_by(SECTOR) {
        let choice = next(seed) % 3;
        out.extend((start..(start + SECTOR).min(len)).map(|i| match (old.get(i), new.get(i)) {
            (Some(o), Some(n)) if o == n => *o,
            (old, _) if choice == 0 => old.copied().unwrap_or(0),
            (_, new) if choice == 1 => new.copied().unwrap_or(0),
            _ => 0,
        }));
    }
    out
}
