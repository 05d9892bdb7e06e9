//! A server of which all hosts use one process, because it remembers something.

use lockhouse_tests::{Table, ensure, equal, fixture_server, wait_until};
use serde_json::{Value, json};

use super::hosts::{HOSTS, Hosts};
use super::nats::Nats;

/// Returns what a program at a host gets from a tool of the server.
async fn call(hosts: &Hosts, host: usize, code: &str) -> Value {
    let code = format!(
        "from mcp_tools import one, each, ToolError\ntry: got = {code}\nexcept ToolError as e: got = e.code\ngot"
    );
    hosts.client(host).run_code("python", &code).await["value"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_hosts_use_one_process_of_a_server() {
    let Some(nats) = Nats::start().await else { return };
    let program = fixture_server().display().to_string();
    let config = format!(
        "[runs]\nwait_seconds = 1.0\n[servers.one]\ncommand = \"{program}\"\ncluster = \"one\"\n[servers.each]\ncommand = \"{program}\"\n"
    );
    let policy = "version = 1\n[servers.one]\nallow = [\"*\"]\n[servers.each]\nallow = [\"*\"]\n";
    let mut hosts = Hosts::start(&nats, &config, |host| host.policy(policy)).await;
    let mut table = Table::new("a server with one process, and one with a process for each host");
    for host in 0..HOSTS {
        table.row(
            format!("h{host} calls it"),
            equal(call(&hosts, host, "one.add(a=1, b=2)['sum']").await, json!(3)),
        );
        table.row(
            format!("h{host} calls the other"),
            equal(call(&hosts, host, "each.add(a=1, b=2)['sum']").await, json!(3)),
        );
    }
    for host in 0..HOSTS {
        table.row(
            format!("calls of all, at h{host}"),
            equal(call(&hosts, host, "one.count()['add']").await, json!(HOSTS)),
        );
        table.row(
            format!("control: calls of h{host}"),
            equal(call(&hosts, host, "each.count()['add']").await, json!(1)),
        );
    }
    let big = "len(one.big(bytes=3_000_000))";
    table.row("3 MB from another host", equal(call(&hosts, 1, big).await, call(&hosts, 0, big).await));
    table.row("an error", equal(call(&hosts, 2, "one.fail(message='no')").await, json!("tool_failed")));
    let endless = hosts.client(1).run_code("python", "from mcp_tools import one\none.slow(ms=600_000)").await;
    table.row("a call in the background", equal(endless["status"].clone(), json!("running")));
    let ended = hosts.lockhouses[1].run(&["runs", "end", "--all"]);
    table.row("its run is ended at h1", equal(ended.status, Some(0)));
    wait_until("the server is told", async || {
        (call(&hosts, 0, "one.count()['slow (cancelled)']").await == json!(1)).then_some(())
    })
    .await;

    // The owner ends: another host starts the server, which has forgotten everything.
    hosts.daemons[0].take().expect("it runs").terminate().await;
    wait_until("h1 has the server again", async || {
        (call(&hosts, 1, "one.add(a=1, b=2)['sum']").await == json!(3)).then_some(())
    })
    .await;
    wait_until("h2 uses the process of h1", async || {
        let (one, two) =
            (call(&hosts, 1, "one.count()['add']").await, call(&hosts, 2, "one.count()['add']").await);
        (one == two && one.is_number()).then_some(())
    })
    .await;
    table.row("h2 calls it", equal(call(&hosts, 2, "one.add(a=1, b=2)['sum']").await, json!(3)));
    let counts = (call(&hosts, 1, "one.count()['add']").await, call(&hosts, 2, "one.count()['add']").await);
    table.row("both count the same", ensure(counts.0 == counts.1 && counts.0.as_u64() >= Some(2), counts));
    table.finish();
}
