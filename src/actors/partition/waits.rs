//! Long polls that wait for this partition to become readable further.

use super::messages::FetchWait;
use crate::core::types::Offset;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// The registered polls, and how many bytes lie between what is visible and the log end.
#[derive(Debug, Default)]
pub struct Waits {
    polls: Vec<Weak<FetchWait>>,
    /// Polls alive at the last clean-up; twice as many start the next.
    alive: usize,
    /// Appended and not yet visible: (offset after the batch, its bytes).
    hidden: VecDeque<(Offset, i64)>,
}

/// Below so many registrations no clean-up is worth its time.
const FEW: usize = 16;

impl Waits {
    /// A poll wants to hear of bytes that become visible from now on. Finished polls are forgotten in passing.
    pub fn register(&mut self, poll: &Arc<FetchWait>) {
        if self.polls.len() >= FEW.max(2 * self.alive) {
            self.polls.retain(|poll| poll.strong_count() > 0);
            self.alive = self.polls.len();
        }
        self.polls.push(Arc::downgrade(poll));
    }

    /// A batch was appended; it ends before `end`.
    pub fn appended(&mut self, end: Offset, bytes: i64) {
        self.hidden.push_back((end, bytes));
    }

    /// Consumers may now read up to `visible`.
    pub fn advanced(&mut self, visible: Offset) {
        let mut bytes = 0;
        while let Some((end, size)) = self.hidden.front().copied() {
            if end > visible {
                break;
            }
            bytes += size;
            self.hidden.pop_front();
        }
        if bytes > 0 && !self.polls.is_empty() {
            self.polls.retain(|poll| poll.upgrade().map(|poll| poll.arrived(bytes)).is_some());
        }
    }

    /// Everything that waits must ask again: the role changed, the log was cut, the partition goes away.
    pub fn disturb(&mut self) {
        for poll in self.polls.drain(..) {
            if let Some(poll) = poll.upgrade() {
                poll.disturb();
            }
        }
        self.hidden.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ready(poll: &Arc<FetchWait>) -> bool {
        let poll = poll.clone();
        futures_util::FutureExt::now_or_never(async move { poll.ready().await }).is_some()
    }

    #[test]
    fn a_poll_is_woken_by_the_bytes_it_waits_for_and_not_before() {
        let mut waits = Waits::default();
        let poll = FetchWait::new(100);
        waits.register(&poll);
        waits.appended(Offset(1), 60);
        assert!(!is_ready(&poll), "appended is not visible");
        waits.advanced(Offset(1));
        assert!(!is_ready(&poll), "60 of 100");
        waits.appended(Offset(2), 40);
        waits.appended(Offset(3), 500);
        waits.advanced(Offset(2));
        assert!(is_ready(&poll));
        waits.advanced(Offset(3));
    }

    #[test]
    fn finished_polls_do_not_pile_up() {
        let mut waits = Waits::default();
        let alive: Vec<_> = (0..5).map(|_| FetchWait::new(1)).collect();
        alive.iter().for_each(|poll| waits.register(poll));
        for _ in 0..10_000 {
            waits.register(&FetchWait::new(1));
        }
        assert!(waits.polls.len() <= FEW + 1, "{} registrations", waits.polls.len());
        waits.disturb();
        assert!(alive.iter().all(is_ready));
        assert!(waits.polls.is_empty());
    }
}
