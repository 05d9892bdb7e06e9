//! The account that `lockhouse cluster account` makes: hosts work with it over TLS, and none can do what is another's.

use std::time::Duration;

use async_nats::jetstream::{self, kv};
use async_nats::{Client, ConnectOptions};
use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use super::hosts::{HOSTS, Hosts};
use super::nats::Nats;

pub(super) const NAMES: [&str; HOSTS] = ["h0", "h1", "h2"];

/// Connects as a host.
pub(super) async fn connect(
    nats: &Nats,
    host: &str,
    inbox: &str,
) -> Result<Client, async_nats::ConnectError> {
    let seed = std::fs::read_to_string(nats.path(&format!("account/{host}.nkey"))).expect("a seed");
    let options = ConnectOptions::with_nkey(seed.trim().to_owned()).custom_inbox_prefix(inbox);
    let options = options.add_root_certificates(nats.path("nats.pem")).require_tls(true);
    options.request_timeout(Some(Duration::from_secs(1))).connect(nats.url()).await
}

/// Whether a host can write a key.
async fn can_write(client: &Client, bucket: &str, key: &str) -> bool {
    let store: kv::Store = jetstream::new(client.clone()).get_key_value(bucket).await.expect("a bucket");
    let writing = store.put(key, "x".into());
    tokio::time::timeout(Duration::from_secs(2), writing).await.is_ok_and(|written| written.is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_writes_its_own_lease_only() {
    let Some(nats) = Nats::start_secured(Lockhouse::new(), &NAMES).await else { return };
    let config = nats.login() + "[runs]\nwait_seconds = 1.0\n";
    let hosts = Hosts::start(&nats, &config, |lockhouse| lockhouse).await;
    let mut table = Table::new("permissions in NATS");
    hosts.run_in(0, "s", "x = 5").await;
    table.row(
        "a session from another host",
        equal(hosts.run_in(1, "s", "x").await["value"].clone(), json!(5)),
    );
    let violations: Vec<String> =
        nats.log().lines().filter(|line| line.contains("Violation")).map(str::to_owned).collect();
    table.row("hosts need no further permission", equal(violations, Vec::new()));

    let status = hosts.lockhouses[1].run(&["cluster", "status", "--json"]);
    let listing: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
    let names = listing["hosts"].as_array().into_iter().flatten().map(|host| host["name"].clone());
    table.row(
        "cluster status",
        equal((status.status, names.collect()), (Some(0), NAMES.map(|name| json!(name)).to_vec())),
    );

    let one = connect(&nats, "h1", "_INBOX_h1").await.expect("h1");
    table.row(
        "control: the place of a session",
        ensure(can_write(&one, "lockhouse_sessions", "a.b").await, ()),
    );
    table.row("the lease of another host", ensure(!can_write(&one, "lockhouse_hosts", "h2").await, ()));
    table
        .row("the lease of a host that is none", ensure(!can_write(&one, "lockhouse_hosts", "h9").await, ()));
    let context = jetstream::new(one.clone());
    for bucket in ["lockhouse_hosts", "lockhouse_sessions", "lockhouse_rates"] {
        let stream = context.get_stream(format!("KV_{bucket}")).await.expect("a stream");
        let purged = tokio::time::timeout(Duration::from_secs(2), stream.purge()).await;
        table.row(format!("{bucket}: purge"), ensure(!purged.is_ok_and(|purged| purged.is_ok()), ()));
        let deleted =
            tokio::time::timeout(Duration::from_secs(2), context.delete_stream(format!("KV_{bucket}"))).await;
        table.row(format!("{bucket}: delete"), ensure(!deleted.is_ok_and(|deleted| deleted.is_ok()), ()));
    }
    // The answers to another host, and everything that is published.
    for subject in ["_INBOX_h2.>", "$KV.>", ">"] {
        let before = nats.log().matches("Subscription Violation").count();
        let _subscription = one.subscribe(subject).await.expect("it is sent");
        one.flush().await.expect("it is sent");
        let refused = lockhouse_tests::wait_until("the server answers", async || {
            (nats.log().matches("Subscription Violation").count() > before).then_some(())
        });
        refused.await;
        table.row(format!("subscribe to {subject}"), Ok(()));
    }
    let stranger = ConnectOptions::new().add_root_certificates(nats.path("nats.pem")).require_tls(true);
    table.row("without a key", ensure(stranger.connect(nats.url()).await.is_err(), ()));
    let again = hosts.lockhouses[0].run(&[
        "cluster",
        "account",
        "h0",
        "--out",
        &nats.path("account").display().to_string(),
    ]);
    table.row(
        "an account is not replaced",
        ensure(again.status == Some(2) && again.stderr.contains("nothing was written"), &again),
    );
    let files = Lockhouse::new();
    let (out, configuration) = (files.path("account"), files.path("account/nats-server.conf"));
    let out = out.display().to_string();
    let made = files.run(&["cluster", "account", "h0", "--out", &out]);
    table.row("an account", equal(made.status, Some(0)));
    let seed = std::fs::read_to_string(files.path("account/h0.nkey")).expect("a seed");
    let before = std::fs::read_to_string(&configuration).expect("a configuration");
    let edited = before.replace("port: 4222", "port: 4222\nserver_name: n1");
    std::fs::write(&configuration, edited).expect("it is written");
    std::fs::remove_file(files.path("account/auditor.nkey")).expect("it is kept elsewhere");
    let updated = files.run(&["cluster", "account", "h1", "--update", "--out", &out]);
    let names = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.strip_prefix("      # ")?.to_owned())).collect()
    };
    let after = std::fs::read_to_string(&configuration).expect("a configuration");
    table.row("with a further host: status", ensure(updated.status == Some(0), &updated));
    table.row("with a further host: users", equal(names(&after).join(" "), "h0 h1 auditor".to_owned()));
    table.row("with a further host: what was edited", ensure(after.contains("server_name: n1"), &after));
    let keys = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains("nkey:")).map(str::to_owned).collect()
    };
    let kept = keys(&before).iter().all(|key| keys(&after).contains(key));
    table.row("with a further host: keys of the others", ensure(kept && keys(&after).len() == 3, &after));
    let files_after = ["h0.nkey", "h1.nkey", "auditor.nkey"]
        .map(|name| std::fs::read_to_string(files.path(&format!("account/{name}"))).ok());
    let is_right =
        files_after[0].as_deref() == Some(&seed) && files_after[1].is_some() && files_after[2].is_none();
    table.row("with a further host: seeds", ensure(is_right, ()));
    let twice = files.run(&["cluster", "account", "h1", "--update", "--out", &out]);
    let words = "nats-server.conf: there are two hosts of the name h1";
    table.row("the same host again", ensure(twice.status == Some(2) && twice.stderr.contains(words), &twice));
    let none = Lockhouse::new().run(&["cluster", "status"]);
    table.row("status without a cluster", equal(none.status, Some(7)));
    table.finish();
}
