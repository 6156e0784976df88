//! The profile `kafka_exporter`: topics, groups and their lag by the names of that exporter. It is gathered when somebody scrapes, from
//! coordinators (a page at a time) and partitions (some at a time), so that neither stands still, and only while the profile is asked for.
//!
//! It shows the groups that this broker coordinates and the positions of replicas that it hosts: on a single broker that is the cluster.

use crate::actors::groups::messages::Report;
use crate::actors::partition::messages::{Describe, Positions};
use crate::api::Broker;
use crate::core::controller::Image;
use crate::core::group::report::GroupReport;
use crate::core::types::{BrokerId, TopicPartition};
use crate::rt::{Tell, clock, port};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use understudy_metrics::{Families, Family, MAX_SERIES, Profiles, Sink};

/// Groups and committed offsets of one scrape: each offset makes two series.
const OFFSETS_MAX: usize = MAX_SERIES / 2;
/// Partitions that are asked at the same time.
const AT_ONCE: usize = 256;
/// Logs that one scrape opens because a group has read them: the ends of the others are shown by later scrapes.
const OPEN_MAX: usize = 256;
/// What has not answered by then is not shown.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub struct Exporter {
    broker: Arc<Broker>,
    /// The log has said that there is too much to show.
    said: AtomicBool,
}

/// What a scrape shows.
pub struct Gathered {
    image: Arc<Image>,
    groups: Vec<GroupReport>,
    /// Where partitions stand, of those that answered.
    positions: BTreeMap<TopicPartition, Positions>,
    /// There is more than [`OFFSETS_MAX`].
    cut: bool,
}

impl Exporter {
    /// Asks what that broker knows.
    pub fn new(broker: Arc<Broker>) -> Exporter {
        Exporter { broker, said: AtomicBool::new(false) }
    }

    /// Asks everybody.
    pub async fn gather(&self) -> Gathered {
        let mut gathered = Gathered { image: self.broker.image.load_full(), groups: Vec::new(), positions: BTreeMap::new(), cut: false };
        let asking = async {
            self.ask_groups(&mut gathered).await;
            self.ask_partitions(&mut gathered).await;
        };
        // Whoever did not answer in time is missing; that is no reason to have no metrics.
        let _ = tokio::time::timeout(PATIENCE, asking).await;
        if gathered.cut && !self.said.swap(true, Relaxed) {
            tracing::warn!(
                "profile=kafka_exporter shows {OFFSETS_MAX} groups and offsets at most and there are more; those that are missing count in \
                 understudy_metrics_series_dropped_total (logged once)"
            );
        }
        gathered
    }

    async fn ask_groups(&self, gathered: &mut Gathered) {
        let mut told = 0;
        for groups in self.broker.routes.all_groups() {
            let mut after = None;
            loop {
                let (reply, answer) = port();
                groups.tell(Report { after, reply });
                let Ok((page, next)) = answer.await else { break };
                told += page.iter().map(|report| 1 + report.offsets.len()).sum::<usize>();
                gathered.groups.extend(page);
                after = next;
                match &after {
                    None => break,
                    Some(_) if told >= OFFSETS_MAX => {
                        gathered.cut = true;
                        return;
                    }
                    Some(_) => {}
                }
            }
        }
    }

    async fn ask_partitions(&self, gathered: &mut Gathered) {
        let mut open = BTreeSet::new();
        for (topic, partition, gauges) in self.broker.metrics.partitions.alive() {
            if gauges.segments.get() > 0
                && let Some(topic) = gathered.image.topic_by_name(&topic)
            {
                open.insert(TopicPartition { topic: topic.id, partition });
            }
        }
        let read = gathered.groups.iter().flat_map(|report| &report.offsets);
        let read: BTreeSet<TopicPartition> = read.filter_map(|(topic, _, partition, _)| at(&gathered.image, topic, *partition)).collect();
        let closed: Vec<TopicPartition> = read.difference(&open).copied().take(OPEN_MAX).collect();
        let all: Vec<TopicPartition> = open.into_iter().take(MAX_SERIES).chain(closed).collect();
        for some in all.chunks(AT_ONCE) {
            let ask = |at: &TopicPartition| {
                let route = self.broker.routes.get(*at)?;
                let (reply, answer) = port();
                route.partition.tell(Describe { reply });
                Some((*at, answer))
            };
            let asked: Vec<_> = some.iter().filter_map(ask).collect();
            for (at, answer) in asked {
                if let Ok(Ok(positions)) = answer.await {
                    gathered.positions.insert(at, positions);
                }
            }
        }
    }
}

/// The text of a scrape, formatted on a thread of its own.
pub async fn scrape(families: Families, exporter: Arc<Exporter>, profiles: Profiles) -> Option<String> {
    let gathered = if profiles.kafka_exporter { Some(exporter.gather().await) } else { None };
    let format = move || {
        let now = clock::now().0;
        let text = families.render(profiles, now);
        text + &gathered.map(|gathered| families.render_only(now, |out| gathered.put(out))).unwrap_or_default()
    };
    tokio::task::spawn_blocking(format).await.ok()
}

fn at(image: &Image, topic: &str, partition: i32) -> Option<TopicPartition> {
    let topic = image.topic_by_name(topic)?;
    topic.partition(partition).map(|_| TopicPartition { topic: topic.id, partition })
}

impl Gathered {
    /// Puts all of it.
    pub fn put(&self, out: &mut Sink) {
        out.put(Family::ExporterBrokers, &[], self.image.brokers().filter(|broker| !broker.fenced).count() as f64);
        self.groups(out);
        self.topics(out);
        // How many more there are is not known without asking for them.
        out.leave_out(u64::from(self.cut));
    }

    fn groups(&self, out: &mut Sink) {
        // What was committed, and the lag where the end is known.
        let mut sums: BTreeMap<(&str, &str), (i64, Option<i64>)> = BTreeMap::new();
        for report in &self.groups {
            if !report.continued {
                out.put(Family::GroupMembers, &[&report.group], report.members as f64);
            }
            for (topic, id, partition, offset) in &report.offsets {
                // Neither topics that are gone nor those that only have the name of one.
                let Some(at) = at(&self.image, topic, *partition).filter(|at| id.is_zero() || at.topic == *id) else { continue };
                let labels = [&*report.group, &**topic, &partition.to_string()];
                let sum = sums.entry((&report.group, topic)).or_default();
                sum.0 += offset.0;
                out.put(Family::GroupCurrentOffset, &labels, offset.0 as f64);
                if let Some(positions) = self.positions.get(&at) {
                    let lag = (positions.high_watermark - *offset).max(0);
                    sum.1 = Some(sum.1.unwrap_or(0) + lag);
                    out.put(Family::GroupLag, &labels, lag as f64);
                }
            }
        }
        for ((group, topic), (committed, lag)) in sums {
            out.put(Family::GroupCurrentOffsetSum, &[group, topic], committed as f64);
            if let Some(lag) = lag {
                out.put(Family::GroupLagSum, &[group, topic], lag as f64);
            }
        }
    }

    fn topics(&self, out: &mut Sink) {
        for topic in self.image.topics() {
            out.put(Family::ExporterPartitions, &[&topic.name], topic.partitions.len() as f64);
            for (index, partition) in &topic.partitions {
                let labels = [&*topic.name, &index.to_string()];
                let preferred = partition.leader != BrokerId::NONE && partition.preferred() == Some(partition.leader);
                let (replicas, in_sync) = (partition.replicas.len(), partition.isr.len());
                for (family, value) in [
                    (Family::ExporterLeader, partition.leader.0 as f64),
                    (Family::ExporterLeaderIsPreferred, f64::from(preferred)),
                    (Family::ExporterReplicas, replicas as f64),
                    (Family::ExporterInSyncReplica, in_sync as f64),
                    (Family::ExporterUnderReplicated, f64::from(in_sync < replicas)),
                ] {
                    out.put(family, &labels, value);
                }
                if let Some(positions) = self.positions.get(&TopicPartition { topic: topic.id, partition: *index }) {
                    out.put(Family::ExporterCurrentOffset, &labels, positions.high_watermark.0 as f64);
                    out.put(Family::ExporterOldestOffset, &labels, positions.log_start.0 as f64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, image_of, partition};
    use crate::core::types::{Id, Offset};
    use understudy_metrics::Registry;

    fn gathered() -> Gathered {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1, 2], &[1]), partition(1, &[1], &[1])])]);
        let id = image.topic_by_name("t").expect("it is there").id;
        let offset = |topic: &str, id, partition, at| (Arc::from(topic), id, partition, Offset(at));
        let report = |group: &str, members, continued, offsets| GroupReport { group: group.into(), members, offsets, continued };
        let ends = Positions { log_start: Offset(3), high_watermark: Offset(10), log_end: Offset(11), ..Positions::default() };
        Gathered {
            groups: vec![
                report("g", 2, false, vec![offset("t", id, 0, 4), offset("gone", Id(9), 0, 1)]),
                report("g", 2, true, vec![offset("t", Id::ZERO, 1, 7), offset("t", id, 2, 7)]),
                report("h", 0, false, vec![offset("t", Id(77), 0, 1), offset("t", id, 0, 12)]),
            ],
            positions: [(TopicPartition { topic: id, partition: 0 }, ends)].into(),
            image: Arc::new(image),
            cut: false,
        }
    }

    fn text(gathered: &Gathered) -> (Families, Vec<String>) {
        let families = Families::new(&Registry::new());
        let text = families.render_only(0, |out| gathered.put(out));
        (families, text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
    }

    #[test]
    fn groups_have_members_offsets_and_lag() {
        let (_, lines) = text(&gathered());
        let mut groups: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("kafka_consumergroup_")).collect();
        groups.sort_unstable();
        assert_eq!(
            groups,
            [
                "current_offset_sum{consumergroup=\"g\",topic=\"t\"} 11",
                "current_offset_sum{consumergroup=\"h\",topic=\"t\"} 12",
                "current_offset{consumergroup=\"g\",topic=\"t\",partition=\"0\"} 4",
                "current_offset{consumergroup=\"g\",topic=\"t\",partition=\"1\"} 7",
                "current_offset{consumergroup=\"h\",topic=\"t\",partition=\"0\"} 12",
                "lag_sum{consumergroup=\"g\",topic=\"t\"} 6",
                "lag_sum{consumergroup=\"h\",topic=\"t\"} 0",
                "lag{consumergroup=\"g\",topic=\"t\",partition=\"0\"} 6",
                "lag{consumergroup=\"h\",topic=\"t\",partition=\"0\"} 0",
                "members{consumergroup=\"g\"} 2",
                "members{consumergroup=\"h\"} 0",
            ]
        );
    }

    #[test]
    fn topics_have_what_the_exporter_shows() {
        let (_, lines) = text(&gathered());
        for line in [
            "kafka_brokers 1",
            "kafka_topic_partitions{topic=\"t\"} 2",
            "kafka_topic_partition_current_offset{topic=\"t\",partition=\"0\"} 10",
            "kafka_topic_partition_oldest_offset{topic=\"t\",partition=\"0\"} 3",
            "kafka_topic_partition_leader{topic=\"t\",partition=\"0\"} 1",
            "kafka_topic_partition_leader_is_preferred{topic=\"t\",partition=\"0\"} 1",
            "kafka_topic_partition_replicas{topic=\"t\",partition=\"0\"} 2",
            "kafka_topic_partition_in_sync_replica{topic=\"t\",partition=\"0\"} 1",
            "kafka_topic_partition_under_replicated_partition{topic=\"t\",partition=\"0\"} 1",
            "kafka_topic_partition_under_replicated_partition{topic=\"t\",partition=\"1\"} 0",
        ] {
            assert!(lines.iter().any(|shown| shown == line), "{line} is not among {lines:#?}");
        }
        assert!(!lines.iter().any(|line| line.contains("current_offset{topic=\"t\",partition=\"1\"")), "of a log that nobody asked");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut gathered = gathered();
        let offset = |partition: usize| (Arc::from("t"), Id::ZERO, partition as i32 % 2, Offset(1));
        gathered.groups[0].offsets = (0..MAX_SERIES).map(offset).collect();
        gathered.cut = true;
        let (families, lines) = text(&gathered);
        assert_eq!(lines.iter().filter(|line| line.starts_with("kafka_consumergroup")).count(), MAX_SERIES - 1, "all but the brokers");
        let native = families.render(Default::default(), 0);
        let dropped = native.lines().find_map(|line| line.strip_prefix("understudy_metrics_series_dropped_total ")).map(str::parse::<u64>);
        assert!(matches!(dropped, Some(Ok(dropped)) if dropped > MAX_SERIES as u64 / 2), "{dropped:?}");
    }
}
