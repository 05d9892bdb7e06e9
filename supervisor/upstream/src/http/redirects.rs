//! Decides which redirects of an upstream server are followed. A redirect to another origin is not followed, because
//! requests carry tokens.

use reqwest::redirect::{Action, Attempt, Policy};

use crate::definition::HttpEndpoint;

/// Maximum number of redirects of one request.
/// Bound: upstream servers.
const REDIRECTS_MAX: usize = 5;

/// Returns the redirect policy of the HTTP connections to an upstream server.
pub(super) fn policy(endpoint: &HttpEndpoint) -> Policy {
    if endpoint.follows_redirects { Policy::custom(follow_at_home) } else { Policy::none() }
}

/// Decides whether to follow a redirect. The target must have the same origin as the first request, so that headers and
/// tokens are not sent elsewhere. The status must be 307 or 308, which repeat the request unchanged. At most
/// [`REDIRECTS_MAX`] redirects are followed in a row.
fn follow_at_home(attempt: Attempt<'_>) -> Action {
    let is_home = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    let repeats = matches!(attempt.status().as_u16(), 307 | 308);
    if is_home && repeats && attempt.previous().len() <= REDIRECTS_MAX {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
