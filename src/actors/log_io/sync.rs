//! Rounds of syncs: what was asked for while a round ran is the next round. The targets of a round are synced several at a time.

use crate::log::storage::Fs;
use crate::log::{LogError, SyncTarget};
use crate::rt::Reply;
use crossbeam_channel::{Receiver, Sender};

/// What was synced, or why not.
pub type Synced = (SyncTarget<Fs>, Result<(), LogError>);

/// A log to sync, and whom to tell.
pub struct Asked {
    /// The log's files.
    pub target: SyncTarget<Fs>,
    /// Gets the target back.
    pub reply: Reply<Synced>,
}

impl Asked {
    fn serve(self) {
        let outcome = self.target.sync();
        self.reply.send((self.target, outcome));
    }
}

/// Syncs that run at the same time; a disk serves several together faster than one after the other.
const PARALLEL: usize = 8;

/// The threads that help with a round of several targets; started when the first is needed.
#[derive(Default)]
pub struct Syncers {
    helpers: Option<(Sender<Asked>, Receiver<()>)>,
}

impl Syncers {
    /// Syncs everything of a round; each asker is told as soon as its own is done.
    pub fn round(&mut self, mut asked: Vec<Asked>) {
        let Some(own) = asked.pop() else { return };
        if asked.is_empty() {
            return own.serve();
        }
        let (targets, done) = self.helpers.get_or_insert_with(start);
        let shared = asked.len();
        for target in asked {
            if let Err(returned) = targets.send(target) {
                returned.into_inner().serve();
            }
        }
        own.serve();
        // One round at a time: the next takes everything that was asked for meanwhile.
        done.iter().take(shared).for_each(drop);
    }
}

fn start() -> (Sender<Asked>, Receiver<()>) {
    let (targets, taken) = crossbeam_channel::unbounded::<Asked>();
    let (tell, done) = crossbeam_channel::unbounded();
    for _ in 1..PARALLEL {
        let (taken, tell) = (taken.clone(), tell.clone());
        let serve = move || {
            for asked in taken {
                asked.serve();
                let _ = tell.send(());
            }
        };
        if let Err(e) = std::thread::Builder::new().name("log-sync".into()).spawn(serve) {
            tracing::warn!("one thread less for syncs: {e}");
        }
    }
    (targets, done)
}
