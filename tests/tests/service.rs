//! Lifecycle of the daemon: readiness, draining, restart, and recovery after SIGKILL.

mod crash_recovery;
mod draining;
mod health;
mod open_stdin;
mod restart;
mod systemd_notify;

use lockhouse_tests::{Daemon, wait_until};
use serde_json::Value;

/// Configuration of a daemon without authentication.
const OPEN: &str = "[http]\nauth = \"none\"\n";

/// Returns a program that takes this many seconds.
fn sleeping(seconds: f32) -> String {
    format!("import time\ntime.sleep({seconds})\n\"done\"")
}

/// Returns the status and the body of a GET request.
async fn get(daemon: &Daemon, path: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(daemon.url(path)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn health(daemon: &Daemon) -> Value {
    serde_json::from_str(&get(daemon, "/health").await.1).unwrap()
}

async fn wait_until_ready(daemon: &Daemon) {
    wait_until("it is ready", async || (get(daemon, "/ready").await.0 == 200).then_some(())).await;
}

/// Waits until this many runs are in flight.
async fn wait_for_running(daemon: &Daemon, runs: u64) {
    wait_until("they run", async || (health(daemon).await["running"] == runs).then_some(())).await;
}
