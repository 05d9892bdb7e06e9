//! Accepts fronts in other processes (`lockhouse serve` of one AI client each) on a Unix domain socket.
//!
//! A front is trusted no more than its AI client: the kernel reports its user, who must be the user of this process, or the
//! person whom an engine of the system serves. This process itself assigns the owner of the client's runs, sessions and
//! results.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::StreamCommon;
use interprocess::local_socket::traits::tokio::Listener as _;
use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_base::principal::Principal;
use lockhouse_link::greetings;
use lockhouse_messages::{Greeting, GreetingReply, VERSIONS};
use nix::unistd::Uid;
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::time::timeout;

use crate::connected_clients::ClientRegistration;
use crate::front_budget::FrontBudget;
use crate::front_connection::{FrontKind, HttpFront};
use crate::front_link;
use crate::supervisor::Supervisor;
use crate::unix_acceptor::UnixAcceptor;
use crate::unix_connections::UnixConnections;

/// Maximum time until a new connection to an engine sends its first message.
/// Bound: engines and fronts.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after the socket failed to accept a connection. The cause is often temporary, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Which fronts an engine accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedFronts {
    /// Those of its own account that expect the setup with this digest, which is in force.
    OfSetup(String),
    /// Those of the person whom an engine of the system serves. The engine alone decides about its setup.
    OfPerson(Uid),
    /// None any more: the process ends, or its setup is none that a front could have.
    None,
}

/// Serves fronts that connect over sockets.
#[derive(Debug)]
pub struct FrontSocket {
    supervisor: Arc<Supervisor>,
    accepted: Mutex<AcceptedFronts>,
}

impl FrontSocket {
    pub fn new(supervisor: &Arc<Supervisor>, accepted: AcceptedFronts) -> Arc<Self> {
        Arc::new(Self { supervisor: supervisor.clone(), accepted: Mutex::new(accepted) })
    }

    /// Changes which fronts are accepted from now on. Fronts that are connected stay connected.
    pub fn set_accepted(&self, accepted: AcceptedFronts) {
        *self.accepted.lock() = accepted;
    }

    /// Accepts fronts until this future is dropped. Each front is served by a task, which ends with its connection or
    /// with this process.
    pub async fn accept(self: &Arc<Self>, listener: &Listener) -> Infallible {
        loop {
            match listener.accept().await {
                Ok(stream) => {
                    let socket = self.clone();
                    tokio::spawn(async move {
                        if let Err(error) = Box::pin(socket.serve(stream)).await {
                            tracing::warn!("the connection to a client ended: {error}");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!("the socket for clients cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    async fn serve(&self, stream: Stream) -> Result<()> {
        let accepted = self.accepted.lock().clone();
        let pid = trusted_peer(&stream, &accepted)?;
        let greeting = timeout(HELLO_TIMEOUT, greetings::read(&mut &stream)).await;
        let Some(greeting) = greeting.map_err(|_| Error::from(ErrorKind::TimedOut))?? else { return Ok(()) };
        let principal = Principal::for_new_connection();
        let registration = match self.accept_front(&greeting, &principal, pid) {
            Ok(registration) => registration,
            Err(Rejection::Silent) => return Ok(()),
            Err(Rejection::Reply(reply)) => return greetings::write(&mut &stream, &reply).await,
        };
        let (mut reader, mut writer) = (BufReader::new(&stream), &stream);
        let version = greeting.versions().newest_common(VERSIONS).unwrap_or(VERSIONS.newest);
        let kind = FrontKind::Client(principal);
        let served = front_link::serve(&self.supervisor, version, &mut reader, &mut writer, kind, true).await;
        // The client counts as connected until its last answer is written.
        drop(registration);
        served
    }

    /// Decides whether this engine serves a front, and registers its client if so.
    fn accept_front(
        &self,
        greeting: &Greeting,
        principal: &Principal,
        pid: u32,
    ) -> std::result::Result<ClientRegistration, Rejection> {
        let Greeting::Hello { setup, .. } = greeting;
        if greeting.versions().newest_common(VERSIONS).is_none() {
            return Err(Rejection::Reply(GreetingReply::Unsupported { version: VERSIONS.newest }));
        }
        match &*self.accepted.lock() {
            // The front looks for another engine.
            AcceptedFronts::None => return Err(Rejection::Silent),
            AcceptedFronts::OfPerson(_) => {}
            AcceptedFronts::OfSetup(expected) if setup.as_ref() == Some(expected) => {}
            AcceptedFronts::OfSetup(_) => return Err(Rejection::Reply(GreetingReply::OtherSetup)),
        }
        let registration = self.supervisor.connected_clients().register(principal.owner(), pid);
        registration.ok_or_else(|| {
            tracing::warn!("a client was refused: too many clients are connected");
            Rejection::Reply(GreetingReply::Busy)
        })
    }
}

/// Serves a front for HTTP, whose process the process of this engine started, and that has greeted it. `acceptor` accepts the
/// connections of its Unix domain sockets, and `budget` counts its requests.
///
/// # Errors
/// The connection is broken, or the front does not keep to the protocol.
pub async fn serve_http_front(
    supervisor: &Arc<Supervisor>,
    stream: &Stream,
    acceptor: UnixAcceptor,
    budget: FrontBudget,
) -> Result<()> {
    let connections = Arc::<UnixConnections>::default();
    let kind = FrontKind::Http(HttpFront { connections: connections.clone(), budget });
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    tokio::select! {
        served = front_link::serve(supervisor, VERSIONS.newest, &mut reader, &mut writer, kind, false) => served,
        violated = acceptor.run(&connections) => violated.map(|never| match never {}),
    }
}

/// Why a front is not served.
enum Rejection {
    /// The connection is closed without a reply.
    Silent,
    Reply(GreetingReply),
}

/// Returns the process id of the peer. Fails if the peer belongs to another user, as the kernel reports it, or is a
/// sandboxed upstream server.
fn trusted_peer(stream: &Stream, accepted: &AcceptedFronts) -> Result<u32> {
    let peer = stream.peer_creds()?;
    let user = match accepted {
        AcceptedFronts::OfPerson(person) => *person,
        AcceptedFronts::OfSetup(_) | AcceptedFronts::None => nix::unistd::geteuid(),
    };
    if peer.euid() != Some(user.as_raw()) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the client belongs to another user"));
    }
    let id = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    if refuses_peer(id) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the client is a sandboxed upstream server"));
    }
    Ok(id.unwrap_or_default())
}
