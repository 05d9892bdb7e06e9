//! Tests of the audit sink: a process of its own that writes the log of an engine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, wait_until};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::audit::ADD;

/// A Python program that calls `add`. It returns the sum, or the code and the message of the error if the call fails.
const TRY_ADD: &str = "from mcp_tools import ToolError\nfrom mcp_tools.fixture import add\n\
                       try: r = add(a=1, b=2)['sum']\nexcept ToolError as e: r = [e.code, e.message]\nr";

pub(super) struct Sink(Child);

impl Sink {
    pub(super) async fn start(lockhouse: &Lockhouse) -> Self {
        Self::start_with(lockhouse, &[]).await
    }

    /// Starts a sink with further options.
    pub(super) async fn start_with(lockhouse: &Lockhouse, options: &[&str]) -> Self {
        Self::started(lockhouse, lockhouse.command(&["audit", "sink"]).args(options)).await
    }

    /// Starts a sink for which a file of requirements applies.
    pub(super) async fn start_required(lockhouse: &Lockhouse, requirements: &Path) -> Self {
        let mut command = lockhouse.command(&["audit", "sink"]);
        Self::started(lockhouse, command.env("LOCKHOUSE_REQUIREMENTS", requirements)).await
    }

    async fn started(lockhouse: &Lockhouse, command: &mut Command) -> Self {
        let (socket, directory) = (socket(lockhouse), lockhouse.path("sink"));
        command.arg("--listen").arg(&socket).arg("--directory").arg(directory);
        let sink = Self(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_until("the sink accepts connections", async || {
            std::os::unix::net::UnixStream::connect(&socket).ok().map(drop)
        })
        .await;
        sink
    }

    pub(super) fn kill(self) {
        drop(self);
    }

    /// Ends the sink as `systemctl stop` does.
    pub(super) fn stop(mut self) {
        nix::sys::signal::kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the key of `[audit]` that names the sink.
pub(super) fn sink_key(lockhouse: &Lockhouse) -> String {
    format!("sink = \"unix:{}\"\n", socket(lockhouse).display())
}

fn socket(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.path("sink.sock")
}

/// Returns the paths of the segments of the sink.
pub(super) fn segments(lockhouse: &Lockhouse) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lockhouse.path("sink/log")).unwrap().map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".jsonl") && name != "segments.jsonl"
    };
    entries.filter(is_segment).collect()
}

pub(super) fn log(lockhouse: &Lockhouse) -> String {
    segments(lockhouse).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Runs a command as the account of the sink does.
pub(super) fn as_sink(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    let mut command = lockhouse.command(arguments);
    command
        .env("LOGS_DIRECTORY", lockhouse.path("sink/log"))
        .env("STATE_DIRECTORY", lockhouse.path("sink/keys"));
    CommandOutput::run(&mut command, b"")
}

#[tokio::test]
async fn the_sink_records_calls_before_they_are_made_and_calls_fail_while_it_is_away() {
    let lockhouse = Lockhouse::with_fixture();
    let address = format!("[audit]\n{}", sink_key(&lockhouse));
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

/// Each user has the digests of configuration files that were recorded last; the records go to the sink.
#[tokio::test]
async fn edits_of_files_by_hand_are_recorded_by_the_sink() {
    let lockhouse = Lockhouse::with_fixture();
    let key = format!("[audit]\n{}", sink_key(&lockhouse));
    let lockhouse = lockhouse.config(&key);
    let _sink = Sink::start(&lockhouse).await;
    let edits = || log(&lockhouse).matches("\"action\":\"edited\"").count();
    for expected in 0..2 {
        let session = lockhouse.serve().await;
        assert_eq!(session.run_code("python", ADD).await["value"], 3);
        session.close().await;
        assert_eq!(edits(), expected, "{}", log(&lockhouse));
        lockhouse.file("config/lockhouse/config.toml", format!("{key}[limits]\ntimeout_seconds = 20\n"));
    }
    assert!(lockhouse.path("state/lockhouse/audit-files.json").exists());
}

/// What a program prints that connects to a socket, greets as an engine does, and sends a record.
const FORGERY: &str = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
    def say(kind, text):\n    s.sendall(len(text).to_bytes(4,'big')+bytes([kind])+text)\n    print(s.recv(4096))\n\
    say(0, b'1')\nsay(1, b'{\"event\":\"call\",\"server\":\"forged\"}')\n";

/// With `network = true`, a sandboxed server can connect to Unix domain sockets. It could write records of calls that nobody
/// made, and use up what its account may write.
#[tokio::test]
async fn a_sandboxed_server_writes_no_record_to_the_sink() {
    let lockhouse = Lockhouse::with_fixture();
    let _sink = Sink::start(&lockhouse).await;
    let script = lockhouse.file("forgery.py", FORGERY).display().to_string();
    let socket = socket(&lockhouse).display().to_string();
    let forge = ["python3", script.as_str(), socket.as_str()];
    let mut table = Table::new("forged records");
    let run = |options: &[&str]| {
        let confined = [&["confine", "--read", "/"], options, &["--"], &forge[..]].concat();
        lockhouse.run(&confined)
    };
    let plain = CommandOutput::run(Command::new(forge[0]).args(&forge[1..]), b"");
    table.row("control: outside of a sandbox", ensure(log(&lockhouse).contains("forged"), &plain));
    let before = log(&lockhouse);
    let confined = run(&["--network"]);
    table.row(
        "in a sandbox with the network",
        ensure(confined.stdout.contains("a sandboxed server"), &confined),
    );
    table.row("no record", equal(log(&lockhouse), before.clone()));
    let confined = run(&[]);
    table.row("in a sandbox without", ensure(!confined.stdout.contains("b'"), &confined));
    table.row("no record", equal(log(&lockhouse), before));
    table.finish();
}

#[test]
fn an_engine_with_a_sink_that_never_answered_makes_no_call() {
    let lockhouse = Lockhouse::with_fixture();
    let address = format!("[audit]\n{}", sink_key(&lockhouse));
    let lockhouse = lockhouse.config(&address);
    let answer = lockhouse.answer("python", ADD);
    assert!(answer["error"]["message"].as_str().is_some_and(|words| words.contains("is away")), "{answer}");
}
