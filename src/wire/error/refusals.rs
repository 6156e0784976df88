//! Which error a refusal of the controller is, and the sentences that Kafka's answers carry where nothing more precise is said.

use super::ErrorCode;
use crate::core::controller::Why;
use crate::core::group;
use crate::core::quorum::message::Problem;

impl From<Why> for ErrorCode {
    fn from(why: Why) -> ErrorCode {
        match why {
            Why::StaleBrokerEpoch => ErrorCode::StaleBrokerEpoch,
            Why::BrokerIdNotRegistered => ErrorCode::BrokerIdNotRegistered,
            Why::DuplicateBrokerRegistration => ErrorCode::DuplicateBrokerRegistration,
            Why::InconsistentClusterId => ErrorCode::InconsistentClusterId,
            Why::InvalidRegistration => ErrorCode::InvalidRegistration,
            Why::UnsupportedVersion => ErrorCode::UnsupportedVersion,
            // Kafka has no number for it.
            Why::ProducerIdsExhausted => ErrorCode::UnknownServerError,
            Why::TopicAlreadyExists => ErrorCode::TopicAlreadyExists,
            Why::InvalidTopic => ErrorCode::InvalidTopicException,
            Why::InvalidRequest => ErrorCode::InvalidRequest,
            Why::PolicyViolation => ErrorCode::PolicyViolation,
            Why::InvalidPartitions => ErrorCode::InvalidPartitions,
            Why::InvalidReplicationFactor => ErrorCode::InvalidReplicationFactor,
            Why::InvalidReplicaAssignment => ErrorCode::InvalidReplicaAssignment,
            Why::InvalidConfig => ErrorCode::InvalidConfig,
            Why::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition,
            Why::UnknownTopicId => ErrorCode::UnknownTopicId,
            Why::InvalidUpdateVersion => ErrorCode::InvalidUpdateVersion,
            Why::ElectionNotNeeded => ErrorCode::ElectionNotNeeded,
            Why::PreferredLeaderNotAvailable => ErrorCode::PreferredLeaderNotAvailable,
            Why::EligibleLeadersNotAvailable => ErrorCode::EligibleLeadersNotAvailable,
            Why::LossNotAccepted => ErrorCode::PolicyViolation,
            Why::NotController => ErrorCode::NotController,
            Why::FencedLeaderEpoch => ErrorCode::FencedLeaderEpoch,
            Why::IneligibleReplica => ErrorCode::IneligibleReplica,
            Why::NewLeaderElected => ErrorCode::NewLeaderElected,
            Why::NoReassignmentInProgress => ErrorCode::NoReassignmentInProgress,
            Why::NotLeaderOrFollower => ErrorCode::NotLeaderOrFollower,
        }
    }
}

impl From<Problem> for ErrorCode {
    fn from(problem: Problem) -> ErrorCode {
        match problem {
            Problem::FencedEpoch => ErrorCode::FencedLeaderEpoch,
            Problem::UnknownEpoch => ErrorCode::UnknownLeaderEpoch,
            Problem::NotLeader => ErrorCode::NotLeaderOrFollower,
            Problem::Invalid => ErrorCode::InvalidRequest,
            Problem::InvalidVoterKey => ErrorCode::InvalidVoterKey,
            Problem::SnapshotNotFound => ErrorCode::SnapshotNotFound,
            Problem::PositionOutOfRange => ErrorCode::PositionOutOfRange,
            Problem::Stopping => ErrorCode::BrokerNotAvailable,
            Problem::Other => ErrorCode::UnknownServerError,
        }
    }
}

impl From<group::Why> for ErrorCode {
    fn from(why: group::Why) -> ErrorCode {
        use group::Why;
        match why {
            Why::NotCoordinator => ErrorCode::NotCoordinator,
            Why::CoordinatorNotAvailable => ErrorCode::CoordinatorNotAvailable,
            Why::LoadInProgress => ErrorCode::CoordinatorLoadInProgress,
            Why::InvalidGroupId => ErrorCode::InvalidGroupId,
            Why::UnknownMemberId => ErrorCode::UnknownMemberId,
            Why::FencedInstanceId => ErrorCode::FencedInstanceId,
            Why::IllegalGeneration => ErrorCode::IllegalGeneration,
            Why::RebalanceInProgress => ErrorCode::RebalanceInProgress,
            Why::InconsistentGroupProtocol => ErrorCode::InconsistentGroupProtocol,
            Why::MemberIdRequired => ErrorCode::MemberIdRequired,
            Why::GroupMaxSizeReached => ErrorCode::GroupMaxSizeReached,
            Why::InvalidSessionTimeout => ErrorCode::InvalidSessionTimeout,
            Why::OffsetMetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
            Why::FencedMemberEpoch => ErrorCode::FencedMemberEpoch,
            Why::StaleMemberEpoch => ErrorCode::StaleMemberEpoch,
            Why::UnreleasedInstanceId => ErrorCode::UnreleasedInstanceId,
            Why::UnsupportedAssignor => ErrorCode::UnsupportedAssignor,
            Why::InvalidRegularExpression => ErrorCode::InvalidRegularExpression,
            Why::InvalidRequest => ErrorCode::InvalidRequest,
            Why::UnsupportedVersion => ErrorCode::UnsupportedVersion,
            Why::GroupIdNotFound => ErrorCode::GroupIdNotFound,
            Why::NonEmptyGroup => ErrorCode::NonEmptyGroup,
            Why::GroupSubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
            Why::UnknownServerError => ErrorCode::UnknownServerError,
        }
    }
}

impl ErrorCode {
    /// What Kafka's tools say of an error that is answered without details; `None` for errors that no answer of ours explains. Tools
    /// and their users' scripts compare these words.
    pub const fn sentence(self) -> Option<&'static str> {
        Some(match self {
            ErrorCode::UnknownServerError => "The server experienced an unexpected error when processing the request.",
            ErrorCode::UnknownTopicOrPartition => "This server does not host this topic-partition.",
            ErrorCode::NotLeaderOrFollower => {
                "For requests intended only for the leader, this error indicates that the broker is not the current leader. For requests \
                 intended for any replica, this error indicates that the broker is not a replica of the topic partition."
            }
            ErrorCode::RequestTimedOut => "The request timed out.",
            ErrorCode::CoordinatorNotAvailable => "The coordinator is not available.",
            ErrorCode::InvalidRequest => {
                "This most likely occurs because of a request being malformed by the client library or the message was sent to an \
                 incompatible broker. See the broker logs for more details."
            }
            ErrorCode::ElectionNotNeeded => "Leader election not needed for topic partition.",
            ErrorCode::PreferredLeaderNotAvailable => "The preferred leader was not available.",
            ErrorCode::EligibleLeadersNotAvailable => "Eligible topic partition leaders are not available.",
            ErrorCode::NoReassignmentInProgress => "No partition reassignment is in progress.",
            ErrorCode::UnknownTopicId => "This server does not host this topic ID.",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_their_meaning() {
        for (why, code) in [
            (Why::InvalidTopic, 17),
            (Why::TopicAlreadyExists, 36),
            (Why::InvalidConfig, 40),
            (Why::InvalidRequest, 42),
            (Why::UnknownTopicId, 100),
            (Why::ProducerIdsExhausted, -1),
        ] {
            assert_eq!(ErrorCode::from(why).code(), code, "{why:?}");
        }
        assert_eq!(ErrorCode::from(Why::UnknownTopicId).sentence(), Some("This server does not host this topic ID."));
        assert_eq!(ErrorCode::None.sentence(), None);
    }
}
