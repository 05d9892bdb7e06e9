//! Where connections come from: a listening socket of this process, or the engine's process. The latter accepts the
//! connections of Unix domain sockets if it is another one, since it needs to know who is at their other ends.

use std::io::{Error, Result};
use std::os::fd::AsFd;

use lockhouse_base::listen::{ListenAddress, Listener, Socket};
use lockhouse_base::unix_accept;
use lockhouse_link::{EngineClient, OpenConnection, PassedConnection, PassedConnections};
use tokio::net::{TcpStream, UnixStream};

use super::listener::{self, BindError};
use crate::access::Peer;

/// A source of connections, and the listen address at which AI clients make them.
#[derive(Debug)]
pub(super) struct ConnectionSource {
    kind: SourceKind,
    pub(super) address: ListenAddress,
}

#[derive(Debug)]
enum SourceKind {
    Own(Listener),
    Passed(PassedConnections),
}

/// A newly accepted connection.
pub(super) struct AcceptedConnection {
    pub(super) socket: AcceptedSocket,
    pub(super) peer: Peer,
    /// The connection as the engine knows it, until it is closed. `None` for TCP.
    pub(super) open: Option<OpenConnection>,
}

pub(super) enum AcceptedSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

type ListenResult<T> = std::result::Result<T, BindError>;

/// The connections of each Unix domain socket in turn, if the engine's process accepts them.
pub(super) type PassedSockets = Option<std::vec::IntoIter<PassedConnections>>;

impl From<Listener> for ConnectionSource {
    fn from(listener: Listener) -> Self {
        Self { address: listener.address.clone(), kind: SourceKind::Own(listener) }
    }
}

impl ConnectionSource {
    /// Opens a listening socket, or takes the connections of one that the engine's process has opened.
    pub(super) async fn open(address: &ListenAddress, passed: &mut PassedSockets) -> ListenResult<Self> {
        match Self::passed(address, passed)? {
            Some(source) => Ok(source),
            None => Ok(listener::bind_at(address).await?.into()),
        }
    }

    /// Takes over a listening socket that systemd passed, or the connections that the engine's process accepts at it.
    pub(super) fn inherited(listener: Listener, passed: &mut PassedSockets) -> ListenResult<Self> {
        Ok(Self::passed(&listener.address, passed)?.unwrap_or_else(|| listener.into()))
    }

    fn passed(address: &ListenAddress, passed: &mut PassedSockets) -> ListenResult<Option<Self>> {
        let (ListenAddress::Unix(_), Some(passed)) = (address, passed) else { return Ok(None) };
        let connections = passed.next().ok_or_else(|| BindError::not_passed(address))?;
        Ok(Some(Self { kind: SourceKind::Passed(connections), address: address.clone() }))
    }

    /// Returns the next connection. `None` if there are no further ones.
    ///
    /// # Errors
    /// Those of accept(2). `ConnectionAborted` and similar errors concern one connection alone.
    pub(super) async fn accept(&self, engine: &EngineClient) -> Result<Option<AcceptedConnection>> {
        match &self.kind {
            SourceKind::Own(listener) => accept(&listener.socket, engine).await.map(Some),
            SourceKind::Passed(connections) => {
                let Some(passed) = connections.receive().await? else { return Ok(None) };
                take_over(passed, engine).map(Some)
            }
        }
    }

    /// Ends the acceptance of connections. Returns whether some may still come, because another process has accepted them.
    pub(super) fn stop(&self) -> bool {
        match &self.kind {
            SourceKind::Own(_) => false,
            SourceKind::Passed(connections) => {
                connections.stop();
                true
            }
        }
    }
}

async fn accept(socket: &Socket, engine: &EngineClient) -> Result<AcceptedConnection> {
    match socket {
        Socket::Tcp(listener) => {
            let (stream, address) = listener.accept().await?;
            let (socket, peer) = (AcceptedSocket::Tcp(stream), Peer::Tcp(address));
            Ok(AcceptedConnection { socket, peer, open: None })
        }
        Socket::Unix(listener) => {
            let stream = unix_accept::accept(listener).await?;
            let open = engine.admit(stream.as_fd());
            over_unix_socket(stream, open)
        }
    }
}

fn take_over(passed: PassedConnection, engine: &EngineClient) -> Result<AcceptedConnection> {
    let PassedConnection { id, socket } = passed;
    // From here on, the engine learns of the end of the connection.
    let open = engine.adopt(id);
    let socket = socket.ok_or_else(|| Error::other("too many open files"))?;
    let stream = UnixStream::from_std(socket.into())?;
    over_unix_socket(stream, Some(open))
}

fn over_unix_socket(stream: UnixStream, open: Option<OpenConnection>) -> Result<AcceptedConnection> {
    let who = stream.peer_cred()?;
    let connection = open.as_ref().map(OpenConnection::id);
    let peer = Peer::Unix { uid: who.uid(), gid: who.gid(), pid: who.pid(), connection };
    Ok(AcceptedConnection { socket: AcceptedSocket::Unix(stream), peer, open })
}
