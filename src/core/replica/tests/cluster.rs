//! Three replicas, a controller that elects cleanly, and a network that delays, loses and reorders: random histories from a seed.
//!
//! After each step: what was ever committed is where it was, in the log of every leader of the newest epoch; logs agree below their high
//! watermarks, and every member of the ISR holds what is committed; no high watermark goes back within an epoch. At the end the faults
//! stop, and everything must come together. Where unclean elections are allowed only that is asked.

use super::*;
use crate::core::chance::{Chance, Seeded};
use crate::core::controller::Partition;
use crate::core::controller::records::{LeaderRecovery, PartitionChange};
use crate::core::election;
use crate::core::epochs::EpochCache;
use crate::core::types::{Id, TopicPartition};

const AT: TopicPartition = TopicPartition { topic: Id(1), partition: 0 };
const NODES: usize = 3;

/// A record: the epoch it was appended in, and a number of its own.
type Record = (Epoch, u64);

#[derive(Clone)]
enum Role {
    Leader(Box<Leader>),
    Follower { leader: BrokerId, epoch: Epoch, cut: bool },
    Waiting,
}

struct Node {
    id: BrokerId,
    alive: bool,
    broker_epoch: BrokerEpoch,
    log: Vec<Record>,
    epochs: EpochCache,
    high_watermark: Offset,
    role: Role,
    /// The partition epoch it has acted on.
    seen: Epoch,
    /// The fetch that waits for its answer.
    asked: Option<u64>,
}

enum Message {
    Fetch { to: usize, from: usize, number: u64, epoch: Epoch, offset: Offset, last_epoch: Epoch, broker_epoch: BrokerEpoch },
    Fetched { to: usize, number: u64, epoch: Epoch, offset: Offset, answer: Answer },
    Propose { from: usize, proposal: Proposal, broker_epoch: BrokerEpoch },
    Proposed { to: usize, proposal: Proposal, broker_epoch: BrokerEpoch, answer: Answered },
}

enum Answer {
    Records(Vec<Record>, Offset),
    Diverging(Epoch, Offset),
    Refused,
}

struct Cluster {
    chance: Seeded,
    now: i64,
    nodes: Vec<Node>,
    partition: Partition,
    fenced: Vec<bool>,
    messages: Vec<Message>,
    next: u64,
    next_broker_epoch: i64,
    min_insync: usize,
    kind: election::Kind,
    /// How likely each kind of step is in this history: each seed has its own mixture, or rare combinations would never come up.
    weights: [usize; 11],
    /// What some leader's high watermark has passed.
    committed: Vec<Record>,
    /// How often what was worth testing happened: elections, truncations, ISR changes.
    reached: [usize; 3],
}

impl Cluster {
    fn new(seed: u64, kind: election::Kind) -> Cluster {
        let mut chance = Seeded(seed);
        let min_insync = 1 + chance.below(2);
        let weights = [12, 25, 40, 12, 2, 2, 3, 2, 3, 2, 2].map(|usual| usual * [1, 1, 2, 4][chance.below(4)]);
        let all = ids(&[0, 1, 2]);
        let partition = Partition {
            replicas: all.clone(),
            directories: vec![Id(1); NODES],
            isr: all,
            removing_replicas: vec![],
            adding_replicas: vec![],
            elr: vec![],
            last_known_elr: vec![],
            leader: BrokerId(0),
            leader_epoch: Epoch(0),
            partition_epoch: Epoch(0),
            leader_recovery: LeaderRecovery::Recovered,
        };
        let node = |id: i32| Node {
            id: BrokerId(id),
            alive: true,
            broker_epoch: BrokerEpoch(i64::from(id)),
            log: vec![],
            epochs: EpochCache::default(),
            high_watermark: Offset(0),
            role: Role::Waiting,
            seen: Epoch::NONE,
            asked: None,
        };
        Cluster {
            chance,
            now: 0,
            nodes: (0..NODES as i32).map(node).collect(),
            partition,
            fenced: vec![false; NODES],
            messages: vec![],
            next: 0,
            next_broker_epoch: 10,
            min_insync,
            kind,
            weights,
            committed: vec![],
            reached: [0; 3],
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.chance.below(bound)
    }

    /// The controller writes a change.
    fn write(&mut self, change: PartitionChange) {
        let partition = &mut self.partition;
        if let Some(isr) = change.isr {
            self.reached[2] += 1;
            partition.isr = isr;
        }
        if let Some(leader) = change.leader {
            self.reached[0] += usize::from(leader != BrokerId::NONE);
            partition.leader = leader;
            partition.leader_epoch.0 += 1;
        }
        partition.partition_epoch.0 += 1;
    }

    fn elect(&mut self, isr: Vec<BrokerId>) {
        let fenced = self.fenced.clone();
        let known = election::Known { may_lead: |id: BrokerId| !fenced[id.0 as usize], claim: |_| None, directory: |_| Id::ONE };
        let rules = election::Rules { min_isr: 1, elr: false };
        if let Some(change) = election::Proposal::new(AT, &self.partition, rules, self.kind).isr(isr).decide(&known).change {
            self.write(change);
        }
    }

    fn fence(&mut self, at: usize) {
        if !std::mem::replace(&mut self.fenced[at], true) {
            let isr = self.partition.isr.iter().copied().filter(|id| id.0 as usize != at).collect();
            self.elect(isr);
        }
    }

    fn crash(&mut self, at: usize) {
        let back = self.below(4) as i64;
        let node = &mut self.nodes[at];
        node.alive = false;
        node.role = Role::Waiting;
        // The checkpoint is some seconds old.
        node.high_watermark = Offset((node.high_watermark.0 - back).max(0));
    }

    fn start(&mut self, at: usize) {
        // A registration of a new incarnation takes the old one out first.
        self.fence(at);
        self.next_broker_epoch += 1;
        let node = &mut self.nodes[at];
        (node.alive, node.seen, node.asked) = (true, Epoch::NONE, None);
        node.broker_epoch = BrokerEpoch(self.next_broker_epoch);
        self.unfence(at);
    }

    fn unfence(&mut self, at: usize) {
        self.fenced[at] = false;
        self.elect(self.partition.isr.clone());
    }

    /// Metadata reaches a node.
    fn publish(&mut self, at: usize) {
        let partition = self.partition.clone();
        let rules = Rules { min_insync: self.min_insync, lag_max: LAG };
        let view = View { partition_epoch: partition.partition_epoch, replicas: partition.replicas.clone(), isr: partition.isr.clone() };
        let registered: Vec<_> = (0..NODES).map(|at| (!self.fenced[at]).then_some(self.nodes[at].broker_epoch)).collect();
        let (now, node) = (Millis(self.now), &mut self.nodes[at]);
        if !node.alive {
            return;
        }
        if partition.partition_epoch > node.seen {
            node.seen = partition.partition_epoch;
            let epoch = partition.leader_epoch;
            match &mut node.role {
                Role::Leader(leader) if partition.leader == node.id && leader.epoch() == epoch => leader.decided(view, now),
                Role::Follower { leader, epoch: known, .. } if *leader == partition.leader && *known == epoch => {}
                role if partition.leader == node.id => {
                    let (log_end, high_watermark) = (Offset(node.log.len() as i64), node.high_watermark);
                    node.epochs.assign(epoch, log_end);
                    let begin = Begin { me: node.id, epoch, view, rules, log_end, high_watermark };
                    *role = Role::Leader(Box::new(Leader::new(begin, now)));
                }
                role if partition.leader == BrokerId::NONE => *role = Role::Waiting,
                role => {
                    *role = Role::Follower { leader: partition.leader, epoch, cut: false };
                    node.asked = None;
                }
            }
        }
        if let Role::Leader(leader) = &mut node.role {
            leader.brokers(|id| registered[id.0 as usize]);
        }
    }

    fn send_fetch(&mut self, at: usize) {
        self.next += 1;
        let (number, node) = (self.next, &mut self.nodes[at]);
        let end = Offset(node.log.len() as i64);
        let Role::Follower { leader, epoch, cut } = &mut node.role else { return };
        if !node.alive {
            return;
        }
        let (to, epoch) = (leader.0 as usize, *epoch);
        if !std::mem::replace(cut, true)
            && let Some(upto) = follower::cut_before_following(&node.epochs, end, node.high_watermark)
        {
            node.truncate(upto);
        }
        node.asked = Some(number);
        let offset = Offset(node.log.len() as i64);
        let last_epoch = node.epochs.latest().unwrap_or(Epoch::NONE);
        let broker_epoch = node.broker_epoch;
        self.messages.push(Message::Fetch { to, from: at, number, epoch, offset, last_epoch, broker_epoch });
    }

    fn deliver(&mut self, message: Message) {
        let now = Millis(self.now);
        match message {
            Message::Fetch { to, from, number, epoch, offset, last_epoch, broker_epoch } => {
                let sender = self.nodes[from].id;
                let max = 1 + self.below(4);
                let node = &mut self.nodes[to];
                let Role::Leader(leader) = &mut node.role else { return };
                let mut proposal = None;
                let answer = if !node.alive || leader.epoch() != epoch {
                    Answer::Refused
                } else {
                    let end = Offset(node.log.len() as i64);
                    let found = node.epochs.end_offset_for(last_epoch, end);
                    match found {
                        _ if last_epoch == Epoch::NONE && offset == Offset(0) => {}
                        Some((epoch, upto)) if epoch == last_epoch && upto >= offset => {}
                        Some((epoch, upto)) => {
                            let answer = Answer::Diverging(epoch, upto);
                            return self.messages.push(Message::Fetched { to: from, number, epoch: leader.epoch(), offset, answer });
                        }
                        None => panic!("a follower's epoch above the leader's"),
                    }
                    let fetch = FollowerFetch { replica: sender, broker_epoch, from: offset, log_start: Offset(0), leader_end: end };
                    match leader.fetched(fetch, now) {
                        Err(_) => Answer::Refused,
                        Ok(proposed) => {
                            proposal = proposed;
                            let from = offset.0 as usize;
                            let upto = (from + max).min(node.log.len());
                            Answer::Records(node.log[from..upto].to_vec(), leader.high_watermark())
                        }
                    }
                };
                self.messages.push(Message::Fetched { to: from, number, epoch, offset, answer });
                self.propose(to, proposal);
            }
            Message::Fetched { to, number, epoch, offset, answer } => {
                let node = &mut self.nodes[to];
                let Role::Follower { epoch: own, .. } = node.role else { return };
                if !node.alive || node.asked != Some(number) || own != epoch || offset.0 as usize != node.log.len() {
                    return;
                }
                node.asked = None;
                match answer {
                    Answer::Refused => {}
                    Answer::Diverging(epoch, end) => {
                        let upto = follower::cut_at_divergence(&node.epochs, (epoch, end), offset);
                        node.truncate(upto);
                        self.reached[1] += 1;
                    }
                    Answer::Records(records, high_watermark) => {
                        for record in records {
                            node.epochs.assign(record.0, Offset(node.log.len() as i64));
                            node.log.push(record);
                        }
                        let end = Offset(node.log.len() as i64);
                        node.high_watermark = follower::high_watermark(node.high_watermark, high_watermark, end);
                    }
                }
            }
            Message::Propose { from, proposal, broker_epoch } => {
                let answer = self.alter(from, &proposal, broker_epoch);
                self.messages.push(Message::Proposed { to: from, proposal, broker_epoch, answer });
            }
            Message::Proposed { to, proposal, broker_epoch, answer } => {
                if self.nodes[to].broker_epoch == broker_epoch
                    && let Role::Leader(leader) = &mut self.nodes[to].role
                {
                    let again = leader.answered(proposal, answer, now);
                    self.propose(to, again);
                }
            }
        }
    }

    fn propose(&mut self, from: usize, proposal: Option<Proposal>) {
        let broker_epoch = self.nodes[from].broker_epoch;
        self.messages.extend(proposal.map(|proposal| Message::Propose { from, proposal, broker_epoch }));
    }

    /// AlterPartition, as the controller decides on it.
    fn alter(&mut self, from: usize, proposal: &Proposal, broker_epoch: BrokerEpoch) -> Answered {
        let partition = &self.partition;
        let current = proposal.epoch == partition.leader_epoch && proposal.partition_epoch == partition.partition_epoch;
        if broker_epoch != self.nodes[from].broker_epoch || !current || partition.leader != self.nodes[from].id {
            return Answered::Refused(ProposalRefused::Outdated);
        }
        let eligible = |(id, epoch): &(BrokerId, BrokerEpoch)| {
            let at = id.0 as usize;
            !self.fenced[at] && (*epoch == BrokerEpoch::NONE || *epoch == self.nodes[at].broker_epoch)
        };
        if !proposal.isr.iter().filter(|(id, _)| !partition.isr.contains(id)).all(eligible) {
            return Answered::Refused(ProposalRefused::Dropped);
        }
        let isr: Vec<BrokerId> = proposal.isr.iter().map(|(id, _)| *id).collect();
        self.write(PartitionChange { isr: Some(isr.clone()), ..PartitionChange::new(AT.topic, AT.partition) });
        Answered::Decided { epoch: self.partition.leader_epoch, partition_epoch: self.partition.partition_epoch, isr }
    }

    fn append(&mut self, at: usize) {
        self.next += 1;
        let (number, now, node) = (self.next, Millis(self.now), &mut self.nodes[at]);
        if let Role::Leader(leader) = &mut node.role {
            node.log.push((leader.epoch(), number));
            leader.appended(Offset(node.log.len() as i64), i64::MAX, now);
        }
    }

    fn shrink(&mut self, at: usize) {
        let now = Millis(self.now);
        if let Role::Leader(leader) = &mut self.nodes[at].role {
            let proposal = leader.shrink(now);
            self.propose(at, proposal);
        }
    }

    fn deliver_one(&mut self) {
        if !self.messages.is_empty() {
            let at = self.below(self.messages.len());
            let message = self.messages.swap_remove(at);
            self.deliver(message);
        }
    }

    fn step(&mut self) {
        let at = self.below(NODES);
        let mut left = self.below(self.weights.iter().sum());
        let action = self.weights.iter().position(|weight| left.checked_sub(*weight).map(|rest| left = rest).is_none());
        match action.expect("an action has the weight that is left") {
            0 => self.append(at),
            1 => self.send_fetch(at),
            2 => self.deliver_one(),
            3 => self.publish(at),
            4 if !self.messages.is_empty() => {
                // Proposals are asked again until answered; a fetch that is lost is asked anew.
                let lost = self.below(self.messages.len());
                if matches!(self.messages[lost], Message::Fetch { .. } | Message::Fetched { .. }) {
                    self.messages.swap_remove(lost);
                }
            }
            5 if self.nodes[at].alive => self.crash(at),
            6 if !self.nodes[at].alive => self.start(at),
            7 => self.fence(at),
            8 if self.nodes[at].alive && self.fenced[at] => self.unfence(at),
            9 => self.now += 11_000,
            10 => self.shrink(at),
            _ => {}
        }
        self.check();
    }

    fn check(&mut self) {
        let clean = self.kind != election::Kind::Unclean;
        for at in 0..NODES {
            let node = &mut self.nodes[at];
            if let Role::Leader(leader) = &node.role {
                assert!(leader.high_watermark() >= node.high_watermark, "the high watermark of {at} went back");
                node.high_watermark = leader.high_watermark();
                if clean {
                    let upto = node.high_watermark.0 as usize;
                    self.committed.extend(node.log.iter().take(upto).skip(self.committed.len()));
                }
            }
        }
        for node in &self.nodes {
            let id = node.id.0;
            let leads = matches!(&node.role, Role::Leader(leader) if leader.epoch() == self.partition.leader_epoch);
            let below = if leads || self.partition.isr.contains(&node.id) { usize::MAX } else { node.high_watermark.0 as usize };
            let below = below.min(self.committed.len());
            assert!(node.log.len() >= below, "{id} lacks what was committed");
            assert_eq!(node.log[..below], self.committed[..below], "{id} has other records than were committed");
        }
    }

    /// No more faults: all that lives comes together.
    fn settle(&mut self) {
        for at in 0..NODES {
            if !self.nodes[at].alive {
                self.start(at);
            }
            self.unfence(at);
        }
        for _ in 0..400 {
            (0..NODES).for_each(|at| self.publish(at));
            (0..NODES).for_each(|at| self.send_fetch(at));
            while !self.messages.is_empty() {
                self.deliver_one();
            }
            self.check();
        }
        let end = Offset(self.nodes[0].log.len() as i64);
        assert_eq!(self.partition.isr.len(), NODES, "everybody is in sync again");
        for node in &self.nodes {
            assert_eq!((&node.log, node.high_watermark), (&self.nodes[0].log, end), "all logs are one");
        }
    }
}

impl Node {
    fn truncate(&mut self, upto: Offset) {
        self.log.truncate(upto.0 as usize);
        self.epochs.truncate_to(upto);
        self.high_watermark = self.high_watermark.min(upto);
    }
}

/// Plays histories, and returns how often things happened in all of them.
fn play(kind: election::Kind, seeds: u64) -> [usize; 3] {
    let mut reached = [0; 3];
    for seed in 0..seeds {
        let outcome = std::panic::catch_unwind(|| {
            let mut cluster = Cluster::new(seed, kind);
            (0..NODES).for_each(|at| cluster.publish(at));
            (0..600).for_each(|_| cluster.step());
            cluster.settle();
            cluster.reached
        });
        let counted = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        reached.iter_mut().zip(counted).for_each(|(all, one)| *all += one);
    }
    reached
}

#[test]
fn nothing_committed_is_lost_to_a_clean_election() {
    let reached = play(election::Kind::Online, 400);
    assert!(reached.iter().all(|count| *count > 200), "too little happened: {reached:?}");
}

#[test]
fn logs_come_together_after_unclean_elections() {
    let reached = play(election::Kind::Unclean, 300);
    assert!(reached.iter().all(|count| *count > 200), "too little happened: {reached:?}");
}
