//! Questions to users, and their answers, when each request of a client may reach another host.

use lockhouse_tests::{HttpClient, Lockhouse, Table, ensure, equal, fixture_server, wait_until};
use serde_json::{Value, json};

use super::hosts::{HOSTS, Hosts};
use super::message;
use super::nats::Nats;

/// A program that makes the call that is asked about.
const ASKING: &str = "from mcp_tools import call_tool\ncall_tool('calc.add', {'a': 1, 'b': 2})['sum']";
const SLEEPING: &str = "import time\ntime.sleep(60)";
const SESSION_VERSION: &str = "2025-11-25";

/// Clients may call `add` with code or directly, and users are asked.
fn asks_for_add(lockhouse: Lockhouse) -> Lockhouse {
    lockhouse.policy("version = 1\n[servers.calc]\nallow = [\"*\"]\nask = [\"add\"]\n")
}

fn able(client: &HttpClient) -> HttpClient {
    client.clone().with_capabilities(json!({"elicitation": {"form": {}}}))
}

/// Returns the message with which a client repeats a call and accepts what it was asked.
fn accepted(call: Value, asked: &Value) -> Value {
    let keys = asked["inputRequests"].as_object().into_iter().flatten();
    let responses = keys.map(|(key, _)| (key.clone(), json!({"action": "accept", "content": {}})));
    let mut again = call;
    again["params"]["requestState"] = asked["requestState"].clone();
    again["params"]["inputResponses"] = responses.collect::<serde_json::Map<_, _>>().into();
    again
}

/// A question about a direct call, answered with a further call.
async fn direct_calls(table: &mut Table, hosts: &Hosts) {
    let call = |client: &HttpClient, a: i32| client.calling("calc__add", json!({"a": a, "b": 2}));
    let first = able(&hosts.client(0));
    let asked = first.post(&call(&first, 1)).await.answer()["result"].clone();
    table.row("direct call: asked", ensure(asked["requestState"].is_string(), &asked));
    let other = able(&hosts.client(1));
    let changed = other.post(&accepted(call(&other, 5), &asked)).await.answer();
    table.row(
        "direct call: with other arguments",
        equal(
            &changed["error"]["message"],
            &json!("the repeated request must have the same parameters as the first one"),
        ),
    );
    let stranger = able(&hosts.other_client(1));
    let refused = stranger.post(&accepted(call(&stranger, 1), &asked)).await.answer();
    let nobody = refused["error"]["message"].as_str().unwrap_or_default();
    table.row("direct call: of another client", ensure(nobody.starts_with("no request waits"), &refused));
    // A client may write its arguments in another order.
    let again = other.calling("calc__add", json!({"b": 2, "a": 1}));
    let answered = other.post(&accepted(again, &asked)).await.answer();
    let sum = answered["result"]["structuredContent"]["sum"].clone();
    table.row("direct call: answered at another host", ensure(sum == 3, &answered));
    let third = able(&hosts.client(2));
    let late = third.post(&accepted(call(&third, 1), &asked)).await.answer();
    let words = late["error"]["message"].as_str().unwrap_or_default();
    let advice = "The call may have been made: check its effects before you call again";
    table.row("direct call: answered once more", ensure(words.ends_with(advice), &late));
}

/// Posts a request in an MCP session at one host, and answers its question at another one. Returns the final message.
async fn answered_elsewhere(
    session: &HttpClient,
    hosts: &Hosts,
    (asking, answering): (usize, usize),
    call: Value,
) -> Value {
    let mut events = session.clone().at(&hosts.url(asking)).open(&call).await;
    let elsewhere = session.clone().at(&hosts.url(answering));
    loop {
        let Some(event) = events.next().await else { return Value::Null };
        if event["method"] == "elicitation/create" {
            let result = json!({"action": "accept", "content": {}});
            elsewhere.post(&json!({"jsonrpc": "2.0", "id": event["id"], "result": result})).await;
        } else if event.get("result").is_some() || event.get("error").is_some() {
            return event;
        }
    }
}

/// Questions on an event stream, answered with messages of the same MCP session at other hosts.
async fn sessions(table: &mut Table, hosts: &Hosts) {
    let (session, reply) = able(&hosts.client(0)).initialize(SESSION_VERSION).await;
    table.row("session: initialize", equal(reply.status, 200));
    for (asking, answering) in [(0, 1), (1, 2), (2, 0), (1, 1)] {
        let at = format!("session: asked at {asking}, answered at {answering}");
        let code = session.calling("run_code", json!({"language": "python", "code": ASKING}));
        let ran = answered_elsewhere(&session, hosts, (asking, answering), code).await;
        table.row(format!("{at}: program"), equal(&ran["result"]["structuredContent"]["value"], &json!(3)));
        let call = session.calling("calc__add", json!({"a": 1, "b": 2}));
        let called = answered_elsewhere(&session, hosts, (asking, answering), call).await;
        table.row(format!("{at}: call"), ensure(called["result"]["structuredContent"]["sum"] == 3, &called));
    }
}

/// Another client of the same service answers questions that it was not asked.
async fn answers_of_strangers(table: &mut Table, hosts: &Hosts) {
    let (session, _) = able(&hosts.client(0)).initialize(SESSION_VERSION).await;
    let (stranger, _) = able(&hosts.other_client(1)).initialize(SESSION_VERSION).await;
    let call = session.calling("run_code", json!({"language": "python", "code": ASKING}));
    let mut events = session.open(&call).await;
    let question = loop {
        match events.next().await {
            Some(event) if event["method"] == "elicitation/create" => break event,
            Some(_) => {}
            None => break Value::Null,
        }
    };
    let answer =
        |action| json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}});
    stranger.post(&answer("accept")).await;
    // In the session of the other client, with the credential of the stranger.
    let id = session.session_id().unwrap_or_default();
    let intruder = hosts.other_client(1).in_session(id, SESSION_VERSION);
    table.row("session: a stranger", equal(intruder.post(&answer("accept")).await.status, 404));
    session.clone().at(&hosts.url(2)).post(&answer("decline")).await;
    let ended = loop {
        match events.next().await {
            Some(event) if event.get("result").is_some() => break event,
            Some(_) => {}
            None => break Value::Null,
        }
    };
    let structured = &ended["result"]["structuredContent"];
    table.row(
        "session: the client's own answer counts",
        ensure(message(structured).contains("declined"), structured),
    );
}

/// A run that its client cancels with a message that reaches another host.
async fn cancellation(table: &mut Table, hosts: &Hosts) {
    let (session, _) = hosts.client(0).initialize(SESSION_VERSION).await;
    for (running, cancelling) in [(0, 0), (0, 1), (1, 2)] {
        let call = session.calling("run_code", json!({"language": "python", "code": SLEEPING}));
        let _events = session.clone().at(&hosts.url(running)).open(&call).await;
        let lockhouse = &hosts.lockhouses[running];
        let is_running = || lockhouse.run(&["runs", "list", "--json"]).stdout.contains("\"execution\"");
        wait_until("the run begins", async || is_running().then_some(())).await;
        let elsewhere = session.clone().at(&hosts.url(cancelling));
        let status = elsewhere.notify("notifications/cancelled", json!({"requestId": call["id"]})).await;
        wait_until("the run ends", async || (!is_running()).then_some(())).await;
        table.row(format!("a run at {running}, cancelled at {cancelling}"), equal(status, 202));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_cancellations_may_reach_any_host() {
    let Some(nats) = Nats::start().await else { return };
    let config = format!("[servers.calc]\ncommand = \"{}\"\nexpose = \"both\"\n", fixture_server().display());
    let hosts = Hosts::start(&nats, &config, asks_for_add).await;
    assert_eq!(HOSTS, 3);
    let mut table = Table::new("answers at other hosts than those that asked");
    direct_calls(&mut table, &hosts).await;
    sessions(&mut table, &hosts).await;
    answers_of_strangers(&mut table, &hosts).await;
    cancellation(&mut table, &hosts).await;
    table.finish();
}
