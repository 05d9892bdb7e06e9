//! Tests of `lockhouse server logs`, which shows the standard error of an upstream server.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use lockhouse_tests::{Lockhouse, wait_until};
use serde_json::json;

use crate::server_commands::{normalized_output, server};

const LINES: &str = "\
2026-11-21T10:00:00.000Z 7 one
2026-11-21T10:00:01.000Z 7 two \u{1b}[2J
2026-11-21T10:00:02.000Z 8 three
";

#[tokio::test]
async fn stderr_of_a_running_server_is_logged() {
    let lockhouse = Lockhouse::with_fixture();
    let none = server(&lockhouse, &["logs", "fixture"]);
    assert!(none.status == Some(0) && none.stderr.contains("logs/fixture.log"), "{none:?}");
    let session = lockhouse.serve().await;
    let code = "from mcp_tools.fixture import stderr\nstderr(text='a word from the server')";
    session.run_code("python", code).await;
    wait_until("the line is in the log", async || {
        let log = server(&lockhouse, &["logs", "fixture"]);
        log.stdout.contains("a word from the server").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_secret_from_a_placeholder_in_an_argument_is_redacted() {
    let lockhouse = Lockhouse::new();
    let secret = lockhouse.file("secret", "hunter2-canary\n");
    let config = format!(
        "[servers.x]\ncommand = \"sh\"\nargs = [\"-c\", \"echo key=$0 >&2; sleep 600\", \"${{file:{}}}\"]\n",
        secret.display()
    );
    let lockhouse = lockhouse.config(&config);
    let session = lockhouse.serve().await;
    let log = wait_until("the line is in the log", async || {
        let log = server(&lockhouse, &["logs", "x"]);
        log.stdout.contains("key=").then_some(log)
    })
    .await;
    assert!(log.stdout.contains("[redacted") && !log.stdout.contains("canary"), "{log:?}");
    drop(session);
}

/// A server that prints its environment in an encoding shows no secret, neither in its log nor in an error.
#[test]
fn a_secret_in_another_encoding_is_redacted() {
    const PRINTS: &str = "\
import base64, json, os, sys, urllib.parse
value = os.environ['TOKEN']
texts = [value, json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), ascii(value), repr(value.encode()),
    urllib.parse.quote(value), urllib.parse.quote(value, safe=''), urllib.parse.quote_plus(value), value.encode().hex(),
    value.encode().hex().upper()]
texts += [base64.b64encode((before + value + 'tail').encode()).decode() for before in ['', 'a', 'ab', 'abc']]
texts += [base64.urlsafe_b64encode((before + value).encode()).decode() for before in ['', 'a', 'ab', 'abc']]
for number, text in enumerate(texts): print(f'form {number}: <{text}>', file=sys.stderr)
print('control: <unrelated>', file=sys.stderr)
sys.exit(1)";
    let secret = "hunter2/ž?&+\\\"'canary~";
    let lockhouse = Lockhouse::new();
    let script = lockhouse.file("server.py", PRINTS);
    lockhouse.file("token", secret);
    let config = format!(
        "[servers.x]\ncommand = \"python3\"\nargs = [{script:?}]\nenv = {{ TOKEN = \"${{file:{}}}\" }}\n",
        lockhouse.path("token").display()
    );
    let lockhouse = lockhouse.config(&config);
    let tried = server(&lockhouse, &["test", "x"]);
    let log = server(&lockhouse, &["logs", "x"]);
    let forms: Vec<&str> =
        log.stdout.lines().filter_map(|line| line.split_once(" form ")).map(|(_, form)| form).collect();
    // The server is started more than once.
    assert!(forms.len() >= 19, "{log:?}");
    assert!(log.stdout.contains("<unrelated>"), "{log:?}");
    for form in &forms {
        let shown = form.split_once('<').unwrap().1;
        // What is left around the value is the text around it, which the server printed in base64: up to 9 characters.
        let left: String = shown.replace("[redacted TOKEN]", "").replace(['\'', '"', 'b', '>', '='], "");
        assert!(shown.contains("[redacted TOKEN]") && left.len() <= 9, "{form}");
    }
    assert!(
        !tried.transcript().contains("canary") && tried.transcript().contains("[redacted TOKEN]"),
        "{tried:?}"
    );
}

#[test]
fn the_last_lines_are_shown_with_control_characters_escaped() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    lockhouse.file("state/lockhouse/logs/fixture.log.1", "2026-11-21T09:00:00.000Z 6 zero\n");
    lockhouse.file("state/lockhouse/logs/fixture.log", LINES);
    let all = server(&lockhouse, &["logs", "fixture"]);
    insta::assert_snapshot!("logs", normalized_output(&all));
    let last = server(&lockhouse, &["logs", "fixture", "-n", "1"]);
    assert_eq!(last.stdout, "2026-11-21T10:00:02.000Z 8 three\n");
    let json = server(&lockhouse, &["logs", "fixture", "-n", "1", "--json"]).json();
    assert_eq!(json, json!({"time": "2026-11-21T10:00:02.000Z", "pid": 8, "text": "three"}));
}

#[test]
fn logs_of_removed_servers_are_kept_and_unknown_servers_have_none() {
    let lockhouse = Lockhouse::new();
    lockhouse.file("state/lockhouse/logs/gone.log", LINES);
    assert_eq!(server(&lockhouse, &["logs", "gone"]).status, Some(0));
    for name in ["other", "../logs/gone", ""] {
        let refused = server(&lockhouse, &["logs", name]);
        assert!(refused.status == Some(2) && refused.stderr.contains("there is no server"), "{refused:?}");
    }
}

#[test]
fn a_followed_log_continues_after_rotation() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let log = lockhouse.file("state/lockhouse/logs/fixture.log", LINES);
    let mut command = lockhouse.command(&["server", "logs", "fixture", "-n", "1", "--follow"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().ends_with("8 three"));
    std::fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"T 8 four\n").unwrap();
    assert_eq!(next(), "T 8 four");
    std::fs::rename(&log, log.with_extension("log.1")).unwrap();
    std::fs::write(&log, "T 8 five\n").unwrap();
    assert_eq!(next(), "T 8 five");
    following.kill().unwrap();
    following.wait().unwrap();
}
