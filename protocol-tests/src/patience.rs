//! Waiting for something to become true, and the only clocks of these tests.

use std::time::{Duration, Instant};

/// How long anything that should happen soon may take on a loaded machine.
pub const SOON: Duration = Duration::from_secs(30);

const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A stopwatch.
#[derive(Debug, Clone, Copy)]
pub struct Watch(Instant);

impl Watch {
    /// Starts now.
    #[allow(clippy::disallowed_methods, reason = "tests of a process measure real time; this is the one place")]
    pub fn start() -> Watch {
        Watch(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// CPU time that this thread has taken: what work costs, whatever else the machine does meanwhile.
pub fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec of our own that lives through the call.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(code, 0, "every Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Looks again and again until `look` finds something, at most for `deadline`.
///
/// # Panics
/// If the deadline passes; `what` says what was waited for.
pub fn eventually<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let watch = Watch::start();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(watch.elapsed() < deadline, "not within {deadline:?}: {what}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
