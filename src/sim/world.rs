//! All nodes, the network between them, one clock and one source of chance: a seed gives the same run every time.

use super::check::{Broken, Checks};
use super::coverage::Coverage;
use super::net::Network;
use super::node::Node;
use super::scenario::Plan;
use super::trace::Trace;
use crate::core::chance::{Chance, Seeded};
use crate::core::quorum::message::{Request, Response, SendFailed, Serial, Ticket};
use crate::core::quorum::{Config, Effect};
use crate::core::types::{BrokerId, Epoch, Id, Offset};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What happens at a time.
#[derive(Debug, Clone)]
pub enum Event {
    /// A node's timer rings.
    Tick { node: usize, incarnation: u64 },
    /// A request arrives.
    Arrive { from: Origin, to: usize, request: Request },
    /// An answer arrives, or that there is none.
    Return { to: Origin, from: BrokerId, outcome: Result<Response, SendFailed> },
    /// A flush is done.
    Flushed { node: usize, incarnation: u64, upto: Offset, generation: u64 },
    /// A connection to a peer closed.
    Closed { node: usize, incarnation: u64, peer: BrokerId },
    /// A process starts.
    Start { node: usize },
    /// A node that stops in order is gone, if nobody needs it or it has waited long enough.
    Gone { node: usize, incarnation: u64, deadline: i64 },
    /// Somebody has records for the leader.
    Client,
    /// Something breaks.
    Fault,
    /// Nothing breaks any more.
    Heal,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The node,
    pub node: usize,
    /// its process,
    pub incarnation: u64,
    /// and its request.
    pub serial: Serial,
}

/// A request that a node has not answered.
#[derive(Debug)]
pub struct Open {
    /// Who asked.
    pub from: Origin,
    /// Who is to answer, and which of its processes.
    pub at: (usize, u64),
    /// Whose real vote it wants.
    pub vote_for: Option<(BrokerId, Epoch)>,
    /// When it came.
    pub since: i64,
    /// Its connection broke: nobody hears the answer.
    pub is_lost: bool,
}

#[derive(Debug)]
struct Due(i64, u64, Event);

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// See the module.
pub struct World {
    /// Milliseconds since the beginning.
    pub now: i64,
    /// The nodes; voters first, ids from 1.
    pub nodes: Vec<Node>,
    /// How many of them vote.
    pub voters: usize,
    /// What is between them.
    pub net: Network,
    /// What must hold.
    pub checks: Checks,
    /// What happened.
    pub coverage: Coverage,
    /// What to tell of it.
    pub trace: Trace,
    /// How this run goes wrong.
    pub plan: Plan,
    /// Randomness of everything but the nodes.
    pub chance: Seeded,
    /// Requests that wait for their answer.
    pub open: BTreeMap<Ticket, Open>,
    /// Whether things still break.
    pub faulty: bool,
    /// Whether leaders are still given records.
    pub busy: bool,
    /// Events so far.
    pub events: u64,
    /// The content of the next batch.
    pub next_value: u64,
    queue: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    tickets: u64,
}

impl World {
    /// The world of a seed, before anything happens.
    pub fn new(seed: u64, trace: Trace) -> World {
        let mut chance = Seeded(seed ^ 0x5eed_0000_0000_0000);
        chance.bits();
        let plan = Plan::new(&mut chance);
        let voters: Vec<BrokerId> = (1..=plan.voters as i32).map(BrokerId).collect();
        let node = |at: usize| {
            let me = BrokerId(at as i32 + 1);
            let config = Config { me, directory: Id(1000 + at as u128), voters: voters.clone(), timing: plan.timing };
            Node::new(config, plan.old == Some(at), Seeded(seed.wrapping_mul(64).wrapping_add(at as u64)))
        };
        let nodes = (0..plan.voters + plan.observers).map(node).collect();
        let net = Network::new(&mut chance);
        let mut world = World {
            now: 0,
            nodes,
            voters: plan.voters,
            net,
            checks: Checks::default(),
            coverage: Coverage::default(),
            trace,
            plan,
            chance,
            open: BTreeMap::new(),
            faulty: true,
            busy: true,
            events: 0,
            next_value: 1,
            queue: BinaryHeap::new(),
            sequence: 0,
            tickets: 0,
        };
        for node in 0..world.nodes.len() {
            let at = world.chance.below(50) as i64;
            world.at(at, Event::Start { node });
        }
        world.at(10, Event::Client);
        world.at(300, Event::Fault);
        world.at(world.plan.heal_at, Event::Heal);
        world
    }

    /// Something is to happen, `after` milliseconds from now.
    pub fn at(&mut self, after: i64, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse(Due(self.now + after.max(0), self.sequence, event)));
    }

    /// Lets everything happen that is due up to `end`.
    pub fn run_until(&mut self, end: i64) -> Result<(), Broken> {
        while self.queue.peek().is_some_and(|Reverse(Due(at, ..))| *at <= end) {
            let Some(Reverse(Due(at, _, event))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            self.events += 1;
            self.happen(event)?;
        }
        self.now = end;
        Ok(())
    }

    /// The node an event is for, if it stands still: the event waits for it.
    fn is_paused(&self, event: &Event) -> Option<i64> {
        let node = match event {
            Event::Tick { node, .. } | Event::Flushed { node, .. } | Event::Closed { node, .. } => *node,
            Event::Arrive { to, .. } => *to,
            Event::Return { to, .. } => to.node,
            _ => return None,
        };
        let until = self.nodes[node].paused_until;
        (until > self.now).then_some(until)
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        if let Some(until) = self.is_paused(&event) {
            self.at(until - self.now, event);
            return Ok(());
        }
        let now = self.now;
        match event {
            Event::Tick { node, incarnation } => {
                // A timer that was set anew since, or that has rung, rings for nothing.
                if self.nodes[node].incarnation != incarnation || self.nodes[node].tick_at.is_none_or(|at| at > now) {
                    return Ok(());
                }
                self.nodes[node].tick_at = None;
                let fx = self.nodes[node].step(now, |quorum, cx| quorum.tick(cx));
                self.perform(node, fx)
            }
            Event::Arrive { from, to, request } => self.arrive(from, to, request),
            Event::Return { to, from, outcome } => {
                if self.nodes[to.node].incarnation != to.incarnation || !self.nodes[to.node].is_up() {
                    return Ok(());
                }
                self.trace.returned(now, &self.nodes[to.node], from, &outcome);
                let fx = self.nodes[to.node].step(now, |quorum, cx| quorum.response(from, to.serial, outcome, cx));
                self.perform(to.node, fx)
            }
            Event::Flushed { node, incarnation, upto, generation } => {
                let target = &mut self.nodes[node];
                if target.incarnation != incarnation || !target.is_up() {
                    return Ok(());
                }
                target.disk.flushed(upto, generation);
                let fx = target.step(now, |quorum, cx| quorum.flushed(upto, generation, cx));
                self.perform(node, fx)
            }
            Event::Closed { node, incarnation, peer } => {
                if self.nodes[node].incarnation != incarnation {
                    return Ok(());
                }
                self.coverage.hit("connection closed");
                let fx = self.nodes[node].step(now, |quorum, cx| quorum.disconnected(peer, cx));
                self.perform(node, fx)
            }
            Event::Start { node } => self.start(node),
            Event::Gone { node, incarnation, deadline } => {
                self.gone(node, incarnation, deadline);
                Ok(())
            }
            Event::Client => self.client(),
            Event::Fault => self.fault(),
            Event::Heal => self.heal(),
        }
    }

    /// A process starts, unless it runs.
    pub fn start(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].is_up() {
            return Ok(());
        }
        self.trace
            .say(self.now, || format!("n{} starts, log [{}, {})", node + 1, self.nodes[node].disk.start.0, self.nodes[node].disk.end.0));
        let fx = self.nodes[node].start(self.now);
        self.perform(node, fx)
    }

    fn arrive(&mut self, from: Origin, to: usize, request: Request) -> Result<(), Broken> {
        let sender = self.nodes[from.node].id();
        if !self.net.connects(sender, self.nodes[to].id()) {
            self.coverage.hit("message over a cut");
            return Ok(());
        }
        if !self.nodes[to].is_up() {
            self.fail(from, to, SendFailed::Disconnected);
            return Ok(());
        }
        self.trace.arrived(self.now, &self.nodes[to], sender, &request);
        let mut vote_for = None;
        if let Request::Vote(vote) = &request {
            if vote.pre_vote && self.nodes[to].is_old {
                self.coverage.hit("peer without pre-vote");
                self.fail(from, to, SendFailed::Unsupported);
                return Ok(());
            }
            vote_for = (!vote.pre_vote).then_some((vote.candidate, vote.epoch));
            if vote.pre_vote {
                self.coverage.hit("pre-vote asked");
            }
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.open.insert(ticket, Open { from, at: (to, self.nodes[to].incarnation), vote_for, since: self.now, is_lost: false });
        let fx = self.nodes[to].step(self.now, |quorum, cx| quorum.request(ticket, request, cx));
        self.perform(to, fx)
    }

    /// The sender learns that there will be no answer, or waits in vain.
    pub fn fail(&mut self, from: Origin, to: usize, why: SendFailed) {
        if why == SendFailed::Unsupported || self.chance.below(4) > 0 {
            let delay = self.net.delay(&mut self.chance);
            let peer = self.nodes[to].id();
            self.at(delay, Event::Return { to: from, from: peer, outcome: Err(why) });
        }
    }

    /// The node's next timer is set.
    pub fn wind(&mut self, node: usize) {
        let Some(at) = self.nodes[node].next_tick() else { return };
        let at = at.max(self.now);
        if self.nodes[node].is_up() && self.nodes[node].tick_at.is_none_or(|known| known > at || known < self.now) {
            self.nodes[node].tick_at = Some(at);
            let incarnation = self.nodes[node].incarnation;
            self.at(at - self.now, Event::Tick { node, incarnation });
        }
    }

    /// Performs what the rules of a node want, in order; then winds its timer.
    pub fn perform(&mut self, node: usize, fx: Vec<Effect>) -> Result<(), Broken> {
        let incarnation = self.nodes[node].incarnation;
        for effect in fx {
            if self.faulty && self.plan.crash_inside > 0 && self.chance.below(self.plan.crash_inside) == 0 {
                self.coverage.hit("crash inside a step");
                self.crash(node, true);
            }
            if self.nodes[node].incarnation != incarnation || !self.nodes[node].is_up() {
                return Ok(());
            }
            self.trace.effect(self.now, &self.nodes[node], &effect);
            self.effect(node, effect)?;
        }
        self.wind(node);
        Ok(())
    }
}
