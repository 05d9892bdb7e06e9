//! The control socket itself: who reaches it, what is taken from it, and what it leaves behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lockhouse_tests::{Finished, Lockhouse, Session, Table, ensure, equal};

use crate::lockhouse;

const PATIENCE: Duration = Duration::from_secs(20);
/// Nobody's user and group.
const NOBODY: &str = "65534";

fn path(lockhouse: &Lockhouse, session: &Session) -> PathBuf {
    lockhouse.path(&format!("run/lockhouse/control-{}.sock", session.pid()))
}

/// Everything that comes back on these lines, until it is closed or nothing more comes.
fn said(path: &Path, lines: &[u8]) -> Result<String, std::io::Error> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // It may be closed before all is written.
    let _ = stream.write_all(lines);
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    Ok(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_ends_a_connection_and_nothing_else() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let path = path(&lockhouse, &session);
    let mut table = Table::new("first lines at the control socket");
    let long = [vec![b'x'; 100_000], b"\n".to_vec()].concat();
    for (name, lines, expected) in [
        ("another version", &b"{\"watch\": 2}\n"[..], "the first line is"),
        (
            "an answer",
            b"{\"answer\": {\"id\": 1, \"digest\": \"\", \"decision\": \"approve\"}}\n",
            "the first line is",
        ),
        ("no JSON", b"hello\n", "the first line is"),
        ("no text", b"\xff\xfe\n", ""),
        ("too long", &long, ""),
        (
            "too long a line after the first",
            &[b"{\"watch\": 1}\n".to_vec(), long.clone()].concat(),
            "{\"watching\":1}\n",
        ),
    ] {
        let said = said(&path, lines).unwrap();
        // What is too long may end a connection before it is told anything.
        let holds = match expected {
            "" => said.is_empty(),
            "{\"watching\":1}\n" => said.is_empty() || said == expected,
            words => said.contains(words),
        };
        table.row(name, ensure(holds && said.lines().count() <= 1, said));
    }
    let mut control = UnixStream::connect(&path).unwrap();
    control.set_read_timeout(Some(PATIENCE)).unwrap();
    control.write_all(b"{\"watch\": 1}\nnonsense\n{\"watch\": 1}\n{\"answer\": {\"id\": 7, \"digest\": \"\", \"decision\": \"approve\"}}\n").unwrap();
    let lines: Vec<String> = BufReader::new(&control).lines().take(4).map(Result::unwrap).collect();
    let words = [
        "{\"watching\":1}",
        "this is no answer",
        "you watch already",
        "there is no question with this number",
    ];
    let holds = lines.iter().zip(words).all(|(line, words)| line.contains(words));
    table.row("control: one who goes on", ensure(holds, lines));
    // All places are taken, and then free again.
    let many: Vec<UnixStream> = (0..15).map(|_| UnixStream::connect(&path).unwrap()).collect();
    table.row("one too many", equal(said(&path, b"{\"watch\": 2}\n").unwrap_or_default(), String::new()));
    drop(many);
    let free = lockhouse_tests::wait_until("a free place", async || {
        said(&path, b"{\"watch\": 2}\n").ok().filter(|said| !said.is_empty())
    });
    table.row("and free again", ensure(free.await.contains("the first line is"), ()));
    table.finish();
}

#[tokio::test]
async fn the_socket_is_for_its_user_alone_and_goes_with_its_process() {
    let lockhouse = lockhouse("");
    let mut table = Table::new("the control socket");
    let session = lockhouse.serve().await;
    let first = path(&lockhouse, &session);
    let mode = |path: &Path| std::fs::metadata(path).map(|found| found.permissions().mode() & 0o777).ok();
    table.row("its mode", equal(mode(&first), Some(0o600)));
    table.row("its directory's mode", equal(mode(first.parent().unwrap()), Some(0o700)));
    session.close().await;
    table.row("it goes with its process", ensure(!first.exists(), &first));
    let session = lockhouse.serve().await;
    let killed = path(&lockhouse, &session);
    session.kill().await;
    table.row("control: one who is killed leaves it", ensure(killed.exists(), &killed));
    let session = lockhouse.serve().await;
    let holds = !killed.exists() && path(&lockhouse, &session).exists();
    table.row("the next one clears it away", ensure(holds, &killed));
    table.finish();
}

/// Says that it watches, and prints what it is told first.
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
async fn another_user_is_not_heard_even_where_files_let_them_in() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let path = path(&lockhouse, &session);
    let mut table = Table::new("who connects to the control socket");
    let watch = |words: &[&str]| {
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).args(["/usr/bin/python3", "-c", WATCH]).arg(&path);
        Finished::of(&mut command, b"")
    };
    let own = watch(&["env"]);
    table.row("control: the same user", ensure(own.stdout.contains("watching"), own));
    if nix::unistd::geteuid().is_root() {
        let nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        let kept_out = watch(&nobody);
        table.row(
            "the directory keeps others out",
            ensure(kept_out.stderr.contains("PermissionError"), kept_out),
        );
        let open =
            |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        path.ancestors().take_while(|path| !path.ends_with("tmp")).for_each(open);
        let refused = watch(&nobody);
        table.row("and the kernel tells who it is", equal(refused.stdout.trim(), "b''"));
        let said = session.says("another user connected").await;
        table.row("it is told in the log", ensure(said.contains("was not heard"), said));
    }
    table.finish();
}
