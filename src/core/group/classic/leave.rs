//! LeaveGroup: members go, several at a time.

use super::Group;
use crate::core::group::GroupRecord;
use crate::core::group::request::{Leaver, Left, State, Why};
use crate::core::group::writes::Cx;

impl Group {
    /// Those members leave. Returns a row for each, and the record to write if the group has become empty by it.
    pub(in crate::core::group) fn leave(&mut self, leavers: Vec<Leaver>, cx: &mut Cx<'_>) -> (Vec<Left>, Option<GroupRecord>) {
        let mut gone = 0;
        let mut last = String::new();
        let rows: Vec<Left> = leavers
            .into_iter()
            .map(|leaver| {
                let result = self.leave_one(&leaver, cx);
                if result.is_ok() {
                    gone += 1;
                    let why = leaver.reason.as_deref().unwrap_or("no reason given");
                    last = format!("{}: {}", leaver.instance.as_ref().unwrap_or(&leaver.member), why.chars().take(255).collect::<String>());
                }
                Left { member: leaver.member, instance: leaver.instance, result }
            })
            .collect();
        if gone == 0 {
            return (rows, None);
        }
        let record = match self.state {
            State::Stable | State::CompletingRebalance => self.prepare(format!("{gone} member(s) left, such as {last}"), cx),
            _ => self.maybe_complete(cx),
        };
        (rows, record)
    }

    fn leave_one(&mut self, leaver: &Leaver, cx: &mut Cx<'_>) -> Result<(), Why> {
        let id = if leaver.member.is_empty() {
            // An operator removes a static member.
            let instance = leaver.instance.as_deref().ok_or(Why::UnknownMemberId)?;
            self.statics.get(instance).cloned().ok_or(Why::UnknownMemberId)?
        } else {
            if !self.pending.contains_key(&leaver.member) {
                self.check(&leaver.member, leaver.instance.as_deref())?;
            }
            leaver.member.clone()
        };
        self.remove(&id, cx);
        Ok(())
    }
}
