//! Isolation tests for AI clients over HTTP: no client can access another client's MCP sessions, pending questions,
//! tasks or event streams.

use std::time::Duration;

use lockhouse_tests::{HttpClient, Table, ensure, equal};
use serde_json::{Value, json};

use crate::client_isolation::all_transports::ASKS;

const ABLE: &str = r#"{"elicitation": {"form": {}}}"#;
/// How long the test observes an event stream on which no message must arrive.
const QUIET: Duration = Duration::from_millis(300);

/// Two clients that have made no request in an MCP session: the owner, and the one that attempts access.
type Pair<'a> = (&'a HttpClient, &'a HttpClient);

pub(crate) async fn all(table: &mut Table, pair: &str, clients: Pair<'_>) {
    mcp_session(table, pair, clients).await;
    suspended(table, pair, clients).await;
    task(table, pair, clients).await;
    streams(table, pair, clients).await;
    tools(table, pair, clients.1).await;
}

fn asking_call(http_client: &HttpClient) -> Value {
    http_client.calling("run_code", json!({"language": "python", "code": ASKS}))
}

/// Tests that an MCP session id is no credential: a client that sends the id of another client's MCP session gets an
/// error.
async fn mcp_session(table: &mut Table, pair: &str, (one, other): Pair<'_>) {
    let version = "2025-11-25";
    let own = one.clone().initialize(version).await.0;
    let id = own.session_id().unwrap().to_owned();
    let theirs = other.clone().in_session(&id, version);
    let refused = |status: u16| ensure((400..500).contains(&status), status);
    table.row(
        format!("{pair}: MCP session id, POST"),
        refused(theirs.request("tools/list", json!({})).await.status),
    );
    table.row(format!("{pair}: MCP session id, GET"), refused(theirs.listen().await.status));
    table.row(format!("{pair}: MCP session id, DELETE"), refused(theirs.end_session().await));
    let control = own.request("tools/list", json!({})).await;
    table.row(format!("{pair}: MCP session id: control"), equal(control.status, 200));
    table.row(format!("{pair}: MCP session id, DELETE: control"), ensure(own.end_session().await < 300, ()));
}

/// Tests that only the client that started a run can continue it after a pending question.
async fn suspended(table: &mut Table, pair: &str, (one, other): Pair<'_>) {
    let able = |client: &HttpClient| client.clone().with_capabilities(serde_json::from_str(ABLE).unwrap());
    let (own, theirs) = (able(one), able(other));
    let asked = own.post(&asking_call(&own)).await.answer()["result"].clone();
    let answered = |http_client: &HttpClient| {
        let mut message = asking_call(http_client);
        message["params"]["requestState"] = asked["requestState"].clone();
        let keys = asked["inputRequests"].as_object().into_iter().flatten();
        let reply_text = keys.map(|(key, _)| (key.clone(), json!({"action": "accept", "content": {}})));
        message["params"]["inputResponses"] = reply_text.collect::<serde_json::Map<_, _>>().into();
        message
    };
    let refused = theirs.post(&answered(&theirs)).await.answer()["result"]["structuredContent"].clone();
    let words = refused["error"]["message"].as_str().unwrap_or_default();
    table.row(
        format!("{pair}: suspended question"),
        ensure(
            asked["requestState"].is_string() && words.contains("no request waits"),
            format!("{asked} {refused}"),
        ),
    );
    let mut answer = own.post(&answered(&own)).await.answer()["result"]["structuredContent"].clone();
    while answer["status"] == "running" {
        answer = own.call("get_result", json!({"handle": answer["handle"], "wait_s": 60})).await;
    }
    table.row(format!("{pair}: suspended question: control"), equal(answer["value"].clone(), json!(3)));
}

/// Tests that only the client that started a run as an MCP task, `one`, can access the task, and `other` cannot.
async fn task(table: &mut Table, pair: &str, (one, other): Pair<'_>) {
    let able = |client: &HttpClient| {
        client.clone().with_capabilities(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}))
    };
    let (own, theirs) = (able(one), able(other));
    let hang = json!({"language": "python", "code": "import time\nwhile True: time.sleep(0.01)"});
    let created = own.post(&own.calling("run_code", hang)).await.answer()["result"].clone();
    let id = created["taskId"]
        .as_str()
        .or(created["task"]["taskId"].as_str())
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let parameters = json!({"taskId": id, "inputResponses": {}});
        let answer = theirs.request(method, parameters).await.answer();
        let reported = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(
            format!("{pair}: task, {method}"),
            ensure(reported.contains("there is no such task"), &answer),
        );
    }
    let own_view = own.request("tasks/get", json!({"taskId": id})).await.answer();
    table.row(
        format!("{pair}: task: control"),
        ensure(own_view["result"].to_string().contains("\"working\""), &own_view),
    );
    let cancelled = own.request("tasks/cancel", json!({"taskId": id})).await.answer();
    table.row(
        format!("{pair}: task, tasks/cancel: control"),
        ensure(cancelled["result"].is_object(), &cancelled),
    );
}

/// Tests that the questions and notifications of a run of the client `one` are never sent on an event
/// stream of the client `other`.
async fn streams(table: &mut Table, pair: &str, (one, other): Pair<'_>) {
    let version = "2025-11-25";
    let able = |client: &HttpClient| client.clone().with_capabilities(serde_json::from_str(ABLE).unwrap());
    let (own, _) = able(one).initialize(version).await;
    let (theirs, _) = able(other).initialize(version).await;
    let mut listening = theirs.listen().await;
    let mut message = asking_call(&own);
    message["params"]["_meta"] = json!({"progressToken": "of-both"});
    let mut events = own.open(&message).await;
    let mut seen = Vec::new();
    let question = loop {
        let Some(event) = events.next().await else { break Value::Null };
        if event["method"] == "elicitation/create" {
            break event;
        }
        seen.push(event);
    };
    let asked = question["params"]["message"].as_str().unwrap_or_default();
    table.row(
        format!("{pair}: approval: control"),
        ensure(asked.contains("fixture"), format!("{seen:?} {question}")),
    );
    // The other client accepts a question that it never received.
    let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}});
    theirs.post(&yes).await;
    let nothing = tokio::time::timeout(QUIET, listening.next()).await;
    table.row(
        format!("{pair}: approval and progress on another stream"),
        ensure(nothing.is_err(), format!("{nothing:?}")),
    );
    let no = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    own.post(&no).await;
    let mut answer = Value::Null;
    while let Some(event) = events.next().await {
        if event.get("result").is_some() {
            answer = event["result"]["structuredContent"].clone();
        }
    }
    while answer["status"] == "running" {
        answer = own.call("get_result", json!({"handle": answer["handle"], "wait_s": 60})).await;
    }
    table
        .row(format!("{pair}: approval by another"), ensure(answer["value"] == "approval_declined", &answer));
    // A progress token is chosen by the client, so two clients may choose the same one.
    let running = {
        let own = own.clone();
        let code = "import time\nfor n in range(30):\n    time.sleep(0.1)";
        let mut message = own.calling("run_code", json!({"language": "python", "code": code}));
        message["params"]["_meta"] = json!({"progressToken": "of-both"});
        tokio::spawn(async move { own.post(&message).await.messages() })
    };
    let mut message = theirs.calling("run_code", json!({"language": "python", "code": "1"}));
    message["params"]["_meta"] = json!({"progressToken": "of-both"});
    let notes =
        |seen: &[Value]| seen.iter().filter(|event| event["method"] == "notifications/progress").count();
    let seen = theirs.post(&message).await.messages();
    table.row(format!("{pair}: progress"), ensure(notes(&seen) == 0, format!("{seen:?}")));
    let seen = running.await.unwrap();
    table.row(format!("{pair}: progress: control"), ensure(notes(&seen) > 0, format!("{seen:?}")));
    let nothing = tokio::time::timeout(QUIET, listening.next()).await;
    table
        .row(format!("{pair}: progress on another stream"), ensure(nothing.is_err(), format!("{nothing:?}")));
}

/// Tests that no tool that Lockhouse offers to the client `other` reveals other clients.
async fn tools(table: &mut Table, pair: &str, http_client: &HttpClient) {
    let tools = http_client.request("tools/list", json!({})).await.answer()["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    table.row(format!("{pair}: listed tools"), equal(names, vec!["run_code", "search_tools", "get_result"]));
    for tool in ["audit", "sessions", "approvals", "list_clients"] {
        let answer = http_client.post(&http_client.calling(tool, json!({}))).await.answer();
        table.row(format!("{pair}: a tool {tool}"), ensure(answer["error"].is_object(), &answer));
    }
}
