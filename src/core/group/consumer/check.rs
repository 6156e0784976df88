//! What a ConsumerGroupHeartbeat must look like, whichever group it is for. Kafka's rules and words.

use super::{LEAVE, LEAVE_STATIC, no};
use crate::core::group::assign::Assignor;
use crate::core::group::request::{ConsumerBeat, Refused, Why};

/// Refuses what no group could take. `makes_own_id` says that the client is to bring its member id even when it joins (v1); `assignors` is
/// what members may name.
pub fn check_beat(beat: &ConsumerBeat, makes_own_id: bool, assignors: &[Assignor]) -> Result<(), Refused> {
    let invalid = |message: &str| no(Why::InvalidRequest, message);
    let blank = |text: &str| text.trim().is_empty();
    if (makes_own_id || beat.epoch > 0 || beat.epoch == LEAVE) && blank(&beat.member) {
        return invalid("MemberId can't be empty.");
    }
    if blank(&beat.group) {
        return invalid("GroupId can't be empty.");
    }
    if beat.instance.as_deref().is_some_and(blank) {
        return invalid("InstanceId can't be empty.");
    }
    if beat.rack.as_deref().is_some_and(blank) {
        return invalid("RackId can't be empty.");
    }
    match beat.epoch {
        0 if beat.rebalance_timeout.is_none() => return invalid("RebalanceTimeoutMs must be provided in first request."),
        0 if beat.owned.as_ref().is_none_or(|owned| !owned.is_empty()) => {
            return invalid("TopicPartitions must be empty when (re-)joining.");
        }
        0 if beat.topics.is_none() && beat.regex.is_none() => {
            return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
        }
        LEAVE_STATIC if beat.instance.is_none() => return invalid("InstanceId can't be null."),
        epoch if epoch < LEAVE_STATIC => return invalid("MemberEpoch is invalid."),
        _ => {}
    }
    match &beat.assignor {
        Some(name) if !assignors.iter().any(|assignor| assignor.name() == &**name) => {
            let names: Vec<&str> = assignors.iter().map(|assignor| assignor.name()).collect();
            no(Why::UnsupportedAssignor, format!("ServerAssignor {name} is not supported. Supported assignors: {}.", names.join(", ")))
        }
        _ => Ok(()),
    }
}
