//! Questions to an open partition, and what they are answered when it is not open.

use super::messages::*;
use super::replica::InLog;
use super::{Ask, Partition, State, Synced, Waiting};
use crate::actors::log_io;
use crate::core::types::{Acks, Offset};
use crate::rt::{Gone, Reply, clock};
use actix::prelude::*;
use std::sync::Arc;

impl Partition {
    /// Answers a question, now or when the log is open.
    pub(super) fn ask(&mut self, ask: Ask, ctx: &mut Context<Self>) {
        if let State::Closed(_) = self.state {
            self.open(ctx);
        }
        match &mut self.state {
            State::Open(_) => self.answer(ask, ctx),
            State::Opening(asks) => asks.push_back(ask),
            State::Offline(why) => refuse(ask, &AppendRefused::Storage(why.clone()), &ReadRefused::Storage(why.clone())),
            State::Gone | State::Closed(_) => refuse(ask, &AppendRefused::Gone, &ReadRefused::Gone),
        }
    }

    fn answer(&mut self, ask: Ask, ctx: &mut Context<Self>) {
        let State::Open(replica) = &mut self.state else { return };
        match ask {
            Ask::Append(m) => self.append(m, ctx),
            Ask::Read(m) => {
                let answer = replica.read(&m);
                if let (Ok(answer), Some(wait)) = (&answer, &m.wait)
                    && answer.diverging.is_none()
                {
                    self.waits.register(wait);
                }
                m.reply.send(answer);
            }
            Ask::ListOffset(m) => m.reply.send(replica.list_offset(m.query, m.reader, m.current_epoch)),
            Ask::EpochEnd(m) => m.reply.send(replica.epoch_end(m.current_epoch, m.epoch)),
            Ask::DeleteRecords(m) => {
                let answer = replica.delete_records(m.before, &self.config);
                let answer = answer.map(|(start, files)| {
                    self.remove_files(files);
                    start
                });
                self.touched();
                self.checkpoint(false);
                self.io.tell(log_io::Job::Checkpoint);
                self.show_positions();
                m.reply.send(answer);
            }
            Ask::ListProducers(m) => m.reply.send(Ok(replica.producers.producers().collect())),
            Ask::Describe(m) => m.reply.send(Ok(replica.positions())),
        }
    }

    fn append(&mut self, m: Append, ctx: &mut Context<Self>) {
        let State::Open(replica) = &mut self.state else { return };
        let before = replica.high_watermark();
        let outcome = replica.append(&m.records, m.acks, m.origin, &self.config, clock::now());
        let InLog { appended, end, bytes, records, rolled, flush } = match outcome {
            Ok(in_log) => in_log,
            Err(refused) => {
                if let AppendRefused::Storage(why) = &refused {
                    if replica.log.is_broken() {
                        self.disk_failed(why.clone());
                    } else {
                        self.shard.log_disk_refusal(&self.name(), why);
                    }
                }
                return m.reply.send(Err(refused));
            }
        };
        let (committed, on_disk) = (replica.high_watermark(), replica.counted() >= end);
        if bytes > 0 {
            self.traffic.bytes_in.add(bytes as u64);
            self.traffic.messages_in.add(records.max(0) as u64);
            self.waits.appended(end, bytes as i64);
            self.touched();
        }
        let waiting = Waiting { appended, reply: m.reply };
        match m.acks {
            Acks::All if committed < end => self.committing.park(end, waiting),
            Acks::None | Acks::Leader if !on_disk => self.flushing.park(end, waiting),
            _ => waiting.reply.send(Ok(waiting.appended)),
        }
        if committed > before {
            self.waits.advanced(committed);
        }
        self.rolled |= rolled;
        if flush || rolled {
            self.sync(ctx);
        }
        self.show_positions();
    }

    /// Asks `LogIo` to sync what is not yet on disk; one sync at a time, the next takes everything that was appended meanwhile.
    pub(super) fn sync(&mut self, ctx: &mut Context<Self>) {
        let State::Open(replica) = &mut self.state else { return };
        if self.sync_in_flight {
            return;
        }
        let Some(target) = replica.sync_target() else { return };
        self.sync_in_flight = true;
        let reply = Reply::to(ctx.address(), |outcome| Synced { outcome });
        self.io.tell(log_io::Job::Sync(log_io::Asked { target, reply }));
    }

    /// Answers what waited for `high_watermark` or the disk.
    pub(super) fn release(&mut self, before: Offset) {
        let State::Open(replica) = &mut self.state else { return };
        let (committed, on_disk) = (replica.high_watermark(), replica.counted());
        for waiting in self.flushing.release(on_disk) {
            waiting.reply.send(Ok(waiting.appended));
        }
        let enough = replica.leader.as_ref().is_some_and(|leader| leader.has_enough_replicas());
        for waiting in self.committing.release(committed) {
            let answer = if enough { Ok(waiting.appended) } else { Err(AppendRefused::NotEnoughReplicasAfterAppend) };
            waiting.reply.send(answer);
        }
        if committed > before {
            self.waits.advanced(committed);
        }
    }
}

impl Handler<Synced> for Partition {
    type Result = ();
    fn handle(&mut self, m: Synced, ctx: &mut Context<Self>) {
        self.sync_in_flight = false;
        let State::Open(replica) = &mut self.state else { return };
        let target = match m.outcome {
            Ok((target, Ok(()))) => target,
            // After a failed sync the kernel may have dropped the pages: what the files hold is unknown.
            Ok((_, Err(e))) => return self.disk_failed(Arc::from(e.to_string())),
            Err(Gone) => return,
        };
        let before = replica.high_watermark();
        replica.synced(&target, clock::now());
        let again = replica.leader.as_ref().is_some_and(|leader| leader.awaits_flush());
        self.touched();
        if std::mem::take(&mut self.rolled) {
            // A crash from now on need not read what lies below.
            self.checkpoint(false);
            self.io.tell(log_io::Job::Checkpoint);
            self.look_for_dirt(ctx);
        }
        self.release(before);
        if again {
            self.sync(ctx);
        }
    }
}

/// Answers a question that cannot be served.
fn refuse(ask: Ask, append: &AppendRefused, read: &ReadRefused) {
    match ask {
        Ask::Append(m) => m.reply.send(Err(append.clone())),
        Ask::Read(m) => m.reply.send(Err(read.clone())),
        Ask::ListOffset(m) => m.reply.send(Err(read.clone())),
        Ask::EpochEnd(m) => m.reply.send(Err(read.clone())),
        Ask::DeleteRecords(m) => m.reply.send(Err(read.clone())),
        Ask::ListProducers(m) => m.reply.send(Err(read.clone())),
        Ask::Describe(m) => m.reply.send(Err(read.clone())),
    }
}
