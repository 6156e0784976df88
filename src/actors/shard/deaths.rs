//! How often a child may die.

use crate::rt::clock::{self, Moment};
use std::collections::VecDeque;
use std::time::Duration;

/// A child that dies so often within [`WINDOW`] stays down.
pub const ALLOWED: usize = 3;

/// See [`ALLOWED`].
pub const WINDOW: Duration = Duration::from_secs(60);

/// The deaths of a child within the window, oldest first.
#[derive(Default)]
pub struct Deaths(VecDeque<Moment>);

impl Deaths {
    /// It died: how often within the window, this time included.
    pub fn another(&mut self) -> usize {
        self.0.retain(|at| at.elapsed() <= WINDOW);
        self.0.push_back(clock::moment());
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_counted() {
        let mut deaths = Deaths::default();
        assert_eq!([deaths.another(), deaths.another(), deaths.another()], [1, 2, ALLOWED]);
    }
}
