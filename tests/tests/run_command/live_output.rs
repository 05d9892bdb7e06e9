//! Tests of the output that `lockhouse run` prints while the program runs.

use std::process::Stdio;

use lockhouse_tests::{Approver, LANGUAGES, Lockhouse, Table, ensure, equal};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// A call succeeds only after the test has connected an approver, so the test decides when the program continues.
const POLICY: &str = "version = 1\n[servers.fixture]\nask = [\"add\"]\n";

/// A Python and a TypeScript program. Both print to both streams, repeat a call until it succeeds, and print again.
const PROGRAMS: [&str; 2] = [
    "import sys, time\nfrom mcp_tools import fixture, ToolError\nprint('first')\nprint('beside', file=sys.stderr)\n\
     while True:\n  try: fixture.add(a=1, b=2); break\n  except ToolError: time.sleep(0.05)\n\
     print('second\\tb\\x1b')\nprint('last', file=sys.stderr)\n'the value'",
    "console.log('first'); console.error('beside')\n\
     for (;;) { try { await fixture.add({a: 1, b: 2}); break } catch { await new Promise(next => setTimeout(next, 50)) } }\n\
     console.log('second\\tb\\x1b'); console.error('last')\nreturn 'the value'",
];

fn lockhouse() -> Lockhouse {
    Lockhouse::new().server("fixture", &[]).policy(POLICY).config("[approvals]\nthrough = \"local\"\n")
}

fn start(lockhouse: &Lockhouse, arguments: &[&str]) -> Child {
    let mut command = Command::from(lockhouse.command(arguments));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

#[tokio::test]
async fn output_is_printed_while_the_program_waits() {
    let mut table = Table::new("live output");
    for (language, code) in LANGUAGES.into_iter().zip(PROGRAMS) {
        let lockhouse = lockhouse();
        let mut child = start(&lockhouse, &["run", "--language", language, "-c", code]);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut out, mut err) = (String::new(), String::new());
        // No approver is connected yet, so the program cannot have ended.
        stdout.read_line(&mut out).await.unwrap();
        while !err.ends_with("beside\n") {
            assert!(stderr.read_line(&mut err).await.unwrap() > 0, "{language}: {err}");
        }
        let mut row = |what: &str, outcome| table.row(format!("{language}: {what}"), outcome);
        row("the first line", equal(out.as_str(), "first\n"));
        row("the program still runs", equal(child.try_wait().unwrap(), None));
        let mut approver = Approver::start(&lockhouse);
        let question = approver.next("ask").await;
        approver.answer(&question, "approve", "once").await;
        stdout.read_to_string(&mut out).await.unwrap();
        stderr.read_to_string(&mut err).await.unwrap();
        row("exit status", equal(child.wait().await.unwrap().code(), Some(0)));
        row("stdout", equal(out.as_str(), "first\nsecond\tb\u{1b}\nthe value\n"));
        let printed: Vec<&str> =
            err.lines().filter(|line| !line.starts_with("lockhouse: reduced sandbox")).collect();
        row("stderr", equal(printed, vec!["beside", "last"]));
    }
    table.finish();
}

#[tokio::test]
async fn json_is_printed_only_at_the_end() {
    let lockhouse = lockhouse();
    let mut approver = Approver::start(&lockhouse);
    let mut child = start(&lockhouse, &["run", "--json", "--language", "python", "-c", PROGRAMS[0]]);
    let question = approver.next("ask").await;
    approver.answer(&question, "approve", "once").await;
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).await.unwrap();
    let answer: Value = serde_json::from_str(&stdout).expect("only JSON");
    assert_eq!(answer["stdout"], "first\nsecond\tb\u{1b}\n", "{answer}");
    assert_eq!((&answer["stderr"], &answer["value"]), (&"beside\nlast\n".into(), &"the value".into()));
}

#[test]
fn live_output_has_the_limits_and_the_end_of_the_answer() {
    let programs = [
        ("python", "for i in range(40): print('x' * 1000, i)\n1/0", 1),
        (
            "typescript",
            "for (let i = 0; i < 40; i++) console.log('x'.repeat(1000), i)\nthrow new Error('no')",
            1,
        ),
        ("python", "while True: print('x' * 1000)", 4),
        ("typescript", "for (;;) console.log('x'.repeat(1000))", 4),
    ];
    let lockhouse = Lockhouse::new().config("[limits]\noutput_kib = 64\n");
    let mut table = Table::new("live output and the JSON answer");
    for (language, code, status) in programs {
        let run = ["run", "--language", language, "-c", code];
        let finished = lockhouse.run(&run);
        let answer = lockhouse.answer(language, code);
        let name = |what: &str| format!("{language}, exit status {status}: {what}");
        table.row(name("exit status"), equal(finished.status, Some(status)));
        let kind = answer["error"]["type"].as_str().unwrap_or("no error");
        table.row(name("the error"), ensure(finished.errors().contains(kind), &finished.stderr));
        let bytes = finished.stdout.len();
        let is_complete = if status == 4 { bytes <= 64 * 1024 } else { finished.stdout.ends_with("x 39\n") };
        table.row(name("stdout"), ensure(is_complete && bytes > 32 * 1024, bytes));
        table.row(
            name("no line twice"),
            equal(finished.stdout.matches("x 7\n").count(), usize::from(status == 1)),
        );
    }
    table.finish();
}

#[tokio::test]
async fn a_closed_standard_output_does_not_stop_the_program() {
    let lockhouse = lockhouse();
    let mut approver = Approver::start(&lockhouse);
    let mut child = start(&lockhouse, &["run", "--language", "python", "-c", PROGRAMS[0]]);
    drop(child.stdout.take());
    let question = approver.next("ask").await;
    approver.answer(&question, "approve", "once").await;
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0), "{stderr}");
    assert!(stderr.contains("last\n") && !stderr.contains("cannot write"), "{stderr}");
}
