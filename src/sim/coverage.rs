//! What a run has reached. Seeds that pass say little if nothing happened in them: a run that reached too little fails.

use std::collections::BTreeMap;

/// How often each thing happened.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

/// What must happen, with how often on average in a thousand seeds at least.
const EXPECTED: &[(&str, u64)] = &[
    ("election", 3000),
    ("pre-vote asked", 10000),
    ("pre-vote refused", 1000),
    ("vote refused", 200),
    ("vote given", 5000),
    ("peer without pre-vote", 100),
    ("check-quorum or resign", 300),
    ("succession", 300),
    ("truncation", 200),
    ("diverging answer", 200),
    ("snapshot made", 500),
    ("snapshot loaded", 100),
    ("log start moved", 300),
    ("batches lost to a power cut", 200),
    ("crash inside a step", 200),
    ("power cut", 500),
    ("process killed", 500),
    ("stopped in order", 100),
    ("pause", 200),
    ("clock jump", 200),
    ("one-way cut", 200),
    ("partition", 200),
    ("message lost", 2000),
    ("message doubled", 1000),
    ("message over a cut", 1000),
    ("connection closed", 200),
    ("slow flush", 300),
    ("fetch fenced", 100),
    ("fetch parked past its time", 1000),
    ("committed batch", 20000),
];

impl Coverage {
    /// It happened.
    pub fn hit(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// It happened `count` times.
    pub fn add(&mut self, what: &'static str, count: u64) {
        *self.counts.entry(what).or_default() += count;
    }

    /// Takes in what another run reached.
    pub fn merge(&mut self, other: &Coverage) {
        other.counts.iter().for_each(|(what, count)| self.add(what, *count));
    }

    /// Everything counted, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counts.iter().map(|(what, count)| (*what, *count))
    }

    /// What happened too rarely for that many seeds: name, how often, how often at least.
    pub fn missing(&self, seeds: u64) -> Vec<(&'static str, u64, u64)> {
        let of = |(what, rate): &(&'static str, u64)| (*what, self.counts.get(what).copied().unwrap_or(0), rate * seeds / 1000);
        EXPECTED.iter().map(of).filter(|(_, count, least)| count < least).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_reached_little_says_what_it_missed() {
        let mut coverage = Coverage::default();
        coverage.add("election", 30);
        let missing = coverage.missing(10);
        assert!(!missing.iter().any(|(what, ..)| *what == "election"));
        assert_eq!(missing.len(), EXPECTED.len() - 1);
        assert_eq!(Coverage::default().missing(0), []);
    }
}
