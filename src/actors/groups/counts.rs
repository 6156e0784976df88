//! How many groups of a coordinator are in which state, as its share of the process's gauges.

use crate::core::group::Coordinator;
use crate::core::group::request::State;
use understudy_metrics::{Families, Groups};

/// What a coordinator has added to the gauges. Dropped, it takes its share back.
pub struct Counts {
    metrics: Families,
    shown: [i64; SHARES],
}

/// All, and one for each state that a group can be in.
const SHARES: usize = 5;

impl Counts {
    /// Nothing shown yet.
    pub fn new(metrics: Families) -> Counts {
        Counts { metrics, shown: [0; SHARES] }
    }

    /// Counts anew.
    pub fn show(&mut self, coordinator: &Coordinator) {
        self.replace(count(coordinator.views().map(|view| view.state)));
    }

    fn replace(&mut self, counts: [i64; SHARES]) {
        let Groups { all, preparing, completing, stable, empty } = &self.metrics.groups;
        for (at, gauge) in [all, preparing, completing, stable, empty].into_iter().enumerate() {
            gauge.add(counts[at] - self.shown[at]);
        }
        self.shown = counts;
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        self.replace([0; SHARES]);
    }
}

fn count(states: impl Iterator<Item = State>) -> [i64; SHARES] {
    let mut counts = [0; SHARES];
    for state in states {
        counts[0] += 1;
        match state {
            State::PreparingRebalance => counts[1] += 1,
            State::CompletingRebalance => counts[2] += 1,
            State::Stable => counts[3] += 1,
            State::Empty => counts[4] += 1,
            // Only ever an answer: no group is kept dead.
            State::Dead => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_metrics::Registry;

    #[test]
    fn each_coordinator_adds_its_share_and_takes_it_back() {
        let metrics = Families::new(&Registry::new());
        let shown = || (metrics.groups.all.get(), metrics.groups.stable.get(), metrics.groups.empty.get());
        let (mut one, mut two) = (Counts::new(metrics.clone()), Counts::new(metrics.clone()));
        one.replace(count([State::Stable, State::Empty, State::Stable].into_iter()));
        two.replace(count([State::Stable, State::PreparingRebalance].into_iter()));
        assert_eq!(shown(), (5, 3, 1));
        one.replace(count([State::Empty].into_iter()));
        assert_eq!(shown(), (3, 1, 1));
        drop(two);
        assert_eq!(shown(), (1, 0, 1));
        drop(one);
        assert_eq!(shown(), (0, 0, 0));
    }
}
