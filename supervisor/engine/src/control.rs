//! The control socket: where `lockhouse approvals`, `lockhouse sessions`, `lockhouse runs` and `lockhouse status` reach a supervisor that runs.
//!
//! A Unix domain socket in a directory that only its owner can enter. Each line is one JSON object, of the messages in
//! `gate/approvals/desk.rs` and `orders.rs`; who connects says first that they watch, or asks one thing. The kernel tells who connects, and nobody but the
//! same user, or root, is heard. A worker cannot reach it: it has no file, and can make no socket. Whoever runs as this user
//! can, an AI client with a shell among them; docs/approvals.md says what that means.

mod connection;
mod orders;
pub mod place;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::supervisor::Supervisor;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::StreamCommon;
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use lockhouse_audit::Person;
use nix::unistd::geteuid;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub use connection::{LINE_BYTES_MAX, VERSION, read_line, write_line};
pub use orders::{Order, Told};

/// Connections at one time.
const CONNECTIONS_MAX: usize = 16;
/// After an error that may pass, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// The control socket cannot be opened in any directory.
#[derive(Debug, thiserror::Error)]
#[error("no control socket, so `lockhouse approvals` does not reach this process: {}", list(.attempts))]
pub struct NoControlSocket {
    /// Each directory, in the order of preference, with why it is of no use.
    attempts: Vec<(PathBuf, std::io::Error)>,
}

fn list(attempts: &[(PathBuf, std::io::Error)]) -> String {
    let attempt = |(directory, error): &(PathBuf, _)| format!("{}: {error}", directory.display());
    attempts.iter().map(attempt).collect::<Vec<_>>().join("; ")
}

/// An open socket. It closes when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    accepting: JoinHandle<()>,
}

impl ControlSocket {
    /// Opens the socket of this process in the first directory where that is possible, and clears away those of supervisors
    /// that were killed. Without one, people at this machine cannot be asked.
    ///
    /// # Errors
    /// [`NoControlSocket`]: why it is in none.
    pub fn open(supervisor: &Arc<Supervisor>) -> Result<Self, NoControlSocket> {
        let mut attempts = Vec::new();
        for directory in place::everywhere() {
            match listen(&directory) {
                Ok((path, listener)) => {
                    let accepting = tokio::spawn(accept(listener, Arc::downgrade(supervisor)));
                    return Ok(Self { path, accepting });
                }
                Err(error) => attempts.push((directory, error)),
            }
        }
        Err(NoControlSocket { attempts })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

fn listen(directory: &Path) -> std::io::Result<(PathBuf, Listener)> {
    place::make(directory)?;
    place::clear(directory);
    let path = directory.join(place::name(std::process::id()));
    let name = path.as_path().to_fs_name::<GenericFilePath>()?;
    // Its removal is ours: a listener that is dropped late must not remove the socket of another.
    let options = ListenerOptions::new().name(name).mode(0o600).reclaim_name(false);
    let listener = options.create_tokio()?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok((path, listener))
}

async fn accept(listener: Listener, supervisor: Weak<Supervisor>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("the control socket: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if !is_trusted(&stream) {
            tracing::warn!("another user connected to the control socket, and was not heard");
            continue;
        }
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!("the control socket has {CONNECTIONS_MAX} connections, and takes no more");
            continue;
        };
        let Some(supervisor) = supervisor.upgrade() else { return };
        tokio::spawn(async move {
            connection::serve(&stream, &supervisor).await;
            drop(place);
        });
    }
}

/// Who is at the other end, as the kernel says.
fn person(stream: &Stream) -> Option<Person> {
    let peer = stream.peer_creds().ok()?;
    Some(Person { uid: peer.euid()?, pid: peer.pid(), login_uid: None })
}

/// Whether the one at the other end is this user, or root, as the kernel says.
pub fn is_trusted(stream: &Stream) -> bool {
    let peer = stream.peer_creds().ok().and_then(|peer| peer.euid());
    peer.is_some_and(|uid| uid == 0 || uid == geteuid().as_raw())
}
