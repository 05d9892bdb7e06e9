//! The targets of one attack: files, sockets and a secret that the sandbox must protect. Each attack has its own
//! targets, so only this attack can have caused a change of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// The name of the environment variable that contains the secret. The Lockhouse server has this variable, and so has a
/// control run outside the sandbox.
pub(crate) const SECRET_VARIABLE: &str = "LOCKHOUSE_CANARY";

/// Files and listening sockets that every user may access, so only the sandbox protects them against the attack.
pub(crate) struct AttackTargets {
    directory: PathBuf,
    secret: String,
    name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    path_socket: UnixListener,
    abstract_socket: UnixListener,
    before: BTreeMap<PathBuf, String>,
}

impl AttackTargets {
    /// Creates the targets in `directory`, which must not exist yet. The files contain `secret`.
    pub(crate) fn new(directory: PathBuf, secret: &str) -> Self {
        std::fs::create_dir(&directory).unwrap();
        make_world_writable(&directory);
        for file in ["file", "renamed", "removed"] {
            // The file is a valid module of Python and of JavaScript, for attacks that import it.
            std::fs::write(directory.join(file), format!("canary = \"{secret}\"\n")).unwrap();
            make_world_writable(&directory.join(file));
        }
        let path_socket = UnixListener::bind(directory.join("socket")).unwrap();
        make_world_writable(&directory.join("socket"));
        let last = directory.file_name().unwrap().to_str().unwrap();
        let name = format!("lockhouse-{}-{last}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_socket = UnixListener::bind_addr(&address).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        path_socket.set_nonblocking(true).unwrap();
        abstract_socket.set_nonblocking(true).unwrap();
        let before = snapshot(&directory);
        let secret = secret.to_owned();
        Self { directory, secret, name, tcp, udp, path_socket, abstract_socket, before }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Replaces placeholders such as `{DIR}`, `{TCP}` and `{SECRET}` in a program with the paths, ports, socket name
    /// and secret of these targets.
    pub(crate) fn fill_placeholders(&self, program: &str) -> String {
        program
            .replace("{DIR}", self.directory.to_str().unwrap())
            .replace("{TCP}", &self.tcp.local_addr().unwrap().port().to_string())
            .replace("{UDP}", &self.udp.local_addr().unwrap().port().to_string())
            .replace("{ABSTRACT}", &self.name)
            .replace("{SECRET}", &self.secret)
    }

    /// Returns the kinds of targets that an attack has reached, such as `TCP`. The set is empty if the sandbox
    /// protected all of them.
    pub(crate) fn reached(&self) -> BTreeSet<&'static str> {
        let reached = [
            ("directory", snapshot(&self.directory) != self.before),
            ("TCP", self.tcp.accept().is_ok()),
            ("UDP", self.udp.recv(&mut [0; 16]).is_ok()),
            ("unix socket", self.path_socket.accept().is_ok()),
            ("abstract socket", self.abstract_socket.accept().is_ok()),
        ];
        reached.into_iter().filter(|(_, is_reached)| *is_reached).map(|(what, _)| what).collect()
    }
}

pub(crate) fn make_world_writable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

/// Returns a directory and every path directly in it, each with a text that describes the content of the file and all
/// metadata that an attack could change.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = entries.chain([directory.to_owned()]);
    let described = |path: PathBuf| {
        let metadata = path.symlink_metadata().unwrap();
        // A control may have created a pipe, from which a read would block forever.
        let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        let content = String::from_utf8_lossy(&content).into_owned();
        let owner = (metadata.uid(), metadata.gid());
        let times = (metadata.mtime(), metadata.mtime_nsec(), metadata.nlink());
        (path, format!("{:o} {owner:?} {times:?} {content}", metadata.mode()))
    };
    paths.map(described).collect()
}
