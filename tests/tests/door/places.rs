//! Unix domain sockets, and sockets that systemd opens.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;

use lockhouse_tests::{Door, Lockhouse};

use crate::OPEN;

/// A directory of its own below that of the test.
fn place(lockhouse: &Lockhouse, mode: u32) -> String {
    let directory = lockhouse.path("door");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
    directory.join("mcp.sock").display().to_string()
}

async fn at(lockhouse: &Lockhouse, path: &str) -> Door {
    Door::open(lockhouse.command(&["serve", "--listen", &format!("unix:{path}")])).await
}

#[tokio::test]
async fn a_unix_socket_is_for_its_owner_and_group_and_goes_with_its_process() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let path = place(&lockhouse, 0o755);
    let door = at(&lockhouse, &path).await;
    let found = std::fs::metadata(&path).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o660);
    // Whatever host is named, since no browser comes here; a page's origin is refused all the same.
    for visitor in [door.visitor(None), door.visitor(None).with("host", "anything.example")] {
        assert_eq!(visitor.run_code("python", "6 * 7").await["value"], 42);
    }
    let session = door.session(None, "2025-06-18").await;
    assert_eq!(session.run_code("typescript", "6 * 7").await["value"], 42);
    let page = door.visitor(None).with("origin", "https://evil.example");
    assert_eq!(page.request("tools/list", serde_json::json!({})).await.status, 403);

    let second = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
    assert_eq!(second.status, Some(7));
    assert!(second.stderr.contains("another process listens there"), "{second:?}");

    assert_eq!(door.terminate().await.status, Some(0));
    assert!(!std::path::Path::new(&path).exists(), "the socket is removed");
}

#[tokio::test]
async fn the_socket_of_a_process_that_was_killed_is_replaced() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let path = place(&lockhouse, 0o700);
    let door = at(&lockhouse, &path).await;
    door.signal(nix::sys::signal::Signal::SIGKILL);
    door.ended().await;
    assert!(std::path::Path::new(&path).exists());
    let door = at(&lockhouse, &path).await;
    assert_eq!(door.visitor(None).run_code("python", "6 * 7").await["value"], 42);
    // One that was put in its place meanwhile is not removed.
    std::fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    assert_eq!(door.terminate().await.status, Some(0));
    assert!(std::path::Path::new(&path).exists());
}

#[test]
fn a_place_where_others_could_put_a_socket_of_their_own_is_refused() {
    let lockhouse = Lockhouse::new().config(OPEN);
    for (mode, refused) in [(0o777, true), (0o1777, true), (0o775, true)] {
        let path = place(&lockhouse, mode);
        let finished = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
        assert_eq!(finished.status, Some(7), "{mode:o}");
        assert_eq!(finished.stderr.contains("could take the socket's place"), refused, "{finished:?}");
    }
    let path = place(&lockhouse, 0o700);
    std::fs::write(&path, "a file").unwrap();
    let finished = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
    assert!(finished.stderr.contains("is no socket"), "{finished:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    for (path, words) in [("relative.sock", "begins with /"), ("/nowhere/mcp.sock", "/nowhere: ")] {
        let finished = lockhouse.run(&["serve", "--listen", &format!("unix:{path}")]);
        assert!(finished.stderr.contains(words), "{finished:?}");
    }
}

/// Opens sockets as systemd does, and becomes the program.
const ACTIVATE: &str = "
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
    command.args(["-c", ACTIVATE, kinds]).arg(served.get_program()).args(served.get_args()).env_clear();
    command.envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(served.get_current_dir().unwrap());
    command
}

#[tokio::test]
async fn sockets_that_are_passed_are_served() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}listen = [\"127.0.0.1:1\"]\n"));
    let path = place(&lockhouse, 0o755);
    let kinds = format!("127.0.0.1,{path}");
    for arguments in [&["serve", "--http"][..], &["serve"], &["serve", "--listen", "127.0.0.1:1"]] {
        let door = Door::open(activated(&lockhouse, &kinds, arguments)).await;
        let said = door.says("listening at unix:").await;
        assert!(said.contains("sockets that systemd opened") && said.contains(&path), "{said}");
        assert_eq!(door.visitor(None).run_code("python", "6 * 7").await["value"], 42);
        let client = reqwest::Client::builder().no_proxy().unix_socket(path.as_str()).build().unwrap();
        let visitor = lockhouse_tests::Visitor::with_client(client, "http://localhost/mcp", None);
        assert_eq!(visitor.run_code("python", "6 * 7").await["value"], 42);
        assert_eq!(door.terminate().await.status, Some(0));
        assert!(std::path::Path::new(&path).exists(), "it is systemd's to remove");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_is_passed_and_cannot_be_served_is_refused() {
    let lockhouse = Lockhouse::new();
    for (kinds, words) in [
        ("datagram", "is no stream socket that listens"),
        ("unready", "is no stream socket that listens"),
        ("file", "it is no socket"),
        ("0.0.0.0", "can be reached from other hosts"),
    ] {
        let finished =
            lockhouse_tests::Finished::of(&mut activated(&lockhouse, kinds, &["serve", "--http"]), b"");
        assert_eq!(finished.status, Some(2), "{kinds}: {finished:?}");
        assert!(finished.stderr.contains(words), "{kinds}: {finished:?}");
    }
}
