//! The listening sockets of the HTTP server. The engine's process opens them and keeps them open, so that no connection is
//! refused while the front's process is replaced. The front's process inherits those of TCP. At the Unix domain sockets for
//! AI clients, the engine's process accepts the connections itself.

use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use lockhouse_base::listen::{ListenAddress, Listener, Socket, SocketFile};
use nix::libc;
use socket2::{SockFilter, SockRef};
use tokio::net::UnixListener;

use super::exposure_check::check_exposure;
use super::limits::REFUSALS_MAX;
use super::listener::{BindError, bind_at, inherited_listeners};
use super::{HttpSettings, HttpStartError};

/// Position of the flags in the header of TCP (RFC 9293, 3.1), and those that tell a request for a connection from its
/// acknowledgement.
const TCP_FLAGS: u32 = 13;
const SYN: u32 = 0x02;
const SYN_AND_ACK: u32 = 0x12;

/// The listening sockets of the HTTP server.
#[derive(Debug)]
pub struct HttpSockets {
    /// The sockets for AI clients, in the order of the addresses at which the server listens.
    pub clients: Vec<OpenSocket>,
    /// The sockets at the addresses of `[metrics]`.
    pub metrics: Vec<OpenSocket>,
    /// Whether systemd opened the sockets for AI clients, and keeps them open when this process ends.
    pub is_socket_activated: bool,
    /// Maximum number of connections to Unix domain sockets that the front has open at one time, with those that it is
    /// refusing.
    pub connections_max: usize,
}

/// A listening socket and its listen address.
#[derive(Debug)]
pub struct OpenSocket {
    pub address: ListenAddress,
    pub kind: SocketKind,
    _file: Option<SocketFile>,
}

#[derive(Debug)]
pub enum SocketKind {
    /// The front's process accepts the connections.
    Inherited(std::os::fd::OwnedFd),
    /// This process accepts the connections.
    AcceptedHere(Arc<UnixListener>),
}

impl HttpSockets {
    /// Opens the configured sockets, or takes over those that systemd passed, and those at the addresses `metrics`.
    ///
    /// # Errors
    /// [`HttpStartError`], which says what to change.
    pub async fn open(settings: &HttpSettings, metrics: &[ListenAddress]) -> Result<Self, HttpStartError> {
        let inherited = inherited_listeners()?;
        let is_socket_activated = !inherited.is_empty();
        let addresses: Vec<&ListenAddress> = match is_socket_activated {
            true => inherited.iter().map(|listener| &listener.address).collect(),
            false => settings.listen.iter().collect(),
        };
        for address in addresses {
            check_exposure(settings, address)?;
        }
        let mut opened = Self {
            clients: Vec::new(),
            metrics: Vec::new(),
            is_socket_activated,
            connections_max: settings.limits.connections + 2 * REFUSALS_MAX,
        };
        if is_socket_activated {
            tracing::info!("using the sockets that systemd passed instead of `listen` of [http]");
            for listener in inherited {
                opened.clients.push(OpenSocket::for_clients(listener)?);
            }
        } else {
            for address in &settings.listen {
                opened.clients.push(OpenSocket::for_clients(bind_at(address).await?)?);
            }
        }
        for address in metrics {
            let listener = bind_at(address).await.map_err(HttpStartError::Metrics)?;
            opened.metrics.push(OpenSocket::inherited(listener)?);
        }
        Ok(opened)
    }

    /// Lets the kernel ignore requests for further connections at the sockets of TCP. Connections that are being made can still be
    /// accepted. Who asks for another one asks again after a second, and is refused if the sockets are closed then. What systemd
    /// opened is for the next process of the service.
    pub fn ignore_connections(&self) {
        for socket in self.own_sockets() {
            if let Err(error) = SockRef::from(&socket).attach_filter(&ignore_syn()) {
                tracing::debug!("connections are accepted until this process ends: {error}");
            }
        }
    }

    /// Ends listening at the sockets of TCP, for the front too: further connections are refused.
    pub fn refuse_connections(&self) {
        for socket in self.own_sockets() {
            if let Err(error) = SockRef::from(&socket).shutdown(Shutdown::Read) {
                tracing::debug!("a listening socket is still open: {error}");
            }
        }
    }

    fn own_sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = (!self.is_socket_activated).then_some(&self.clients);
        own.into_iter().flatten().filter_map(OpenSocket::inherited_socket)
    }

    /// Returns the sockets of each address for AI clients on their own. The first ones have those of `[metrics]`.
    #[must_use]
    pub fn of_each_address(self) -> Vec<Self> {
        let Self { clients, mut metrics, is_socket_activated, connections_max } = self;
        let of_address = |client| Self {
            clients: vec![client],
            metrics: std::mem::take(&mut metrics),
            is_socket_activated,
            connections_max,
        };
        clients.into_iter().map(of_address).collect()
    }
}

impl OpenSocket {
    fn for_clients(listener: Listener) -> Result<Self, BindError> {
        let Listener { socket, address, file } = listener;
        match socket {
            Socket::Unix(listener) => {
                Ok(Self { address, kind: SocketKind::AcceptedHere(Arc::new(listener)), _file: file })
            }
            socket @ Socket::Tcp(_) => Self::inherited(Listener { socket, address, file }),
        }
    }

    /// Takes the socket out of this process's event loop, which would wake up for each connection.
    fn inherited(listener: Listener) -> Result<Self, BindError> {
        let Listener { socket, address, file } = listener;
        let socket = match socket {
            Socket::Tcp(listener) => listener.into_std().map(Into::into),
            Socket::Unix(listener) => listener.into_std().map(Into::into),
        };
        let socket = socket.map_err(|error| BindError::system(&address, error))?;
        Ok(Self { address, kind: SocketKind::Inherited(socket), _file: file })
    }

    /// Returns the socket that the front's process inherits. `None` if this process accepts the connections.
    #[must_use]
    pub fn inherited_socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            SocketKind::Inherited(socket) => Some(socket.as_fd()),
            SocketKind::AcceptedHere(_) => None,
        }
    }
}

/// Returns a filter of packets (socket(7), `SO_ATTACH_FILTER`) that lets all pass but those that ask for a connection.
fn ignore_syn() -> [SockFilter; 5] {
    let statement = |code: u32, k| SockFilter::new(code as u16, 0, 0, k);
    [
        statement(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, TCP_FLAGS),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, SYN_AND_ACK),
        SockFilter::new((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, SYN),
        statement(libc::BPF_RET | libc::BPF_K, 0),
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
    ]
}
