//! Tests of the lifecycle of the daemon `lockhouse serve`: readiness, draining, restart, and recovery after SIGKILL.

mod account;
mod all_users;
mod crash_recovery;
mod draining;
mod front_process;
mod front_unit;
mod health;
mod open_stdin;
mod reload_command;
mod restart;
mod systemd_notify;

use lockhouse_tests::{Daemon, wait_until};
use serde_json::Value;

/// A daemon configuration without authentication.
const OPEN: &str = "[http]\nauth = \"none\"\n";

/// Returns a Python program that sleeps for this many seconds and then returns "done".
fn sleeping(seconds: f32) -> String {
    format!("import time\ntime.sleep({seconds})\n\"done\"")
}

/// Sends an HTTP GET request to the daemon and returns the status and the body of the response.
async fn get(daemon: &Daemon, path: &str) -> (u16, String) {
    let mut client = reqwest::Client::builder().no_proxy();
    if let Some(path) = daemon.listening_at().strip_prefix("unix:") {
        client = client.unix_socket(path);
    }
    let answer = client.build().unwrap().get(daemon.url(path)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn health(daemon: &Daemon) -> Value {
    serde_json::from_str(&get(daemon, "/health").await.1).unwrap()
}

async fn wait_until_ready(daemon: &Daemon) {
    wait_until("it is ready", async || (get(daemon, "/ready").await.0 == 200).then_some(())).await;
}

/// Waits until the daemon reports exactly this many runs in flight.
async fn wait_for_running(daemon: &Daemon, runs: u64) {
    wait_until("they run", async || (health(daemon).await["running"] == runs).then_some(())).await;
}
