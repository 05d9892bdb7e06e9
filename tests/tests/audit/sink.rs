//! Tests of the audit sink: a process of its own that writes the log of an engine.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, wait_until};

use crate::audit::ADD;

/// A Python program that calls `add`. It returns the sum, or the code and the message of the error if the call fails.
const TRY_ADD: &str = "from mcp_tools import ToolError\nfrom mcp_tools.fixture import add\n\
                       try: r = add(a=1, b=2)['sum']\nexcept ToolError as e: r = [e.code, e.message]\nr";

struct Sink(Child);

impl Sink {
    async fn start(lockhouse: &Lockhouse) -> Self {
        let (socket, directory) = (socket(lockhouse), lockhouse.path("sink"));
        let mut command = lockhouse.command(&["audit", "sink", "--listen"]);
        command.arg(&socket).arg("--directory").arg(directory);
        let sink = Self(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_until("the sink accepts connections", async || {
            std::os::unix::net::UnixStream::connect(&socket).ok().map(drop)
        })
        .await;
        sink
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn socket(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.path("sink.sock")
}

fn log(lockhouse: &Lockhouse) -> String {
    let entries = std::fs::read_dir(lockhouse.path("sink/log")).unwrap().map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    entries.filter(is_segment).map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Runs a command as the account of the sink does.
fn as_sink(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    let mut command = lockhouse.command(arguments);
    command
        .env("LOGS_DIRECTORY", lockhouse.path("sink/log"))
        .env("STATE_DIRECTORY", lockhouse.path("sink/keys"));
    CommandOutput::run(&mut command, b"")
}

#[tokio::test]
async fn the_sink_records_calls_before_they_are_made_and_calls_fail_while_it_is_away() {
    let lockhouse = Lockhouse::with_fixture();
    let address = format!("[audit]\nsink = \"unix:{}\"\n", socket(&lockhouse).display());
    let lockhouse = lockhouse.config(&address);
    let sink = Sink::start(&lockhouse).await;
    let session = lockhouse.serve().await;
    let run = async || session.run_code("python", TRY_ADD).await["value"].clone();
    let mut table = Table::new("the audit sink");
    table.row("control: a call", equal(run().await, 3.into()));
    let calls = log(&lockhouse).matches("\"event\":\"call\"").count();
    table.row("its record is in the log of the sink", equal(calls, 1));
    table.row("and in no file of the engine", equal(lockhouse.segments().len(), 0));
    let kernel = format!("\"uid\":{},\"process\":{}", nix::unistd::getuid(), session.pid());
    let log_now = log(&lockhouse);
    table.row("with the account and process of the engine", ensure(log_now.contains(&kernel), &log_now));
    let programs = std::fs::read_dir(lockhouse.path("sink/log/code")).unwrap().count();
    table.row("with the program", equal(programs, 1));
    sink.kill();
    let away = run().await;
    let is_refused =
        away[0] == "denied" && away[1].as_str().is_some_and(|words| words.contains("the audit sink at"));
    table.row("a call fails while the sink is away", ensure(is_refused, &away));
    let _sink = Sink::start(&lockhouse).await;
    wait_until("calls succeed again", async || (run().await == 3).then_some(())).await;
    let gap = log(&lockhouse);
    table.row("the gap is recorded", ensure(gap.contains("\"event\":\"gap\""), &gap));
    assert_eq!(session.close().await.status, Some(0));
    let query = lockhouse.run(&["audit", "query"]);
    let is_told = query.status == Some(7) && query.stderr.contains("the audit sink at");
    table.row("the user is told where the log is", ensure(is_told, &query));
    let read = as_sink(&lockhouse, &["audit", "query", "--event", "call"]);
    table.row("the account of the sink reads it", ensure(read.stdout.contains("fixture.add"), &read));
    let verified = as_sink(&lockhouse, &["audit", "verify"]);
    table.row("and verifies it", ensure(verified.status == Some(0), &verified));
    table.finish();
}

#[test]
fn an_engine_with_a_sink_that_never_answered_makes_no_call() {
    let lockhouse = Lockhouse::with_fixture();
    let address = format!("[audit]\nsink = \"unix:{}\"\n", socket(&lockhouse).display());
    let lockhouse = lockhouse.config(&address);
    let answer = lockhouse.answer("python", ADD);
    assert!(answer["error"]["message"].as_str().is_some_and(|words| words.contains("is away")), "{answer}");
}
