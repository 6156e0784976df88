//! BrokerHeartbeat (key 63), v0-1 (KIP-631).
//!
//! A broker says that it lives and what it wants; the controller says whether it is fenced, and whether it may stop.
//! * v1 log directories that failed (KIP-858).

use super::{Audience, Call, Cx, Outcome, Spec, ask};
use crate::actors::link::Session;
use crate::core::controller::records::BrokerEpoch;
use crate::core::controller::request::{Answer, BrokerState, Refusal, Request};
use crate::core::types::BrokerId;
use crate::wire::controller::heartbeat;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(63, "BrokerHeartbeat", 0, 1).to(Audience::Controllers);

/// Stamps it, so that it counts from now on, and asks the controller.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: BrokerHeartbeatRequest) -> Outcome<BrokerHeartbeatResponse> {
    let heartbeat = heartbeat(&request);
    stamp(cx, heartbeat.broker, heartbeat.broker_epoch);
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        match ask::here(&cx, Request::Heartbeat(heartbeat)).await {
            Ok(Answer::Heartbeat(outcome)) => respond(&call, outcome),
            _ => refused(&call, ErrorCode::NotController),
        }
    })
}

/// Only of brokers that are registered: so there are no more entries than those.
fn stamp(cx: &Cx, broker: BrokerId, epoch: BrokerEpoch) {
    if cx.image().broker(broker).is_none_or(|known| known.broker_epoch != epoch) {
        return;
    }
    let arrivals = &cx.broker.arrivals;
    arrivals.stamp(broker, epoch);
    let mut session = cx.peer.session.borrow_mut();
    if !session.as_ref().is_some_and(|session| session.is_of(broker, epoch)) {
        *session = Some(Session::new(broker, epoch, arrivals.clone(), cx.broker.link.clone()));
    }
}

fn respond(call: &Call, outcome: Result<BrokerState, Refusal>) -> BrokerHeartbeatResponse {
    match outcome {
        Ok(state) => BrokerHeartbeatResponse::default()
            .with_is_caught_up(state.caught_up)
            .with_is_fenced(state.fenced)
            .with_should_shut_down(state.may_stop),
        Err(refusal) => refused(call, refusal.why.into()),
    }
}

fn refused(call: &Call, error: ErrorCode) -> BrokerHeartbeatResponse {
    BrokerHeartbeatResponse::default().with_error_code(call.error(error)).with_is_fenced(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{call, encodes};
    use crate::core::controller::Why;

    #[test]
    fn a_state_or_an_error() {
        let state = BrokerState { caught_up: true, fenced: false, shutting_down: false, may_stop: true };
        encodes(SPEC, |call| respond(call, Ok(state)));
        let answer = respond(&call(SPEC, 1), Ok(state));
        assert!(answer.is_caught_up && !answer.is_fenced && answer.should_shut_down);
        let answer = respond(&call(SPEC, 1), Err(Why::StaleBrokerEpoch.into()));
        assert_eq!((answer.error_code, answer.is_fenced), (77, true));
    }
}
