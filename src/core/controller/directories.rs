//! Log directories: where replicas are (AssignReplicasToDirs), which failed, which take no more (KIP-858, KIP-1066).

use super::Controller;
use super::draft::Draft;
use super::entities::Broker;
use super::records::{BrokerEpoch, BrokerRegistrationChange, Record};
use super::request::{ByTopicId, Refusal, Why};
use crate::core::election::Trigger;
use crate::core::types::{BrokerId, DirectoryId, TopicPartition};

/// What a broker says lies in each of its directories, and the answer in the same shape.
pub type ByDirectory<T> = Vec<(DirectoryId, ByTopicId<T>)>;

impl Controller {
    /// Notes where a broker's replicas are. One in a directory that is offline leaves the ISR in the same record.
    pub(super) fn assign_directories(
        &self,
        broker: BrokerId,
        broker_epoch: BrokerEpoch,
        directories: ByDirectory<i32>,
        draft: &mut Draft<'_>,
    ) -> Result<ByDirectory<(i32, Result<(), Why>)>, Refusal> {
        self.check_broker_epoch(broker, broker_epoch)?;
        let online = |directory: DirectoryId| self.image.broker(broker).is_some_and(|broker| broker.log_dirs.contains(&directory));
        let one = |at: TopicPartition, directory: DirectoryId, draft: &mut Draft<'_>| {
            self.image.topic(at.topic).ok_or(Why::UnknownTopicId)?;
            let case = self.case(at, Trigger::LogDir).ok_or(Why::UnknownTopicOrPartition)?;
            if !case.partition.replicas.contains(&broker) {
                return Err(Why::NotLeaderOrFollower);
            }
            let (proposal, online) = (case.propose().directory(broker, directory), online(directory));
            let proposal =
                if online { proposal } else { proposal.isr(case.partition.isr.iter().copied().filter(|id| *id != broker).collect()) };
            self.settle(draft, case, proposal, &|id| (online || id != broker) && self.may_lead(case.partition, id));
            Ok(())
        };
        let mut answers = Vec::with_capacity(directories.len());
        for (directory, topics) in directories {
            let topics = topics.into_iter().map(|(topic, indexes)| {
                let rows = indexes.into_iter().map(|partition| (partition, one(TopicPartition { topic, partition }, directory, draft)));
                (topic, rows.collect())
            });
            let topics = topics.collect();
            answers.push((directory, topics));
        }
        Ok(answers)
    }

    /// Takes note of directories that a heartbeat calls failed or cordoned. What lies in a failed one is offline from now on.
    pub(super) fn note_directories(
        &self,
        broker: &Broker,
        offline: &[DirectoryId],
        cordoned: Option<Vec<DirectoryId>>,
        draft: &mut Draft<'_>,
    ) {
        let change = || BrokerRegistrationChange::new(broker.id, broker.broker_epoch);
        let (failed, left): (Vec<_>, Vec<_>) = broker.log_dirs.iter().copied().partition(|directory| offline.contains(directory));
        // A record without directories means "as before": a broker without any is fenced instead.
        if !failed.is_empty() && !left.is_empty() {
            self.directories_failed(broker.id, &failed, draft);
            draft.records.push(Record::BrokerRegistrationChange(BrokerRegistrationChange { log_dirs: left, ..change() }));
        }
        if cordoned.is_some() && cordoned != broker.cordoned_log_dirs && self.image.feature(super::METADATA_VERSION) >= CORDONED_DIRS {
            draft.records.push(Record::BrokerRegistrationChange(BrokerRegistrationChange { cordoned_log_dirs: cordoned, ..change() }));
        }
    }
}

/// The `metadata.version` from which on records can say which directories are cordoned.
const CORDONED_DIRS: i16 = 30;

pub(super) fn all_offline(broker: &Broker, offline: &[DirectoryId]) -> bool {
    !broker.log_dirs.is_empty() && broker.log_dirs.iter().all(|directory| offline.contains(directory))
}
