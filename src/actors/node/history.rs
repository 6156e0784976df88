//! The election book as JSON, for `/api/elections`: `{"elections": [...]}`, the latest first.

use crate::actors::elections::SharedBook;
use crate::core::controller::book::Entry;
use crate::core::election::{Candidate, Source, WaitsFor};
use crate::core::types::BrokerId;
use serde_json::{Value, json};
use std::sync::Arc;

/// The latest elections, at most `limit`, of one topic if `topic` names it.
pub fn json(book: &SharedBook, limit: usize, topic: Option<&str>) -> String {
    let wanted = |entry: &&Arc<Entry>| topic.is_none_or(|topic| *entry.topic == *topic);
    // Formatted without the lock: the controller notes elections under it.
    let entries: Vec<Arc<Entry>> =
        book.lock().expect("no holder of this lock panics").latest().filter(wanted).take(limit).cloned().collect();
    json!({ "elections": entries.iter().map(|entry| row(entry)).collect::<Vec<_>>() }).to_string()
}

fn row(entry: &Entry) -> Value {
    let election = &entry.election;
    let (source, waits_for) = match &election.outcome {
        Ok(source) => (Some(name(*source)), None),
        Err(waits_for) => (None, Some(waits_for)),
    };
    json!({
        "topic": &*entry.topic,
        "partition": election.at.partition,
        "topic_id": election.at.topic.to_string(),
        "trigger": election.trigger.name(),
        "old_leader": leader(election.old_leader),
        "new_leader": leader(election.new_leader),
        "old_leader_epoch": election.old_epoch.0,
        "new_leader_epoch": election.new_epoch.0,
        "old_isr": ids(&election.old_isr),
        "new_isr": ids(&election.new_isr),
        "elected_from": source,
        "unclean": election.is_unclean(),
        "waits_for": waits_for.map(waits),
        "candidates": election.candidates.iter().map(candidate).collect::<Vec<_>>(),
        "detected_ms": entry.detected.0,
        "decided_ms": entry.decided.0,
        "committed_ms": entry.committed.0,
    })
}

fn candidate(candidate: &Candidate) -> Value {
    json!({
        "broker": candidate.id.0,
        "alive": candidate.alive,
        "in_sync": candidate.in_sync,
        "eligible": candidate.eligible,
        "last_epoch": candidate.claim.map(|claim| claim.last_epoch.0),
        "log_end": candidate.claim.map(|claim| claim.end.0),
    })
}

fn name(source: Source) -> &'static str {
    match source {
        Source::Isr => "isr",
        Source::Eligible => "elr",
        Source::LastKnown => "last_known_elr",
        Source::Outside => "outside",
    }
}

fn waits(waits_for: &WaitsFor) -> Value {
    match waits_for {
        WaitsFor::AnyOf(all) => json!({ "any_of": ids(all) }),
        WaitsFor::ClaimsOf(all) => json!({ "claims_of": ids(all) }),
        WaitsFor::Anyone => json!({ "any_of": "replicas" }),
    }
}

/// `null` for none.
fn leader(id: BrokerId) -> Option<i32> {
    (id != BrokerId::NONE).then_some(id.0)
}

fn ids(all: &[BrokerId]) -> Vec<i32> {
    all.iter().map(|id| id.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::election::{Claim, Election, Trigger};
    use crate::core::types::{Epoch, Id, Millis, Offset, TopicPartition};

    #[test]
    fn the_book_reads_as_json() {
        let election = Election {
            trigger: Trigger::Fenced,
            at: TopicPartition { topic: Id(1), partition: 4 },
            old_leader: BrokerId(1),
            new_leader: BrokerId::NONE,
            old_epoch: Epoch(3),
            new_epoch: Epoch(4),
            old_isr: vec![BrokerId(1)],
            new_isr: vec![],
            outcome: Err(WaitsFor::ClaimsOf(vec![BrokerId(1)])),
            candidates: vec![Candidate {
                id: BrokerId(1),
                alive: false,
                in_sync: true,
                eligible: false,
                claim: Some(Claim { last_epoch: Epoch(3), end: Offset(9) }),
            }],
        };
        let entry = Entry { election, topic: "t".into(), detected: Millis(1), decided: Millis(2), committed: Millis(0) };
        let book = SharedBook::default();
        let other = Entry { topic: "u".into(), ..entry.clone() };
        book.lock().unwrap().decided(Offset(7), vec![entry, other]);
        book.lock().unwrap().committed(Offset(7), Millis(5));
        let read = |limit, topic| serde_json::from_str::<Value>(&json(&book, limit, topic)).unwrap();
        assert_eq!(read(1, None)["elections"][0]["topic"], "u", "the latest first");
        assert_eq!(read(9, None)["elections"].as_array().map(Vec::len), Some(2));
        let expected = json!({
            "topic": "t", "partition": 4, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "trigger": "fenced",
            "old_leader": 1, "new_leader": null, "old_leader_epoch": 3, "new_leader_epoch": 4, "old_isr": [1], "new_isr": [],
            "elected_from": null, "unclean": false, "waits_for": { "claims_of": [1] },
            "candidates": [{ "broker": 1, "alive": false, "in_sync": true, "eligible": false, "last_epoch": 3, "log_end": 9 }],
            "detected_ms": 1, "decided_ms": 2, "committed_ms": 5,
        });
        assert_eq!(read(9, Some("t")), json!({ "elections": [expected] }));
    }
}
