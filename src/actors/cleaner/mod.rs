//! The cleaner: plain threads of low priority that compact logs. Partitions say when they have something worth it; the threads take the
//! filthiest, do the work with a [`Task`](crate::log::compact::Task), and have the partition put the result in place.
//!
//! * Lifecycle: made by the node; a thread starts when there is something to do and one is free to be had (`log.cleaner.threads`), and
//!   ends when there has been nothing for a while.
//! * Nothing is kept of a partition that is clean, and nobody looks at it.
//! * A partition that cannot be compacted is said so, counted, and tried again later and later; the others go on.

mod metrics;
mod pace;
mod worker;

use crate::actors::partition::Partition;
use crate::core::types::{Millis, TopicPartition};
use crate::log::compact::{Dirt, MapLimits, Stats};
use crate::rt::clock::{self, Moment};
use actix::Addr;
use pace::Throttle;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A thread that found nothing for so long ends.
const LINGER: Duration = Duration::from_secs(10);

/// A partition that failed is tried again after so many milliseconds, doubled with every further failure.
const RETRY_FIRST_MS: i64 = 15_000;

/// The longest it has to wait.
const RETRY_MOST_MS: i64 = 30 * 60_000;

/// The keys that begin with `log.cleaner`, as far as they are not a topic's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// `log.cleaner.enable`.
    pub enabled: bool,
    /// `log.cleaner.threads`.
    pub threads: usize,
    /// `log.cleaner.dedupe.buffer.size`: for all threads.
    pub dedupe_bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`.
    pub load: f64,
    /// `log.cleaner.io.buffer.size`: for all threads, half to read and half to write.
    pub io_bytes: usize,
    /// `log.cleaner.io.max.bytes.per.second`: read and written, by all threads.
    pub bytes_per_second: f64,
    /// `log.cleaner.backoff.ms`: so long a partition waits for filthier ones.
    pub backoff_ms: i64,
}

/// The process's cleaner. Clones are the same.
#[derive(Clone)]
pub struct Cleaner(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    throttle: Throttle,
    secret: [u64; 2],
}

struct State {
    settings: Settings,
    dirs: Vec<Arc<Path>>,
    offers: FxHashMap<TopicPartition, Offer>,
    failing: FxHashMap<TopicPartition, Failing>,
    /// Names of partitions that a thread is at: two tasks would write the same files.
    busy: FxHashSet<Arc<str>>,
    /// How dirty, of those that are.
    dirt: FxHashMap<TopicPartition, f64>,
    threads: usize,
    idle: usize,
    /// Threads that could not be started, or died.
    dead: usize,
    /// The last runs, one for each thread that may run.
    runs: VecDeque<Run>,
    last_run: Moment,
}

/// A partition that is, or will be, worth compacting.
#[derive(Clone)]
pub struct Offer {
    /// Its topic and index, for people.
    pub name: Arc<str>,
    /// Its log directory.
    pub dir: Arc<Path>,
    /// Its actor.
    pub partition: Addr<Partition>,
    /// What there is.
    pub dirt: Dirt,
    /// Not before. In the future if only time will make it worth it.
    pub due: Millis,
    /// It was compacted a moment ago and more is left: it need not wait for filthier ones.
    pub more: bool,
}

/// A partition whose compaction failed.
struct Failing {
    times: u32,
    retry: Millis,
    dir: Arc<Path>,
    bytes: u64,
}

/// What is remembered of a run.
#[derive(Debug, Clone, Copy)]
struct Run {
    took: Duration,
    stats: Stats,
}

impl Settings {
    fn map_limits(&self) -> MapLimits {
        MapLimits { bytes: self.dedupe_bytes / self.threads.max(1) as u64, load: self.load }
    }

    fn io_buffer(&self) -> usize {
        (self.io_bytes / self.threads.max(1) / 2).max(4096)
    }
}

impl Cleaner {
    /// A cleaner without threads yet, for these log directories. `secret`: random.
    pub fn new(settings: Settings, dirs: Vec<Arc<Path>>, secret: [u64; 2]) -> Cleaner {
        let state = State {
            settings,
            dirs,
            offers: FxHashMap::default(),
            failing: FxHashMap::default(),
            busy: FxHashSet::default(),
            dirt: FxHashMap::default(),
            threads: 0,
            idle: 0,
            dead: 0,
            runs: VecDeque::new(),
            last_run: clock::moment(),
        };
        let throttle = Throttle::new(settings.bytes_per_second);
        Cleaner(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), throttle, secret }))
    }

    /// Settings that changed at run time; a task that runs keeps its memory.
    pub fn configure(&self, settings: Settings) {
        let mut state = self.0.lock();
        if state.settings != settings {
            state.settings = settings;
            self.0.throttle.set_rate(settings.bytes_per_second);
            self.have_threads(&mut state);
            self.0.changed.notify_all();
        }
    }

    /// A partition has, or will have, something to compact. Replaces what it said before.
    pub fn offer(&self, at: TopicPartition, mut offer: Offer) {
        let mut state = self.0.lock();
        state.dirt.insert(at, offer.dirt.ratio());
        let pause = if offer.more { 0 } else { state.settings.backoff_ms };
        let backoff = Millis(clock::now().0.saturating_add(pause));
        // Who has been waiting keeps its place; who failed waits longer.
        let waiting = state.offers.get(&at).map(|before| before.due).filter(|due| *due <= backoff && offer.due <= backoff);
        offer.due = waiting.unwrap_or(offer.due.max(backoff));
        if let Some(failing) = state.failing.get_mut(&at) {
            failing.bytes = offer.dirt.dirty_bytes;
            offer.due = offer.due.max(failing.retry);
        }
        state.offers.insert(at, offer);
        self.have_threads(&mut state);
        self.0.changed.notify_one();
    }

    /// A partition has nothing to compact, as far as is known.
    pub fn withdraw(&self, at: TopicPartition, ratio: f64) {
        let mut state = self.0.lock();
        state.offers.remove(&at);
        if ratio > 0.0 {
            state.dirt.insert(at, ratio);
        } else {
            state.dirt.remove(&at);
        }
    }

    /// A partition's settings changed: what failed before may succeed now.
    pub fn forgive(&self, at: TopicPartition) {
        self.0.lock().failing.remove(&at);
    }

    /// A partition is not compacted any more, or no more here.
    pub fn forget(&self, at: TopicPartition) {
        let mut state = self.0.lock();
        state.offers.remove(&at);
        state.failing.remove(&at);
        state.dirt.remove(&at);
    }

    /// Starts a thread if somebody waits, none is idle, and one more may run.
    fn have_threads(&self, state: &mut State) {
        let settings = &state.settings;
        if !settings.enabled || state.offers.is_empty() || state.idle > 0 || state.threads >= settings.threads {
            return;
        }
        let shared = self.0.clone();
        match std::thread::Builder::new().name("log-cleaner".into()).spawn(move || worker::run(&shared)) {
            Ok(_) => state.threads += 1,
            Err(e) => {
                state.dead += 1;
                tracing::error!("cannot start a thread that compacts logs, trying again when a segment is full: {e}");
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the filthiest partition that is due. None: the thread is to end.
    fn next(&self) -> Option<(TopicPartition, Offer, Settings)> {
        let mut state = self.lock();
        let idle_since = clock::moment();
        loop {
            if !state.settings.enabled || state.threads > state.settings.threads {
                state.threads -= 1;
                return None;
            }
            let now = clock::now();
            state.last_run = clock::moment();
            if let Some(at) = state.filthiest(now)
                && let Some(offer) = state.offers.remove(&at)
            {
                state.busy.insert(offer.name.clone());
                return Some((at, offer, state.settings));
            }
            let next = state.free_offers().map(|(_, offer)| offer.due.since(now).max(1) as u64).min().map(Duration::from_millis);
            if next.is_none() && idle_since.elapsed() >= LINGER {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let wait = next.unwrap_or(LINGER);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }

    /// A thread has left a partition.
    fn left(&self, offer: &Offer) {
        self.lock().busy.remove(&offer.name);
        self.changed.notify_one();
    }

    /// Notes how a run ended; `failed` with the reason.
    fn ended(&self, at: TopicPartition, offer: &Offer, took: Duration, outcome: Result<Stats, Option<&str>>) {
        let mut state = self.lock();
        match outcome {
            Ok(stats) => {
                state.failing.remove(&at);
                let most = state.settings.threads.max(1);
                state.runs.push_back(Run { took, stats });
                while state.runs.len() > most {
                    state.runs.pop_front();
                }
            }
            // Called off.
            Err(None) => {}
            Err(Some(why)) => {
                let times = state.failing.get(&at).map_or(1, |failing| failing.times.saturating_add(1));
                let wait = RETRY_FIRST_MS.saturating_mul(1 << (times - 1).min(20)).min(RETRY_MOST_MS);
                let retry = Millis(clock::now().0 + wait);
                state.failing.insert(at, Failing { times, retry, dir: offer.dir.clone(), bytes: offer.dirt.dirty_bytes });
                tracing::error!(
                    partition = %offer.name,
                    dir = %offer.dir.display(),
                    times,
                    retry_in_s = wait / 1000,
                    "the log cannot be compacted and grows; it is tried again by itself, or at once when the topic's configuration is changed: {why}"
                );
            }
        }
    }
}

impl State {
    /// Offers of partitions that no thread is at.
    fn free_offers(&self) -> impl Iterator<Item = (&TopicPartition, &Offer)> {
        self.offers.iter().filter(|(_, offer)| !self.busy.contains(&offer.name))
    }

    fn filthiest(&self, now: Millis) -> Option<TopicPartition> {
        let due = self.free_offers().filter(|(_, offer)| offer.due <= now);
        due.max_by(|a, b| a.1.dirt.ratio().total_cmp(&b.1.dirt.ratio())).map(|(at, _)| *at)
    }
}
