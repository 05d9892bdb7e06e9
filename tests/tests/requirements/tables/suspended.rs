//! Attempts to make a process miss a change of the requirements: it is suspended before the change, and continued later with
//! requests that have arrived meanwhile.

use std::time::Duration;

use lockhouse_tests::{Approver, Session, structured, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use serde_json::json;

use super::Row;
use crate::requirements::attempts::{Host, boxed};
use crate::requirements::{ADD, server};

const DENIED: &str = "[[denied]]\nname = \"fixture\"\n";
const DENIES: &str = "policy = \"ROOT/etc/lockhouse/policy.toml\"\n";
const STOP: &str = "stop = \"incident 7\"\n";
const NO_FILES: &str = "[servers.files]\nread = []\n";
const SHARED: &str = "[sharing]\nengine = \"shared\"\nidle_seconds = 1\ndirectory = \"/\"\n";
/// The time after which a change must be in force.
const PROMISE: Duration = Duration::from_secs(2);
/// A program that calls the server again and again, until it is refused.
const CALLS: &str = "from fixture import add
from mcp_tools import ToolError
import time
try:
    for number in range(400):
        add(a=number, b=0)
        time.sleep(0.005)
except ToolError:
    pass
number";

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

/// Suspends a process, lets `meanwhile` send it requests, changes the requirements, and continues the process when the
/// change must be in force.
async fn suspend<T>(it: &Host, pid: u32, meanwhile: impl AsyncFnOnce() -> T) -> T {
    signal(pid, Signal::SIGSTOP);
    let stat = format!("/proc/{pid}/stat");
    let is_stopped = || std::fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('T');
    wait_until("it is suspended", async || is_stopped().then_some(())).await;
    let requested = meanwhile().await;
    it.forbid();
    tokio::time::sleep(PROMISE).await;
    signal(pid, Signal::SIGCONT);
    requested
}

/// Returns whether a call succeeds that a client requests while `pid` is suspended.
async fn run_meanwhile(it: &Host, session: &Session, pid: u32) -> (bool, String) {
    let running = suspend(it, pid, async || session.start_code("python", ADD)).await;
    let answer = structured(running.await.unwrap());
    (answer["value"] == 42, answer.to_string())
}

fn calls(it: &Host) -> usize {
    it.lockhouse.audit().iter().filter(|record| record["event"] == "call").count()
}

async fn warmed_up(session: &Session) {
    let before = session.run_code("python", ADD).await;
    assert_eq!(before["value"], 42, "before the change: {before}");
}

/// Returns the process of the one engine.
fn engine(it: &Host) -> u32 {
    let listed = it.lockhouse.run(&["status", "--json"]).json();
    u32::try_from(listed[0]["pid"].as_u64().unwrap()).unwrap()
}

/// Returns whether a program that calls in a loop goes on after its engine was suspended.
async fn calls_go_on(it: &Host) -> (bool, String) {
    let session = it.serve(&[], &[]).await;
    warmed_up(&session).await;
    let running = session.start_code("python", CALLS);
    wait_until("the program calls", async || (calls(it) > 10).then_some(())).await;
    let before = suspend(it, session.pid(), async || calls(it)).await;
    let answer = structured(running.await.unwrap());
    let after = calls(it);
    (after > before, format!("{before} calls, {after} at the end: {answer}"))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("suspended processes", "a run, a denied server", DENIED, |it| {
            boxed(async {
                let session = it.serve(&[], &[]).await;
                warmed_up(&session).await;
                run_meanwhile(it, &session, session.pid()).await
            })
        }),
        ("suspended processes", "a run, a required policy", DENIES, |it| {
            boxed(async {
                let session = it.serve(&[], &[]).await;
                warmed_up(&session).await;
                run_meanwhile(it, &session, session.pid()).await
            })
        }),
        ("suspended processes", "code without a call, the kill switch", STOP, |it| {
            boxed(async {
                let session = it.serve(&[], &[]).await;
                warmed_up(&session).await;
                let running = suspend(it, session.pid(), async || session.start_code("python", "7")).await;
                let answer = structured(running.await.unwrap());
                (answer["value"] == 7, answer.to_string())
            })
        }),
        ("suspended processes", "a program that calls", DENIED, |it| boxed(calls_go_on(it))),
        ("suspended processes", "a program that calls, the kill switch", STOP, |it| boxed(calls_go_on(it))),
        ("suspended processes", "a direct call", STOP, |it| {
            boxed(async {
                it.config(&format!("{}expose = \"both\"\n", server("fixture")));
                let session = it.serve(&[], &[]).await;
                warmed_up(&session).await;
                let arguments = json!({"a": 40, "b": 2}).as_object().cloned().unwrap();
                let parameters = CallToolRequestParams::new("fixture__add").with_arguments(arguments);
                let peer = session.peer().clone();
                let calling = async move { peer.call_tool_once(parameters).await };
                let called = suspend(it, session.pid(), async || tokio::spawn(calling)).await;
                let called = called.await.unwrap();
                let is_done = matches!(&called, Ok(CallToolResponse::Complete(result)) if result.is_error != Some(true));
                (is_done, format!("{called:?}"))
            })
        }),
        ("suspended processes", "an approval", DENIED, |it| {
            boxed(async {
                it.policy("version = 1\n[servers.fixture]\nask = [\"add\"]\n");
                let session = it.serve(&[], &[]).await;
                let mut approver = Approver::connected(&it.lockhouse).await;
                let running = session.start_code("python", ADD);
                let question = approver.next("ask").await;
                suspend(it, session.pid(), async || approver.answer(&question, "approve", "once").await)
                    .await;
                let answer = structured(running.await.unwrap());
                (answer["value"] == 42, answer.to_string())
            })
        }),
        ("suspended processes", "a file of the host", NO_FILES, |it| {
            boxed(async {
                let path = it.lockhouse.file("public/text", "x");
                it.policy("version = 1\n[servers.files]\nallow = [\"*\"]\n");
                it.config(&format!("[servers.files]\nread = [{:?}]\n", it.path("public")));
                let session = it.serve(&[], &[]).await;
                let code = format!("open({path:?}).read()");
                let before = session.run_code("python", &code).await;
                assert_eq!(before["value"], "x", "before the change: {before}");
                let running = suspend(it, session.pid(), async || session.start_code("python", &code)).await;
                let answer = structured(running.await.unwrap());
                (answer["value"] == "x", answer.to_string())
            })
        }),
        ("suspended processes", "the engine of a thin process", DENIED, |it| {
            boxed(async {
                it.config(&format!("{SHARED}{}", server("fixture")));
                let session = it.serve(&[], &[]).await;
                warmed_up(&session).await;
                run_meanwhile(it, &session, engine(it)).await
            })
        }),
        ("suspended processes", "a thin process", DENIED, |it| {
            boxed(async {
                it.config(&format!("{SHARED}{}", server("fixture")));
                let session = it.serve(&[], &[]).await;
                warmed_up(&session).await;
                run_meanwhile(it, &session, session.pid()).await
            })
        }),
        ("suspended processes", "lockhouse run", DENIED, |it| {
            boxed(async {
                let code = format!("{CALLS}\nadd(a=40, b=2)[\"sum\"]");
                let mut command = it.command(&["run", "-c", &code, "--language", "python"], &[]);
                command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
                let running = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
                wait_until("the program calls", async || (calls(it) > 10).then_some(())).await;
                let before = suspend(it, running.id(), async || calls(it)).await;
                let output =
                    tokio::task::spawn_blocking(|| running.wait_with_output()).await.unwrap().unwrap();
                let after = calls(it);
                (after > before, format!("{before} calls, {after} at the end: {output:?}"))
            })
        }),
    ]
}
