//! Tests that a front which floods, stalls or does not read costs the shared engine a bounded amount of memory, and harms
//! no other client.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use lockhouse_tests::{Session, Table, ensure, equal};
use serde_json::{Value, json};

use super::raw_peer::{RawPeer, frame, frame_of_kind, request};
use super::{add, lockhouse, pid_of, socket, the_engine};

/// Maximum resident memory of the engine at any time, in MiB: it needs some 50 in a debug build, and may keep 32 of queued and
/// 256 of waiting messages for a client.
const MEMORY_MIB_MAX: u64 = 600;
/// Number of requests for a file of 7 MB: together 4 GB.
const READS: u64 = 600;

/// Returns the maximum resident memory of a process so far, in MiB.
fn peak_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn is_small(pid: u32) -> Result<(), String> {
    let peak = peak_mib(pid);
    println!("the engine has needed {peak} MiB");
    ensure(peak < MEMORY_MIB_MAX, format!("{peak} MiB"))
}

/// Whether a client gets correct answers.
async fn is_served(client: &Session) -> Result<(), String> {
    for _ in 0..3 {
        equal(add(client).await, json!(42))?;
    }
    Ok(())
}

fn run_code() -> Value {
    json!({"RunCode": {
        "language": "python", "code": "", "timeout": null, "servers": null, "session": null, "for_program": false,
        "claims": {},
    }})
}

/// Tests a front that requests many large results and does not read them. When it reads, each request has one response.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_does_not_read_is_bounded_and_loses_no_response() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let pid = pid_of(&the_engine(&lockhouse));
    let mut front = RawPeer::connect(&socket(&lockhouse));
    front.send(&request(1, &run_code(), Some("open('/out/a.bin', 'wb').write(b'x' * 7_000_000)\n1")));
    let response = front.response(1);
    let handle = response["Run"]["files"][0]["handle"].clone();
    assert!(handle.is_string(), "{response}");
    let mut table = Table::new("a front that does not read");
    for id in 0..READS {
        front.send(&request(100 + id, &json!({"ReadFile": {"handle": handle}}), None));
    }
    table.row("the client beside it", is_served(&client).await);
    tokio::time::sleep(Duration::from_secs(3)).await;
    table.row("the client beside it, later", is_served(&client).await);
    table.row("the memory of the engine", is_small(pid));
    let mut responses = BTreeMap::new();
    while responses.len() < READS as usize {
        let (id, parts) = front.read().expect("a response");
        let message: Value = serde_json::from_slice(&parts[0]).unwrap();
        let response = &message["Response"][1];
        let is_whole = response["File"].is_object() && parts[1].len() == 7_000_000;
        assert!(is_whole || response["Unavailable"].is_string(), "{response}");
        assert_eq!(responses.insert(id, is_whole), None, "one response each");
    }
    let whole = responses.values().filter(|is_whole| **is_whole).count();
    table.row("files that it gets", ensure(whole >= 30, whole));
    front.send(&request(9_000, &json!({"ReadFile": {"handle": handle}}), None));
    table.row("and one more", ensure(front.response(9_000)["File"].is_object(), "no file"));
    table.row("the memory of the engine at the end", is_small(pid));
    table.finish();
}

/// Sends bytes again and again, at most `count` times. Returns whether the engine stopped to read, or closed the connection.
fn flood(front: &mut RawPeer, bytes: &[u8], count: usize) -> bool {
    front.stream.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
    (0..count).any(|_| front.stream.write_all(bytes).is_err())
}

fn health(exchange: u64) -> Vec<u8> {
    request(exchange, &json!("Health"), None)
}

/// Tests fronts that flood an engine with messages.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_floods_is_bounded_and_harms_nobody_else() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let (pid, socket) = (pid_of(&the_engine(&lockhouse)), socket(&lockhouse));
    let connect = || RawPeer::connect(&socket);
    let mut table = Table::new("fronts that flood");
    let mut control = connect();
    control.send(&health(1));
    let answer = control.response(1);
    table.row("control: a front that reads", ensure(answer["Json"].is_object(), &answer));

    let follow = request(1, &json!("FollowChanges"), None);
    let floods = [
        ("credits", frame(1, r#"{"Credit":[1,4294967295]}"#)),
        ("inputs", frame(1, r#"{"Input":[1,"View"]}"#)),
        ("inputs for no request", frame(9, r#"{"Input":[9,"Cancel"]}"#)),
        ("spans", frame(0, r#"{"EndSpan":[7,"Ok"]}"#)),
        ("pings", frame_of_kind(3, 0, b"")),
    ];
    for (what, message) in floods {
        let mut front = connect();
        front.send(&follow);
        let is_stopped = flood(&mut front, &message.repeat(100), 300);
        table.row(format!("{what}: the client beside it"), is_served(&client).await);
        if !is_stopped {
            front.send(&health(2));
            let answer = front.response(2);
            table.row(format!("{what}: a request after it"), ensure(answer["Json"].is_object(), &answer));
        }
        table.row(format!("{what}: the memory"), is_small(pid));
    }

    let mut unread = connect();
    let requests: Vec<u8> = (1..=100).flat_map(health).collect();
    table.row(
        "requests without reading: stopped",
        ensure(flood(&mut unread, &requests, 2_000), "all were read"),
    );
    table.row("requests without reading: the client beside it", is_served(&client).await);
    table.row("requests without reading: the memory", is_small(pid));

    let mut same = connect();
    same.send(&follow.repeat(2_000));
    let refused = same.response(1);
    table.row("one number for many requests", ensure(refused.to_string().contains("is open"), &refused));
    let mut many = connect();
    let requests = (1..=1_100).flat_map(|id| request(id, &json!("FollowChanges"), None));
    many.send(&requests.collect::<Vec<_>>());
    let refused = many.response(1_100);
    table.row("too many open requests", ensure(refused.to_string().contains("too many"), &refused));

    let values = "[],".repeat(9_000_000);
    let answer = format!(r#"{{"Input":[1,{{"Answer":["q",{{"Ok":{{"Accept":[{values}0]}}}}]}}]}}"#);
    let mut large = connect();
    large.send(&follow);
    for piece in answer.as_bytes().chunks(1_000_000) {
        large.send(&frame_of_kind(0, 1, piece));
    }
    large.send(&frame_of_kind(2, 1, b""));
    let refused = large.response(1);
    table.row(
        "an answer with millions of values",
        ensure(refused.to_string().contains("too many values"), &refused),
    );
    table.row("its memory", is_small(pid));
    large.send(&health(2));
    table.row("a request after it", ensure(large.response(2)["Json"].is_object(), "no answer"));

    let mut incomplete = connect();
    let parts = (1..=3_000).flat_map(|id| frame_of_kind(1, id, b"x"));
    let _ = incomplete.stream.write_all(&parts.collect::<Vec<_>>());
    let is_closed = incomplete.is_closed_within(Duration::from_secs(10));
    table.row("incomplete messages end the connection", ensure(is_closed, "it is open"));

    let mut half = connect();
    half.send(&[0, 0, 1, 0, 2, 0, 0]);
    table.row("half a frame: the client beside it", is_served(&client).await);
    control.send(&health(2));
    table.row("the first front at the end", ensure(control.response(2)["Json"].is_object(), "no answer"));
    table.row("the memory of the engine at the end", is_small(pid));
    table.finish();
}
