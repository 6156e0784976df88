//! `LogIo`: one OS thread per log directory that does the slow disk work: fsync, recovery, creation and deletion of directories,
//! checkpoint files.
//!
//! * Lifecycle: started by the node before anything touches the directory, ended by dropping its last [`Handle`].
//! * Jobs run in the order they were given, except that syncs asked for while another job ran are done together: at most one round of
//!   syncs is in flight, and the next takes everything that waits (group commit).
//! * A panic in a job ends the process: nobody could say what the disk holds.

pub mod checkpoints;
mod sync;

use crate::core::types::{Millis, Offset, TopicId};
use crate::log::storage::Fs;
use crate::log::{LogError, dirs};
use crate::rt::{Reply, clock};
use checkpoints::Checkpoints;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sync::Syncers;
pub use sync::{Asked, Synced};

/// What the thread can be asked for.
pub enum Job {
    /// Make a log durable as far as it goes now. From: partitions, the quorum. Lost: only with the process.
    Sync(Asked),
    /// Run this on one of the directory's other threads: recovery of a log, a snapshot. From: partitions, the quorum.
    Run(Box<dyn FnOnce() + Send>),
    /// Make the directory and the first files of partitions that were just created, so that tools find them. From: shards.
    Materialise(Vec<NewPartition>),
    /// Delete this directory or file, but not before `at`. From: partitions.
    Remove {
        /// What.
        path: PathBuf,
        /// When.
        at: Millis,
    },
    /// Rename this partition directory out of the way, and delete it after so many milliseconds. From: partitions.
    Discard {
        /// The partition's directory.
        dir: PathBuf,
        /// Its name from now on.
        aside: PathBuf,
        /// `file.delete.delay.ms`.
        after_ms: i64,
    },
    /// Note positions for the checkpoint files. From: partitions.
    Note(Vec<Noted>),
    /// Write the checkpoint files that changed. From: a [`Round`] of a shard every few seconds if something changed; partitions.
    Checkpoint,
    /// Bring everything written to the disk, write the checkpoint files, then answer: the directory is about to be left. From: the node.
    Finish(Reply<Result<(), LogError>>),
}

/// A partition directory to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPartition {
    /// The directory.
    pub dir: PathBuf,
    /// The topic, for `partition.metadata`.
    pub topic: TopicId,
}

/// A position for one of the checkpoint files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition index.
    pub partition: i32,
    /// The new positions; `None` takes the partition out of the files.
    pub at: Option<Marks>,
}

/// What the checkpoint files say of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// `recovery-point-offset-checkpoint`: everything below is on disk.
    pub recovery_point: Offset,
    /// `replication-offset-checkpoint`: the high watermark.
    pub high_watermark: Offset,
    /// `log-start-offset-checkpoint`, only if the log starts inside its first segment.
    pub log_start: Option<Offset>,
    /// `cleaner-offset-checkpoint`, only if something was compacted: everything below.
    pub cleaned_to: Option<Offset>,
}

/// The way to a directory's thread.
#[derive(Clone)]
pub struct Handle {
    jobs: Sender<Job>,
    /// The log directory.
    pub dir: Arc<Path>,
}

impl Handle {
    /// Asks for a job.
    pub fn tell(&self, job: Job) {
        // The thread ends only when every handle is gone, or with the process.
        let _ = self.jobs.send(job);
    }
}

/// Has the checkpoint files of directories written when it is dropped. Whoever has a position to note shares it until that is done: a file
/// that is written before has the old one, and after a position that changes no more nothing would write it again.
pub struct Round(Vec<Handle>);

impl Round {
    /// A round over those directories.
    pub fn new(dirs: impl IntoIterator<Item = Handle>) -> Round {
        Round(dirs.into_iter().collect())
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        self.0.iter().for_each(|dir| dir.tell(Job::Checkpoint));
    }
}

/// Starts the thread of a log directory. `recovery_threads` is `num.recovery.threads.per.data.dir`.
pub fn start(dir: &Path, recovery_threads: usize) -> Result<Handle, LogError> {
    let (jobs, asked) = crossbeam_channel::unbounded();
    let shared: Arc<Path> = dir.into();
    let thread = Thread {
        dir: shared.clone(),
        asked,
        checkpoints: Checkpoints::load(dir)?,
        removals: BTreeSet::new(),
        unmade: VecDeque::new(),
        make_at: Millis(0),
        recovery: Recovery::new(recovery_threads),
        syncers: Syncers::default(),
    };
    let spawned = std::thread::Builder::new().name("log-io".into()).spawn(move || thread.run());
    spawned.map_err(|e| LogError::io("start the disk thread of", dir, e))?;
    Ok(Handle { jobs, dir: shared })
}

struct Thread {
    dir: Arc<Path>,
    asked: Receiver<Job>,
    checkpoints: Checkpoints,
    /// What is to be deleted, by time.
    removals: BTreeSet<(Millis, PathBuf)>,
    /// Partitions without a directory yet, oldest first.
    unmade: VecDeque<NewPartition>,
    /// When to make the next of them.
    make_at: Millis,
    recovery: Recovery,
    syncers: Syncers,
}

/// The threads that recover logs; made when the first is asked for.
struct Recovery {
    threads: usize,
    queue: Option<Sender<Box<dyn FnOnce() + Send>>>,
}

impl Recovery {
    fn new(threads: usize) -> Recovery {
        Recovery { threads: threads.max(1), queue: None }
    }

    fn run(&mut self, job: Box<dyn FnOnce() + Send>) {
        let queue = self.queue.get_or_insert_with(|| {
            let (queue, jobs) = crossbeam_channel::unbounded::<Box<dyn FnOnce() + Send>>();
            for _ in 0..self.threads {
                let jobs = jobs.clone();
                let recover = move || {
                    // A thread that finds nothing for a while ends; recovery happens once, at start.
                    while let Ok(job) = jobs.recv_timeout(RECOVERY_LINGER) {
                        job();
                    }
                };
                if let Err(e) = std::thread::Builder::new().name("log-recovery".into()).spawn(recover) {
                    tracing::warn!("cannot start a recovery thread, recovering in the directory's own: {e}");
                }
            }
            queue
        });
        if let Err(returned) = queue.send(job) {
            // Every recovery thread has gone by now.
            self.queue = None;
            (returned.into_inner())();
        }
    }
}

/// So few directories are made at once: somebody may look for them.
const MAKE_AT_ONCE: usize = 32;

/// More of them wait so long, in milliseconds: whoever made the partitions wants to use them first.
const MAKE_AFTER_MS: i64 = 300;

/// How long a recovery thread waits for more work.
const RECOVERY_LINGER: Duration = Duration::from_secs(1);

impl Thread {
    fn run(mut self) {
        // A half-done job must not be followed by others as if nothing had happened.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.work()));
        if outcome.is_err() {
            tracing::error!("the disk thread of a log directory panicked; stopping at once, the next start recovers");
            std::process::exit(1);
        }
    }

    fn work(&mut self) {
        loop {
            let job = match self.next_job() {
                Some(job) => job,
                None => return,
            };
            let mut syncs = Vec::new();
            let mut others = Vec::new();
            for job in std::iter::once(job).chain(self.asked.try_iter()) {
                match job {
                    Job::Sync(asked) => syncs.push(asked),
                    other => others.push(other),
                }
            }
            self.syncers.round(syncs);
            others.into_iter().for_each(|job| self.perform(job));
        }
    }

    /// The next job; what is due otherwise happens while none is asked for. `None` when nobody can ask any more.
    fn next_job(&mut self) -> Option<Job> {
        loop {
            let removal = self.removals.first().map(|(at, _)| *at);
            let making = (!self.unmade.is_empty()).then_some(self.make_at);
            let Some(due) = removal.into_iter().chain(making).min() else { return self.asked.recv().ok() };
            let wait = due.since(clock::now()).max(0) as u64;
            match self.asked.recv_timeout(Duration::from_millis(wait)) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Timeout) => {
                    self.remove_due(clock::now());
                    self.make_one(clock::now());
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn perform(&mut self, job: Job) {
        match job {
            Job::Sync(asked) => self.syncers.round(vec![asked]),
            Job::Run(work) => self.recovery.run(work),
            Job::Materialise(partitions) => {
                self.unmade.extend(partitions);
                let wait = if self.unmade.len() <= MAKE_AT_ONCE { 0 } else { MAKE_AFTER_MS };
                self.make_at = Millis(clock::now().0 + wait);
            }
            Job::Remove { path, at } => {
                self.removals.insert((at, path));
                self.remove_due(clock::now());
            }
            Job::Discard { dir, aside, after_ms } => match self.set_aside(&dir, &aside) {
                Ok(()) => self.perform(Job::Remove { path: aside, at: Millis(clock::now().0 + after_ms) }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => tracing::warn!(dir = %dir.display(), "cannot set the directory of a partition aside: {e}"),
            },
            Job::Note(noted) => noted.into_iter().for_each(|noted| self.checkpoints.note(noted)),
            Job::Checkpoint => {
                if let Err(e) = self.checkpoints.write() {
                    tracing::warn!("cannot write the checkpoint files, trying again later: {e}");
                }
            }
            Job::Finish(reply) => {
                let synced = sync_everything(&self.dir);
                reply.send(synced.and_then(|()| self.checkpoints.write()));
            }
        }
    }

    /// Renames a partition's directory, or sees to it that it is never made.
    fn set_aside(&mut self, dir: &Path, aside: &Path) -> io::Result<()> {
        self.unmade.retain(|partition| partition.dir != dir);
        std::fs::rename(dir, aside)
    }

    /// Unlinks what is due, on another thread: the blocks of a large file take long to free, and syncs must not wait for that.
    fn remove_due(&mut self, now: Millis) {
        while let Some((at, _)) = self.removals.first() {
            if *at > now {
                return;
            }
            let Some((_, path)) = self.removals.pop_first() else { return };
            self.recovery.run(Box::new(move || remove(&path)));
        }
    }

    /// Makes the directory of one partition, between other jobs.
    fn make_one(&mut self, now: Millis) {
        if now >= self.make_at
            && let Some(partition) = self.unmade.pop_front()
        {
            materialise(&partition);
        }
    }
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => tracing::warn!(path = %path.display(), "cannot delete: {e}"),
        _ => tracing::debug!(path = %path.display(), "deleted"),
    }
}

fn materialise(partition: &NewPartition) {
    // The first append makes what is missing, so a failure here is not yet anybody's problem.
    if let Err(e) = make_files(&partition.dir, partition.topic) {
        tracing::warn!(dir = %partition.dir.display(), "cannot prepare the partition's directory: {e}");
    }
}

/// Makes a partition's directory with its first, empty files. A directory that is there already was made by the first append.
fn make_files(dir: &Path, topic: TopicId) -> Result<(), LogError> {
    match std::fs::create_dir(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) => return Err(LogError::io("create", dir, e)),
    }
    dirs::write_partition_metadata(&Fs, dir, topic)?;
    for suffix in ["log", "index", "timeindex"] {
        let path = dir.join(format!("{:020}.{suffix}", 0));
        // Never truncating: the first append may have been here in the meantime.
        std::fs::OpenOptions::new().append(true).create(true).open(&path).map_err(|e| LogError::io("create", &path, e))?;
    }
    Ok(())
}

/// Everything that was written to the directory's file system is on disk when this returns.
fn sync_everything(dir: &Path) -> Result<(), LogError> {
    let opened = std::fs::File::open(dir).map_err(|e| LogError::io("open", dir, e))?;
    rustix::fs::syncfs(opened).map_err(|e| LogError::io("sync", dir, e.into()))
}
