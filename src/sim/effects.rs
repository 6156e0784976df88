//! Performs effects on virtual disks and the virtual network, as the actor does on real ones, and checks each.

use super::check::Broken;
use super::disk::{BATCH_BYTES, Batch, SNAPSHOT_BYTES, decode_snapshot, encode_snapshot};
use super::net::happens;
use super::world::{Event, Origin, World};
use crate::core::chance::Chance;
use crate::core::quorum::Effect;
use crate::core::quorum::message::{Detour, Fetched, Problem, Records, Request, Response, SendFailed, Serial, Ticket};
use crate::core::quorum::records::ElectionState;
use crate::core::types::{BrokerId, Epoch, Offset};

impl World {
    pub(super) fn effect(&mut self, node: usize, effect: Effect) -> Result<(), Broken> {
        let me = self.nodes[node].id();
        let incarnation = self.nodes[node].incarnation;
        match effect {
            Effect::PersistState(state) => self.persist(node, state)?,
            Effect::AppendLeaderChange { epoch, offset, .. } => {
                self.coverage.hit("election");
                let batch = Batch { base: offset, last: offset, epoch, value: 0 };
                self.checks.leads(me, epoch, &self.nodes[node].disk)?;
                self.append(node, batch)?;
            }
            Effect::Append(records) => {
                let batches: Vec<Batch> = records.bytes.chunks(BATCH_BYTES).map(Batch::decode).collect();
                for (batch, meta) in batches.into_iter().zip(&records.batches) {
                    if batch.meta() != *meta {
                        return Err(("what is appended is what came", format!("node {}: {batch:?} as {meta:?}", me.0)));
                    }
                    self.append(node, batch)?;
                }
            }
            Effect::Truncate { to } => {
                self.coverage.hit("truncation");
                let target = &self.nodes[node];
                let leads = target.quorum.as_ref().is_some_and(|quorum| quorum.is_leader());
                self.checks.cuts(me, to, target.committed, leads)?;
                self.nodes[node].disk.truncate(to);
            }
            Effect::Flush { upto, generation } => {
                let slow = self.faulty && happens(self.plan.slow_disk, &mut self.chance);
                if slow {
                    self.coverage.hit("slow flush");
                }
                let delay = self.chance.below(if slow { 1500 } else { 6 }) as i64;
                self.at(delay, Event::Flushed { node, incarnation, upto, generation });
            }
            Effect::Committed { upto } => self.committed(node, upto)?,
            Effect::BecameLeader { epoch } => self.became_leader(node, epoch)?,
            Effect::Resigned { .. } => {
                self.coverage.hit("check-quorum or resign");
                self.nodes[node].announced = None;
            }
            Effect::Send { to, serial, request } => self.send(node, to, serial, request)?,
            Effect::Answer { ticket, response } => self.answer(node, ticket, response)?,
            Effect::AnswerFetch { ticket, answer, from, upto, max_bytes } => {
                let records = self.read(node, from, upto, max_bytes);
                self.answer(node, ticket, Response::Fetch(Fetched { records, ..answer }))?;
            }
            Effect::AnswerSnapshot { ticket, mut answer, max_bytes } => {
                match self.nodes[node].disk.snapshots.get(&answer.id) {
                    Some(hash) => {
                        let end = (answer.position + u64::from(max_bytes)).min(SNAPSHOT_BYTES as u64);
                        answer.bytes = encode_snapshot(answer.id, *hash).slice(answer.position as usize..end as usize);
                    }
                    None => answer.head.refused = Some(Problem::SnapshotNotFound),
                }
                self.answer(node, ticket, Response::FetchSnapshot(answer))?;
            }
            Effect::WriteSnapshot { position, bytes, .. } => {
                let download = &mut self.nodes[node].disk.download;
                download.truncate(position as usize);
                download.extend(&bytes[..]);
            }
            Effect::LoadSnapshot { id } => self.load_snapshot(node, id)?,
            Effect::DropSnapshot { .. } => self.nodes[node].disk.download.clear(),
            Effect::Fatal(why) => return Err(("no contradiction", format!("node {}: {why}", me.0))),
        }
        Ok(())
    }

    fn persist(&mut self, node: usize, state: ElectionState) -> Result<(), Broken> {
        let target = &mut self.nodes[node];
        self.checks.persists(target.config.me, &target.disk.state, &state)?;
        target.disk.state = if super::forgets_votes() { ElectionState { voted: None, ..state } } else { state };
        Ok(())
    }

    /// Appends to a node's log, checked against everybody's.
    pub(super) fn append(&mut self, node: usize, batch: Batch) -> Result<(), Broken> {
        let me = self.nodes[node].id();
        if batch.base != self.nodes[node].disk.end {
            return Err(("logs have no gaps", format!("node {} appends {batch:?} at {}", me.0, self.nodes[node].disk.end.0)));
        }
        self.checks.appends(me, &batch, &self.nodes[node].disk)?;
        self.nodes[node].disk.append(batch);
        Ok(())
    }

    fn committed(&mut self, node: usize, upto: Offset) -> Result<(), Broken> {
        let me = self.nodes[node].id();
        let target = &self.nodes[node];
        if target.committed.is_some_and(|known| upto <= known) || upto > target.disk.end {
            return Err((
                "the high watermark rises",
                format!("node {}: {:?} to {}, log end {}", me.0, target.committed, upto.0, target.disk.end.0),
            ));
        }
        let leads = target.quorum.as_ref().is_some_and(|quorum| quorum.is_leader());
        if let Some((_, last)) = target.disk.batch_ending_at(upto).filter(|_| leads) {
            self.checks.commits(me, upto, &last, self.nodes[..self.voters].iter().map(|node| &node.disk))?;
        }
        let target = &mut self.nodes[node];
        target.committed = Some(upto);
        let batches = target.disk.position(target.applied)..target.disk.position(upto);
        for at in batches {
            let target = &mut self.nodes[node];
            let batch = target.disk.log[at];
            let new = self.checks.agreed_end() <= batch.base;
            target.hash = self.checks.applies(me, target.hash, &batch)?;
            (target.applied, target.applied_epoch) = (batch.last + 1, batch.epoch);
            if new {
                self.coverage.hit("committed batch");
            }
        }
        if self.nodes[node].applied < upto {
            return Err(("the high watermark is a batch's bound", format!("node {} commits {}", me.0, upto.0)));
        }
        Ok(())
    }

    fn became_leader(&mut self, node: usize, epoch: Epoch) -> Result<(), Broken> {
        let target = &mut self.nodes[node];
        let has_first = target.applied_epoch == epoch;
        target.announced = Some(epoch);
        if has_first {
            return Ok(());
        }
        Err(("a leader has applied its first record", format!("node {} in epoch {}", target.config.me.0, epoch.0)))
    }

    fn load_snapshot(&mut self, node: usize, id: crate::core::quorum::records::SnapshotId) -> Result<(), Broken> {
        let me = self.nodes[node].id();
        let target = &mut self.nodes[node];
        let Some(hash) = decode_snapshot(id, &target.disk.download) else {
            return Err(("a snapshot comes whole", format!("node {}: {id:?} of {} bytes", me.0, target.disk.download.len())));
        };
        self.checks.has_snapshot(me, id, hash)?;
        if target.committed.is_some_and(|committed| id.end <= committed) {
            return Err(("nothing committed is cut", format!("node {} loads {id:?} over {:?}", me.0, target.committed)));
        }
        self.coverage.hit("snapshot loaded");
        target.disk.download.clear();
        target.disk.snapshots.insert(id, hash);
        if self.faulty && happens(self.plan.crash_inside, &mut self.chance) {
            // The snapshot has its name, the log is still the old one.
            self.coverage.hit("crash between a snapshot and its log");
            self.crash(node, false);
            return Ok(());
        }
        let target = &mut self.nodes[node];
        target.disk.restart_at(id);
        (target.applied, target.hash, target.applied_epoch, target.committed) = (id.end, hash, id.epoch, Some(id.end));
        Ok(())
    }

    fn read(&self, node: usize, from: Offset, upto: Offset, max_bytes: u32) -> Records {
        let disk = &self.nodes[node].disk;
        let first = disk.position(from);
        let most = (max_bytes as usize / BATCH_BYTES).max(1);
        let batches: Vec<&Batch> = disk.log[first..].iter().take_while(|batch| batch.last < upto).take(most).collect();
        let mut bytes = Vec::new();
        batches.iter().for_each(|batch| batch.encode(&mut bytes));
        Records { batches: batches.iter().map(|batch| batch.meta()).collect(), bytes: bytes.into() }
    }

    fn send(&mut self, node: usize, to: BrokerId, serial: Serial, request: Request) -> Result<(), Broken> {
        let me = self.nodes[node].id();
        let disk = &self.nodes[node].disk;
        let epoch = match &request {
            Request::Vote(vote) => vote.epoch,
            Request::BeginEpoch(begin) => begin.epoch,
            Request::EndEpoch(end) => end.epoch,
            Request::Fetch(fetch) => fetch.epoch,
            Request::FetchSnapshot(fetch) => fetch.epoch,
        };
        self.checks.shows(me, epoch, disk)?;
        let is_voter = node < self.voters;
        match &request {
            Request::Vote(vote) if !is_voter => return Err(("observers never campaign", format!("node {}: {vote:?}", me.0))),
            Request::Vote(vote) if !vote.pre_vote => self.checks.votes(me, epoch, me)?,
            Request::Fetch(fetch) if is_voter => {
                let synced = disk.log.get(disk.synced).map_or(disk.end, |batch| batch.base);
                if fetch.offset > synced {
                    return Err((
                        "nothing is acknowledged before it is on disk",
                        format!("node {}: {} > {}", me.0, fetch.offset.0, synced.0),
                    ));
                }
            }
            Request::EndEpoch(_) => self.coverage.hit("succession"),
            _ => {}
        }
        let origin = Origin { node, incarnation: self.nodes[node].incarnation, serial };
        let target = to.0 as usize - 1;
        self.carry(me, to, |world| {
            let event = Event::Arrive { from: origin, to: target, request: request.clone() };
            let delay = world.net.delay(&mut world.chance);
            world.at(delay, event);
        });
        Ok(())
    }

    fn answer(&mut self, node: usize, ticket: Ticket, response: Response) -> Result<(), Broken> {
        let me = self.nodes[node].id();
        let open = self.open.remove(&ticket).filter(|open| open.at == (node, self.nodes[node].incarnation));
        let Some(open) = open else { return Err(("each request is answered once", format!("node {}: {response:?}", me.0))) };
        self.checks.shows(me, response.head().epoch, &self.nodes[node].disk)?;
        match &response {
            Response::Vote { granted: true, .. } => {
                self.coverage.hit(if open.vote_for.is_some() { "vote given" } else { "pre-vote given" });
                if let Some((candidate, epoch)) = open.vote_for {
                    self.checks.votes(me, epoch, candidate)?;
                }
            }
            Response::Vote { .. } => self.coverage.hit(if open.vote_for.is_some() { "vote refused" } else { "pre-vote refused" }),
            Response::Fetch(Fetched { detour: Some(Detour::Diverging { .. }), .. }) => self.coverage.hit("diverging answer"),
            Response::Fetch(fetched) if matches!(fetched.head.refused, Some(Problem::FencedEpoch)) => self.coverage.hit("fetch fenced"),
            Response::Fetch(_) if self.now - open.since >= self.plan.timing.fetch_wait => self.coverage.hit("fetch parked past its time"),
            _ => {}
        }
        if open.is_lost {
            return Ok(());
        }
        let back = self.nodes[open.from.node].id();
        self.carry(me, back, |world| {
            let event = Event::Return { to: open.from, from: me, outcome: Ok(response.clone()) };
            let delay = world.net.delay(&mut world.chance);
            world.at(delay, event);
        });
        Ok(())
    }

    /// What the network does to a message: it comes once, twice, or not at all, and then maybe the connection breaks.
    fn carry(&mut self, from: BrokerId, to: BrokerId, deliver: impl Fn(&mut World)) {
        if !self.net.connects(from, to) {
            return self.coverage.hit("message over a cut");
        }
        if happens(self.net.loss, &mut self.chance) {
            self.coverage.hit("message lost");
            return;
        }
        if happens(self.net.doubling, &mut self.chance) {
            self.coverage.hit("message doubled");
            deliver(self);
        }
        deliver(self);
    }

    /// Whoever waits for that process learns that its connection broke, or does not.
    pub(super) fn break_connections(&mut self, node: usize) {
        let peer = self.nodes[node].id();
        let mut waiting = Vec::new();
        for open in self.open.values_mut().filter(|open| open.at.0 == node && !open.is_lost) {
            open.is_lost = true;
            waiting.push(open.from);
        }
        let (nodes, is_up) = (&self.nodes, self.nodes[node].is_up());
        self.open.retain(|_, open| open.at.0 != node || is_up && open.at.1 == nodes[node].incarnation);
        for from in waiting {
            self.fail(from, node, SendFailed::Disconnected);
        }
        for other in 0..self.nodes.len() {
            if other != node && self.nodes[other].is_up() && self.chance.below(3) > 0 {
                let delay = self.net.delay(&mut self.chance);
                let incarnation = self.nodes[other].incarnation;
                self.at(delay, Event::Closed { node: other, incarnation, peer });
            }
        }
    }
}
