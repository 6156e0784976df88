//! What the handlers of the metadata quorum's own requests share: the cluster's id, the way to the quorum, where its leader listens.

use super::{Call, Cx, Outcome};
use crate::actors::quorum::Ask;
use crate::core::quorum::message::{Head, Request, Response};
use crate::rt::{Gone, Tell, port};
use crate::wire::error::ErrorCode;
use crate::wire::quorum::Endpoint;
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

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

/// Serves a request of one voter to another: refuses what is of another cluster (`foreign`) or makes no sense (no `request`), and answers
/// the rest as the quorum says. `answer` writes what it said in the version that it is given, and names the head with the refusal, to be counted.
pub fn serve<A: 'static>(
    cx: &Cx,
    call: &Rc<Call>,
    foreign: bool,
    request: Option<Request>,
    refused: fn(i16) -> A,
    answer: fn(&Cx, Response, i16) -> Option<(Head, A)>,
) -> Outcome<A> {
    if foreign {
        return Outcome::Now(refused(call.error(ErrorCode::InconsistentClusterId)));
    }
    let Some(request) = request else {
        return Outcome::Now(refused(call.error(ErrorCode::InvalidRequest)));
    };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let said = ask(&cx, request).await.ok();
        let Some((head, answer)) = said.and_then(|said| answer(&cx, said, call.version)) else {
            return refused(call.error(ErrorCode::UnknownServerError));
        };
        if let Some(problem) = head.refused {
            call.error(problem.into());
        }
        answer
    })
}
