//! The only place that reads the clock. Everything else is given `now`.

use crate::core::types::Millis;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall clock, milliseconds since the Unix epoch.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Millis {
    Millis(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64))
}

/// A point on the monotonic clock, to measure how long something took.
#[derive(Debug, Clone, Copy)]
pub struct Moment(Instant);

/// Now, on the monotonic clock.
#[allow(clippy::disallowed_methods)]
pub fn moment() -> Moment {
    Moment(Instant::now())
}

impl Moment {
    /// Time since this moment.
    pub fn elapsed(self) -> Duration {
        moment().0.saturating_duration_since(self.0)
    }

    /// The point of the runtime's clock that lies `after` this moment.
    pub fn deadline(self, after: Duration) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.0 + after)
    }
}
