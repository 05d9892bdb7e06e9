//! Tests of requests that were authenticated, and whose token becomes invalid before Lockhouse has read them.

use std::time::Duration;

use futures_util::StreamExt;
use lockhouse_tests::{HttpClient, Lockhouse, Reply, Table, equal};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::access::{error_description, list_tools, status_and_error, token};

/// Time in which the daemon authenticates a request whose head has been sent.
const AUTHENTICATION_TIME: Duration = Duration::from_secs(1);

/// Starts a request that runs a program. The end of its body is sent after the returned sender was used.
fn late_request(http_client: &HttpClient) -> (oneshot::Sender<()>, JoinHandle<Reply>) {
    let message = http_client.calling("run_code", json!({"language": "python", "code": "6 * 7"}));
    let (text, (finish, finished)) = (message.to_string(), oneshot::channel::<()>());
    let (start, rest) = text.split_at(20);
    let (start, rest) = (start.to_owned(), rest.to_owned());
    let rest = async move {
        finished.await.unwrap();
        Ok::<String, std::io::Error>(rest)
    };
    let parts = futures_util::stream::once(std::future::ready(Ok(start)));
    let body = reqwest::Body::wrap_stream(parts.chain(futures_util::stream::once(rest)));
    let request = http_client.posting(&message).body(body);
    (finish, tokio::spawn(async move { Reply::read(request.send().await.unwrap()).await }))
}

#[tokio::test]
async fn a_request_whose_token_is_revoked_before_it_is_read_completely_runs_nothing() {
    let lockhouse = Lockhouse::new();
    let (desk, lamp) = (token(&lockhouse, &["desk"]), token(&lockhouse, &["lamp"]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("requests that were authenticated before a token was revoked");
    let [revoked, valid] = [&desk, &lamp].map(|token| daemon.http_client(Some(token)));
    let (late, control) = (late_request(&revoked), late_request(&valid));
    tokio::time::sleep(AUTHENTICATION_TIME).await;
    assert_eq!(lockhouse.run(&["token", "revoke", "desk"]).status, Some(0));
    let refused = list_tools(&revoked).await;
    table.row("a new request", equal(error_description(&refused), "the token was revoked".into()));
    let [late, control] = [late, control].map(|(finish, reply)| {
        finish.send(()).unwrap();
        reply
    });
    let reply = control.await.unwrap();
    let value = reply.answer()["result"]["structuredContent"]["value"].clone();
    table.row("control: the token of another client", equal(value, json!(42)));
    let reply = late.await.unwrap();
    table.row("the request", equal(status_and_error(&reply), "401 invalid_token".into()));
    let words = "the token has expired or was revoked: authenticate again";
    table.row("its reason", equal(error_description(&reply), words.into()));
    let challenge = reply.header("www-authenticate").to_owned();
    let expected =
        format!("Bearer realm=\"lockhouse\", error=\"invalid_token\", error_description=\"{words}\"");
    table.row("its challenge", equal(challenge, expected));
    let runs: Vec<String> = lockhouse
        .records()
        .iter()
        .filter(|record| record["event"] == "execution")
        .map(|record| record["client"].as_str().unwrap_or_default().to_owned())
        .collect();
    table.row("what ran", equal(runs, vec!["lamp".to_owned()]));
    table.finish();
}
