//! Where connections come from: a listening socket that this process has inherited, or the engine's process. The latter
//! accepts the connections of Unix domain sockets, since it needs to know who is at their other ends.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;

use lockhouse_base::listen::ListenAddress;
use lockhouse_link::{EngineClient, OpenConnection, PassedConnection, PassedConnections};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::front_setup::{InheritedSource, SourceKind};
use crate::access::Peer;

/// A source of connections, and the listen address at which AI clients make them.
#[derive(Debug)]
pub(super) struct ConnectionSource {
    connections: Connections,
    pub(super) address: ListenAddress,
}

#[derive(Debug)]
enum Connections {
    Accepted(TcpListener),
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

impl ConnectionSource {
    /// Takes over a source that this process has inherited.
    ///
    /// # Errors
    /// The runtime cannot watch the descriptor.
    pub(super) fn inherit(source: InheritedSource, descriptor: OwnedFd) -> Result<Self> {
        let InheritedSource { address, kind } = source;
        let connections = match kind {
            SourceKind::Listener => Connections::Accepted(TcpListener::from_std(descriptor.into())?),
            SourceKind::PassedConnections => Connections::Passed(PassedConnections::new(descriptor)?),
        };
        Ok(Self { connections, address })
    }

    /// Returns the next connection. `None` if there are no further ones. Waits for ever once the engine's process has ended the
    /// listening socket, because connections that were made before are still served.
    ///
    /// # Errors
    /// Those of accept(2). `ConnectionAborted` and similar errors concern one connection alone.
    pub(super) async fn accept(&self, engine: &EngineClient) -> Result<Option<AcceptedConnection>> {
        match &self.connections {
            Connections::Accepted(listener) => {
                let (stream, address) = match listener.accept().await {
                    // accept(2): the socket does not listen.
                    Err(error) if error.kind() == ErrorKind::InvalidInput => std::future::pending().await,
                    accepted => accepted?,
                };
                let (socket, peer) = (AcceptedSocket::Tcp(stream), Peer::Tcp(address));
                Ok(Some(AcceptedConnection { socket, peer, open: None }))
            }
            Connections::Passed(connections) => {
                let Some(passed) = connections.receive().await? else { return Ok(None) };
                take_over(passed, engine).map(Some)
            }
        }
    }

    /// Ends the acceptance of connections. Returns whether some may still come, because another process has accepted them.
    pub(super) fn stop(&self) -> bool {
        match &self.connections {
            Connections::Accepted(_) => false,
            Connections::Passed(connections) => {
                connections.stop();
                true
            }
        }
    }
}

fn take_over(passed: PassedConnection, engine: &EngineClient) -> Result<AcceptedConnection> {
    let PassedConnection { id, socket } = passed;
    // From here on, the engine learns of the end of the connection.
    let open = engine.adopt(id);
    let socket = socket.ok_or_else(|| Error::other("too many open files"))?;
    let stream = UnixStream::from_std(socket.into())?;
    let who = stream.peer_cred()?;
    let peer = Peer::Unix { uid: who.uid(), gid: who.gid(), pid: who.pid(), connection: Some(open.id()) };
    Ok(AcceptedConnection { socket: AcceptedSocket::Unix(stream), peer, open: Some(open) })
}
