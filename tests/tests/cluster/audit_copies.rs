//! Copies of the audit logs of all hosts: one command verifies them, and no host can change them.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::{self, kv};
use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, wait_until};
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

/// Waits until the copies have all records of all logs, and returns the verification.
async fn complete(nats: &Nats, hosts: &Hosts, name: &str) -> (Option<i32>, Value) {
    let mut number = 0;
    wait_until("the copies are complete", async || {
        number += 1;
        let output = verified(nats, hosts, &format!("{name}-{number}"), &[]);
        let found: Value = serde_json::from_str(&output.stdout).ok()?;
        let logs = found["logs"].as_array()?;
        let own = |host: usize| {
            let own = hosts.lockhouses[host].run(&["audit", "verify", "--json"]);
            serde_json::from_str::<Value>(&own.stdout).unwrap_or_default()["records"].clone()
        };
        let is_complete = logs.iter().all(|log| {
            let host = NAMES.iter().position(|name| log["host"] == *name);
            host.is_some_and(|host| own(host) == log["records"])
        });
        is_complete.then_some((output.status, found.clone()))
    })
    .await
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
    let config = format!(
        "nkey = \"${{file:{}/HOST.nkey}}\"\nnats_ca = \"{}\"\naudit_copies = true\n",
        nats.path("account").display(),
        nats.path("nats.pem").display()
    );
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
    let (status, found) = complete(&nats, &hosts, "first").await;
    table.row("they are verified", ensure(status == Some(0), &found));
    table.row("each host", equal(found["logs"].as_array().map(Vec::len), Some(HOSTS)));
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

    // A host that removes what it has recorded.
    hosts.daemons[1].take().expect("it runs").terminate().await;
    let segments = closed_segments(&hosts.lockhouses[1]);
    let text = std::fs::read_to_string(&segments[0]).expect("a segment");
    let first = text.lines().next().expect("a line").len() + 1;
    std::fs::write(&segments[0], &text[..first]).expect("it is truncated");
    hosts.start_host(1).await;
    hosts.daemons[1].as_ref().expect("it runs").wait_for_log("is shorter than its copy").await;
    let (status, found) = complete_of_others(&nats, &hosts).await;
    table.row("the copies still have it", ensure(status == Some(0), &found));

    // A segment that was removed before it was copied.
    hosts.daemons[2].take().expect("it runs").terminate().await;
    let path = "config/lockhouse/config.toml";
    let text = std::fs::read_to_string(hosts.lockhouses[2].path(path)).expect("a configuration");
    hosts.lockhouses[2].file(path, text.replace("audit_copies = true", "audit_copies = false"));
    let created = hosts.lockhouses[2].run(&["token", "create", "secret"]);
    table.row("a command on h2", equal(created.status, Some(0)));
    let last = closed_segments(&hosts.lockhouses[2]).pop().expect("a segment");
    std::fs::remove_file(&last).expect("it is removed");
    hosts.lockhouses[2].file(path, text);
    hosts.start_host(2).await;
    let name = last.file_name().expect("a name").to_string_lossy().into_owned();
    let mut number = 0;
    wait_until("the removed segment is found", async || {
        number += 1;
        let output = verified(&nats, &hosts, &format!("removed-{number}"), &[]);
        (output.status == Some(1) && output.stdout.contains(&format!("{name}  removed: it is in the index")))
            .then_some(())
    })
    .await;
    permissions(&nats, &mut table).await;
    table.finish();
}

/// Verifies the copies as they are, without those of a host whose own log is damaged.
async fn complete_of_others(nats: &Nats, hosts: &Hosts) -> (Option<i32>, Value) {
    let output = verified(nats, hosts, "truncated", &[]);
    (output.status, serde_json::from_str(&output.stdout).unwrap_or_default())
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
