//! Requests of one API: how many by version, what they were answered, how long each phase took.

use std::ops::RangeInclusive;
use std::sync::{OnceLock, RwLock};

use crate::cell::Counter;
use crate::family::Family;
use crate::sink::Sink;
use crate::timing::{QUANTILES, Timing};

/// The handle of one API. Versions and declared errors are born at 0; times appear with the first request, because their 28 series and
/// 7 KiB would be wasted on APIs nobody calls.
#[derive(Debug)]
pub struct ApiMetrics {
    name: &'static str,
    first_version: i16,
    versions: Box<[Counter]>,
    none: Counter,
    errors: RwLock<Vec<(&'static str, Counter)>>,
    phases: OnceLock<Box<Phases>>,
}

/// Microseconds that one request spent in each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// From the request's last byte read to the answer's last byte taken by the socket.
    pub total_us: u64,
    /// Work on this broker.
    pub local_us: u64,
    /// Waiting for followers, for data, for the controller.
    pub remote_us: u64,
    /// From the encoded answer to the socket.
    pub send_us: u64,
}

#[derive(Debug, Default)]
struct Phases {
    total: Timing,
    local: Timing,
    remote: Timing,
    send: Timing,
}

impl ApiMetrics {
    pub(crate) fn new(name: &'static str, versions: RangeInclusive<i16>, errors: &[&'static str]) -> ApiMetrics {
        let first_version = *versions.start();
        ApiMetrics {
            name,
            first_version,
            versions: versions.map(|_| Counter::default()).collect(),
            none: Counter::default(),
            errors: RwLock::new(errors.iter().filter(|name| **name != "NONE").map(|name| (*name, Counter::default())).collect()),
            phases: OnceLock::new(),
        }
    }

    /// Counts a request. A version outside the advertised range is not counted: it is never handled.
    pub fn request(&self, version: i16) {
        if let Some(counter) = version.checked_sub(self.first_version).and_then(|at| self.versions.get(usize::try_from(at).ok()?)) {
            counter.inc();
        }
    }

    /// Counts an answer without error.
    pub fn none(&self) {
        self.none.inc();
    }

    /// Counts an error that was answered, by Kafka's name for it (`NOT_LEADER_OR_FOLLOWER`).
    pub fn error(&self, name: &'static str) {
        let known = self.errors.read().unwrap_or_else(|broken| broken.into_inner());
        if let Some((_, counter)) = known.iter().find(|(known, _)| *known == name) {
            return counter.inc();
        }
        drop(known);
        let mut errors = self.errors.write().unwrap_or_else(|broken| broken.into_inner());
        match errors.iter().find(|(known, _)| *known == name) {
            Some((_, counter)) => counter.inc(),
            None => {
                let counter = Counter::default();
                counter.inc();
                errors.push((name, counter));
            }
        }
    }

    /// Counts where a request's time went.
    pub fn spent(&self, spent: Spent) {
        let phases = self.phases.get_or_init(Box::default);
        phases.total.observe_us(spent.total_us);
        phases.local.observe_us(spent.local_us);
        phases.remote.observe_us(spent.remote_us);
        phases.send.observe_us(spent.send_us);
    }

    pub(crate) fn collect(&self, out: &mut Sink) {
        for (at, counter) in self.versions.iter().enumerate() {
            let version = (self.first_version as usize + at).to_string();
            out.put(Family::Requests, &[self.name, &version], counter.get() as f64);
        }
        let errors = self.errors.read().unwrap_or_else(|broken| broken.into_inner());
        let all = errors.iter().map(|(name, counter)| (*name, counter.get())).chain([("NONE", self.none.get())]);
        for (error, count) in all {
            out.put(Family::Errors, &[self.name, error], count as f64);
            out.put(Family::ApiRequests, &[self.name, error], count as f64);
        }
        let Some(phases) = self.phases.get() else { return };
        let shown = [
            (&phases.total, Family::TotalTimeMs, Family::TotalTimeCount),
            (&phases.local, Family::LocalTimeMs, Family::LocalTimeCount),
            (&phases.remote, Family::RemoteTimeMs, Family::RemoteTimeCount),
            (&phases.send, Family::ResponseSendTimeMs, Family::ResponseSendTimeCount),
        ];
        for (timing, quantile, count) in shown {
            collect_timing(timing, quantile, count, &[self.name], out);
        }
    }
}

/// Puts a `Timing` as quantile gauges and a count, after `labels`.
pub(crate) fn collect_timing(timing: &Timing, quantiles: Family, count: Family, labels: &[&str], out: &mut Sink) {
    let summary = timing.summary(out.now_ms());
    for ((name, _), ms) in QUANTILES.iter().zip(summary.quantiles_ms) {
        let with_quantile: Vec<&str> = labels.iter().copied().chain([*name]).collect();
        out.put(quantiles, &with_quantile, ms);
    }
    out.put(count, labels, summary.count as f64);
}
