//! `understudy sim`: runs seeds of the simulator, says how fast and what they reached, or shows one as a timeline.

use crate::rt::clock;
use crate::sim::{self, Coverage};
use clap::Args;
use std::io::{self, Write};
use std::ops::Range;

/// What to run.
#[derive(Debug, Args)]
pub struct Simulate {
    /// The seeds, as FROM..TO.
    #[arg(long, value_name = "FROM..TO", value_parser = range, default_value = "0..1000", conflicts_with = "seed")]
    seeds: Range<u64>,
    /// One seed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Show what happens in it.
    #[arg(long, requires = "seed")]
    trace: bool,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let ends = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    ends.filter(|range| !range.is_empty()).ok_or_else(|| format!("{text} is not FROM..TO with FROM below TO"))
}

/// Runs what is asked for. Returns whether all seeds held and reached enough.
pub fn simulate(what: &Simulate, out: &mut dyn Write) -> io::Result<bool> {
    if let Some(seed) = what.seed {
        let run = sim::run(seed, what.trace);
        for line in &run.lines {
            writeln!(out, "{line}")?;
        }
        return match &run.broken {
            Some((name, why)) => writeln!(out, "seed {seed} broke \"{name}\" after {} ms: {why}", run.millis).map(|()| false),
            None => writeln!(out, "seed {seed} held: {} events in {} virtual ms", run.events, run.millis).map(|()| true),
        };
    }
    let begun = clock::moment();
    let mut coverage = Coverage::default();
    let (mut broken, mut millis, mut events) = (0, 0, 0);
    for seed in what.seeds.clone() {
        let run = sim::run(seed, false);
        if let Some((name, why)) = run.broken {
            broken += 1;
            writeln!(out, "seed {seed} broke \"{name}\": {why}; watch it with --seed {seed} --trace")?;
        }
        coverage.merge(&run.coverage);
        (millis, events) = (millis + run.millis, events + run.events);
    }
    let (seeds, took) = (what.seeds.end - what.seeds.start, begun.elapsed().as_secs_f64().max(0.001));
    for (name, count) in coverage.counts() {
        writeln!(out, "{count:>10}  {name}")?;
    }
    let missing = coverage.missing(seeds);
    for (name, count, least) in &missing {
        writeln!(out, "reached too rarely: {name}, {count} times; at least {least} were to be")?;
    }
    writeln!(
        out,
        "{seeds} seeds, {broken} broken, in {took:.1} s: {:.0} a second, {:.1} virtual minutes a second, {events} events",
        seeds as f64 / took,
        millis as f64 / 60_000.0 / took,
    )?;
    Ok(broken == 0 && missing.is_empty())
}
