//! Tests of upstream servers with the configuration key `sandbox`: a hostile server attempts forbidden actions. They
//! must fail, and must succeed in a control server without `sandbox`.
#![allow(unsafe_code, reason = "Landlock's version is asked for with a bare system call")]

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};
use serde_json::{Value, json};

use crate::sandbox::missing_protections::run_without;

/// The names of the upstream servers: `held` is confined, `networked` is confined but has network access, and `free` is
/// not confined.
const SERVERS: [&str; 3] = ["held", "networked", "free"];

/// The expected outcomes of an action that each server in [`SERVERS`] attempts, in the order of the servers.
type Expected = [Outcome; 3];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    Refused,
    /// The attempt may succeed or fail, depending on this host.
    Either,
}

use Outcome::{Done, Either, Refused};

const ALL_SERVERS: Expected = [Done, Done, Done];
const ONLY_UNCONFINED: Expected = [Refused, Refused, Done];
const WITH_NETWORK: Expected = [Refused, Done, Done];

/// The names of the attempts that are repeated in a child process of the server.
const CHILDREN_TRY: [&str; 10] = [
    "read",
    "execute",
    "tcp",
    "udp",
    "io_uring",
    "limits",
    "priority",
    "shared_memory",
    "user_namespace",
    "own_settings",
];

fn landlock_version() -> i64 {
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: a version query, which reads no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, 1) }
}

/// Returns the path of the Python interpreter, and the directory in which Python is installed.
pub(super) fn python() -> (String, String) {
    let told = "import sys; print(sys.executable); print(sys.base_prefix)";
    let output = Command::new("python3").args(["-c", told]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    (lines.next().unwrap(), lines.next().unwrap())
}

pub(super) fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/upstream/confined.py")
}

/// Creates the files that one server attempts to access. Each server has its own, so that it does not see changes by
/// another server.
fn create_files(lockhouse: &Lockhouse, server: &str) {
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
            let namespaces = if sandbox["user_namespaces"] == true { ", user_namespaces = true" } else { "" };
            config +=
                &format!("sandbox = {{read = {read}, write = {write}, network = {network}{namespaces}}}\n");
        }
        policy += &format!("[servers.{server}]\nallow = [\"*\"]\n");
    }
    lockhouse.config(&config).policy(&policy)
}

/// A process on the host that no upstream server has started. It is killed when the value is dropped.
struct Outsider(Child);

impl Drop for Outsider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_confined_server_has_only_its_configured_permissions() {
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
    let scoped = if landlock_version() >= 6 { ONLY_UNCONFINED } else { [Refused, Either, Done] };
    let signals = if landlock_version() >= 6 { ONLY_UNCONFINED } else { [Either, Either, Done] };
    let device = if nix::unistd::geteuid().is_root() { ONLY_UNCONFINED } else { [Refused; 3] };
    let unprivileged = [Done, Done, Either];
    let namespaces = if has_user_namespaces() { ONLY_UNCONFINED } else { [Refused; 3] };
    // Without `sandbox` the outcome depends on the host: on Yama, and on kernel support for queues and keyrings.
    let (traced, optional) = ([Refused, Refused, Either], [Refused, Refused, Either]);

    let lockhouse = configured(lockhouse, sandbox);
    SERVERS.iter().for_each(|server| create_files(&lockhouse, server));
    let sockets: Vec<UnixListener> = SERVERS
        .iter()
        .map(|server| UnixListener::bind(directory.join(server).join("write/socket")).unwrap())
        .collect();
    let rows: Vec<(&str, String, Expected)> = vec![
        ("read", "{own}/secret/key".into(), ONLY_UNCONFINED),
        ("read", "{own}/read/file".into(), ALL_SERVERS),
        ("read", "{own}/write/file".into(), ALL_SERVERS),
        ("list", "{own}/secret".into(), ONLY_UNCONFINED),
        ("list", "{own}/read".into(), ALL_SERVERS),
        ("list", "/".into(), ONLY_UNCONFINED),
        ("write", "{own}/secret/key".into(), ONLY_UNCONFINED),
        ("write", "{own}/secret/new".into(), ONLY_UNCONFINED),
        ("write", "{own}/read/file".into(), ONLY_UNCONFINED),
        ("write", "{own}/read/new".into(), ONLY_UNCONFINED),
        ("write", "{own}/write/file".into(), ALL_SERVERS),
        ("write", "{own}/write/new".into(), ALL_SERVERS),
        ("write", "/dev/null".into(), ALL_SERVERS),
        ("truncate", "{own}/secret/emptied".into(), ONLY_UNCONFINED),
        ("truncate", "{own}/write/file".into(), ALL_SERVERS),
        ("make_directory", "{own}/secret/directory".into(), ONLY_UNCONFINED),
        ("make_directory", "{own}/write/directory".into(), ALL_SERVERS),
        ("remove", "{own}/secret/removed".into(), ONLY_UNCONFINED),
        ("remove", "{own}/write/new".into(), ALL_SERVERS),
        ("hard_link", "{own}/secret/key:{own}/write/linked".into(), ONLY_UNCONFINED),
        ("hard_link", "{own}/write/file:{own}/write/directory/linked".into(), ALL_SERVERS),
        ("rename", "{own}/secret/moved:{own}/write/moved".into(), ONLY_UNCONFINED),
        ("rename", "{own}/write/file:{own}/write/directory/moved".into(), ALL_SERVERS),
        ("read_through_link", "{own}/secret/key:{own}/write/link".into(), ONLY_UNCONFINED),
        ("make_device", "{own}/write/device".into(), device),
        ("execute", "{own}/secret/program".into(), ONLY_UNCONFINED),
        ("execute", "{own}/write/program".into(), ONLY_UNCONFINED),
        ("execute", "{own}/read/program".into(), ALL_SERVERS),
        ("execute", "/bin/true".into(), ALL_SERVERS),
        ("read", format!("/proc/{pid}/environ"), ONLY_UNCONFINED),
        ("read_link", format!("/proc/{pid}/exe"), ONLY_UNCONFINED),
        ("signal", pid.to_string(), signals),
        ("privileges", String::new(), unprivileged),
        // An unconfined server inherits the file descriptors with which Lockhouse was started.
        ("descriptors", String::new(), [Done, Done, Either]),
        ("tcp", tcp_port.to_string(), WITH_NETWORK),
        ("udp", udp_port.to_string(), WITH_NETWORK),
        ("unix", "{own}/write/socket".into(), WITH_NETWORK),
        ("abstract", name, scoped),
        ("netlink", String::new(), WITH_NETWORK),
        ("pair", String::new(), ALL_SERVERS),
        ("io_uring", String::new(), [Refused, Either, Either]),
        ("limits", pid.to_string(), ONLY_UNCONFINED),
        ("limits_of_supervisor", String::new(), ONLY_UNCONFINED),
        ("priority", pid.to_string(), ONLY_UNCONFINED),
        ("priority_of_supervisor", String::new(), ONLY_UNCONFINED),
        ("priority_of_user", String::new(), [Refused; 3]),
        ("scheduler", pid.to_string(), ONLY_UNCONFINED),
        ("scheduler_parameters", pid.to_string(), ONLY_UNCONFINED),
        ("processors", pid.to_string(), ONLY_UNCONFINED),
        ("io_priority", pid.to_string(), ONLY_UNCONFINED),
        ("compare", pid.to_string(), traced),
        ("signal_supervisor", String::new(), ONLY_UNCONFINED),
        ("pidfd_signal", pid.to_string(), ONLY_UNCONFINED),
        ("signal_owner", pid.to_string(), ONLY_UNCONFINED),
        ("join_group", pid.to_string(), ONLY_UNCONFINED),
        ("shared_memory", String::new(), ONLY_UNCONFINED),
        ("semaphores", String::new(), ONLY_UNCONFINED),
        ("messages", String::new(), ONLY_UNCONFINED),
        ("queue", format!("lockhouse-{pid}"), optional),
        ("add_key", format!("lockhouse-{pid}"), optional),
        ("keyring", String::new(), optional),
        ("user_namespace", String::new(), namespaces),
        ("cloned_user_namespace", String::new(), namespaces),
        ("thread", String::new(), ALL_SERVERS),
        ("own_settings", String::new(), ALL_SERVERS),
        ("own_child", String::new(), ALL_SERVERS),
    ];
    let mut table = Table::new("attempts of a server and of its child process");
    for (server, column) in SERVERS.iter().zip(0..) {
        let own = directory.join(server).display().to_string();
        let target = |target: &str| target.replace("{own}", &own);
        let tries: Vec<Value> = rows.iter().map(|(what, on, _)| json!([what, target(on), false])).collect();
        // Attempts that change a file are not repeated.
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

/// Whether this host lets this account create user namespaces.
fn has_user_namespaces() -> bool {
    Command::new("unshare").args(["--user", "true"]).status().is_ok_and(|status| status.success())
}

/// A browser's own sandbox needs user namespaces; nothing else is permitted with them.
#[test]
fn user_namespaces_are_permitted_by_their_key_only() {
    let lockhouse = Lockhouse::new();
    let secret = lockhouse.file("secret", "SEKRET");
    let sandbox = |server: &str| {
        let permits = server == "networked";
        (server != "free").then(|| json!({"read": [python().1, program()], "write": [], "network": false, "user_namespaces": permits}))
    };
    let lockhouse = configured(lockhouse, sandbox);
    let permitted = if has_user_namespaces() { WITH_NETWORK } else { [Refused; 3] };
    let mut table = Table::new("servers with and without user_namespaces");
    for (server, column) in SERVERS.iter().zip(0..) {
        for (what, target, expected) in [
            ("user_namespace", String::new(), permitted),
            ("cloned_user_namespace", String::new(), permitted),
            ("thread", String::new(), ALL_SERVERS),
            ("own_child", String::new(), ALL_SERVERS),
            ("read", secret.display().to_string(), ONLY_UNCONFINED),
        ] {
            let code =
                format!("from mcp_tools.{server} import attempt\nattempt(what='{what}', target='{target}')");
            let answer = lockhouse.answer("python", &code);
            let outcome = if answer["value"] == "done" { Done } else { Refused };
            let expected = expected[column];
            table.row(format!("{server}: {what}: {expected:?}"), ensure(outcome == expected, &answer));
        }
    }
    table.finish();
}

#[test]
fn without_landlock_signal_scopes_the_seccomp_filter_protects_the_supervisor() {
    let usable = json!([python().1, program()]);
    let sandbox = |server: &str| {
        (server != "free").then(|| json!({"read": usable, "write": [], "network": server == "networked"}))
    };
    let lockhouse = configured(Lockhouse::new(), sandbox);
    let outsider = Outsider(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = outsider.0.id().to_string();
    let mut table = Table::new("attempts of a server on a kernel with Landlock version 5");
    for (server, column) in SERVERS.iter().zip(0..) {
        for (what, expected) in [
            ("signal_supervisor", ONLY_UNCONFINED),
            ("limits_of_supervisor", ONLY_UNCONFINED),
            ("limits", ONLY_UNCONFINED),
            ("pidfd_signal", ONLY_UNCONFINED),
            ("signal_owner", ONLY_UNCONFINED),
            ("join_group", ONLY_UNCONFINED),
            ("own_child", ALL_SERVERS),
        ] {
            let code = format!(
                "from mcp_tools.{server} import attempt\nprint('<' + attempt(what='{what}', target='{pid}') + '>')"
            );
            let ran = run_without(&lockhouse, "landlock=5", &["run", "--language", "python", "-c", &code]);
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
fn a_server_that_cannot_be_confined_is_not_started_and_the_reason_is_reported() {
    let lockhouse = |read: &Value| {
        let sandbox =
            |server: &str| (server == "held").then(|| json!({"read": read, "write": [], "network": false}));
        configured(Lockhouse::new(), sandbox)
    };
    let usable = json!([python().1, program()]);
    let mut table = Table::new("missing features of the kernel or the host");
    for (lack, read, words) in [
        ("seccomp", &usable, "seccomp: Function not implemented"),
        ("no_new_privs", &usable, "no_new_privs"),
        ("close_range", &usable, "close_range"),
        ("pidfd", &json!(["/nonexistent"]), "sandbox.read has \"/nonexistent\""),
    ] {
        let listed = run_without(&lockhouse(read), lack, &["tools", "list"]);
        let told = listed.stderr.contains(words) || listed.stdout.contains(words);
        let others = listed.stdout.contains("free");
        table.row(format!("{lack}, read = {read}: {words}"), ensure(told && others, &listed));
    }
    // The check of the configuration would refuse this path earlier.
    for (path, status, words) in [("some/where", 7, "not an absolute path"), ("/usr", 0, "")] {
        let confined = Lockhouse::new().run(&["confine", "--read", path, "--", "/bin/true"]);
        let outcome = ensure(confined.status == Some(status) && confined.stderr.contains(words), &confined);
        table.row(format!("lockhouse confine --read {path}"), outcome);
    }
    // Control: these missing features do not prevent confinement.
    for lack in ["pidfd", "landlock=3", "namespaces", "landlock"] {
        let listed = run_without(&lockhouse(&usable), lack, &["tools", "list", "--json"]);
        table.row(
            format!("{lack}: it is confined"),
            ensure(listed.stdout.matches("attempt").count() == 3, &listed),
        );
    }
    table.finish();
}

/// With `network = true`, a sandboxed server can connect to Unix domain sockets. It could answer the questions about its own
/// calls.
#[tokio::test]
async fn a_confined_process_cannot_use_the_control_socket() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    session.run_code("python", "1").await;
    let status = |confined: bool| {
        let own = lockhouse.command(&["status"]);
        let mut command = Command::new(own.get_program());
        if confined {
            command.args(["confine", "--network", "--read", "/", "--"]).arg(own.get_program());
        }
        command.args(own.get_args()).env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        CommandOutput::run(&mut command, b"")
    };
    let mut table = Table::new("the control socket");
    let shown = status(false);
    table.row("control: outside of a sandbox", ensure(shown.stdout.contains("(process "), &shown));
    let shown = status(true);
    table.row("in a sandbox", ensure(shown.stdout.contains("No Lockhouse is running."), &shown));
    let log = session.close().await.stderr;
    table.row("the log has it", ensure(log.contains("of a sandboxed server, to the control socket"), &log));
    table.finish();
}
