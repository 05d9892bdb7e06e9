//! Tests of the isolation of sessions: each session belongs to one AI client, and has one language and one worker.

use lockhouse_tests::{LANGUAGES, Lockhouse, Table, ensure, equal, structured};
use serde_json::json;

use crate::sessions::{outcome_text, text};

const SET_SECRET: [&str; 2] = ["secret = 'SEKRET'", "globalThis.secret = 'SEKRET'"];
const HAS_SECRET: [&str; 2] = ["'secret' in globals()", "typeof secret !== 'undefined'"];

#[tokio::test]
async fn sessions_are_isolated_from_each_other() {
    let lockhouse = Lockhouse::new();
    let (session, other) = (lockhouse.serve().await, lockhouse.serve().await);
    let mut table = Table::new("access to the variables of a session");
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        session.run_in(language, language, SET_SECRET[index]).await;
        let look = HAS_SECRET[index];
        let rows = [
            ("control: the session itself", session.run_in(language, language, look).await, "true"),
            ("another session", session.run_in("other", language, look).await, "false"),
            ("a run without one", session.run_code(language, look).await, "false"),
            ("the same name of another client", other.run_in(language, language, look).await, "false"),
        ];
        for (name, answer, expected) in rows {
            table.row(format!("{language}: {name}"), equal(outcome_text(&answer), expected.to_owned()));
        }
        session
            .call("run_code", json!({"language": language, "code": look, "session": "other"}))
            .await
            .unwrap();
        // The memory limit kills only the session's own worker.
        let end = if index == 0 { "import os; os.abort()" } else { "for (;;);" };
        let arguments = json!({"language": language, "code": end, "session": "other", "timeout_s": 0.05});
        session.run_with(arguments).await;
        let answer = session.run_in(language, language, look).await;
        table.row(
            format!("{language}: beside one that dies"),
            equal(outcome_text(&answer), "true".to_owned()),
        );
        let _ = session.run_in("other", language, "1").await;
        session.run_in("other", language, "1").await;
        let another = LANGUAGES[1 - index];
        let answer = session.run_in(language, another, "1").await;
        let told = text(&answer["error"]["message"]);
        let says = told.contains(&format!("runs {language}"))
            && told.contains(&format!("another session name for {another}"));
        table.row(format!("{language}: asked for {another}"), ensure(says, &answer));
        lockhouse.command(&["sessions", "end", "other"]).output().unwrap();
        let _ = session.run_in("other", language, "1").await;
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_can_use_the_same_session_name_independently() {
    let lockhouse = Lockhouse::new();
    let made = |name: &str| lockhouse.run(&["token", "create", name]).stdout.trim().to_owned();
    let (ada, bob) = (made("ada"), made("bob"));
    let daemon = lockhouse.daemon().await;
    let arguments = |code: &str| json!({"language": "python", "code": code, "session": "report"});
    for token in [&ada, &bob] {
        daemon.http_client(Some(token)).call("run_code", arguments("kept = 1")).await;
    }
    let listed = || {
        let listed = lockhouse.run(&["sessions", "list", "--json"]).stdout;
        serde_json::from_str::<Vec<serde_json::Value>>(&listed).unwrap()
    };
    let owners = || listed().iter().map(|row| text(&row["owner"]).to_owned()).collect::<Vec<_>>();
    let mut table = Table::new("sessions with equal names");
    table.row("whose they are", equal(owners(), vec!["token:ada".to_owned(), "token:bob".to_owned()]));
    let row = listed().into_iter().find(|row| row["owner"] == "token:bob").unwrap();
    // A program at the control socket that knows only the name of the session.
    let socket = lockhouse.path(&format!("run/lockhouse/control-{}.sock", row["pid"]));
    let refused = send_to_control_socket(&socket, &json!({"end_session": "report"}));
    let is_told = text(&refused["refused"]["reason"]).contains("2 clients have a session with this name");
    table.row("by its name, at the socket", ensure(is_told, &refused));
    table.row("both go on", equal(owners().len(), 2));
    let ended = lockhouse.run(&["sessions", "end", &format!("{}/{}", row["pid"], row["id"])]);
    table.row("one by its id", ensure(ended.status == Some(0), &ended));
    table.row("the other one goes on", equal(owners(), vec!["token:ada".to_owned()]));
    let kept = daemon.http_client(Some(&ada)).call("run_code", arguments("kept")).await;
    table.row("with its variables", equal(kept["value"].clone(), json!(1)));
    let gone = daemon.http_client(Some(&bob)).call("run_code", arguments("kept")).await;
    table.row("whose owner is told", ensure(outcome_text(&gone).contains("a person ended it"), &gone));
    let alone = send_to_control_socket(&socket, &json!({"end_session": "report"}));
    table.row("by a name of one client, at the socket", equal(alone, json!({"ended": ["report"]})));
    table.finish();
}

/// Sends one JSON line to Lockhouse's control socket and returns the reply.
fn send_to_control_socket(socket: &std::path::Path, line: &serde_json::Value) -> serde_json::Value {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    serde_json::from_str(&said).unwrap()
}

#[tokio::test]
async fn invalid_session_names_are_refused() {
    let session = Lockhouse::new().serve().await;
    let mut table = Table::new("names of sessions");
    let long = "x".repeat(65);
    for name in ["", " ", "a b", "../x", "a/b", "é", "a\n", "\u{202e}a", "a\u{0}", long.as_str()] {
        let answer = session.run_in(name, "python", "1").await;
        let refused =
            text(&answer["error"]["message"]).contains("1 to 64 letters") && answer["value"].is_null();
        table.row(format!("{name:?}"), ensure(refused, &answer));
    }
    for value in [json!(5), json!(["a"]), json!({"name": "a"}), json!(true)] {
        let answer = session.run_with(json!({"language": "python", "code": "1", "session": value})).await;
        table.row(
            format!("{value}"),
            ensure(outcome_text(&answer).contains("session must be a string"), &answer),
        );
    }
    let none = session.run_with(json!({"language": "python", "code": "1", "session": null})).await;
    table.row("null is none", ensure(none["value"] == 1 && none["session"].is_null(), &none));
    for name in ["a", "A-1_b.c", ".", &"x".repeat(64)] {
        let answer = session.run_in(name, "python", "1").await;
        table.row(format!("control: {name:?}"), equal(&answer["session"]["name"], &name.into()));
    }
    table.finish();
}

#[tokio::test]
async fn runs_of_one_session_are_serialized() {
    let session = Lockhouse::new().serve().await;
    let mut table = Table::new("parallel runs");
    for (language, begin, more) in [
        ("python", "seen = []", "import time\nn = len(seen); time.sleep(0.01); seen.append(n); len(seen)"),
        (
            "typescript",
            "const seen: number[] = []",
            "const n = seen.length; await new Promise(done => setTimeout(done, 10)); seen.push(n); seen.length",
        ),
    ] {
        session.run_in(language, language, begin).await;
        let arguments = json!({"language": language, "code": more, "session": language});
        let running: Vec<_> = (0..10).map(|_| session.start_with(arguments.clone())).collect();
        let mut values = Vec::new();
        for answer in running {
            values.push(structured(answer.await.unwrap())["value"].as_u64());
        }
        values.sort_unstable();
        table.row(language, equal(values, (1..=10).map(Some).collect()));
        let answer = session.run_in(language, language, "seen").await;
        table.row(
            format!("{language}: none at the same time"),
            equal(outcome_text(&answer), "[0,1,2,3,4,5,6,7,8,9]".into()),
        );
    }
    let hang = json!({"language": "python", "code": "import time; time.sleep(2)", "session": "python"});
    let running: Vec<_> = (0..30).map(|_| session.start_with(hang.clone())).collect();
    let mut busy = 0;
    lockhouse_tests::wait_until("some are refused", async || {
        busy = running.iter().filter(|answer| answer.is_finished()).count();
        (busy >= 13).then_some(())
    })
    .await;
    table.row("more than wait are refused at once", equal(busy, 13));
    for answer in running.into_iter().filter(tokio::task::JoinHandle::is_finished) {
        let answer = structured(answer.await.unwrap());
        table.row("with words", ensure(outcome_text(&answer).contains("16 runs already wait"), &answer));
    }
    table.finish();
}
