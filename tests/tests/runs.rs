//! Tests of runs that continue after the request that started them: background execution, fetching results,
//! cancellation, and fair scheduling.

mod background;
mod background_limits;
mod cancellation;
mod elicitation;
mod end_reasons;
mod over_http;
mod ownership;
mod priority;
mod progress;
mod queue;
mod repeated_requests;
mod runs_command;
mod tasks;

use lockhouse_tests::{Lockhouse, Process, Session, children, structured, wait_until};
use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientRequest, Request};
use rmcp::service::{ClientLifecycleMode, PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, model::JsonObject};
use serde_json::{Value, json};

/// A configuration under which a `run_code` request returns a handle after 0.2 s if its run has not ended by then.
const SHORT_WAIT: &str = "[runs]\nwait_seconds = 0.2\n";
/// A Python program that prints one line and then makes a call of 60 s, so a test must cancel it.
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

/// Sends an MCP `tools/call` request without waiting for its answer. The test can cancel the request through the
/// returned handle.
async fn start_cancellable(
    session: &Session,
    tool: &'static str,
    arguments: &Value,
) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(Request::new(parameters(tool, arguments)));
    session.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap()
}

/// Calls the MCP tool `get_result` once with these arguments, and returns its structured answer.
async fn result(session: &Session, arguments: Value) -> Value {
    structured(session.call("get_result", arguments).await)
}

/// Calls the MCP tool `get_result` for this run until the run has ended, and returns the answer of the run.
async fn outcome(session: &Session, handle: &Value) -> Value {
    wait_until("the run is over", async || {
        let answer = result(session, json!({"handle": handle, "wait_s": 5})).await;
        (answer["status"] != "running").then_some(answer)
    })
    .await
}

/// Runs a program to its end and returns its answer. If `run_code` returns a handle first, the answer is fetched with
/// `get_result`.
async fn run(session: &Session, language: &str, code: &str) -> Value {
    let answer = session.run_code(language, code).await;
    if answer["status"] == "running" { outcome(session, &answer["handle"]).await } else { answer }
}

/// Returns the error message of an answer, with the handle replaced by `HANDLE` and all numbers removed.
fn error_message(answer: &Value, handle: &str) -> String {
    let message = answer["error"]["message"].as_str().unwrap_or_default().replace(handle, "HANDLE");
    let words = message.split(' ').filter(|word| word.parse::<u64>().is_err());
    words.collect::<Vec<_>>().join(" ")
}

/// Starts a Python program that outlasts its `run_code` request, and returns the handle of the run.
async fn start_in_background(session: &Session, code: &str) -> Value {
    let answer = session.run_code("python", code).await;
    assert_eq!(answer["status"], "running", "{answer}");
    answer["handle"].clone()
}

/// Starts a Python program that outlasts its `run_code` request, waits until the run has a worker, and returns the
/// handle of the run.
async fn start_with_worker(session: &Session, code: &str) -> Value {
    let handle = start_in_background(session, code).await;
    wait_until("it has a worker", async || {
        let told = result(session, json!({"handle": handle, "wait_s": 0})).await;
        told["progress"]["waiting"].is_null().then_some(())
    })
    .await;
    handle
}

/// Returns all worker processes: the child processes of the supervisor's child processes.
fn workers(session: &Session) -> Vec<Process> {
    children(session.pid()).iter().flat_map(|zygote| children(zygote.pid)).collect()
}

/// Returns how often the fixture server's tool `slow` was called, and how many of these calls were cancelled.
async fn slow_calls(session: &Session) -> (u64, u64) {
    let counts = run(session, "typescript", "await fixture.count({})").await["value"].clone();
    let of = |name: &str| counts[name].as_u64().unwrap_or(0);
    (of("slow"), of("slow (cancelled)"))
}

async fn wait_for_slow_calls(session: &Session, times: u64) {
    wait_until("the call is under way", async || (slow_calls(session).await.0 >= times).then_some(())).await;
}

async fn wait_for_cancelled_calls(session: &Session, times: u64) {
    wait_until("the call is cancelled", async || (slow_calls(session).await.1 == times).then_some(())).await;
}

fn complete(response: CallToolResponse) -> Value {
    match response {
        CallToolResponse::Complete(result) => result.structured_content.expect("structured content"),
        other => panic!("not a result: {other:?}"),
    }
}
