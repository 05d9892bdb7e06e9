//! The connection of the front to the engine. It sends requests, and passes each event and response of
//! the engine to the request that it belongs to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use lockhouse_messages::{
    AccessRefusal, Caller, Credential, EVENTS_AHEAD_MAX, Event, ExchangeId, FrontSettings, Input,
    InputSupport, Request, RequestHead, RequestId, Response, SessionMessage, SpanId, ToEngine, ToFront,
};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::assembler::MessageLimits;
use crate::connection::{FROM_ENGINE, FROM_ENGINE_OF_HOST};
use crate::endpoints::round_trip_in_debug;
use crate::engine_lifecycle::EngineLifecycle;
use crate::granted_access::{GrantedAccess, KnownGrants};
use crate::outbox::{Waiting, outbox};
use crate::remote_engine::{self, HANDSHAKE_TIMEOUT, RemoteEngine, RemoteEngineError, RemoteEngineSettings};
use crate::single_engine::{self, SingleEngine};
use crate::{EngineEndpoint, FrontEndpoint};

/// Maximum number of buffered events for one request: those that the engine sends ahead, and the answers to inputs. An
/// engine that sends more does not keep to the protocol, and the request fails.
const EVENTS_MAX: usize = 2 * EVENTS_AHEAD_MAX as usize;
/// Maximum number of messages for MCP sessions that wait until the front reads them. Further ones are dropped.
/// Bound: engines and fronts.
const SESSION_MESSAGES_MAX: usize = 256;
/// After this number of events that were passed on, the engine is told that it may send as many further ones.
const CREDIT_EVERY: u32 = EVENTS_AHEAD_MAX / 4;

/// The connection of the front to the engine. Clones share the connection.
#[derive(Clone)]
pub struct EngineClient {
    shared: Arc<EngineClientInner>,
    /// The span of the AI client's call on whose behalf this clone sends requests.
    span: Option<SpanId>,
}

/// What the clones of an [`EngineClient`] share.
pub(crate) struct EngineClientInner {
    pub(crate) engine: Arc<dyn EngineEndpoint>,
    last: AtomicU64,
    pub(crate) last_span: AtomicU64,
    lifecycle: EngineLifecycle,
    pub(crate) settings: watch::Sender<FrontSettings>,
    /// The open exchanges. `None` after the end of the connection: nobody would end another one.
    open: Mutex<Option<HashMap<ExchangeId, ExchangeSenders>>>,
    grants: Mutex<KnownGrants>,
    /// Where messages for MCP sessions go. Empty if the front has none.
    session_messages: OnceLock<mpsc::Sender<SessionMessage>>,
}

/// The senders that pass the engine's events and response to the front's request.
struct ExchangeSenders {
    events: mpsc::Sender<Event>,
    response: oneshot::Sender<Response>,
}

/// A request of the front to the engine, with the events and the response that belong to it. If this value is
/// dropped before the response has arrived, the engine is told that nobody waits for the request any more.
pub struct Exchange {
    id: ExchangeId,
    shared: Arc<EngineClientInner>,
    /// The access under which the request was made. `None` for a request that needs none.
    access: Option<GrantedAccess>,
    events: mpsc::Receiver<Event>,
    /// Number of events that were passed on and that the engine has not been told of.
    passed_on: u32,
    response: Option<oneshot::Receiver<Response>>,
}

/// What the front receives next for a request: an event, or the response that ends the request.
#[derive(Debug)]
pub enum ExchangeStep {
    Event(Event),
    Finished(Response),
}

impl EngineClient {
    /// Connects a front to an engine in the same process. The function `engine` gets the front's end of the
    /// connection and returns the engine's end. When `closing` is cancelled, the engine ends everything that this
    /// front began. The end of the engine cancels `closing`.
    pub fn connect(
        engine: impl FnOnce(Weak<dyn FrontEndpoint>) -> Arc<dyn EngineEndpoint>,
        closing: CancellationToken,
    ) -> Self {
        let shared = Arc::new_cyclic(|weak: &Weak<EngineClientInner>| {
            let engine = engine(weak.clone());
            EngineClientInner {
                lifecycle: EngineLifecycle::new(engine.clone(), closing.clone()),
                engine,
                last: AtomicU64::new(0),
                last_span: AtomicU64::new(0),
                settings: watch::Sender::default(),
                open: Mutex::new(Some(HashMap::new())),
                grants: Mutex::default(),
                session_messages: OnceLock::new(),
            }
        });
        shared.engine.begin();
        let leaving = Arc::downgrade(&shared);
        tokio::spawn(async move {
            closing.cancelled().await;
            if let Some(shared) = leaving.upgrade() {
                shared.notify(ToEngine::Goodbye);
            }
        });
        Self { shared, span: None }
    }

    /// Connects a front to the engine whose process started the front's process. If the connection ends, the open exchanges end,
    /// and `closing` is cancelled.
    ///
    /// # Errors
    /// The engine ended, or does not serve the front.
    pub async fn connect_to_parent(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        closing: CancellationToken,
    ) -> std::io::Result<Self> {
        Self::connect_once(reader, writer, None, FROM_ENGINE, closing, CancellationToken::new()).await
    }

    /// Connects to the engine of another host, which accepts the connection only if it has the setup `setup`. If the connection
    /// ends, the open exchanges end, and `closing` is cancelled. Cancelling `closing` ends the connection.
    ///
    /// # Errors
    /// The engine ended, or does not accept the connection.
    pub async fn connect_to_host(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        setup: String,
        closing: CancellationToken,
    ) -> std::io::Result<Self> {
        let stop = closing.clone();
        Self::connect_once(reader, writer, Some(setup), FROM_ENGINE_OF_HOST, closing, stop).await
    }

    async fn connect_once(
        mut reader: impl AsyncRead + Send + Unpin + 'static,
        mut writer: impl AsyncWrite + Send + Unpin + 'static,
        setup: Option<String>,
        limits: MessageLimits,
        closing: CancellationToken,
        stop: CancellationToken,
    ) -> std::io::Result<Self> {
        single_engine::greet(&mut reader, &mut writer, setup).await?;
        let (sender, outbox) = outbox();
        let mut engine = None;
        let connect =
            |front| engine.insert(SingleEngine::new(front, sender)).clone() as Arc<dyn EngineEndpoint>;
        let client = Self::connect(connect, closing.clone());
        let mut settings = client.shared.settings.subscribe();
        if let Some(engine) = engine {
            let shared = Arc::downgrade(&client.shared);
            tokio::spawn(async move {
                stop.run_until_cancelled(engine.serve(reader, writer, limits, outbox)).await;
                if let Some(shared) = shared.upgrade() {
                    shared.end_all();
                }
            });
        }
        // The settings are the first message of the engine. The end of the connection cancels `closing`.
        match closing.run_until_cancelled(settings.changed()).await {
            Some(Ok(())) => Ok(client),
            Some(Err(_)) | None => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Connects a front to an engine in another process, as `remote` describes. If the connection breaks later, the front
    /// gets errors for open requests, and connects again.
    pub async fn connect_remote(
        remote: RemoteEngineSettings,
        closing: CancellationToken,
    ) -> Result<Self, RemoteEngineError> {
        let link = remote_engine::open_link(&remote.connect).await?;
        let mut engine = None;
        let client =
            Self::connect(|front| engine.insert(RemoteEngine::new(front, remote)).clone(), closing.clone());
        let mut settings = client.shared.settings.subscribe();
        if let Some(engine) = engine {
            let link = engine.adopt(link);
            tokio::spawn(async move { closing.run_until_cancelled(engine.run(link)).await });
        }
        // The settings are the first message of the engine.
        match timeout(HANDSHAKE_TIMEOUT, settings.changed()).await {
            Ok(Ok(())) => Ok(client),
            Ok(Err(_)) | Err(_) => Err(RemoteEngineError::NoAnswer),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<EngineClientInner> {
        &self.shared
    }

    /// Returns a clone that sends its requests on behalf of the call of this span.
    pub(crate) fn with_span(&self, span: SpanId) -> Self {
        Self { shared: self.shared.clone(), span: Some(span) }
    }

    /// Returns the messages for MCP sessions that other hosts have received. Only the first receiver gets any.
    pub fn session_messages(&self) -> mpsc::Receiver<SessionMessage> {
        let (sender, receiver) = mpsc::channel(SESSION_MESSAGES_MAX);
        let _ = self.shared.session_messages.set(sender);
        receiver
    }

    /// Returns the lifecycle of the engine, as this front knows it.
    pub fn lifecycle(&self) -> &EngineLifecycle {
        &self.shared.lifecycle
    }

    /// Returns the latest settings that the engine has sent.
    pub fn settings(&self) -> FrontSettings {
        self.shared.settings.borrow().clone()
    }

    /// Whether an operator has let this host of a cluster take no new work.
    pub fn is_withdrawn(&self) -> bool {
        self.shared.settings.borrow().is_withdrawn
    }

    /// Whether AI clients need a credential over HTTP.
    pub fn requires_authentication(&self) -> bool {
        self.shared.settings.borrow().authentication.is_required
    }

    /// Asks the engine to verify a credential.
    ///
    /// # Errors
    /// Why the engine refuses the credential.
    pub async fn authenticate(&self, credential: Credential) -> Result<GrantedAccess, AccessRefusal> {
        self.begin_authentication(credential).await.await
    }

    /// Asks the engine to verify a credential. When this future completes, the question is on its way, and the engine reads it
    /// before each later request of this client. The future that it returns waits for the response, as
    /// [`Self::authenticate`] does.
    pub async fn begin_authentication(
        &self,
        credential: Credential,
    ) -> impl Future<Output = Result<GrantedAccess, AccessRefusal>> + use<> {
        let caller = Caller { grant: None, client: None, abilities: InputSupport::default() };
        let exchange = self.start(None, None, caller, Request::Authenticate(credential)).await;
        let shared = self.shared.clone();
        async move {
            match exchange.response().await {
                Response::Access(Ok(access)) => {
                    let end = shared.grants.lock().end_of(access.grant);
                    Ok(GrantedAccess::new(*access, end))
                }
                Response::Access(Err(refusal)) | Response::Refused(refusal) => Err(refusal),
                other => {
                    tracing::error!("a credential was not verified: {other:?}");
                    Err(AccessRefusal::EngineUnavailable)
                }
            }
        }
    }

    /// Sends a request to the engine on behalf of an AI client. Returns the exchange, through which the caller
    /// receives the events and the response.
    pub async fn open(
        &self,
        access: &GrantedAccess,
        client: Option<String>,
        abilities: InputSupport,
        request: Request,
    ) -> Exchange {
        self.open_with_id(None, access, client, abilities, request).await
    }

    /// Sends a request as [`Self::open`], with an id that the AI client chose.
    pub async fn open_with_id(
        &self,
        chosen: Option<RequestId>,
        access: &GrantedAccess,
        client: Option<String>,
        abilities: InputSupport,
        request: Request,
    ) -> Exchange {
        let caller = Caller { grant: Some(access.grant()), client, abilities };
        self.start(chosen, Some(access.clone()), caller, request).await
    }

    /// Sends a request to the engine, and waits for its response. Ignores the events before the response.
    pub async fn ask(&self, access: &GrantedAccess, client: Option<String>, request: Request) -> Response {
        self.open(access, client, InputSupport::default(), request).await.response().await
    }

    async fn start(
        &self,
        chosen: Option<RequestId>,
        access: Option<GrantedAccess>,
        caller: Caller,
        request: Request,
    ) -> Exchange {
        let head = RequestHead {
            id: chosen.unwrap_or_else(RequestId::generate),
            is_chosen: chosen.is_some(),
            caller,
            deadline: request.time_limit(),
            span: self.span,
        };
        let id = ExchangeId(self.shared.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (respond, response) = oneshot::channel();
        if let Some(open) = self.shared.open.lock().as_mut() {
            open.insert(id, ExchangeSenders { events: sender, response: respond });
        }
        let shared = self.shared.clone();
        let exchange = Exchange { id, shared, access, events, passed_on: 0, response: Some(response) };
        if let Some(waiting) = self.shared.send(ToEngine::Request(id, Box::new(head), Box::new(request))) {
            waiting.await;
        }
        exchange
    }
}

impl EngineClientInner {
    #[must_use]
    fn send(&self, message: ToEngine) -> Option<Waiting> {
        self.engine.receive(round_trip_in_debug(message))
    }

    /// Sends a message that never waits: any message but a request.
    pub(crate) fn notify(&self, message: ToEngine) {
        drop(self.send(message));
    }

    /// Ends all open exchanges, because the connection to the engine has ended.
    pub(crate) fn end_all(&self) {
        drop(self.open.lock().take());
    }
}

impl FrontEndpoint for EngineClientInner {
    fn receive(&self, message: ToFront) -> Option<Waiting> {
        match message {
            ToFront::AccessEnded { grant } => self.grants.lock().end(grant),
            // A connection to an engine in another process handles it itself (`remote_engine.rs`).
            ToFront::Begun(_) => {}
            ToFront::Lifecycle(state) => self.lifecycle.set(state),
            ToFront::Settings(settings) => drop(self.settings.send_replace(settings)),
            ToFront::SessionMessage(message) => {
                if self.session_messages.get().is_some_and(|messages| messages.try_send(message).is_err()) {
                    tracing::debug!(
                        "a message for an MCP session is dropped: too many arrived at other hosts"
                    );
                }
            }
            ToFront::Event(id, event) => {
                let mut open = self.open.lock();
                let exchange = open.as_ref()?.get(&id)?;
                if exchange.events.try_send(event).is_err_and(|error| matches!(error, TrySendError::Full(_)))
                {
                    tracing::error!("the engine sent more events than the front can pass on");
                    // The exchange ends with `Response::EngineFailed`.
                    drop(open.as_mut()?.remove(&id));
                    drop(open);
                    drop(self.engine.receive(ToEngine::Close(id)));
                }
            }
            ToFront::Response(id, response) => {
                let open = self.open.lock().as_mut()?.remove(&id);
                if let Some(open) = open {
                    let _ = open.response.send(response);
                }
            }
        }
        None
    }
}

impl Exchange {
    /// Waits for the next event or for the response of the engine. After the response, never completes.
    pub async fn next(&mut self) -> ExchangeStep {
        let Some(response) = &mut self.response else { return std::future::pending().await };
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => {
                self.count(&event);
                ExchangeStep::Event(event)
            }
            over = response => {
                self.response = None;
                let response = over.unwrap_or(Response::EngineFailed);
                if let (Some(access), Response::Refused(refusal)) = (&self.access, &response) {
                    access.set_refusal(refusal.clone());
                }
                ExchangeStep::Finished(response)
            }
        }
    }

    /// Waits for the response of the engine. Ignores the events before the response.
    pub async fn response(mut self) -> Response {
        loop {
            if let ExchangeStep::Finished(response) = self.next().await {
                return response;
            }
        }
    }

    /// Counts an event that is passed on, and tells the engine how many further ones it may send.
    fn count(&mut self, event: &Event) {
        self.passed_on += u32::from(!event.answers_input());
        if self.passed_on >= CREDIT_EVERY {
            self.shared.notify(ToEngine::Credit(self.id, std::mem::take(&mut self.passed_on)));
        }
    }

    /// Sends an input for this request to the engine, such as the answer to a question.
    pub fn send(&self, input: Input) {
        self.shared.notify(ToEngine::Input(self.id, input));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let is_open = self.shared.open.lock().as_mut().is_some_and(|open| open.remove(&self.id).is_some());
        if is_open {
            self.shared.notify(ToEngine::Close(self.id));
        }
    }
}
