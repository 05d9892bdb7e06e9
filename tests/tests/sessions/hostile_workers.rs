//! Tests of session workers that violate the worker protocol between two runs: at worst, Lockhouse ends the session of
//! that worker, but no other session.

use lockhouse_tests::{Lockhouse, Table, descendants, ensure, equal, fixture_server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::sessions::{outcome_text, text};

/// Behaviours of a hostile session worker, each with the outcome of its own run, and a text in the outcome of the
/// session's next run.
const ROWS: &[(&str, &str, &str)] = &[
    ("well", "42", "42"),
    ("done twice", "1", "it sent Done while between two runs"),
    ("ready after the end", "1", "it sent Ready while between two runs"),
    ("garbage after the end", "1", "exceeds the limit"),
    ("a flood after the end", "1", "output limit"),
    ("a request twice after the end", "1", "used call id 1, which is not larger"),
    ("output after the end", "1", "did not end within"),
    ("exits after the end", "1", "killed from outside while it was idle"),
    (
        "ready again",
        "Killed: the worker broke the protocol and was killed: it sent Ready while running",
        "it sent Ready while running",
    ),
];

#[tokio::test]
async fn messages_of_a_worker_between_runs_end_only_its_session() {
    let worker = fixture_server().with_file_name("hostile-peer");
    let config = format!(
        "[limits]\noutput_kib = 64\ntimeout_seconds = 2\n[sessions]\nmax = 64\n[javascript]\nworker = {worker:?}\n"
    );
    let lockhouse = Lockhouse::with_fixture().config(&config);
    let session = lockhouse.serve().await;
    let mut table = Table::new("hostile workers of sessions");
    for (number, (behaviour, first, next)) in ROWS.iter().enumerate() {
        let name = format!("s{number}");
        let answer = session.run_in(&name, "typescript", behaviour).await;
        table.row(*behaviour, equal(outcome_text(&answer), (*first).to_owned()));
        if *behaviour == "exits after the end" {
            let list = || lockhouse.run(&["sessions", "list"]).stdout;
            lockhouse_tests::wait_until("it is gone", async || {
                // The supervisor may have stopped the worker between its last message and its exit.
                signal_workers(session.pid(), Signal::SIGCONT);
                list().split_whitespace().all(|word| word != name).then_some(())
            })
            .await;
        }
        let answer = session.run_in(&name, "typescript", "well").await;
        table
            .row(format!("{behaviour}: the next run"), ensure(outcome_text(&answer).contains(next), &answer));
        if *behaviour != "well" {
            let ended = !answer["session"]["ended"].is_null() || answer["error"]["type"] == "SessionEnded";
            table.row(format!("{behaviour}: the session has ended"), ensure(ended, &answer));
        }
        let beside = session.run_in("s0", "typescript", "well").await;
        table.row(format!("{behaviour}: one beside it"), equal(outcome_text(&beside), "42".into()));
    }
    // Late output of a remaining thread belongs to the next run.
    let arguments = json!({"language": "typescript", "code": "output after the end", "session": "late"});
    session.run_with(arguments).await;
    let answer = session.run_in("late", "typescript", "well").await;
    table.row("late output is the next run's", equal(text(&answer["stdout"]), "late"));
    let python = session.run_in("python", "python", "1 + 1").await;
    table.row("python afterwards", equal(outcome_text(&python), "2".into()));
    let ended = session.close().await;
    table.row("nothing panicked", ensure(!ended.stderr.contains("panicked"), &ended));
    table.finish();
}

/// Sends a signal to all hostile workers of a server. A worker may be gone by then.
fn signal_workers(server: u32, signal: Signal) {
    for worker in descendants(server).iter().filter(|process| process.command.contains("hostile-peer")) {
        let _ = kill(Pid::from_raw(worker.pid as i32), signal);
    }
}
