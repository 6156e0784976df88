//! How fast the cleaner may read and write, and whether it is to stop.

use crate::log::compact::{Pace, Stopped};
use crate::rt::clock::{self, Moment};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Who sleeps looks up so often.
const NAP: Duration = Duration::from_millis(100);

/// What was not used in the last 300 ms is lost.
const SAVED_S: f64 = 0.3;

/// Bytes a second, over all threads.
pub struct Throttle {
    since: Moment,
    booked: Mutex<Booked>,
}

struct Booked {
    bytes_per_second: f64,
    /// Seconds since `since` up to which the bytes so far last.
    until: f64,
}

impl Throttle {
    /// Nothing was read or written yet.
    pub fn new(bytes_per_second: f64) -> Throttle {
        Throttle { since: clock::moment(), booked: Mutex::new(Booked { bytes_per_second, until: 0.0 }) }
    }

    /// Another limit from now on.
    pub fn set_rate(&self, bytes_per_second: f64) {
        self.booked.lock().unwrap_or_else(PoisonError::into_inner).bytes_per_second = bytes_per_second;
    }

    /// Books bytes; how long to wait for that.
    fn book(&self, bytes: u64, now: f64) -> Duration {
        let mut booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = bytes as f64 / booked.bytes_per_second.max(1.0);
        booked.until = booked.until.max(now - SAVED_S) + takes;
        Duration::try_from_secs_f64(booked.until - now).unwrap_or(Duration::ZERO)
    }
}

/// The pace of one task.
pub struct Paced<'a> {
    /// Shared by all.
    pub throttle: &'a Throttle,
    /// The partition calls it off with this.
    pub stop: &'a AtomicBool,
}

impl Pace for Paced<'_> {
    fn io(&mut self, bytes: u64) -> Result<(), Stopped> {
        let mut wait = self.throttle.book(bytes, self.throttle.since.elapsed().as_secs_f64());
        loop {
            if self.stop.load(Relaxed) {
                return Err(Stopped);
            }
            if wait.is_zero() {
                return Ok(());
            }
            let nap = wait.min(NAP);
            std::thread::sleep(nap);
            wait -= nap;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        let throttle = Throttle::new(1000.0);
        assert_eq!(throttle.book(300, 10.0), Duration::ZERO, "what was saved up");
        assert_eq!(throttle.book(500, 10.0), Duration::from_millis(500));
        assert_eq!(throttle.book(500, 10.5), Duration::from_millis(500));
        throttle.set_rate(f64::MAX);
        assert_eq!(throttle.book(u64::MAX, 11.0), Duration::ZERO);
        throttle.set_rate(0.0);
        assert!(throttle.book(10, 12.0) > Duration::from_secs(9), "very slow, but it ends");
    }

    #[test]
    fn a_task_that_was_called_off_stops_at_once() {
        let (throttle, stop) = (Throttle::new(1.0), AtomicBool::new(true));
        assert_eq!(Paced { throttle: &throttle, stop: &stop }.io(1 << 40), Err(Stopped));
    }
}
