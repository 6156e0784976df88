//! Fetch sessions (KIP-227, semantics reference 3.2): the broker remembers what a client fetches, requests name only what changed, and
//! answers leave out what the client knows.
//!
//! Does not read logs, nor decide what is in them: it is told. Kafka divides its cache by session id for the sake of its locks; this one is
//! whole, so it evicts the one that is least worth keeping of all.

mod partitions;
#[cfg(test)]
mod tests;

use super::chance::Chance;
use super::types::{Epoch, Millis, Offset, TopicId};
use partitions::Partitions;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A session that was idle or has existed for longer may be evicted.
pub const EVICTION_MS: i64 = 120_000;
/// Partitions of all sessions together; who would exceed it goes without a session. Kafka has no such bound.
pub const PARTITIONS_MAX: usize = 1_000_000;

/// How a client names a topic: by name up to Fetch v12, by id from v13.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicRef {
    /// By name.
    Name(Arc<str>),
    /// By id.
    Id(TopicId),
}

/// A partition as the client names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its topic.
    pub topic: TopicRef,
    /// Its index.
    pub partition: i32,
}

/// What is asked of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// First offset wanted.
    pub offset: Offset,
    /// Most bytes of this partition; negative counts as 0.
    pub max_bytes: i32,
    /// The leader epoch that the client believes in, or `NONE`.
    pub current_epoch: Epoch,
    /// Epoch of the last record that the client has, or `NONE`.
    pub last_fetched_epoch: Epoch,
}

/// One partition of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub key: Key,
    /// What of it.
    pub params: Params,
    /// Where the session keeps it; to be handed back to `Answering::shows`.
    pub slot: usize,
}

/// What a fetch request says of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Session id, 0 for none.
    pub session: i32,
    /// 0 wants a session, -1 closes it or wants none, anything else goes on with it.
    pub epoch: i32,
    /// Topics are named by id.
    pub by_id: bool,
    /// A follower asks.
    pub follower: bool,
}

/// What a request means; to be kept until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// No session.
    Sessionless,
    /// A session begins with the answer, if there is room.
    Full {
        /// Topics are named by id.
        by_id: bool,
        /// A follower asks.
        follower: bool,
    },
    /// A session goes on.
    Incremental {
        /// Its id.
        session: i32,
        /// Epoch of the request that must come next, if nothing came between.
        next: i32,
        /// Ids may come again; this does not.
        instance: u64,
    },
}

/// Why a request cannot go on with its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Closed, evicted or never given.
    #[error("no such fetch session")]
    UnknownSession,
    /// Another epoch is due.
    #[error("another epoch of the fetch session is due")]
    WrongEpoch,
    /// Ids in a session of names, or names in one of ids.
    #[error("the fetch session names topics the other way")]
    TopicNaming,
}

/// What an answer's row says, as far as sessions care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// It carries records.
    pub records: bool,
    /// It carries an error.
    pub error: bool,
    /// It carries a diverging epoch.
    pub diverging: bool,
    /// Its high watermark.
    pub high_watermark: Offset,
    /// Its log start.
    pub log_start: Offset,
}

/// Every session of a broker.
#[derive(Debug)]
pub struct Sessions {
    slots: usize,
    partitions_max: usize,
    sessions: HashMap<i32, Session>,
    partitions: usize,
    instances: u64,
    evictions: u64,
    /// By last use, oldest first.
    by_use: BTreeSet<(Millis, i32)>,
    /// By worth, least first: those that any newcomer may evict, and those that a follower may.
    evictable: BTreeSet<Worth>,
    evictable_by_followers: BTreeSet<Worth>,
}

/// Followers' sessions are worth more than consumers', large ones more than small ones.
type Worth = (bool, usize, i32);

#[derive(Debug)]
struct Session {
    instance: u64,
    by_id: bool,
    follower: bool,
    created: Millis,
    used: Millis,
    /// Epoch of the next request.
    epoch: i32,
    /// As it is accounted for.
    size: usize,
    partitions: Partitions,
}

/// The epoch after `epoch`: after 2^31-1 comes 1.
fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl Sessions {
    /// At most `slots` sessions (`max.incremental.fetch.session.cache.slots`).
    pub fn new(slots: usize) -> Sessions {
        Sessions::with_bound(slots, PARTITIONS_MAX)
    }

    fn with_bound(slots: usize, partitions_max: usize) -> Sessions {
        Sessions {
            slots,
            partitions_max,
            sessions: HashMap::new(),
            partitions: 0,
            instances: 0,
            evictions: 0,
            by_use: BTreeSet::new(),
            evictable: BTreeSet::new(),
            evictable_by_followers: BTreeSet::new(),
        }
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Partitions of all sessions.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Evictions since the last call.
    pub fn take_evictions(&mut self) -> u64 {
        std::mem::take(&mut self.evictions)
    }

    /// Takes a request in: `wanted` is what it names (no partition twice), `forgotten` what it no longer wants. Returns what is to be read,
    /// in order. Costs what the request names, and the list of what is to be read.
    pub fn begin(
        &mut self,
        ask: Ask,
        wanted: Vec<Wanted>,
        forgotten: impl IntoIterator<Item = Key>,
        now: Millis,
    ) -> Result<(Context, Vec<Wanted>), Refused> {
        if matches!(ask.epoch, 0 | -1) {
            self.close(ask.session);
            let context = if ask.epoch == 0 { Context::Full { by_id: ask.by_id, follower: ask.follower } } else { Context::Sessionless };
            return Ok((context, wanted));
        }
        let session = self.sessions.get_mut(&ask.session).ok_or(Refused::UnknownSession)?;
        if session.epoch != ask.epoch {
            return Err(Refused::WrongEpoch);
        }
        if session.by_id != ask.by_id {
            return Err(Refused::TopicNaming);
        }
        for Wanted { key, params, .. } in &wanted {
            session.partitions.put(key.clone(), *params, Offset::NONE, Offset::NONE);
        }
        for key in forgotten {
            session.partitions.remove(&key);
        }
        if self.partitions - session.size + session.partitions.len() > self.partitions_max {
            // The client begins anew, and gets no session for so many.
            self.close(ask.session);
            return Err(Refused::UnknownSession);
        }
        if session.partitions.len() == 0 {
            self.close(ask.session);
            return Ok((Context::Sessionless, wanted));
        }
        session.epoch = next_epoch(session.epoch);
        let context = Context::Incremental { session: ask.session, next: session.epoch, instance: session.instance };
        let wanted = session.partitions.wanted();
        self.touch(ask.session, now);
        Ok((context, wanted))
    }

    /// The session of an answer: asks it which rows to show. `WrongEpoch` if another request came in between or the session is gone.
    pub fn answering(&mut self, session: i32, next: i32, instance: u64) -> Result<Answering<'_>, Refused> {
        let session = self.sessions.get_mut(&session).filter(|session| session.epoch == next && session.instance == instance);
        session.map(|session| Answering(&mut session.partitions)).ok_or(Refused::WrongEpoch)
    }

    /// Makes a session of the rows of its first answer, if there is room or somebody has to go for it. Returns its id, or 0.
    pub fn create(
        &mut self,
        (by_id, follower): (bool, bool),
        rows: impl ExactSizeIterator<Item = (Key, Params, Facts)>,
        now: Millis,
        chance: &mut impl Chance,
    ) -> i32 {
        let size = rows.len();
        if self.partitions + size > self.partitions_max {
            return 0;
        }
        if self.sessions.len() >= self.slots && !self.evict((follower, size), now) {
            return 0;
        }
        let mut id = 0;
        while id == 0 || self.sessions.contains_key(&id) {
            id = chance.below(i32::MAX as usize) as i32;
        }
        let mut partitions = Partitions::with_capacity(size);
        for (key, params, facts) in rows {
            partitions.put(key, params, facts.high_watermark, facts.log_start);
        }
        self.instances += 1;
        let session = Session { instance: self.instances, by_id, follower, created: now, used: now, epoch: 1, size: 0, partitions };
        self.sessions.insert(id, session);
        self.touch(id, now);
        id
    }

    /// Accounts for a use and the size of a session.
    fn touch(&mut self, id: i32, now: Millis) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        self.by_use.remove(&(session.used, id));
        let worth = (session.follower, session.size, id);
        self.evictable.remove(&worth);
        self.evictable_by_followers.remove(&worth);
        self.partitions = self.partitions + session.partitions.len() - session.size;
        session.size = session.partitions.len();
        session.used = now;
        self.by_use.insert((now, id));
        let worth = (session.follower, session.size, id);
        let old = now.since(session.created) > EVICTION_MS;
        if old {
            self.evictable.insert(worth);
        }
        if old || !session.follower {
            self.evictable_by_followers.insert(worth);
        }
    }

    fn close(&mut self, id: i32) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.by_use.remove(&(session.used, id));
        let worth = (session.follower, session.size, id);
        self.evictable.remove(&worth);
        self.evictable_by_followers.remove(&worth);
        self.partitions -= session.size;
    }

    /// Makes room for a newcomer: whoever has long been idle goes, or else whoever is worth less.
    fn evict(&mut self, newcomer: (bool, usize), now: Millis) -> bool {
        let idle = self.by_use.first().filter(|(used, _)| now.since(*used) > EVICTION_MS).map(|(_, id)| *id);
        let less_worth = || {
            let candidates = if newcomer.0 { &self.evictable_by_followers } else { &self.evictable };
            candidates.first().filter(|(follower, size, _)| (*follower, *size) < newcomer).map(|(_, _, id)| *id)
        };
        let Some(id) = idle.or_else(less_worth) else { return false };
        self.close(id);
        self.evictions += 1;
        true
    }
}

/// A session that is being answered.
pub struct Answering<'a>(&'a mut Partitions);

impl Answering<'_> {
    /// Whether the row of that slot goes into the answer; notes what the client learns by it. An error makes the client forget, so that the
    /// first good row after it is shown.
    pub fn shows(&mut self, slot: usize, facts: &Facts) -> bool {
        self.0.shows(slot, facts)
    }
}
