//! A run as a timeline for people: what arrived where, and what the rules made of it.

use super::node::Node;
use crate::core::quorum::message::{Request, Response, SendFailed};
use crate::core::quorum::{Effect, RoleName};
use crate::core::types::BrokerId;

/// Lines of a timeline, if anybody wants them.
#[derive(Debug, Default)]
pub struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that keeps its lines.
    pub fn kept() -> Trace {
        Trace { lines: Some(Vec::new()) }
    }

    /// What was said.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }

    /// Something happened; the text is made only if it is kept.
    pub fn say(&mut self, now: i64, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>4}.{:03} {}", now / 1000, now % 1000, text()));
        }
    }

    /// A request arrived.
    pub fn arrived(&mut self, now: i64, at: &Node, from: BrokerId, request: &Request) {
        self.say(now, || format!("{} <- n{} {}", name(at), from.0, ask(request)));
    }

    /// An answer arrived.
    pub fn returned(&mut self, now: i64, at: &Node, from: BrokerId, outcome: &Result<Response, SendFailed>) {
        self.say(now, || format!("{} <- n{} {}", name(at), from.0, outcome.as_ref().map_or_else(|e| format!("no answer: {e:?}"), reply)));
    }

    /// The rules want something done. What only passes messages on is left out.
    pub fn effect(&mut self, now: i64, at: &Node, effect: &Effect) {
        let text = match effect {
            Effect::Answer { .. } | Effect::AnswerFetch { .. } | Effect::AnswerSnapshot { .. } | Effect::Flush { .. } => return,
            Effect::Send { to, request, .. } => format!("-> n{} {}", to.0, ask(request)),
            Effect::Append(records) => {
                format!("appends {:?}", records.batches.iter().map(|batch| (batch.base.0, batch.epoch.0)).collect::<Vec<_>>())
            }
            Effect::PersistState(state) => {
                let (leader, voted) = (state.leader.map_or(-1, |id| id.0), state.voted.map_or(-1, |vote| vote.0.0));
                format!("persists epoch {} leader {leader} voted {voted}", state.epoch.0)
            }
            other => format!("{other:?}"),
        };
        self.say(now, || format!("{}    {text}", name(at)));
    }
}

fn name(node: &Node) -> String {
    let (role, epoch) = node.quorum.as_ref().map_or((RoleName::Unattached, 0), |quorum| (quorum.role(), quorum.epoch().0));
    format!("n{} {:<11} e{:<3}", node.config.me.0, role.name(), epoch)
}

fn ask(request: &Request) -> String {
    match request {
        Request::Vote(vote) => {
            let kind = if vote.pre_vote { "pre-vote" } else { "vote" };
            format!("{kind} for n{} in e{}, log ({}, {})", vote.candidate.0, vote.epoch.0, vote.last_epoch.0, vote.log_end.0)
        }
        Request::BeginEpoch(begin) => format!("n{} leads e{}", begin.leader.0, begin.epoch.0),
        Request::EndEpoch(end) => {
            let successors: Vec<i32> = end.successors.iter().map(|(id, _)| id.0).collect();
            format!("n{} resigned e{}, then {successors:?}", end.leader.0, end.epoch.0)
        }
        Request::Fetch(fetch) => format!("fetch from ({}, {}) in e{}", fetch.last_epoch.0, fetch.offset.0, fetch.epoch.0),
        Request::FetchSnapshot(fetch) => format!("snapshot ({}, {}) from byte {}", fetch.id.end.0, fetch.id.epoch.0, fetch.position),
    }
}

fn reply(response: &Response) -> String {
    let head = response.head();
    let leader = head.leader.map_or("?".to_owned(), |id| format!("n{}", id.0));
    let what = match response {
        _ if head.refused.is_some() => format!("refused: {:?}", head.refused),
        Response::Vote { granted, .. } => if *granted { "granted" } else { "not granted" }.to_owned(),
        Response::BeginEpoch(_) | Response::EndEpoch(_) => "understood".to_owned(),
        Response::Fetch(fetched) => {
            let high_watermark = fetched.high_watermark.map_or(-1, |offset| offset.0);
            let detour = fetched.detour.map_or(String::new(), |detour| format!(" {detour:?}"));
            format!("{} batches, high watermark {high_watermark}{detour}", fetched.records.batches.len())
        }
        Response::FetchSnapshot(part) => format!("{} bytes at {} of {}", part.bytes.len(), part.position, part.size),
    };
    format!("{what} (e{} led by {leader})", head.epoch.0)
}
