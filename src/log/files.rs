//! Files opened on demand, with a cap on how many stay open in the process: a hundred thousand partitions need no hundred thousand
//! descriptors. The cap is soft: a file that somebody reads or writes right now stays open until that one lets go of it.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use arc_swap::ArcSwapOption;

use super::storage::Storage;

/// How many files stay open unless configured.
pub const DEFAULT_OPEN_FILES: usize = 4096;

/// A storage and the files of it that are open. One per process (or per simulated node); clones share.
pub struct Files<S: Storage>(Arc<Inner<S>>);

struct Inner<S: Storage> {
    storage: S,
    cap: usize,
    /// Slots that were opened, oldest first: the hand of a clock goes round it.
    open: Mutex<VecDeque<Weak<Slot<S>>>>,
}

struct Slot<S: Storage> {
    path: RwLock<PathBuf>,
    file: ArcSwapOption<S::File>,
    used: AtomicBool,
}

/// A file by name, open or not. Clones are the same file.
pub struct Handle<S: Storage>(Arc<Slot<S>>);

impl<S: Storage> Clone for Files<S> {
    fn clone(&self) -> Self {
        Files(self.0.clone())
    }
}

impl<S: Storage> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Handle(self.0.clone())
    }
}

impl<S: Storage> Files<S> {
    /// Keeps at most about `cap` files open, at least one.
    pub fn new(storage: S, cap: usize) -> Files<S> {
        Files(Arc::new(Inner { storage, cap: cap.max(1), open: Mutex::new(VecDeque::new()) }))
    }

    /// The storage itself.
    pub fn storage(&self) -> &S {
        &self.0.storage
    }

    /// How many files are kept open (or were, until their segment went).
    pub fn open_count(&self) -> usize {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// A file that is there, opened when it is first used.
    pub fn handle(&self, path: PathBuf) -> Handle<S> {
        Handle(Arc::new(Slot { path: RwLock::new(path), file: ArcSwapOption::empty(), used: AtomicBool::new(false) }))
    }

    /// An empty file, made now.
    pub fn create(&self, path: PathBuf) -> io::Result<Handle<S>> {
        let file = self.0.storage.create(&path)?;
        let handle = self.handle(path);
        self.keep(&handle, Arc::new(file));
        Ok(handle)
    }

    /// The open file; opens it if need be, and closes one that was not used for long if there are too many.
    #[inline]
    pub fn get(&self, handle: &Handle<S>) -> io::Result<Arc<S::File>> {
        let slot = &*handle.0;
        if let Some(file) = slot.file.load_full() {
            if !slot.used.load(Ordering::Relaxed) {
                slot.used.store(true, Ordering::Relaxed);
            }
            return Ok(file);
        }
        let file = Arc::new(self.0.storage.open(&handle.path())?);
        self.keep(handle, file.clone());
        Ok(file)
    }

    fn keep(&self, handle: &Handle<S>, file: Arc<S::File>) {
        // The first use does not count: what is used once goes before what is used again.
        handle.0.used.store(false, Ordering::Relaxed);
        handle.0.file.store(Some(file));
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Two rounds at most: the first may only take the marks away.
        let mut steps = 2 * open.len();
        while open.len() >= self.0.cap && steps > 0 {
            steps -= 1;
            let Some(oldest) = open.pop_front() else { break };
            let Some(slot) = oldest.upgrade() else { continue };
            if slot.used.swap(false, Ordering::Relaxed) {
                open.push_back(oldest);
            } else {
                slot.file.store(None);
            }
        }
        open.push_back(Arc::downgrade(&handle.0));
    }

    /// Renames the file; a holder of the open file keeps reading it.
    pub fn rename(&self, handle: &Handle<S>, to: PathBuf) -> io::Result<()> {
        let mut path = handle.0.path.write().unwrap_or_else(PoisonError::into_inner);
        self.0.storage.rename(&path, &to)?;
        *path = to;
        Ok(())
    }
}

impl<S: Storage> Handle<S> {
    /// Its path now.
    pub fn path(&self) -> PathBuf {
        self.0.path.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::log::mem::Mem;
    use crate::log::storage::{File, write_at};

    #[test]
    fn at_most_the_cap_stays_open_and_closed_files_open_again() {
        let mem = Mem::new();
        mem.create_dir(Path::new("/d")).unwrap();
        let files = Files::new(mem, 4);
        let handles: Vec<_> = (0..20)
            .map(|i| {
                let handle = files.create(PathBuf::from(format!("/d/{i}"))).unwrap();
                write_at(&*files.get(&handle).unwrap(), 0, &[i], &[]).unwrap();
                handle
            })
            .collect();
        for round in 0..3 {
            for (i, handle) in handles.iter().enumerate() {
                let mut byte = [0];
                files.get(handle).unwrap().pread(0, &mut byte).unwrap();
                assert_eq!(usize::from(byte[0]), i, "round {round}");
                assert!(files.open_count() <= 4);
            }
        }
        assert!(handles.iter().filter(|h| h.0.file.load().is_some()).count() <= 4);
    }

    #[test]
    fn a_file_in_constant_use_is_not_closed() {
        let mem = Mem::new();
        mem.create_dir(Path::new("/d")).unwrap();
        let files = Files::new(mem, 3);
        let hot = files.create(PathBuf::from("/d/hot")).unwrap();
        for i in 0..30 {
            files.get(&hot).unwrap();
            files.create(PathBuf::from(format!("/d/{i}"))).unwrap();
            assert!(hot.0.file.load().is_some(), "closed after {i}");
        }
    }

    #[test]
    fn a_renamed_file_is_found_under_its_new_name() {
        let mem = Mem::new();
        mem.create_dir(Path::new("/d")).unwrap();
        let files = Files::new(mem, 1);
        let a = files.create(PathBuf::from("/d/a")).unwrap();
        files.rename(&a, PathBuf::from("/d/b")).unwrap();
        files.create(PathBuf::from("/d/c")).unwrap();
        files.create(PathBuf::from("/d/e")).unwrap();
        files.get(&a).unwrap();
        assert_eq!(a.path(), Path::new("/d/b"));
    }
}
