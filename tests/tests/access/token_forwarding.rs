//! Tests that the tokens of AI clients are not passed on: no upstream server receives the token with which an AI client
//! authenticates.

use lockhouse_tests::{HttpAnswer, HttpServer, Issuer, Lockhouse, Signer, Table, ensure, equal};
use serde_json::json;

use crate::access::token;

const AUDIENCE: &str = "https://lockhouse.example.com/mcp";
const POLICY: &str = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
const CODE: &str = "from mcp_tools import call_tool\ncall_tool('web', 'look', {'at': 1})";

/// Starts an upstream server over HTTP whose tool `look` answers `seen`.
fn upstream_server() -> HttpServer {
    HttpServer::start(|request| {
        let result = json!({"content": [{"type": "text", "text": "seen"}]});
        request.as_mcp(false).unwrap_or_else(|| HttpAnswer::json(200, &request.result(&result)))
    })
}

#[tokio::test]
async fn no_upstream_server_receives_the_token_of_an_ai_client() {
    let (upstream, signer) = (upstream_server(), Signer::es256("one"));
    let issuer = Issuer::start(&[&signer]);
    let config = format!(
        "[http]\nauth = [\"oauth\", \"token\"]\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n\
         [http.oauth.scopes]\nall = [\"*\"]\n[servers.web]\nurl = \"{}\"\nexpose = \"both\"\n",
        issuer.name(),
        upstream.url("/mcp")
    );
    let lockhouse = Lockhouse::new().policy(POLICY).config(&config);
    let own = token(&lockhouse, &["desk"]);
    let access = signer.sign(&issuer.claims("ada", AUDIENCE, "all"));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("what an upstream server receives");
    for (name, token) in [("a token of Lockhouse", &own), ("an OAuth access token", &access)] {
        let http_client = daemon.http_client(Some(token));
        let answer = http_client.run_code("python", CODE).await;
        table
            .row(format!("control: a call from code, {name}"), equal(answer["value"].clone(), json!("seen")));
        let reply = http_client.post(&http_client.calling("web__look", json!({"at": 1}))).await;
        let content = reply.answer()["result"]["content"][0]["text"].clone();
        table.row(format!("control: a direct call, {name}"), equal(content, json!("seen")));
    }
    let requests = upstream.requests();
    let calls = requests.iter().filter(|request| request.rpc() == "tools/call").count();
    table.row("control: all calls arrived", equal(calls, 4));
    let authorized = requests.iter().filter(|request| request.headers.contains_key("authorization")).count();
    table.row("no Authorization header", equal(authorized, 0));
    let received = format!("{requests:?}");
    for (name, token) in [("a token of Lockhouse", &own), ("an OAuth access token", &access)] {
        let end = &token[token.len() - 20..];
        table.row(format!("no part of {name}"), ensure(!received.contains(end), "it was passed on"));
    }
    table.finish();
}
