//! UpdateFeatures (key 57), v0-2 (KIP-584).
//!
//! Changes finalised feature levels, all of a request or none.
//! * v1 which way a level may go, and only validating. v2 no rows by feature in the answer.

use super::{Call, Cx, Outcome, Spec, ask};
use crate::core::controller::request::{FeatureUpdate, UpgradeType};
use crate::core::controller::{Answer, Refusal, Request, Why};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(57, "UpdateFeatures", 0, 2).carried();

/// Has the controller change feature levels.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: UpdateFeaturesRequest) -> Outcome<UpdateFeaturesResponse> {
    let updates = match request.feature_updates.iter().map(update).collect::<Result<Vec<_>, Refusal>>() {
        Ok(updates) => updates,
        Err(refusal) => return Outcome::Now(respond(call, &request, Err(refusal))),
    };
    let (cx, call) = (cx.clone(), call.clone());
    Outcome::later(async move {
        let ask = Request::UpdateFeatures { updates, validate_only: request.validate_only };
        match ask::controller(&cx, ask, Some(request.timeout_ms)).await {
            Ok(Answer::UpdateFeatures(result)) => respond(&call, &request, result),
            _ => UpdateFeaturesResponse::default().with_error_code(call.error(ErrorCode::RequestTimedOut)).with_error_message(None),
        }
    })
}

fn update(asked: &FeatureUpdateKey) -> Result<FeatureUpdate, Refusal> {
    let (name, level) = (asked.feature.to_string(), asked.max_version_level);
    let upgrade = match asked.upgrade_type {
        1 => UpgradeType::Upgrade,
        2 => UpgradeType::SafeDowngrade,
        3 => UpgradeType::UnsafeDowngrade,
        _ => {
            let message = format!(
                "The update failed for all features since the following feature had an error: Invalid update version {level} for feature \
                 {name}. The controller does not support the given upgrade type."
            );
            return Err(Refusal::new(Why::InvalidUpdateVersion, message));
        }
    };
    Ok(FeatureUpdate { name, level, upgrade })
}

fn respond(call: &Call, request: &UpdateFeaturesRequest, result: Result<(), Refusal>) -> UpdateFeaturesResponse {
    let (code, message) = ask::outcome(result);
    let row = |update: &FeatureUpdateKey| {
        let none = StrBytes::from_static_str(ErrorCode::None.name());
        UpdatableFeatureResult::default().with_feature(update.feature.clone()).with_error_message(Some(none))
    };
    let rows = if code == ErrorCode::None && call.version <= 1 { request.feature_updates.iter().map(row).collect() } else { Vec::new() };
    UpdateFeaturesResponse::default().with_error_code(call.error(code)).with_error_message(message).with_results(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::{call, encodes};

    fn key(upgrade: i8) -> FeatureUpdateKey {
        FeatureUpdateKey::default().with_feature(text("metadata.version")).with_max_version_level(25).with_upgrade_type(upgrade)
    }

    #[test]
    fn rows_only_in_old_versions_and_only_of_success() {
        let request = UpdateFeaturesRequest::default().with_feature_updates(vec![key(1)]);
        let refused = || Err(Refusal::new(Why::InvalidUpdateVersion, "no"));
        encodes(SPEC, |call| respond(call, &request, Ok(())));
        encodes(SPEC, |call| respond(call, &request, refused()));
        let rows = |version, result| respond(&call(SPEC, version), &request, result).results.len();
        assert_eq!((rows(1, Ok(())), rows(2, Ok(())), rows(1, refused())), (1, 0, 0));
        let answer = respond(&call(SPEC, 2), &request, refused());
        assert_eq!((answer.error_code, answer.error_message.as_deref()), (95, Some("no")));
    }

    #[test]
    fn ways_are_numbered() {
        let ways: Vec<_> = (1..=3).map(|way| update(&key(way)).map(|update| update.upgrade)).collect();
        assert_eq!(ways, [Ok(UpgradeType::Upgrade), Ok(UpgradeType::SafeDowngrade), Ok(UpgradeType::UnsafeDowngrade)]);
        assert_eq!(update(&key(0)).map_err(|refusal| refusal.why), Err(Why::InvalidUpdateVersion));
    }
}
