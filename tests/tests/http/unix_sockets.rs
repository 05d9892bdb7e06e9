//! Tests of the daemon on Unix domain sockets, and on sockets that systemd passes to it (socket activation).

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use lockhouse_tests::{Daemon, Lockhouse};

use crate::http::OPEN;

/// Creates a directory with these permission bits, and returns the path for a socket in it.
fn socket_path(lockhouse: &Lockhouse, mode: u32) -> String {
    let directory = lockhouse.path("daemon");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
    directory.join("mcp.sock").display().to_string()
}

async fn serve_at(lockhouse: &Lockhouse, path: &str) -> Daemon {
    Daemon::open(lockhouse.command(&["serve", "--listen", &format!("unix:{path}")])).await
}

#[tokio::test]
async fn a_unix_socket_is_limited_to_owner_and_group_and_removed_at_exit() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let path = socket_path(&lockhouse, 0o755);
    let daemon = serve_at(&lockhouse, &path).await;
    let found = std::fs::metadata(&path).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o660);
    // The daemon accepts every `Host` here, since no browser connects to a Unix socket. It still refuses a foreign
    // `Origin`.
    for http_client in [daemon.http_client(None), daemon.http_client(None).with("host", "anything.example")] {
        assert_eq!(http_client.run_code("python", "6 * 7").await["value"], 42);
    }
    let session = daemon.session(None, "2025-06-18").await;
    assert_eq!(session.run_code("typescript", "6 * 7").await["value"], 42);
    let page = daemon.http_client(None).with("origin", "https://evil.example");
    assert_eq!(page.request("tools/list", serde_json::json!({})).await.status, 403);

    let second = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
    assert_eq!(second.status, Some(7));
    assert!(second.stderr.contains("another process listens there"), "{second:?}");

    assert_eq!(daemon.terminate().await.status, Some(0));
    assert!(!std::path::Path::new(&path).exists(), "the socket is removed");
}

#[tokio::test]
async fn the_socket_of_a_process_that_was_killed_is_replaced() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let path = socket_path(&lockhouse, 0o700);
    let daemon = serve_at(&lockhouse, &path).await;
    daemon.kill().await;
    assert!(std::path::Path::new(&path).exists());
    let daemon = serve_at(&lockhouse, &path).await;
    assert_eq!(daemon.http_client(None).run_code("python", "6 * 7").await["value"], 42);
    // The daemon does not remove a socket that another process created at its path.
    std::fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    assert_eq!(daemon.terminate().await.status, Some(0));
    assert!(std::path::Path::new(&path).exists());
}

#[test]
fn a_directory_in_which_others_could_replace_the_socket_is_refused() {
    let lockhouse = Lockhouse::new().config(OPEN);
    for (mode, refused) in [(0o777, true), (0o1777, true), (0o775, true)] {
        let path = socket_path(&lockhouse, mode);
        let finished = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
        assert_eq!(finished.status, Some(7), "{mode:o}");
        assert_eq!(finished.stderr.contains("could replace the socket"), refused, "{finished:?}");
    }
    let path = socket_path(&lockhouse, 0o700);
    std::fs::write(&path, "a file").unwrap();
    let finished = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
    assert!(finished.stderr.contains("is not a socket"), "{finished:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    for (path, words) in [("relative.sock", "begins with /"), ("/nowhere/mcp.sock", "/nowhere: ")] {
        let finished = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
        assert!(finished.stderr.contains(words), "{finished:?}");
    }
}

#[tokio::test]
async fn running_out_of_file_descriptors_delays_connections() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[pool]\nidle = 1\n"));
    let path = socket_path(&lockhouse, 0o755);
    let served = lockhouse.command(&["serve", "--listen", &format!("unix:{path}")]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 90; exec \"$0\" \"$@\""])
        .arg(served.get_program())
        .args(served.get_args());
    command.env_clear().envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let daemon = Daemon::open(command).await;
    assert_eq!(daemon.http_client(None).run_code("python", "6 * 7").await["value"], 42);
    let open: Vec<UnixStream> = (0..120).map(|_| UnixStream::connect(&path).unwrap()).collect();
    daemon.wait_for_log("cannot accept connections").await;
    drop(open);
    assert_eq!(daemon.http_client(None).run_code("python", "6 * 7").await["value"], 42);
}

/// A Python program that opens sockets of the kinds in its first argument, and then executes the command in its other
/// arguments. The command inherits the sockets as it would from systemd (socket activation).
const SYSTEMD_SOCKETS: &str = "
import os, socket, sys
kinds, arguments = sys.argv[1].split(','), sys.argv[2:]
opened = []
for kind in kinds:
    if kind.startswith('/'):
        one = socket.socket(socket.AF_UNIX); one.bind(kind); one.listen()
    elif kind == 'datagram':
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(('127.0.0.1', 0))
    elif kind == 'unready':
        one = socket.socket(); one.bind(('127.0.0.1', 0))
    elif kind == 'file':
        one = open('/dev/null')
    else:
        one = socket.socket(); one.bind((kind, 0)); one.listen()
    opened.append(os.dup(one.fileno()))
opened = [os.dup2(number, 100 + at) for at, number in enumerate(opened)]
for at, number in enumerate(opened):
    os.dup2(number, 3 + at)
os.closerange(3 + len(opened), 200)
os.environ.update(LISTEN_FDS=str(len(opened)), LISTEN_PID=str(os.getpid()))
os.execv(arguments[0], arguments)
";

fn activated(lockhouse: &Lockhouse, kinds: &str, arguments: &[&str]) -> Command {
    let served = lockhouse.command(arguments);
    let mut command = Command::new("python3");
    command
        .args(["-c", SYSTEMD_SOCKETS, kinds])
        .arg(served.get_program())
        .args(served.get_args())
        .env_clear();
    command.envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(served.get_current_dir().unwrap());
    command
}

#[tokio::test]
async fn sockets_that_are_passed_are_served() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}listen = [\"127.0.0.1:1\"]\n"));
    let path = socket_path(&lockhouse, 0o755);
    let kinds = format!("127.0.0.1,{path}");
    for arguments in [&["serve", "--http"][..], &["serve"], &["serve", "--listen", "127.0.0.1:1"]] {
        let daemon = Daemon::open(activated(&lockhouse, &kinds, arguments)).await;
        let said = daemon.wait_for_log("listening at unix:").await;
        assert!(said.contains("sockets that systemd passed") && said.contains(&path), "{said}");
        assert_eq!(daemon.http_client(None).run_code("python", "6 * 7").await["value"], 42);
        let client = reqwest::Client::builder().no_proxy().unix_socket(path.as_str()).build().unwrap();
        let http_client = lockhouse_tests::HttpClient::with_client(client, "http://localhost/mcp", None);
        assert_eq!(http_client.run_code("python", "6 * 7").await["value"], 42);
        assert_eq!(daemon.terminate().await.status, Some(0));
        assert!(std::path::Path::new(&path).exists(), "it is systemd's to remove");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn unusable_passed_sockets_are_refused() {
    let lockhouse = Lockhouse::new();
    for (kinds, words) in [
        ("datagram", "is not a listening stream socket"),
        ("unready", "is not a listening stream socket"),
        ("file", "it is not a socket"),
        ("0.0.0.0", "can be reached from other hosts"),
    ] {
        let finished =
            lockhouse_tests::CommandOutput::run(&mut activated(&lockhouse, kinds, &["serve", "--http"]), b"");
        assert_eq!(finished.status, Some(2), "{kinds}: {finished:?}");
        assert!(finished.stderr.contains(words), "{kinds}: {finished:?}");
    }
}
