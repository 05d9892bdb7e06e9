//! What a front must not reach: files and sockets as the engine has them, which every account may use here, so that only the
//! sandbox protects them; and the attacks on them and on other processes.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use lockhouse_sandbox::Layer;
use lockhouse_tests::NativeAttack;
use tempfile::TempDir;

use crate::sandbox::attack_targets::make_world_writable;

const FILES: [&str; 9] = [
    "policy.toml",
    "lockhouse.toml",
    "requirements.toml",
    "tokens.json",
    "tls-key.pem",
    "audit.jsonl",
    "audit.key",
    "approvals.json",
    "secrets/upstream",
];

/// The files and sockets.
pub(super) struct Targets {
    directory: TempDir,
    name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    _sockets: [UnixListener; 2],
}

/// An attack: the request with placeholders, the layers that stop it if root starts the service, those for an ordinary user
/// where they differ, and what it needs.
type Row = (&'static str, &'static str, Option<&'static str>, &'static [&'static str]);

const FILE: &str = "seccomp landlock namespaces";
const PROCESS: &str = "seccomp landlock privileges";
const PROCESS_OF_USER: Option<&str> = Some("seccomp landlock");
const OTHER: &str = "seccomp landlock hardening privileges";
const OTHER_OF_USER: Option<&str> = Some("seccomp landlock hardening");

const ATTACKS: &[Row] = &[
    ("append {DIR}/audit.jsonl", FILE, None, &[]),
    ("append {DIR}/policy.toml", FILE, None, &[]),
    ("create {DIR}/new-{PARENT}", FILE, None, &[]),
    ("unix {DIR}/control.sock", "seccomp namespaces landlock", None, &["landlock 9"]),
    ("abstract {ABSTRACT}", FILE, None, &["landlock 6"]),
    ("tcp {TCP}", FILE, None, &["landlock 4"]),
    ("mptcp {TCP}", "seccomp namespaces", None, &["feature MPTCP"]),
    ("udp {UDP}", "seccomp namespaces", None, &[]),
    ("end-listener", "seccomp", None, &[]),
    ("connect-listener {TCP}", "seccomp landlock", None, &["feature TCP fast open", "patched landlock"]),
    ("pass", "seccomp", None, &[]),
    ("open /proc/{PARENT}/environ", "seccomp landlock namespaces privileges", Some(FILE), &[]),
    ("open /proc/{PARENT}/mem", "seccomp landlock namespaces privileges", Some(FILE), &[]),
    ("open /proc/{PARENT}/maps", "seccomp landlock namespaces privileges", Some(FILE), &[]),
    ("open /proc/{PARENT}/fd/200", "seccomp landlock namespaces privileges", Some(FILE), &[]),
    ("open /proc/{PARENT}/root/etc/passwd", "seccomp landlock namespaces privileges", Some(FILE), &[]),
    ("open /proc/{OTHER}/environ", FILE, None, &[]),
    ("open /proc/{OTHER}/mem", FILE, None, &[]),
    ("open /proc/{OTHER}/maps", FILE, None, &[]),
    ("open /proc/{OTHER}/cmdline", FILE, None, &[]),
    ("open /proc/1/cmdline", FILE, None, &[]),
    ("signal {PARENT}", PROCESS, PROCESS_OF_USER, &["landlock 6"]),
    ("signal-by-descriptor {PARENT}", PROCESS, PROCESS_OF_USER, &["landlock 6"]),
    ("trace {PARENT}", PROCESS, PROCESS_OF_USER, &["user sysctl kernel.yama.ptrace_scope=0"]),
    ("memory {PARENT}", PROCESS, PROCESS_OF_USER, &["user sysctl kernel.yama.ptrace_scope=0"]),
    ("descriptor {PARENT}", PROCESS, PROCESS_OF_USER, &["user sysctl kernel.yama.ptrace_scope=0"]),
    ("signal {OTHER}", "seccomp landlock", None, &["landlock 6"]),
    ("signal-by-descriptor {OTHER}", "seccomp landlock", None, &["landlock 6"]),
    ("trace {OTHER}", OTHER, OTHER_OF_USER, &["user sysctl kernel.yama.ptrace_scope=0"]),
    ("memory {OTHER}", OTHER, OTHER_OF_USER, &["user sysctl kernel.yama.ptrace_scope=0"]),
    ("descriptor {OTHER}", OTHER, OTHER_OF_USER, &["user sysctl kernel.yama.ptrace_scope=0"]),
    ("thread open {DIR}/policy.toml", FILE, None, &[]),
    ("thread tcp {TCP}", FILE, None, &["landlock 4"]),
    ("thread signal {PARENT}", PROCESS, PROCESS_OF_USER, &["landlock 6"]),
    ("thread fork_process", "seccomp limits+privileges", Some("seccomp limits"), &[]),
    ("thread exec_memory", "seccomp mdwe", None, &["kernel 6.3"]),
];

impl Targets {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("secrets")).unwrap();
        for place in ["", "secrets"] {
            make_world_writable(&directory.path().join(place));
        }
        for file in FILES {
            std::fs::write(directory.path().join(file), "secret").unwrap();
            std::fs::set_permissions(directory.path().join(file), std::fs::Permissions::from_mode(0o666))
                .unwrap();
        }
        let path = UnixListener::bind(directory.path().join("control.sock")).unwrap();
        make_world_writable(&directory.path().join("control.sock"));
        let name = directory.path().to_str().unwrap().to_owned();
        let named = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { directory, name, tcp, udp, _sockets: [path, named] }
    }

    /// Replaces the placeholders of these targets in the name of an attack.
    pub(super) fn fill_placeholders(&self, attack: &str) -> String {
        attack
            .replace("{DIR}", self.directory.path().to_str().unwrap())
            .replace("{ABSTRACT}", &self.name)
            .replace("{TCP}", &self.tcp.local_addr().unwrap().port().to_string())
            .replace("{UDP}", &self.udp.local_addr().unwrap().port().to_string())
    }
}

/// Returns the attacks that have such a target. Their names are the requests.
pub(super) fn attacks() -> Vec<NativeAttack> {
    let reads = FILES.iter().map(|file| attack(&(format!("open {{DIR}}/{file}"), FILE, None, &[])));
    let others = ATTACKS
        .iter()
        .map(|(name, layers, user, needs)| attack(&((*name).to_owned(), *layers, *user, needs)));
    reads.chain(others).collect()
}

fn attack((name, layers, user_layers, needs): &(String, &str, Option<&str>, &[&str])) -> NativeAttack {
    NativeAttack {
        name: name.clone(),
        attempt: "a target of its own".into(),
        layers: any_of(layers),
        user_layers: any_of(user_layers.unwrap_or(layers)),
        outcome: "SIGSYS".into(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
    }
}

/// Returns the alternatives of layers that a text names, as the headers of attacks do.
pub(super) fn any_of(text: &str) -> Vec<Vec<Layer>> {
    let named = |name: &str| Layer::ALL.into_iter().find(|layer| layer.name() == name).expect("a layer");
    text.split(' ').map(|together| together.split('+').map(named).collect()).collect()
}
