//! Leaders when brokers and directories come and go. Who it is then is `core::election`'s choice; here is what it is told, and what
//! is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Controller;
use super::draft::Draft;
use super::entities::{Partition, Topic};
use super::records::{Record, ResourceType};
use super::topics::UNASSIGNED;
use crate::core::election::{Candidate, Election, Kind, Known, Proposal, Rules, Trigger, Verdict, WaitsFor};
use crate::core::types::{BrokerId, DirectoryId, Epoch, TopicPartition};

pub(super) const UNCLEAN_ELECTION: &str = "unclean.leader.election.enable";
pub(super) const MIN_ISR: &str = "min.insync.replicas";
/// The feature that keeps eligible leader replicas (KIP-966).
pub const ELR_VERSION: &str = "eligible.leader.replicas.version";

/// One partition whose leader is to be decided about.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub topic: &'a Topic,
    pub at: TopicPartition,
    pub partition: &'a Partition,
    pub rules: Rules,
    /// Whether the topic may have a leader that lacks acknowledged records.
    pub loss_allowed: bool,
    pub trigger: Trigger,
}

impl<'a> Case<'a> {
    /// A change that elects without loss if it has to elect.
    pub fn propose(&self) -> Proposal<'a> {
        Proposal::new(self.at, self.partition, self.rules, Kind::Online)
    }
}

impl Controller {
    /// What the settings say about the elections of a topic.
    pub(super) fn rules_of(&self, topic: &Topic) -> Rules {
        let min_isr = self.setting(topic, MIN_ISR).and_then(|value| value.parse().ok()).unwrap_or(self.settings.min_insync_replicas);
        let replicas = topic.partitions.values().next().map_or(1, |first| first.replicas.len());
        Rules { min_isr: min_isr.clamp(1, replicas.max(1)), elr: self.image.feature(ELR_VERSION) > 0 }
    }

    pub(super) fn loss_allowed(&self, topic: &Topic) -> bool {
        self.setting(topic, UNCLEAN_ELECTION).map_or(self.settings.unclean_election, |value| value.eq_ignore_ascii_case("true"))
    }

    /// A topic's setting: its own, or the one of all brokers.
    fn setting(&self, topic: &Topic, name: &str) -> Option<&Arc<str>> {
        let of = |kind, resource: &str| self.image.configs(kind, resource).and_then(|configs| configs.get(name));
        of(ResourceType::Topic, &topic.name).or_else(|| of(ResourceType::Broker, ""))
    }

    pub(super) fn case(&self, at: TopicPartition, trigger: Trigger) -> Option<Case<'_>> {
        let topic = self.image.topic(at.topic)?;
        let partition = topic.partition(at.partition)?;
        Some(Case { topic, at, partition, rules: self.rules_of(topic), loss_allowed: self.loss_allowed(topic), trigger })
    }

    /// Every partition that `wanted` picks, with its topic's settings looked up once.
    pub(super) fn cases(&self, trigger: Trigger, wanted: impl Fn(&Partition) -> bool) -> impl Iterator<Item = Case<'_>> {
        self.image.topics().flat_map(move |topic| {
            let (rules, loss_allowed) = (self.rules_of(topic), self.loss_allowed(topic));
            let picked: Vec<Case<'_>> = topic
                .partitions
                .iter()
                .filter(|(_, partition)| wanted(partition))
                .map(|(index, partition)| {
                    let at = TopicPartition { topic: topic.id, partition: *index };
                    Case { topic, at, partition, rules, loss_allowed, trigger }
                })
                .collect();
            picked
        })
    }

    /// Elects and writes. Nobody is elected whom `may_lead` does not name. If nobody can lead without loss and loss is allowed, the most
    /// complete survivor leads, as soon as it is known which that is.
    pub(super) fn settle(
        &self,
        draft: &mut Draft<'_>,
        case: Case<'_>,
        proposal: Proposal<'_>,
        may_lead: &dyn Fn(BrokerId) -> bool,
    ) -> Verdict {
        let known = Known { may_lead, claim: |id| draft.claims.of(case.at, id), directory: |id| self.default_directory(id) };
        let mut verdict = proposal.clone().decide(&known);
        if verdict.leader.is_err() && case.loss_allowed {
            let living = || case.partition.replicas.iter().filter(|id| may_lead(**id));
            let none_to_ask = living().count() < 2 || living().all(|id| draft.claims.of(case.at, *id).is_some());
            if none_to_ask {
                verdict = proposal.kind(Kind::Unclean).decide(&known);
            }
        }
        self.write(draft, case, &verdict, may_lead);
        verdict
    }

    /// Puts a verdict's record into the decision, and the election if it is one.
    pub(super) fn write(&self, draft: &mut Draft<'_>, case: Case<'_>, verdict: &Verdict, may_lead: &dyn Fn(BrokerId) -> bool) {
        let Some(change) = &verdict.change else { return };
        if let Some(leader) = change.leader.filter(|leader| *leader != case.partition.leader) {
            let partition = case.partition;
            let candidates = partition.replicas.iter().map(|id| Candidate {
                id: *id,
                alive: may_lead(*id),
                in_sync: partition.isr.contains(id),
                eligible: partition.elr.contains(id),
                claim: draft.claims.of(case.at, *id),
            });
            draft.elections.push(Election {
                trigger: case.trigger,
                at: case.at,
                old_leader: partition.leader,
                new_leader: leader,
                old_epoch: partition.leader_epoch,
                new_epoch: Epoch(partition.leader_epoch.0 + 1),
                old_isr: partition.isr.clone(),
                new_isr: change.isr.as_ref().unwrap_or(&partition.isr).clone(),
                outcome: verdict.leader.clone().map(|(_, source)| source),
                candidates: candidates.collect(),
            });
        }
        draft.records.push(Record::PartitionChange(change.clone()));
    }

    /// These brokers are fenced, shut down or forgotten: they leave every ISR (without ELR, all but those they are the last of), and their
    /// leaderships move or lapse. One change for each partition, however many of its replicas go.
    pub(super) fn brokers_leave(&self, going: &[BrokerId], trigger: Trigger, draft: &mut Draft<'_>) {
        let touched = |partition: &Partition| going.iter().any(|id| partition.isr.contains(id) || partition.leader == *id);
        for case in self.cases(trigger, touched) {
            let isr = case.partition.isr.iter().copied().filter(|member| !going.contains(member)).collect();
            self.settle(draft, case, case.propose().isr(isr), &|id| !going.contains(&id) && self.may_lead(case.partition, id));
        }
    }

    /// The process of this broker ended uncleanly: the ends of its logs may be lost, so it can be trusted nowhere.
    pub(super) fn broker_stopped_uncleanly(&self, id: BrokerId, draft: &mut Draft<'_>) {
        if self.image.feature(ELR_VERSION) == 0 {
            return self.brokers_leave(&[id], Trigger::Fenced, draft);
        }
        let touched = |partition: &Partition| partition.isr.contains(&id) || partition.elr.contains(&id) || partition.leader == id;
        for case in self.cases(Trigger::Fenced, touched) {
            self.settle(draft, case, case.propose().distrusting(id), &|other| other != id && self.may_lead(case.partition, other));
        }
    }

    /// The broker is unfenced: partitions that have no leader may have one now.
    pub(super) fn broker_joins(&self, id: BrokerId, draft: &mut Draft<'_>) {
        for at in &self.index.leaderless {
            let Some(case) = self.case(*at, Trigger::Returned).filter(|case| case.partition.replicas.contains(&id)) else { continue };
            let may_lead = |other| (other == id || self.image.is_active(other)) && self.has_directory(case.partition, other);
            self.settle(draft, case, case.propose(), &may_lead);
        }
    }

    /// These directories of a broker failed: it leaves the ISR of every replica in them.
    pub(super) fn directories_failed(&self, id: BrokerId, failed: &[DirectoryId], draft: &mut Draft<'_>) {
        let touched = |partition: &Partition| {
            let here = directory_of(partition, id).is_some_and(|directory| failed.contains(&directory));
            here && (partition.isr.contains(&id) || partition.leader == id)
        };
        for case in self.cases(Trigger::LogDir, touched) {
            let isr = case.partition.isr.iter().copied().filter(|member| *member != id).collect();
            self.settle(draft, case, case.propose().isr(isr), &|other| other != id && self.may_lead(case.partition, other));
        }
    }

    /// Alive, and with the directory of this replica online, as far as both are known.
    pub(super) fn may_lead(&self, partition: &Partition, id: BrokerId) -> bool {
        self.image.is_active(id) && self.has_directory(partition, id)
    }

    /// Whether the broker still has the directory that holds its replica. A broker whose disk was replaced must not lead with the empty
    /// log of the new one.
    fn has_directory(&self, partition: &Partition, id: BrokerId) -> bool {
        let Some(broker) = self.image.broker(id) else { return false };
        directory_of(partition, id)
            .is_none_or(|directory| directory <= UNASSIGNED || broker.log_dirs.is_empty() || broker.log_dirs.contains(&directory))
    }

    /// Whether this broker leads anything.
    pub(super) fn leads_anything(&self, id: BrokerId) -> bool {
        self.image.topics().any(|topic| topic.partitions.values().any(|partition| partition.leader == id))
    }

    /// Partitions that nobody leads, and whom each waits for.
    pub fn leaderless(&self) -> impl Iterator<Item = (TopicPartition, WaitsFor)> {
        self.index.leaderless.iter().filter_map(|at| {
            let case = self.case(*at, Trigger::Returned)?;
            let known = Known { may_lead: |_: BrokerId| false, claim: |_: BrokerId| None, directory: |_: BrokerId| UNASSIGNED };
            let kind = if case.loss_allowed { Kind::Unclean } else { Kind::Online };
            Some((*at, case.propose().kind(kind).decide(&known).leader.err()?))
        })
    }

    /// The partitions that nobody leads.
    pub fn leaderless_partitions(&self) -> &BTreeSet<TopicPartition> {
        &self.index.leaderless
    }
}

pub(super) fn directory_of(partition: &Partition, id: BrokerId) -> Option<DirectoryId> {
    let position = partition.replicas.iter().position(|replica| *replica == id)?;
    partition.directories.get(position).copied()
}
