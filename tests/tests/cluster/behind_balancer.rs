//! A cluster behind HAProxy that sends each request to the next host.

use lockhouse_tests::{HttpClient, Table, equal};
use serde_json::{Value, json};

use super::CONFIG;
use super::hosts::{Hosts, LONG, stored_handle};
use super::nats::Nats;
use crate::balancers::balancer::{Balancer, Kind, NAME};
use crate::balancers::doctor::failed_checks_of;

/// The packaged configuration without affinity.
fn round_robin(text: String) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("stick"));
    lines
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .replace("balance hdr(X-Affinity)", "balance roundrobin")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_needs_no_affinity() {
    let Some(nats) = Nats::start().await else { return };
    let http = format!(
        "hosts = [\"{NAME}\", \"127.0.0.1\"]\nbehind_proxy = true\ntrusted_proxies = [\"127.0.0.1\"]\n"
    );
    let hosts = Hosts::start_with(&nats, &http, CONFIG, |lockhouse| lockhouse).await;
    let addresses = [hosts.address(0), hosts.address(1)];
    let Some(balancer) = Balancer::start(Kind::Haproxy, &addresses, round_robin).await else { return };
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([balancer.certificate.clone()]);
    let client = client.resolve(NAME, ([127, 0, 0, 1], balancer.port).into()).build().expect("a client");
    let client =
        HttpClient::with_client(client, &format!("https://{NAME}:{}/mcp", balancer.port), Some(&hosts.token));
    let mut table = Table::new("two hosts of a cluster behind HAProxy, round robin");

    let mut tags = Vec::new();
    for _ in 0..6 {
        let answer = client.run_code("python", "1").await;
        let execution = answer["execution"].as_str().unwrap_or_default().to_owned();
        tags.push(execution[execution.len() - 10..].to_owned());
    }
    tags.sort();
    tags.dedup();
    table.row("control: requests reach both hosts", equal(tags.len(), 2));
    let run_in = async |code: &str| {
        let arguments = json!({"language": "python", "code": code, "session": "s"});
        client.call("run_code", arguments).await["value"].clone()
    };
    run_in("x = []").await;
    for number in 0..6 {
        run_in(&format!("x.append({number})")).await;
    }
    table.row("a session", equal(run_in("x").await, json!([0, 1, 2, 3, 4, 5])));
    let handle = stored_handle(&client.run_code("python", LONG).await);
    let mut parts: Vec<Value> = Vec::new();
    for _ in 0..4 {
        let part = client.call("get_result", json!({"handle": handle, "offset": 49_990})).await;
        parts.push(part["value"].clone());
    }
    table.row("a value", equal(parts, vec![json!("xxxxxxxxxxend"); 4]));
    let mut answer = client.run_code("python", "import time\ntime.sleep(2.5)\n42").await;
    while answer["status"] == "running" {
        answer = client.call("get_result", json!({"handle": answer["handle"], "wait_s": 1})).await;
    }
    table.row("a run in the background", equal(answer["value"].clone(), json!(42)));
    let (session, reply) = client.initialize("2025-11-25").await;
    table.row("initialize of 2025-11-25", equal(reply.status, 200));
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(session.request("tools/list", json!({})).await.status);
    }
    table.row("requests of its session", equal(statuses, vec![200; 6]));
    let checked = failed_checks_of(&balancer, &hosts.lockhouses[0], &hosts.token);
    table.row("doctor finds nothing", equal(checked, (Vec::new(), 8)));
    let retries = |text: String| {
        round_robin(text).replace("retry-on conn-failure 503", "retry-on all-retryable-errors")
    };
    let Some(balancer) = Balancer::start(Kind::Haproxy, &addresses, retries).await else { return };
    let once = ["once_after_500", "once_after_502", "once_after_504", "once_without_answer"];
    let checked = failed_checks_of(&balancer, &hosts.lockhouses[0], &hosts.token);
    table.row("doctor finds all retries", equal(checked, (once.map(str::to_owned).to_vec(), 8)));
    table.finish();
}
