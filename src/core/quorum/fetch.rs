//! Serving Fetch as the leader: records up to the log end, what to cut, which snapshot to load, and waiting for news (`kraft.md` 4.1).

use super::message::{Detour, FetchRequest, Fetched, Problem, Records, Response, Ticket};
use super::role::Role;
use super::{Cx, Effect, Quorum, mutant};
use crate::core::types::{Epoch, Millis, Offset};

/// Fetches that wait at a time; who comes on top is answered at once.
const PARKED_MAX: usize = 10_000;

/// A fetch waits no longer than this, in milliseconds.
const WAIT_MAX: i64 = 60_000;

/// A fetch that waits for news.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) ticket: Ticket,
    pub(super) request: FetchRequest,
    pub(super) deadline: Millis,
}

impl Quorum {
    pub(super) fn on_fetch(&mut self, ticket: Ticket, request: FetchRequest, cx: &mut Cx) {
        if let Err(problem) = self.check_fetch(&request) {
            return self.refuse_fetch(ticket, problem, cx);
        }
        if let Some(detour) = self.log.check_prefix(request.offset, request.last_epoch)
            && !(mutant!(DivergenceIgnored) && matches!(detour, Detour::Diverging { .. }))
        {
            return self.answer_fetch(ticket, &request, Some(detour), cx);
        }
        if request.replica.0 >= 0 {
            // It has all below its offset, and it is heard from, whether or not there is anything to send.
            self.note_fetch(request.replica, request.directory, Some(request.offset), cx);
            self.advance_as_leader(cx);
        }
        let known = self.high_watermark();
        let knows_it = request.high_watermark.is_none_or(|theirs| known.is_none_or(|ours| ours <= theirs));
        let no_news = knows_it && request.offset >= self.log.end;
        if no_news
            && request.max_wait > 0
            && let Role::Leader(leading) = &mut self.role
            && leading.parked.len() < PARKED_MAX
        {
            let deadline = Millis(cx.now.0 + request.max_wait.min(WAIT_MAX));
            return leading.parked.push(Parked { ticket, request, deadline });
        }
        self.answer_fetch(ticket, &request, None, cx);
    }

    fn check_fetch(&self, request: &FetchRequest) -> Result<(), Problem> {
        let invalid =
            request.max_wait < 0 || request.offset < Offset(0) || request.last_epoch < Epoch(0) || request.last_epoch > request.epoch;
        if invalid {
            return Err(Problem::Invalid);
        }
        self.check_leads(request.epoch)?;
        // Another node runs under this one's id.
        if request.replica == self.config.me { Err(Problem::Other) } else { Ok(()) }
    }

    /// Only a leader serves, and only those of its epoch: a fetch deposes nobody.
    pub(super) fn check_leads(&self, epoch: Epoch) -> Result<(), Problem> {
        match epoch.cmp(&self.election.epoch) {
            std::cmp::Ordering::Less => Err(Problem::FencedEpoch),
            std::cmp::Ordering::Greater => Err(Problem::UnknownEpoch),
            _ if !self.is_leader() => Err(Problem::NotLeader),
            _ => Ok(()),
        }
    }

    pub(super) fn refuse_fetch(&self, ticket: Ticket, problem: Problem, cx: &mut Cx) {
        let fetched = self.fetched(Some(problem), None);
        cx.fx.push(Effect::Answer { ticket, response: Response::Fetch(fetched) });
    }

    fn fetched(&self, refused: Option<Problem>, detour: Option<Detour>) -> Fetched {
        let high_watermark = if refused.is_none() { self.high_watermark() } else { None };
        Fetched { head: self.head(refused), high_watermark, log_start: self.log.start, detour, records: Records::default() }
    }

    fn answer_fetch(&self, ticket: Ticket, request: &FetchRequest, detour: Option<Detour>, cx: &mut Cx) {
        let answer = self.fetched(None, detour);
        if detour.is_some() || request.offset >= self.log.end {
            return cx.fx.push(Effect::Answer { ticket, response: Response::Fetch(answer) });
        }
        let (from, upto) = (request.offset, self.log.end);
        cx.fx.push(Effect::AnswerFetch { ticket, answer, from, upto, max_bytes: request.max_bytes });
    }

    /// Records were appended: everybody who waits may have them.
    pub(super) fn release_appended(&mut self, cx: &mut Cx) {
        self.release(|parked, end| parked.request.offset < end, cx);
    }

    /// The high watermark moved: everybody hears of it.
    pub(super) fn release_all(&mut self, cx: &mut Cx) {
        self.release(|_, _| true, cx);
    }

    /// Who has waited long enough is answered without news.
    pub(super) fn release_expired(&mut self, cx: &mut Cx) {
        let now = cx.now;
        self.release(|parked, _| parked.deadline <= now, cx);
    }

    fn release(&mut self, is_due: impl Fn(&Parked, Offset) -> bool, cx: &mut Cx) {
        let end = self.log.end;
        let Role::Leader(leading) = &mut self.role else { return };
        let due: Vec<Parked> = leading.parked.extract_if(.., |parked| is_due(parked, end)).collect();
        for Parked { ticket, request, .. } in due {
            // The log start may have moved past it meanwhile.
            let detour = self.log.check_prefix(request.offset, request.last_epoch);
            self.answer_fetch(ticket, &request, detour, cx);
        }
    }
}
