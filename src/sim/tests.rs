//! A few hundred seeds with every test run, and the test of the test: known bugs are found.

use super::*;
use crate::core::quorum::mutants::{self, Mutant};
use std::cell::Cell;

/// Seeds that every test run tries.
const SEEDS: u64 = 300;

/// Seeds within which each known bug must be found.
const SEEDS_FOR_A_BUG: u64 = 2000;

thread_local! {
    static FORGETFUL: Cell<bool> = const { Cell::new(false) };
}

/// A known bug of the disk.
pub(super) fn forgets_votes() -> bool {
    FORGETFUL.get()
}

#[test]
fn some_hundred_seeds_hold_and_reach_enough() {
    let mut coverage = Coverage::default();
    for seed in 0..SEEDS {
        let run = run(seed, false);
        assert_eq!(run.broken, None, "seed {seed}; watch it with: understudy sim --seed {seed} --trace");
        coverage.merge(&run.coverage);
    }
    assert_eq!(coverage.missing(SEEDS), [], "{coverage:?}");
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    let (first, second) = (run(7, true), run(7, true));
    assert!(first.lines.len() > 100);
    assert_eq!(first.lines, second.lines);
}

fn first_found() -> Option<(u64, Broken)> {
    (0..SEEDS_FOR_A_BUG).find_map(|seed| Some((seed, run(seed, false).broken?)))
}

#[test]
fn known_bugs_are_found() {
    let bugs = [
        Mutant::CommitWithoutLeaderChange,
        Mutant::UnflushedCounts,
        Mutant::VoteTwice,
        Mutant::VoteForAnyLog,
        Mutant::DeadEpochAccepted,
        Mutant::DivergenceIgnored,
        Mutant::CutOneLess,
        Mutant::LeadsAgain,
        Mutant::WatermarkAboveLog,
    ];
    let mut missed = Vec::new();
    for bug in bugs {
        match mutants::with(bug, first_found) {
            Some((seed, (name, what))) => println!("{bug:?}: seed {seed}: {name}: {what}"),
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn a_vote_that_is_not_persisted_is_found() {
    FORGETFUL.set(true);
    let found = first_found();
    FORGETFUL.set(false);
    println!("{found:?}");
    assert!(found.is_some());
}
