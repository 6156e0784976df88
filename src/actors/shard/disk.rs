//! The log directories as the shards see them: where a partition lies, and what the last run left of it.

use crate::actors::log_io::Handle;
use crate::actors::partition::replica::Found;
use crate::core::types::DirectoryId;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One log directory.
pub struct Dir {
    /// Its identity.
    pub id: DirectoryId,
    /// Its thread.
    pub io: Handle,
    /// How many partitions lie in it.
    pub partitions: AtomicUsize,
}

impl Dir {
    /// Its path, not relative to anything.
    pub fn absolute(&self) -> PathBuf {
        std::path::absolute(&self.io.dir).unwrap_or_else(|_| self.io.dir.to_path_buf())
    }
}

/// All log directories, and the partitions found in them at start.
pub struct Disk {
    /// In the order of `log.dirs`; one that holds only the metadata log comes last.
    pub dirs: Vec<Dir>,
    /// How many of them take partitions.
    for_partitions: usize,
    found: Mutex<HashMap<(Arc<str>, i32), (usize, Found)>>,
}

impl Disk {
    /// The directories with what was found in them.
    pub fn new(dirs: Vec<Dir>, for_partitions: usize, found: HashMap<(Arc<str>, i32), (usize, Found)>) -> Disk {
        Disk { dirs, for_partitions, found: Mutex::new(found) }
    }

    /// The directory of a partition and what is in it: where it was found, else the directory with the fewest partitions. What was found
    /// is handed out once: a topic that is deleted and made again starts empty.
    pub fn place(&self, topic: &str, partition: i32) -> (usize, Option<Found>) {
        let mut found = self.found.lock().expect("no holder of this lock panics");
        if let Some((dir, found)) = found.remove(&(Arc::from(topic), partition)) {
            self.dirs[dir].partitions.fetch_add(1, Relaxed);
            return (dir, Some(found));
        }
        let dir = (0..self.for_partitions).min_by_key(|dir| self.dirs[*dir].partitions.load(Relaxed)).unwrap_or(0);
        self.dirs[dir].partitions.fetch_add(1, Relaxed);
        (dir, None)
    }

    /// The directories that take partitions (`log.dirs`).
    pub fn for_partitions(&self) -> &[Dir] {
        &self.dirs[..self.for_partitions]
    }

    /// A partition is gone from a directory.
    pub fn left(&self, dir: usize) {
        self.dirs[dir].partitions.fetch_sub(1, Relaxed);
    }

    /// What was found at start and no partition has asked for: after the first image, these are strays.
    pub fn unclaimed(&self) -> Vec<(usize, Arc<str>, i32)> {
        let found = self.found.lock().expect("no holder of this lock panics");
        found.iter().map(|((topic, partition), (dir, _))| (*dir, topic.clone(), *partition)).collect()
    }

    /// Where a partition's files are.
    pub fn path(&self, dir: usize, topic: &str, partition: i32) -> PathBuf {
        self.dirs[dir].io.dir.join(format!("{topic}-{partition}"))
    }
}
