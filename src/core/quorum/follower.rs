//! Following: fetching from the leader, cutting what it does not have, appending what it sends (`kraft.md` 2.4, 4.2). Observers and nodes
//! that look for a leader fetch the same way.

use super::message::{BatchMeta, Detour, FetchRequest, Fetched, Records, Request};
use super::peers::Asked;
use super::role::{Following, Role};
use super::{Contradiction, Cx, Effect, Quorum, mutant};
use crate::core::types::{BrokerId, Epoch, Millis, Offset};

impl Quorum {
    /// Asks the leader for what comes next. If it does not answer, or says that it leads no more, any other voter may know a newer one.
    pub(super) fn fetch_next(&mut self, cx: &mut Cx) {
        let Some(leader) = self.election.leader else { return };
        let Role::Follower(Following { download, .. }) = self.role else { return };
        if self.stopping && self.config.is_voter() || !self.may_fetch() {
            return;
        }
        if self.peers.take_doubt(leader) && self.fetch_from_anyone(Some(leader), cx) {
            return;
        }
        if self.peers.ready(leader) {
            match download {
                Some((id, position)) => self.fetch_snapshot(leader, id, position, cx),
                None => self.fetch_from(leader, cx),
            }
        }
    }

    /// A fetch offset says that all below is on disk, and no offset is to be fetched twice.
    fn may_fetch(&self) -> bool {
        self.is_settled() && !self.peers.fetching()
    }

    /// Asks a voter that may know who leads. Returns whether there was one to ask.
    pub(super) fn fetch_from_anyone(&mut self, except: Option<BrokerId>, cx: &mut Cx) -> bool {
        let ready: Vec<BrokerId> = self.config.others().filter(|id| Some(*id) != except && self.peers.ready(*id)).collect();
        if ready.is_empty() || !self.may_fetch() {
            return false;
        }
        let to = ready[cx.chance.below(ready.len())];
        self.fetch_from(to, cx);
        true
    }

    fn fetch_from(&mut self, to: BrokerId, cx: &mut Cx) {
        let request = FetchRequest {
            replica: self.config.me,
            directory: self.config.directory,
            epoch: self.election.epoch,
            offset: self.log.end,
            last_epoch: self.log.last_epoch(),
            max_wait: self.config.timing.fetch_wait,
            max_bytes: self.config.timing.fetch_bytes,
            high_watermark: Some(self.committed.unwrap_or(Offset::NONE)),
        };
        self.send(to, Asked::Fetch, Request::Fetch(request), cx);
    }

    /// The leader answered: it lives.
    pub(super) fn heard_from_leader(&mut self, cx: &mut Cx) {
        let fetch = self.config.timing.fetch;
        if let Role::Follower(following) = &mut self.role {
            following.fetched = true;
            if let Some(deadline) = &mut following.deadline {
                *deadline = Millis(cx.now.0 + fetch);
            }
        }
    }

    pub(super) fn on_fetched(&mut self, from: BrokerId, fetched: Fetched, cx: &mut Cx) {
        if !matches!(self.role, Role::Follower(_)) || self.election.leader != Some(from) {
            return self.back_off(from, cx);
        }
        self.heard_from_leader(cx);
        match fetched.detour {
            Some(Detour::Diverging { epoch, end }) => return self.cut(epoch, end, cx),
            Some(Detour::Snapshot(id)) => return self.begin_download(from, id, cx),
            None => {}
        }
        if !self.append_fetched(fetched.records, cx) {
            self.back_off(from, cx);
        }
        if let Role::Follower(following) = &mut self.role {
            following.leader_watermark = fetched.high_watermark.max(following.leader_watermark);
        }
        self.flush(cx);
        self.advance_as_follower(cx);
    }

    /// Appends the batches that continue the log. Returns whether all of them did.
    fn append_fetched(&mut self, records: Records, cx: &mut Cx) -> bool {
        let Records { mut batches, bytes } = records;
        let mut next = self.log.end;
        let mut good = 0;
        let mut size = 0;
        let mut epoch = self.log.last_epoch();
        for batch in &batches {
            let fits = batch.base == next && batch.last >= batch.base && batch.epoch >= epoch && batch.epoch <= self.election.epoch;
            if !fits {
                break;
            }
            (next, epoch) = (batch.last + 1, batch.epoch);
            good += 1;
            size += batch.size;
        }
        let all = good == batches.len();
        batches.truncate(good);
        if good > 0 && size <= bytes.len() {
            batches.iter().for_each(|batch: &BatchMeta| self.log.append(*batch));
            cx.fx.push(Effect::Append(Records { batches, bytes: bytes.slice(..size) }));
        }
        all
    }

    /// The leader's log is another from somewhere on: cuts down to where it may be the same.
    fn cut(&mut self, epoch: Epoch, end: Offset, cx: &mut Cx) {
        let mut to = self.log.truncation_for(epoch, end);
        if mutant!(CutOneLess) {
            to = (to + 1).min(self.log.end);
        }
        let committed = self.committed.unwrap_or(Offset(0)).max(self.log.start);
        if to < committed {
            return self.fail(Contradiction::CutBelowCommitted { to, committed }, cx);
        }
        self.log.truncate(to);
        // What runs flushes a log that is no more.
        self.flushing = None;
        cx.fx.push(Effect::Truncate { to });
        self.flush(cx);
    }

    /// What the leader says is committed counts as far as it is here, and on disk: a restart must not take back what was applied.
    pub(super) fn advance_as_follower(&mut self, cx: &mut Cx) {
        let Role::Follower(Following { leader_watermark: Some(leader_watermark), .. }) = self.role else { return };
        let upto = if mutant!(WatermarkAboveLog) { leader_watermark } else { leader_watermark.min(self.log.durable) };
        self.commit(upto, cx);
    }
}
