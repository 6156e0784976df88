//! The simulator: many nodes of `core::quorum` on a virtual clock, network and disk, under faults, from one seed. The same seed gives the same
//! run, so whatever it finds can be watched again.
//!
//! Built for tests and with the feature `sim` only. No threads, no real time, no files. What it does not see: bytes on the wire, the log's
//! files, the actors; they have tests of their own.

mod check;
mod coverage;
mod disk;
mod effects;
mod net;
mod node;
mod scenario;
#[cfg(test)]
mod tests;
mod trace;
mod world;

use crate::core::types::Offset;
use check::Broken;
pub use coverage::Coverage;
use trace::Trace;
use world::World;

/// Milliseconds after the last fault within which a leader must be elected and everything committed.
const RECOVERY: i64 = 4000;

/// Milliseconds after that in which the leader must stay and take records.
const CALM: i64 = 1500;

/// What a seed came to.
#[derive(Debug)]
pub struct Run {
    /// The invariant that broke, and how; nothing if all held.
    pub broken: Option<Broken>,
    /// What happened.
    pub coverage: Coverage,
    /// The timeline, if it was asked for.
    pub lines: Vec<String>,
    /// Virtual milliseconds.
    pub millis: i64,
    /// How many events happened.
    pub events: u64,
}

/// Runs a seed. With `traced` it keeps a timeline.
pub fn run(seed: u64, traced: bool) -> Run {
    let mut world = World::new(seed, if traced { Trace::kept() } else { Trace::default() });
    world.trace.say(0, || format!("seed {seed}"));
    let plan = world.plan.clone();
    world.trace.say(0, || format!("{plan:?}"));
    let outcome = live(&mut world);
    let millis = world.now;
    if let Err((name, what)) = &outcome {
        world.trace.say(millis, || format!("BROKEN: {name}: {what}"));
    }
    Run { broken: outcome.err(), coverage: world.coverage, lines: world.trace.lines().to_vec(), millis, events: world.events }
}

fn live(world: &mut World) -> Result<(), Broken> {
    let healed = world.plan.heal_at;
    world.run_until(healed + RECOVERY)?;
    let leader = world.nodes.iter().find(|node| node.leads()).map(|node| (node.id(), node.announced));
    if leader.is_none() {
        return Err(("a leader is elected", format!("nobody leads {RECOVERY} ms after the last fault")));
    }
    world.run_until(healed + RECOVERY + CALM)?;
    // Nobody gives it records any more: all that it has must be committed.
    world.busy = false;
    let end = world.now;
    world.run_until(end + CALM)?;
    world.is_well()?;
    let now = world.nodes.iter().find(|node| node.leads()).map(|node| (node.id(), node.announced));
    if now != leader {
        return Err(("a leader that nothing disturbs stays", format!("{leader:?} became {now:?}")));
    }
    if world.checks.agreed_end() == Offset(0) {
        return Err(("everything is committed everywhere", "nothing was".into()));
    }
    unanswered(world)
}

/// Every request is answered, unless its process died.
fn unanswered(world: &World) -> Result<(), Broken> {
    let patience = world.plan.timing.fetch_wait + 100;
    let runs = |open: &world::Open| world.nodes[open.at.0].incarnation == open.at.1;
    match world.open.values().find(|open| runs(open) && world.now - open.since > patience) {
        Some(open) => Err(("each request is answered once", format!("not answered: {open:?}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
use tests::forgets_votes;

/// Whether disks forget votes: a known bug that only tests switch on.
#[cfg(not(test))]
fn forgets_votes() -> bool {
    false
}
