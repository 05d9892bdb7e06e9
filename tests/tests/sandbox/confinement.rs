//! Upstream servers with `sandbox`: a hostile one tries what it must not do, and must be able to do without it.
#![allow(unsafe_code, reason = "Landlock's version is asked for with a bare system call")]

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::{Value, json};

use crate::protections::lacking;

/// Servers: confined, confined with a network, and free.
const SERVERS: [&str; 3] = ["held", "networked", "free"];

/// What must come of an attempt in each of [`SERVERS`].
type Expected = [Outcome; 3];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    Refused,
    /// It depends on this host.
    Either,
}

use Outcome::{Done, Either, Refused};

const EVERYWHERE: Expected = [Done, Done, Done];
const HELD: Expected = [Refused, Refused, Done];
const WITH_NETWORK: Expected = [Refused, Done, Done];

/// What a child of the server tries as well.
const CHILDREN_TRY: [&str; 9] =
    ["read", "execute", "tcp", "udp", "io_uring", "limits", "priority", "shared_memory", "own_settings"];

fn landlock_version() -> i64 {
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: a query for the version; it reads no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, 1) }
}

/// The interpreter and where its library is.
fn python() -> (String, String) {
    let told = "import sys; print(sys.executable); print(sys.base_prefix)";
    let output = Command::new("python3").args(["-c", told]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    (lines.next().unwrap(), lines.next().unwrap())
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/upstream/confined.py")
}

/// Files of each server's own, so that none finds what another has done to them.
fn files(lockhouse: &Lockhouse, server: &str) {
    for name in ["secret/key", "secret/emptied", "secret/removed", "secret/moved", "read/file", "write/file"]
    {
        lockhouse.file(&format!("{server}/{name}"), "SEKRET");
    }
    for name in ["secret/program", "read/program", "write/program"] {
        std::fs::copy("/bin/true", lockhouse.path(&format!("{server}/{name}"))).unwrap();
    }
}

fn configured(lockhouse: Lockhouse, sandbox: impl Fn(&str) -> Option<Value>) -> Lockhouse {
    let (interpreter, _) = python();
    let (mut config, mut policy) = (String::new(), "version = 1\n".to_owned());
    for server in SERVERS {
        let program = program();
        config += &format!("[servers.{server}]\ncommand = {interpreter:?}\nargs = [{program:?}]\n");
        if let Some(sandbox) = sandbox(server) {
            let [read, write, network] = ["read", "write", "network"].map(|key| &sandbox[key]);
            config += &format!("sandbox = {{read = {read}, write = {write}, network = {network}}}\n");
        }
        policy += &format!("[servers.{server}]\nallow = [\"*\"]\n");
    }
    lockhouse.config(&config).policy(&policy)
}

/// Somebody else's process.
struct Outsider(Child);

impl Drop for Outsider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_confined_server_does_what_it_was_given_and_nothing_else() {
    let lockhouse = Lockhouse::new();
    let directory = lockhouse.path("");
    let (_, prefix) = python();
    let sandbox = |server: &str| {
        let own = |below: &str| directory.join(server).join(below);
        (server != "free").then(|| {
            json!({"read": [prefix, program(), own("read")], "write": [own("write")], "network": server == "networked"})
        })
    };
    let outsider = Outsider(Command::new("sleep").arg("600").env("TOKEN", "SEKRET").spawn().unwrap());
    let pid = outsider.0.id();
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let [tcp_port, udp_port] = [tcp.local_addr(), udp.local_addr()].map(|address| address.unwrap().port());
    let name = format!("lockhouse-confinement-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let scoped = if landlock_version() >= 6 { HELD } else { [Refused, Either, Done] };
    let signals = if landlock_version() >= 6 { HELD } else { [Either, Either, Done] };
    let device = if nix::unistd::geteuid().is_root() { HELD } else { [Refused; 3] };
    let unprivileged = [Done, Done, Either];
    // Without `sandbox` the host decides: Yama, or a kernel without queues and keyrings.
    let (traced, optional) = ([Refused, Refused, Either], [Refused, Refused, Either]);

    let lockhouse = configured(lockhouse, sandbox);
    SERVERS.iter().for_each(|server| files(&lockhouse, server));
    let sockets: Vec<UnixListener> = SERVERS
        .iter()
        .map(|server| UnixListener::bind(directory.join(server).join("write/socket")).unwrap())
        .collect();
    let rows: Vec<(&str, String, Expected)> = vec![
        ("read", "{own}/secret/key".into(), HELD),
        ("read", "{own}/read/file".into(), EVERYWHERE),
        ("read", "{own}/write/file".into(), EVERYWHERE),
        ("list", "{own}/secret".into(), HELD),
        ("list", "{own}/read".into(), EVERYWHERE),
        ("list", "/".into(), HELD),
        ("write", "{own}/secret/key".into(), HELD),
        ("write", "{own}/secret/new".into(), HELD),
        ("write", "{own}/read/file".into(), HELD),
        ("write", "{own}/read/new".into(), HELD),
        ("write", "{own}/write/file".into(), EVERYWHERE),
        ("write", "{own}/write/new".into(), EVERYWHERE),
        ("write", "/dev/null".into(), EVERYWHERE),
        ("truncate", "{own}/secret/emptied".into(), HELD),
        ("truncate", "{own}/write/file".into(), EVERYWHERE),
        ("make_directory", "{own}/secret/directory".into(), HELD),
        ("make_directory", "{own}/write/directory".into(), EVERYWHERE),
        ("remove", "{own}/secret/removed".into(), HELD),
        ("remove", "{own}/write/new".into(), EVERYWHERE),
        ("hard_link", "{own}/secret/key:{own}/write/linked".into(), HELD),
        ("hard_link", "{own}/write/file:{own}/write/directory/linked".into(), EVERYWHERE),
        ("rename", "{own}/secret/moved:{own}/write/moved".into(), HELD),
        ("rename", "{own}/write/file:{own}/write/directory/moved".into(), EVERYWHERE),
        ("read_through_link", "{own}/secret/key:{own}/write/link".into(), HELD),
        ("make_device", "{own}/write/device".into(), device),
        ("execute", "{own}/secret/program".into(), HELD),
        ("execute", "{own}/write/program".into(), HELD),
        ("execute", "{own}/read/program".into(), EVERYWHERE),
        ("execute", "/bin/true".into(), EVERYWHERE),
        ("read", format!("/proc/{pid}/environ"), HELD),
        ("read_link", format!("/proc/{pid}/exe"), HELD),
        ("signal", pid.to_string(), signals),
        ("privileges", String::new(), unprivileged),
        // Without `sandbox` it has what Lockhouse itself was started with.
        ("descriptors", String::new(), [Done, Done, Either]),
        ("tcp", tcp_port.to_string(), WITH_NETWORK),
        ("udp", udp_port.to_string(), WITH_NETWORK),
        ("unix", "{own}/write/socket".into(), WITH_NETWORK),
        ("abstract", name, scoped),
        ("netlink", String::new(), WITH_NETWORK),
        ("pair", String::new(), EVERYWHERE),
        ("io_uring", String::new(), [Refused, Either, Either]),
        ("limits", pid.to_string(), HELD),
        ("limits_of_supervisor", String::new(), HELD),
        ("priority", pid.to_string(), HELD),
        ("priority_of_supervisor", String::new(), HELD),
        ("priority_of_user", String::new(), [Refused; 3]),
        ("scheduler", pid.to_string(), HELD),
        ("scheduler_parameters", pid.to_string(), HELD),
        ("processors", pid.to_string(), HELD),
        ("io_priority", pid.to_string(), HELD),
        ("compare", pid.to_string(), traced),
        ("signal_supervisor", String::new(), HELD),
        ("pidfd_signal", pid.to_string(), HELD),
        ("signal_owner", pid.to_string(), HELD),
        ("join_group", pid.to_string(), HELD),
        ("shared_memory", String::new(), HELD),
        ("semaphores", String::new(), HELD),
        ("messages", String::new(), HELD),
        ("queue", format!("lockhouse-{pid}"), optional),
        ("add_key", format!("lockhouse-{pid}"), optional),
        ("keyring", String::new(), optional),
        ("own_settings", String::new(), EVERYWHERE),
        ("own_child", String::new(), EVERYWHERE),
    ];
    let mut table = Table::new("what a server does by itself and by a child of it");
    for (server, column) in SERVERS.iter().zip(0..) {
        let own = directory.join(server).display().to_string();
        let target = |target: &str| target.replace("{own}", &own);
        let tries: Vec<Value> = rows.iter().map(|(what, on, _)| json!([what, target(on), false])).collect();
        // What changes a file has been done by then.
        let again = rows.iter().filter(|(what, ..)| CHILDREN_TRY.contains(what));
        let again: Vec<_> = again.filter(|(_, on, _)| !on.ends_with("write/file")).collect();
        let children: Vec<Value> =
            again.iter().map(|(what, on, _)| json!([what, target(on), true])).collect();
        let all = json!([tries, children]).to_string();
        let code = format!(
            "import json\nfrom mcp_tools.{server} import attempt\n\
             [[attempt(what=w, target=t, child=c) for w, t, c in part] for part in json.loads({all:?})]"
        );
        let answer = lockhouse.answer("python", &code);
        let rows = rows.iter().map(|row| (row, false)).chain(again.iter().map(|row| (*row, true)));
        let found = [&answer["value"][0], &answer["value"][1]];
        let found = found.into_iter().flat_map(|part| part.as_array().unwrap_or_else(|| panic!("{answer}")));
        for (((what, on, expected), by_child), found) in rows.zip(found) {
            let outcome = if found == "done" { Done } else { Refused };
            let expected = expected[column];
            let by = if by_child { " (a child)" } else { "" };
            let row = format!("{server}: {what} {on}{by}: {expected:?}");
            table.row(row, ensure(expected == Either || outcome == expected, found));
        }
    }
    drop(sockets);
    table.finish();
}

#[test]
fn where_landlock_knows_of_no_signals_the_filter_alone_protects_the_supervisor() {
    let usable = json!([python().1, program()]);
    let sandbox = |server: &str| {
        (server != "free").then(|| json!({"read": usable, "write": [], "network": server == "networked"}))
    };
    let lockhouse = configured(Lockhouse::new(), sandbox);
    let outsider = Outsider(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = outsider.0.id().to_string();
    let mut table = Table::new("what a server does on a kernel with version 5 of Landlock");
    for (server, column) in SERVERS.iter().zip(0..) {
        for (what, expected) in [
            ("signal_supervisor", HELD),
            ("limits_of_supervisor", HELD),
            ("limits", HELD),
            ("pidfd_signal", HELD),
            ("signal_owner", HELD),
            ("join_group", HELD),
            ("own_child", EVERYWHERE),
        ] {
            let code = format!(
                "from mcp_tools.{server} import attempt\nprint('<' + attempt(what='{what}', target='{pid}') + '>')"
            );
            let ran = lacking(&lockhouse, "landlock=5", &["run", "--language", "python", "-c", &code]);
            let outcome = if ran.stdout.contains("<done>") { Done } else { Refused };
            let is_told = ran.stdout.contains('<');
            let expected = expected[column];
            table
                .row(format!("{server}: {what}: {expected:?}"), ensure(is_told && outcome == expected, &ran));
        }
    }
    table.finish();
}

#[test]
fn a_server_that_cannot_be_confined_is_not_started_and_why_is_told() {
    let lockhouse = |read: &Value| {
        let sandbox =
            |server: &str| (server == "held").then(|| json!({"read": read, "write": [], "network": false}));
        configured(Lockhouse::new(), sandbox)
    };
    let usable = json!([python().1, program()]);
    let mut table = Table::new("what the kernel, or the host, does not give");
    for (lack, read, words) in [
        ("landlock", &usable, "this kernel has no Landlock"),
        ("landlock=2", &usable, "version 2 of Landlock"),
        ("seccomp", &usable, "seccomp: Function not implemented"),
        ("no_new_privs", &usable, "no_new_privs"),
        ("close_range", &usable, "close_range"),
        ("pidfd", &json!(["/nonexistent"]), "sandbox.read has \"/nonexistent\""),
    ] {
        let listed = lacking(&lockhouse(read), lack, &["tools", "list"]);
        let told = listed.stderr.contains(words) || listed.stdout.contains(words);
        let others = listed.stdout.contains("free");
        table.row(format!("{lack}, read = {read}: {words}"), ensure(told && others, &listed));
    }
    // The configuration refuses such a path before.
    for (path, status, words) in [("some/where", 7, "not an absolute path"), ("/usr", 0, "")] {
        let confined = Lockhouse::new().run(&["confine", "--read", path, "--", "/bin/true"]);
        let outcome = ensure(confined.status == Some(status) && confined.stderr.contains(words), &confined);
        table.row(format!("lockhouse confine --read {path}"), outcome);
    }
    // What takes nothing away, for comparison.
    for lack in ["pidfd", "landlock=3", "namespaces"] {
        let listed = lacking(&lockhouse(&usable), lack, &["tools", "list", "--json"]);
        table.row(
            format!("{lack}: it is confined"),
            ensure(listed.stdout.matches("attempt").count() == 3, &listed),
        );
    }
    table.finish();
}
