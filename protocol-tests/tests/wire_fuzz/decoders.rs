//! The message crate's request decoders, by key: each with its own range of versions, decoded and encoded again.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, Message, Request};

/// One request type of the crate.
pub struct Decoder {
    /// Its key.
    pub key: i16,
    /// The versions that the type itself takes; `ApiKey::valid_versions` says more than that for three of them.
    pub versions: std::ops::RangeInclusive<i16>,
    /// Decodes a body and forgets it. Returns whether it could.
    pub decode: fn(&mut Bytes, i16) -> Result<(), String>,
    /// Decodes a body and encodes it again, if the crate is willing to.
    pub again: fn(&mut Bytes, i16) -> Option<BytesMut>,
}

fn decoder<R: Request + Message + Decodable + Encodable>() -> Decoder {
    Decoder {
        key: R::KEY,
        versions: R::VERSIONS.min..=R::VERSIONS.max,
        decode: |body, version| R::decode(body, version).map(|_| ()).map_err(|e| e.to_string()),
        again: |body, version| {
            let mut out = BytesMut::new();
            R::decode(body, version).ok()?.encode(&mut out, version).ok().map(|()| out)
        },
    }
}

macro_rules! decoders {
    ($($request:ident)*) => {
        /// All of them.
        pub fn all() -> Vec<Decoder> {
            vec![$(decoder::<$request>()),*]
        }
    };
}

#[rustfmt::skip]
decoders! {
    ProduceRequest FetchRequest ListOffsetsRequest MetadataRequest OffsetCommitRequest OffsetFetchRequest FindCoordinatorRequest
    JoinGroupRequest HeartbeatRequest LeaveGroupRequest SyncGroupRequest DescribeGroupsRequest ListGroupsRequest SaslHandshakeRequest
    ApiVersionsRequest CreateTopicsRequest DeleteTopicsRequest DeleteRecordsRequest InitProducerIdRequest OffsetForLeaderEpochRequest
    AddPartitionsToTxnRequest AddOffsetsToTxnRequest EndTxnRequest WriteTxnMarkersRequest TxnOffsetCommitRequest DescribeAclsRequest
    CreateAclsRequest DeleteAclsRequest DescribeConfigsRequest AlterConfigsRequest AlterReplicaLogDirsRequest DescribeLogDirsRequest
    SaslAuthenticateRequest CreatePartitionsRequest CreateDelegationTokenRequest RenewDelegationTokenRequest ExpireDelegationTokenRequest
    DescribeDelegationTokenRequest DeleteGroupsRequest ElectLeadersRequest IncrementalAlterConfigsRequest
    AlterPartitionReassignmentsRequest ListPartitionReassignmentsRequest OffsetDeleteRequest DescribeClientQuotasRequest
    AlterClientQuotasRequest DescribeUserScramCredentialsRequest AlterUserScramCredentialsRequest VoteRequest BeginQuorumEpochRequest
    EndQuorumEpochRequest DescribeQuorumRequest AlterPartitionRequest UpdateFeaturesRequest EnvelopeRequest FetchSnapshotRequest
    DescribeClusterRequest DescribeProducersRequest BrokerRegistrationRequest BrokerHeartbeatRequest UnregisterBrokerRequest
    DescribeTransactionsRequest ListTransactionsRequest AllocateProducerIdsRequest ConsumerGroupHeartbeatRequest
    ConsumerGroupDescribeRequest ControllerRegistrationRequest GetTelemetrySubscriptionsRequest PushTelemetryRequest
    AssignReplicasToDirsRequest ListConfigResourcesRequest DescribeTopicPartitionsRequest ShareGroupHeartbeatRequest
    ShareGroupDescribeRequest ShareFetchRequest ShareAcknowledgeRequest AddRaftVoterRequest RemoveRaftVoterRequest UpdateRaftVoterRequest
    InitializeShareGroupStateRequest ReadShareGroupStateRequest WriteShareGroupStateRequest DeleteShareGroupStateRequest
    ReadShareGroupStateSummaryRequest DescribeShareGroupOffsetsRequest AlterShareGroupOffsetsRequest DeleteShareGroupOffsetsRequest
}
