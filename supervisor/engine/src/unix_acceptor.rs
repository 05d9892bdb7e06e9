//! Accepts AI clients at the Unix domain sockets of a front in another process, and passes their connections to it. So the
//! user at the other end of a connection is the one that the kernel reported to this process, whatever the front says.

use std::convert::Infallible;
use std::io::{ErrorKind, Result};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::UnixPeer;
use lockhouse_base::log_throttle::LogThrottle;
use lockhouse_base::unix_accept;
use lockhouse_link::ConnectionPasser;
use tokio::net::{UnixListener, UnixStream};

use crate::unix_connections::UnixConnections;

/// Pause after a socket failed to accept or pass a connection. The cause is often temporary, such as too many open files.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Accepts the connections of the Unix domain sockets of a front in another process.
#[derive(Debug)]
pub struct UnixAcceptor {
    sockets: Vec<(Arc<UnixListener>, ConnectionPasser)>,
    connections_max: usize,
}

impl UnixAcceptor {
    /// Each listening socket has the end of a pair, at whose other end the front takes the connections. While the front has
    /// `connections_max` open connections that were accepted here, no further one is accepted.
    pub fn new(sockets: Vec<(Arc<UnixListener>, ConnectionPasser)>, connections_max: usize) -> Self {
        Self { sockets, connections_max }
    }

    /// Accepts connections until this future is dropped.
    ///
    /// # Errors
    /// The front violates the protocol.
    pub(crate) async fn run(self, connections: &UnixConnections) -> Result<Infallible> {
        let Self { sockets, connections_max } = self;
        let accepting = sockets
            .into_iter()
            .map(|(listener, passer)| accept_all(listener, passer, connections, connections_max));
        futures_util::future::try_join_all(accepting).await?;
        std::future::pending().await
    }
}

/// Accepts the connections of one listening socket, until the front takes no further one.
async fn accept_all(
    listener: Arc<UnixListener>,
    passer: ConnectionPasser,
    connections: &UnixConnections,
    connections_max: usize,
) -> Result<()> {
    let log = LogThrottle::default();
    loop {
        let accepted = tokio::select! {
            biased;
            closed = passer.closed() => return closed,
            accepted = async {
                connections.wait_for_room(connections_max).await;
                accept(&listener).await
            } => accepted,
        };
        let passed = match accepted {
            Ok((stream, peer)) => pass(&stream, peer, &passer, connections).await,
            Err(error) => Err(error),
        };
        let Err(error) = passed else { continue };
        match error.kind() {
            ErrorKind::BrokenPipe => return Ok(()),
            // They concern one connection alone.
            ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted => {}
            _ => {
                log.write(|times| tracing::warn!("cannot accept connections: {error}{times}"));
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

async fn accept(listener: &UnixListener) -> Result<(UnixStream, UnixPeer)> {
    let stream = unix_accept::accept(listener).await?;
    let peer = UnixPeer::of(&stream).map_err(|_| ErrorKind::ConnectionAborted)?;
    Ok((stream, peer))
}

/// Passes a connection to the front. This process then closes its descriptor: what the kernel said about the connection
/// holds as long as that exists.
async fn pass(
    stream: &UnixStream,
    peer: UnixPeer,
    passer: &ConnectionPasser,
    connections: &UnixConnections,
) -> Result<()> {
    // Before the front can name it.
    let id = connections.add(peer);
    let passed = passer.pass(id, stream.as_fd()).await;
    if passed.is_err() {
        connections.remove(id);
    }
    passed
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::ConnectionRefused;
    use std::os::fd::{AsRawFd, OwnedFd};

    use lockhouse_link::{PassedConnection, PassedConnections};
    use nix::sys::socket::{Backlog, MsgFlags, listen, send};
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;

    /// A listening socket whose connections are accepted for a front, which the test plays.
    struct Setup {
        directory: tempfile::TempDir,
        connections: Arc<UnixConnections>,
        front: OwnedFd,
        accepting: JoinHandle<Result<()>>,
    }

    impl Setup {
        fn new(connections_max: usize) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let listener = UnixListener::bind(directory.path().join("socket")).expect("a listener");
            listen(&listener, Backlog::new(8).expect("a length")).expect("a short queue");
            let listener = Arc::new(listener);
            let (passer, front) = ConnectionPasser::pair().expect("a pair");
            let connections = Arc::<UnixConnections>::default();
            let table = connections.clone();
            let accepting =
                tokio::spawn(async move { accept_all(listener, passer, &table, connections_max).await });
            Self { directory, connections, front, accepting }
        }

        async fn connect(&self) -> Result<UnixStream> {
            UnixStream::connect(self.directory.path().join("socket")).await
        }

        fn receiver(&self) -> PassedConnections {
            PassedConnections::new(self.front.try_clone().expect("a descriptor")).expect("watched")
        }
    }

    async fn next(receiver: &PassedConnections) -> Option<PassedConnection> {
        let received = timeout(Duration::from_secs(10), receiver.receive()).await.expect("in time");
        received.expect("no error")
    }

    #[tokio::test]
    async fn a_connection_has_the_user_whom_the_kernel_reports_before_the_front_gets_it() {
        let setup = Setup::new(10);
        let receiver = setup.receiver();
        let _client = setup.connect().await.expect("connected");
        let PassedConnection { id, socket } = next(&receiver).await.expect("a connection");
        let expected = UnixPeer::of(&socket.expect("its socket")).expect("a user");
        assert_eq!(setup.connections.peer(id), Some(expected));
        let _second = setup.connect().await.expect("connected");
        assert_ne!(next(&receiver).await.expect("a connection").id, id);
    }

    #[tokio::test]
    async fn a_front_that_closes_nothing_gets_no_further_connection() {
        let setup = Setup::new(2);
        let (receiver, mut clients, mut passed) = (setup.receiver(), Vec::new(), Vec::new());
        for _ in 0..5 {
            clients.push(setup.connect().await.expect("the kernel queues it"));
        }
        for _ in 0..2 {
            passed.push(next(&receiver).await.expect("a connection"));
        }
        let more = timeout(Duration::from_millis(200), receiver.receive()).await;
        assert!(more.is_err(), "{more:?}");
        setup.connections.remove(passed.remove(0).id);
        passed.push(next(&receiver).await.expect("control: one in place of the closed one"));
        assert!(timeout(Duration::from_millis(200), receiver.receive()).await.is_err());
    }

    #[tokio::test]
    async fn a_front_that_does_not_read_makes_the_acceptor_wait() {
        let setup = Setup::new(100_000);
        let (mut clients, mut refusals) = (Vec::new(), 0);
        while refusals < 5 {
            match setup.connect().await {
                Ok(client) => clients.push(client),
                Err(_) => refusals += 1,
            }
            if clients.len() % 8 == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert!((100..800).contains(&clients.len()), "{}", clients.len());
        let receiver = setup.receiver();
        for number in 0..clients.len() {
            let passed = next(&receiver).await;
            assert!(passed.is_some_and(|passed| passed.socket.is_some()), "control: {number} arrives");
            clients.pop();
        }
    }

    #[tokio::test]
    async fn nothing_is_accepted_for_a_front_that_stops_or_sends() {
        for case in ["control", "stops", "sends", "ends"] {
            let setup = Setup::new(10);
            let _client = setup.connect().await.expect("connected");
            let receiver = setup.receiver();
            assert!(next(&receiver).await.is_some());
            match case {
                "stops" => receiver.stop(),
                "sends" => assert_eq!(send(setup.front.as_raw_fd(), &[0; 64], MsgFlags::empty()), Ok(64)),
                _ => {}
            }
            drop(receiver);
            let Setup { directory, front, accepting, .. } = setup;
            let _front = Some(front).filter(|_| case != "ends");
            let ended = timeout(Duration::from_secs(if case == "control" { 1 } else { 10 }), accepting).await;
            assert_eq!(ended.is_err(), case == "control", "{case}");
            let connected = UnixStream::connect(directory.path().join("socket")).await;
            let is_refused = connected.is_err_and(|error| error.kind() == ConnectionRefused);
            assert_eq!(is_refused, case != "control", "{case}");
        }
    }
}
