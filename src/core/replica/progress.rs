//! What a leader knows of one follower (semantics reference, 4.3 and 4.5).

use crate::core::controller::records::BrokerEpoch;
use crate::core::types::{Millis, Offset};

/// How far a follower is, as its fetches tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Where its log ends; unknown until it fetches from this leader.
    log_end: Option<Offset>,
    log_start: Offset,
    fetched_at: Option<Millis>,
    /// Where the leader's log ended at that fetch.
    leader_end: Offset,
    /// Until when it had everything; `None`: never under this leader.
    caught_up_at: Option<Millis>,
    /// When its log last grew.
    moved_at: Option<Millis>,
    /// The incarnation that fetched.
    broker_epoch: BrokerEpoch,
    /// The incarnation that may be in the ISR: registered, unfenced, not shutting down. `None`: none may.
    registered: Option<BrokerEpoch>,
}

/// Why a follower is not caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behind {
    /// It has not fetched from this leader yet.
    NeverFetched,
    /// It has stopped to fetch.
    Silent,
    /// It fetches, records wait for it, and its log does not grow.
    Stuck,
    /// Its log grows, but it has not come up to the leader's end for too long.
    Slow,
}

impl Behind {
    /// As in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Behind::NeverFetched => "bootstrapping",
            Behind::Silent => "dead",
            Behind::Stuck => "stuck",
            Behind::Slow => "slow",
        }
    }
}

impl Progress {
    /// A follower of a leader that begins its epoch. Members of the ISR count as caught up for a while, or the first check would throw
    /// everybody out.
    pub(super) fn begin(in_sync: bool, now: Millis) -> Progress {
        Progress {
            log_end: None,
            log_start: Offset(0),
            fetched_at: None,
            leader_end: Offset::NONE,
            caught_up_at: in_sync.then_some(now),
            moved_at: None,
            broker_epoch: BrokerEpoch::NONE,
            registered: None,
        }
    }

    /// It fetches from `from`; the leader's log ended at `leader_end` just before. Returns whether its log end changed.
    ///
    /// Who asks for the leader's end has everything now. Who asks for what was the end at its last fetch had everything then: under small
    /// steady appends nobody would ever be caught up otherwise.
    pub(super) fn fetched(&mut self, from: Offset, log_start: Offset, broker_epoch: BrokerEpoch, leader_end: Offset, now: Millis) -> bool {
        if from >= leader_end {
            self.caught_up_at = self.caught_up_at.max(Some(now));
        } else if from >= self.leader_end {
            self.caught_up_at = self.caught_up_at.max(self.fetched_at);
        }
        let moved = self.log_end != Some(from);
        if self.log_end.is_some_and(|end| end < from) {
            self.moved_at = Some(now);
        }
        self.log_end = Some(from);
        self.log_start = log_start;
        self.leader_end = leader_end;
        self.fetched_at = Some(now);
        self.broker_epoch = broker_epoch;
        moved
    }

    pub(super) fn register(&mut self, registered: Option<BrokerEpoch>) {
        self.registered = registered;
    }

    /// Where its log ends, if it has said so to this leader.
    pub fn log_end(&self) -> Option<Offset> {
        self.log_end
    }

    /// Where its log starts.
    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    /// The incarnation that fetched last, `NONE` if it does not say.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        self.broker_epoch
    }

    /// When it last had everything.
    pub fn caught_up_at(&self) -> Option<Millis> {
        self.caught_up_at
    }

    /// Whether it may be in the ISR: its broker is alive, and the incarnation that fetched is the registered one (KIP-903).
    pub fn eligible(&self) -> bool {
        self.registered.is_some_and(|registered| self.broker_epoch == BrokerEpoch::NONE || self.broker_epoch == registered)
    }

    /// Whether a fetch comes from an incarnation before the registered one.
    pub(super) fn is_stale(&self, fetching: BrokerEpoch) -> bool {
        fetching != BrokerEpoch::NONE && self.registered.is_some_and(|registered| fetching < registered)
    }

    /// Whether it has, or had a moment ago, all that the leader has.
    pub fn caught_up(&self, leader_end: Offset, now: Millis, lag_max: i64) -> bool {
        self.log_end == Some(leader_end) || self.caught_up_at.is_some_and(|at| now.since(at) <= lag_max)
    }

    /// Why it is not caught up; `None` if it is.
    pub fn behind(&self, leader_end: Offset, now: Millis, lag_max: i64) -> Option<Behind> {
        if self.caught_up(leader_end, now, lag_max) {
            return None;
        }
        let recently = |at: Option<Millis>| at.is_some_and(|at| now.since(at) <= lag_max);
        Some(match self.fetched_at {
            None if self.caught_up_at.is_none() => Behind::NeverFetched,
            None => Behind::Silent,
            at if !recently(at) => Behind::Silent,
            _ if recently(self.moved_at) => Behind::Slow,
            _ => Behind::Stuck,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: i64 = 30_000;

    fn fetch(progress: &mut Progress, from: i64, leader_end: i64, now: i64) {
        progress.fetched(Offset(from), Offset(0), BrokerEpoch(5), Offset(leader_end), Millis(now));
    }

    #[test]
    fn small_steady_appends_leave_a_follower_caught_up() {
        let mut progress = Progress::begin(false, Millis(0));
        for step in 0..100 {
            // Each fetch asks for what was the end at the one before; the leader has one more by now.
            fetch(&mut progress, step, step + 1, step * 1_000);
        }
        assert_eq!(progress.caught_up_at(), Some(Millis(98_000)), "it had everything at the fetch before the last");
        assert!(progress.caught_up(Offset(100), Millis(99_000), LAG));
        assert!(!progress.caught_up(Offset(100), Millis(98_001 + LAG), LAG));
    }

    #[test]
    fn whoever_stands_at_the_end_is_caught_up_however_long_it_is_silent() {
        let mut progress = Progress::begin(true, Millis(0));
        fetch(&mut progress, 10, 10, 100);
        assert!(progress.caught_up(Offset(10), Millis(10 * LAG), LAG));
        assert_eq!(progress.behind(Offset(11), Millis(10 * LAG), LAG), Some(Behind::Silent));
    }

    #[test]
    fn the_reason_of_a_lag() {
        let mut progress = Progress::begin(false, Millis(0));
        assert_eq!(progress.behind(Offset(50), Millis(1), LAG), Some(Behind::NeverFetched));
        fetch(&mut progress, 10, 50, 10);
        assert_eq!(progress.behind(Offset(50), Millis(20), LAG), Some(Behind::Stuck), "it has not moved yet");
        fetch(&mut progress, 20, 50, 30);
        assert_eq!(progress.behind(Offset(50), Millis(40), LAG), Some(Behind::Slow));
        fetch(&mut progress, 20, 50, 30 + LAG);
        assert_eq!(progress.behind(Offset(50), Millis(31 + LAG), LAG), Some(Behind::Stuck));
        assert_eq!(progress.behind(Offset(50), Millis(31 + 2 * LAG), LAG), Some(Behind::Silent));
        let silent = Progress::begin(true, Millis(0));
        assert_eq!(silent.behind(Offset(50), Millis(LAG + 1), LAG), Some(Behind::Silent), "it was in sync under the leader before");
    }

    #[test]
    fn another_incarnation_is_not_trusted_with_the_fetches_of_the_old_one() {
        let mut progress = Progress::begin(false, Millis(0));
        fetch(&mut progress, 10, 10, 1);
        assert!(!progress.eligible(), "not registered");
        progress.register(Some(BrokerEpoch(5)));
        assert!(progress.eligible());
        progress.register(Some(BrokerEpoch(9)));
        assert!(!progress.eligible(), "the one that fetched is gone");
    }
}
