//! Reads the ids that an AI client gave a request from its HTTP headers and its `_meta`.

use axum::http::HeaderMap;
use lockhouse_messages::{Claim, RequestClaims};

/// Returns the claims of a request: from the headers of its HTTP request, if it has one, and from `traceparent` of its
/// `_meta`. A claim that is invalid, or whose header occurs several times, is dropped.
pub(crate) fn request_claims(headers: Option<&HeaderMap>, traceparent: Option<&str>) -> RequestClaims {
    let header = |name: &str| {
        let mut values = headers?.get_all(name).iter();
        let first = values.next()?.to_str().ok()?;
        if values.next().is_none() { Claim::new(first) } else { None }
    };
    RequestClaims {
        correlation_id: header("x-correlation-id"),
        request_id: header("x-request-id"),
        traceparent: traceparent.map_or_else(|| header("traceparent"), Claim::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_claims_are_dropped() {
        for (sent, expected) in
            [(vec!["abc-1"], Some("abc-1")), (vec!["a b"], None), (vec!["a", "b"], None), (vec![], None)]
        {
            let mut headers = HeaderMap::new();
            for value in &sent {
                headers.append("x-request-id", value.parse().expect("a value"));
            }
            let claims = request_claims(Some(&headers), None);
            assert_eq!(claims.request_id.as_ref().map(Claim::as_str), expected, "{sent:?}");
        }
        let mut headers = HeaderMap::new();
        headers
            .insert("x-correlation-id", axum::http::HeaderValue::from_bytes(b"\xc3\xa4").expect("a value"));
        headers.insert("traceparent", "00-header".parse().expect("a value"));
        let claims = request_claims(Some(&headers), Some("00-meta"));
        assert_eq!(claims.named().collect::<Vec<_>>(), [("traceparent", "00-meta")]);
        let claims = request_claims(Some(&headers), None);
        assert_eq!(claims.named().collect::<Vec<_>>(), [("traceparent", "00-header")]);
        assert_eq!(request_claims(None, Some("\n")), RequestClaims::default());
    }
}
