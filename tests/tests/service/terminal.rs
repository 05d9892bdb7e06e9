//! `lockhouse serve` over a standard input that stays open, such as a terminal.

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

/// A person or a client at the other side: what it reads and writes, and the two ends that Lockhouse has.
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
    // SAFETY: both numbers are written by the call, and the optional parameters are null.
    let status = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, null, null.cast(), null.cast()) };
    assert_eq!(status, 0, "a terminal");
    // SAFETY: openpty has just made both, and nobody else has them.
    let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    let read = File::from(ours.try_clone().unwrap());
    Streams { read, write: ours.into(), input: theirs.try_clone().unwrap(), output: theirs }
}

/// Node.js connects the programs that it starts by sockets.
fn socket() -> Streams {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (ours, theirs) = (OwnedFd::from(ours), OwnedFd::from(theirs));
    let read = File::from(ours.try_clone().unwrap());
    Streams { read, write: ours.into(), input: theirs.try_clone().unwrap(), output: theirs }
}

/// Starts it, and waits for its first answer and its processes.
async fn serving(lockhouse: &Lockhouse, streams: Streams) -> (Child, File, bool, Vec<Process>) {
    let Streams { read, mut write, input, output } = streams;
    let mut command = lockhouse.command(&["serve"]);
    let child = command.stdin(input).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    write.write_all(INITIALIZE.as_bytes()).unwrap();
    let answered = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(read).lines().map_while(Result::ok);
        // A terminal shows what is typed as well.
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
async fn a_signal_ends_it_although_the_input_stays_open_and_no_child_is_left() {
    let mut table = Table::new("signals while standard input is open");
    for (input, streams) in [("terminal", terminal as fn() -> Streams), ("socket", socket)] {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let lockhouse = Lockhouse::with_fixture();
            let (mut child, open, answered, family) = serving(&lockhouse, streams()).await;
            table.row(format!("{input}, {signal}: control: it serves"), equal(answered, true));
            kill(Pid::from_raw(child.id() as i32), signal).unwrap();
            let status = wait_until("it ends", async || child.try_wait().unwrap()).await;
            // At once: no zombie waits for init.
            let left: Vec<&Process> =
                family.iter().filter(|it| Path::new(&format!("/proc/{}", it.pid)).exists()).collect();
            drop(open);
            table.row(format!("{input}, {signal}: exit status"), equal(status.code(), Some(0)));
            table.row(format!("{input}, {signal}: no child, no zombie"), ensure(left.is_empty(), &left));
        }
    }
    table.finish();
}
