//! Tests of runs that continue in the background after their request has returned: `get_result` returns their answer.

use lockhouse_tests::{LANGUAGES, Table, ensure, equal, is_alive, wait_until};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::json;

use crate::runs::{
    ENDLESS, SHORT_WAIT, eras, error_message, lockhouse, outcome, result, run, session, start_in_background,
    workers,
};

const SLOW: [&str; 2] = [
    "from mcp_tools.fixture import slow\nprint('first')\nslow(ms=1)\nprint('second')\nslow(ms=2500)['waited_ms'] + 1",
    "console.log('first'); await fixture.slow({ms: 1}); console.log('second'); (await fixture.slow({ms: 2500})).waited_ms + 1",
];

#[tokio::test]
async fn a_long_run_continues_and_its_answer_is_available_later() {
    let lockhouse = lockhouse(SHORT_WAIT);
    let mut table = Table::new("runs that outlive their request");
    for (era, mode) in eras() {
        let session = session(&lockhouse, mode).await;
        for (index, language) in LANGUAGES.into_iter().enumerate() {
            let mut row = |name: &str, outcome| table.row(format!("{era}, {language}: {name}"), outcome);
            let short = run(&session, language, "6 * 7").await;
            row(
                "control: a short one",
                ensure(short["value"] == 42 && short.get("handle").is_none(), &short),
            );
            let called = session.call("run_code", json!({"language": language, "code": SLOW[index]})).await;
            let called = called.unwrap();
            let told = called.structured_content.clone().unwrap_or_default();
            row("status", equal(&told["status"], &json!("running")));
            row("it is no error", ensure(called.is_error != Some(true), &called));
            let now = json!({"handle": told["handle"], "wait_s": 0});
            let seen = wait_until("it has come to its second call", async || {
                let told = result(&session, now.clone()).await;
                (told["progress"]["calls"] == 1 && told["progress"]["under_way"].is_object()).then_some(told)
            });
            let seen = seen.await;
            let progress = &seen["progress"];
            let calls = progress["calls"] == 1 && progress["under_way"] == json!({"fixture.slow": 1});
            row("calls", ensure(calls, &seen));
            row("output so far", equal(&progress["stdout_tail"], &json!("first\nsecond\n")));
            // The run begins a little later than the request, which has waited for 0.2 s.
            row("time", ensure(progress["elapsed_s"].as_f64().is_some_and(|s| s >= 0.1), progress));
            let now = result(&session, json!({"handle": told["handle"], "wait_s": 0})).await;
            let same = ["status", "handle", "execution"].iter().all(|key| now[*key] == told[*key]);
            row("asked at once", ensure(same && now["status"] == "running", &now));
            let answer = outcome(&session, &told["handle"]).await;
            row("value", equal(&answer["value"], &json!(2501)));
            row("stdout", equal(&answer["stdout"], &json!("first\nsecond\n")));
            row("execution", equal(&answer["execution"], &told["execution"]));
            let shape = |answer: &serde_json::Value| {
                answer.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>())
            };
            let direct = run(&session, language, PRINTS[index]).await;
            row("the same shape as an answer that was waited for", equal(shape(&answer), shape(&direct)));
            let again = result(&session, json!({"handle": told["handle"]})).await;
            row("the same again", equal(&again, &answer));
            let twice = result(&session, json!({"handle": told["handle"], "wait_s": 0})).await;
            row("and again", equal(&twice, &answer));
        }
        session.close().await;
    }
    table.finish();
}

const PRINTS: [&str; 2] = ["print('x')\n1", "console.log('x'); 1"];

#[tokio::test]
async fn several_requests_can_wait_for_one_run_and_each_gets_its_answer() {
    let lockhouse = lockhouse(SHORT_WAIT);
    let session = session(&lockhouse, lockhouse_tests::Session::latest()).await;
    let handle = start_in_background(&session, "from mcp_tools.fixture import slow\nslow(ms=1500)").await;
    let waiting = (0..3).map(|_| result(&session, json!({"handle": handle, "wait_s": 30})));
    let answers = futures_util::future::join_all(waiting).await;
    let mut table = Table::new("three requests that wait for one run");
    for (number, answer) in answers.iter().enumerate() {
        table.row(format!("the value, for {number}"), equal(&answer["value"]["waited_ms"], &json!(1500)));
        table.row(format!("the same answer, for {number}"), equal(answer, &answers[0]));
    }
    table.finish();
}

#[tokio::test]
async fn invalid_and_foreign_handles_get_the_same_error() {
    let lockhouse = lockhouse(SHORT_WAIT);
    let (owner, other) =
        (session(&lockhouse, lockhouse_tests::Session::latest()).await, lockhouse.serve().await);
    let handle = start_in_background(&owner, ENDLESS).await;
    let unknown = "0".repeat(32);
    let mut table = Table::new("handles");
    let message = |answer: &serde_json::Value, handle: &str| error_message(answer, handle);
    let of_nobody = result(&owner, json!({"handle": unknown})).await;
    let of_another = result(&other, json!({"handle": handle})).await;
    let words = message(&of_nobody, &unknown);
    table.row("an unknown one", ensure(words.contains("there is no result HANDLE:"), &of_nobody));
    table.row("that of another client", equal(message(&of_another, handle.as_str().unwrap()), words));
    for (name, arguments, told) in [
        ("a negative wait", json!({"handle": handle, "wait_s": -1}), "wait_s must be a number of seconds"),
        ("a wait in words", json!({"handle": handle, "wait_s": "5"}), "wait_s must be a number of seconds"),
        ("no handle", json!({"wait_s": 1}), "handle is missing"),
        ("one in other characters", json!({"handle": "../x"}), "handle"),
    ] {
        let answer = result(&owner, arguments).await;
        table.row(name, ensure(message(&answer, "-").contains(told), &answer));
    }
    let control = result(&owner, json!({"handle": handle, "wait_s": 0})).await;
    table.row("control: its own", equal(&control["status"], &json!("running")));
    table.finish();
}

#[tokio::test]
async fn background_runs_survive_a_reload_and_report_a_killed_worker() {
    let lockhouse = lockhouse(SHORT_WAIT);
    let mut table = Table::new("events during a background run");
    for (era, mode) in eras() {
        let session = session(&lockhouse, mode).await;
        let mut row = |name: &str, outcome| table.row(format!("{era}: {name}"), outcome);
        let handle = start_in_background(
            &session,
            "import os\nfrom mcp_tools.fixture import slow\nslow(ms=700)\nos.abort()",
        )
        .await;
        let answer = outcome(&session, &handle).await;
        row("the worker dies", equal(&answer["status"], &json!("killed")));
        let said = answer["error"]["message"].as_str().is_some_and(|message| message.contains("SIGABRT"));
        row("and the answer says of what", ensure(said, &answer));
        let handle = start_in_background(&session, ENDLESS).await;
        let killed = workers(&session);
        // The worker of the previous run may still be exiting.
        for worker in &killed {
            let _ = nix::sys::signal::kill(Pid::from_raw(worker.pid as i32), Signal::SIGKILL);
        }
        let answer = outcome(&session, &handle).await;
        // Kills the idle workers too, before one of them is leased.
        let gone = async || killed.iter().all(|worker| !is_alive(worker.pid)).then_some(());
        wait_until("they are gone", gone).await;
        row("somebody kills it", equal(&answer["status"], &json!("killed")));
        let unknown = answer["calls"][0]["outcome"] == "unknown";
        row("and its call is told as what it is", ensure(unknown, &answer));
        let handle =
            start_in_background(&session, "from mcp_tools.fixture import slow\nslow(ms=1500)\nslow(ms=1)")
                .await;
        let said = session.reload().await;
        row("the configuration is loaded again", ensure(said.contains("the configuration "), said));
        let answer = outcome(&session, &handle).await;
        row("the run goes on", equal(&answer["value"]["waited_ms"], &json!(1)));
        session.close().await;
    }
    table.finish();
}

#[tokio::test]
async fn a_run_of_a_session_continues_in_the_background_and_keeps_the_session() {
    let lockhouse = lockhouse(SHORT_WAIT);
    let session = session(&lockhouse, lockhouse_tests::Session::latest()).await;
    let code = "from mcp_tools.fixture import slow\nname = slow(ms=900)['waited_ms']\nname";
    let told = session.run_in("work", "python", code).await;
    assert_eq!(told["status"], "running", "{told}");
    let answer = outcome(&session, &told["handle"]).await;
    assert!(answer["value"] == 900 && answer["session"]["name"] == "work", "{answer}");
    let mut next = session.run_in("work", "python", "name").await;
    if next["status"] == "running" {
        next = outcome(&session, &next["handle"]).await;
    }
    assert_eq!(next["value"], 900, "{next}");
}
