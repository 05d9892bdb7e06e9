//! The front's connection to an engine in another process. It survives that process: requests in flight are repeated if
//! they only read, and otherwise answered with an error; then the front connects again.

mod open_requests;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_messages::{
    Event, ExchangeId, Greeting, GreetingReply, Incarnation, LifecycleState, ListChanges, Repetition,
    Response, ToEngine, ToFront, VERSIONS,
};
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

use crate::assembler::Parts;
use crate::connection::{self, FROM_ENGINE, Receiver};
use crate::encoding::{read_from_engine, to_parts};
use crate::endpoints::{EngineEndpoint, FrontEndpoint};
use crate::greetings;
use crate::outbox::{OutboxSender, OutboxWriter, Waiting, outbox};
use open_requests::{OpenRequests, StoredRequest};

/// Number of bytes of all requests that are stored because they may have to be sent again. Further ones wait.
const STORED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum time for the first messages of a connection.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// If a connection ends sooner than this, the next one is opened only for the next request. So an engine that fails at
/// its start is not started again and again.
const STABLE_AFTER: Duration = Duration::from_secs(1);

/// A connection to the process of an engine.
#[derive(Debug)]
pub struct EngineSocket {
    pub stream: Stream,
    /// The digest of the setup that the engine must have. `None` for an engine of the system, which alone decides about that.
    pub setup: Option<String>,
}

/// Which process of an engine a front connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineSource {
    /// The one behind a socket that a service manager holds, if there is such a socket.
    Activated,
    /// The one that is started when it is needed, by the first front that needs it.
    OnDemand,
}

/// Finds or starts the process of an engine, and connects to it.
pub type Connect = Box<dyn Fn(EngineSource) -> Connecting + Send + Sync>;
type Connecting = Pin<Box<dyn Future<Output = Result<EngineSocket, RemoteEngineError>> + Send>>;

/// Why the process of an engine does not serve a front, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub enum RemoteEngineError {
    /// The process cannot be found or started.
    #[error(transparent)]
    Unavailable(Box<dyn std::error::Error + Send + Sync>),
    #[error("the shared Lockhouse service closed the connection: {0}")]
    Closed(#[from] std::io::Error),
    #[error("the shared Lockhouse service does not answer")]
    NoAnswer,
    #[error("the shared Lockhouse service is ending, or does not accept more clients")]
    Busy,
    #[error(
        "Lockhouse was updated: its shared service uses version {version} of their protocol, and this process uses version \
         {}; restart this MCP server in your AI client",
        VERSIONS.newest
    )]
    OtherVersion { version: u32 },
    #[error("the shared Lockhouse service has another configuration, policy or environment")]
    OtherSetup,
}

/// How a front reaches an engine in another process.
pub struct RemoteEngineSettings {
    pub connect: Connect,
    /// Where a person finds the reason for the end of the engine's process: a sentence.
    pub advice: String,
}

/// The front's end of the connections to the engine's process: at most one at a time.
pub(crate) struct RemoteEngine {
    weak: Weak<Self>,
    front: Weak<dyn FrontEndpoint>,
    requests: Mutex<OpenRequests>,
    /// Room for stored requests, in bytes.
    memory: Arc<Semaphore>,
    /// Notified when a request is opened.
    requested: Notify,
    /// Whether AI clients can connect to the front, which each engine learns.
    is_listening: AtomicBool,
    remote: RemoteEngineSettings,
}

/// A connection on which the engine has accepted the front.
pub(crate) struct AcceptedLink {
    stream: Stream,
    incarnation: Option<Incarnation>,
}

/// A connection that is in use.
pub(crate) struct ActiveLink {
    stream: Stream,
    sender: OutboxSender,
    outbox: OutboxWriter,
}

/// Connects to the engine's process, and waits until it has accepted the front.
pub(crate) async fn open_link(connect: &Connect) -> Result<AcceptedLink, RemoteEngineError> {
    use RemoteEngineError::{Busy, Closed, NoAnswer};
    if let Ok(socket) = connect(EngineSource::Activated).await
        && let Ok(link) = shake_hands(socket).await
    {
        return Ok(link);
    }
    match shake_hands(connect(EngineSource::OnDemand).await?).await {
        // A service without clients may end just now. Another one is then started.
        Err(Busy | Closed(_) | NoAnswer) => shake_hands(connect(EngineSource::OnDemand).await?).await,
        opened => opened,
    }
}

async fn shake_hands(socket: EngineSocket) -> Result<AcceptedLink, RemoteEngineError> {
    let greeted = timeout(HANDSHAKE_TIMEOUT, exchange_greetings(socket)).await;
    greeted.unwrap_or(Err(RemoteEngineError::NoAnswer))
}

async fn exchange_greetings(socket: EngineSocket) -> Result<AcceptedLink, RemoteEngineError> {
    let EngineSocket { stream, setup } = socket;
    greetings::write(&mut &stream, &Greeting::new(setup)).await?;
    match greetings::read(&mut &stream).await? {
        Some(GreetingReply::Welcome { incarnation, .. }) => Ok(AcceptedLink { stream, incarnation }),
        Some(GreetingReply::Unsupported { version }) => Err(RemoteEngineError::OtherVersion { version }),
        Some(GreetingReply::OtherSetup) => Err(RemoteEngineError::OtherSetup),
        Some(GreetingReply::Busy) | None => Err(RemoteEngineError::Busy),
    }
}

impl RemoteEngine {
    pub(crate) fn new(front: Weak<dyn FrontEndpoint>, remote: RemoteEngineSettings) -> Arc<Self> {
        let (requests, requested) = (Mutex::default(), Notify::new());
        let memory = Arc::new(Semaphore::new(STORED_BYTES_MAX));
        let is_listening = AtomicBool::new(false);
        Arc::new_cyclic(|weak| Self {
            weak: weak.clone(),
            front,
            requests,
            memory,
            requested,
            is_listening,
            remote,
        })
    }

    /// Uses a new connection for all requests from now on.
    pub(crate) fn adopt(&self, link: AcceptedLink) -> ActiveLink {
        let AcceptedLink { stream, incarnation } = link;
        if let Some(incarnation) = incarnation {
            tracing::debug!("connected to the incarnation {incarnation} of the shared service");
        }
        let (sender, outbox) = outbox();
        let following = self.requests.lock().connected(sender.clone());
        if self.is_listening.load(Ordering::Relaxed)
            && let Ok(parts) = to_parts(ToEngine::Listening)
        {
            self.requests.lock().send(parts);
        }
        // What the previous process would have reported is not known.
        for id in following {
            let changed = ListChanges { tools: true, resources: true, prompts: true, updated: Vec::new() };
            self.deliver(ToFront::Event(id, Event::Changed(changed)));
        }
        ActiveLink { stream, sender, outbox }
    }

    /// Serves the connection, and each further one after it, until this future is dropped.
    pub(crate) async fn run(self: Arc<Self>, mut link: ActiveLink) {
        loop {
            let since = Instant::now();
            self.serve(link).await;
            self.end_lost_requests();
            if since.elapsed() < STABLE_AFTER {
                self.wait_for_request().await;
            }
            link = self.reconnect().await;
        }
    }

    /// Connects again, at once and then for each further request, until there is a connection.
    async fn reconnect(&self) -> ActiveLink {
        loop {
            match open_link(&self.remote.connect).await {
                Ok(link) => {
                    tracing::info!("connected to the shared service again");
                    return self.adopt(link);
                }
                Err(reason) => {
                    tracing::warn!("the shared service cannot be reached: {reason}");
                    let message = format!("{reason}. Nothing was run. {}", self.remote.advice);
                    let waiting = self.requests.lock().give_up();
                    for id in waiting {
                        self.deliver(ToFront::Response(id, Response::Unavailable(message.clone())));
                    }
                    self.wait_for_request().await;
                }
            }
        }
    }

    /// Waits until a request waits for a connection.
    async fn wait_for_request(&self) {
        loop {
            let requested = self.requested.notified();
            tokio::pin!(requested);
            requested.as_mut().enable();
            if self.requests.lock().has_waiting() {
                return;
            }
            requested.await;
        }
    }

    /// Reads and writes messages until the connection is lost.
    async fn serve(&self, link: ActiveLink) {
        let ActiveLink { stream, sender, outbox } = link;
        let mut reader = BufReader::new(&stream);
        let mut from_engine = FromEngine(self);
        let served =
            connection::serve(&mut reader, &mut &stream, FROM_ENGINE, &sender, outbox, &mut from_engine)
                .await;
        let reason = served.map_or_else(|error| error.to_string(), |()| "it has ended".to_owned());
        tracing::warn!("the connection to the shared service is lost: {reason}");
    }

    fn receive_from_engine(&self, message: ToFront) {
        match &message {
            ToFront::Lifecycle(LifecycleState::Draining { .. }) => self.requests.lock().draining(),
            // The front continues with the next process.
            ToFront::Lifecycle(LifecycleState::Closing) => return,
            ToFront::Begun(id) => return self.requests.lock().begun(*id),
            ToFront::Response(id, _) => self.requests.lock().remove(*id),
            ToFront::Lifecycle(LifecycleState::Serving)
            | ToFront::AccessEnded { .. }
            | ToFront::SessionMessage(_)
            | ToFront::Settings(_)
            | ToFront::Event(..) => {}
        }
        self.deliver(message);
    }

    /// Answers the requests that the process which has ended may have carried out.
    fn end_lost_requests(&self) {
        let lost = self.requests.lock().disconnected();
        let message = format!(
            "the shared Lockhouse service ended before it answered. The program or call may have run, in part or \
             completely: check its effects, and repeat it only if that is safe. Sessions and handles of before are gone. {}",
            self.remote.advice
        );
        for id in lost {
            self.deliver(ToFront::Response(id, Response::Unavailable(message.clone())));
        }
    }

    fn deliver(&self, message: ToFront) {
        if let Some(front) = self.front.upgrade() {
            // A front in this process takes each message at once.
            drop(front.receive(message));
        }
    }

    fn refuse(&self, id: ExchangeId, reason: &str) {
        self.deliver(ToFront::Response(id, Response::Unavailable(reason.to_owned())));
    }

    /// Sends a request, or stores it until there is a connection. Returns a future if there is no room for the request yet.
    fn open(&self, id: ExchangeId, repetition: Repetition, message: ToEngine) -> Option<Waiting> {
        let parts = match to_parts(message) {
            Ok(parts) => parts,
            Err(error) => {
                self.refuse(id, &format!("the request cannot be sent: {error}"));
                return None;
            }
        };
        let bytes = parts.iter().map(Vec::len).sum::<usize>().min(STORED_BYTES_MAX);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Ok(memory) = self.memory.clone().try_acquire_many_owned(bytes) {
            self.add(id, repetition, StoredRequest { parts, memory: Some(Arc::new(memory)) });
            return None;
        }
        let (memory, engine) = (self.memory.clone(), self.weak.clone());
        Some(Box::pin(async move {
            let memory = memory.acquire_many_owned(bytes).await;
            if let (Ok(memory), Some(engine)) = (memory, engine.upgrade()) {
                engine.add(id, repetition, StoredRequest { parts, memory: Some(Arc::new(memory)) });
            }
        }))
    }

    fn add(&self, id: ExchangeId, repetition: Repetition, request: StoredRequest) {
        let opened = self.requests.lock().open(id, request, repetition);
        match opened {
            true => self.requested.notify_waiters(),
            false => self.refuse(id, "too many requests are open; wait for their answers first"),
        }
    }
}

/// Takes the messages of the engine.
struct FromEngine<'e>(&'e RemoteEngine);

impl Receiver for FromEngine<'_> {
    async fn receive(&mut self, _: ExchangeId, parts: Parts) -> std::io::Result<()> {
        match read_from_engine(parts)? {
            Some(message) => self.0.receive_from_engine(message),
            None => tracing::debug!("skipped a message of a newer version of the shared service"),
        }
        Ok(())
    }
}

impl EngineEndpoint for RemoteEngine {
    fn begin(&self) {}

    fn receive(&self, message: ToEngine) -> Option<Waiting> {
        let repetition = match &message {
            // The connection ends with the process.
            ToEngine::Goodbye => return None,
            ToEngine::Request(id, _, request) => Some((*id, request.repetition())),
            ToEngine::Listening => {
                self.is_listening.store(true, Ordering::Relaxed);
                None
            }
            ToEngine::Input(..)
            | ToEngine::Credit(..)
            | ToEngine::Close(_)
            | ToEngine::InFlight { .. }
            | ToEngine::McpSessionEnded(_)
            | ToEngine::ConnectionClosed(_)
            | ToEngine::Counters(_)
            | ToEngine::BeginSpan(..)
            | ToEngine::EndSpan(..) => None,
        };
        if let Some((id, repetition)) = repetition {
            return self.open(id, repetition, message);
        }
        let (exchange, is_close) = (message.exchange(), matches!(message, ToEngine::Close(_)));
        let Ok(parts) = to_parts(message) else { return None };
        let mut requests = self.requests.lock();
        match exchange {
            Some(id) => requests.send_about(id, parts),
            None => requests.send(parts),
        }
        if let (Some(id), true) = (exchange, is_close) {
            requests.remove(id);
        }
        None
    }
}
