//! One round of syncs: every file asked for is made durable once, several at a time.

use crate::log::storage::{File, FsFile};
use crate::rt::Reply;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A request to sync files, and whom to tell.
pub type Asked = (Vec<Arc<FsFile>>, Reply<Result<(), Arc<io::Error>>>);

/// Syncs that run at the same time; a disk serves several faster than one after the other.
const PARALLEL: usize = 8;

/// Syncs all files of the round, then answers each asker with the outcome of its own.
pub fn round(asked: Vec<Asked>) {
    let mut files: Vec<&Arc<FsFile>> = asked.iter().flat_map(|(files, _)| files).collect();
    files.sort_by_key(|file| Arc::as_ptr(file));
    files.dedup_by_key(|file| Arc::as_ptr(file));
    let outcomes = sync_all(&files);
    let of = |file: &Arc<FsFile>| {
        let at = files.binary_search_by_key(&Arc::as_ptr(file), |file| Arc::as_ptr(file));
        at.ok().and_then(|at| outcomes[at].as_ref().err().cloned())
    };
    let answers: Vec<_> = asked.iter().map(|(files, _)| files.iter().find_map(of).map_or(Ok(()), Err)).collect();
    for ((_, reply), answer) in asked.into_iter().zip(answers) {
        reply.send(answer);
    }
}

fn sync_all(files: &[&Arc<FsFile>]) -> Vec<Result<(), Arc<io::Error>>> {
    if files.len() == 1 {
        return vec![files[0].sync_data().map_err(Arc::new)];
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(file) = files.get(at) else { return done };
            done.push((at, file.sync_data().map_err(Arc::new)));
        }
    };
    let mut outcomes: Vec<Result<(), Arc<io::Error>>> = files.iter().map(|_| Ok(())).collect();
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..PARALLEL.min(files.len())).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = helpers.into_iter().flat_map(|helper| helper.join().expect("syncing does not panic"));
        for (at, outcome) in own.into_iter().chain(others) {
            outcomes[at] = outcome;
        }
    });
    outcomes
}
