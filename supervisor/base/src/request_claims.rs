//! What a client claims about a request to identify it in its own logs: the ids of HTTP headers, and the trace context.
//! A client can send any value, so no decision may depend on one. The audit log and the log record them.

use http::HeaderMap;
use serde::{Deserialize, Serialize};

/// Maximum length of a claim in characters. A longer claim is dropped, because a part of an id identifies nothing.
const CHARS_MAX: usize = 128;

/// The ids that a client gave a request. Each has 1 to [`CHARS_MAX`] visible ASCII characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestClaims {
    /// The header `X-Correlation-ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The header `X-Request-ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// `traceparent` of the request's `_meta`, or else the header `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RequestClaims {
    /// Reads the claims of a request: from the headers of its HTTP request, if it has one, and from its `_meta`. A claim that is
    /// invalid, or whose header occurs several times, is dropped.
    pub fn of(headers: Option<&HeaderMap>, traceparent: Option<&str>) -> Self {
        let header = |name: &str| {
            let mut values = headers?.get_all(name).iter();
            let first = values.next()?.to_str().ok()?;
            if values.next().is_none() { valid(first) } else { None }
        };
        Self {
            correlation_id: header("x-correlation-id"),
            request_id: header("x-request-id"),
            traceparent: traceparent.map_or_else(|| header("traceparent"), valid),
        }
    }

    /// Returns the claims with the names that records use for them.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("correlation_id", &self.correlation_id),
            ("request_id", &self.request_id),
            ("traceparent", &self.traceparent),
        ];
        all.into_iter().filter_map(|(name, claim)| Some((name, claim.as_deref()?)))
    }
}

fn valid(claim: &str) -> Option<String> {
    let is_valid =
        (1..=CHARS_MAX).contains(&claim.len()) && claim.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid.then(|| claim.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_claims_are_dropped() {
        let long = "a".repeat(CHARS_MAX);
        for (sent, expected) in [
            (vec!["abc-1"], Some("abc-1")),
            (vec![long.as_str()], Some(long.as_str())),
            (vec![""], None),
            (vec!["a b"], None),
            (vec!["a\tb"], None),
            (vec!["a", "b"], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in &sent {
                headers.append("x-request-id", value.parse().expect("a value"));
            }
            let claims = RequestClaims::of(Some(&headers), None);
            assert_eq!(claims.request_id.as_deref(), expected, "{sent:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", format!("{long}a").parse().expect("a value"));
        headers.insert("x-correlation-id", http::HeaderValue::from_bytes(b"\xc3\xa4").expect("a value"));
        headers.insert("traceparent", "00-header".parse().expect("a value"));
        let claims = RequestClaims::of(Some(&headers), Some("00-meta"));
        assert_eq!(claims.named().collect::<Vec<_>>(), [("traceparent", "00-meta")]);
        let claims = RequestClaims::of(Some(&headers), None);
        assert_eq!(claims.named().collect::<Vec<_>>(), [("traceparent", "00-header")]);
        assert_eq!(RequestClaims::of(None, Some("\n")), RequestClaims::default());
    }
}
