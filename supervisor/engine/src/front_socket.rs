//! Accepts fronts in other processes (`lockhouse serve` of one AI client each) on a Unix domain socket.
//!
//! A front is trusted no more than its AI client: the kernel reports its user, who must be the user of this process, and
//! this process itself assigns the owner of the client's runs, sessions and results.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::StreamCommon;
use interprocess::local_socket::traits::tokio::Listener as _;
use lockhouse_access::Authenticator;
use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_base::principal::Principal;
use lockhouse_link::{
    self as link, EngineEndpoint, FROM_FRONT, FromFront, FrontEndpoint, OutboxSender, Parts, Queued,
    Receiver, Waiting, greetings, memory_of, outbox, read_from_front, to_parts,
};
use lockhouse_messages::{
    ExchangeId, Greeting, GreetingReply, Repetition, Response, ToEngine, ToFront, VERSIONS,
};
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connected_clients::ClientRegistration;
use crate::front_connection::{FrontConnection, FrontKind};
use crate::supervisor::Supervisor;

/// Maximum time until a new connection sends its first message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the answers that are still in the queue of a connection when it ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after the socket failed to accept a connection. The cause is often temporary, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Serves fronts that connect over sockets.
#[derive(Debug)]
pub struct FrontSocket {
    supervisor: Arc<Supervisor>,
    /// The digest of the setup that is in force. A front that expects another setup is rejected. `None` if no front is
    /// accepted any more: the process ends, or its setup is none that a front could have.
    setup: Mutex<Option<String>>,
}

/// The sending side of the connection to a front.
#[derive(Debug)]
struct SocketFront(OutboxSender);

impl FrontEndpoint for SocketFront {
    fn receive(&self, message: ToFront) -> Option<Waiting> {
        let id = message.exchange().unwrap_or(ExchangeId(0));
        let (can_wait, is_response) = match &message {
            ToFront::Event(..) => (true, false),
            ToFront::Response(..) => (true, true),
            _ => (false, false),
        };
        let parts = match to_parts(message) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::error!("a message to a front was dropped: {error}");
                if is_response {
                    self.send_urgent(ToFront::Response(id, Response::EngineFailed));
                }
                return None;
            }
        };
        if !can_wait {
            self.0.send_urgent(id, parts);
            return None;
        }
        match self.0.send(id, parts) {
            Queued::Done => None,
            Queued::Waits(waiting) => Some(waiting),
            Queued::Refused(_) if is_response => {
                let reason = "too many large answers wait until this client has read them; ask again later";
                self.send_urgent(ToFront::Response(id, Response::Unavailable(reason.to_owned())));
                None
            }
            // Events are short, and the front must not miss one.
            Queued::Refused(parts) => {
                self.0.send_urgent(id, parts);
                None
            }
        }
    }
}

impl SocketFront {
    fn send_urgent(&self, message: ToFront) {
        let id = message.exchange().unwrap_or(ExchangeId(0));
        if let Ok(parts) = to_parts(message) {
            self.0.send_urgent(id, parts);
        }
    }
}

impl FrontSocket {
    pub fn new(supervisor: &Arc<Supervisor>, setup: String) -> Arc<Self> {
        Arc::new(Self { supervisor: supervisor.clone(), setup: Mutex::new(Some(setup)) })
    }

    /// Changes the setup that fronts must expect. With `None`, no further front is accepted. Fronts that are connected stay
    /// connected.
    pub fn set_setup(&self, setup: Option<String>) {
        *self.setup.lock() = setup;
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
        let pid = trusted_peer(&stream)?;
        let greeting = timeout(HELLO_TIMEOUT, greetings::read(&mut &stream)).await;
        let Some(greeting) = greeting.map_err(|_| Error::from(ErrorKind::TimedOut))?? else { return Ok(()) };
        let principal = Principal::for_new_connection();
        let registration = match self.accept_front(&greeting, &principal, pid) {
            Ok(registration) => registration,
            Err(Rejection::Silent) => return Ok(()),
            Err(Rejection::Reply(reply)) => return greetings::write(&mut &stream, &reply).await,
        };
        let version = greeting.versions().newest_common(VERSIONS).unwrap_or(VERSIONS.newest);
        let incarnation = Some(self.supervisor.incarnation());
        greetings::write(&mut &stream, &GreetingReply::Welcome { version, incarnation }).await?;
        let served = self.serve_front(&stream, &principal).await;
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
        match &*self.setup.lock() {
            // The front looks for another engine.
            None => return Err(Rejection::Silent),
            Some(expected) if setup.as_ref() == Some(expected) => {}
            Some(_) => return Err(Rejection::Reply(GreetingReply::OtherSetup)),
        }
        let registration = self.supervisor.connected_clients().register(principal.owner(), pid);
        registration.ok_or_else(|| {
            tracing::warn!("a client was refused: too many clients are connected");
            Rejection::Reply(GreetingReply::Busy)
        })
    }

    async fn serve_front(&self, stream: &Stream, principal: &Principal) -> Result<()> {
        let kind = FrontKind::Client(principal.clone());
        serve_connection(&self.supervisor, stream, kind, true).await
    }
}

/// Serves a front whose process the process of this engine started, and that has greeted it. `authenticator` verifies the
/// credentials of AI clients if the front serves them over HTTP.
pub async fn serve_child(
    supervisor: &Arc<Supervisor>,
    stream: &Stream,
    authenticator: Option<Arc<Authenticator>>,
) -> Result<()> {
    let kind = match authenticator {
        Some(authenticator) => {
            supervisor.set_authenticator(authenticator);
            // The front runs the same program under the same account, and this process passed it its listeners.
            FrontKind::Http { reports_peers: true }
        }
        None => FrontKind::Client(Principal::for_new_connection()),
    };
    let (version, incarnation) = (VERSIONS.newest, Some(supervisor.incarnation()));
    greetings::write(&mut &*stream, &GreetingReply::Welcome { version, incarnation }).await?;
    serve_connection(supervisor, stream, kind, false).await
}

/// Serves a front until its connection ends, or this process stops serving AI clients. `has_successor` says whether the
/// front sends requests that arrive during a drain to the next engine.
async fn serve_connection(
    supervisor: &Arc<Supervisor>,
    stream: &Stream,
    kind: FrontKind,
    has_successor: bool,
) -> Result<()> {
    let (sender, outbox) = outbox();
    let front: Arc<dyn FrontEndpoint> = Arc::new(SocketFront(sender.clone()));
    let connection = FrontConnection::remote(supervisor, Arc::downgrade(&front), kind);
    connection.begin();
    let lifecycle = supervisor.lifecycle();
    let closed = async {
        lifecycle.closing().cancelled().await;
        // A front without another engine closes the connection itself, when it has sent its last responses.
        if has_successor {
            // What is in the queue is still sent.
            sender.close();
        }
        std::future::pending::<()>().await;
    };
    let never = CancellationToken::new();
    let draining = if has_successor { lifecycle.draining() } else { &never };
    let mut receiver =
        FromFrontReceiver { connection: &connection, front: &front, sender: &sender, draining };
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let serving = link::serve(&mut reader, &mut writer, FROM_FRONT, (&sender, outbox), &mut receiver);
    let closing = async {
        lifecycle.closing().cancelled().await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
    };
    let result = tokio::select! {
        result = serving => result,
        () = closed => Ok(()),
        () = closing => Ok(()),
    };
    drop(connection.receive(ToEngine::Goodbye));
    result
}

/// Why a front is not served.
enum Rejection {
    /// The connection is closed without a reply.
    Silent,
    Reply(GreetingReply),
}

/// Takes the messages of a front.
struct FromFrontReceiver<'f> {
    connection: &'f FrontConnection,
    front: &'f Arc<dyn FrontEndpoint>,
    sender: &'f OutboxSender,
    draining: &'f CancellationToken,
}

impl Receiver for FromFrontReceiver<'_> {
    async fn receive(&mut self, _: ExchangeId, parts: Parts) -> Result<()> {
        let bytes = memory_of(&parts);
        let waiting = match read_from_front(parts)? {
            FromFront::Message(message) => {
                if let ToEngine::Request(id, _, request) = &message
                    && request.repetition() == Repetition::Never
                {
                    // The front sends it to the next engine, since this one does not begin it.
                    if self.draining.is_cancelled() {
                        return Ok(());
                    }
                    self.sender.send_urgent_and_wait(*id, to_parts(ToFront::Begun(*id))?).await?;
                }
                self.connection.receive_from_process(message, bytes)
            }
            FromFront::Refused(id, response) => {
                // A request of which an input cannot be read ends here too.
                drop(self.connection.receive(ToEngine::Close(id)));
                self.front.send(ToFront::Response(id, response))
            }
            FromFront::Skipped => {
                tracing::debug!("skipped a message of a newer version of a front");
                None
            }
        };
        // A front that does not read its responses is not read either.
        if let Some(waiting) = waiting {
            waiting.await;
        }
        Ok(())
    }
}

/// Returns the process id of the peer. Fails if the peer belongs to another user, as the kernel reports it, or is a
/// sandboxed upstream server.
fn trusted_peer(stream: &Stream) -> Result<u32> {
    let peer = stream.peer_creds()?;
    if peer.euid() != Some(nix::unistd::geteuid().as_raw()) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the client belongs to another user"));
    }
    let id = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    if refuses_peer(id) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the client is a sandboxed upstream server"));
    }
    Ok(id.unwrap_or_default())
}
