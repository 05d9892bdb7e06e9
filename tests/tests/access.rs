//! Tests of how AI clients get access to `lockhouse serve` over HTTP: authentication, authorization of tokens, and the
//! rate limits and quotas of each client.

mod bearer_tokens;
mod bound_tokens;
pub(crate) mod client_certificates;
mod client_quotas;
mod configuration;
mod ended_grants;
mod grants;
mod oauth;
mod peer_credentials;
mod roles;
mod token_command;
mod token_exchange;
mod token_forwarding;
pub(crate) mod user_credentials;

use lockhouse_tests::{HttpClient, Lockhouse, Reply};
use serde_json::{Value, json};

/// Runs `lockhouse token create` with these additional arguments and returns the new bearer token.
pub(crate) fn token(lockhouse: &Lockhouse, arguments: &[&str]) -> String {
    let finished = lockhouse.run(&[&["token", "create"], arguments].concat());
    assert_eq!(finished.status, Some(0), "{finished:?}");
    finished.stdout.trim_end().to_owned()
}

/// Sends the MCP request `tools/list` and returns the HTTP reply.
async fn list_tools(http_client: &HttpClient) -> Reply {
    http_client.request("tools/list", json!({})).await
}

/// Summarizes an HTTP reply as its status and the member `error` of its JSON body, such as `401 invalid_token`. The
/// summary of an accepted request is the status alone: `200`.
fn status_and_error(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let error = body["error"].as_str().map(|error| format!(" {error}")).unwrap_or_default();
    format!("{}{error}", reply.status)
}

/// Returns the member `error_description` of the reply's JSON body: the error message for people. Returns an empty text
/// if the body has none.
fn error_description(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    body["error_description"].as_str().unwrap_or_default().to_owned()
}
