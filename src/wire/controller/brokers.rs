//! Registrations, heartbeats, producer ids and envelopes.

use super::{NoAnswer, bytes, number, outcome, protocol, read};
use crate::core::controller::records::{BrokerEpoch, Endpoint, Feature};
use crate::core::controller::request::{Answer, BrokerState, Heartbeat, ProducerIdBlock, Registration};
use crate::core::types::{BrokerId, Id, Offset};
use crate::wire::error::ErrorCode;
use crate::wire::guard;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    self, AllocateProducerIdsRequest, AllocateProducerIdsResponse, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    BrokerRegistrationRequest, BrokerRegistrationResponse, EnvelopeRequest, EnvelopeResponse, broker_registration_request,
};
use kafka_protocol::protocol::StrBytes;
use std::net::IpAddr;
use uuid::Uuid;

/// Whom an envelope's sender speaks for where nobody has to say who he is: version 0 of Kafka's `DefaultPrincipalData`, by whose first two bytes
/// the version is known.
const ANONYMOUS: (&str, &str) = ("User", "ANONYMOUS");

pub(super) fn register(registration: &Registration) -> BrokerRegistrationRequest {
    let listener = |endpoint: &Endpoint| {
        broker_registration_request::Listener::default()
            .with_name(StrBytes::from_string(endpoint.name.clone()))
            .with_host(StrBytes::from_string(endpoint.host.clone()))
            .with_port(endpoint.port)
            .with_security_protocol(number(endpoint.security_protocol))
    };
    let feature = |feature: &Feature| {
        broker_registration_request::Feature::default()
            .with_name(StrBytes::from_string(feature.name.clone()))
            .with_min_supported_version(feature.min)
            .with_max_supported_version(feature.max)
    };
    BrokerRegistrationRequest::default()
        .with_broker_id(messages::BrokerId(registration.broker.0))
        .with_cluster_id(StrBytes::from_string(registration.cluster_id.clone()))
        .with_incarnation_id(Uuid::from_u128(registration.incarnation_id.0))
        .with_listeners(registration.endpoints.iter().map(listener).collect())
        .with_features(registration.features.iter().map(feature).collect())
        .with_rack(registration.rack.clone().map(StrBytes::from_string))
        .with_log_dirs(registration.log_dirs.iter().map(|dir| Uuid::from_u128(dir.0)).collect())
        .with_previous_broker_epoch(registration.previous_epoch.unwrap_or(BrokerEpoch::NONE).0)
}

/// A registration; `None` if a listener speaks no protocol there is. Whether the broker's old process is alive, the controller knows.
pub fn registration(request: BrokerRegistrationRequest) -> Option<Registration> {
    let endpoint = |listener: broker_registration_request::Listener| {
        let security_protocol = protocol(listener.security_protocol)?;
        Some(Endpoint { name: listener.name.to_string(), host: listener.host.to_string(), port: listener.port, security_protocol })
    };
    let feature = |feature: broker_registration_request::Feature| Feature {
        name: feature.name.to_string(),
        min: feature.min_supported_version,
        max: feature.max_supported_version,
    };
    Some(Registration {
        cluster_id: request.cluster_id.to_string(),
        broker: BrokerId(request.broker_id.0),
        incarnation_id: Id(request.incarnation_id.as_u128()),
        endpoints: request.listeners.into_iter().map(endpoint).collect::<Option<_>>()?,
        features: request.features.into_iter().map(feature).collect(),
        rack: request.rack.map(|rack| rack.to_string()),
        log_dirs: request.log_dirs.into_iter().map(|dir| Id(dir.as_u128())).collect(),
        previous_epoch: (request.previous_broker_epoch >= 0).then_some(BrokerEpoch(request.previous_broker_epoch)),
        session_alive: false,
    })
}

pub(super) fn registered(answer: BrokerRegistrationResponse) -> Result<Answer, NoAnswer> {
    Ok(Answer::RegisterBroker(outcome(answer.error_code)?.map(|()| BrokerEpoch(answer.broker_epoch))))
}

pub(super) fn beat(heartbeat: &Heartbeat) -> BrokerHeartbeatRequest {
    BrokerHeartbeatRequest::default()
        .with_broker_id(messages::BrokerId(heartbeat.broker.0))
        .with_broker_epoch(heartbeat.broker_epoch.0)
        .with_current_metadata_offset(heartbeat.metadata_offset.0)
        .with_want_fence(heartbeat.want_fence)
        .with_want_shut_down(heartbeat.want_shutdown)
        .with_offline_log_dirs(heartbeat.offline_dirs.iter().map(|dir| Uuid::from_u128(dir.0)).collect())
}

/// A heartbeat. What the sessions know of shutdowns is filled in by the controller.
pub fn heartbeat(request: &BrokerHeartbeatRequest) -> Heartbeat {
    let (broker, epoch) = (BrokerId(request.broker_id.0), BrokerEpoch(request.broker_epoch));
    Heartbeat {
        want_fence: request.want_fence,
        want_shutdown: request.want_shut_down,
        offline_dirs: request.offline_log_dirs.iter().map(|dir| Id(dir.as_u128())).collect(),
        ..Heartbeat::new(broker, epoch, Offset(request.current_metadata_offset))
    }
}

pub(super) fn beaten(answer: BrokerHeartbeatResponse) -> Result<Answer, NoAnswer> {
    Ok(Answer::Heartbeat(outcome(answer.error_code)?.map(|()| BrokerState {
        caught_up: answer.is_caught_up,
        fenced: answer.is_fenced,
        // Whoever may stop is told so; whether one that may not yet is on the way, the answer does not say.
        shutting_down: false,
        may_stop: answer.should_shut_down,
    })))
}

pub(super) fn allocate(broker: BrokerId, epoch: BrokerEpoch) -> AllocateProducerIdsRequest {
    AllocateProducerIdsRequest::default().with_broker_id(messages::BrokerId(broker.0)).with_broker_epoch(epoch.0)
}

pub(super) fn allocated(answer: AllocateProducerIdsResponse) -> Result<Answer, NoAnswer> {
    let block = ProducerIdBlock { first: answer.producer_id_start.0, count: answer.producer_id_len };
    Ok(Answer::AllocateProducerIds(outcome(answer.error_code)?.map(|()| block)))
}

/// The body of an Envelope: a client's request with its header, and where it came from.
pub fn envelope(request: Bytes, from: IpAddr, version: i16) -> Result<BytesMut, String> {
    let mut principal = BytesMut::new();
    principal.put_i16(0);
    for word in [ANONYMOUS.0, ANONYMOUS.1] {
        principal.put_u8(word.len() as u8 + 1);
        principal.put_slice(word.as_bytes());
    }
    // Not by a delegation token; no tagged fields.
    principal.put_slice(&[0, 0]);
    let address = match from {
        IpAddr::V4(v4) => Bytes::copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => Bytes::copy_from_slice(&v6.octets()),
    };
    let envelope = EnvelopeRequest::default()
        .with_request_data(request)
        .with_request_principal(Some(principal.freeze()))
        .with_client_host_address(address);
    bytes(&envelope, version)
}

/// What is in the answer to an Envelope: an answer with its header.
pub fn opened(version: i16, body: Bytes) -> Result<Bytes, NoAnswer> {
    guard::check_answer(super::ENVELOPE, version, &body).map_err(|e| NoAnswer::Malformed(e.to_string()))?;
    let answer: EnvelopeResponse = read(body, version)?;
    match ErrorCode::from_code(answer.error_code) {
        Some(ErrorCode::None) => answer.response_data.ok_or_else(|| NoAnswer::Malformed("an empty envelope".into())),
        Some(ErrorCode::NotController) => Err(NoAnswer::NotController),
        Some(other) => Err(NoAnswer::Other(other)),
        None => Err(NoAnswer::Malformed(format!("error {}", answer.error_code))),
    }
}
