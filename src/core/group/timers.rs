//! Alarms of groups and members. Most are put off again and again (every heartbeat does), so that costs no more than noting the new time:
//! the entry in the queue stays where it is, and moves when it comes up.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::types::Millis;

/// What an alarm is about. There is one of each at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// A member (group, member id) has not been heard of, or a member id that was given out was not used.
    Session(Arc<str>, Arc<str>),
    /// A member (group, member id) of a consumer group had time to give up partitions or, a classic one, to join again.
    Progress(Arc<str>, Arc<str>),
    /// A classic member (group, member id) of a consumer group had time to sync.
    MemberSync(Arc<str>, Arc<str>),
    /// A group's members had time to join.
    Join(Arc<str>),
    /// A group's members had time to sync.
    Sync(Arc<str>),
}

/// When an alarm is due. Lives with what the alarm is about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    due: Option<Millis>,
    /// Where its entry is in the queue: not after `due`.
    queued: Option<Millis>,
}

impl Slot {
    /// Whether there is to be an alarm.
    pub(super) fn is_set(&self) -> bool {
        self.due.is_some()
    }
}

/// All alarms of a coordinator.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Millis, Alarm)>,
}

impl Timers {
    /// Sets the alarm of that slot to `due`, in place of what it was set to.
    pub(super) fn set(&mut self, slot: &mut Slot, due: Millis, alarm: impl FnOnce() -> Alarm) {
        slot.due = Some(due);
        match slot.queued {
            Some(queued) if queued <= due => {}
            Some(queued) => {
                let alarm = alarm();
                let mut entry = (queued, alarm);
                self.queue.remove(&entry);
                entry.0 = due;
                self.queue.insert(entry);
                slot.queued = Some(due);
            }
            None => {
                self.queue.insert((due, alarm()));
                slot.queued = Some(due);
            }
        }
    }

    /// There will be no alarm.
    pub(super) fn cancel(&mut self, slot: &mut Slot, alarm: impl FnOnce() -> Alarm) {
        slot.due = None;
        if let Some(queued) = slot.queued.take() {
            self.queue.remove(&(queued, alarm()));
        }
    }

    /// Takes an alarm that may be due; its slot's [`ring`](Self::ring) tells.
    pub(super) fn pop(&mut self, now: Millis) -> Option<Alarm> {
        if self.next()? > now { None } else { self.queue.pop_first().map(|(_, alarm)| alarm) }
    }

    /// Whether the alarm that was popped is due; it is queued again if not.
    pub(super) fn ring(&mut self, slot: &mut Slot, now: Millis, alarm: impl FnOnce() -> Alarm) -> bool {
        slot.queued = None;
        match slot.due {
            Some(due) if due > now => {
                self.set(slot, due, alarm);
                false
            }
            due => {
                slot.due = None;
                due.is_some()
            }
        }
    }

    /// When the next may be due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// How many are queued.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarm() -> Alarm {
        Alarm::Join("g".into())
    }

    #[test]
    fn rings_once_at_the_last_time_that_was_set() {
        let (mut timers, mut slot) = (Timers::default(), Slot::default());
        timers.set(&mut slot, Millis(10), alarm);
        timers.set(&mut slot, Millis(30), alarm);
        assert_eq!(timers.pop(Millis(9)), None);
        assert_eq!(timers.pop(Millis(10)), Some(alarm()));
        assert!(!timers.ring(&mut slot, Millis(10), alarm), "put off");
        timers.set(&mut slot, Millis(20), alarm);
        assert_eq!(timers.next(), Some(Millis(20)), "brought forward");
        assert_eq!(timers.pop(Millis(25)), Some(alarm()));
        assert!(timers.ring(&mut slot, Millis(25), alarm));
        assert_eq!((timers.pop(Millis(99)), timers.len()), (None, 0));
    }

    #[test]
    fn a_cancelled_alarm_leaves_nothing_behind() {
        let (mut timers, mut slot) = (Timers::default(), Slot::default());
        timers.set(&mut slot, Millis(10), alarm);
        timers.set(&mut slot, Millis(50), alarm);
        timers.cancel(&mut slot, alarm);
        timers.cancel(&mut slot, alarm);
        assert_eq!(timers.len(), 0);
        timers.set(&mut slot, Millis(5), alarm);
        assert_eq!((timers.next(), timers.len()), (Some(Millis(5)), 1));
    }
}
