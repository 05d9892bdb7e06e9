//! Tests that `lockhouse serve` ends on a signal while its standard input stays open, as it does at a terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use lockhouse_tests::{Lockhouse, Process, Table, descendants, ensure, equal, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"terminal","version":"0"}}}"#,
    "\n"
);

/// A connection to Lockhouse's standard input and output: `read` and `write` are the test's end, `input` and `output`
/// are Lockhouse's end.
struct Streams {
    read: File,
    write: File,
    input: OwnedFd,
    output: OwnedFd,
}

#[allow(unsafe_code, reason = "openpty has no wrapper here")]
fn terminal() -> Streams {
    let (mut ours, mut theirs) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: openpty writes both descriptors, and the optional parameters are null.
    let status = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, null, null.cast(), null.cast()) };
    assert_eq!(status, 0, "a terminal");
    // SAFETY: openpty has just created both descriptors, and nothing else owns them.
    let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    let read = File::from(ours.try_clone().unwrap());
    Streams { read, write: ours.into(), input: theirs.try_clone().unwrap(), output: theirs }
}

/// Returns a connection over a socket pair, which Node.js uses for the standard streams of its child processes.
fn socket() -> Streams {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (ours, theirs) = (OwnedFd::from(ours), OwnedFd::from(theirs));
    let read = File::from(ours.try_clone().unwrap());
    Streams { read, write: ours.into(), input: theirs.try_clone().unwrap(), output: theirs }
}

/// Starts `lockhouse serve` with this connection, and waits for its first response and for the processes that it
/// starts. Returns the process, the test's end of its standard input, whether the response was valid, and the started
/// processes.
async fn start_serving(lockhouse: &Lockhouse, streams: Streams) -> (Child, File, bool, Vec<Process>) {
    let Streams { read, mut write, input, output } = streams;
    let mut command = lockhouse.command(&["serve"]);
    let child = command.stdin(input).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    write.write_all(INITIALIZE.as_bytes()).unwrap();
    let answered = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(read).lines().map_while(Result::ok);
        // A terminal echoes the input.
        lines.take(3).any(|line| line.contains("\"serverInfo\"") && line.contains("\"id\":7"))
    });
    let answered = tokio::time::timeout(Duration::from_secs(30), answered).await.unwrap().unwrap();
    let family = wait_until("a server, zygotes and workers run", async || {
        let family = descendants(child.id());
        (family.len() > 4).then_some(family)
    })
    .await;
    (child, write, answered, family)
}

#[tokio::test]
async fn a_signal_ends_the_server_while_the_input_stays_open() {
    let mut table = Table::new("signals while standard input is open");
    for (input, streams) in [("terminal", terminal as fn() -> Streams), ("socket", socket)] {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let lockhouse = Lockhouse::with_fixture();
            let (mut child, open, answered, family) = start_serving(&lockhouse, streams()).await;
            table.row(format!("{input}, {signal}: control: it serves"), equal(answered, true));
            kill(Pid::from_raw(child.id() as i32), signal).unwrap();
            let status = wait_until("it ends", async || child.try_wait().unwrap()).await;
            // The children are reaped at once, so init inherits no zombie.
            let left: Vec<&Process> =
                family.iter().filter(|it| Path::new(&format!("/proc/{}", it.pid)).exists()).collect();
            drop(open);
            table.row(format!("{input}, {signal}: exit status"), equal(status.code(), Some(0)));
            table.row(format!("{input}, {signal}: no child, no zombie"), ensure(left.is_empty(), &left));
        }
    }
    table.finish();
}
