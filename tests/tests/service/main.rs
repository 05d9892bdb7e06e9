//! The life of a service: it becomes ready, drains, is started again, and is killed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod draining;
mod health;
mod killed;
mod notify;
mod restart;
mod terminal;

use lockhouse_tests::{Door, wait_until};
use serde_json::Value;

/// A door that asks for no proof.
const OPEN: &str = "[http]\nauth = \"none\"\n";

/// A program that takes so many seconds.
fn sleeping(seconds: f32) -> String {
    format!("import time\ntime.sleep({seconds})\n\"done\"")
}

/// What a path answers: the status and the text.
async fn get(door: &Door, path: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(door.url(path)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn health(door: &Door) -> Value {
    serde_json::from_str(&get(door, "/health").await.1).unwrap()
}

async fn is_ready(door: &Door) {
    wait_until("it is ready", async || (get(door, "/ready").await.0 == 200).then_some(())).await;
}

/// Waits until so many runs are under way.
async fn running(door: &Door, runs: u64) {
    wait_until("they run", async || (health(door).await["running"] == runs).then_some(())).await;
}
