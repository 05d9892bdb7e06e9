//! The sockets of the system's engine for one person: `front.sock` for that person's AI clients, and `control.sock` for the
//! commands that operate the engine.

use std::convert::Infallible;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use lockhouse_engine::control_socket::ControlSocket;
use lockhouse_engine::front_socket::FrontSocket;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::inherited_unix_listeners;
use nix::unistd::Uid;
use tokio::task::JoinHandle;

use super::local_listener;
use crate::cli::engine_socket::{CONTROL_SOCKET, FRONT_SOCKET};

/// Every account may connect, and the engine asks the kernel which one it is. The sockets of systemd have the person as their
/// owner, and a mode that keeps others away already.
const MODE: u32 = 0o666;

/// The open sockets of a person. Operators are served until this value is dropped.
pub(super) struct PersonSockets {
    accepting: JoinHandle<Infallible>,
    _control: ControlSocket,
}

impl PersonSockets {
    /// Opens the sockets in `directory`, or takes over those that systemd passes.
    ///
    /// # Errors
    /// One of them is missing, or cannot be opened.
    pub(super) fn open(
        supervisor: &Arc<Supervisor>,
        clients: &Arc<FrontSocket>,
        person: Uid,
        directory: Option<&Path>,
    ) -> io::Result<Self> {
        let (front, control) = match directory {
            Some(directory) => {
                (listen(&directory.join(FRONT_SOCKET))?, listen(&directory.join(CONTROL_SOCKET))?)
            }
            None => inherited()?,
        };
        let clients = clients.clone();
        let accepting = tokio::spawn(async move { clients.accept(&front).await });
        Ok(Self { accepting, _control: ControlSocket::of_person(supervisor, control, person) })
    }

    /// Accepts no further front. systemd starts the next engine for it.
    pub(super) fn close_to_fronts(&self) {
        self.accepting.abort();
    }
}

fn listen(path: &Path) -> io::Result<Listener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let name = path.to_fs_name::<GenericFilePath>()?;
    let listener = ListenerOptions::new().name(name).create_tokio()?;
    std::fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok(listener)
}

/// Returns the sockets for fronts and for operators that systemd passes.
fn inherited() -> io::Result<(Listener, Listener)> {
    let (mut front, mut control) = (None, None);
    for listener in inherited_unix_listeners().map_err(io::Error::other)? {
        let address = listener.local_addr()?;
        let name = address.as_pathname().and_then(Path::file_name).map(ToOwned::to_owned);
        let listener = Some(local_listener(listener)?);
        match name.as_deref().and_then(|name| name.to_str()) {
            Some(FRONT_SOCKET) => front = listener,
            Some(CONTROL_SOCKET) => control = listener,
            _ => {}
        }
    }
    let missing = |name: &str| {
        io::Error::other(format!("systemd passes no socket {name}; name a directory with --sockets"))
    };
    Ok((front.ok_or_else(|| missing(FRONT_SOCKET))?, control.ok_or_else(|| missing(CONTROL_SOCKET))?))
}
