//! The two cells that the hot path touches: a counter and a gauge, one relaxed atomic operation each, eight bytes, no name. What a cell
//! is called and labelled is decided by whoever collects it, at scrape time.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// A number that only grows. Starts at 0, so that its first increment is visible to `rate()`.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// A gauge that starts elsewhere than at 0.
    pub const fn at(value: i64) -> Gauge {
        Gauge(AtomicI64::new(value))
    }

    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Takes one away.
    pub fn dec(&self) {
        self.add(-1);
    }

    /// The value now.
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}
