//! Where a scrape's samples go, and who fills it. State that exists anyway (an image's counts, a log's size) is read when somebody asks, so
//! that what does not change costs nothing.

use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use crate::family::{Family, Kind};

/// Series with a label for a topic or a group beyond this many in one scrape are left out and counted in `understudy_metrics_series_dropped_total`.
pub const MAX_SERIES: usize = 50_000;

/// Something that has samples to show when a scrape comes. Called on the thread that serves the scrape: read atomics or published
/// snapshots, never wait.
pub trait Source: Send + Sync {
    /// Puts every sample it has; what it does not put is absent from the scrape.
    fn collect(&self, out: &mut Sink);
}

impl<F: Fn(&mut Sink) + Send + Sync> Source for F {
    fn collect(&self, out: &mut Sink) {
        self(out)
    }
}

/// The samples of one scrape.
pub struct Sink {
    now_ms: i64,
    families: Vec<Vec<Metric>>,
    series: usize,
    dropped: u64,
}

impl Sink {
    pub(crate) fn new(now_ms: i64) -> Sink {
        Sink { now_ms, families: Family::ALL.iter().map(|_| Vec::new()).collect(), series: 0, dropped: 0 }
    }

    /// Time of the scrape, milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Adds a sample. `labels` are the values of the family's labels, in its order; shorter lists leave the rest out.
    pub fn put(&mut self, family: Family, labels: &[&str], value: f64) {
        let names = family.labels();
        assert!(labels.len() <= names.len(), "{} has only {} labels", family.name(), names.len());
        if self.series >= MAX_SERIES && matches!(names.first(), Some(&("topic" | "consumergroup"))) && !labels.is_empty() {
            self.dropped += 1;
            return;
        }
        let mut metric = Metric::from_label(names.iter().zip(labels).map(|(name, value)| pair(name, value)).collect());
        match family.kind() {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        self.series += 1;
        self.families[family as usize].push(metric);
    }

    /// Whether there is room for another series that has a topic or a group for a label.
    pub fn is_full(&self) -> bool {
        self.series >= MAX_SERIES
    }

    /// Counts series that were not even gathered, because there were too many.
    pub fn leave_out(&mut self, series: u64) {
        self.dropped += series;
    }

    /// How many samples found no room so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The samples as the Prometheus crate wants them; families without samples are left out.
    pub(crate) fn into_families(self) -> Vec<MetricFamily> {
        let with_samples = Family::ALL.iter().zip(self.families).filter(|(_, samples)| !samples.is_empty());
        with_samples.map(|(family, samples)| described(*family, samples)).collect()
    }
}

fn described(family: Family, samples: Vec<Metric>) -> MetricFamily {
    let mut out = MetricFamily::default();
    out.set_name(family.name().to_owned());
    out.set_help(family.help().to_owned());
    out.set_field_type(match family.kind() {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
    });
    out.set_metric(samples);
    out
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}
