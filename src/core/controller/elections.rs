//! Elections that somebody asks for: operators, the controller's own rounds, leaders that give up, survivors that said what they hold.

use std::collections::BTreeMap;

use super::Controller;
use super::draft::Draft;
use super::entities::Topic;
use super::leaders::UNCLEAN_ELECTION;
use super::records::{BrokerEpoch, ResourceType};
use super::request::{AcceptedLoss, Balanced, ByPartition, ElectionType, Refusal, Why};
use crate::core::election::{Kind, Known, Loss, Source, Trigger, WaitsFor, loss_of, most_complete};
use crate::core::types::{BrokerId, TopicPartition};

/// Preferred replicas that one round of the controller elects at most.
pub const MAX_BALANCED_PER_ROUND: usize = 1000;

impl Controller {
    pub(super) fn elect_leaders(
        &self,
        election: ElectionType,
        partitions: Option<ByPartition<i32>>,
        draft: &mut Draft<'_>,
    ) -> ByPartition<(i32, Result<(), Refusal>)> {
        match partitions {
            Some(topics) => {
                // Asked twice is answered twice, and elected once.
                let mut done: BTreeMap<(String, i32), Result<(), Refusal>> = BTreeMap::new();
                let mut answer = Vec::with_capacity(topics.len());
                for (name, indexes) in topics {
                    let topic = self.image.topic_by_name(&name).map(|topic| &**topic);
                    let mut results = Vec::with_capacity(indexes.len());
                    for index in indexes {
                        let result = done.entry((name.clone(), index)).or_insert_with(|| self.elect(election, &name, topic, index, draft));
                        results.push((index, result.clone()));
                    }
                    answer.push((name, results));
                }
                answer
            }
            None => self
                .image
                .topics()
                .map(|topic| {
                    let all = topic.partitions.keys().map(|index| (*index, self.elect(election, &topic.name, Some(topic), *index, draft)));
                    let needed = |result: &Result<(), Refusal>| !matches!(result, Err(refusal) if refusal.why == Why::ElectionNotNeeded);
                    (topic.name.to_string(), all.filter(|(_, result)| needed(result)).collect())
                })
                .collect(),
        }
    }

    fn elect(&self, election: ElectionType, name: &str, topic: Option<&Topic>, index: i32, draft: &mut Draft<'_>) -> Result<(), Refusal> {
        let at = find(name, topic, index)?;
        let (kind, impossible, trigger) = match election {
            ElectionType::Preferred => (Kind::Preferred, Why::PreferredLeaderNotAvailable, Trigger::Preferred),
            ElectionType::Unclean => (Kind::Unclean, Why::EligibleLeadersNotAvailable, Trigger::Manual),
        };
        let case = self.case(at, trigger).ok_or(Why::UnknownTopicOrPartition)?;
        let needless = match election {
            ElectionType::Preferred => case.partition.preferred() == Some(case.partition.leader),
            ElectionType::Unclean => case.partition.has_leader(),
        };
        if needless {
            return Err(Why::ElectionNotNeeded.into());
        }
        // An operator who allows loss is answered at once, with what is known of the survivors.
        let may_lead = |id| self.may_lead(case.partition, id);
        let known = Known { may_lead, claim: |id| draft.claims.of(at, id), directory: |id| self.default_directory(id) };
        let verdict = case.propose().kind(kind).decide(&known);
        self.write(draft, case, &verdict, &may_lead);
        verdict.change.map(|_| ()).ok_or(impossible.into())
    }

    /// The replica that an operator named leads, if what that loses is no more than was accepted.
    pub(super) fn designate(
        &self,
        name: &str,
        index: i32,
        leader: BrokerId,
        accepted: AcceptedLoss,
        draft: &mut Draft<'_>,
    ) -> Result<(), Refusal> {
        let at = find(name, self.image.topic_by_name(name).map(|topic| &**topic), index)?;
        let case = self.case(at, Trigger::Designated).ok_or(Why::UnknownTopicOrPartition)?;
        let partition = case.partition;
        if !partition.replicas.contains(&leader) {
            let message = format!("Broker {} holds no replica of {name}-{index}.", leader.0);
            return Err(Refusal::new(Why::InvalidReplicaAssignment, message));
        }
        if partition.leader == leader {
            return Err(Why::ElectionNotNeeded.into());
        }
        let may_lead = |id| self.may_lead(partition, id);
        if !may_lead(leader) {
            let message = format!("Broker {} is fenced, shutting down, or its log directory is offline.", leader.0);
            return Err(Refusal::new(Why::EligibleLeadersNotAvailable, message));
        }
        let claim = |id| draft.claims.of(at, id);
        let known = Known { may_lead, claim, directory: |id| self.default_directory(id) };
        let verdict = case.propose().kind(Kind::Designated(leader)).decide(&known);
        if matches!(verdict.leader, Ok((_, Source::Outside))) {
            let others = partition.replicas.iter().filter(|id| **id != leader);
            let loss = loss_of(claim(leader), others.map(|id| claim(*id)));
            let fits = match (accepted, loss) {
                (AcceptedLoss::Any, _) => true,
                (AcceptedLoss::Records(accepted), Loss::Records(loss)) => loss <= accepted,
                (AcceptedLoss::Records(_), Loss::Unknown) => false,
            };
            if !fits {
                let what = match loss {
                    Loss::Records(records) => format!("up to {records} records"),
                    Loss::Unknown => "nobody can say how many records, as not every replica has said what its log holds".into(),
                };
                let message = format!("With broker {} leading {name}-{index}, this is lost: {what}. Accept that loss, or wait.", leader.0);
                return Err(Refusal::new(Why::LossNotAccepted, message));
            }
        }
        self.write(draft, case, &verdict, &may_lead);
        Ok(())
    }

    /// One round of moving leaderships back to the preferred replicas.
    pub(super) fn balance(&self, draft: &mut Draft<'_>) -> Balanced {
        let before = draft.records.len();
        for at in &self.index.imbalanced {
            if draft.records.len() - before >= MAX_BALANCED_PER_ROUND {
                return Balanced { moved: draft.records.len() - before, more: true };
            }
            let Some(case) = self.case(*at, Trigger::Balanced) else { continue };
            let preferred = case.partition.preferred();
            let may_lead = |id| self.may_lead(case.partition, id);
            if preferred.is_some_and(|id| case.partition.isr.contains(&id) && may_lead(id)) {
                let known = Known { may_lead, claim: |_| None, directory: |id| self.default_directory(id) };
                let verdict = case.propose().kind(Kind::Preferred).decide(&known);
                self.write(draft, case, &verdict, &may_lead);
            }
        }
        Balanced { moved: draft.records.len() - before, more: false }
    }

    /// The leader gives partitions away, because its disk hangs, say. It stays in their ISRs; what nobody else can lead without loss stays
    /// with it.
    pub(super) fn resign(
        &self,
        broker: BrokerId,
        broker_epoch: BrokerEpoch,
        partitions: Vec<TopicPartition>,
        draft: &mut Draft<'_>,
    ) -> Result<Vec<(TopicPartition, Result<(), Refusal>)>, Refusal> {
        self.check_broker_epoch(broker, broker_epoch)?;
        let one = |at: TopicPartition, draft: &mut Draft<'_>| {
            let case = self.case(at, Trigger::Resigned).ok_or(Why::UnknownTopicOrPartition)?;
            if case.partition.leader != broker {
                return Err(Refusal::from(Why::NotLeaderOrFollower));
            }
            let may_lead = |id| id != broker && self.may_lead(case.partition, id);
            let known = Known { may_lead, claim: |_| None, directory: |id| self.default_directory(id) };
            let verdict = case.propose().decide(&known);
            if verdict.leader.is_err() {
                return Err(Why::EligibleLeadersNotAvailable.into());
            }
            self.write(draft, case, &verdict, &may_lead);
            Ok(())
        };
        Ok(partitions.into_iter().map(|at| (at, one(at, draft))).collect())
    }

    /// Survivors have said what their logs hold, or had time enough: partitions that wait for that are decided about. Returns how many got
    /// a leader.
    pub(super) fn recover(&self, partitions: Vec<TopicPartition>, draft: &mut Draft<'_>) -> usize {
        let mut led = 0;
        for at in partitions {
            let Some(case) = self.case(at, Trigger::UncleanRecovery).filter(|case| !case.partition.has_leader()) else { continue };
            let may_lead = |id| self.may_lead(case.partition, id);
            let claim = |id| draft.claims.of(at, id);
            let known = Known { may_lead, claim, directory: |id| self.default_directory(id) };
            let living = case.partition.replicas.iter().copied().filter(|id| may_lead(*id));
            let best = most_complete(living, claim);
            let mut verdict = case.propose().decide(&known);
            if let Err(WaitsFor::ClaimsOf(needed)) = &verdict.leader {
                // One that lived through it alone needs no comparison; of several, each must have spoken.
                let spoken = match needed.as_slice() {
                    [] => false,
                    [only] => claim(*only).is_some() || may_lead(*only),
                    all => all.iter().all(|id| claim(*id).is_some()),
                };
                let best = if needed.iter().any(|id| claim(*id).is_some()) { best } else { needed.first().copied() };
                // Whoever has more but may not lead is waited for.
                let complete = |best: &BrokerId| needed.iter().all(|id| claim(*id) <= claim(*best));
                if let Some(best) = best.filter(|best| spoken && complete(best)) {
                    verdict = case.propose().kind(Kind::Claimed(best)).decide(&known);
                }
            }
            if verdict.leader.is_err() && case.loss_allowed {
                verdict = case.propose().kind(Kind::Unclean).decide(&known);
            }
            led += usize::from(verdict.leader.is_ok());
            self.write(draft, case, &verdict, &may_lead);
        }
        led
    }

    /// A setting now allows unclean elections, of one topic or (`None`) of all that do not say otherwise: what is offline is decided about
    /// in the same append. Where survivors have to be asked first, `Recoveries` does it next.
    pub(super) fn loss_is_allowed_now(&self, topic: Option<&str>, draft: &mut Draft<'_>) {
        for at in &self.index.leaderless {
            let Some(mut case) = self.case(*at, Trigger::ConfigChange) else { continue };
            let says_itself =
                self.image.configs(ResourceType::Topic, &case.topic.name).is_some_and(|own| own.contains_key(UNCLEAN_ELECTION));
            let concerned = match topic {
                Some(name) => *case.topic.name == *name,
                None => !says_itself,
            };
            if concerned && !case.loss_allowed {
                case.loss_allowed = true;
                self.settle(draft, case, case.propose(), &|id| self.may_lead(case.partition, id));
            }
        }
    }
}

fn find(name: &str, topic: Option<&Topic>, index: i32) -> Result<TopicPartition, Refusal> {
    let unknown = |message: String| Refusal::new(Why::UnknownTopicOrPartition, message);
    let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    topic.partition(index).ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
    Ok(TopicPartition { topic: topic.id, partition: index })
}
