//! Accepts fronts in other processes (`lockhouse serve` of one AI client each) on a Unix domain socket.
//!
//! A front is trusted no more than its AI client: the kernel reports its user, who must be the user of this process, and
//! this process itself assigns the owner of the client's runs, sessions and results.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_base::principal::Principal;
use lockhouse_link::frames::{self, FrameSender};
use lockhouse_link::{EngineEndpoint, FrontEndpoint};
use lockhouse_messages::{Repetition, Response, ToEngine, ToFront};
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connected_clients::ClientRegistration;
use crate::front_connection::FrontConnection;
use crate::supervisor::Supervisor;

/// Maximum length of a message of a front, in bytes. A line of an AI client has up to 32 MiB, and its quotation marks
/// are escaped in the message.
const MESSAGE_BYTES_MAX: usize = 80 * 1024 * 1024;
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
struct SocketFront(FrameSender);

impl FrontEndpoint for SocketFront {
    fn receive(&self, message: ToFront) {
        let frame = frames::encode(&message).or_else(|error| match message {
            ToFront::Response(id, _) => {
                let reason =
                    format!("the answer is too long for the connection to the shared service: {error}");
                frames::encode(&ToFront::Response(id, Response::Unavailable(reason)))
            }
            _ => Err(error),
        });
        match frame {
            Ok(frame) => self.0.send(frame),
            Err(error) => tracing::error!("a message to a front was dropped: {error}"),
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
    pub async fn accept(self: &Arc<Self>, listener: &UnixListener) -> Infallible {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
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

    async fn serve(&self, stream: UnixStream) -> Result<()> {
        let pid = trusted_peer(&stream)?;
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let hello = timeout(HELLO_TIMEOUT, frames::read(&mut reader, MESSAGE_BYTES_MAX)).await;
        let Some(hello) = hello.map_err(|_| Error::from(ErrorKind::TimedOut))?? else { return Ok(()) };
        let hello: ToEngine = serde_json::from_slice(&hello)?;
        let (sender, frames) = frames::queue();
        let front: Arc<dyn FrontEndpoint> = Arc::new(SocketFront(sender.clone()));
        let mut writing = tokio::spawn(async move { frames.write_to(&mut writer).await });
        // The client counts as connected until its last answer is written.
        let mut registration = None;
        let served = tokio::select! {
            served = self.serve_front((&front, &sender), &hello, &mut reader, (pid, &mut registration)) => served,
            written = &mut writing => return written.unwrap_or(Ok(())),
        };
        // The queue ends with its last sender, and what is in it is still sent.
        drop((front, sender));
        let _ = timeout(FLUSH_TIMEOUT, writing).await;
        served
    }

    async fn serve_front(
        &self,
        (front, sender): (&Arc<dyn FrontEndpoint>, &FrameSender),
        hello: &ToEngine,
        reader: &mut BufReader<OwnedReadHalf>,
        (pid, registration): (u32, &mut Option<ClientRegistration>),
    ) -> Result<()> {
        let ToEngine::Hello { version, setup } = hello else { return Err(ErrorKind::InvalidData.into()) };
        let expected = self.setup.lock().clone();
        match (&expected, setup) {
            // The front looks for another engine.
            (None, _) => return Ok(()),
            (Some(expected), Some(setup)) if expected == setup => {}
            _ => {
                front.receive(ToFront::OtherSetup);
                return Ok(());
            }
        }
        let principal = Principal::for_new_connection();
        let clients = self.supervisor.connected_clients();
        *registration = clients.register(principal.owner(), pid);
        if registration.is_none() {
            return Err(Error::other("too many clients are connected"));
        }
        let connection = FrontConnection::for_client(&self.supervisor, Arc::downgrade(front), principal);
        connection.receive(ToEngine::Hello { version: *version, setup: setup.clone() });
        let lifecycle = self.supervisor.lifecycle();
        let result = tokio::select! {
            result = receive(reader, &connection, front, sender, lifecycle.draining()) => result,
            () = lifecycle.closing().cancelled() => Ok(()),
        };
        connection.receive(ToEngine::Goodbye);
        result
    }
}

/// Passes the messages of a front on until it closes the connection.
async fn receive(
    reader: &mut BufReader<OwnedReadHalf>,
    connection: &FrontConnection,
    front: &Arc<dyn FrontEndpoint>,
    sender: &FrameSender,
    draining: &CancellationToken,
) -> Result<()> {
    while let Some(message) = frames::read(reader, MESSAGE_BYTES_MAX).await? {
        match serde_json::from_slice(&message) {
            Ok(message) => {
                if let ToEngine::Request(id, _, request) = &message
                    && request.repetition() == Repetition::Never
                {
                    // The front sends it to the next engine, since this one does not begin it.
                    if draining.is_cancelled() {
                        continue;
                    }
                    sender.send_and_wait(frames::encode(&ToFront::Begun(*id))?).await?;
                }
                connection.receive(message);
            }
            Err(error) => match frames::exchange_of(&message) {
                Some(id) => {
                    let reason = format!(
                        "the request cannot be read, for example because it is nested too deeply: {error}"
                    );
                    front.receive(ToFront::Response(id, Response::Invalid(reason)));
                }
                None => return Err(error.into()),
            },
        }
    }
    Ok(())
}

/// Returns the process id of the peer. Fails if the peer belongs to another user, as the kernel reports it, or is a
/// sandboxed upstream server.
fn trusted_peer(stream: &UnixStream) -> Result<u32> {
    let peer = stream.peer_cred()?;
    if peer.uid() != nix::unistd::geteuid().as_raw() {
        return Err(Error::new(ErrorKind::PermissionDenied, "the client belongs to another user"));
    }
    let id = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    if refuses_peer(id) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the client is a sandboxed upstream server"));
    }
    Ok(id.unwrap_or_default())
}
