//! Tests of several hosts as one service: requests reach any host, and the host that has what they name serves them.

mod account;
mod audit_copies;
mod behind_balancer;
mod failures;
mod hostile_host;
mod hosts;
mod leaving;
mod mcp_sessions;
mod nats;
mod questions;
mod s3;
mod shared_items;
mod single_server;
mod stored_values;

use lockhouse_tests::{HttpClient, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use hosts::{HOSTS, Hosts, LONG, stored_handle};
use nats::Nats;

const CONFIG: &str = "[runs]\nwait_seconds = 1.0\n";

/// Returns what a program got as the text of an error.
fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

async fn values_and_files(table: &mut Table, hosts: &Hosts) {
    let mut values = Vec::new();
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for owner in 0..HOSTS {
        let answer = hosts.client(owner).run_code("python", LONG).await;
        let handle = stored_handle(&answer);
        let file = hosts.client(owner).run_code("python", "open('/out/a.csv', 'w').write('1,2')\n1").await;
        let uri = format!("lockhouse://result/{}", file["files"][0]["handle"].as_str().unwrap_or_default());
        for host in 0..HOSTS {
            let arguments = json!({"handle": handle, "offset": 49_990});
            values.push(hosts.client(host).call("get_result", arguments).await);
            let read = hosts.client(host).request("resources/read", json!({"uri": uri})).await.answer();
            texts.push(read["result"]["contents"][0]["text"].clone());
        }
        files.push(uri);
    }
    let parts: Vec<&Value> = values.iter().map(|part| &part["value"]).collect();
    table.row("each value from each host", equal(parts, vec![&json!("xxxxxxxxxxend"); HOSTS * HOSTS]));
    table.row("each file from each host", equal(texts, vec![json!("1,2"); HOSTS * HOSTS]));
}

async fn sessions(table: &mut Table, hosts: &Hosts) {
    let mut found = Vec::new();
    for owner in 0..HOSTS {
        let session = format!("s{owner}");
        hosts.run_in(owner, &session, &format!("x = ['{session}']")).await;
        for host in 0..HOSTS {
            hosts.run_in(host, &session, &format!("x.append({host})")).await;
        }
        found.push(hosts.run_in((owner + 1) % HOSTS, &session, "x").await["value"].clone());
    }
    let expected: Vec<Value> = (0..HOSTS).map(|owner| json!([format!("s{owner}"), 0, 1, 2])).collect();
    table.row("each session from each host", equal(found, expected));
}

async fn background_runs(table: &mut Table, hosts: &Hosts) {
    let code = "import time\ntime.sleep(2.5)\n42";
    let begun = hosts.client(0).run_code("python", code).await;
    table.row("a run in the background", equal(begun["status"].clone(), json!("running")));
    let ask = json!({"handle": begun["handle"], "wait_s": 60});
    let other = hosts.client(1).call("get_result", ask.clone()).await;
    table.row("its result from another host", equal(other["value"].clone(), json!(42)));
    let stored = hosts.client(2).call("get_result", ask).await;
    table.row("its stored result from a third host", equal(stored["value"].clone(), json!(42)));

    let endless = hosts.client(0).run_code("python", "import time\nwhile True: time.sleep(0.01)").await;
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let client = hosts.client(2).with_capabilities(tasks.clone());
    let task = json!({"taskId": endless["handle"]});
    let state = client.request("tasks/get", task.clone()).await.answer();
    table.row("a task from another host", equal(state["result"]["status"].clone(), json!("working")));
    client.request("tasks/cancel", task.clone()).await;
    let able = |host: usize| hosts.client(host).with_capabilities(tasks.clone());
    let cancelled = wait_until("the task is cancelled", async || {
        let state = able(1).request("tasks/get", task.clone()).await.answer();
        let status = state["result"]["status"].clone();
        (status != "working").then_some(status)
    });
    table.row("it is cancelled from another host", equal(cancelled.await, json!("cancelled")));
}

/// A question of a run is answered at another host than the one that asked it.
async fn questions(table: &mut Table, hosts: &Hosts) {
    let able = |host: usize| hosts.client(host).with_capabilities(json!({"elicitation": {"form": {}}}));
    let arguments = json!({"language": "python", "code": "from mcp_tools import call_tool\ncall_tool('fixture.add', {'a': 1, 'b': 2})['sum']"});
    let asked =
        able(0).post(&able(0).calling("run_code", arguments.clone())).await.answer()["result"].clone();
    let answered = |client: &HttpClient, code: &Value| {
        let mut message = client.calling("run_code", code.clone());
        message["params"]["requestState"] = asked["requestState"].clone();
        let keys = asked["inputRequests"].as_object().into_iter().flatten();
        let responses = keys.map(|(key, _)| (key.clone(), json!({"action": "accept", "content": {}})));
        message["params"]["inputResponses"] = responses.collect::<serde_json::Map<_, _>>().into();
        message
    };
    let other = able(1);
    let changed = json!({"language": "python", "code": "'other'"});
    let refused =
        other.post(&answered(&other, &changed)).await.answer()["result"]["structuredContent"].clone();
    table.row(
        "another program with its state",
        ensure(message(&refused).contains("no request waits"), &refused),
    );
    let result =
        other.post(&answered(&other, &arguments)).await.answer()["result"]["structuredContent"].clone();
    table.row("a question answered at another host", equal(result["value"].clone(), json!(3)));
    let third = able(2);
    let late =
        third.post(&answered(&third, &arguments)).await.answer()["result"]["structuredContent"].clone();
    let words = "The program has run up to its question, and perhaps further: check its effects before you run it again";
    table.row("answered once more", ensure(message(&late).ends_with(words), &late));
}

async fn mcp_sessions(table: &mut Table, hosts: &Hosts) {
    let (session, reply) = hosts.client(0).initialize("2025-11-25").await;
    table.row("initialize of 2025-11-25", equal(reply.status, 200));
    let mut statuses = Vec::new();
    for host in (0..HOSTS).chain(0..HOSTS) {
        let client = session.clone().at(&hosts.url(host));
        statuses.push(client.request("tools/list", json!({})).await.status);
    }
    table.row("requests of its session at each host", equal(statuses, vec![200; 2 * HOSTS]));
    // One that ends at a host has ended at all.
    let ended = session.clone().at(&hosts.url(1)).end_session().await;
    let mut statuses = vec![ended];
    for host in 0..HOSTS {
        let client = session.clone().at(&hosts.url(host));
        statuses.push(client.request("tools/list", json!({})).await.status);
    }
    table.row("a session that ends at another host", equal(statuses, vec![202, 404, 404, 404]));
    let stranger = "f".repeat(64);
    let client = hosts.client(1).in_session(&stranger, "2025-11-25");
    table
        .row("control: an unknown session", equal(client.request("tools/list", json!({})).await.status, 404));
}

fn asks_for_add(lockhouse: Lockhouse) -> Lockhouse {
    lockhouse.policy("version = 1\n[servers.fixture]\nallow = [\"*\"]\nask = [\"add\"]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_may_reach_any_host() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, asks_for_add).await;
    let mut table = Table::new("three hosts, requests at any of them");
    values_and_files(&mut table, &hosts).await;
    sessions(&mut table, &hosts).await;
    background_runs(&mut table, &hosts).await;
    questions(&mut table, &hosts).await;
    mcp_sessions(&mut table, &hosts).await;
    table.finish();
}

/// The rates of the configuration and of the policy hold for all hosts together, but for one block of each host.
#[tokio::test(flavor = "multi_thread")]
async fn rates_hold_for_all_hosts_together() {
    const LIMIT: usize = 24;
    let Some(nats) = Nats::start().await else { return };
    let config = format!("{CONFIG}[clients]\nruns = \"1000/h\"\n");
    let policy = format!("version = 1\n[servers.fixture]\nallow = [\"*\"]\nrate = \"{LIMIT}/h\"\n");
    let hosts = Hosts::start(&nats, &config, |lockhouse| lockhouse.policy(&policy)).await;
    let mut table = Table::new("rates of three hosts");
    let code = "from mcp_tools import call_tool, ToolError\nmade = 0\nfor _ in range(20):\n    try:\n        call_tool('fixture.add', {'a': 1, 'b': 2})\n        made += 1\n    except ToolError as e: code = e.code\nmade, code";
    let mut made = 0;
    for round in 0..2 * HOSTS {
        let answer = hosts.client(round % HOSTS).run_code("python", code).await;
        made += usize::try_from(answer["value"][0].as_u64().unwrap_or_default()).expect("a count");
        table.row(
            format!("round {round}: further calls"),
            equal(answer["value"][1].clone(), json!("rate_limited")),
        );
    }
    // A block has one unit with this limit and three hosts.
    table.row("calls that were made", ensure((LIMIT..=LIMIT + HOSTS).contains(&made), made));
    table.finish();
}

/// Returns which life of which host made an execution.
fn tag(answer: &Value) -> String {
    let execution = answer["execution"].as_str().unwrap_or_else(|| panic!("no execution: {answer}"));
    execution[execution.len() - 10..].to_owned()
}

/// A run that finds no free worker begins at once on a host that has one.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_worker_begins_on_another_host() {
    let Some(nats) = Nats::start().await else { return };
    let config = format!("{CONFIG}[pool]\nrunning = 1\n");
    let hosts = Hosts::start(&nats, &config, |lockhouse| lockhouse).await;
    let mut table = Table::new("three hosts with one worker each");
    let mut own = Vec::new();
    for host in 0..HOSTS {
        own.push(tag(&hosts.client(host).run_code("python", "1").await));
    }
    wait_until("the leases say that all workers are free", async || {
        let listing = hosts.lockhouses[0].run(&["cluster", "status", "--json"]).stdout;
        let listing: Value = serde_json::from_str(&listing).ok()?;
        listing["hosts"].as_array()?.iter().all(|host| host["free"] == 1).then_some(())
    })
    .await;
    let endless = "print('begun')\nimport time\nwhile True: time.sleep(0.01)";
    let mut running = Vec::new();
    for number in 0..HOSTS {
        let answer = hosts.client(0).run_code("python", endless).await;
        let view = hosts.client(0).call("get_result", json!({"handle": answer["handle"], "wait_s": 0})).await;
        let begun = view["progress"]["stdout_tail"].as_str().unwrap_or_default().contains("begun");
        table.row(format!("run {number} has begun"), ensure(begun, &view));
        running.push(tag(&answer));
    }
    table.row("the first one on its own host", equal(&running[0], &own[0]));
    running.sort();
    own.sort();
    table.row("one on each host", equal(running, own));
    let waits = hosts.client(0).run_code("python", "'done'").await;
    table.row("a further one waits", equal(waits["status"].clone(), json!("running")));
    // Another host ends a run, and the further one gets the worker.
    let ended = hosts.lockhouses[0].run(&["runs", "end", "--all"]);
    table.row("a run is ended", ensure(ended.status == Some(0), &ended));
    table.finish();
}

/// Commands on one host list what is active on all. Each ends only what is its own.
#[tokio::test(flavor = "multi_thread")]
async fn runs_and_sessions_of_all_hosts_are_listed() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("lists on h0");
    let mut executions = Vec::new();
    for host in 0..HOSTS {
        let begun = hosts.client(host).run_code("python", "import time\nwhile True: time.sleep(0.01)").await;
        executions.push(begun["execution"].clone());
        hosts.run_in(host, &format!("s{host}"), "1").await;
    }
    let listed = |command: &str, key: &str| {
        let output = hosts.lockhouses[0].run(&[command, "list", "--json"]).stdout;
        let listed: Value = serde_json::from_str(&output).unwrap_or_default();
        let row = |one: &Value| json!([one[key], one["host"]]);
        listed.as_array().into_iter().flatten().map(row).collect::<Vec<_>>()
    };
    let hosts_of = [Value::Null, json!("h1"), json!("h2")];
    let runs: Vec<Value> = executions.iter().zip(&hosts_of).map(|(run, host)| json!([run, host])).collect();
    table.row("the runs of all hosts", equal(listed("runs", "execution"), runs));
    let sessions = hosts_of.iter().enumerate().map(|(number, host)| json!([format!("s{number}"), host]));
    table.row("the sessions of all hosts", equal(listed("sessions", "name"), sessions.collect()));
    let foreign = executions[1].as_str().unwrap_or_default();
    let ended = hosts.lockhouses[0].run(&["runs", "end", foreign]);
    table.row("the run of another host is not ended", ensure(ended.status != Some(0), &ended));
    let ended = hosts.lockhouses[1].run(&["runs", "end", foreign]);
    table.row("control: its own host ends it", ensure(ended.status == Some(0), &ended));
    table.finish();
}

/// A token that is revoked on one host is refused by all, and the runs of its client end.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_by_each_host() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("a token is revoked on one host");
    let endless = hosts.client(0).run_code("python", "import time\nwhile True: time.sleep(0.01)").await;
    table.row("control: a run", equal(endless["status"].clone(), json!("running")));
    let revoked = hosts.lockhouses[2].run(&["token", "revoke", "desk"]);
    table.row("it is revoked on h2", equal(revoked.status, Some(0)));
    for host in 0..HOSTS {
        let client = hosts.client(host);
        let message = client.calling("run_code", json!({"language": "python", "code": "1"}));
        wait_until("the token is refused", async || {
            (client.post(&message).await.status == 401).then_some(())
        })
        .await;
        table.row(format!("h{host} refuses it"), Ok(()));
    }
    wait_until("the run ends", async || {
        let runs = hosts.lockhouses[0].run(&["runs", "list", "--json"]);
        (runs.stdout.trim() == "[]").then_some(())
    })
    .await;
    table.finish();
}

/// A client that knows the ids and names of another one gets nothing of it, at its own host and at others.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_nothing_of_another_one_at_any_host() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("what is another client's, of h1");
    let value = hosts.stored_value(1).await;
    let file = hosts.client(1).run_code("python", "open('/out/a.csv', 'w').write('1,2')\n1").await;
    let uri = format!("lockhouse://result/{}", file["files"][0]["handle"].as_str().unwrap_or_default());
    let endless = hosts.client(1).run_code("python", "import time\nwhile True: time.sleep(0.01)").await;
    hosts.run_in(1, "s", "x = 'SECRET'").await;
    let session = hosts.client(1).initialize("2025-11-25").await.0;
    let id = session.session_id().expect("a session").to_owned();
    for host in 0..HOSTS {
        let other = hosts.other_client(host);
        let part = other.call("get_result", json!({"handle": value})).await;
        table.row(
            format!("h{host}: a value"),
            ensure(message(&part).starts_with("there is no result"), &part),
        );
        let run = other.call("get_result", json!({"handle": endless["handle"], "wait_s": 0})).await;
        table.row(format!("h{host}: a run"), ensure(message(&run).starts_with("there is no result"), &run));
        let read = other.request("resources/read", json!({"uri": uri})).await.answer();
        let words = read["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("h{host}: a file"), ensure(words.contains("there is no file"), &read));
        let arguments = json!({"language": "python", "code": "x", "session": "s"});
        let run = other.call("run_code", arguments).await;
        table.row(
            format!("h{host}: a session of this name"),
            ensure(message(&run).contains("'x' is not defined"), &run),
        );
        let stranger = other.in_session(&id, "2025-11-25");
        let status = stranger.request("tools/list", json!({})).await.status;
        table.row(format!("h{host}: an MCP session"), equal(status, 404));
        let own = hosts.run_in(host, "s", "x").await;
        table.row(format!("h{host}: control: its own session"), equal(own["value"].clone(), json!("SECRET")));
    }
    table.finish();
}
