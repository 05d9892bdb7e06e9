//! Tests of `stop`: runs and calls end with the administrator's reason, nothing starts, and all of it works again once the
//! key is removed.

use lockhouse_tests::{Approver, CommandOutput, Session, Table, ensure, equal, structured, wait_until};
use serde_json::{Value, json};

use super::{ADD, error_of, lockhouse, require, serve, server, with_requirements};

const STOP: &str = "stop = \"incident 7: credentials leaked\"\n";
const MESSAGE: &str =
    "the administrator of this machine has stopped Lockhouse: incident 7: credentials leaked";

async fn wait_until_stopped(session: &Session, is_stopped: bool) -> Value {
    wait_until("the stop is applied", async || {
        let answer = session.run_code("python", "1").await;
        (error_of(&answer).contains(MESSAGE) == is_stopped).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn all_that_runs_ends_with_the_reason_and_nothing_starts_until_it_is_lifted() {
    let lockhouse = lockhouse()
        .config(&format!("{}expose = \"both\"\n[runs]\nwait_seconds = 0.2\n", server("fixture")))
        .policy("version = 1\n[servers.fixture]\nallow = [\"*\"]\nask = [\"text\"]\n");
    require(&lockhouse, "");
    let session = serve(&lockhouse).await;
    let mut table = Table::new("the kill switch");
    let direct = async || session.call("fixture__add", json!({"a": 1, "b": 2})).await;
    table.row("control: a direct call", ensure(direct().await.unwrap().is_error != Some(true), ""));
    session.run_in("kept", "python", "x = 1").await;
    let background = session.run_code("python", "import time\ntime.sleep(60)").await;
    let handle = background["handle"].as_str().unwrap_or_default().to_owned();
    let mut approver = Approver::connected(&lockhouse).await;
    let asking = session.start_code("python", "from fixture import text\ntext(text=\"x\")");
    let servers = || lockhouse_tests::descendants(session.pid());
    let count = |name: &str| servers().iter().filter(|process| process.command.contains(name)).count();
    approver.next("ask").await;
    table.row("control: a server runs", ensure(count("fixture-server") > 0, "none"));
    require(&lockhouse, STOP);
    wait_until_stopped(&session, true).await;
    let answer = session.run_code("python", "1").await;
    table.row(
        "a new run",
        equal((&answer["error"]["type"], error_of(&answer)), (&json!("Stopped"), MESSAGE.to_owned())),
    );
    let ended = session.call("get_result", json!({"handle": handle})).await;
    let ended = structured(ended);
    table.row("a background run", equal(error_of(&ended), MESSAGE.to_owned()));
    let asked = structured(asking.await.unwrap());
    let asked = match asked["handle"].as_str() {
        Some(handle) => structured(session.call("get_result", json!({"handle": handle})).await),
        None => asked,
    };
    table.row("a run that waits for approval", equal(error_of(&asked), MESSAGE.to_owned()));
    let typescript = session.run_code("typescript", "1").await;
    table.row("another language", equal(error_of(&typescript), MESSAGE.to_owned()));
    let again = session.run_in("kept", "python", "x").await;
    table.row("a session", equal(error_of(&again), MESSAGE.to_owned()));
    let called = direct().await.unwrap();
    let text = format!("{called:?}");
    table.row("a direct call", ensure(called.is_error == Some(true) && text.contains(MESSAGE), text));
    wait_until("the servers have ended", async || (count("fixture-server") == 0).then_some(())).await;
    table.row("the servers", Ok(()));
    for (what, arguments) in [
        ("lockhouse run", &["run", "-c", "1", "--language", "python"][..]),
        ("lockhouse check", &["check", "-c", "1", "--language", "python"]),
        ("lockhouse tools list", &["tools", "list"]),
    ] {
        let output = CommandOutput::run(&mut with_requirements(&lockhouse, arguments), b"");
        let told = output.stderr.contains(MESSAGE) || output.stderr.contains("has stopped Lockhouse");
        table.row(what, ensure(told, format!("{output:?}")));
    }
    let new = serve(&lockhouse).await;
    table.row("a new process", equal(error_of(&new.run_code("python", ADD).await), MESSAGE.to_owned()));
    let status = lockhouse.run(&["status"]);
    table.row("lockhouse status", ensure(status.stdout.contains(MESSAGE), &status));
    let refused = lockhouse.records().into_iter().filter(|record| record["reason"] == MESSAGE).count();
    table.row("refused runs are recorded", ensure(refused > 2, refused));
    require(&lockhouse, "");
    wait_until_stopped(&session, false).await;
    wait_until_stopped(&new, false).await;
    for (what, session) in [("the process", &session), ("the new one", &new)] {
        let answer = wait_until("a call succeeds", async || {
            let answer = session.run_code("python", ADD).await;
            (answer["value"] == json!(42)).then_some(answer)
        });
        table.row(format!("lifted: {what}"), equal(answer.await["value"].clone(), json!(42)));
    }
    table.row("lifted: a direct call", ensure(direct().await.unwrap().is_error != Some(true), ""));
    table.finish();
    session.close().await;
    new.close().await;
}

/// A program of `lockhouse run` ends while it runs.
#[tokio::test]
async fn a_program_of_the_command_ends_with_the_reason() {
    let lockhouse = lockhouse();
    require(&lockhouse, "");
    let mut command =
        with_requirements(&lockhouse, &["run", "-c", "import time\ntime.sleep(60)", "--language", "python"]);
    let running = std::thread::spawn(move || CommandOutput::run(&mut command, b""));
    wait_until("it runs", async || {
        lockhouse.records().iter().any(|record| record["event"] == "execution").then_some(())
    })
    .await;
    require(&lockhouse, STOP);
    let output = running.join().unwrap();
    let mut table = Table::new("lockhouse run while it is stopped");
    table.row("the reason", ensure(output.stderr.contains(MESSAGE), &output));
    table.row("the exit status", equal(output.status, Some(6)));
    table.finish();
}
