//! What the shard tells a partition: a new role, the time, checkpoints, the end.

use super::messages::*;
use super::replica::Found;
use super::{Partition, State};
use crate::actors::log_io::{Job, Marks, Noted};
use crate::core::types::{Id, Millis};
use crate::log::SegmentFiles;
use crate::log::dirs::marked_dir_name;
use crate::rt::clock;
use actix::prelude::*;
use std::sync::Arc;

impl Handler<Assign> for Partition {
    type Result = ();
    fn handle(&mut self, m: Assign, ctx: &mut Context<Self>) {
        let Assign { role, config } = m;
        let reconfigured = !Arc::ptr_eq(&self.config, &config);
        self.role = role.clone();
        self.config = config;
        if let State::Open(replica) = &mut self.state {
            let before = replica.high_watermark();
            replica.log.set_config(self.config.log.clone());
            match replica.assign(role, self.shard.node, &self.config, clock::now()) {
                Ok(true) => self.refuse_waiting(&AppendRefused::NotLeader(self.role.leadership)),
                Ok(false) => self.release(before),
                Err(e) => self.disk_failed(Arc::from(e.to_string())),
            }
        }
        if reconfigured {
            self.look_again(ctx);
        }
        self.show_role();
        self.show_positions();
    }
}

impl Handler<Tick> for Partition {
    type Result = ();
    /// Retention, expired producers, `flush.ms`, what is to be compacted.
    fn handle(&mut self, m: Tick, ctx: &mut Context<Self>) {
        if let State::Closed(Some(_)) = self.state {
            self.open(ctx);
        }
        let State::Open(replica) = &mut self.state else { return };
        let expired = replica.producers.expire(m.now, self.config.producer_id_expiration_ms);
        if expired > 0 {
            tracing::debug!(partition = %self.name(), expired, "producers that were idle for producer.id.expiration.ms are forgotten");
        }
        let State::Open(replica) = &mut self.state else { return };
        if self.config.deletes {
            match replica.retention(m.now) {
                Ok(files) if files.is_empty() => {}
                Ok(files) => {
                    self.remove_files(files);
                    self.touched();
                }
                Err(e) => return self.disk_failed(Arc::from(e.to_string())),
            }
        }
        let State::Open(replica) = &mut self.state else { return };
        match replica.log.roll_overdue(m.now) {
            Ok(false) => self.look_for_dirt(ctx),
            Ok(true) => {
                // What was closed is looked at when it is on the disk.
                let end = replica.log.end();
                replica.snapshot_producers(end);
                self.rolled = true;
                self.sync(ctx);
            }
            Err(e) => return self.disk_failed(Arc::from(e.to_string())),
        }
        self.show_positions();
    }
}

impl Handler<Flush> for Partition {
    type Result = ();
    fn handle(&mut self, _: Flush, ctx: &mut Context<Self>) {
        if let State::Open(replica) = &self.state
            && replica.log.recovery_point() < replica.log.end()
        {
            self.sync(ctx);
        }
    }
}

impl Handler<Checkpoint> for Partition {
    type Result = ();
    fn handle(&mut self, m: Checkpoint, _: &mut Context<Self>) {
        self.checkpoint(false);
        drop(m);
    }
}

impl Handler<Close> for Partition {
    type Result = ();
    fn handle(&mut self, m: Close, ctx: &mut Context<Self>) {
        // A log that was never opened is as the last run left it; one that is still being recovered, or broken, must be recovered again.
        self.stop_compacting();
        let mut clean = matches!(self.state, State::Closed(None) | State::Closed(Some(Found { clean: true, .. })));
        if let State::Open(replica) = &mut self.state {
            let end = replica.log.end();
            replica.snapshot_producers(end);
            match replica.log.close() {
                Ok(()) => clean = !replica.log.is_broken(),
                Err(e) => tracing::warn!(partition = %self.name(), "the log could not be closed properly, the next start recovers it: {e}"),
            }
            self.dirty = true;
            self.checkpoint(true);
        }
        self.state = State::Gone;
        self.refuse_waiting(&AppendRefused::NotLeader(self.role.leadership));
        m.reply.send(clean);
        ctx.stop();
    }
}

impl Handler<Delete> for Partition {
    type Result = ();
    fn handle(&mut self, _: Delete, ctx: &mut Context<Self>) {
        self.stop_compacting();
        self.state = State::Gone;
        self.refuse_waiting(&AppendRefused::Gone);
        self.io.tell(Job::Note(vec![Noted { topic: self.topic.clone(), partition: self.at.partition, at: None }]));
        // The rename happens on the directory's thread, behind a creation of the same directory that may still wait there.
        let aside = self.io.dir.join(marked_dir_name(&self.topic, self.at.partition, Id(uuid::Uuid::new_v4().as_u128()), "delete"));
        self.io.tell(Job::Discard { dir: self.dir.clone(), aside, after_ms: self.config.log.file_delete_delay_ms });
        ctx.stop();
    }
}

impl Partition {
    /// Hands the directory's thread the positions for the checkpoint files, if they changed since the last time. `last`: everything written
    /// is brought to the disk before the files are.
    pub(super) fn checkpoint(&mut self, last: bool) {
        let State::Open(replica) = &mut self.state else { return };
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        if let Err(e) = replica.log.flush_indexes() {
            tracing::warn!(partition = %self.topic, "cannot write the indexes, they are rebuilt when needed: {e}");
        }
        let marks = Marks {
            recovery_point: if last { replica.log.end() } else { replica.log.recovery_point() },
            high_watermark: replica.high_watermark(),
            log_start: (replica.log.start() > replica.log.first_segment()).then(|| replica.log.start()),
            cleaned_to: Some(replica.log.cleaned_to()).filter(|offset| *offset > replica.log.start()),
        };
        self.io.tell(Job::Note(vec![Noted { topic: self.topic.clone(), partition: self.at.partition, at: Some(marks) }]));
    }

    /// Has files unlinked, after `file.delete.delay.ms`.
    pub(super) fn remove_files(&self, files: SegmentFiles) {
        let at = Millis(clock::now().0 + self.config.log.file_delete_delay_ms);
        for path in files.paths {
            self.io.tell(Job::Remove { path, at });
        }
    }
}
