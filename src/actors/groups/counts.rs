//! How many groups of a coordinator are in which state, as its share of the process's gauges.

use crate::core::group::Coordinator;
use crate::core::group::request::{Kind, State};
use understudy_metrics::{ConsumerGroups, Families, Groups};

/// What a coordinator has added to the gauges. Dropped, it takes its share back.
pub struct Counts {
    metrics: Families,
    shown: [i64; SHARES],
}

/// All classic groups, and one for each state that a group can be in; then one for each state of consumer groups.
const SHARES: usize = 9;

impl Counts {
    /// Nothing shown yet.
    pub fn new(metrics: Families) -> Counts {
        Counts { metrics, shown: [0; SHARES] }
    }

    /// Counts anew.
    pub fn show(&mut self, coordinator: &Coordinator) {
        self.replace(count(coordinator.states()));
    }

    fn replace(&mut self, counts: [i64; SHARES]) {
        let Groups { all, preparing, completing, stable, empty } = &self.metrics.groups;
        let consumers: &ConsumerGroups = &self.metrics.consumer_groups;
        let gauges =
            [all, preparing, completing, stable, empty, &consumers.assigning, &consumers.reconciling, &consumers.stable, &consumers.empty];
        for (at, gauge) in gauges.into_iter().enumerate() {
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

/// Kafka's `NumGroups` are classic groups.
fn count(states: impl Iterator<Item = (Kind, State)>) -> [i64; SHARES] {
    let mut counts = [0; SHARES];
    for (kind, state) in states {
        counts[0] += i64::from(kind == Kind::Classic);
        match (kind, state) {
            (Kind::Classic, State::PreparingRebalance) => counts[1] += 1,
            (Kind::Classic, State::CompletingRebalance) => counts[2] += 1,
            (Kind::Classic, State::Stable) => counts[3] += 1,
            (Kind::Classic, State::Empty) => counts[4] += 1,
            (Kind::Consumer, State::Assigning) => counts[5] += 1,
            (Kind::Consumer, State::Reconciling) => counts[6] += 1,
            (Kind::Consumer, State::Stable) => counts[7] += 1,
            (Kind::Consumer, State::Empty) => counts[8] += 1,
            // Only ever an answer, or of the other kind.
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_metrics::Registry;

    fn classic<const N: usize>(states: [State; N]) -> [i64; SHARES] {
        count(states.into_iter().map(|state| (Kind::Classic, state)))
    }

    #[test]
    fn each_coordinator_adds_its_share_and_takes_it_back() {
        let metrics = Families::new(&Registry::new());
        let shown = || (metrics.groups.all.get(), metrics.groups.stable.get(), metrics.groups.empty.get());
        let (mut one, mut two) = (Counts::new(metrics.clone()), Counts::new(metrics.clone()));
        one.replace(classic([State::Stable, State::Empty, State::Stable]));
        two.replace(classic([State::Stable, State::PreparingRebalance]));
        assert_eq!(shown(), (5, 3, 1));
        one.replace(classic([State::Empty]));
        assert_eq!(shown(), (3, 1, 1));
        drop(two);
        assert_eq!(shown(), (1, 0, 1));
        drop(one);
        assert_eq!(shown(), (0, 0, 0));
    }

    #[test]
    fn consumer_groups_have_gauges_of_their_own() {
        let metrics = Families::new(&Registry::new());
        let mut counts = Counts::new(metrics.clone());
        let states = [State::Stable, State::Assigning, State::Empty, State::Reconciling, State::Stable];
        counts.replace(count(states.into_iter().map(|state| (Kind::Consumer, state))));
        let own = &metrics.consumer_groups;
        assert_eq!([&own.empty, &own.assigning, &own.reconciling, &own.stable].map(|gauge| gauge.get()), [1, 1, 1, 2]);
        assert_eq!((metrics.groups.all.get(), metrics.groups.stable.get()), (0, 0));
    }
}
