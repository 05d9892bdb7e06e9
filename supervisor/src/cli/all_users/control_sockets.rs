//! Finds the control sockets of all accounts: those in the runtime directories, and those that processes have bound
//! anywhere, as the kernel lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lockhouse_engine::control_socket::socket_path;

use super::processes::RunningProcess;

/// The sockets of this network namespace that are bound to paths.
const BOUND_SOCKETS: &str = "/proc/net/unix";
const RUNTIME_DIRECTORIES: &str = "/run/user";

/// The file of a control socket, opened without a right to read or write.
pub(super) struct ControlSocketFile {
    pub(super) file: File,
    /// The account that owns the file.
    pub(super) uid: u32,
    /// The process whose number is in the name of the file.
    pub(super) named_pid: u32,
}

/// Returns the control sockets of all accounts, at most `per_user` of each. The sockets of a process with a root directory
/// of its own are found below that.
pub(super) fn find(running: &[RunningProcess], per_user: usize) -> Vec<ControlSocketFile> {
    let in_runtime = std::fs::read_dir(RUNTIME_DIRECTORIES).into_iter().flatten().flatten();
    let in_runtime = in_runtime.flat_map(|user| runtime_sockets(&user.path().join("lockhouse")));
    let mut paths: BTreeSet<PathBuf> = in_runtime.chain(bound_sockets(Path::new(BOUND_SOCKETS))).collect();
    let (own_root, own_network) = (namespace("self", "mnt"), namespace("self", "net"));
    let mut listed_networks = BTreeSet::from([own_network.clone()]);
    for process in running {
        let pid = process.pid.to_string();
        let (root, network) = (namespace(&pid, "mnt"), namespace(&pid, "net"));
        if root == own_root && network == own_network {
            continue;
        }
        let is_new = listed_networks.insert(network.clone());
        if !is_new && root == own_root {
            continue;
        }
        let below = Path::new("/proc").join(&pid).join("root");
        let bound = bound_sockets(&Path::new("/proc").join(&pid).join("net/unix"));
        paths.extend(bound.filter_map(|path| Some(below.join(path.strip_prefix("/").ok()?))));
    }
    let mut count = BTreeMap::<u32, usize>::new();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for path in paths {
        let Some((socket, inode)) = open(&path) else { continue };
        let count = count.entry(socket.uid).or_default();
        if *count < per_user && seen.insert(inode) {
            *count += 1;
            found.push(socket);
        }
    }
    found
}

/// Returns the names of control sockets in a directory. A link in place of the directory has no effect, since nothing is
/// sent to a process that is no Lockhouse.
fn runtime_sockets(directory: &Path) -> Vec<PathBuf> {
    socket_path::sockets(directory).into_iter().map(|(_, path)| path).collect()
}

/// Returns the control sockets in a list of the kernel, whose lines end with the path.
fn bound_sockets(list: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let lines = File::open(list).map(|file| BufReader::new(file).split(b'\n'));
    let lines = lines.into_iter().flatten().map_while(Result::ok);
    lines.filter_map(|line| {
        let line = String::from_utf8(line).ok()?;
        let path = &line[line.find(" /")? + 1..];
        let path = PathBuf::from(path);
        socket_path::process_of(&path).is_some().then_some(path)
    })
}

/// Opens the file of a socket. A link in its place is not followed.
fn open(path: &Path) -> Option<(ControlSocketFile, (u64, u64))> {
    let named_pid = socket_path::process_of(path)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let inode = (metadata.dev(), metadata.ino());
    metadata
        .file_type()
        .is_socket()
        .then_some((ControlSocketFile { file, uid: metadata.uid(), named_pid }, inode))
}

/// Returns the identity of a namespace of a process. `None` if it is not known.
fn namespace(process: &str, kind: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok()
}
