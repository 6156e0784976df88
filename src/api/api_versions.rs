//! ApiVersions (key 18), v0-4.
//!
//! Tells which keys and versions are served: the table, and nothing that does not work.
//! * A version above ours is answered in the layout of v0 with UNSUPPORTED_VERSION and key 18 alone, from which clients choose again.
//! * v3 client software name and version, supported and finalised features (KIP-511, KIP-584); a bad name is INVALID_REQUEST.
//! * v0-3 leave out features whose lowest level is 0, at which old Java clients stumble; v4 names them.

use super::{Audience, Call, Cx, Outcome, Spec, TABLE};
use crate::core::controller::Image;
use crate::core::controller::records::Feature;
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(18, "ApiVersions", 0, 4).to(Audience::Everybody);

/// Lists what of the table is served on the listener.
pub fn handle(cx: &Cx, call: &Rc<Call>, request: ApiVersionsRequest) -> Outcome<ApiVersionsResponse> {
    if call.version >= 3 && !(is_software_word(&request.client_software_name) && is_software_word(&request.client_software_version)) {
        return Outcome::Now(ApiVersionsResponse::default().with_error_code(call.error(ErrorCode::InvalidRequest)));
    }
    let served = TABLE.iter().filter(|spec| spec.audience.includes(cx.peer.quorum));
    let keys = served.map(|spec| row(spec.key, spec.advertised_min, spec.max)).collect();
    let image = cx.image();
    let answer = ApiVersionsResponse::default()
        .with_api_keys(keys)
        .with_supported_features(supported(&cx.broker.features, call.version))
        .with_finalized_features(finalised(&image))
        .with_finalized_features_epoch(image.offset().0);
    Outcome::Now(answer)
}

/// The answer to a version that is not served, in the layout of v0.
pub fn unsupported_version(call: &Call) -> ApiVersionsResponse {
    ApiVersionsResponse::default()
        .with_error_code(call.error(ErrorCode::UnsupportedVersion))
        .with_api_keys(vec![row(SPEC.key, SPEC.advertised_min, SPEC.max)])
}

fn row(key: i16, min: i16, max: i16) -> ApiVersion {
    ApiVersion::default().with_api_key(key).with_min_version(min).with_max_version(max)
}

fn supported(features: &[Feature], version: i16) -> Vec<SupportedFeatureKey> {
    let shown = features.iter().filter(|feature| version >= 4 || feature.min > 0);
    shown
        .map(|feature| {
            SupportedFeatureKey::default()
                .with_name(StrBytes::from_string(feature.name.clone()))
                .with_min_version(feature.min)
                .with_max_version(feature.max)
        })
        .collect()
}

fn finalised(image: &Image) -> Vec<FinalizedFeatureKey> {
    let shown = image.features().filter(|(_, level)| *level > 0);
    shown
        .map(|(name, level)| {
            FinalizedFeatureKey::default()
                .with_name(StrBytes::from_string(name.to_owned()))
                .with_min_version_level(level)
                .with_max_version_level(level)
        })
        .collect()
}

/// Letters, digits, `-` and `.`, with a letter or digit at both ends.
fn is_software_word(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends(text.chars().next()) && ends(text.chars().last()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_as_kafka_takes_them() {
        for good in ["a", "librdkafka", "apache-kafka-java", "1.2.3", "v0-x.y"] {
            assert!(is_software_word(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".a", "a b", "a_b", "ä", "a\n"] {
            assert!(!is_software_word(bad), "{bad:?}");
        }
    }
}
