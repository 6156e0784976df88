//! ListConfigResources (key 74), v0-1.
//!
//! Names what has, or could have, configuration.
//! * v0 client metrics (KIP-714, then called ListClientMetricsResources). v1 the other kinds too (KIP-1142).

use super::nodes::Nodes;
use super::resources::{kind, number};
use super::terms::text;
use super::{Call, Cx, Outcome, Spec};
use crate::core::controller::{Image, ResourceType};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(74, "ListConfigResources", 0, 1);

/// Kinds in the order of an answer.
const ORDER: [ResourceType; 5] =
    [ResourceType::Group, ResourceType::ClientMetrics, ResourceType::BrokerLogger, ResourceType::Broker, ResourceType::Topic];

/// Lists resources.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ListConfigResourcesRequest) -> Outcome<ListConfigResourcesResponse> {
    Outcome::Now(list(call, &cx.image(), &cx.peer.listener, &request))
}

fn list(call: &Call, image: &Image, listener: &str, request: &ListConfigResourcesRequest) -> ListConfigResourcesResponse {
    let asked: Option<Vec<ResourceType>> = match (call.version, request.resource_types.as_slice()) {
        (0, _) => Some(vec![ResourceType::ClientMetrics]),
        (_, []) => Some(ORDER.to_vec()),
        (_, types) => types.iter().map(|id| kind(*id)).collect(),
    };
    let Some(asked) = asked else {
        return ListConfigResourcesResponse::default().with_error_code(call.error(ErrorCode::UnsupportedVersion));
    };
    let mut rows = Vec::new();
    for kind in ORDER.into_iter().filter(|kind| asked.contains(kind)) {
        let mut add = |name: &str| rows.push(ConfigResource::default().with_resource_name(text(name)).with_resource_type(number(kind)));
        match kind {
            ResourceType::Group | ResourceType::ClientMetrics => image.configured(kind).for_each(|(name, _)| add(name)),
            ResourceType::BrokerLogger | ResourceType::Broker => {
                Nodes::new(image, listener).reachable().for_each(|(broker, _)| add(&broker.id.0.to_string()));
            }
            ResourceType::Topic => image.topics().for_each(|topic| add(&topic.name)),
        }
    }
    ListConfigResourcesResponse::default().with_config_resources(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{broker, call, encodes, image_of, partition};

    fn rows(version: i16, types: &[i8]) -> Vec<(i8, String)> {
        let answer = answer(&call(SPEC, version), types);
        answer.config_resources.iter().map(|row| (row.resource_type, row.resource_name.to_string())).collect()
    }

    fn answer(call: &Call, types: &[i8]) -> ListConfigResourcesResponse {
        let image = image_of([broker(1)], [("t", vec![partition(1, &[1], &[1])])]);
        list(call, &image, "PLAINTEXT", &ListConfigResourcesRequest::default().with_resource_types(types.to_vec()))
    }

    #[test]
    fn kinds_are_listed_as_asked_for() {
        let row = |kind, name: &str| (kind, name.to_owned());
        assert_eq!(rows(1, &[]), [row(8, "1"), row(4, "1"), row(2, "t")]);
        assert_eq!(rows(1, &[2]), [row(2, "t")]);
        assert_eq!(rows(0, &[]), []);
        assert_eq!(answer(&call(SPEC, 1), &[2, 3]).error_code, 35);
        encodes(SPEC, |call| answer(call, &[]));
    }
}
