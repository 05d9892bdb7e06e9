//! The sockets of the system's engine for one person: `front.sock` for that person's AI clients, `control.sock` for the
//! commands that operate the engine, and `launcher.sock` for the launcher of servers in the person's session.

use std::convert::Infallible;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use lockhouse_base::files::remove_if_present;
use lockhouse_engine::control_socket::ControlSocket;
use lockhouse_engine::front_socket::FrontSocket;
use lockhouse_engine::launcher_socket;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::inherited_unix_listeners;
use nix::unistd::Uid;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::local_listener;
use crate::cli::engine_socket::{CONTROL_SOCKET, FRONT_SOCKET, LAUNCHER_SOCKET};

/// Every account may connect, and the engine asks the kernel which one it is. The sockets of systemd have the person as their
/// owner, and a mode that keeps others away already.
const MODE: u32 = 0o666;

/// The open sockets of a person. Operators and launchers are served until this value is dropped.
pub(super) struct PersonSockets {
    fronts: JoinHandle<Infallible>,
    launchers: Option<JoinHandle<Infallible>>,
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
        let PassedSockets { front, control, launcher } = match directory {
            Some(directory) => listen_in(directory)?,
            None => inherited()?,
        };
        let (front, control) = (local_listener(front)?, local_listener(control)?);
        let clients = clients.clone();
        let accept_launchers = |launcher| {
            let supervisor = supervisor.clone();
            tokio::spawn(async move { launcher_socket::accept(launcher, &supervisor, person).await })
        };
        Ok(Self {
            fronts: tokio::spawn(async move { clients.accept(&front).await }),
            launchers: launcher.map(accept_launchers),
            _control: ControlSocket::of_person(supervisor, control, person),
        })
    }

    /// Accepts no further front and no launcher. systemd starts the next engine for them.
    pub(super) fn close_to_fronts(&self) {
        self.fronts.abort();
        self.launchers.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for PersonSockets {
    fn drop(&mut self) {
        self.close_to_fronts();
    }
}

/// Listening sockets of a person.
struct PassedSockets {
    front: UnixListener,
    control: UnixListener,
    /// `None` if the socket unit is one of an earlier version, from before an upgrade.
    launcher: Option<UnixListener>,
}

fn listen_in(directory: &Path) -> io::Result<PassedSockets> {
    let listen = |name| listen(&directory.join(name));
    let (launcher, control) = (Some(listen(LAUNCHER_SOCKET)?), listen(CONTROL_SOCKET)?);
    // The last one: who waits for it finds the others too.
    Ok(PassedSockets { front: listen(FRONT_SOCKET)?, control, launcher })
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    remove_if_present(path)?;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok(listener)
}

/// Returns the sockets for fronts, operators and launchers that systemd passes.
fn inherited() -> io::Result<PassedSockets> {
    let (mut front, mut control, mut launcher) = (None, None, None);
    for listener in inherited_unix_listeners().map_err(io::Error::other)? {
        let address = listener.local_addr()?;
        let name = address.as_pathname().and_then(Path::file_name).map(ToOwned::to_owned);
        match name.as_deref().and_then(|name| name.to_str()) {
            Some(FRONT_SOCKET) => front = Some(listener),
            Some(CONTROL_SOCKET) => control = Some(listener),
            Some(LAUNCHER_SOCKET) => launcher = Some(listener),
            _ => {}
        }
    }
    let passed = |listener: Option<UnixListener>, name: &str| {
        let missing = || format!("systemd passes no socket {name}; name a directory with --sockets");
        listener.ok_or_else(|| io::Error::other(missing()))
    };
    if launcher.is_none() {
        tracing::warn!(
            "systemd passes no socket {LAUNCHER_SOCKET}, so that servers with run_as = \"user\" are not available: restart the \
             socket unit of this engine"
        );
    }
    let (front, control) = (passed(front, FRONT_SOCKET)?, passed(control, CONTROL_SOCKET)?);
    Ok(PassedSockets { front, control, launcher })
}
