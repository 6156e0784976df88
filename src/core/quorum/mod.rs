//! The metadata quorum (KRaft): who leads the metadata log, and how much of it is committed. A pure state machine with effects, the whole
//! of KRaft with static voters (kraft.version 0): KIP-595, KIP-630, KIP-996, and the messages of KIP-853.
//!
//! Inputs are methods of [`Quorum`]; each gets a [`Cx`] with the time, a source of chance, and where to push [`Effect`]s. The shell performs
//! the effects strictly in order. What holds (`kraft.md` 10.2):
//!
//! * An epoch, a vote, a leader is on disk before any message shows it.
//! * Nothing counts as held, by a leader for itself or in a follower's fetch offset, before it is on disk. Nobody asks for a vote while part
//!   of its log is not: a vote is given for that log.
//! * A leader's first record is its LeaderChange, and nothing is committed before that is.
//! * Answers to requests of an earlier role are dropped.
//!
//! A quorum of one runs the same code: its voter is elected without a message, and has no timer once it leads.
//!
//! No NoOp records: Kafka's leader writes one every `metadata.max.idle.interval.ms` to keep the high watermark of its followers moving. Here a
//! fetch that knows less of the high watermark is answered at once (KIP-1166), and an idle node is to use neither CPU nor disk.

mod campaign;
mod fetch;
mod follower;
mod leader;
mod log_view;
pub mod message;
#[cfg(test)]
pub(crate) mod mutants;
mod peers;
pub mod records;
mod resign;
mod role;
mod settings;
mod snapshot;
pub mod snapshots;
mod start;
#[cfg(test)]
mod tests;
mod timers;
mod transition;
mod view;
mod vote;

use super::chance::Chance;
use super::types::{BrokerId, Epoch, Millis, Offset};
use log_view::LogView;
pub use log_view::RecoveredLog;
use message::{Head, Problem, Records, Request, Response, SendFailed, Serial, Ticket};
use peers::Peers;
use records::{ElectionState, LeaderChange, SnapshotId};
use role::Role;
pub use settings::{Config, Timing};
pub use view::{ReplicaView, RoleName, VoterView};

/// Whether a known bug is switched on; never outside of tests, which show with it that the simulator finds the bug.
macro_rules! mutant {
    ($name:ident) => {{
        #[cfg(test)]
        let on = $crate::core::quorum::mutants::is_on($crate::core::quorum::mutants::Mutant::$name);
        #[cfg(not(test))]
        let on = false;
        on
    }};
}
pub(crate) use mutant;

/// What an input comes with.
pub struct Cx<'a> {
    /// The time. Only differences count; it should not go back.
    pub now: Millis,
    /// Randomness.
    pub chance: &'a mut dyn Chance,
    /// Where to push what is to be done.
    pub fx: &'a mut Vec<Effect>,
}

/// What the shell does, strictly in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make this the content of `quorum-state`, on disk, before anything else happens.
    PersistState(ElectionState),
    /// Append this control record as a batch of its own at that offset.
    AppendLeaderChange {
        /// Epoch of the batch.
        epoch: Epoch,
        /// Its offset, which is where the log ends.
        offset: Offset,
        /// The record.
        record: LeaderChange,
    },
    /// Append these batches, which are the leader's, as they are.
    Append(Records),
    /// Cut the log so that it ends here: at a batch's bound, and never below what is committed.
    Truncate {
        /// The new log end.
        to: Offset,
    },
    /// Flush the log and report with [`Quorum::flushed`]. One flush at a time: the next takes all that came in between.
    Flush {
        /// Everything below is to be on disk.
        upto: Offset,
        /// To be handed back with the report.
        generation: u64,
    },
    /// Everything below is committed.
    Committed {
        /// The new high watermark.
        upto: Offset,
    },
    /// This node leads, and everything before its epoch is committed: the controller may begin.
    BecameLeader {
        /// Its epoch.
        epoch: Epoch,
    },
    /// This node leads no more: what is not committed may never be.
    Resigned {
        /// The epoch it led.
        epoch: Epoch,
    },
    /// Send a request; the answer, or that there is none, comes back to [`Quorum::response`].
    Send {
        /// Whom to.
        to: BrokerId,
        /// To be handed back with the answer.
        serial: Serial,
        /// What to ask.
        request: Request,
    },
    /// Answer a request.
    Answer {
        /// Which.
        ticket: Ticket,
        /// With what.
        response: Response,
    },
    /// Answer a Fetch with batches from the log.
    AnswerFetch {
        /// Which request.
        ticket: Ticket,
        /// What else the answer says; its records are to be filled in.
        answer: message::Fetched,
        /// Batches from here,
        from: Offset,
        /// and below here,
        upto: Offset,
        /// of about so many bytes, at least one batch.
        max_bytes: u32,
    },
    /// Answer a FetchSnapshot with bytes from the file.
    AnswerSnapshot {
        /// Which request.
        ticket: Ticket,
        /// What else the answer says; its bytes are to be filled in.
        answer: message::SnapshotPart,
        /// How many bytes at most.
        max_bytes: u32,
    },
    /// Write a part of a snapshot that is being loaded to a file that is no snapshot yet; position 0 begins it.
    WriteSnapshot {
        /// Which snapshot.
        id: SnapshotId,
        /// Where the part belongs.
        position: u64,
        /// The part.
        bytes: bytes::Bytes,
    },
    /// That file is complete: make it a snapshot, on disk; drop all of the log and start it at the snapshot's end; replace the state with what
    /// the snapshot holds. All below its end is committed.
    LoadSnapshot {
        /// Which snapshot.
        id: SnapshotId,
    },
    /// The snapshot will not be completed: its file can go.
    DropSnapshot {
        /// Which snapshot.
        id: SnapshotId,
    },
    /// Two nodes contradict each other in a way that no fault explains: stop before it spreads, and perform nothing that follows.
    Fatal(Contradiction),
}

/// A proof that the quorum is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// Two leaders of one epoch.
    #[error("epoch {} of the metadata quorum has two leaders, nodes {} and {}: do two nodes run with the same node.id, or was a disk replaced?", .epoch.0, .known.0, .other.0)]
    TwoLeaders {
        /// The epoch.
        epoch: Epoch,
        /// The one this node knows.
        known: BrokerId,
        /// The other.
        other: BrokerId,
    },
    /// The leader wants this node to cut what is committed.
    #[error("the metadata leader has another log below offset {}, although everything below {} is committed: was a voter's disk replaced?", .to.0, .committed.0)]
    CutBelowCommitted {
        /// Where the leader's log is another.
        to: Offset,
        /// What this node knows to be committed.
        committed: Offset,
    },
    /// No epoch is left.
    #[error(transparent)]
    Exhausted(#[from] EpochsExhausted),
}

/// An append to a log that others lead, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("node does not lead the metadata quorum in epoch {}", .epoch.0)]
pub struct NotLeader {
    /// The epoch it is in.
    pub epoch: Epoch,
    /// Who leads it, if known.
    pub leader: Option<BrokerId>,
}

/// The stored state leaves no epoch to elect a leader in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the metadata quorum is in epoch {}, the last there is: quorum-state or the metadata log is damaged", .0.0)]
pub struct EpochsExhausted(pub Epoch);

/// The quorum as one of its nodes sees it.
#[derive(Debug)]
pub struct Quorum {
    config: Config,
    /// As it is on disk.
    election: ElectionState,
    role: Role,
    log: LogView,
    /// Everything below is committed, as far as this node knows and has it. Never goes back.
    committed: Option<Offset>,
    /// The flush that runs.
    flushing: Option<Offset>,
    peers: Peers,
    /// Told to stop: it campaigns no more.
    stopping: bool,
    /// Has met a contradiction: nothing happens any more.
    failed: bool,
}

impl Quorum {
    /// A request has come in. It is answered by an effect with its ticket, now or later, exactly once.
    pub fn request(&mut self, ticket: Ticket, request: Request, cx: &mut Cx) {
        match request {
            Request::Vote(vote) => self.on_vote(ticket, &vote, cx),
            Request::BeginEpoch(begin) => self.on_begin_epoch(ticket, &begin, cx),
            Request::EndEpoch(end) => self.on_end_epoch(ticket, &end, cx),
            Request::Fetch(fetch) => self.on_fetch(ticket, fetch, cx),
            Request::FetchSnapshot(fetch) => self.on_fetch_snapshot(ticket, &fetch, cx),
        }
        self.poll(cx);
    }

    /// A request of ours was answered, or got no answer. An answer that comes too late is dropped.
    pub fn response(&mut self, from: BrokerId, serial: Serial, outcome: Result<Response, SendFailed>, cx: &mut Cx) {
        let Some(asked) = self.peers.answered(from, serial) else { return };
        match outcome {
            Ok(response) => self.on_response(from, asked, response, cx),
            Err(failed) => self.on_failure(from, asked, failed, cx),
        }
        self.poll(cx);
    }

    /// The connection to a peer closed. If that is the leader, this voter soon asks whether another should lead: a hint that changes no vote.
    pub fn disconnected(&mut self, peer: BrokerId, cx: &mut Cx) {
        self.hint(peer, cx);
        self.poll(cx);
    }

    /// Time has passed; to be called when [`Quorum::next_deadline`] is reached.
    pub fn tick(&mut self, cx: &mut Cx) {
        self.poll(cx);
    }

    /// Takes the next `count` offsets (at least one) for a batch that the shell appends before it performs the effects. Returns its epoch and
    /// base offset.
    pub fn append(&mut self, count: i64, cx: &mut Cx) -> Result<(Epoch, Offset), NotLeader> {
        assert!(count > 0, "a batch holds records");
        if !self.is_leader() {
            return Err(NotLeader { epoch: self.election.epoch, leader: self.leader() });
        }
        let (epoch, base) = (self.election.epoch, self.log.end);
        self.log.append(message::BatchMeta { base, last: base + (count - 1), epoch, size: 0 });
        self.release_appended(cx);
        self.flush(cx);
        Ok((epoch, base))
    }

    /// Everything of the log below `upto` is on this node's disk. `generation` is that of the [`Effect::Flush`].
    pub fn flushed(&mut self, upto: Offset, generation: u64, cx: &mut Cx) {
        if generation != self.log.generation {
            return;
        }
        assert!(upto <= self.log.end, "more was flushed than was appended");
        if self.flushing.is_some_and(|flushing| flushing <= upto) {
            self.flushing = None;
        }
        self.log.durable = self.log.durable.max(upto);
        self.advance(cx);
        self.flush(cx);
        self.poll(cx);
    }

    /// A snapshot of everything below `id.end`, which is committed, is on disk and can be served.
    pub fn snapshot_made(&mut self, id: SnapshotId, size: u64) {
        assert!(self.committed.is_some_and(|committed| id.end <= committed), "only what is committed goes into a snapshot");
        self.log.snapshot_made(id, size);
    }

    /// The log starts at `start` now, which is the end of a snapshot; older snapshots are gone.
    pub fn log_started(&mut self, start: Offset) {
        self.log.advance_start(start);
    }

    /// Something is broken that only another leader can mend: leads no more, and lets the others elect one.
    pub fn resign(&mut self, cx: &mut Cx) {
        self.step_down(cx);
        self.poll(cx);
    }

    /// The node is about to stop: leads no more and campaigns no more. It goes on answering; [`Quorum::may_stop`] says when nobody needs it.
    pub fn stop(&mut self, cx: &mut Cx) {
        self.stopping = true;
        self.resign(cx);
    }

    fn fail(&mut self, why: Contradiction, cx: &mut Cx) {
        self.failed = true;
        cx.fx.push(Effect::Fatal(why));
    }

    fn head(&self, refused: Option<Problem>) -> Head {
        Head { refused, epoch: self.election.epoch, leader: self.election.leader }
    }

    /// Brings what is appended to the disk. Observers vote for nothing and keep nothing for others.
    fn flush(&mut self, cx: &mut Cx) {
        if !self.config.is_voter() {
            self.log.durable = self.log.end;
        }
        if self.flushing.is_none() && self.log.durable < self.log.end {
            self.flushing = Some(self.log.end);
            cx.fx.push(Effect::Flush { upto: self.log.end, generation: self.log.generation });
        }
    }

    /// Whether all of the log is on disk.
    fn is_settled(&self) -> bool {
        self.log.durable == self.log.end || mutant!(UnflushedCounts)
    }

    /// Everything below `upto` is committed.
    fn commit(&mut self, upto: Offset, cx: &mut Cx) -> bool {
        let news = self.committed.is_none_or(|known| upto > known);
        if news {
            self.committed = Some(upto);
            cx.fx.push(Effect::Committed { upto });
        }
        news
    }

    /// What is committed may have grown.
    fn advance(&mut self, cx: &mut Cx) {
        match self.role {
            Role::Leader(_) => self.advance_as_leader(cx),
            Role::Follower(_) => self.advance_as_follower(cx),
            _ => {}
        }
    }
}
