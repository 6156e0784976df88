//! Compaction as the partition sees it: it says when there is something worth it, hands out the work, and puts the result in place.

use super::messages::{Compact, Compacted, Swap, Work};
use super::{Partition, State};
use crate::actors::cleaner::Offer;
use crate::actors::log_io::Job;
use crate::core::types::Millis;
use crate::log::compact::{LastRecord, SwapRefused};
use crate::rt::clock;
use actix::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is known of the compaction of a partition.
#[derive(Default)]
pub(super) struct Compaction {
    /// The cleaner knows of this partition.
    offered: bool,
    /// A task is at work; set to call it off.
    running: Option<Arc<AtomicBool>>,
}

impl Drop for Compaction {
    fn drop(&mut self) {
        // A task must not outlive the partition it is for.
        if let Some(stop) = &self.running {
            stop.store(true, Relaxed);
        }
    }
}

impl Partition {
    /// Tells the cleaner what there is to compact, if it is or will be worth it. Called when that may have changed: a segment was closed,
    /// time passed, the configuration changed, a task ended.
    pub(super) fn look_for_dirt(&mut self, ctx: &Context<Self>) {
        self.look(false, ctx);
    }

    /// The same. `more`: it was compacted a moment ago.
    fn look(&mut self, more: bool, ctx: &Context<Self>) {
        let State::Open(replica) = &self.state else { return };
        let cleaner = &self.shard.cleaner;
        if !self.config.compacts {
            self.stop_compacting();
            return;
        }
        if self.compaction.running.is_some() {
            return;
        }
        let now = clock::now();
        let dirt = match replica.log.dirt(replica.last_stable(), now) {
            Ok(dirt) => dirt,
            Err(e) => return tracing::error!(partition = %self.name(), "cannot tell how much of the log is to be compacted: {e}"),
        };
        let due = if dirt.is_enough() { Some(now) } else { dirt.due };
        match due {
            Some(due) => {
                let name = self.name().into();
                cleaner.offer(self.at, Offer { name, dir: self.io.dir.clone(), partition: ctx.address(), dirt, due, more });
                self.compaction.offered = true;
            }
            None if self.compaction.offered || dirt.dirty_bytes > 0 => {
                cleaner.withdraw(self.at, dirt.ratio());
                self.compaction.offered = true;
            }
            None => {}
        }
    }

    /// The configuration changed.
    pub(super) fn look_again(&mut self, ctx: &Context<Self>) {
        if self.compaction.offered {
            self.shard.cleaner.forgive(self.at);
        }
        self.look_for_dirt(ctx);
    }

    /// Calls off what runs: the log is closed or deleted, or is not to be compacted any more.
    pub(super) fn stop_compacting(&mut self) {
        if let Some(stop) = &self.compaction.running {
            stop.store(true, Relaxed);
        }
        if std::mem::take(&mut self.compaction.offered) {
            self.shard.cleaner.forget(self.at);
        }
    }
}

impl Handler<Compact> for Partition {
    type Result = ();
    fn handle(&mut self, m: Compact, ctx: &mut Context<Self>) {
        let State::Open(replica) = &self.state else { return m.reply.send(None) };
        let now = clock::now();
        let dirt = replica.log.dirt(replica.last_stable(), now);
        let Some(dirt) = dirt.ok().filter(|dirt| self.config.compacts && dirt.is_enough()) else {
            m.reply.send(None);
            return self.look_for_dirt(ctx);
        };
        let last = |(producer_id, epoch, last_offset)| LastRecord { producer_id, epoch, last_offset };
        let producers = replica.producers.last_records(dirt.upto).map(last).collect();
        let stop = Arc::new(AtomicBool::new(false));
        self.compaction.running = Some(stop.clone());
        m.reply.send(Some(Work {
            task: replica.log.compaction(&dirt, producers, now),
            stop,
            io: self.io.clone(),
            delete_delay_ms: self.config.log.file_delete_delay_ms,
        }));
    }
}

impl Handler<Swap> for Partition {
    type Result = ();
    fn handle(&mut self, m: Swap, _: &mut Context<Self>) {
        let State::Open(replica) = &mut self.state else { return m.reply.send(Err(SwapRefused::Changed)) };
        let swapped = replica.log.swap(&m.cleaned, Millis(clock::now().0));
        if let Err(SwapRefused::Log(e)) = &swapped
            && replica.log.is_broken()
        {
            let why = Arc::from(e.to_string());
            self.disk_failed(why);
        }
        m.reply.send(swapped);
        self.show_positions();
    }
}

impl Handler<Compacted> for Partition {
    type Result = ();
    fn handle(&mut self, m: Compacted, ctx: &mut Context<Self>) {
        self.compaction.running = None;
        if let State::Open(replica) = &mut self.state
            && let Some((offset, generation)) = m.cleaned
            && replica.log.set_compacted(offset, generation)
        {
            self.touched();
            self.checkpoint(false);
            self.io.tell(Job::Checkpoint);
        }
        self.look(m.cleaned.is_some(), ctx);
    }
}
