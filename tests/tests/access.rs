//! Access over HTTP: authentication, authorization of tokens, rate limits and quotas per client.

mod bearer_tokens;
mod client_quotas;
mod configuration;
mod grants;
mod oauth;
mod peer_credentials;
mod token_command;

use lockhouse_tests::{HttpClient, Lockhouse, Reply};
use serde_json::{Value, json};

/// Creates a token with `lockhouse token create` and these additional arguments.
fn token(lockhouse: &Lockhouse, arguments: &[&str]) -> String {
    let finished = lockhouse.run(&[&["token", "create"], arguments].concat());
    assert_eq!(finished.status, Some(0), "{finished:?}");
    finished.stdout.trim_end().to_owned()
}

/// Requests `tools/list` and returns the answer.
async fn list_tools(http_client: &HttpClient) -> Reply {
    http_client.request("tools/list", json!({})).await
}

/// Summarizes a reply: the HTTP status and the `error` of the WWW-Authenticate header, such as `401 invalid_token`;
/// for an accepted request, `200` alone.
fn status_and_error(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let error = body["error"].as_str().map(|error| format!(" {error}")).unwrap_or_default();
    format!("{}{error}", reply.status)
}

/// Returns the error message for people in the body of a reply.
fn error_description(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    body["error_description"].as_str().unwrap_or_default().to_owned()
}
