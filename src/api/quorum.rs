//! What the handlers of the metadata quorum's own requests share: the cluster's id, the way to the quorum, where its leader listens.

use super::Cx;
use crate::actors::quorum::Ask;
use crate::core::quorum::message::{Head, Request, Response};
use crate::rt::{Gone, Tell, port};
use crate::wire::quorum::Endpoint;
use kafka_protocol::protocol::StrBytes;

/// Whether a request is meant for another cluster. Who names none is let through, as by Kafka.
pub fn is_foreign(cx: &Cx, cluster_id: Option<&StrBytes>) -> bool {
    cluster_id.is_some_and(|id| id.as_str() != &*cx.broker.cluster_id)
}

/// Asks the quorum on this node.
pub async fn ask(cx: &Cx, request: Request) -> Result<Response, Gone> {
    let (reply, answer) = port();
    cx.broker.quorum.tell(Ask { request, reply });
    answer.await
}

/// Where the leader that an answer names listens for the quorum.
pub fn leader_of(cx: &Cx, head: Head) -> Option<Endpoint> {
    let leader = head.leader?;
    let voter = cx.broker.config.endpoints.voters.iter().find(|voter| voter.id == leader.0)?;
    Some(Endpoint { node: leader, host: voter.host.clone(), port: voter.port })
}
