//! A histogram of durations that costs one relaxed atomic add to feed and shows quantiles of the last minutes.
//!
//! Buckets are linear below 16 µs and then eight to an octave, so a quantile is at most one eighth off. It never reads a clock: the scrape
//! passes `now`. Not a Prometheus histogram: Kafka's dashboards read quantile gauges.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LINEAR: usize = 16;
const PER_OCTAVE_BITS: u32 = 3;
const OCTAVES: usize = 24;
/// Durations of 2^28 µs (4.5 minutes) and more share the last bucket.
const BUCKETS: usize = LINEAR + OCTAVES * (1 << PER_OCTAVE_BITS);

/// Quantiles look back between one and two of these, in milliseconds, as long as somebody scrapes. Kafka's decay over about five minutes.
const WINDOW_MS: i64 = 150_000;

/// The quantiles that family A shows, with the label's spelling.
pub const QUANTILES: [(&str, f64); 6] = [("0.50", 0.5), ("0.75", 0.75), ("0.95", 0.95), ("0.98", 0.98), ("0.99", 0.99), ("0.999", 0.999)];

/// Durations in microseconds.
#[derive(Debug)]
pub struct Timing {
    buckets: Box<[AtomicU64]>,
    window: Mutex<Window>,
}

/// Where the quantiles' view starts. Both snapshots stay empty until the first scrape.
#[derive(Debug, Default)]
struct Window {
    baseline: Vec<u64>,
    recent: Vec<u64>,
    recent_ms: i64,
}

/// What a scrape sees of a `Timing`.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Observations since the start.
    pub count: u64,
    /// Milliseconds at each of `QUANTILES`, over the window; 0 when the window is empty.
    pub quantiles_ms: [f64; QUANTILES.len()],
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), window: Mutex::default() }
    }
}

impl Timing {
    /// Counts one duration, in microseconds.
    pub fn observe_us(&self, us: u64) {
        self.buckets[bucket(us)].fetch_add(1, Relaxed);
    }

    /// Count and quantiles as of `now_ms`, which also moves the window on.
    pub fn summary(&self, now_ms: i64) -> Summary {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        let mut window = self.window.lock().unwrap_or_else(|broken| broken.into_inner());
        let in_window: Vec<u64> = match window.baseline.is_empty() {
            true => counts.clone(),
            false => counts.iter().zip(&window.baseline).map(|(now, then)| now.saturating_sub(*then)).collect(),
        };
        let count = counts.iter().sum();
        if window.recent.is_empty() {
            *window = Window { baseline: Vec::new(), recent: counts, recent_ms: now_ms };
        } else if now_ms - window.recent_ms >= WINDOW_MS {
            window.baseline = std::mem::replace(&mut window.recent, counts);
            window.recent_ms = now_ms;
        }
        let total: u64 = in_window.iter().sum();
        Summary { count, quantiles_ms: QUANTILES.map(|(_, q)| quantile_us(&in_window, total, q) / 1000.0) }
    }
}

fn bucket(us: u64) -> usize {
    if us < LINEAR as u64 {
        return us as usize;
    }
    let octave = 63 - us.leading_zeros();
    let sub = (us >> (octave - PER_OCTAVE_BITS)) & ((1 << PER_OCTAVE_BITS) - 1);
    let index = LINEAR + ((octave as usize - 4) << PER_OCTAVE_BITS) + sub as usize;
    index.min(BUCKETS - 1)
}

/// First value of a bucket and its width, in microseconds.
fn bounds(index: usize) -> (u64, u64) {
    if index < LINEAR {
        return (index as u64, 1);
    }
    let above = index - LINEAR;
    let octave = 4 + (above >> PER_OCTAVE_BITS) as u32;
    let width = 1u64 << (octave - PER_OCTAVE_BITS);
    ((1 << octave) + (above as u64 & 7) * width, width)
}

/// The value below which the share `q` of the observations lies, taking them as spread evenly over their bucket.
fn quantile_us(counts: &[u64], total: u64, q: f64) -> f64 {
    let wanted = q * total as f64;
    let mut below = 0.0;
    for (index, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = count as f64;
        if below + count >= wanted {
            let (start, width) = bounds(index);
            return start as f64 + width as f64 * ((wanted - below) / count);
        }
        below += count;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_in_its_bucket_and_buckets_touch() {
        for index in 0..BUCKETS - 1 {
            let (start, width) = bounds(index);
            assert_eq!(bounds(index + 1).0, start + width, "bucket {index} ends where the next one starts");
            assert_eq!(bucket(start), index);
            assert_eq!(bucket(start + width - 1), index);
            assert!(width == 1 || width * 8 <= start, "bucket {index} is at most an eighth of its value wide");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_a_uniform_load() {
        let timing = Timing::default();
        (0..100_000).for_each(|us| timing.observe_us(us));
        let summary = timing.summary(0);
        assert_eq!(summary.count, 100_000);
        for ((label, q), ms) in QUANTILES.iter().zip(summary.quantiles_ms) {
            let exact = q * 100.0;
            assert!((ms - exact).abs() <= exact / 8.0, "quantile {label}: {ms} ms instead of {exact} ms");
        }
    }

    #[test]
    fn old_observations_leave_the_quantiles_but_not_the_count() {
        let timing = Timing::default();
        (0..1000).for_each(|_| timing.observe_us(1_000_000));
        assert!(timing.summary(0).quantiles_ms[0] > 900.0);
        timing.summary(WINDOW_MS);
        assert!(timing.summary(WINDOW_MS + 1).quantiles_ms.iter().all(|ms| *ms == 0.0), "nothing happened inside the window");
        (0..10).for_each(|_| timing.observe_us(2_000));
        let later = timing.summary(2 * WINDOW_MS);
        assert_eq!(later.count, 1010);
        assert!(later.quantiles_ms.iter().all(|ms| (1.9..2.3).contains(ms)), "{later:?}");
        let unscraped = timing.summary(2 * WINDOW_MS + 1);
        assert!(unscraped.quantiles_ms[0] > 1.9, "the window is never shorter than WINDOW_MS: {unscraped:?}");
    }
}
