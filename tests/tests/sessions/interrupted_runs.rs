//! Tests of session runs that end by timeout, cancellation or crash, and of how this affects the session.

use lockhouse_tests::{LANGUAGES, Lockhouse, Table, ensure, equal, kill, structured, wait_until};
use serde_json::json;

use crate::sessions::{outcome_text, text, workers};

/// Programs that a short timeout interrupts: the language, the name, the code, and the reason for which the session
/// ends. With `None` as the reason, the session continues.
const INTERRUPTED_PROGRAMS: &[(&str, &str, &str, Option<&str>)] = &[
    ("python", "a loop", "while True: pass", None),
    ("python", "a sleep", "import time; time.sleep(60)", None),
    ("python", "an await", "import asyncio; await asyncio.sleep(60)", None),
    (
        "python",
        "tasks",
        "import asyncio\nasync def spin():\n    while True: await asyncio.sleep(0)\nt = [asyncio.create_task(spin()) for _ in range(5)]\nawait t[0]",
        None,
    ),
    ("python", "a call", "from mcp_tools.fixture import slow; slow(ms=60000)", None),
    ("python", "one that does not stop", "sum(range(10**15))", Some("did not stop when interrupted")),
    ("typescript", "a loop", "for (;;);", None),
    ("typescript", "an await", "await new Promise(done => setTimeout(done, 60000))", None),
    ("typescript", "a call", "await fixture.slow({ms: 60000})", None),
    ("typescript", "timers", "setInterval(() => 1, 1); await new Promise(() => 1)", None),
    ("typescript", "promises for ever", "for (;;) await 0", Some("did not stop when interrupted")),
];

#[tokio::test]
async fn an_interrupted_run_keeps_the_variables_or_ends_the_session_with_a_reason() {
    let session = Lockhouse::with_fixture().config("[limits]\ngrace_ms = 1000\n").serve().await;
    let mut table = Table::new("interrupted runs");
    for (language, name, code, ended) in INTERRUPTED_PROGRAMS {
        let (set, look) = [("x = 7", "x"), ("let x = 7", "x")][usize::from(*language == "typescript")];
        let row = |what: &str| format!("{language}, {name}: {what}");
        let answer = session.run_in(language, language, set).await;
        table.row(row("control"), equal(answer["status"].as_str(), Some("ok")));
        let arguments = json!({"language": language, "code": code, "session": language, "timeout_s": 0.2});
        let answer = session.run_with(arguments).await;
        table.row(row("stopped"), equal(answer["status"].as_str(), Some("timeout")));
        let told_of_end = text(&answer["session"]["ended"]);
        table.row(
            row("the answer says what became of the session"),
            ensure(ended.map_or(told_of_end.is_empty(), |words| told_of_end.contains(words)), &answer),
        );
        let next = session.run_in(language, language, look).await;
        match ended {
            None => table.row(row("the names are there"), equal(outcome_text(&next), "7".into())),
            Some(words) => {
                let said = next["error"]["type"] == "SessionEnded" && outcome_text(&next).contains(words);
                table.row(row("the next run is told"), ensure(said, &next));
                let after = session.run_in(language, language, "1").await;
                table.row(row("the one after it begins anew"), equal(&after["session"]["new"], &true.into()));
            }
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_crashed_session_worker_is_reported_once() {
    let session = Lockhouse::new().serve().await;
    let mut table = Table::new("sessions whose worker dies");
    for language in LANGUAGES {
        let before: Vec<u32> = workers(&session).iter().map(|worker| worker.pid).collect();
        session.run_in(language, language, "1").await;
        let stopped = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
        };
        let worker = wait_until("its worker rests", async || {
            workers(&session)
                .iter()
                .map(|worker| worker.pid)
                .find(|pid| !before.contains(pid) && stopped(*pid))
        })
        .await;
        kill(worker);
        wait_until("it is gone", async || (!lockhouse_tests::is_alive(worker)).then_some(())).await;
        let answer = session.run_in(language, language, "1").await;
        let holds = outcome_text(&answer).contains("its worker was killed from outside while it was idle");
        table.row(format!("{language}: killed while idle"), ensure(holds, &answer));
        let answer = session.run_in(language, language, "1").await;
        table.row(format!("{language}: and then anew"), equal(&answer["session"]["new"], &true.into()));
    }
    let answer = session.run_in("p", "python", "import os; os.abort()").await;
    let holds = answer["status"] == "killed" && text(&answer["session"]["ended"]).contains("SIGABRT");
    table.row("killed in its run", ensure(holds, &answer));
    let told_of_end = outcome_text(&session.run_in("p", "python", "1").await);
    table.row("and the next one is told", ensure(told_of_end.contains("SIGABRT"), &told_of_end));
    table.finish();
}

#[tokio::test]
async fn a_cancelled_run_keeps_the_variables() {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
    use rmcp::service::PeerRequestOptions;
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let slow = ["from mcp_tools.fixture import slow; slow(ms=60000)", "await fixture.slow({ms: 60000})"];
    for (round, (language, code)) in LANGUAGES.into_iter().zip(slow).enumerate() {
        session.run_in(language, language, ["x = 7", "let x = 7"][round]).await;
        let arguments = json!({"language": language, "code": code, "session": language});
        let parameters =
            CallToolRequestParams::new("run_code").with_arguments(arguments.as_object().cloned().unwrap());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let options = PeerRequestOptions::no_options();
        let handle = session.peer().send_request_with_option(request, options).await.unwrap();
        wait_until("the call goes out", async || {
            let calls = lockhouse.audit().into_iter().filter(|record| record["event"] == "call").count();
            (calls == round + 1).then_some(())
        })
        .await;
        handle.cancel(Some("the person pressed escape".into())).await.unwrap();
        let answer = session.run_in(language, language, "x").await;
        assert_eq!(
            (outcome_text(&answer).as_str(), &answer["session"]["runs"]),
            ("7", &json!(3)),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn runs_that_wait_for_an_ended_session_get_an_error() {
    let session = Lockhouse::new().serve().await;
    session.run_in("s", "python", "1").await;
    let hang = "sum(range(10**15))";
    let first =
        session.start_with(json!({"language": "python", "code": hang, "session": "s", "timeout_s": 1}));
    let waiting: Vec<_> = (0..3)
        .map(|_| session.start_with(json!({"language": "python", "code": "1", "session": "s"})))
        .collect();
    let first = structured(first.await.unwrap());
    assert_eq!(first["status"], "timeout", "{first}");
    for answer in waiting {
        let answer = structured(answer.await.unwrap());
        assert_eq!(answer["error"]["type"], "SessionEnded", "{answer}");
    }
    // The waiting runs have reported the end, so the next run does not report it again.
    let answer = session.run_in("s", "python", "1").await;
    assert_eq!(answer["session"]["new"], true, "{answer}");
}
