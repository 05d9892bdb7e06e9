//! Runs that take longer than a client waits: they go on, they are picked up, they are ended, and they take turns.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod background;
mod bounds;
mod endings;
mod operators;
mod over_http;
mod owners;
mod priority;
mod progress;
mod questions;
mod queue;
mod reasons;
mod tasks;

use lockhouse_tests::{Lockhouse, Process, Session, children, structured, wait_until};
use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientRequest, Request};
use rmcp::service::{ClientLifecycleMode, PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, model::JsonObject};
use serde_json::{Value, json};

/// A request waits no longer than this for its run.
const IMPATIENT: &str = "[runs]\nwait_seconds = 0.2\n";
/// A program that goes on until somebody ends it, and says when it has begun.
const ENDLESS: &str = "from mcp_tools.fixture import slow\nprint('begun')\nslow(ms=60000)";

fn lockhouse(config: &str) -> Lockhouse {
    Lockhouse::with_fixture().config(config)
}

fn eras() -> [(&'static str, ClientLifecycleMode); 2] {
    [("initialize", ClientLifecycleMode::Initialize), ("discover", Session::latest())]
}

async fn session(lockhouse: &Lockhouse, era: ClientLifecycleMode) -> Session {
    Session::connect(lockhouse.command(&["serve"]), era).await
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn parameters(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(object(arguments))
}

fn python(code: &str) -> Value {
    json!({"language": "python", "code": code})
}

/// A call that the test can cancel.
async fn cancellable(session: &Session, tool: &'static str, arguments: &Value) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(Request::new(parameters(tool, arguments)));
    session.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap()
}

/// One answer of `get_result`.
async fn result(session: &Session, arguments: Value) -> Value {
    structured(session.call("get_result", arguments).await)
}

/// What a run came to, asked for again and again.
async fn outcome(session: &Session, handle: &Value) -> Value {
    wait_until("the run is over", async || {
        let answer = result(session, json!({"handle": handle, "wait_s": 5})).await;
        (answer["status"] != "running").then_some(answer)
    })
    .await
}

/// The answer to a program, picked up if this machine was too slow for its request.
async fn run(session: &Session, language: &str, code: &str) -> Value {
    let answer = session.run_code(language, code).await;
    if answer["status"] == "running" { outcome(session, &answer["handle"]).await } else { answer }
}

/// The words of an error, without the handle that it is about and without the age of the process.
fn told_of(answer: &Value, handle: &str) -> String {
    let message = answer["error"]["message"].as_str().unwrap_or_default().replace(handle, "HANDLE");
    let words = message.split(' ').filter(|word| word.parse::<u64>().is_err());
    words.collect::<Vec<_>>().join(" ")
}

/// Starts a program that goes on without its request: the handle.
async fn left_running(session: &Session, code: &str) -> Value {
    let answer = session.run_code("python", code).await;
    assert_eq!(answer["status"], "running", "{answer}");
    answer["handle"].clone()
}

/// The same of one that has its worker by then.
async fn begun(session: &Session, code: &str) -> Value {
    let handle = left_running(session, code).await;
    wait_until("it has a worker", async || {
        let told = result(session, json!({"handle": handle, "wait_s": 0})).await;
        told["progress"]["waiting"].is_null().then_some(())
    })
    .await;
    handle
}

/// The workers of all zygotes.
fn workers(session: &Session) -> Vec<Process> {
    children(session.pid()).iter().flat_map(|zygote| children(zygote.pid)).collect()
}

/// How often the fixture's `slow` was called, and cancelled.
async fn slow_calls(session: &Session) -> (u64, u64) {
    let counts = run(session, "typescript", "await fixture.count({})").await["value"].clone();
    let of = |name: &str| counts[name].as_u64().unwrap_or(0);
    (of("slow"), of("slow (cancelled)"))
}

async fn slow_is_called(session: &Session, times: u64) {
    wait_until("the call is under way", async || (slow_calls(session).await.0 >= times).then_some(())).await;
}

async fn slow_is_cancelled(session: &Session, times: u64) {
    wait_until("the call is cancelled", async || (slow_calls(session).await.1 == times).then_some(())).await;
}

fn complete(response: CallToolResponse) -> Value {
    match response {
        CallToolResponse::Complete(result) => result.structured_content.expect("structured content"),
        other => panic!("not a result: {other:?}"),
    }
}
