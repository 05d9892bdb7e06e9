//! MCP sessions whose requests reach several hosts.

use std::time::{Duration, Instant};

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use super::CONFIG;
use super::hosts::Hosts;
use super::nats::Nats;

const VERSION: &str = "2025-11-25";
/// After this time without a request, the front of a host forgets a session.
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
    table.row("ended at h2", equal(session.clone().at(&urls[2]).end_session().await, 202));
    table.row("control: after that", equal([status(1).await, status(0).await], [404, 404]));

    let other = hosts.client(0).initialize(VERSION).await.0;
    let at_one = other.clone().at(&urls[1]);
    table.row("control: another session, at h1", equal(at_one.request("ping", json!({})).await.status, 200));
    hosts.daemons[0].take().expect("it runs").kill().await;
    let reply = at_one.request("ping", json!({})).await;
    table.row("without h0: status", equal(reply.status, 503));
    let is_said = reply.body.starts_with("the host h0 has what this request names, and cannot be reached")
        && reply.body.ends_with("Nothing was run; send it again");
    table.row("without h0: message", ensure(is_said, &reply.body));
    table.finish();
}
