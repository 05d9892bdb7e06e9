//! Tests of a front in a process of its own that an attacker has taken over: the test stops the front's process, and sends to
//! the engine over the front's connections.
#![allow(
    unsafe_code,
    reason = "the system call that duplicates a descriptor of another process has no wrapper"
)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_tests::{
    Daemon, Lockhouse, OTHER_ACCOUNT, Table, UnixUser, ensure, equal, front_of, is_alive,
    permit_all_accounts, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    ControlMessage, MsgFlags, SockType, UnixAddr, getsockname, getsockopt, sendmsg, sockopt,
};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::raw_peer::{RawPeer, frame, head};

/// The numbers of the test's requests: far above those of the front.
const FIRST_REQUEST: u64 = 1 << 40;

/// A service whose front, a process of its own, is stopped.
struct Service {
    lockhouse: Lockhouse,
    daemon: Daemon,
    socket: PathBuf,
    front: u32,
}

impl Service {
    /// Starts a service that accepts root and another account.
    async fn start() -> Self {
        let config = format!("[http]\nauth = \"peer\"\nusers = [\"root\", {OTHER_ACCOUNT}]\n");
        let lockhouse = Lockhouse::new().config(&config);
        let socket = lockhouse.path("run/mcp.sock");
        let command = lockhouse.command(&["serve", "--listen", &format!("unix:{}", socket.display())]);
        let daemon = Daemon::open(command).await;
        permit_all_accounts(&socket);
        let front = front_of(daemon.pid()).expect("the process of the front").pid;
        Self { lockhouse, daemon, socket, front }
    }

    fn connect(&self, account: Option<&str>) -> UnixUser {
        UnixUser::connect(account, &self.socket)
    }

    /// Stops the front, and returns its connections to the engine: that for messages, and that over which the engine passes
    /// connections.
    fn take_over(&self) -> (HostileFront, OwnedFd) {
        kill(Pid::from_raw(self.front as i32), Signal::SIGSTOP).unwrap();
        let link = UnixStream::from(self.socket(SockType::Stream));
        // The mode is that of the front's descriptor too, until it goes on.
        link.set_nonblocking(false).unwrap();
        let peer = RawPeer::new(link);
        (HostileFront { peer, last: FIRST_REQUEST }, self.socket(SockType::SeqPacket))
    }

    /// Duplicates the last socket without an address that the front has got and that is of this type: its connection to the
    /// engine, or that over which it gets connections.
    fn socket(&self, of_type: SockType) -> OwnedFd {
        let is_it = |socket: &OwnedFd| {
            let is_unnamed =
                getsockname::<UnixAddr>(socket.as_raw_fd()).is_ok_and(|name| name.path().is_none());
            is_unnamed && getsockopt(socket, sockopt::SockType) == Ok(of_type)
        };
        let mut sockets = (3..32).rev().filter_map(|number| self.descriptor(number));
        sockets.find(is_it).expect("the socket")
    }

    /// Duplicates a descriptor of the front.
    fn descriptor(&self, number: i32) -> Option<OwnedFd> {
        // SAFETY: both calls return a new descriptor, which nothing else knows, or -1.
        unsafe {
            let process = libc::syscall(libc::SYS_pidfd_open, self.front, 0);
            let process = OwnedFd::from_raw_fd(i32::try_from(process).unwrap());
            let copy = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
            (copy >= 0).then(|| OwnedFd::from_raw_fd(i32::try_from(copy).unwrap()))
        }
    }
}

/// A front that says what it likes.
struct HostileFront {
    peer: RawPeer,
    last: u64,
}

impl HostileFront {
    fn ask(&mut self, grant: &Value, request: &Value) -> Value {
        self.last += 1;
        let request = json!({"Request": [self.last, head(grant), request]}).to_string();
        self.peer.send(&frame(self.last, &request));
        self.peer.response(self.last)
    }

    /// Returns the name of the client as whom this credential authenticates, or the refusal.
    fn authenticate(&mut self, credential: &Value) -> Value {
        let mut response = self.ask(&Value::Null, &json!({"Authenticate": credential}));
        match &response["Access"]["Ok"]["name"] {
            Value::String(name) => json!(name),
            _ => response.take(),
        }
    }

    fn connection(&mut self, number: u64) -> Value {
        self.authenticate(&json!({"UnixConnection": number}))
    }

    fn send(&mut self, message: &Value) {
        self.peer.send(&frame(0, &message.to_string()));
    }
}

fn unknown() -> Value {
    json!({"Access": {"Err": "UnknownConnection"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_is_taken_over_cannot_be_a_user_who_has_not_connected() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let service = Service::start().await;
    let mut user = service.connect(Some(OTHER_ACCOUNT));
    assert_eq!(user.run("1"), json!(1));
    let (mut front, _) = service.take_over();
    let mut table = Table::new("what a front that is taken over can say");
    let other = json!(format!("user:{OTHER_ACCOUNT}"));
    table.row("control: the connection that it has", equal(front.connection(1), other.clone()));
    let uid = front.authenticate(&json!({"Peer": {"uid": 0}}));
    table.row("a user id", ensure(uid["Invalid"].is_string(), &uid));
    let both = front.authenticate(&json!({"UnixConnection": {"id": 1, "uid": 0}}));
    table.row("a user id with a connection", ensure(both["Invalid"].is_string(), &both));
    for number in [0, 2, u64::MAX] {
        table.row(format!("an invented connection, {number}"), equal(front.connection(number), unknown()));
    }
    let root = service.connect(None);
    wait_until("root is connected", async || (front.connection(2) == json!("user:0")).then_some(())).await;
    table.row("it does not change the first one", equal(front.connection(1), other.clone()));
    for number in [2, 2, 3, u64::MAX] {
        front.send(&json!({"ConnectionClosed": number}));
    }
    table.row("a connection that it has closed", equal(front.connection(2), unknown()));
    table.row("control: the other one is open", equal(front.connection(1), other));
    drop((root, user));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_is_taken_over_cannot_make_connections() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let service = Service::start().await;
    let _user = service.connect(Some(OTHER_ACCOUNT));
    let (mut front, passing) = service.take_over();
    let other = json!(format!("user:{OTHER_ACCOUNT}"));
    wait_until("the user is connected", async || (front.connection(1) == other).then_some(())).await;
    let mut table = Table::new("descriptors that a front sends");
    // Who connects to a service of root has a socket whose other end is root.
    let path = service.lockhouse.path("run/root.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let to_root = UnixStream::connect(&path).unwrap();
    let (pipe, _writer) = std::io::pipe().unwrap();
    let descriptors = [to_root.as_raw_fd(), listener.as_raw_fd(), pipe.as_raw_fd()];
    for _ in 0..20 {
        for sent in [&descriptors[..1], &descriptors[1..2], &descriptors[2..], &descriptors, &[]] {
            send_descriptors(&passing, sent);
        }
    }
    wait_until("the engine kills the front", async || (!is_alive(service.front)).then_some(())).await;
    service.daemon.wait_for_log("the front sent where it only receives connections").await;
    wait_until("another front serves", async || {
        let (_, connected) = UnixUser::try_connect(None, Path::new(&service.socket));
        connected["error"].is_null().then_some(())
    })
    .await;
    table.row("control: another front serves", equal(service.connect(None).run("1"), json!(1)));
    table.row("the engine is there", ensure(is_alive(service.daemon.pid()), "it has ended"));
    table.finish();
}

/// Sends a packet with these descriptors. An error means that the engine takes nothing.
fn send_descriptors(socket: &OwnedFd, descriptors: &[i32]) {
    let (parts, flags) = ([std::io::IoSlice::new(&[0; 8])], MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL);
    let control = [ControlMessage::ScmRights(descriptors)];
    let control = if descriptors.is_empty() { &control[..0] } else { &control };
    let _ = sendmsg::<()>(socket.as_raw_fd(), &parts, control, flags, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_does_not_take_its_connections_gets_no_more_than_its_limit() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let service = Service::start().await;
    let (mut front, _) = service.take_over();
    let mut clients = Vec::new();
    for _ in 0..600 {
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Unix,
            nix::sys::socket::SockType::Stream,
            nix::sys::socket::SockFlag::SOCK_NONBLOCK,
            None,
        );
        let (socket, address) = (socket.unwrap(), nix::sys::socket::UnixAddr::new(&service.socket).unwrap());
        // The queue of the socket takes more than the test has.
        nix::sys::socket::connect(socket.as_raw_fd(), &address).unwrap();
        clients.push(socket);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut table = Table::new("connections that a front does not take");
    let accepted = (1..=600).filter(|number| front.connection(*number) == json!("user:0")).count();
    table.row("some are passed", ensure((100..500).contains(&accepted), accepted));
    table.row("the engine answers", equal(front.connection(10_000), unknown()));
    front.peer.stream.set_nonblocking(true).unwrap();
    kill(Pid::from_raw(service.front as i32), Signal::SIGCONT).unwrap();
    drop(clients);
    let mut own = service.connect(None);
    table.row("control: the front goes on and serves", equal(own.run("1"), json!(1)));
    table.finish();
}
