//! DescribeClientQuotas (key 48), v0-1 (KIP-546).
//!
//! Quotas of users, clients and addresses. There are none, and none can be set: the answer to a good filter is empty.

use super::{Call, Cx, Outcome, Spec};
use crate::wire::error::ErrorCode;
use kafka_protocol::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The row.
pub const SPEC: Spec = Spec::new(48, "DescribeClientQuotas", 0, 1);

const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const SPECIFIED: i8 = 2;

/// Describes quotas.
pub fn handle(_: &Cx, call: &Rc<Call>, request: DescribeClientQuotasRequest) -> Outcome<DescribeClientQuotasResponse> {
    Outcome::Now(match check(&request) {
        Ok(()) => DescribeClientQuotasResponse::default(),
        Err((error, message)) => refuse(call, error, message),
    })
}

fn refuse(call: &Call, error: ErrorCode, message: String) -> DescribeClientQuotasResponse {
    let message = StrBytes::from_string(message);
    DescribeClientQuotasResponse::default().with_error_code(call.error(error)).with_error_message(Some(message)).with_entries(None)
}

/// Whether the filter makes sense.
fn check(request: &DescribeClientQuotasRequest) -> Result<(), (ErrorCode, String)> {
    let invalid = |message: String| Err((ErrorCode::InvalidRequest, message));
    let mut types = BTreeSet::new();
    for component in &request.components {
        let kind = component.entity_type.as_str();
        if kind.is_empty() {
            return invalid("Invalid empty entity type.".into());
        }
        if types.contains(kind) {
            return invalid(format!("Entity type {kind} cannot appear more than once in the filter."));
        }
        if !["ip", "user", "client-id"].contains(&kind) {
            return Err((ErrorCode::UnsupportedVersion, format!("Unsupported entity type {kind}")));
        }
        match (component.match_type, &component._match) {
            (EXACT, None) => return invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.".into()),
            (DEFAULT, Some(_)) => return invalid("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.".into()),
            (SPECIFIED, Some(_)) => return invalid("Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.".into()),
            (EXACT | DEFAULT | SPECIFIED, _) => {}
            (other, _) => return invalid(format!("Unknown match type {other}")),
        }
        types.insert(kind);
    }
    if types.contains("ip") && types.len() > 1 {
        let message =
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component.";
        return invalid(message.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::terms::text;
    use crate::api::testkit::encodes;
    use kafka_protocol::messages::describe_client_quotas_request::ComponentData;

    #[test]
    fn filters_are_checked() {
        let filter = |components: &[(&str, i8, Option<&str>)]| {
            let component = |(kind, how, which): &(&str, i8, Option<&str>)| {
                ComponentData::default().with_entity_type(text(kind)).with_match_type(*how).with_match(which.map(text))
            };
            check(&DescribeClientQuotasRequest::default().with_components(components.iter().map(component).collect()))
        };
        assert_eq!(filter(&[]), Ok(()));
        assert_eq!(filter(&[("user", EXACT, Some("u")), ("client-id", SPECIFIED, None)]), Ok(()));
        for (components, error) in [
            (&[("", EXACT, Some("u"))][..], ErrorCode::InvalidRequest),
            (&[("user", SPECIFIED, None), ("user", DEFAULT, None)], ErrorCode::InvalidRequest),
            (&[("host", EXACT, Some("u"))], ErrorCode::UnsupportedVersion),
            (&[("user", EXACT, None)], ErrorCode::InvalidRequest),
            (&[("user", DEFAULT, Some("u"))], ErrorCode::InvalidRequest),
            (&[("user", SPECIFIED, Some("u"))], ErrorCode::InvalidRequest),
            (&[("user", 3, None)], ErrorCode::InvalidRequest),
            (&[("user", DEFAULT, None), ("ip", DEFAULT, None)], ErrorCode::InvalidRequest),
        ] {
            assert_eq!(filter(components).map_err(|(error, _)| error), Err(error), "{components:?}");
        }
    }

    #[test]
    fn every_version_can_be_written() {
        encodes(SPEC, |_| DescribeClientQuotasResponse::default());
        encodes(SPEC, |call| refuse(call, ErrorCode::InvalidRequest, "no".into()));
    }
}
