//! DescribeCluster (key 60), v0-2.
//!
//! The brokers of the connection's listener and who is called the controller; on a listener of the metadata quorum its voters and their leader.
//! * v1 which kind of endpoint is meant (KIP-919): a broker's listener knows brokers, a controller's controllers. v2 fenced brokers too, if asked for.

use super::nodes::Nodes;
use super::terms::{CLUSTER_OPERATIONS, NOT_ASKED, text};
use super::{Audience, Call, Cx, Outcome, Spec};
use crate::config::Voter;
use crate::core::controller::Image;
use crate::core::types::BrokerId;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{self, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// The row.
pub const SPEC: Spec = Spec::new(60, "DescribeCluster", 0, 2).to(Audience::Everybody);

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Describes the cluster.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: DescribeClusterRequest) -> Outcome<DescribeClusterResponse> {
    let broker = &cx.broker;
    Outcome::Now(match cx.peer.quorum {
        true => controllers(call, &broker.cluster_id, &broker.config.endpoints.voters, broker.controller.load(Relaxed), &request),
        false => describe(call, &cx.image(), &cx.peer.listener, &request),
    })
}

fn controllers(call: &Call, cluster: &str, voters: &[Voter], leader: i32, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    match request.endpoint_type {
        CONTROLLERS => {}
        BROKERS => {
            let message = "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER";
            return refuse(call, ErrorCode::MismatchedEndpointType, message.into());
        }
        other => return refuse(call, ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}")),
    }
    let told = voters.iter().map(|voter| {
        let broker = DescribeClusterBroker::default().with_broker_id(messages::BrokerId(voter.id));
        broker.with_host(text(&voter.host)).with_port(i32::from(voter.port)).with_rack(None)
    });
    let operations = if request.include_cluster_authorized_operations { CLUSTER_OPERATIONS } else { NOT_ASKED };
    DescribeClusterResponse::default()
        .with_endpoint_type(CONTROLLERS)
        .with_cluster_id(text(cluster))
        .with_controller_id(messages::BrokerId(leader))
        .with_brokers(told.collect())
        .with_cluster_authorized_operations(operations)
}

fn describe(call: &Call, image: &Image, listener: &str, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            let message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER";
            return refuse(call, ErrorCode::MismatchedEndpointType, message.into());
        }
        other => return refuse(call, ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}")),
    }
    let nodes = Nodes::new(image, listener);
    let told: Vec<_> = nodes.reachable().filter(|(broker, _)| !broker.fenced || request.include_fenced_brokers).collect();
    let controller = nodes.controller(call.correlation);
    // Clients wait for a controller that they can find among the brokers.
    let controller = if told.iter().any(|(broker, _)| broker.id == controller) { controller } else { BrokerId::NONE };
    let brokers = told.into_iter().map(|(broker, endpoint)| {
        DescribeClusterBroker::default()
            .with_broker_id(messages::BrokerId(broker.id.0))
            .with_host(text(&endpoint.host))
            .with_port(i32::from(endpoint.port))
            .with_rack(broker.rack.as_deref().map(text))
            .with_is_fenced(broker.fenced)
    });
    let operations = if request.include_cluster_authorized_operations { CLUSTER_OPERATIONS } else { NOT_ASKED };
    DescribeClusterResponse::default()
        .with_cluster_id(text(image.cluster_id()))
        .with_controller_id(messages::BrokerId(controller.0))
        .with_brokers(brokers.collect())
        .with_cluster_authorized_operations(operations)
}

fn refuse(call: &Call, error: ErrorCode, message: String) -> DescribeClusterResponse {
    let error = if call.version == 0 { ErrorCode::InvalidRequest } else { error };
    DescribeClusterResponse::default().with_error_code(call.error(error)).with_error_message(Some(StrBytes::from_string(message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of};
    use crate::core::controller::Broker;

    fn answer(call: &Call, request: DescribeClusterRequest) -> DescribeClusterResponse {
        let fenced = Broker { fenced: true, rack: Some("r".into()), ..broker(2) };
        describe(call, &image_of([broker(1), fenced], []), "PLAINTEXT", &request)
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, |call| answer(call, DescribeClusterRequest::default().with_include_fenced_brokers(call.version >= 2)));
        encodes(SPEC, |call| answer(call, DescribeClusterRequest::default().with_endpoint_type(9)));
    }

    #[test]
    fn fenced_brokers_only_if_asked_for() {
        let ids = |request| answer(&call(SPEC, 2), request).brokers.iter().map(|b| (b.broker_id.0, b.is_fenced)).collect::<Vec<_>>();
        assert_eq!(ids(DescribeClusterRequest::default()), [(1, false)]);
        assert_eq!(ids(DescribeClusterRequest::default().with_include_fenced_brokers(true)), [(1, false), (2, true)]);
    }

    #[test]
    fn a_controllers_listener_tells_of_controllers() {
        let voters = [1, 2].map(|id| Voter { id, host: "h".into(), port: 9093 });
        let ask = |kind| controllers(&call(SPEC, 1), "c", &voters, 2, &DescribeClusterRequest::default().with_endpoint_type(kind));
        let answer = ask(CONTROLLERS);
        assert_eq!((answer.cluster_id.as_str(), answer.controller_id.0, answer.brokers.len(), answer.endpoint_type), ("c", 2, 2, 2));
        assert_eq!([ask(BROKERS), ask(7)].map(|answer| answer.error_code), [114, 115]);
    }

    #[test]
    fn other_endpoints_are_refused() {
        for (version, kind, error) in [(1, 2, 114), (1, 7, 115), (0, 2, 42)] {
            let answer = answer(&call(SPEC, version), DescribeClusterRequest::default().with_endpoint_type(kind));
            assert_eq!((answer.error_code, answer.controller_id.0, answer.brokers.len()), (error, -1, 0));
        }
    }

    #[test]
    fn operations_only_if_asked_for() {
        let asked = DescribeClusterRequest::default().with_include_cluster_authorized_operations(true);
        assert_eq!(answer(&call(SPEC, 0), asked).cluster_authorized_operations, 8096);
        assert_eq!(answer(&call(SPEC, 0), DescribeClusterRequest::default()).cluster_authorized_operations, i32::MIN);
    }
}
