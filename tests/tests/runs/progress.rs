//! Tests of the MCP progress notifications that an AI client receives while its program runs.

use std::time::{Duration, Instant};

use lockhouse_tests::{
    ClientUser, LANGUAGES, Lockhouse, Session, Table, UserReply, ensure, equal, structured,
};
use serde_json::json;

use crate::runs::{eras, lockhouse};

/// Runs a Python program under this configuration, in a request with an MCP progress token. `era` selects the MCP
/// handshake. Returns the answer, and the messages of the progress notifications.
async fn run_with_progress(
    config: &str,
    era: rmcp::service::ClientLifecycleMode,
    code: &str,
) -> (serde_json::Value, Vec<String>) {
    let lockhouse = lockhouse(config);
    let person = ClientUser::default();
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), era).await;
    let answer = session.run_asking(code).await;
    (answer, person.progress_notifications().into_iter().filter_map(|note| note.message).collect())
}

#[tokio::test]
async fn progress_is_sent_about_once_a_second() {
    let mut table = Table::new("progress of a run");
    let code = "from mcp_tools.fixture import slow, add\nfor i in range(12): add(a=i, b=1)\n\
        print('page 1')\nprint('page \\x1b[31m2')\nslow(ms=3500)['waited_ms']";
    for (era, mode) in eras() {
        let begun = Instant::now();
        let (answer, notes) = run_with_progress("", mode, code).await;
        let took = begun.elapsed();
        let mut row = |name: &str, outcome| table.row(format!("{era}: {name}"), outcome);
        row("control: its answer", ensure(answer["value"] == 3500, &answer));
        let last = notes.last().cloned().unwrap_or_default();
        row("calls", ensure(last.starts_with("12 calls made, 1 under way (fixture.slow), "), &notes));
        row("the last line that it printed", ensure(last.ends_with(" s; page \u{fffd}[31m2"), &notes));
        let often = notes.len() >= 2 && notes.len() as u64 <= took.as_secs() + 1;
        row("how often", ensure(often, (notes.len(), took)));
    }
    table.finish();
}

#[tokio::test]
async fn a_short_run_sends_no_progress_and_a_queued_one_does() {
    let mut table = Table::new("progress of others");
    for (era, mode) in eras() {
        let (answer, notes) = run_with_progress("", mode.clone(), "1").await;
        // On a slow machine there may be notifications that the run waits and that it has started.
        let is_slow =
            |note: &String| note.contains("waiting for a worker") || note.starts_with("0 calls made");
        let quiet = notes.iter().all(is_slow);
        table.row(format!("{era}: a short run"), ensure(quiet && answer["value"] == 1, &notes));
        let lockhouse = lockhouse("[pool]\nidle = 1\nrunning = 1\n");
        let person = ClientUser::default();
        let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode).await;
        let slow = session.start_code("python", "from mcp_tools.fixture import slow\nslow(ms=2500)");
        let begun = Instant::now();
        lockhouse_tests::wait_until("the place is taken", async || {
            lockhouse.audit().iter().any(|record| record["tool"] == "slow").then_some(())
        })
        .await;
        let answer = session.run_asking("2").await;
        assert!(begun.elapsed() < Duration::from_secs(60), "{answer}");
        let notes: Vec<_> =
            person.progress_notifications().into_iter().filter_map(|note| note.message).collect();
        let says = notes.iter().any(|note| note.starts_with("waiting for a worker, "));
        table.row(format!("{era}: one that waits"), ensure(says && answer["value"] == 2, (&answer, &notes)));
        slow.await.unwrap().unwrap();
    }
    table.finish();
}

#[tokio::test]
async fn progress_has_the_last_printed_line_of_a_program_without_calls() {
    let mut table = Table::new("progress of programs that print and compute");
    let code = [
        "import time\nprint('page 1')\nend = time.monotonic() + 3.5\nwhile time.monotonic() < end: pass\n7",
        "console.log('page 1'); const end = Date.now() + 3500; while (Date.now() < end) {} 7",
    ];
    for (era, mode) in eras() {
        for (language, code) in LANGUAGES.into_iter().zip(code) {
            let lockhouse = lockhouse("");
            let person = ClientUser::default();
            let session =
                Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode.clone()).await;
            let arguments = json!({"language": language, "code": code});
            let answer = structured(session.call_asking("run_code", arguments).await);
            let notes: Vec<_> =
                person.progress_notifications().into_iter().filter_map(|note| note.message).collect();
            table.row(format!("{era}, {language}: control: its value"), equal(&answer["value"], &json!(7)));
            let shown =
                notes.iter().any(|note| note.starts_with("0 calls made, ") && note.ends_with("; page 1"));
            table.row(format!("{era}, {language}: the line"), ensure(shown, &notes));
        }
    }
    table.finish();
}

#[tokio::test]
async fn progress_says_that_a_run_waits_for_approval() {
    let policy = "version = 1\n[servers.fixture]\nask = [\"add\"]\n";
    let code = "from mcp_tools import fixture\nfixture.add(a=1, b=2)['sum']";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy);
    // The approver takes three seconds, during which the request is in flight.
    let person = ClientUser::replying(UserReply::Delayed(Duration::from_secs(3), json!({})));
    let mode = rmcp::service::ClientLifecycleMode::Initialize;
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode).await;
    let answer = session.run_asking(code).await;
    assert_eq!(answer["value"], 3, "{answer}");
    let notes: Vec<_> = person.progress_notifications().into_iter().filter_map(|note| note.message).collect();
    let says = |note: &String| {
        note.contains("waiting for a person for ") && note.contains("(approval of fixture.add)")
    };
    assert!(notes.iter().any(says), "{notes:?}");
}
