//! A host that an operator lets take no new work, or leave the cluster.

use lockhouse_tests::{Lockhouse, Page, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use super::CONFIG;
use super::hosts::Hosts;
use super::nats::Nats;

/// Returns the names and states of the hosts, as the command prints them on a host.
fn states(hosts: &Hosts, host: usize, arguments: &[&str]) -> Vec<(String, String)> {
    let output = hosts.lockhouses[host].run(&[&["cluster"], arguments, &["--json"]].concat());
    listed(&serde_json::from_str(&output.stdout).unwrap_or_default())
}

fn text(from: &Value, key: &str) -> String {
    from[key].as_str().unwrap_or_default().to_owned()
}

fn listed(listing: &Value) -> Vec<(String, String)> {
    let hosts = listing["hosts"].as_array().into_iter().flatten();
    hosts.map(|host| (text(host, "name"), text(host, "state"))).collect()
}

fn named(states: [(&str, &str); 3]) -> Vec<(String, String)> {
    states.map(|(name, state)| (name.to_owned(), state.to_owned())).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_drains_a_host_and_lets_it_leave() {
    let Some(nats) = Nats::start().await else { return };
    let mut hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("a host that an operator drains");
    let value = hosts.stored_value(0).await;
    hosts.run_in(0, "notes", "x = 41").await;
    let drained = named([("h0", "draining"), ("h1", "serving"), ("h2", "serving")]);
    table.row("cluster drain", equal(states(&hosts, 0, &["drain"]), drained.clone()));
    table.row("cluster status at once", equal(states(&hosts, 0, &["status"]), drained.clone()));
    let client = hosts.client(0);
    let refused = client.post(&client.calling("run_code", json!({"language": "python", "code": "1"}))).await;
    let words = "this host takes no new requests, since an operator drains it; nothing was run. Send the request again in 1 s.";
    table.row("new work: status", equal(refused.status, 503));
    table.row("new work: message", equal(&refused.answer()["error"]["message"], &json!(words)));
    let ready = reqwest::get(format!("http://{}/ready", hosts.address(0))).await.expect("an answer");
    table.row("it is not ready", equal(ready.status().as_u16(), 503));
    let after = hosts.run_in(1, "notes", "x + 1").await;
    table.row("its session, by another host", equal(&after["value"], &json!(42)));
    let part = hosts.client(0).call("get_result", json!({"handle": value, "offset": 49_990})).await;
    table.row("its value, by itself", equal(&part["value"], &json!("xxxxxxxxxxend")));
    wait_until("the others know it", async || (states(&hosts, 1, &["status"]) == drained).then_some(()))
        .await;
    let page = Page::start(&hosts.lockhouses[1], &[]).await;
    let mut events = page.browser().await.events().await;
    let shown = events.until("processes", |shown| shown["hosts"][0]["state"].is_string()).await;
    table.row("on the page", equal(listed(&shown), drained));
    let serving = named([("h0", "serving"), ("h1", "serving"), ("h2", "serving")]);
    table.row("cluster drain --undo", equal(states(&hosts, 0, &["drain", "--undo"]), serving));
    table.row(
        "new work after that",
        equal(&hosts.client(0).run_code("python", "6 * 7").await["value"], &json!(42)),
    );
    let left = hosts.lockhouses[0].run(&["cluster", "leave"]);
    let printed = "h0 leaves the cluster when its 0 runs have ended.\nIt has left.\n";
    table.row("cluster leave", equal((left.status, left.stdout.as_str()), (Some(0), printed)));
    let ended = hosts.daemons[0].take().expect("it ran").ended().await;
    table.row("its process", equal(ended.status, Some(0)));
    let remaining: Vec<String> = states(&hosts, 1, &["status"]).into_iter().map(|(name, _)| name).collect();
    table.row("the other hosts", equal(remaining, vec!["h1".to_owned(), "h2".to_owned()]));
    let records = hosts.lockhouses[0].records();
    let processes = records.iter().filter(|record| record["event"] == "process");
    let outcomes: Vec<String> = processes.map(|record| text(record, "outcome")).collect();
    table.row("in its audit log", equal(outcomes.join(" "), "started draining serving stopped".to_owned()));
    let nobody = Lockhouse::new().run(&["cluster", "leave"]);
    let expected =
        "lockhouse: no service on this machine is part of a cluster; docs/cluster.md describes [cluster]\n";
    table.row(
        "without a cluster",
        ensure((nobody.status, nobody.stderr.as_str()) == (Some(7), expected), format!("{nobody:?}")),
    );
    table.finish();
}
