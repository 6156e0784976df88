//! Writes about consumer groups that fail: what is owed, and what is not.

use super::consumers::Consumer;
use super::*;
use crate::core::group::records::ConsumerRecord;

fn beat(town: &mut Town, consumer: &mut Consumer) -> Ticket {
    consumer.beat.owned = Some(vec![]);
    town.ask(Request::Beat(consumer.beat.clone()))
}

#[test]
fn nobody_is_told_what_is_in_no_log() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    Consumer::new("one", &["t"]).beat(&mut town).expect("it joins");
    town.hold = true;
    let mut two = Consumer::new("two", &["t"]);
    for _ in 0..3 {
        let ticket = beat(&mut town, &mut two);
        assert!(town.got(ticket).is_none(), "what it is to be told is not written yet");
        while !town.held.is_empty() {
            town.fail(0, Why::CoordinatorNotAvailable);
        }
        assert!(matches!(town.got(ticket), Some(Answer::Beat(Err(_)))));
    }
    let ticket = beat(&mut town, &mut two);
    town.hold = false;
    town.release();
    assert!(matches!(town.got(ticket), Some(Answer::Beat(Ok(_)))));
    assert_eq!(town.durable(), town.again().durable());
}

#[test]
fn a_delete_that_failed_takes_no_offset_later() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut one = Consumer::new("one", &["t"]);
    one.beat(&mut town).expect("it joins");
    town.beat(super::super::request::ConsumerBeat { epoch: -1, ..one.beat.clone() }).expect("it leaves");
    assert_eq!(town.commit(&nobody("g"), 0, 5), Ok(()));
    town.hold = true;
    let ticket = town.ask(Request::DeleteGroups(vec!["g".into()]));
    town.fail(0, Why::CoordinatorNotAvailable);
    town.hold = false;
    assert!(matches!(town.got(ticket), Some(Answer::DeleteGroups(_))));
    assert_eq!(town.commit(&nobody("g"), 0, 7), Ok(()));
    let mut again = Consumer::new("two", &["t"]);
    again.beat(&mut town).expect("it joins");
    assert_eq!(town.offsets("g"), [("t".to_owned(), 0, 7)]);
    assert_eq!(town.again().offsets("g"), [("t".to_owned(), 0, 7)]);
}

#[test]
fn one_record_that_cannot_be_written_keeps_no_other_out() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    town.hold = true;
    let mut one = Consumer::new("one", &["t"]);
    one.beat.regex = Some("t.*".into());
    let refused =
        |record: &GroupRecord| matches!(record, GroupRecord::Consumer { record: ConsumerRecord::Regex { value: Some(_), .. }, .. });
    for _ in 0..8 {
        beat(&mut town, &mut one);
        while let Some((_, records)) = town.held.front() {
            if records.iter().any(refused) {
                town.fail(0, Why::UnknownServerError);
            } else {
                let (write, records) = town.held.pop_front().expect("it is there");
                town.log.extend(records.iter().cloned());
                let mut fx = Vec::new();
                town.coordinator.committed(write, Millis(town.now), &mut fx);
                town.absorb(fx);
            }
        }
    }
    let mut next = town.again();
    assert_eq!(next.consumers().expect("the group is there").members.len(), 1, "its member was written");
}

#[test]
fn a_member_has_the_instance_id_that_it_named_last() {
    let mut town = Town::of_consumers(&[("t", 4)]);
    let mut one = Consumer::new("one", &["t"]);
    for instance in ["i1", "i2"] {
        one.beat.instance = Some(instance.into());
        one.beat.epoch = 0;
        one.beat(&mut town).expect("it joins");
    }
    let left = town.leave(&[("", Some("i1"))]);
    assert_eq!(left, [Err(Why::UnknownMemberId)], "nobody has that name any more");
    assert_eq!(town.leave(&[("", Some("i2"))]), [Ok(())]);
    assert_eq!(town.leave(&[("", Some("i1"))]), [Err(Why::UnknownMemberId)]);
    assert_eq!(town.durable(), town.again().durable());
}
