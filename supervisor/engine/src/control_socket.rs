//! The control socket, through which `lockhouse approvals`, `sessions`, `runs`, `status`, `reload`, `stop` and `result` reach a running
//! supervisor.
//!
//! The control socket is a Unix domain socket in a directory with mode 0700. A connection that begins with the greeting of
//! the link is that of an operator's command, and is served as those of fronts (`front_link.rs`), with the roles of
//! operators. Every other connection has the JSON lines of version 1, which `line_adapter.rs` translates. The kernel
//! reports the user ID of the peer; only the supervisor's own user and root are accepted, and at the socket of a system's engine
//! also the person whom it serves, who may not change the policy, and approves calls only with a proof of presence. A second socket can serve
//! people of other accounts, with the roles that the policy gives them. A worker cannot reach the socket: it
//! has no file system access and cannot create sockets. Any other process of the same user can connect, for example an AI
//! client with a shell; docs/approvals.md explains the consequences.

mod line_adapter;
mod peers;
pub mod socket_path;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::front_connection::{FrontKind, OperatorPeer};
use crate::front_link;
use crate::supervisor::Supervisor;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use lockhouse_link::greetings;
use lockhouse_messages::{Greeting, GreetingReply, Presence, VERSIONS};
use nix::unistd::Uid;
use peers::{Places, Served, operator};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum time until a new connection sends its first message. After this time the connection is closed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Modes of the sockets: of one for root and this account, and of one for everybody, whom the kernel then reports.
const OWN_SOCKET_MODE: u32 = 0o600;
const OPEN_SOCKET_MODE: u32 = 0o666;
/// Pause after the control socket failed to accept a connection. The cause is often temporary, such as too many open
/// files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The error if the control socket could not be opened in any directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the control socket, so `lockhouse approvals` cannot reach this process: {}", list(.attempts))]
pub struct ControlSocketError {
    /// The directories that were tried, in order, each with its error.
    attempts: Vec<(PathBuf, std::io::Error)>,
}

fn list(attempts: &[(PathBuf, std::io::Error)]) -> String {
    let attempt = |(directory, error): &(PathBuf, _)| format!("{}: {error}", directory.display());
    attempts.iter().map(attempt).collect::<Vec<_>>().join("; ")
}

/// The open control socket. Dropping this value closes the socket and removes its file, if this process made it.
#[derive(Debug)]
pub struct ControlSocket {
    path: Option<PathBuf>,
    accepting: JoinHandle<()>,
}

impl ControlSocket {
    /// Opens the control socket of this process in the first usable directory, and removes the sockets of supervisors
    /// that were killed. Without a control socket, `lockhouse approvals` cannot answer questions of this process.
    ///
    /// # Errors
    /// If no directory is usable: [`ControlSocketError`] with the error of each directory.
    pub fn open(supervisor: &Arc<Supervisor>) -> Result<Self, ControlSocketError> {
        let mut attempts = Vec::new();
        for directory in socket_path::candidate_directories() {
            match listen(&directory) {
                Ok((path, listener)) => {
                    let accepting =
                        tokio::spawn(accept(listener, Arc::downgrade(supervisor), Served::Owners));
                    return Ok(Self { path: Some(path), accepting });
                }
                Err(error) => attempts.push((directory, error)),
            }
        }
        Err(ControlSocketError { attempts })
    }

    /// Opens the socket for people of other accounts, whose roles in the policy decide what they may do. Returns `None` if the
    /// configuration names no directory for it.
    ///
    /// # Errors
    /// If the directory is not usable.
    pub fn open_for_people(supervisor: &Arc<Supervisor>) -> Result<Option<Self>, ControlSocketError> {
        let Some(directory) = supervisor.operators_directory() else { return Ok(None) };
        let opened = socket_path::create_shared_directory(directory)
            .and_then(|()| bind(directory, OPEN_SOCKET_MODE))
            .map_err(|error| ControlSocketError { attempts: vec![(directory.to_owned(), error)] });
        let (path, listener) = opened?;
        let accepting = tokio::spawn(accept(listener, Arc::downgrade(supervisor), Served::PeopleWithRoles));
        Ok(Some(Self { path: Some(path), accepting }))
    }

    /// Serves operators at a socket that is open already, among them the person whose engine this is.
    #[must_use]
    pub fn of_person(supervisor: &Arc<Supervisor>, listener: Listener, person: Uid) -> Self {
        let accepting = tokio::spawn(accept(listener, Arc::downgrade(supervisor), Served::Person(person)));
        Self { path: None, accepting }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen(directory: &Path) -> std::io::Result<(PathBuf, Listener)> {
    socket_path::create_directory(directory)?;
    bind(directory, OWN_SOCKET_MODE)
}

fn bind(directory: &Path, mode: u32) -> std::io::Result<(PathBuf, Listener)> {
    socket_path::remove_stale_sockets(directory);
    let path = directory.join(socket_path::socket_name(std::process::id()));
    let name = path.as_path().to_fs_name::<GenericFilePath>()?;
    // This module removes the file itself. A listener that is dropped late must not remove the socket of another
    // process.
    let options = ListenerOptions::new().name(name).mode(OWN_SOCKET_MODE).reclaim_name(false);
    let listener = options.create_tokio()?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    Ok((path, listener))
}

async fn accept(listener: Listener, supervisor: Weak<Supervisor>, served: Served) {
    let places = Places::default();
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!("the control socket cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let Some(supervisor) = supervisor.upgrade() else { return };
        let Some(operator) = operator(&stream, served, supervisor.strongest_presence()) else {
            tracing::warn!(
                "rejected a connection of another user, or of a sandboxed server, to the control socket"
            );
            continue;
        };
        let Some(place) = places.take(&operator) else {
            tracing::warn!("rejected a connection to the control socket: too many are open");
            continue;
        };
        tokio::spawn(async move {
            if let Some(operator) = operator.resolve().await {
                serve(&stream, &supervisor, operator).await;
            }
            drop(place);
        });
    }
}

/// Serves one connection until either end closes it. The length of a greeting begins with zero, and a line never does.
async fn serve(stream: &Stream, supervisor: &Arc<Supervisor>, operator: OperatorPeer) {
    let mut reader = BufReader::new(stream);
    let first = match timeout(HELLO_TIMEOUT, reader.fill_buf()).await {
        Ok(Ok(&[first, ..])) => first,
        _ => return,
    };
    if first == 0 {
        if let Err(error) = serve_operator(&mut reader, stream, supervisor, operator).await {
            tracing::debug!("the connection to an operator ended: {error}");
        }
    } else {
        line_adapter::serve(reader, stream, supervisor, operator).await;
    }
}

async fn serve_operator(
    reader: &mut BufReader<&Stream>,
    mut writer: &Stream,
    supervisor: &Arc<Supervisor>,
    operator: OperatorPeer,
) -> std::io::Result<()> {
    let Ok(greeting) = timeout(HELLO_TIMEOUT, greetings::read::<Greeting>(reader)).await else {
        return Ok(());
    };
    let Some(greeting) = greeting? else { return Ok(()) };
    let Some(version) = greeting.versions().newest_common(VERSIONS) else {
        let reply = GreetingReply::Unsupported { version: VERSIONS.newest };
        return greetings::write(&mut writer, &reply).await;
    };
    // An operator asks this engine, also while it drains, and no other one.
    front_link::serve(supervisor, version, reader, &mut writer, FrontKind::Operator(operator), false).await
}

/// Whether the process at the other end of the connection belongs to this process's user or to root, as the kernel
/// reports it, and is no sandboxed upstream server, which could approve its own calls.
pub fn is_trusted(stream: &Stream) -> bool {
    operator(stream, Served::Owners, Presence::None).is_some()
}
