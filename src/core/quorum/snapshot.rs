//! Snapshots from one node to another: a leader serves byte ranges, a follower collects them and starts its log anew (`kraft.md` 3.8, 6.5).

use super::message::{Problem, Request, Response, SnapshotPart, SnapshotRequest, Ticket};
use super::peers::Asked;
use super::records::SnapshotId;
use super::role::Role;
use super::{Cx, Effect, Quorum};
use crate::core::types::{BrokerId, Offset};
use bytes::Bytes;

/// A snapshot larger than this is not loaded. Kafka cannot send more than 2 GiB.
const LARGEST: u64 = 4 << 30;

impl Quorum {
    pub(super) fn on_fetch_snapshot(&mut self, ticket: Ticket, request: &SnapshotRequest, cx: &mut Cx) {
        let part = |quorum: &Quorum, refused, size| SnapshotPart {
            head: quorum.head(refused),
            id: request.id,
            size,
            position: request.position,
            bytes: Bytes::new(),
        };
        match self.find_part(request) {
            Ok(size) => {
                if request.replica.0 >= 0 {
                    self.note_fetch(request.replica, request.directory, None, cx);
                }
                let answer = part(self, None, size);
                cx.fx.push(Effect::AnswerSnapshot { ticket, answer, max_bytes: request.max_bytes });
            }
            Err(problem) => {
                let answer = part(self, Some(problem), 0);
                cx.fx.push(Effect::Answer { ticket, response: Response::FetchSnapshot(answer) });
            }
        }
    }

    /// The size of the snapshot, if the part can be served.
    fn find_part(&self, request: &SnapshotRequest) -> Result<u64, Problem> {
        self.check_leads(request.epoch)?;
        if request.replica == self.config.me {
            return Err(Problem::Other);
        }
        let size = self.log.snapshot_size(request.id).ok_or(Problem::SnapshotNotFound)?;
        if request.position < size { Ok(size) } else { Err(Problem::PositionOutOfRange) }
    }

    pub(super) fn fetch_snapshot(&mut self, leader: BrokerId, id: SnapshotId, position: u64, cx: &mut Cx) {
        let request = SnapshotRequest {
            replica: self.config.me,
            directory: self.config.directory,
            epoch: self.election.epoch,
            id,
            position,
            max_bytes: self.config.timing.snapshot_bytes,
        };
        self.send(leader, Asked::Snapshot { id, position }, Request::FetchSnapshot(request), cx);
    }

    /// The leader says to load a snapshot, since its log starts behind this one's end or differs below its start.
    pub(super) fn begin_download(&mut self, leader: BrokerId, id: SnapshotId, cx: &mut Cx) {
        let committed = self.committed.unwrap_or(Offset(0));
        // One that ends below what is committed here would take something back.
        if id.end <= committed || id.epoch > self.election.epoch {
            return self.back_off(leader, cx);
        }
        if let Role::Follower(following) = &mut self.role {
            following.download = Some((id, 0));
        }
    }

    /// Gives up what is being loaded; the next fetch says what to load.
    pub(super) fn drop_download(&mut self, cx: &mut Cx) {
        if let Role::Follower(following) = &mut self.role
            && let Some((id, _)) = following.download.take()
        {
            cx.fx.push(Effect::DropSnapshot { id });
        }
    }

    pub(super) fn on_snapshot_part(&mut self, from: BrokerId, id: SnapshotId, position: u64, part: SnapshotPart, cx: &mut Cx) {
        let expected = matches!(&self.role, Role::Follower(following) if following.download == Some((id, position)));
        if !expected || self.election.leader != Some(from) {
            return;
        }
        let held = position + part.bytes.len() as u64;
        let is_sound = part.id == id && part.position == position && !part.bytes.is_empty() && held <= part.size && part.size <= LARGEST;
        if !is_sound {
            self.drop_download(cx);
            return self.back_off(from, cx);
        }
        self.heard_from_leader(cx);
        cx.fx.push(Effect::WriteSnapshot { id, position, bytes: part.bytes });
        let done = held == part.size;
        if let Role::Follower(following) = &mut self.role {
            following.download = if done { None } else { Some((id, held)) };
        }
        if done {
            cx.fx.push(Effect::LoadSnapshot { id });
            self.log.restart_at(id, part.size);
            self.flushing = None;
            self.committed = Some(id.end);
        }
    }
}
