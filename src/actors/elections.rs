//! What the active controller elects, shown when it is committed: in the log, in the metrics, in the election book. A part of `Controller`,
//! no actor. Nothing here decides.
//!
//! The state-change log has a line for every transition of a partition, target `understudy::state_change`: at INFO when its leader changes,
//! at DEBUG otherwise. When more than [`MAX_LINES`] change at once, all are at DEBUG, and INFO has their number.

use crate::core::controller::book::{Book, Entry};
use crate::core::controller::{Image, Partition, Record};
use crate::core::election::{Election, Source, Trigger};
use crate::core::types::{BrokerId, Epoch, Millis, Offset, TopicPartition};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use understudy_metrics::{ElectionReason, ElectionType, Families};

/// Lines at INFO that one decision may write.
const MAX_LINES: usize = 1000;

/// The book as HTTP handlers read it. Locked for as long as it takes to note or to copy.
pub type SharedBook = Arc<Mutex<Book>>;

/// See the module.
pub struct Elections {
    book: SharedBook,
    metrics: Families,
    /// Transitions that are decided and not yet committed, oldest first.
    open: VecDeque<(Offset, Vec<Transition>)>,
}

struct Transition {
    topic: Arc<str>,
    partition: i32,
    old: Option<Arc<Partition>>,
    new: Arc<Partition>,
}

/// What a record changes about a partition, taken before it is applied.
pub struct Before(TopicPartition, Option<Arc<Partition>>);

impl Elections {
    /// Writes into that book and those metrics.
    pub fn new(book: SharedBook, metrics: Families) -> Elections {
        Elections { book, metrics, open: VecDeque::new() }
    }

    /// The partition that a record is about, as it is before.
    pub fn before(image: &Image, record: &Record) -> Option<Before> {
        let at = match record {
            Record::PartitionChange(change) => TopicPartition { topic: change.topic_id, partition: change.partition_id },
            Record::Partition(new) => TopicPartition { topic: new.topic_id, partition: new.partition_id },
            _ => return None,
        };
        Some(Before(at, image.partition(at).cloned()))
    }

    /// Notes a decision whose records up to `upto` are appended; `image` is the one after it.
    pub fn decided(
        &mut self,
        image: &Image,
        upto: Offset,
        elected: Vec<Election>,
        changed: Vec<Before>,
        detected: Millis,
        decided: Millis,
    ) {
        let name = |at: TopicPartition| image.topic(at.topic).map(|topic| topic.name.clone());
        let entries = elected
            .into_iter()
            .filter_map(|election| Some(Entry { topic: name(election.at)?, election, detected, decided, committed: Millis(0) }));
        self.book.lock().expect("no holder of this lock panics").decided(upto, entries.collect());
        let transitions = changed.into_iter().filter_map(|Before(at, old)| {
            Some(Transition { topic: name(at)?, partition: at.partition, old, new: image.partition(at)?.clone() })
        });
        let transitions: Vec<Transition> = transitions.collect();
        if !transitions.is_empty() {
            self.open.push_back((upto, transitions));
        }
    }

    /// This controller is not the active one any more: what was not committed may never be, and is somebody else's to show.
    pub fn resigned(&mut self) {
        self.book.lock().expect("no holder of this lock panics").resigned();
        self.open.clear();
    }

    /// Everything up to `upto` is committed, since then.
    pub fn committed(&mut self, epoch: Epoch, upto: Offset, at: Millis) {
        let finals = self.book.lock().expect("no holder of this lock panics").committed(upto, at);
        for entry in finals.iter().filter(|entry| entry.election.moved()) {
            if let Some((kind, reason)) = labels(&entry.election) {
                self.metrics.elections.elected(kind, reason, 1);
            }
        }
        while self.open.front().is_some_and(|(last, _)| *last <= upto) {
            let Some((_, transitions)) = self.open.pop_front() else { return };
            let quiet = transitions.len() > MAX_LINES;
            if quiet {
                let (controller_epoch, partitions) = (epoch.0, transitions.len());
                tracing::info!(target: "understudy::state_change", controller_epoch, partitions, "many partitions changed, see DEBUG");
            }
            transitions.iter().for_each(|transition| transition.log(epoch, quiet));
        }
    }
}

impl Transition {
    fn log(&self, controller_epoch: Epoch, quiet: bool) {
        let Transition { topic, partition, old, new } = self;
        let leader_was = old.as_ref().map_or(BrokerId::NONE, |old| old.leader).0;
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "understudy::state_change",
                    controller_epoch = controller_epoch.0,
                    %topic,
                    partition,
                    leader = new.leader.0,
                    leader_was,
                    leader_epoch = new.leader_epoch.0,
                    partition_epoch = new.partition_epoch.0,
                    isr = %List(&new.isr),
                    elr = %List(&new.elr),
                    replicas = %List(&new.replicas),
                    "partition changed"
                )
            };
        }
        // A new partition is one line of many: DEBUG.
        if quiet || old.is_none() || leader_was == new.leader.0 { line!(debug) } else { line!(info) }
    }
}

struct List<'a>(&'a [BrokerId]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        for (i, id) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { "," } else { "" }, id.0)?;
        }
        f.write_str("]")
    }
}

/// How an election is counted; the first leader of a new partition is none.
fn labels(election: &Election) -> Option<(ElectionType, ElectionReason)> {
    let kind = match election.outcome {
        Ok(Source::Isr) => ElectionType::Clean,
        Ok(Source::Eligible | Source::LastKnown) => ElectionType::Elr,
        Ok(Source::Outside) if election.trigger == Trigger::Designated => ElectionType::Designated,
        Ok(Source::Outside) => ElectionType::Unclean,
        Err(_) => return None,
    };
    let reason = match election.trigger {
        Trigger::Created => return None,
        Trigger::Fenced => ElectionReason::Fenced,
        Trigger::ControlledShutdown => ElectionReason::ControlledShutdown,
        Trigger::Preferred | Trigger::Balanced => ElectionReason::Preferred,
        Trigger::Reassignment => ElectionReason::Reassignment,
        Trigger::Manual | Trigger::Designated => ElectionReason::Manual,
        Trigger::ConfigChange => ElectionReason::ConfigChange,
        Trigger::LogDir => ElectionReason::LogDir,
        Trigger::Resigned => ElectionReason::Resigned,
        Trigger::UncleanRecovery => ElectionReason::UncleanRecovery,
        Trigger::Returned => ElectionReason::Returned,
    };
    Some((kind, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::controller::records;
    use crate::core::election::WaitsFor;
    use crate::core::types::Id;
    use understudy_metrics::{Profiles, Registry};

    fn election(trigger: Trigger, new_leader: i32, outcome: Result<Source, WaitsFor>) -> Election {
        Election {
            trigger,
            at: TopicPartition { topic: Id(101), partition: 0 },
            old_leader: BrokerId(1),
            new_leader: BrokerId(new_leader),
            old_epoch: Epoch(0),
            new_epoch: Epoch(1),
            old_isr: vec![],
            new_isr: vec![],
            outcome,
            candidates: vec![],
        }
    }

    #[test]
    fn an_election_counts_when_it_is_committed() {
        let metrics = Families::new(&Registry::new());
        let mut image = Image::empty("c");
        let at = TopicPartition { topic: Id(101), partition: 0 };
        image.apply(Offset(0), &Record::Topic(records::Topic { name: "t".into(), topic_id: at.topic })).unwrap();
        let mut elections = Elections::new(SharedBook::default(), metrics.clone());
        let all = [
            (Trigger::Fenced, 2, Ok(Source::Isr)),
            (Trigger::Fenced, -1, Err(WaitsFor::Anyone)),
            (Trigger::Designated, 2, Ok(Source::Outside)),
            (Trigger::Manual, 2, Ok(Source::Outside)),
            (Trigger::Returned, 2, Ok(Source::LastKnown)),
        ];
        let all = all.map(|(trigger, leader, outcome)| election(trigger, leader, outcome));
        elections.decided(&image, Offset(9), all.to_vec(), vec![Before(at, None)], Millis(1), Millis(2));
        let count = |kind: &str, reason: &str| {
            let text = metrics.render(Profiles::parse(std::iter::empty()).unwrap(), 0);
            let series = format!("understudy_elections_total{{type=\"{kind}\",reason=\"{reason}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned)).unwrap_or_else(|| panic!("{series} {text}"))
        };
        assert_eq!(count("clean", "fenced"), "0", "decided is not elected");
        elections.committed(Epoch(3), Offset(9), Millis(5));
        elections.committed(Epoch(3), Offset(9), Millis(6));
        for (kind, reason) in [("clean", "fenced"), ("designated", "manual"), ("unclean", "manual"), ("elr", "returned")] {
            assert_eq!(count(kind, reason), "1", "{kind} {reason}");
        }
        assert_eq!(elections.book.lock().unwrap().latest().count(), 5, "the loss of a leader is in the book, too");
        assert!(elections.open.is_empty(), "a partition that is gone by now has no line");
        elections.decided(&image, Offset(12), all.to_vec(), vec![], Millis(7), Millis(7));
        elections.resigned();
        elections.committed(Epoch(5), Offset(20), Millis(9));
        assert_eq!(count("clean", "fenced"), "1", "what was not committed in time is not this controller's");
    }
}
