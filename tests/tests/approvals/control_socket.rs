//! Tests of the Unix socket at which local programs answer pending approvals: its permissions, the validation of its
//! input, and its cleanup.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lockhouse_tests::{CommandOutput, Lockhouse, Session, Table, ensure, equal};

use crate::approvals::lockhouse;

const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// The user and group ids of `nobody`.
const NOBODY: &str = "65534";

fn path(lockhouse: &Lockhouse, session: &Session) -> PathBuf {
    lockhouse.path(&format!("run/lockhouse/control-{}.sock", session.pid()))
}

/// Connects to the control socket, sends these lines, and returns all answers that arrive until the socket is closed or
/// sends nothing for `READ_TIMEOUT`. Returns `Err` if the connection fails.
fn send_lines(path: &Path, lines: &[u8]) -> Result<String, std::io::Error> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    // Writing fails if the socket is closed before all lines are written.
    let _ = stream.write_all(lines);
    let mut answered = String::new();
    let _ = stream.read_to_string(&mut answered);
    Ok(answered)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_message_closes_only_its_own_connection() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let path = path(&lockhouse, &session);
    let mut table = Table::new("first lines at the control socket");
    let long = [vec![b'x'; 100_000], b"\n".to_vec()].concat();
    for (name, lines, expected) in [
        ("another version", &b"{\"watch\": 2}\n"[..], "the first line must be"),
        (
            "an answer",
            b"{\"answer\": {\"id\": 1, \"digest\": \"\", \"decision\": \"approve\"}}\n",
            "the first line must be",
        ),
        ("no JSON", b"hello\n", "the first line must be"),
        ("no text", b"\xff\xfe\n", ""),
        ("too long", &long, ""),
        (
            "too long a line after the first",
            &[b"{\"watch\": 1}\n".to_vec(), long.clone()].concat(),
            "{\"watching\":1}\n",
        ),
    ] {
        let log_text = send_lines(&path, lines).unwrap();
        // A connection that sends too long a line may be closed before an error message is sent.
        let holds = match expected {
            "" => log_text.is_empty(),
            "{\"watching\":1}\n" => log_text.is_empty() || log_text == expected,
            words => log_text.contains(words),
        };
        table.row(name, ensure(holds && log_text.lines().count() <= 1, log_text));
    }
    let mut control = UnixStream::connect(&path).unwrap();
    control.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    control.write_all(b"{\"watch\": 1}\nnonsense\n{\"watch\": 1}\n{\"answer\": {\"id\": 7, \"digest\": \"\", \"decision\": \"approve\"}}\n").unwrap();
    let lines: Vec<String> = BufReader::new(&control).lines().take(4).map(Result::unwrap).collect();
    let words = [
        "{\"watching\":1}",
        "this is no answer",
        "this connection is watching already",
        "there is no question with this number",
    ];
    let holds = lines.iter().zip(words).all(|(line, words)| line.contains(words));
    table.row("control: a valid connection", ensure(holds, lines));
    // All connection slots are in use, and then free again.
    let many: Vec<UnixStream> = (0..15).map(|_| UnixStream::connect(&path).unwrap()).collect();
    table.row(
        "one connection too many",
        equal(send_lines(&path, b"{\"watch\": 2}\n").unwrap_or_default(), String::new()),
    );
    drop(many);
    let free = lockhouse_tests::wait_until("a free place", async || {
        send_lines(&path, b"{\"watch\": 2}\n").ok().filter(|log_text| !log_text.is_empty())
    });
    table.row("and free again", ensure(free.await.contains("the first line must be"), ()));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_version_1_is_answered() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let path = path(&lockhouse, &session);
    let gone = "there is no such result: it has expired, or newer ones needed its space";
    let refused = |reason: &str| format!("{{\"refused\":{{\"reason\":\"{reason}\"}}}}\n");
    let exact = |line: &str| format!("{line}\n");
    let mut table = Table::new("lines of version 1");
    for (line, expected) in [
        (r#"{"list_sessions": 1}"#, exact(r#"{"sessions":[]}"#)),
        (r#"{"end_session": "work"}"#, exact(r#"{"ended":[]}"#)),
        (r#"{"end_session_with_id": 7}"#, exact(r#"{"ended":[]}"#)),
        (r#"{"end_sessions": 1}"#, exact(r#"{"ended":[]}"#)),
        (r#"{"list_runs": 1}"#, exact(r#"{"runs":[]}"#)),
        (r#"{"end_run": "0"}"#, exact(r#"{"ended_runs":[]}"#)),
        (r#"{"end_runs": 1}"#, exact(r#"{"ended_runs":[]}"#)),
        (r#"{"list_results": 1}"#, exact(r#"{"results":[]}"#)),
        (r#"{"read_result": {"handle": "x", "offset": 0}}"#, refused(gone)),
        (r#"{"read_result": {"handle": "", "offset": 0}}"#, refused(gone)),
        (r#"{"find_file": "x"}"#, refused("there is no such file")),
        (r#"{"find_file": ""}"#, refused("this is no handle")),
        (r#"{"watch": 1, "observe": 1}"#, String::new()),
    ] {
        let answered = send_lines(&path, format!("{line}\n").as_bytes()).unwrap();
        let holds = if expected.is_empty() {
            answered.contains("the first line must be")
        } else {
            answered == expected
        };
        table.row(line, ensure(holds, answered));
    }
    for (line, beginning) in
        [(r#"{"health": 1}"#, r#"{"health":{"#), (r#"{"reload": 1}"#, r#"{"reloaded":{"in_force":true,"#)]
    {
        let answered = send_lines(&path, format!("{line}\n").as_bytes()).unwrap();
        table.row(line, ensure(answered.starts_with(beginning) && answered.lines().count() == 1, answered));
    }
    table.finish();
}

#[tokio::test]
async fn the_control_socket_is_private_and_removed_with_its_process() {
    let lockhouse = lockhouse("");
    let mut table = Table::new("the control socket");
    let session = lockhouse.serve().await;
    let first = path(&lockhouse, &session);
    let mode = |path: &Path| std::fs::metadata(path).map(|found| found.permissions().mode() & 0o777).ok();
    table.row("its mode", equal(mode(&first), Some(0o600)));
    table.row("its directory's mode", equal(mode(first.parent().unwrap()), Some(0o700)));
    session.close().await;
    table.row("the socket is removed with its process", ensure(!first.exists(), &first));
    let session = lockhouse.serve().await;
    let killed = path(&lockhouse, &session);
    session.kill().await;
    table.row("control: a killed process leaves its socket", ensure(killed.exists(), &killed));
    let session = lockhouse.serve().await;
    let holds = !killed.exists() && path(&lockhouse, &session).exists();
    table.row("the next process removes the stale socket", ensure(holds, &killed));
    table.finish();
}

/// A Python program that registers as an approver at a control socket, and prints the first bytes that it receives. It
/// prints `b''` if Lockhouse closes the connection instead.
const WATCH: &str = "\
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(sys.argv[1])
try:
    s.sendall(b'{\"watch\": 1}\\n')
    print(s.recv(100))
except (BrokenPipeError, ConnectionResetError):
    print(b'')
";

#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_rejected_even_if_file_modes_permit_the_connection() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let path = path(&lockhouse, &session);
    let mut table = Table::new("who connects to the control socket");
    let watch = |words: &[&str]| {
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).args(["/usr/bin/python3", "-c", WATCH]).arg(&path);
        CommandOutput::run(&mut command, b"")
    };
    let own = watch(&["env"]);
    table.row("control: the same user", ensure(own.stdout.contains("watching"), own));
    if nix::unistd::geteuid().is_root() {
        let nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        let kept_out = watch(&nobody);
        table.row(
            "the directory mode excludes other users",
            ensure(kept_out.stderr.contains("PermissionError"), kept_out),
        );
        let open =
            |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        path.ancestors().take_while(|path| !path.ends_with("tmp")).for_each(open);
        let refused = watch(&nobody);
        table.row("peer credentials reject the other user", equal(refused.stdout.trim(), "b''"));
        let log = session.wait_for_log("a connection of another user").await;
        table.row("the rejection is logged", ensure(log.contains("rejected"), log));
    }
    table.finish();
}
