//! Tests of MCP sessions over HTTP, in the protocol versions that have them: each session can be used only by the AI
//! client that created it.

use lockhouse_tests::{HttpClient, Lockhouse, Reply, Table, ensure, equal, wait_until};
use reqwest::Method;
use serde_json::json;

use crate::http::OPEN;

/// Creates a bearer token with this name and returns the token.
pub(crate) fn token(lockhouse: &Lockhouse, name: &str) -> String {
    let made = lockhouse.run(&["token", "create", name]);
    assert_eq!(made.status, Some(0), "{made:?}");
    made.stdout.lines().last().unwrap_or_default().trim().to_owned()
}

/// Sends every kind of HTTP request that can carry an MCP session id. Returns a name for each request, and the status
/// and body of its response. The body of an open event stream is empty.
async fn try_all_requests(http_client: &HttpClient) -> Vec<(&'static str, u16, String)> {
    let mut seen = Vec::new();
    let reply = http_client.request("tools/list", json!({})).await;
    seen.push(("a request", reply.status, reply.body));
    let reply =
        http_client.post(&http_client.calling("run_code", json!({"language": "python", "code": "1"}))).await;
    seen.push(("a run", reply.status, reply.body));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    let reply = http_client.post(&cancelled).await;
    seen.push(("a notification", reply.status, reply.body));
    let reply = http_client.post(&json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}})).await;
    seen.push(("an answer to a question", reply.status, reply.body));
    let events = http_client.listen().await;
    let (status, is_stream) = (events.status, events.status == 200);
    seen.push(("the stream", status, if is_stream { String::new() } else { events.whole().await.body }));
    let events = http_client.clone().with("last-event-id", "0/0").listen().await;
    let status = events.status;
    seen.push((
        "the stream again",
        status,
        if status == 200 { String::new() } else { events.whole().await.body },
    ));
    let response = http_client.http(Method::DELETE).send().await.unwrap();
    seen.push(("its end", response.status().as_u16(), response.text().await.unwrap()));
    seen
}

#[tokio::test]
async fn a_session_of_another_client_is_unknown() {
    let lockhouse = Lockhouse::new();
    let (ada, bob) = (token(&lockhouse, "ada"), token(&lockhouse, "bob"));
    let daemon = lockhouse.daemon().await;
    let version = "2025-11-25";
    let own = daemon.session(Some(&ada), version).await;
    let id = own.session_id().unwrap().to_owned();
    let mut table = Table::new("sessions of other clients");
    let never = daemon.http_client(Some(&bob)).in_session("00000000-0000-0000-0000-000000000000", version);
    let unknown = try_all_requests(&never).await;
    for (what, status, body) in
        try_all_requests(&daemon.http_client(Some(&bob)).in_session(&id, version)).await
    {
        table.row(format!("{what} is refused"), equal(status, 404));
        let (_, status_of_none, body_of_none) = unknown.iter().find(|(same, ..)| *same == what).unwrap();
        let holds = status == *status_of_none && body == *body_of_none;
        table.row(format!("{what}, as for one that never was"), ensure(holds, (body, body_of_none)));
    }
    let stranger = daemon.http_client(None).in_session(&id, version);
    for (what, status, _) in try_all_requests(&stranger).await {
        table.row(format!("{what} without a token is refused"), equal(status, 401));
    }
    for (what, status, body) in try_all_requests(&own).await {
        table.row(
            format!("control: {what} is answered"),
            ensure((200..300).contains(&status), (status, body)),
        );
    }
    let reply = own.request("tools/list", json!({})).await;
    table.row("after its end it is none", equal(reply.status, 404));
    table.finish();
}

#[tokio::test]
async fn at_the_session_limit_the_oldest_idle_session_of_the_client_is_evicted() {
    let limits = "[http.limits]\nmcp_sessions_per_client = 2\nmcp_sessions = 3\n";
    let lockhouse = Lockhouse::new().config(limits);
    let (ada, bob) = (token(&lockhouse, "ada"), token(&lockhouse, "bob"));
    let daemon = lockhouse.daemon().await;
    let version = "2025-06-18";
    let mut table = Table::new("many sessions");
    let first = daemon.session(Some(&ada), version).await;
    let second = daemon.session(Some(&ada), version).await;
    let others = daemon.session(Some(&bob), version).await;
    let third = daemon.session(Some(&ada), version).await;
    let status = async |http_client: &HttpClient| http_client.request("tools/list", json!({})).await.status;
    table.row("the oldest of its owner has gone", equal(status(&first).await, 404));
    table.row("that of another has not", equal(status(&others).await, 200));
    table.row("nor the younger ones", equal((status(&second).await, status(&third).await), (200, 200)));
    let streams = (second.listen().await, third.listen().await);
    let (_, reply) = daemon.http_client(Some(&ada)).initialize(version).await;
    table.row("none goes that is in use", equal(reply.status, 429));
    table.row("and a time is told", ensure(!reply.header("retry-after").is_empty(), &reply));
    let (_, reply) = daemon.http_client(Some(&bob)).initialize(version).await;
    table.row("of all together there are as many as may be: its own goes", equal(reply.status, 200));
    table.row("and no other's", equal(status(&others).await, 404));
    drop(streams);
    let again = wait_until("there is room again", async || {
        let (_, reply) = daemon.http_client(Some(&ada)).initialize(version).await;
        (reply.status == 200).then_some(())
    });
    again.await;
    table.finish();
}

#[tokio::test]
async fn an_idle_session_expires_unless_a_run_is_in_flight() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[http.limits]\nmcp_session_seconds = 0.2\n"));
    let daemon = lockhouse.daemon().await;
    let idle = daemon.session(None, "2025-03-26").await;
    let busy = daemon.session(None, "2025-03-26").await;
    // Longer than two intervals of the check for idle sessions.
    let answer = busy.run_code("python", "import time\ntime.sleep(11)\n'done'").await;
    assert_eq!(answer["value"], "done", "{answer}");
    assert_eq!(idle.request("tools/list", json!({})).await.status, 404);
}

/// Sends seven further requests with the id of a request in flight. The daemon must refuse them; otherwise their seven
/// response streams would stay open.
#[tokio::test]
async fn a_request_id_in_flight_is_refused_and_no_stream_stays_open() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("requests with one id");
    for version in ["2025-03-26", "2025-11-25"] {
        let session = daemon.session(None, version).await;
        let with_id = |code: &str| {
            let mut message = session.calling("run_code", json!({"language": "python", "code": code}));
            message["id"] = json!("same");
            message
        };
        let hanging = with_id("import time\nwhile True: time.sleep(0.01)");
        let first = session.open(&hanging).await;
        table.row(format!("{version}: the first"), equal(first.status, 200));
        let again = (0..7).map(|_| session.post(&hanging));
        for reply in futures_util::future::join_all(again).await {
            let answer = reply.answer();
            let holds = reply.status == 400 && answer["id"] == "same" && answer["error"]["code"] == -32_600;
            table.row(format!("{version}: one more"), ensure(holds, reply));
        }
        let mut other = with_id("3");
        other["id"] = json!(8);
        let answer = session.post(&other).await.answer();
        table.row(
            format!("{version}: control: another id"),
            equal(answer["result"]["structuredContent"]["value"].clone(), 3.into()),
        );
        // The AI client of this request has disconnected, and the run continues.
        drop(first);
        let reply = session.post(&with_id("2")).await;
        table.row(format!("{version}: after its stream was closed"), equal(reply.status, 400));
        session.notify("notifications/cancelled", json!({"requestId": "same"})).await;
        for (after, value) in [("it was cancelled", 4), ("it was answered", 5)] {
            let answer = session.post(&with_id(&value.to_string())).await.answer();
            table.row(
                format!("{version}: after {after}"),
                equal(answer["result"]["structuredContent"]["value"].clone(), value.into()),
            );
        }
    }
    // Without sessions each request is independent: programs that share a token may use equal request ids.
    let http_client = daemon.http_client(None);
    let mut message = http_client.calling("run_code", json!({"language": "python", "code": "6"}));
    message["id"] = json!("same");
    for reply in futures_util::future::join_all((0..8).map(|_| http_client.post(&message))).await {
        let value = reply.answer()["result"]["structuredContent"]["value"].clone();
        table.row("control: without a session", equal(value, 6.into()));
    }
    table.finish();
}

#[tokio::test]
async fn priming_events_go_to_clients_that_know_them() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("the stream of a session");
    for (version, expected) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        // Some SDKs send the content type of their requests with every method.
        let client = daemon.session(None, version).await.with("content-type", "application/json");
        let stream = client.listen().await;
        table.row(format!("{version}: GET"), equal(stream.status, 200));
        let ended = client.end_session().await;
        table.row(format!("{version}: DELETE"), ensure(matches!(ended, 200 | 202 | 204), ended));
        let body = stream.whole().await.body;
        table.row(format!("{version}: priming event"), ensure(body.contains("retry:") == expected, &body));
    }
    table.finish();
}

/// Returns the end of the ids of an answer's events: the part after the slash, which names the stream.
fn stream_of(reply: &Reply) -> u64 {
    let id = reply.body.lines().find_map(|line| line.strip_prefix("id: 0/")).expect("a priming event");
    id.trim().parse().expect("a number")
}

#[tokio::test]
async fn an_answer_can_be_read_after_the_connection_was_lost() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let client = daemon.session(None, "2025-11-25").await;
    let run = |code: &str| client.calling("run_code", json!({"language": "python", "code": code}));
    let first = client.post(&run("'the first'")).await;
    let answer = first.answer();
    let number = stream_of(&first);
    let resumed = async |id: String| client.clone().with("last-event-id", &id).listen().await.whole().await;
    let mut table = Table::new("answers that are read again");
    let value = |answer: &serde_json::Value| answer["result"]["structuredContent"]["value"].clone();
    table.row("control: the first answer", equal(value(&answer), json!("the first")));
    table.row("from the start", equal(resumed(format!("0/{number}")).await.messages(), vec![answer.clone()]));
    table.row("after the answer", equal(resumed(format!("1/{number}")).await.messages(), vec![]));
    table.row("of no stream", equal(resumed("0/77".to_owned()).await.messages(), vec![]));
    table.row("with an id of nothing", equal(resumed("x/y".to_owned()).await.messages(), vec![]));
    // The client loses its connection before the answer.
    drop(client.open(&run("'the second'")).await);
    let second = resumed(format!("0/{}", number + 1)).await.answer();
    table.row("of a request whose connection was lost", equal(value(&second), json!("the second")));
    table.finish();
}
