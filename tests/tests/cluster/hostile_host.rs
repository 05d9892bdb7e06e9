//! A host that was taken over ends and replaces no other host by writing into NATS, with the permissions of its account or without limits.

use std::time::Duration;

use async_nats::jetstream::{self, kv};
use async_nats::{Client, HeaderMap};
use lockhouse_tests::{Lockhouse, Table, ensure, equal, is_alive, wait_until};
use serde_json::{Value, json};

use super::CONFIG;
use super::account::{NAMES, connect};
use super::hosts::Hosts;
use super::nats::Nats;

/// Publishes to a stream. Returns whether NATS has stored the message.
async fn publish(client: &Client, subject: &str, headers: &[(&str, &str)], payload: &str) -> bool {
    let mut all = HeaderMap::new();
    headers.iter().for_each(|(name, value)| all.insert(*name, *value));
    let context = jetstream::new(client.clone());
    let sent = context.publish_with_headers(subject.to_owned(), all, payload.to_owned().into()).await;
    let Ok(sent) = sent else { return false };
    tokio::time::timeout(Duration::from_secs(2), sent).await.is_ok_and(|stored| stored.is_ok())
}

/// Returns the lease of a host as a text. It is empty if there is none.
async fn lease(client: &Client, host: &str) -> String {
    let store: kv::Store =
        jetstream::new(client.clone()).get_key_value("lockhouse_hosts").await.expect("a bucket");
    let value = store.get(host).await.expect("an answer").unwrap_or_default();
    String::from_utf8(value.to_vec()).unwrap_or_default()
}

/// Returns the tag of the life of a host, which its lease has in its first line.
fn tag(lease: &str) -> Option<String> {
    let record: Value = serde_json::from_str(lease.lines().next()?).ok()?;
    Some(record["tag"].as_str()?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_message_replaces_no_table() {
    let Some(nats) = Nats::start_secured(Lockhouse::new(), &NAMES).await else { return };
    let config = nats.login() + CONFIG;
    let _hosts = Hosts::start(&nats, &config, |lockhouse| lockhouse).await;
    let mut table = Table::new("a message instead of a whole table");
    let one = connect(&nats, "h1", "_INBOX_h1").await.expect("h1");
    let rollups = [("Nats-Rollup", "all"), ("Nats-Rollup", "sub")];
    for subject in ["$KV.lockhouse_hosts.h1", "$KV.lockhouse_revocations.x", "$KV.lockhouse_items.y"] {
        for rollup in rollups {
            let stored = publish(&one, subject, &[rollup], "{}").await;
            table.row(format!("{subject}, {}", rollup.1), ensure(!stored, ()));
        }
    }
    let stored = publish(&one, "$KV.lockhouse_revocations.x", &[], "{}").await;
    table.row("control: without the header", ensure(stored, ()));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_has_not_signed_is_no_lease_of_it() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("leases that their host has not signed");
    hosts.run_in(2, "s", "x = 5").await;
    // Without an account, this client may write everything.
    let client = async_nats::connect(nats.url()).await.expect("a connection");
    let [of_one, of_two] = [lease(&client, "h1").await, lease(&client, "h2").await];
    let (own_tag, subject) = (tag(&of_two), "$KV.lockhouse_hosts.h2");
    let ended = of_two.replace("\"has_left\":false", "\"has_left\":true");
    table.row("control: the lease of h2", ensure(own_tag.is_some() && ended != of_two, &of_two));
    for (what, headers, payload) in [
        ("noise", &[][..], "noise"),
        ("the lease of another host", &[], of_one.as_str()),
        ("that it has left", &[], &ended),
        ("a deletion", &[("KV-Operation", "DEL")], ""),
    ] {
        table.row(
            format!("{what}: control: it is stored"),
            ensure(publish(&client, subject, headers, payload).await, ()),
        );
        let session = hosts.run_in(0, "s", "x").await;
        table.row(format!("{what}: the session of h2, from h0"), equal(session["value"].clone(), json!(5)));
        wait_until("h2 has its lease again", async || {
            (tag(&lease(&client, "h2").await) == own_tag && lease(&client, "h2").await != ended).then_some(())
        })
        .await;
    }
    let running: Vec<bool> = hosts.daemons.iter().flatten().map(|daemon| is_alive(daemon.pid())).collect();
    table.row("all hosts run", equal(running, vec![true; 3]));
    let log = hosts.daemons[0].as_ref().expect("it runs").log();
    let words = "what NATS has as the lease of \"h2\" is not signed by a host, and does not count";
    table.row("the log of h0", ensure(log.contains(words), &log));
    table.finish();
}
