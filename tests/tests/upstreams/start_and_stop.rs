//! Tests of when Lockhouse starts and stops its upstream servers.

use std::time::{Duration, Instant};

use lockhouse_tests::{LANGUAGES, Lockhouse, Session, Table, ensure, equal, fixture_server, wait_until};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::{Scripted, processes};

const ECHO: &str = "'echo', {'text': 'well'}";

#[tokio::test]
async fn a_lazy_server_is_started_by_its_first_call_and_its_cached_tools_are_known_before() {
    let scripted = Scripted::new("start = \"lazy\"", &[], &["echo"]);
    let listed = "from mcp_tools import scripted\nlen(scripted.list_tools())";
    let session = scripted.lockhouse.serve().await;
    let code = "from mcp_tools import list_servers\n[(s['name'], s['state']) for s in list_servers()]";
    let states = Scripted::value(&session, code).await;
    assert_eq!((scripted.count("starts"), states[0][1].as_str()), (0, Some("idle")), "{states}");
    assert_eq!(Scripted::value(&session, listed).await, 1, "nothing is known of it yet, so it is asked");
    assert_eq!(scripted.count("starts"), 1);
    session.close().await;

    let session = scripted.lockhouse.serve().await;
    assert_eq!(Scripted::value(&session, listed).await, 1, "known from the last time");
    assert_eq!(scripted.count("starts"), 1, "and not started for that");
    assert_eq!(Scripted::outcome(&session, ECHO).await, "well");
    assert_eq!(scripted.count("starts"), 2);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_again_when_it_is_needed() {
    let scripted = Scripted::new("start = \"lazy\"\nidle_stop_seconds = 1", &[], &["echo", "sleep"]);
    let session = scripted.lockhouse.serve().await;
    assert_eq!(
        Scripted::outcome(&session, "'sleep', {'seconds': 2}").await,
        "awake",
        "a call in flight is no idleness"
    );
    assert_eq!(Scripted::outcome(&session, ECHO).await, "well");
    assert_eq!(scripted.count("starts"), 1);
    wait_until("it is stopped", async || processes(&session).is_empty().then_some(())).await;
    assert_eq!(scripted.count("starts"), 1, "it stays so until it is needed");
    assert_eq!(Scripted::outcome(&session, ECHO).await, "well");
    assert_eq!(scripted.count("starts"), 2);
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_times_out_and_is_retried() {
    let scripted = Scripted::new("start_timeout_seconds = 3", &["--deaf"], &[]);
    let session = scripted.lockhouse.serve().await;
    let outcome = Scripted::outcome(&session, ECHO).await;
    let mut table = Table::new("a server that hangs");
    table.row(
        "its caller is told",
        ensure(outcome[1].as_str().is_some_and(|told| told.contains("start_timeout_seconds")), outcome),
    );
    let again = wait_until("it is tried again", async || (scripted.count("starts") >= 3).then_some(()));
    let again = tokio::time::timeout(Duration::from_secs(60), again).await;
    table.row("it is tried again", ensure(again.is_ok(), "not in a minute"));
    let running = processes(&session).len();
    table.row("one process at a time", ensure(running <= 1, running));
    table.finish();
}

/// The time limit is doubled after each start that took too long, and the log names the next one, and the key's place.
#[tokio::test]
async fn a_server_that_takes_longer_than_its_time_limit_works_after_some_starts() {
    let command =
        json!({"command": "sh", "args": ["-c", format!("sleep 1.4; exec {}", fixture_server().display())]});
    let slow = "start_timeout_seconds = 1";
    let config = format!("[servers.own]\ncommand = \"sh\"\nargs = {}\n{slow}\n", command["args"]);
    let lockhouse = Lockhouse::new()
        .config(&config)
        .policy("version = 1\n[servers.own]\nallow = [\"*\"]\n[servers.listed]\nallow = [\"*\"]\n");
    let mut listed = command.clone();
    listed["start_timeout_seconds"] = json!(1);
    let servers = lockhouse.file("servers.json", json!({"mcpServers": {"listed": listed}}).to_string());
    let session = Session::connect(
        lockhouse.command(&["serve", "--servers", servers.to_str().unwrap()]),
        Session::latest(),
    )
    .await;
    let states = "from mcp_tools import list_servers\nsorted(s['state'] for s in list_servers())";
    wait_until("they are connected", async || {
        (Scripted::value(&session, states).await == json!(["connected", "connected"])).then_some(())
    })
    .await;
    let log = session.close().await.stderr;
    let mut table = Table::new("servers that start slowly");
    for (server, place) in [("own", "config.toml:1"), ("listed", "servers.json:1")] {
        let of_server = |words: &str| {
            log.lines()
                .filter(|line| line.contains(words) && line.contains(&format!("server={server}")))
                .count()
        };
        table.row(format!("{server}: control: its first start"), equal(of_server("within 1 s"), 1));
        table.row(
            format!("{server}: the next limit"),
            ensure(of_server("the next start may take 2 s") == 1, &log),
        );
        table.row(format!("{server}: where to set it"), ensure(of_server(place) >= 1, &log));
        table.row(format!("{server}: it works"), equal(of_server("connected"), 1));
    }
    table.finish();
}

/// The time after which the slow server in the test is ready. It must be shorter than `SEARCH_WAITS`, so that
/// a search still finds the server's tools.
const SLOW_START: Duration = Duration::from_millis(2500);
/// The maximum time that a search waits for upstream servers that are starting.
const SEARCH_WAITS: Duration = Duration::from_secs(5);
const SEARCHES: [&str; 2] = [
    "from mcp_tools import search_tools\n[row['tool'] for row in search_tools('echo')]",
    "return (await searchTools('echo')).map((row) => row.tool)",
];

#[tokio::test]
async fn the_first_search_waits_for_a_server_that_starts_slowly() {
    let mut table = Table::new("a server that answers 2.5 s after its start");
    for (asked_by, program) in [("an AI client", None), ("Python", Some(0)), ("TypeScript", Some(1))] {
        let scripted = Scripted::new("", &["--waits"], &["echo"]);
        let session = scripted.lockhouse.serve().await;
        let search = async {
            match program {
                None => session.search_tools("echo").await,
                Some(number) => session.run_code(LANGUAGES[number], SEARCHES[number]).await,
            }
        };
        let start = async {
            wait_until("it is started", async || (scripted.count("starts") == 1).then_some(())).await;
            tokio::time::sleep(SLOW_START).await;
            scripted.release();
        };
        let (found, ()) = tokio::join!(search, start);
        let tools = match program {
            None => json!([found["tools"][0]["tool"]]),
            Some(_) => found["value"].clone(),
        };
        table.row(format!("{asked_by}: its tool is found"), ensure(tools == json!(["echo"]), &found));
        let names_it = found.get("unavailable").or(found.get("stderr")).is_some();
        table.row(format!("{asked_by}: nothing is missing"), ensure(!names_it, &found));
    }
    table.finish();
}

#[tokio::test]
async fn a_search_names_the_servers_that_it_did_not_wait_for() {
    let scripted = Scripted::new("", &["--waits"], &["echo"]);
    let session = scripted.lockhouse.serve().await;
    let named = |said: &Value| said.to_string().contains("scripted: still connecting");
    let mut table = Table::new("a server that does not answer");
    let found = session.search_tools("echo").await;
    table.row("an AI client: nothing is found", equal(found["tools"].as_array().map(Vec::len), Some(0)));
    table.row("an AI client: the server is named", ensure(named(&found["unavailable"]), &found));
    // Waiting for the servers again in each of five searches would take 25 s.
    let again = Instant::now();
    for _ in 0..5 {
        let found = session.search_tools("echo").await;
        table.row("again: the server is named", ensure(named(&found["unavailable"]), &found));
    }
    table.row("it is waited for once", ensure(again.elapsed() < SEARCH_WAITS, again.elapsed()));
    for (language, code) in LANGUAGES.into_iter().zip(SEARCHES) {
        let answer = session.run_code(language, code).await;
        table.row(format!("{language}: nothing is found"), ensure(answer["value"] == json!([]), &answer));
        table.row(format!("{language}: the server is named"), ensure(named(&answer["stderr"]), &answer));
    }
    scripted.release();
    session.all_connected().await;
    for (language, code) in LANGUAGES.into_iter().zip(SEARCHES) {
        let answer = session.run_code(language, code).await;
        table.row(format!("{language}: found later"), ensure(answer["value"] == json!(["echo"]), &answer));
        table.row(format!("{language}: and no line is printed"), equal(answer.get("stderr"), None));
    }
    table.finish();
}

#[tokio::test]
async fn a_server_with_an_older_or_unknown_protocol_version_than_the_minimum_is_not_used() {
    let mut table = Table::new("protocol versions of a server and protocol_minimum");
    let refused = "protocol_minimum";
    for (minimum, answered, expected) in [
        ("", "2024-11-05", "well"),
        ("", "1999-01-01", refused),
        ("", "2999-01-01", refused),
        ("any", "1999-01-01", "well"),
        ("2025-06-18", "2025-06-18", "well"),
        ("2025-06-18", "2025-11-25", "well"),
        ("2025-06-18", "2025-03-26", refused),
        ("2026-07-28", "2025-11-25", refused),
    ] {
        let keys = match minimum {
            "" => String::new(),
            minimum => format!("protocol_minimum = \"{minimum}\""),
        };
        let scripted = Scripted::new(&keys, &[&format!("--protocol={answered}")], &["echo"]);
        let session = scripted.lockhouse.serve().await;
        let outcome = Scripted::outcome(&session, "'echo', {'text': 'well'}").await;
        let text = outcome.as_str().or_else(|| outcome[1].as_str()).unwrap_or_default().to_owned();
        table.row(
            format!("at least {minimum:?}, answered {answered}"),
            ensure(text.contains(expected), &outcome),
        );
    }
    table.finish();
}
