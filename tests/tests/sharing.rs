//! Tests of the engine that AI clients over standard input and output share: who shares it, why others do not, what happens
//! when it ends, and who cannot reach it.

mod bounds;
mod ends;
mod equality;
mod hostile_fronts;
mod hostile_peers;
mod many_clients;
mod operators;
mod questions;
mod raw_peer;
mod reasons;
mod skew;

use std::path::PathBuf;

use lockhouse_tests::{Lockhouse, Process, Session, descendants, wait_until};
use serde_json::{Value, json};

/// A configuration in which clients in all directories share an engine, which ends soon after its last client.
const SHARED: &str = "[sharing]\nengine = \"shared\"\nidle_seconds = 2\ndirectory = \"/\"\n";
/// A Python program that calls the fixture server.
const ADD: &str = "from fixture import add\nadd(a=40, b=2)[\"sum\"]";

fn lockhouse() -> Lockhouse {
    Lockhouse::with_fixture().config(SHARED)
}

/// Returns the health reports of all running processes of the test's user that have an engine.
fn engines(lockhouse: &Lockhouse) -> Vec<Value> {
    let listed = lockhouse.run(&["status", "--json"]).json();
    listed.as_array().unwrap().clone()
}

/// Returns the health report of the one shared engine.
fn the_engine(lockhouse: &Lockhouse) -> Value {
    let mut engines = engines(lockhouse);
    assert_eq!(engines.len(), 1, "{engines:?}");
    engines.remove(0)
}

fn pid_of(engine: &Value) -> u32 {
    u32::try_from(engine["pid"].as_u64().unwrap()).unwrap()
}

/// Returns the processes of upstream servers that a process has started, directly or indirectly.
fn upstream_servers(pid: u32) -> Vec<Process> {
    let mut found = descendants(pid);
    found.retain(|process| process.command.contains("fixture-server"));
    found
}

/// Waits until the number of engines is `count`.
async fn wait_for_engines(lockhouse: &Lockhouse, count: usize) -> Vec<Value> {
    wait_until(&format!("{count} engines run"), async || {
        Some(engines(lockhouse)).filter(|engines| engines.len() == count)
    })
    .await
}

/// Returns the path of the socket of the one shared engine.
fn socket(lockhouse: &Lockhouse) -> PathBuf {
    let mut sockets = files(lockhouse);
    sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    sockets.remove(0)
}

/// Returns the sockets and locks of shared engines.
fn files(lockhouse: &Lockhouse) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lockhouse.path("state/lockhouse/run")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("engine-")).collect()
}

/// Runs [`ADD`], and returns the value or the error.
async fn add(session: &Session) -> Value {
    let answer = session.run_code("python", ADD).await;
    if answer["status"] == "ok" { answer["value"].clone() } else { json!(answer["error"]) }
}
