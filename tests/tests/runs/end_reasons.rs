//! Tests of the reasons that Lockhouse shows for a cancelled run and for a run that waits for approval.

use std::process::Stdio;

use lockhouse_tests::{Approver, LANGUAGES, Lockhouse, Session, Table, ensure, equal, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::runs::{SHORT_WAIT, eras, lockhouse, outcome, result, session, start_cancellable};

/// A Python and a TypeScript program that print and then loop forever. The last output of the Python program has no
/// newline.
const PRINTS: [&str; 2] = [
    "import sys\nprint('first')\nprint('to stderr', file=sys.stderr)\nprint('half', end='')\nwhile True: pass",
    "console.log('first'); console.error('to stderr'); console.log('half'); while (true) {}",
];

/// Starts a program in the background and waits until it has printed. Returns the handle and the execution id of the
/// run.
async fn start_and_wait_for_output(session: &Session, language: &str, code: &str) -> (Value, Value) {
    let told = session.run_code(language, code).await;
    assert_eq!(told["status"], "running", "{told}");
    let now = json!({"handle": told["handle"], "wait_s": 0});
    wait_until("it has printed", async || {
        let told = result(session, now.clone()).await;
        told["progress"]["stdout_tail"].as_str().is_some_and(|tail| tail.contains("first")).then_some(())
    })
    .await;
    (told["handle"].clone(), told["execution"].clone())
}

#[tokio::test]
async fn a_cancelled_run_keeps_its_output_and_names_who_cancelled_it() {
    let mut table = Table::new("cancelled runs");
    for (language, code) in LANGUAGES.into_iter().zip(PRINTS) {
        let lockhouse = lockhouse(&format!("{SHORT_WAIT}abandoned_seconds = 0\n"));
        let session = session(&lockhouse, Session::latest()).await;
        let ends = [("a person", "`lockhouse runs end`"), ("its client", "the AI client cancelled it")];
        for (who, words) in ends {
            let (handle, execution) = start_and_wait_for_output(&session, language, code).await;
            if who == "a person" {
                let ended = lockhouse.run(&["runs", "end", execution.as_str().unwrap()]);
                assert_eq!(ended.status, Some(0), "{ended:?}");
            } else {
                let arguments = json!({"handle": handle, "wait_s": 60});
                let request = start_cancellable(&session, "get_result", &arguments).await;
                request.cancel(None).await.unwrap();
            }
            let answer = outcome(&session, &handle).await;
            let mut row = |what: &str, outcome| table.row(format!("{language}, {who}: {what}"), outcome);
            row("status", equal(&answer["status"], &json!("cancelled")));
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            row("who", ensure(message.contains(words), &answer));
            row("the kind", equal(&answer["error"]["type"], &json!("Cancelled")));
            let stdout = answer["stdout"].as_str().unwrap_or_default();
            row("stdout", ensure(stdout.starts_with("first\nhalf"), &answer));
            row("stderr", equal(&answer["stderr"], &json!("to stderr\n")));
            let again = result(&session, json!({"handle": handle})).await;
            row("the same again", equal(&again, &answer));
        }
    }
    table.finish();
}

#[tokio::test]
async fn ctrl_c_preserves_the_output_of_the_program_and_reports_the_interruption() {
    let mut table = Table::new("Ctrl-C");
    for arguments in
        [&["run", "--language", "python", "-c"][..], &["run", "--json", "--language", "python", "-c"]]
    {
        let lockhouse = Lockhouse::with_fixture();
        let code = "from mcp_tools import fixture\nprint('first')\nfixture.count()\nwhile True: pass";
        let mut command = tokio::process::Command::from(lockhouse.command(&[arguments, &[code]].concat()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        wait_until("its call is over", async || {
            lockhouse.audit().iter().any(|record| record["event"] == "outcome").then_some(())
        })
        .await;
        kill(Pid::from_raw(child.id().unwrap() as i32), Signal::SIGINT).unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut stdout).await.unwrap();
        child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
        let name = arguments.join(" ");
        table.row(format!("{name}: exit status"), equal(child.wait().await.unwrap().code(), Some(6)));
        let said = if arguments.contains(&"--json") {
            let answer: Value = serde_json::from_str(&stdout).unwrap();
            answer["stdout"] == "first\n" && answer["error"]["message"].to_string().contains("Ctrl-C")
        } else {
            stdout == "first\n" && stderr.contains("cancelled: Cancelled") && stderr.contains("Ctrl-C")
        };
        table.row(format!("{name}: what is told"), ensure(said, (&stdout, &stderr)));
    }
    table.finish();
}

#[tokio::test]
async fn a_run_that_waits_for_approval_is_shown_as_waiting_everywhere() {
    let mut table = Table::new("runs that wait for approval");
    let policy = "version = 1\n[servers.fixture]\nallow = [\"slow\"]\nask = [\"add\"]\n";
    for (era, mode) in eras() {
        let config = format!("{SHORT_WAIT}[approvals]\nthrough = \"local\"\n");
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy).config(&config);
        let session = session(&lockhouse, mode).await;
        let mut approver = Approver::connected(&lockhouse).await;
        let mut row = |what: &str, outcome| table.row(format!("{era}: {what}"), outcome);
        let told =
            session.run_code("python", "from mcp_tools import fixture\nfixture.add(a=1, b=2)['sum']").await;
        let asked = approver.next("ask").await;
        let now = json!({"handle": told["handle"], "wait_s": 0});
        let told = result(&session, now.clone()).await;
        let progress = &told["progress"];
        row("get_result", equal(&progress["waiting"], &json!("for a person")));
        row("for what", equal(&progress["waiting_for"], &json!("approval of fixture.add")));
        row("for how long", ensure(progress["waiting_s"].is_number(), progress));
        let hint = told["hint"].as_str().unwrap_or_default();
        row("the hint", ensure(hint.contains("waits for a person (approval of fixture.add)"), &told));
        let listed = lockhouse.run(&["runs", "list", "--json"]).json();
        let state = (&listed[0]["state"], &listed[0]["waiting_for"]);
        row(
            "runs list --json",
            equal(state, (&json!("waiting for a person"), &json!("approval of fixture.add"))),
        );
        let shown = lockhouse.run(&["runs", "list"]).stdout;
        row("runs list", ensure(shown.contains("waiting for a person: approval of fixture.add, "), &shown));
        approver.answer(&asked, "approve", "once").await;
        row("its answer", equal(&outcome(&session, &told["handle"]).await["value"], &json!(3)));
        let slow = session.run_code("python", "from mcp_tools import fixture\nfixture.slow(ms=1500)").await;
        let now = json!({"handle": slow["handle"], "wait_s": 0});
        let waits = result(&session, now).await["progress"]["waiting"] == "for a person";
        row("control: one that waits for a server", ensure(!waits, &slow));
    }
    table.finish();
}
