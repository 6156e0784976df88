//! Partitions that nobody can lead without knowing what the survivors' logs hold: whom to ask, who has answered, when to decide. Not state
//! of the controller: a new one asks again.
//!
//! Step one, `look`: every leaderless partition's living replicas are asked, once for each process. Step two, when all who were asked have
//! answered or the time is over, `ready` names the partition for `Request::Recover`. What an operator asks for by force is decided at
//! once, with what was answered by then.

use std::collections::BTreeMap;

use super::Controller;
use super::records::BrokerEpoch;
use crate::core::election::{Claim, Claims};
use crate::core::types::{BrokerId, Millis, TopicPartition};

/// A question to a broker: where do the logs of these partitions end?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The broker.
    pub broker: BrokerId,
    /// The process that is meant.
    pub broker_epoch: BrokerEpoch,
    /// The partitions, at most [`MAX_ASKED`].
    pub partitions: Vec<TopicPartition>,
}

/// Partitions that one question may be about.
pub const MAX_ASKED: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Recovery {
    /// When the last replica was asked.
    asked_at: Millis,
    /// Who was asked, as which process, and whether it has answered.
    asked: BTreeMap<BrokerId, (BrokerEpoch, bool)>,
    /// Whether there is news that was not decided on.
    undecided: bool,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recoveries {
    /// How long survivors have to answer, in milliseconds.
    patience: i64,
    open: BTreeMap<TopicPartition, Recovery>,
    claims: Claims,
}

impl Recoveries {
    /// Nothing is asked yet; survivors will have `patience` milliseconds to answer.
    pub fn new(patience: i64) -> Recoveries {
        Recoveries { patience, open: BTreeMap::new(), claims: Claims::default() }
    }

    /// What survivors have said.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Follows the controller and returns what is to be asked now. To be called when a partition or a broker has changed.
    pub fn look(&mut self, controller: &Controller, now: Millis) -> Vec<Question> {
        let leaderless = controller.leaderless_partitions();
        let (open, claims) = (&mut self.open, &mut self.claims);
        open.retain(|at, recovery| {
            let waits = leaderless.contains(at);
            if !waits {
                recovery.asked.keys().for_each(|id| claims.forget(*at, *id));
            }
            waits
        });
        let image = controller.image();
        let mut questions: BTreeMap<(BrokerId, BrokerEpoch), Vec<TopicPartition>> = BTreeMap::new();
        for at in leaderless {
            let Some(partition) = image.partition(*at) else { continue };
            let recovery = open.entry(*at).or_insert(Recovery { asked_at: now, asked: BTreeMap::new(), undecided: false });
            recovery.asked.retain(|id, (epoch, _)| {
                let same = image.is_active(*id) && image.broker(*id).is_some_and(|broker| broker.broker_epoch == *epoch);
                if !same {
                    claims.forget(*at, *id);
                }
                same
            });
            for id in &partition.replicas {
                let Some(broker) = image.broker(*id).filter(|broker| broker.is_active()) else { continue };
                recovery.asked.entry(*id).or_insert_with(|| {
                    questions.entry((*id, broker.broker_epoch)).or_default().push(*at);
                    (recovery.asked_at, recovery.undecided) = (now, true);
                    (broker.broker_epoch, false)
                });
            }
        }
        let split = |((broker, broker_epoch), partitions): ((BrokerId, BrokerEpoch), Vec<TopicPartition>)| {
            let parts: Vec<Question> =
                partitions.chunks(MAX_ASKED).map(|part| Question { broker, broker_epoch, partitions: part.to_vec() }).collect();
            parts
        };
        questions.into_iter().flat_map(split).collect()
    }

    /// A broker answered; `None`: it has no log of that partition. What was not asked of that process is not noted.
    pub fn answered(&mut self, broker: BrokerId, epoch: BrokerEpoch, at: TopicPartition, claim: Option<Claim>) {
        let Some(recovery) = self.open.get_mut(&at) else { return };
        let Some((_, answered)) = recovery.asked.get_mut(&broker).filter(|(asked, _)| *asked == epoch) else { return };
        *answered = true;
        recovery.undecided = true;
        match claim {
            Some(claim) => self.claims.note(at, broker, claim),
            None => self.claims.forget(at, broker),
        }
    }

    /// Partitions to decide about: everyone asked has answered, or had time enough. Each is named once for each piece of news.
    pub fn ready(&mut self, now: Millis) -> Vec<TopicPartition> {
        let mut ready = Vec::new();
        for (at, recovery) in &mut self.open {
            let all = recovery.asked.values().all(|(_, answered)| *answered);
            if recovery.undecided && (all || recovery.asked_at.0 + self.patience <= now.0) {
                recovery.undecided = false;
                ready.push(*at);
            }
        }
        ready
    }

    /// When the patience with the next one ends.
    pub fn due(&self) -> Option<Millis> {
        let waiting = self.open.values().filter(|recovery| recovery.undecided);
        waiting.map(|recovery| Millis(recovery.asked_at.0 + self.patience)).min()
    }
}
