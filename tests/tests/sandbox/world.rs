//! What an attack finds around it: files, sockets and a secret of its own, so that each trace it leaves is its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// The name of the variable that holds the secret in the environment of the server.
pub(crate) const VARIABLE: &str = "LOCKHOUSE_CANARY";

/// Live targets, open to everybody: nothing but the seal stands in the way.
pub(crate) struct World {
    directory: PathBuf,
    secret: String,
    name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    path_socket: UnixListener,
    abstract_socket: UnixListener,
    before: BTreeMap<PathBuf, String>,
}

impl World {
    /// Makes everything below `directory`, which is new.
    pub(crate) fn new(directory: PathBuf, secret: &str) -> Self {
        std::fs::create_dir(&directory).unwrap();
        open_to_all(&directory);
        for file in ["file", "renamed", "removed"] {
            // A module of Python and of JavaScript alike, for those who would import it.
            std::fs::write(directory.join(file), format!("canary = \"{secret}\"\n")).unwrap();
            open_to_all(&directory.join(file));
        }
        let path_socket = UnixListener::bind(directory.join("socket")).unwrap();
        open_to_all(&directory.join("socket"));
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
        let before = state(&directory);
        let secret = secret.to_owned();
        Self { directory, secret, name, tcp, udp, path_socket, abstract_socket, before }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A program with what it needs to know.
    pub(crate) fn filled(&self, program: &str) -> String {
        program
            .replace("{DIR}", self.directory.to_str().unwrap())
            .replace("{TCP}", &self.tcp.local_addr().unwrap().port().to_string())
            .replace("{UDP}", &self.udp.local_addr().unwrap().port().to_string())
            .replace("{ABSTRACT}", &self.name)
            .replace("{SECRET}", &self.secret)
    }

    /// What somebody has reached.
    pub(crate) fn reached(&self) -> BTreeSet<&'static str> {
        let reached = [
            ("directory", state(&self.directory) != self.before),
            ("TCP", self.tcp.accept().is_ok()),
            ("UDP", self.udp.recv(&mut [0; 16]).is_ok()),
            ("unix socket", self.path_socket.accept().is_ok()),
            ("abstract socket", self.abstract_socket.accept().is_ok()),
        ];
        reached.into_iter().filter(|(_, is_reached)| *is_reached).map(|(what, _)| what).collect()
    }
}

pub(crate) fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

/// Everything in a directory, with all that an attack could change.
fn state(directory: &Path) -> BTreeMap<PathBuf, String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = entries.chain([directory.to_owned()]);
    let described = |path: PathBuf| {
        let metadata = path.symlink_metadata().unwrap();
        // What a control has made may be a pipe, whose read would wait for ever.
        let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        let content = String::from_utf8_lossy(&content).into_owned();
        let owner = (metadata.uid(), metadata.gid());
        let times = (metadata.mtime(), metadata.mtime_nsec(), metadata.nlink());
        (path, format!("{:o} {owner:?} {times:?} {content}", metadata.mode()))
    };
    paths.map(described).collect()
}
