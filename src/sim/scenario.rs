//! How a run goes wrong: what a seed is like, what breaks when, and what clients do meanwhile.

use super::check::Broken;
use super::disk::Batch;
use super::net::happens;
use super::world::{Event, World};
use crate::core::chance::Chance;
use crate::core::quorum::{RoleName, Timing};
use crate::core::types::BrokerId;

/// What a seed is like. Odds are one in so many; 0 is never.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many nodes vote.
    pub voters: usize,
    /// How many only follow.
    pub observers: usize,
    /// A node that knows nothing of pre-votes.
    pub old: Option<usize>,
    /// Times of all nodes.
    pub timing: Timing,
    /// When nothing breaks any more.
    pub heal_at: i64,
    /// Mean milliseconds between two faults.
    pub fault_every: usize,
    /// Odds of a crash before each effect.
    pub crash_inside: usize,
    /// Odds that a flush takes long.
    pub slow_disk: usize,
    /// Odds of a snapshot with each client's request.
    pub snapshots: usize,
    /// Mean milliseconds between two clients' requests.
    pub client_every: usize,
}

/// Kafka's times, three times as fast; few bytes at a time, so that what takes several steps does.
const TIMING: Timing = Timing {
    election: 300,
    fetch: 600,
    request: 600,
    backoff: 10,
    succession: 300,
    grace: 50,
    fetch_wait: 150,
    fetch_bytes: 100,
    snapshot_bytes: 24,
};

impl Plan {
    /// A plan of chance: five voters and three observers in most seeds.
    pub fn new(chance: &mut dyn Chance) -> Plan {
        let usual = chance.below(4) > 0;
        let voters = if usual { 5 } else { 1 + chance.below(5) };
        let observers = if usual { 3 } else { chance.below(4) };
        Plan {
            voters,
            observers,
            old: (chance.below(5) == 0).then(|| chance.below(voters)),
            timing: Timing { grace: [0, 50, 50][chance.below(3)], ..TIMING },
            heal_at: 2000 + chance.below(6000) as i64,
            fault_every: 60 + chance.below(800),
            crash_inside: [0, 0, 4000, 400][chance.below(4)],
            slow_disk: [0, 200, 20][chance.below(3)],
            snapshots: [0, 40, 8][chance.below(3)],
            client_every: 20 + chance.below(200),
        }
    }
}

impl World {
    /// Whoever leads is given records; now and then somebody makes a snapshot.
    pub(super) fn client(&mut self) -> Result<(), Broken> {
        if !self.busy {
            return Ok(());
        }
        let after = 1 + self.chance.below(2 * self.plan.client_every) as i64;
        self.at(after, Event::Client);
        if happens(self.plan.snapshots, &mut self.chance) {
            let node = self.chance.below(self.nodes.len());
            self.snapshot(node)?;
        }
        // A leader that has been deposed and does not know yet gets some, too: they must vanish or be committed, not both.
        let leaders: Vec<usize> =
            (0..self.voters).filter(|node| self.nodes[*node].leads() && self.nodes[*node].paused_until <= self.now).collect();
        if leaders.is_empty() {
            return Ok(());
        }
        let node = leaders[self.chance.below(leaders.len())];
        self.give_records(node)
    }

    /// A leader is given a batch.
    pub fn give_records(&mut self, node: usize) -> Result<(), Broken> {
        let count = 1 + self.chance.below(3) as i64;
        let mut taken = None;
        let fx = self.nodes[node].step(self.now, |quorum, cx| taken = quorum.append(count, cx).ok());
        let Some((epoch, base)) = taken else { return Ok(()) };
        let batch = Batch { base, last: base + (count - 1), epoch, value: self.next_value };
        self.next_value += 1;
        self.append(node, batch)?;
        self.perform(node, fx)
    }

    fn snapshot(&mut self, node: usize) -> Result<(), Broken> {
        if !self.nodes[node].is_up() {
            return Ok(());
        }
        if let Some(id) = self.nodes[node].make_snapshot() {
            self.coverage.hit("snapshot made");
            let hash = self.nodes[node].hash;
            self.checks.has_snapshot(self.nodes[node].id(), id, hash)?;
            if self.chance.below(3) > 0 {
                let all: Vec<_> = self.nodes[node].disk.snapshots.keys().copied().collect();
                let id = all[self.chance.below(all.len())];
                if id.end > self.nodes[node].disk.start {
                    self.coverage.hit("log start moved");
                    self.nodes[node].forget_below(id);
                }
            }
        }
        Ok(())
    }

    /// Something breaks.
    pub(super) fn fault(&mut self) -> Result<(), Broken> {
        if !self.faulty {
            return Ok(());
        }
        let after = 1 + self.chance.below(2 * self.plan.fault_every) as i64;
        self.at(after, Event::Fault);
        let node = self.victim();
        let me = self.nodes[node].id();
        let other = BrokerId(1 + self.chance.below(self.nodes.len()) as i32);
        match self.chance.below(14) {
            0 | 1 => self.crash(node, true),
            2 | 3 => self.crash(node, false),
            4 => self.stop_in_order(node)?,
            5 => {
                self.coverage.hit("pause");
                self.nodes[node].paused_until = self.now + 1 + self.chance.below(2500) as i64;
                self.trace.say(self.now, || format!("n{} pauses", me.0));
            }
            6 => {
                self.coverage.hit("clock jump");
                self.nodes[node].ahead += self.chance.below(2000) as i64;
                self.wind(node);
            }
            7 => {
                self.coverage.hit("one-way cut");
                self.net.cut(me, other);
                self.trace.say(self.now, || format!("cut n{} -> n{}", me.0, other.0));
            }
            8 => self.isolate(me),
            9 => self.split(),
            10 | 11 => {
                self.net.mend();
                self.trace.say(self.now, || "cuts are mended".into());
            }
            12 => self.break_connections(node),
            _ => {
                let fx = self.nodes[node].step(self.now, |quorum, cx| quorum.resign(cx));
                self.perform(node, fx)?;
            }
        }
        Ok(())
    }

    /// The leader in half of all cases, if there is one.
    fn victim(&mut self) -> usize {
        let leader = (0..self.voters).find(|node| self.nodes[*node].leads());
        match leader {
            Some(node) if self.chance.below(2) == 0 => node,
            _ => self.chance.below(self.nodes.len()),
        }
    }

    /// Nothing comes from a node, or to it, or both.
    fn isolate(&mut self, node: BrokerId) {
        self.coverage.hit("partition");
        let how = self.chance.below(3);
        self.trace.say(self.now, || format!("n{} is cut off ({})", node.0, ["both ways", "unheard", "deaf"][how]));
        for other in self.nodes.iter().map(|node| node.id()).filter(|other| *other != node) {
            if how != 2 {
                self.net.cut(node, other);
            }
            if how != 1 {
                self.net.cut(other, node);
            }
        }
    }

    /// Two halves that do not hear each other, or a bridge between them that hears both.
    fn split(&mut self) {
        self.coverage.hit("partition");
        let side: Vec<usize> = self.nodes.iter().map(|_| self.chance.below(2)).collect();
        let bridge = self.chance.below(2 * self.nodes.len());
        self.trace.say(self.now, || format!("split {side:?}, bridge {}", bridge + 1));
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                if side[from] != side[to] && from != bridge && to != bridge {
                    self.net.cut(self.nodes[from].id(), self.nodes[to].id());
                }
            }
        }
    }

    /// The process dies; by a power cut, or killed.
    pub(super) fn crash(&mut self, node: usize, power: bool) {
        if !self.nodes[node].is_up() {
            return;
        }
        self.trace.say(self.now, || format!("n{} {}", node + 1, if power { "loses power" } else { "is killed" }));
        self.nodes[node].stop();
        if power {
            self.coverage.hit("power cut");
            let lost = self.nodes[node].disk.power_cut(&mut self.chance);
            self.coverage.add("batches lost to a power cut", lost as u64);
        } else {
            self.coverage.hit("process killed");
        }
        self.break_connections(node);
        // Back before anybody has noticed, or long after.
        let longest = [10, 150, 2000][self.chance.below(3)];
        let after = if self.faulty { self.chance.below(longest) as i64 } else { 10 };
        self.at(after, Event::Start { node });
    }

    fn stop_in_order(&mut self, node: usize) -> Result<(), Broken> {
        if !self.nodes[node].is_up() {
            return Ok(());
        }
        self.trace.say(self.now, || format!("n{} is told to stop", node + 1));
        let incarnation = self.nodes[node].incarnation;
        let deadline = self.now + 1500;
        self.at(1, Event::Gone { node, incarnation, deadline });
        let fx = self.nodes[node].step(self.now, |quorum, cx| quorum.stop(cx));
        self.perform(node, fx)
    }

    pub(super) fn gone(&mut self, node: usize, incarnation: u64, deadline: i64) {
        let target = &self.nodes[node];
        if target.incarnation != incarnation || !target.is_up() {
            return;
        }
        let done = target.quorum.as_ref().is_some_and(|quorum| quorum.may_stop());
        if done || self.now >= deadline {
            self.coverage.hit("stopped in order");
            self.crash(node, false);
        } else {
            self.at(20, Event::Gone { node, incarnation, deadline });
        }
    }

    /// Everything works again, and everybody runs.
    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.trace.say(self.now, || "all is well from here on".into());
        self.faulty = false;
        self.net.heal();
        for node in 0..self.nodes.len() {
            self.nodes[node].paused_until = 0;
            self.start(node)?;
        }
        Ok(())
    }

    /// Whether the quorum works: one leader that all follow, and what it was given is committed everywhere.
    pub(super) fn is_well(&self) -> Result<(), Broken> {
        let leaders: Vec<usize> = (0..self.voters).filter(|node| self.nodes[*node].leads()).collect();
        let [leader] = leaders[..] else { return Err(("a leader is elected", format!("leaders: {leaders:?}"))) };
        let end = self.nodes[leader].disk.end;
        for node in &self.nodes {
            let Some(quorum) = &node.quorum else { return Err(("everybody runs", format!("node {}", node.config.me.0))) };
            let follows = quorum.leader() == Some(self.nodes[leader].id());
            if !follows || node.committed != Some(end) || node.disk.end != end || node.hash != self.nodes[leader].hash {
                let role: RoleName = quorum.role();
                return Err((
                    "everything is committed everywhere",
                    format!(
                        "node {} ({role:?}): committed {:?} of {}, log end {}",
                        node.config.me.0, node.committed, end.0, node.disk.end.0
                    ),
                ));
            }
        }
        Ok(())
    }
}
