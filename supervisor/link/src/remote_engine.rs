//! The front's connection to an engine in another process. It survives that process: requests in flight are repeated if
//! they only read, and otherwise answered with an error; then the front connects again.

mod open_requests;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::frames::{self, FRAME_BYTES_MAX, FrameWriter};
use crate::{EngineEndpoint, FrontEndpoint};
use lockhouse_messages::{
    Event, ExchangeId, FrontSettings, LifecycleState, ListChanges, Repetition, Response, ToEngine, ToFront,
    VERSION,
};
use open_requests::OpenRequests;

/// Maximum time for the first messages of a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// If a connection ends sooner than this, the next one is opened only for the next request. So an engine that fails at
/// its start is not started again and again.
const STABLE_AFTER: Duration = Duration::from_secs(1);

/// A connection to the process of an engine, and the digest of the setup that this engine must have.
#[derive(Debug)]
pub struct EngineSocket {
    pub stream: UnixStream,
    pub setup: String,
}

/// Which process of an engine a front connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineSource {
    /// The one behind a socket that a service manager holds, if there is such a socket.
    Activated,
    /// The one that is started when it is needed, by the first front that needs it.
    OnDemand,
}

/// Finds or starts the process of an engine, and connects to it. An error is a sentence without its full stop.
pub type Connect = Box<
    dyn Fn(EngineSource) -> Pin<Box<dyn Future<Output = Result<EngineSocket, String>> + Send>> + Send + Sync,
>;

/// How a front reaches an engine in another process.
pub struct RemoteEngineSettings {
    pub connect: Connect,
    /// Where a person finds the reason for the end of the engine's process: a sentence.
    pub advice: String,
}

/// The front's end of the connections to the engine's process: at most one at a time.
pub(crate) struct RemoteEngine {
    front: Weak<dyn FrontEndpoint>,
    requests: Mutex<OpenRequests>,
    /// Notified when a request is opened.
    requested: Notify,
    /// Whether AI clients can connect to the front, which each engine learns.
    is_listening: AtomicBool,
    remote: RemoteEngineSettings,
}

/// A connection on which the engine has accepted the front.
pub(crate) struct AcceptedLink {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    settings: FrontSettings,
}

/// A connection that is in use.
pub(crate) struct ActiveLink {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    frames: FrameWriter,
}

/// Why the engine's process does not serve a front.
enum Rejection {
    /// The process ended, or does not answer.
    Ended(String),
    /// The process refused the front.
    Refused(String),
}

/// Connects to the engine's process, and waits until it has accepted the front.
pub(crate) async fn open_link(connect: &Connect) -> Result<AcceptedLink, String> {
    if let Ok(socket) = connect(EngineSource::Activated).await
        && let Ok(link) = shake_hands(socket).await
    {
        return Ok(link);
    }
    // A service without clients may end just now. Another one is then started.
    for is_last in [false, true] {
        match shake_hands(connect(EngineSource::OnDemand).await?).await {
            Ok(link) => return Ok(link),
            Err(Rejection::Ended(_)) if !is_last => {}
            Err(Rejection::Ended(reason) | Rejection::Refused(reason)) => return Err(reason),
        }
    }
    Err("the shared Lockhouse service ended".to_owned())
}

async fn shake_hands(socket: EngineSocket) -> Result<AcceptedLink, Rejection> {
    let broken = |error: std::io::Error| {
        Rejection::Ended(format!("the shared Lockhouse service closed the connection: {error}"))
    };
    match timeout(HANDSHAKE_TIMEOUT, exchange_greetings(socket)).await {
        Ok(Ok(accepted)) => accepted,
        Ok(Err(error)) => Err(broken(error)),
        Err(_) => Err(Rejection::Ended("the shared Lockhouse service does not answer".to_owned())),
    }
}

async fn exchange_greetings(socket: EngineSocket) -> std::io::Result<Result<AcceptedLink, Rejection>> {
    let (reader, mut writer) = socket.stream.into_split();
    let mut reader = BufReader::new(reader);
    let hello = ToEngine::Hello { version: VERSION, setup: Some(socket.setup) };
    writer.write_all(&frames::encode(&hello)?).await?;
    loop {
        return Ok(Err(match read(&mut reader).await? {
            Some(ToFront::Welcome { .. }) => continue,
            Some(ToFront::Settings(settings)) => return Ok(Ok(AcceptedLink { reader, writer, settings })),
            Some(ToFront::Unsupported { version }) => Rejection::Refused(format!(
                "Lockhouse was updated: its shared service uses version {version} of their protocol, and this process uses \
                 version {VERSION}; restart this MCP server in your AI client"
            )),
            Some(ToFront::OtherSetup) => Rejection::Refused(
                "the shared Lockhouse service has another configuration, policy or environment".to_owned(),
            ),
            _ => Rejection::Ended(
                "the shared Lockhouse service is ending, or does not accept more clients".to_owned(),
            ),
        }));
    }
}

async fn read(reader: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<ToFront>> {
    match frames::read(reader, FRAME_BYTES_MAX).await? {
        Some(message) => match serde_json::from_slice(&message) {
            Ok(message) => Ok(Some(message)),
            // Only the request that the message answers fails, and not the connection.
            Err(error) => match frames::exchange_of(&message) {
                Some(id) => {
                    let reason = format!(
                        "the answer cannot be read, for example because it is nested too deeply: {error}"
                    );
                    Ok(Some(ToFront::Response(id, Response::Unavailable(reason))))
                }
                None => Err(error.into()),
            },
        },
        None => Ok(None),
    }
}

impl RemoteEngine {
    pub(crate) fn new(front: Weak<dyn FrontEndpoint>, remote: RemoteEngineSettings) -> Arc<Self> {
        let (requests, requested) = (Mutex::default(), Notify::new());
        Arc::new(Self { front, requests, requested, is_listening: AtomicBool::new(false), remote })
    }

    /// Uses a new connection for all requests from now on.
    pub(crate) fn adopt(&self, link: AcceptedLink) -> ActiveLink {
        let AcceptedLink { reader, writer, settings } = link;
        let (sender, frames) = frames::queue();
        self.deliver(ToFront::Settings(settings));
        let following = self.requests.lock().connected(sender);
        if self.is_listening.load(Ordering::Relaxed) {
            self.send(&ToEngine::Listening);
        }
        // What the previous process would have reported is not known.
        for id in following {
            let changed = ListChanges { tools: true, resources: true, prompts: true, updated: Vec::new() };
            self.deliver(ToFront::Event(id, Event::Changed(changed)));
        }
        ActiveLink { reader, writer, frames }
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
        let ActiveLink { mut reader, mut writer, frames } = link;
        let reading = async {
            loop {
                match read(&mut reader).await {
                    Ok(Some(message)) => self.receive_from_engine(message),
                    Ok(None) => return "it has ended".to_owned(),
                    Err(error) => return error.to_string(),
                }
            }
        };
        let writing = async {
            match frames.write_to(&mut writer).await {
                // Only `OpenRequests` holds the sender, and replaces it after this function.
                Ok(()) => std::future::pending().await,
                Err(error) => error.to_string(),
            }
        };
        let reason = tokio::select! {
            reason = reading => reason,
            reason = writing => reason,
        };
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
            | ToFront::Welcome { .. }
            | ToFront::Unsupported { .. }
            | ToFront::OtherSetup
            | ToFront::ReloadCertificate
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
            front.receive(message);
        }
    }

    fn refuse(&self, id: ExchangeId, reason: &str) {
        self.deliver(ToFront::Response(id, Response::Unavailable(reason.to_owned())));
    }

    /// Sends a message that is about no request. Without a connection, the message is lost.
    fn send(&self, message: &ToEngine) {
        if let Ok(frame) = frames::encode(message) {
            self.requests.lock().send(frame);
        }
    }

    fn open(&self, id: ExchangeId, repetition: Repetition, message: &ToEngine) {
        let opened = match frames::encode(message) {
            Ok(frame) => self.requests.lock().open(id, frame, repetition),
            Err(error) => return self.refuse(id, &format!("the request cannot be sent: {error}")),
        };
        match opened {
            true => self.requested.notify_waiters(),
            false => self.refuse(id, "too many requests are open; wait for their answers first"),
        }
    }
}

impl EngineEndpoint for RemoteEngine {
    fn receive(&self, message: ToEngine) {
        match &message {
            // Each connection has its own handshake, and ends with the process.
            ToEngine::Hello { .. } | ToEngine::Goodbye => {}
            ToEngine::Request(id, _, request) => self.open(*id, request.repetition(), &message),
            ToEngine::Input(id, _) => {
                if let Ok(frame) = frames::encode(&message) {
                    self.requests.lock().send_about(*id, frame);
                }
            }
            ToEngine::Close(id) => {
                if let Ok(frame) = frames::encode(&message) {
                    let mut requests = self.requests.lock();
                    requests.send_about(*id, frame);
                    requests.remove(*id);
                }
            }
            ToEngine::Listening => {
                self.is_listening.store(true, Ordering::Relaxed);
                self.send(&message);
            }
            ToEngine::Revoke { .. }
            | ToEngine::InFlight { .. }
            | ToEngine::Counters(_)
            | ToEngine::BeginSpan(..)
            | ToEngine::EndSpan(..) => self.send(&message),
        }
    }
}
