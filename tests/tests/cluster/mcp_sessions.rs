//! MCP sessions whose requests reach several hosts.

use std::time::{Duration, Instant};

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use super::CONFIG;
use super::hosts::Hosts;
use super::nats::Nats;

const VERSION: &str = "2025-11-25";
/// After this time without a request, a session ends.
const IDLE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lives_while_any_host_gets_its_requests() {
    let Some(nats) = Nats::start().await else { return };
    let config = format!("{CONFIG}[http.limits]\nmcp_session_seconds = {}\n", IDLE.as_secs_f64());
    let mut hosts = Hosts::start(&nats, &config, |lockhouse| lockhouse).await;
    let mut table = Table::new("an MCP session that other hosts than its first one use");
    let session = hosts.client(0).initialize(VERSION).await.0;
    let urls = [0, 1, 2].map(|host| hosts.url(host));
    let status = async |host: usize| session.clone().at(&urls[host]).request("ping", json!({})).await.status;
    let begun = Instant::now();
    let mut statuses = Vec::new();
    while begun.elapsed() < IDLE * 2 {
        statuses.push(status(1).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    statuses.dedup();
    table.row("at h1 all the time", equal(statuses, vec![200]));
    table.row("at h0, which began it, after that", equal(status(0).await, 200));
    // That nobody uses it is the condition.
    tokio::time::sleep(IDLE + Duration::from_millis(500)).await;
    table
        .row("control: when no host was asked for it", equal([status(2).await, status(0).await], [404, 404]));

    let other = hosts.client(0).initialize(VERSION).await.0;
    let at_one = other.clone().at(&urls[1]);
    table.row("control: another session, at h1", equal(at_one.request("ping", json!({})).await.status, 200));
    hosts.daemons[0].take().expect("it runs").kill().await;
    let reply = at_one.request("ping", json!({})).await;
    table.row("without h0: status", equal(reply.status, 503));
    let words =
        "the host that began this session cannot be reached, and nothing was done: send the request again";
    table.row("without h0: message", ensure(reply.body == words, &reply.body));
    table.finish();
}
