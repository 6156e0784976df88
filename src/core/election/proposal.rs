//! A change of a partition before it is known who leads then: who is in sync, where the replicas are, what kind of leader is looked for.
//! `decide` elects and makes the record. Kafka calls this a PartitionChangeBuilder.

use std::borrow::Cow;

use super::claims::{Claim, most_complete};
use super::{Kind, Rules, Source, Verdict, WaitsFor};
use crate::core::controller::Partition;
use crate::core::controller::records::{LeaderRecovery, PartitionChange};
use crate::core::types::{BrokerId, DirectoryId, TopicPartition};

type Members<'a> = Cow<'a, [BrokerId]>;

/// What is to become of a partition.
#[derive(Clone)]
pub struct Proposal<'a> {
    at: TopicPartition,
    partition: &'a Partition,
    rules: Rules,
    kind: Kind,
    /// The members that are left, or as their leader wants them.
    isr: Members<'a>,
    replicas: Members<'a>,
    adding: Members<'a>,
    removing: Members<'a>,
    recovery: LeaderRecovery,
    /// Its process ended uncleanly: its log may have lost its end, so it is in no ISR or ELR any more.
    distrusted: Option<BrokerId>,
    /// The directory that a broker reported.
    reported: Option<(BrokerId, DirectoryId)>,
}

/// What is known of the replicas' brokers.
pub struct Known<L, C, D> {
    /// Whether a replica may be given the leadership.
    pub may_lead: L,
    /// What its log holds, if that was asked.
    pub claim: C,
    /// The directory of a replica that is new on a broker.
    pub directory: D,
}

impl<'a> Proposal<'a> {
    /// Leaves everything as it is, but for a leader that may not lead.
    pub fn new(at: TopicPartition, partition: &'a Partition, rules: Rules, kind: Kind) -> Proposal<'a> {
        Proposal {
            at,
            partition,
            rules,
            kind,
            isr: Cow::Borrowed(&partition.isr),
            replicas: Cow::Borrowed(&partition.replicas),
            adding: Cow::Borrowed(&partition.adding_replicas),
            removing: Cow::Borrowed(&partition.removing_replicas),
            recovery: partition.leader_recovery,
            distrusted: None,
            reported: None,
        }
    }

    /// Looking for that kind of leader.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// With this ISR.
    pub fn isr(mut self, isr: Vec<BrokerId>) -> Self {
        self.isr = Cow::Owned(isr);
        self
    }

    /// With this ISR and recovery state, as the leader asks.
    pub fn as_leader_asks(mut self, isr: Vec<BrokerId>, recovery: LeaderRecovery) -> Self {
        self.recovery = recovery;
        self.isr(isr)
    }

    /// With these replicas, of which some are coming and some are going.
    pub fn replicas(mut self, replicas: Vec<BrokerId>, adding: Vec<BrokerId>, removing: Vec<BrokerId>) -> Self {
        (self.replicas, self.adding, self.removing) = (Cow::Owned(replicas), Cow::Owned(adding), Cow::Owned(removing));
        self
    }

    /// Without `broker` in ISR and ELR: it stopped uncleanly.
    pub fn distrusting(mut self, broker: BrokerId) -> Self {
        self.distrusted = Some(broker);
        let left = self.isr.iter().copied().filter(|member| *member != broker).collect();
        self.isr(left)
    }

    /// With the replica on `broker` in that directory.
    pub fn directory(mut self, broker: BrokerId, directory: DirectoryId) -> Self {
        self.reported = Some((broker, directory));
        self
    }

    /// Elects, and says what to write.
    pub fn decide<L, C, D>(mut self, known: &Known<L, C, D>) -> Verdict
    where
        L: Fn(BrokerId) -> bool,
        C: Fn(BrokerId) -> Option<Claim>,
        D: Fn(BrokerId) -> DirectoryId,
    {
        self.complete_reassignment();
        // Without ELR the last member of an ISR stays in it: it is the one to wait for.
        if self.isr.is_empty() && !self.rules.elr {
            self.isr = self.partition.isr.iter().copied().filter(|id| self.replicas.contains(id)).collect();
        }
        let mut eligible = self.eligible();
        let last_known = self.last_known(&eligible);
        let elected = self.elect(&eligible, &last_known, &known.may_lead, &known.claim);
        let (old, mut change) = (self.partition, PartitionChange::new(self.at.topic, self.at.partition));
        let leader = elected.as_ref().map_or(BrokerId::NONE, |(leader, _)| *leader);
        if leader != old.leader {
            change.leader = Some(leader);
        }
        match elected {
            Ok((leader, Source::Eligible)) => {
                eligible.retain(|id| *id != leader);
                self.isr = Cow::Owned(vec![leader]);
            }
            Ok((leader, Source::LastKnown)) => self.isr = Cow::Owned(vec![leader]),
            // Everyone else may hold other records than the new leader: they start over from its log.
            Ok((leader, Source::Outside)) => {
                eligible.clear();
                self.isr = Cow::Owned(vec![leader]);
                self.recovery = LeaderRecovery::Recovering;
            }
            _ => {}
        }
        // A replica that goes must not be mistaken for one when it comes back: its leader gets a new epoch.
        if change.leader.is_none() && !old.replicas.iter().all(|id| self.replicas.contains(id)) {
            change.leader = Some(old.leader);
        }
        if eligible != old.elr {
            change.elr = Some(eligible);
        }
        if *self.isr != *old.isr {
            change.isr = Some(self.isr.to_vec());
        }
        let remembered = if leader == BrokerId::NONE { self.remembered(last_known) } else { Vec::new() };
        if remembered != old.last_known_elr && (self.rules.elr || !old.last_known_elr.is_empty()) {
            change.last_known_elr = Some(remembered);
        }
        if self.recovery != old.leader_recovery {
            change.leader_recovery = Some(self.recovery);
        }
        self.assignment(&mut change, &known.directory);
        let nothing = PartitionChange::new(self.at.topic, self.at.partition);
        Verdict { change: (change != nothing).then_some(change), leader: elected }
    }

    /// A reassignment is complete when all that come are in sync and somebody stays who is. When more go than come, all that stay must
    /// be: the ISR would shrink without need.
    fn complete_reassignment(&mut self) {
        if self.adding.is_empty() && self.removing.is_empty() {
            return;
        }
        let stays = |id: &BrokerId| !self.removing.contains(id);
        let isr: Vec<BrokerId> = self.isr.iter().copied().filter(stays).collect();
        let replicas: Vec<BrokerId> = self.replicas.iter().copied().filter(stays).collect();
        let arrived = |all: &[BrokerId]| all.iter().all(|id| isr.contains(id));
        if isr.is_empty() || !arrived(&self.adding) || self.adding.len() < self.removing.len() && !arrived(&replicas) {
            return;
        }
        (self.isr, self.replicas) = (Cow::Owned(isr), Cow::Owned(replicas));
        (self.adding, self.removing) = (Cow::Owned(Vec::new()), Cow::Owned(Vec::new()));
    }

    /// While fewer than `min.insync.replicas` are in sync, the high watermark stands still. So whoever leaves the ISR then has everything
    /// that was committed, as long as it keeps its log.
    fn eligible(&self) -> Vec<BrokerId> {
        if !self.remembers() {
            return Vec::new();
        }
        let mut all: Vec<BrokerId> = self.had_everything().filter(|id| !self.isr.contains(id) && self.distrusted != Some(*id)).collect();
        all.sort();
        all.dedup();
        all
    }

    /// An ISR that is empty although the feature is off was emptied while it was on.
    fn remembers(&self) -> bool {
        self.isr.is_empty() || self.rules.elr && self.isr.len() < self.rules.min_isr
    }

    fn had_everything(&self) -> impl Iterator<Item = BrokerId> {
        self.partition.elr.iter().chain(&self.partition.isr).copied().filter(|id| self.replicas.contains(id))
    }

    /// Those who had everything that was committed before they stopped uncleanly.
    fn last_known(&self, eligible: &[BrokerId]) -> Vec<BrokerId> {
        if !self.remembers() {
            return Vec::new();
        }
        let trusted = |id: &BrokerId| self.isr.contains(id) || eligible.contains(id);
        let mut all: Vec<BrokerId> =
            self.partition.last_known_elr.iter().copied().filter(|id| !trusted(id) && self.replicas.contains(id)).collect();
        let new = self.had_everything().filter(|id| self.distrusted == Some(*id) && !all.contains(id)).take(1).collect::<Vec<_>>();
        all.extend(new);
        all
    }

    /// What a partition without leader keeps: the leader it had comes first, as Kafka notes it, then those who had everything.
    fn remembered(&self, last_known: Vec<BrokerId>) -> Vec<BrokerId> {
        let mut all = self.partition.last_known_elr.clone();
        if all.is_empty() && self.partition.has_leader() {
            all.push(self.partition.leader);
        }
        all.retain(|id| self.replicas.contains(id));
        all.extend(last_known.into_iter().filter(|id| !self.partition.last_known_elr.contains(id) && *id != self.partition.leader));
        all
    }

    fn elect(
        &self,
        eligible: &[BrokerId],
        last_known: &[BrokerId],
        may_lead: &impl Fn(BrokerId) -> bool,
        claim: &impl Fn(BrokerId) -> Option<Claim>,
    ) -> Result<(BrokerId, Source), WaitsFor> {
        let (safe, source) = if self.isr.is_empty() { (eligible, Source::Eligible) } else { (&*self.isr, Source::Isr) };
        let can = |id: &BrokerId| safe.contains(id) && may_lead(*id);
        let first = match self.kind {
            Kind::Designated(id) if can(&id) => return Ok((id, source)),
            Kind::Designated(id) if may_lead(id) && self.replicas.contains(&id) => return Ok((id, Source::Outside)),
            Kind::Preferred => self.replicas.first().filter(|id| can(id)),
            _ => None,
        };
        let present = Some(&self.partition.leader).filter(|id| can(id));
        if let Some(leader) = first.or(present).or_else(|| self.replicas.iter().find(|id| can(id))) {
            return Ok((*leader, source));
        }
        match self.kind {
            Kind::Claimed(id) if safe.is_empty() && may_lead(id) && self.replicas.contains(&id) => return Ok((id, Source::LastKnown)),
            Kind::Unclean => {
                let living = self.replicas.iter().copied().filter(|id| may_lead(*id));
                return most_complete(living, claim).map(|id| (id, Source::Outside)).ok_or(WaitsFor::Anyone);
            }
            _ => {}
        }
        if !safe.is_empty() {
            return Err(WaitsFor::AnyOf(safe.to_vec()));
        }
        // Nobody else has a log of it, so there is nothing to compare.
        match *self.replicas {
            [only] if last_known == [only] && may_lead(only) => Ok((only, Source::LastKnown)),
            _ => Err(WaitsFor::ClaimsOf(last_known.to_vec())),
        }
    }

    fn assignment(&self, change: &mut PartitionChange, directory: &impl Fn(BrokerId) -> DirectoryId) {
        let old = self.partition;
        if *self.replicas != *old.replicas {
            change.replicas = Some(self.replicas.to_vec());
        }
        if change.replicas.is_some() || self.reported.is_some() {
            let of = |id: &BrokerId| {
                let reported = self.reported.filter(|(broker, _)| broker == id).map(|(_, directory)| directory);
                let position = old.replicas.iter().position(|replica| replica == id);
                reported.or(position.and_then(|position| old.directories.get(position).copied())).unwrap_or_else(|| directory(*id))
            };
            let directories: Vec<DirectoryId> = self.replicas.iter().map(of).collect();
            if directories != old.directories {
                change.directories = Some(directories);
            }
        }
        if *self.removing != *old.removing_replicas {
            change.removing_replicas = Some(self.removing.to_vec());
        }
        if *self.adding != *old.adding_replicas {
            change.adding_replicas = Some(self.adding.to_vec());
        }
    }
}
