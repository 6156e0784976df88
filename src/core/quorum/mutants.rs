//! Known bugs that tests switch on, one at a time, to see that the simulator finds them. Compiled for tests only.

use std::cell::Cell;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Old records count as committed before the epoch's first one does (Raft, figure 8; KAFKA-12619).
    CommitWithoutLeaderChange,
    /// What is appended counts before it is on disk.
    UnflushedCounts,
    /// A second vote in the same epoch.
    VoteTwice,
    /// A vote for a log that lacks records of this one.
    VoteForAnyLog,
    /// A leader of an epoch that is over is followed.
    DeadEpochAccepted,
    /// A log that is another than the leader's is taken for a prefix of it.
    DivergenceIgnored,
    /// Truncation leaves one record too many.
    CutOneLess,
    /// A leader that restarts leads the same epoch again (KAFKA-10527).
    LeadsAgain,
    /// A follower believes its leader's high watermark beyond its own log.
    WatermarkAboveLog,
}

thread_local! {
    static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Runs `what` with a bug.
pub(crate) fn with<T>(mutant: Mutant, what: impl FnOnce() -> T) -> T {
    ON.set(Some(mutant));
    let out = what();
    ON.set(None);
    out
}

pub(crate) fn is_on(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}
