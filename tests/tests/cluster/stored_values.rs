//! Copies of stored values in S3: values and answers that survive their host, for their owner alone.

use lockhouse_tests::{HttpClient, Lockhouse, Table, ensure, equal, is_full, wait_until};
use serde_json::json;

use super::hosts::{HOSTS, Hosts, LONG, stored_handle};
use super::nats::Nats;
use super::s3::{ACCESS_KEY, S3, SECRET_KEY};
use super::{CONFIG, message};

/// The value of `LONG`.
fn long() -> String {
    "x".repeat(50_000) + "end"
}

fn with_secrets(lockhouse: Lockhouse) -> Lockhouse {
    lockhouse.file("credentials/shared", "0123456789abcdef0123456789abcdef-a-key-of-hosts");
    lockhouse.file("credentials/access", format!("{ACCESS_KEY}\n"));
    lockhouse.file("credentials/secret", format!("{SECRET_KEY}\n"));
    lockhouse
}

/// Hosts of which each has room for four large values.
fn config(s3: &S3) -> String {
    format!(
        "shared_key = \"${{cred:shared}}\"\n[cluster.values]\nendpoint = \"{}\"\nbucket = \"values\"\naccess_key = \"${{cred:access}}\"\n\
         secret_key = \"${{cred:secret}}\"\n{CONFIG}[results]\nkeep_mib = 1\n",
        s3.url()
    )
}

/// Returns a whole value, read in parts, or why it is not there.
async fn whole(client: &HttpClient, handle: &str) -> Result<String, String> {
    let mut text = String::new();
    loop {
        let part = client.call("get_result", json!({"handle": handle, "offset": text.chars().count()})).await;
        match part["value"].as_str() {
            Some(value) => text.push_str(value),
            None => return Err(message(&part).to_owned()),
        }
        if part["next_offset"].is_null() {
            return Ok(text);
        }
    }
}

/// Starts a host again after it was killed, and waits until another one knows that its earlier life has ended.
async fn restart(hosts: &mut Hosts, number: usize, lost: &str, other: usize, expected: &str) {
    hosts.start_host(number).await;
    wait_until("the earlier life of the host has ended", async || {
        let answer = hosts.other_client(other).call("get_result", json!({"handle": lost})).await;
        message(&answer).contains(expected).then_some(())
    })
    .await;
}

async fn a_host_ends(table: &mut Table, hosts: &mut Hosts, s3: &S3) {
    let before = s3.count().await;
    let value = hosts.stored_value(1).await;
    let begun = hosts.client(1).run_code("python", "import time\ntime.sleep(1.5)\n[4, 'two']").await;
    let run = begun["handle"].as_str().unwrap_or_default().to_owned();
    let ended = hosts.client(1).call("get_result", json!({"handle": run, "wait_s": 60})).await;
    table.row("control: the run has ended", equal(ended["value"].clone(), json!([4, "two"])));
    s3.has(before + 2).await;
    for content in s3.contents() {
        let is_readable = [b"xxxxxxxx".as_slice(), b"python", b"stdout", b"owner", value.as_bytes()]
            .iter()
            .any(|text| content.windows(text.len()).any(|part| part == *text));
        table.row("a copy is not readable", equal(is_readable, false));
    }
    hosts.daemons[1].take().expect("it runs").kill().await;
    table.row("h0 at once: the value", equal(whole(&hosts.client(0), &value).await, Ok(long())));
    let other = whole(&hosts.other_client(0), &value).await;
    let refused = other.as_ref().err().is_some_and(|words| words.contains("cannot be reached"));
    table.row("h0 at once: the value, by another client", ensure(refused, other));

    restart(hosts, 1, &value, 2, "no host of the cluster has").await;
    for host in [2, 1] {
        let client = hosts.client(host);
        let answer = client.call("get_result", json!({"handle": run})).await;
        table.row(format!("h{host}: the answer of a run"), equal(answer["value"].clone(), json!([4, "two"])));
        table.row(format!("h{host}: the value"), equal(whole(&client, &value).await, Ok(long())));
        // The copy is in the memory of the host by now.
        for (what, handle) in [("the value", &value), ("the answer", &run)] {
            let other = whole(&hosts.other_client(host), handle).await;
            let is_lost =
                other.as_ref().err().is_some_and(|words| words.contains("no host of the cluster has"));
            table.row(format!("h{host}: {what}, by another client"), ensure(is_lost, other));
        }
    }
}

/// Stores more values at a host than it has room for. Returns their handles.
async fn large_values(hosts: &Hosts, host: usize) -> Vec<String> {
    let mut handles = Vec::new();
    for number in 0..6 {
        let answer = hosts.client(host).run_code("python", &format!("'{number}' * 250_000")).await;
        handles.push(stored_handle(&answer));
    }
    handles
}

async fn a_value_is_evicted(table: &mut Table, hosts: &Hosts, s3: &S3) {
    let before = s3.count().await;
    let handles = large_values(hosts, 0).await;
    s3.has(before + 6).await;
    // At another host first: the host of the value reads the copy for it.
    for host in [1, 0, 2] {
        let read = whole(&hosts.client(host), &handles[0]).await;
        table.row(
            format!("h{host}: it is read"),
            ensure(read == Ok("0".repeat(250_000)), read.map(|text| text.len())),
        );
        let other = whole(&hosts.other_client(host), &handles[0]).await;
        let is_missing = other.as_ref().err().is_some_and(|words| words.starts_with("there is no result"));
        table.row(format!("h{host}: by another client"), ensure(is_missing, other));
    }
}

async fn the_server_is_away(table: &mut Table, hosts: &mut Hosts, s3: &mut S3) {
    s3.stop();
    let value = hosts.stored_value(1).await;
    let log = hosts.daemons[1].as_ref().expect("it runs").wait_for_log("values are not copied to S3").await;
    table.row("no key is in the log", ensure(!log.contains(SECRET_KEY) && !log.contains(ACCESS_KEY), &log));
    for host in 0..HOSTS {
        let read = whole(&hosts.client(host), &value).await;
        table.row(format!("without S3, h{host}: a value of h1"), equal(read, Ok(long())));
    }
    // The control of the test above.
    let handles = large_values(hosts, 2).await;
    let expected = |handle: &str| {
        format!(
            "the copy of {handle} cannot be read now: the S3 server cannot be reached. Send the request again"
        )
    };
    let evicted = whole(&hosts.client(2), &handles[0]).await;
    table.row("without S3: an evicted value", equal(evicted, Err(expected(&handles[0]))));
    let read = whole(&hosts.client(2), &handles[5]).await;
    table.row("without S3: one that is not evicted", equal(read, Ok("5".repeat(250_000))));
    hosts.daemons[1].take().expect("it runs").kill().await;
    restart(hosts, 1, &value, 2, "cannot be read now").await;
    let expected = expected(&value);
    table.row("without S3 and h1", equal(whole(&hosts.client(0), &value).await, Err(expected)));
}

async fn values_survive(nats: Nats, mut s3: S3) {
    let mut hosts = Hosts::start(&nats, &config(&s3), with_secrets).await;
    let mut table = Table::new("stored values of three hosts, copied to S3");
    a_host_ends(&mut table, &mut hosts, &s3).await;
    a_value_is_evicted(&mut table, &hosts, &s3).await;
    the_server_is_away(&mut table, &mut hosts, &mut s3).await;
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn values_and_answers_survive_their_host_for_their_owner() {
    let (Some(nats), Some(s3)) = (Nats::start().await, S3::start().await) else { return };
    values_survive(nats, s3).await;
}

/// The same with another server, in the full form.
#[tokio::test(flavor = "multi_thread")]
async fn values_survive_with_a_server_like_that_of_aws() {
    if !is_full() {
        return;
    }
    let (Some(nats), Some(s3)) = (Nats::start().await, S3::start_moto().await) else { return };
    values_survive(nats, s3).await;
}

/// The control: without `[cluster.values]`.
#[tokio::test(flavor = "multi_thread")]
async fn without_copies_values_end_with_their_host() {
    let Some(nats) = Nats::start().await else { return };
    let mut hosts = Hosts::start(&nats, CONFIG, |host| host).await;
    let mut table = Table::new("a value that is not copied");
    let answer = hosts.client(1).run_code("python", LONG).await;
    let value = stored_handle(&answer);
    table.row("control: it is read", equal(whole(&hosts.client(0), &value).await, Ok(long())));
    hosts.daemons[1].take().expect("it runs").kill().await;
    restart(&mut hosts, 1, &value, 2, "no host of the cluster has").await;
    let read = whole(&hosts.client(0), &value).await;
    let is_lost = read.as_ref().err().is_some_and(|words| words.starts_with("no host of the cluster has"));
    table.row("it is lost", ensure(is_lost, read));
    table.finish();
}
