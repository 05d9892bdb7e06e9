//! Tests of a front that a service of systemd starts, in an account of its own, and of a front for each address. The tests take the
//! part of systemd: they listen at the socket, and start a starter for each connection.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use lockhouse_tests::{Daemon, Lockhouse, Table, ensure, equal, fronts_of, is_alive, kill, wait_until};
use nix::sys::socket::{
    AddressFamily, Backlog, Shutdown, SockFlag, SockType, UnixAddr, accept4, bind, listen, shutdown, socket,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const OPEN: &str = "[http]\nauth = \"none\"\nlisten = [\"127.0.0.1:0\"]\n";
/// The account of the starters. It owns nothing.
const ACCOUNT: u32 = 61_777;

/// What systemd does for `lockhouse-http-front.socket` and its instances.
struct Starters {
    listener: Arc<OwnedFd>,
    children: Arc<Mutex<Vec<Child>>>,
    path: PathBuf,
}

impl Starters {
    /// Listens at a socket, and starts a starter as this user for each connection.
    fn listen(lockhouse: &Lockhouse, user: u32) -> Self {
        let path = lockhouse.path("http-front.sock");
        let program = lockhouse.program().to_owned();
        let listener =
            socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).expect("an address")).expect("the path is free");
        listen(&listener, Backlog::MAXCONN).expect("it listens");
        let (listener, children) = (Arc::new(listener), Arc::new(Mutex::new(Vec::new())));
        let (accepting, started) = (listener.clone(), children.clone());
        std::thread::spawn(move || {
            while let Ok(connection) = accept4(accepting.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
                let connection = owned(connection);
                let mut starter = Command::new(&program);
                starter.arg("http-front-starter").env_clear().stdin(connection).stdout(Stdio::null());
                starter.uid(user).gid(user);
                started.lock().push(starter.spawn().expect("the program starts"));
            }
        });
        Self { listener, children, path }
    }

    /// Returns the process of the newest starter, and that of its front.
    fn newest(&self) -> Option<(u32, u32)> {
        let starter = self.children.lock().last()?.id();
        let children = std::fs::read_to_string(format!("/proc/{starter}/task/{starter}/children")).ok()?;
        Some((starter, children.trim().parse().ok()?))
    }

    /// Waits until there is another starter than this one, with a front.
    async fn next(&self, before: u32) -> (u32, u32) {
        let other = || self.newest().filter(|(starter, _)| *starter != before);
        wait_until("another front", async || other()).await
    }
}

impl Drop for Starters {
    fn drop(&mut self) {
        // It wakes the thread up.
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        for child in self.children.lock().iter_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[allow(unsafe_code, reason = "a file descriptor that the kernel has just created")]
fn owned(descriptor: RawFd) -> OwnedFd {
    // SAFETY: nothing else knows its number.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn user_of(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("its user");
    users.split_whitespace().next().and_then(|user| user.parse().ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_starts_the_front_in_an_account_of_its_own() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut table = Table::new("a front that a service starts");
    let lockhouse = Lockhouse::new().config(OPEN);
    let starters = Starters::listen(&lockhouse, ACCOUNT);
    let socket = starters.path.to_str().expect("a path").to_owned();
    let serve = || lockhouse.command(&["serve", "--http", "--front-socket", &socket]);
    let daemon = Daemon::open(serve()).await;
    let run = async || daemon.http_client(None).run_code("python", "6 * 7").await["value"].clone();
    table.row("a run", equal(run().await, json!(42)));
    let (starter, front) = starters.newest().expect("a front");
    table.row("its user", equal(user_of(front), ACCOUNT));
    table.row("control: the engine's user", equal(user_of(daemon.pid()), 0));
    let health = lockhouse.command(&["status", "--json"]).output().expect("a status").stdout;
    let health = String::from_utf8_lossy(&health).into_owned();
    table.row("status names it", ensure(health.contains(&format!("\"pid\": {front},")), health));

    kill(front);
    let (second, front) = starters.next(starter).await;
    table.row("a run after the front was killed", equal(run().await, json!(42)));
    kill(second);
    wait_until("a front ends with its starter", async || (!is_alive(front)).then_some(())).await;
    let (third, front) = starters.next(second).await;
    table.row("a run after the starter was killed", equal(run().await, json!(42)));

    kill(daemon.pid());
    daemon.ended().await;
    wait_until("the front ends with the engine", async || (!is_alive(front)).then_some(())).await;
    let ended = || starters.children.lock().iter_mut().all(|child| matches!(child.try_wait(), Ok(Some(_))));
    wait_until(&format!("the starter {third} ends too"), async || ended().then_some(())).await;
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_in_the_wrong_account_and_a_missing_service_are_refused() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut table = Table::new("fronts that are refused");
    let lockhouse = Lockhouse::new().config(OPEN);
    let refused = |socket: &Path, words: &str| {
        let socket = socket.to_str().expect("a path");
        let ended = lockhouse.command(&["serve", "--http", "--front-socket", socket]).output();
        let ended = ended.expect("the program starts");
        let log = String::from_utf8_lossy(&ended.stderr).into_owned();
        equal(ended.status.code(), Some(7)).and_then(|()| ensure(log.contains(words), log))
    };
    let missing = lockhouse.path("none.sock");
    table.row("no service", refused(&missing, "systemctl status lockhouse-http-front.socket shows why"));
    let of_root = Starters::listen(&lockhouse, 0);
    table.row("root's", refused(&of_root.path, "the http-front is not sealed: Uid is 0"));
    table.finish();
}

/// Returns the addresses `HOST:PORT` at which a daemon listens, as its log names them.
fn addresses(daemon: &Daemon) -> Vec<String> {
    let log = daemon.log();
    let lines =
        log.lines().filter_map(|line| line.split("listening at http://").nth(1)?.strip_suffix("/mcp"));
    lines.map(str::to_owned).collect()
}

/// Sends a request on an open connection. Returns the first line of the response; `None` if the connection has been closed.
async fn status_line(connection: &mut TcpStream) -> Option<String> {
    let host = connection.peer_addr().ok()?;
    let request = format!("GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n");
    connection.write_all(request.as_bytes()).await.ok()?;
    let (mut response, mut part) = (Vec::new(), [0; 4096]);
    while !response.ends_with(b"}") && !response.ends_with(b"\n") {
        match connection.read(&mut part).await {
            Ok(count @ 1..) => response.extend_from_slice(&part[..count]),
            _ => return None,
        }
    }
    Some(String::from_utf8_lossy(&response).lines().next()?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_address_has_a_front_of_its_own() {
    let mut table = Table::new("fronts of two addresses");
    for (one_each, lost) in [(false, [true, true]), (true, [true, false])] {
        let config = OPEN.replace("0\"]", "0\", \"127.0.0.2:0\"]");
        let lockhouse = Lockhouse::new().config(&format!("{config}front_per_address = {one_each}\n"));
        let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
        let known = wait_until("both addresses are served", async || {
            Some(addresses(&daemon)).filter(|found| found.len() == 2)
        })
        .await;
        let fronts = fronts_of(daemon.pid());
        let name = |row: &str| format!("front_per_address = {one_each}: {row}");
        table.row(name("fronts"), equal(fronts.len(), if one_each { 2 } else { 1 }));
        let mut connections = Vec::new();
        for address in known {
            let mut connection = TcpStream::connect(&address).await.expect("a connection");
            let status = status_line(&mut connection).await;
            table.row(name("a connection"), equal(status, Some("HTTP/1.1 200 OK".to_owned())));
            connections.push(connection);
        }
        kill(fronts[0].pid);
        wait_until("another front", async || {
            let now = fronts_of(daemon.pid());
            (now.len() == fronts.len() && now.iter().all(|front| front.pid != fronts[0].pid)).then_some(())
        })
        .await;
        let mut found = Vec::new();
        for connection in &mut connections {
            found.push(status_line(connection).await.is_none());
        }
        found.sort_by_key(|is_lost| !is_lost);
        table.row(name("connections that end with one front"), equal(found, lost.to_vec()));
        let value = daemon.http_client(None).run_code("python", "6 * 7").await["value"].clone();
        table.row(name("a run afterwards"), equal(value, json!(42)));
    }
    table.finish();
}
