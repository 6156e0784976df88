//! State of the replicas hosted here. The partition's actor stores a number when it changes; all that Kafka derives from it (under
//! replicated, under min ISR, leaders, sums) is worked out at scrape time, so an idle partition costs nothing.
//!
//! The families whose size follows the number of partitions are all collected in this file, and `Detail` switches them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use crate::cell::Gauge;
use crate::family::Family;
use crate::sink::Sink;

/// Replicas per broker up to which `Detail::Auto` shows every partition.
const AUTO_FULL_UP_TO: usize = 2_000;

/// How much is shown of each partition (`metrics.partition.detail`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Detail {
    /// `Full` up to 2,000 replicas, `Unhealthy` beyond.
    #[default]
    Auto,
    /// Everything of every partition.
    Full,
    /// Partitions whose ISR is small, and log sizes summed by topic. Alerts on sums see the same values.
    Unhealthy,
    /// Nothing per partition.
    Off,
}

/// What one replica is and has. Its actor stores; scrapes read. Leave the leader's fields alone while not leading.
#[derive(Debug, Default)]
pub struct PartitionGauges {
    /// 1 while this broker leads the partition.
    pub leading: Gauge,
    /// Size of the ISR, as the leader knows it.
    pub in_sync: Gauge,
    /// Replicas of the assignment (of its target while it is being reassigned).
    pub replicas: Gauge,
    /// The topic's `min.insync.replicas`.
    pub min_in_sync: Gauge,
    /// 1 while the assignment is changing.
    pub reassigning: Gauge,
    /// 1 while the replica cannot serve because of its disk or repeated failures.
    pub offline: Gauge,
    /// Records between the last stable offset and the high watermark.
    pub last_stable_offset_lag: Gauge,
    /// Bytes in the segments.
    pub log_size: Gauge,
    /// Log start offset.
    pub log_start: Gauge,
    /// Log end offset.
    pub log_end: Gauge,
    /// Number of segments.
    pub segments: Gauge,
}

impl PartitionGauges {
    fn leads(&self) -> bool {
        self.leading.get() != 0
    }

    fn under_replicated(&self) -> bool {
        self.leads() && self.in_sync.get() < self.replicas.get()
    }

    /// A minimum beyond the replication factor counts as the replication factor, as in Kafka's `Partition.isUnderMinIsr`.
    fn effective_min(&self) -> i64 {
        self.min_in_sync.get().min(self.replicas.get())
    }

    fn under_min_isr(&self) -> bool {
        self.leads() && self.in_sync.get() < self.effective_min()
    }

    fn at_min_isr(&self) -> bool {
        self.leads() && self.in_sync.get() == self.effective_min()
    }
}

/// By topic and partition. Weak: what the actor drops is gone.
type Hosted = BTreeMap<(Arc<str>, i32), Weak<PartitionGauges>>;

/// Every replica hosted here; one that is dropped by its actor disappears.
#[derive(Debug, Default)]
pub struct Partitions {
    hosted: Mutex<Hosted>,
    detail: AtomicU8,
}

impl Partitions {
    /// The gauges of a replica that starts to be hosted. The actor keeps them as long as it hosts it; a second call for the same partition
    /// replaces what the first one shows.
    pub fn host(&self, topic: &str, partition: i32) -> Arc<PartitionGauges> {
        let gauges = Arc::new(PartitionGauges::default());
        let mut hosted = self.hosted.lock().unwrap_or_else(|broken| broken.into_inner());
        hosted.insert((Arc::from(topic), partition), Arc::downgrade(&gauges));
        gauges
    }

    /// Switches the per-partition families, from the next scrape on.
    pub fn set_detail(&self, detail: Detail) {
        self.detail.store(detail as u8, Relaxed);
    }

    fn detail(&self, replicas: usize) -> Detail {
        match self.detail.load(Relaxed) {
            d if d == Detail::Full as u8 => Detail::Full,
            d if d == Detail::Unhealthy as u8 => Detail::Unhealthy,
            d if d == Detail::Off as u8 => Detail::Off,
            _ if replicas <= AUTO_FULL_UP_TO => Detail::Full,
            _ => Detail::Unhealthy,
        }
    }

    pub(crate) fn collect(&self, out: &mut Sink) {
        let alive = self.alive();
        let count = |is: fn(&PartitionGauges) -> bool| alive.iter().filter(|(_, _, gauges)| is(gauges)).count() as f64;
        out.put(Family::PartitionCount, &[], alive.len() as f64);
        out.put(Family::LeaderCount, &[], count(PartitionGauges::leads));
        out.put(Family::UnderReplicatedPartitions, &[], count(PartitionGauges::under_replicated));
        out.put(Family::UnderMinIsrPartitionCount, &[], count(PartitionGauges::under_min_isr));
        out.put(Family::AtMinIsrPartitionCount, &[], count(PartitionGauges::at_min_isr));
        out.put(Family::ReassigningPartitions, &[], count(|gauges| gauges.leads() && gauges.reassigning.get() != 0));
        out.put(Family::OfflineReplicaCount, &[], count(|gauges| gauges.offline.get() != 0));
        match self.detail(alive.len()) {
            Detail::Off | Detail::Auto => {}
            Detail::Full => alive.iter().for_each(|(topic, partition, gauges)| full(topic, *partition, gauges, out)),
            Detail::Unhealthy => {
                alive.iter().for_each(|(topic, partition, gauges)| unhealthy(topic, *partition, gauges, out));
                for (topic, size) in sizes_by_topic(&alive) {
                    out.put(Family::LogSize, &[topic], size as f64);
                }
            }
        }
    }

    /// All of them, with topic and partition.
    pub fn alive(&self) -> Vec<(Arc<str>, i32, Arc<PartitionGauges>)> {
        let mut hosted = self.hosted.lock().unwrap_or_else(|broken| broken.into_inner());
        let mut alive = Vec::with_capacity(hosted.len());
        hosted.retain(|(topic, partition), weak| match weak.upgrade() {
            Some(gauges) => {
                alive.push((topic.clone(), *partition, gauges));
                true
            }
            None => false,
        });
        alive
    }
}

fn full(topic: &str, partition: i32, gauges: &PartitionGauges, out: &mut Sink) {
    let on_leader = |value: &Gauge| if gauges.leads() { value.get() } else { 0 };
    let samples = [
        (Family::PartitionUnderReplicated, gauges.under_replicated().into()),
        (Family::PartitionUnderMinIsr, gauges.under_min_isr().into()),
        (Family::PartitionAtMinIsr, gauges.at_min_isr().into()),
        (Family::PartitionInSyncReplicas, on_leader(&gauges.in_sync)),
        (Family::PartitionReplicas, on_leader(&gauges.replicas)),
        (Family::PartitionLastStableOffsetLag, on_leader(&gauges.last_stable_offset_lag)),
        (Family::LogSize, gauges.log_size.get()),
        (Family::LogStartOffset, gauges.log_start.get()),
        (Family::LogEndOffset, gauges.log_end.get()),
        (Family::LogSegments, gauges.segments.get()),
    ];
    let partition = partition.to_string();
    samples.into_iter().for_each(|(family, value)| out.put(family, &[topic, &partition], value as f64));
}

fn unhealthy(topic: &str, partition: i32, gauges: &PartitionGauges, out: &mut Sink) {
    let conditions = [
        (Family::PartitionUnderReplicated, gauges.under_replicated()),
        (Family::PartitionUnderMinIsr, gauges.under_min_isr()),
        (Family::PartitionAtMinIsr, gauges.at_min_isr()),
    ];
    for (family, _) in conditions.into_iter().filter(|(_, holds)| *holds) {
        out.put(family, &[topic, &partition.to_string()], 1.0);
    }
}

fn sizes_by_topic(alive: &[(Arc<str>, i32, Arc<PartitionGauges>)]) -> BTreeMap<&str, i64> {
    let mut sizes = BTreeMap::new();
    for (topic, _, gauges) in alive {
        *sizes.entry(&**topic).or_default() += gauges.log_size.get();
    }
    sizes
}
