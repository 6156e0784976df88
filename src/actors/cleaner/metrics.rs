//! What the cleaner shows, read when somebody scrapes. Names and meanings are Kafka's.

use super::Cleaner;
use crate::rt::clock;
use understudy_metrics::{Family, Sink, Source};

impl Source for Cleaner {
    fn collect(&self, out: &mut Sink) {
        let state = self.0.lock();
        for dir in &state.dirs {
            let failing = || state.failing.values().filter(|failing| failing.dir == *dir);
            let name = dir.display().to_string();
            out.put(Family::UncleanablePartitions, &[&name], failing().count() as f64);
            out.put(Family::UncleanableBytes, &[&name], failing().map(|failing| failing.bytes).sum::<u64>() as f64);
        }
        let percent = |share: f64| (share * 100.0).floor();
        out.put(Family::MaxDirtyPercent, &[], percent(state.dirt.values().copied().fold(0.0, f64::max)));
        // With nothing to do no thread has to look.
        let waiting = state.offers.values().any(|offer| offer.due <= clock::now());
        let since = if waiting { state.last_run.elapsed().as_millis() as f64 } else { 0.0 };
        out.put(Family::CleanerTimeSinceLastRunMs, &[], since);
        let (read, kept) = state.runs.iter().fold((0, 0), |(read, kept), run| (read + run.stats.read_bytes, kept + run.stats.kept_bytes));
        out.put(Family::CleanerRecopyPercent, &[], percent(kept as f64 / read.max(1) as f64));
        let most = |of: fn(&super::Run) -> f64| state.runs.iter().map(of).fold(0.0, f64::max);
        out.put(Family::CleanerMaxBufferUtilizationPercent, &[], percent(most(|run| run.stats.utilization)));
        out.put(Family::CleanerMaxCleanTimeSecs, &[], most(|run| run.took.as_secs_f64()).floor());
        let overdue = state.offers.values().map(|offer| offer.dirt.overdue_ms).max().unwrap_or(0);
        out.put(Family::CleanerMaxCompactionDelaySecs, &[], (overdue / 1000) as f64);
        out.put(Family::CleanerDeadThreads, &[], state.dead as f64);
    }
}
