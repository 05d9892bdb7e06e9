//! Copies of the audit logs of all hosts: one command verifies them, and no host can change them.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::{self, kv};
use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use super::account::{NAMES, connect};
use super::hosts::{HOSTS, Hosts};
use super::nats::Nats;

const BUCKET: &str = "lockhouse_audit";

/// Reads and verifies the copies. `more` are further arguments.
fn verified(nats: &Nats, hosts: &Hosts, folder: &str, more: &[&str]) -> CommandOutput {
    let (seed, ca) = (nats.path("account/auditor.nkey"), nats.path("nats.pem"));
    let (seed, ca, url) = (seed.display().to_string(), ca.display().to_string(), nats.url());
    let out = hosts.lockhouses[0].path(folder).display().to_string();
    let arguments =
        ["cluster", "audit", "--nats", &url, "--nkey", &seed, "--nats-ca", &ca, "--out", &out, "--json"];
    hosts.lockhouses[0].run(&[&arguments, more].concat())
}

/// Ends hosts, which copy the ends of their logs.
async fn end(hosts: &mut Hosts, which: &[usize]) {
    for &host in which {
        let ended = hosts.daemons[host].take().expect("it runs").terminate().await;
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    }
}

/// Returns the number of records of the own log of a host.
fn records(host: &Lockhouse) -> Value {
    host.run(&["audit", "verify", "--json"]).json()["records"].clone()
}

/// Returns the segments of a host that its index lists as closed.
fn closed_segments(host: &Lockhouse) -> Vec<PathBuf> {
    let closed =
        |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("\"event\":\"close\""));
    host.segments().into_iter().filter(closed).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_logs_of_all_hosts_are_verified_from_their_copies() {
    let Some(nats) = Nats::start_secured(Lockhouse::new(), &NAMES).await else { return };
    let config = nats.login() + "audit_copies = true\n";
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    let mut hosts = Hosts::start(&nats, &config, |lockhouse| lockhouse.policy(policy)).await;
    let mut table = Table::new("copies of the audit logs of three hosts");
    let code = "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']";
    for host in 0..HOSTS {
        for _ in 0..3 {
            let answer = hosts.client(host).run_code("python", code).await;
            table.row(format!("a call on h{host}"), equal(answer["value"].clone(), json!(3)));
        }
        // Another process of the host has a segment of its own.
        let created = hosts.lockhouses[host].run(&["token", "create", "further"]);
        table.row(format!("a command on h{host}"), equal(created.status, Some(0)));
    }
    end(&mut hosts, &[0, 1, 2]).await;
    let output = verified(&nats, &hosts, "first", &NAMES);
    let found = output.json();
    table.row("they are verified", ensure(output.status == Some(0), &found));
    let counted = |log: &Value| json!([log["host"], log["records"]]);
    let counted: Vec<Value> = found["logs"].as_array().into_iter().flatten().map(counted).collect();
    let own = NAMES.iter().zip(&hosts.lockhouses).map(|(name, host)| json!([name, records(host)]));
    table.row("all records of each host", equal(counted, own.collect()));
    for log in found["logs"].as_array().into_iter().flatten() {
        let folder = PathBuf::from(log["folder"].as_str().unwrap_or_default());
        let host = NAMES.iter().position(|name| log["host"] == *name).expect("a host");
        for segment in closed_segments(&hosts.lockhouses[host]) {
            let copy = std::fs::read(folder.join(segment.file_name().expect("a name"))).unwrap_or_default();
            table.row(
                "a closed segment, byte by byte",
                equal(copy == std::fs::read(&segment).expect("a segment"), true),
            );
        }
    }
    let folder = found["logs"][1]["folder"].as_str().expect("a folder");
    let mut query = hosts.lockhouses[0].command(&["audit", "query", "--event", "call", "--json"]);
    let calls = CommandOutput::run(query.env("LOGS_DIRECTORY", folder), b"");
    table.row("the calls of another host", equal(calls.stdout.matches("\"tool\":\"add\"").count(), 3));
    let missing = verified(&nats, &hosts, "missing", &["h7"]);
    let answer: Value = serde_json::from_str(&missing.stdout).unwrap_or_default();
    table.row(
        "a host without copies",
        equal((missing.status, answer["missing"].clone()), (Some(1), json!(["h7"]))),
    );
    let again = verified(&nats, &hosts, "missing", &[]);
    table.row(
        "a folder that is not empty",
        ensure(again.status == Some(7) && again.stderr.contains("is not empty"), &again),
    );

    // A host changes what it has copied, and another one removes a segment before it is copied.
    let segments = closed_segments(&hosts.lockhouses[1]);
    let text = std::fs::read_to_string(&segments[0]).expect("a segment");
    let first = text.lines().next().expect("a line").len() + 1;
    std::fs::write(&segments[0], &text[..first]).expect("it is truncated");
    let created = hosts.lockhouses[2].run(&["token", "create", "secret"]);
    table.row("a command on h2", equal(created.status, Some(0)));
    let last = closed_segments(&hosts.lockhouses[2]).pop().expect("a segment");
    std::fs::remove_file(&last).expect("it is removed");
    for host in [1, 2] {
        hosts.start_host(host).await;
    }
    hosts.daemons[1].as_ref().expect("it runs").wait_for_log("is shorter than its copy").await;
    end(&mut hosts, &[1, 2]).await;
    let output = verified(&nats, &hosts, "changed", &NAMES);
    let found = output.json();
    table.row("a fault is found", ensure(output.status == Some(1), &output.stderr));
    let faults = |host: &str| {
        let logs = found["logs"].as_array().into_iter().flatten();
        logs.filter(|log| log["host"] == host).map(|log| log["faults"].to_string()).collect::<String>()
    };
    table.row("the copies of h1 still have what it has removed", equal(faults("h1"), "[]".to_owned()));
    let name = last.file_name().expect("a name").to_string_lossy();
    let words = format!("{name}  removed: it is in the index");
    table.row("the removed segment of h2", ensure(faults("h2").contains(&words), faults("h2")));
    permissions(&nats, &mut table).await;
    table.finish();
}

/// A host can add to its own copies, and do nothing else.
async fn permissions(nats: &Nats, table: &mut Table) {
    let one = connect(nats, "h1", "_INBOX_h1").await.expect("h1");
    let context = jetstream::new(one.clone());
    let store: kv::Store = context.get_key_value(BUCKET).await.expect("a bucket");
    let limit = Duration::from_secs(2);
    let add = async |key: &str| {
        tokio::time::timeout(limit, store.put(key, "x".into())).await.is_ok_and(|put| put.is_ok())
    };
    let own = "h1.0000000000000000.segments.000000000000000-000000000000001";
    table.row("control: a copy of its own", equal(add(own).await, true));
    table.row("replace it", equal(add(own).await, false));
    table.row("a copy of another host", equal(add(&own.replace("h1", "h2")).await, false));
    let read = tokio::time::timeout(limit, store.entry(own)).await;
    table.row("read a copy", ensure(!read.is_ok_and(|read| read.is_ok()), ()));
    let watched = tokio::time::timeout(limit, store.watch_with_history(">")).await;
    table.row("read all copies", ensure(!watched.is_ok_and(|watched| watched.is_ok()), ()));
    let purged = tokio::time::timeout(limit, store.purge(own)).await;
    table.row("purge it", ensure(!purged.is_ok_and(|purged| purged.is_ok()), ()));
    let auditor = connect(nats, "auditor", "_INBOX_auditor").await.expect("the auditor");
    let store: kv::Store = jetstream::new(auditor.clone()).get_key_value(BUCKET).await.expect("a bucket");
    let added = tokio::time::timeout(limit, store.put(own, "x".into())).await;
    table.row("the auditor adds a copy", ensure(!added.is_ok_and(|added| added.is_ok()), ()));
}
