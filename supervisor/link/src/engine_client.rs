//! The connection of the front (which speaks MCP with AI clients) to the engine (which runs programs). It
//! sends requests, and passes each event and response of the engine to the request that it belongs to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lockhouse_policies::ClientName;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::endpoints::round_trip_in_debug;
use crate::granted_access::{GrantedAccess, KnownGrants};
use crate::remote_engine::{self, RemoteEngine, RemoteEngineSettings};
use crate::{EngineEndpoint, FrontEndpoint};
use lockhouse_messages::{
    AccessRefusal, Caller, Credential, Event, ExchangeId, FrontSettings, Input, InputSupport, Request,
    Response, ToEngine, ToFront, VERSION,
};

/// Maximum number of buffered events of the engine for one request. Further events are dropped.
const EVENTS_MAX: usize = 64;
/// Number of places in the buffer of [`EVENTS_MAX`] events that progress events cannot use, so that there is
/// always space for questions to the user. One execution can have fewer pending questions than this number.
const RESERVED_FOR_QUESTIONS: usize = 32;

/// The connection of the front (which speaks MCP with AI clients) to the engine (which runs programs). Clones
/// share the connection.
#[derive(Clone)]
pub struct EngineClient(Arc<Shared>);

struct Shared {
    engine: Arc<dyn EngineEndpoint>,
    last: AtomicU64,
    settings: watch::Sender<FrontSettings>,
    open: Mutex<HashMap<ExchangeId, OpenExchange>>,
    grants: Mutex<KnownGrants>,
}

/// The senders that pass the engine's events and response to the front's request.
struct OpenExchange {
    events: mpsc::Sender<Event>,
    response: oneshot::Sender<Response>,
}

/// A request of the front to the engine, with the events and the response that belong to it. If this value is
/// dropped before the response has arrived, the engine is told that nobody waits for the request any more.
pub struct Exchange {
    id: ExchangeId,
    shared: Arc<Shared>,
    /// The access under which the request was made. `None` for a request that needs none.
    access: Option<GrantedAccess>,
    events: mpsc::Receiver<Event>,
    response: Option<oneshot::Receiver<Response>>,
}

/// What the front receives next for a request: an event, or the response that ends the request.
#[derive(Debug)]
pub enum ExchangeStep {
    Event(Event),
    Finished(Response),
}

impl EngineClient {
    /// Connects a front (which speaks MCP with AI clients) to an engine (which runs programs) in the same process.
    /// The function `engine` gets the front's end of the connection and returns the engine's end. When `closing`
    /// is cancelled, the engine ends everything that this front began.
    pub fn connect(
        engine: impl FnOnce(Weak<dyn FrontEndpoint>) -> Arc<dyn EngineEndpoint>,
        closing: CancellationToken,
    ) -> Self {
        let shared = Arc::new_cyclic(|weak: &Weak<Shared>| Shared {
            engine: engine(weak.clone()),
            last: AtomicU64::new(0),
            settings: watch::Sender::default(),
            open: Mutex::default(),
            grants: Mutex::default(),
        });
        shared.send(ToEngine::Hello { version: VERSION, setup: None });
        let leaving = Arc::downgrade(&shared);
        tokio::spawn(async move {
            closing.cancelled().await;
            if let Some(shared) = leaving.upgrade() {
                shared.send(ToEngine::Goodbye);
            }
        });
        Self(shared)
    }

    /// Connects a front to an engine in another process, as `remote` describes. If the connection breaks later, the front
    /// gets errors for open requests, and connects again.
    ///
    /// # Errors
    /// Why there is no connection at the start.
    pub async fn connect_remote(
        remote: RemoteEngineSettings,
        closing: CancellationToken,
    ) -> Result<Self, String> {
        let link = remote_engine::open_link(&remote.connect).await?;
        let mut engine = None;
        let client =
            Self::connect(|front| engine.insert(RemoteEngine::new(front, remote)).clone(), closing.clone());
        if let Some(engine) = engine {
            let link = engine.adopt(link);
            tokio::spawn(async move { closing.run_until_cancelled(engine.run(link)).await });
        }
        Ok(client)
    }

    /// Returns the latest settings that the engine has sent.
    pub fn settings(&self) -> FrontSettings {
        self.0.settings.borrow().clone()
    }

    /// Whether AI clients need a credential over HTTP.
    pub fn requires_authentication(&self) -> bool {
        self.0.settings.borrow().authentication.is_required
    }

    /// Asks the engine to verify a credential.
    ///
    /// # Errors
    /// Why the engine refuses the credential.
    pub async fn authenticate(&self, credential: Credential) -> Result<GrantedAccess, AccessRefusal> {
        let caller = Caller { grant: None, client: None, abilities: InputSupport::default() };
        match self.start(None, caller, Request::Authenticate(credential)).response().await {
            Response::Access(Ok(access)) => {
                let end = self.0.grants.lock().end_of(access.grant);
                Ok(GrantedAccess::new(*access, end))
            }
            Response::Access(Err(refusal)) | Response::Refused(refusal) => Err(refusal),
            other => {
                tracing::error!("a credential was not verified: {other:?}");
                Err(AccessRefusal::EngineUnavailable)
            }
        }
    }

    /// Sends a request to the engine on behalf of an AI client. Returns the exchange, through which the caller
    /// receives the events and the response.
    pub fn open(
        &self,
        access: &GrantedAccess,
        client: Option<ClientName>,
        abilities: InputSupport,
        request: Request,
    ) -> Exchange {
        let caller = Caller { grant: Some(access.grant()), client, abilities };
        self.start(Some(access.clone()), caller, request)
    }

    /// Sends a request to the engine, and waits for its response. Ignores the events before the response.
    pub async fn ask(
        &self,
        access: &GrantedAccess,
        client: Option<ClientName>,
        request: Request,
    ) -> Response {
        self.open(access, client, InputSupport::default(), request).response().await
    }

    fn start(&self, access: Option<GrantedAccess>, caller: Caller, request: Request) -> Exchange {
        let id = ExchangeId(self.0.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (respond, response) = oneshot::channel();
        self.0.open.lock().insert(id, OpenExchange { events: sender, response: respond });
        self.0.send(ToEngine::Request(id, Box::new(caller), Box::new(request)));
        Exchange { id, shared: self.0.clone(), access, events, response: Some(response) }
    }
}

impl Shared {
    fn send(&self, message: ToEngine) {
        self.engine.receive(round_trip_in_debug(message));
    }
}

impl FrontEndpoint for Shared {
    fn receive(&self, message: ToFront) {
        match message {
            // A connection to an engine in another process handles these itself (`remote_engine.rs`). Within one process,
            // the front reads the lifecycle.
            ToFront::OtherSetup | ToFront::Draining | ToFront::Begun(_) | ToFront::Welcome { .. } => {}
            ToFront::Unsupported { version } => {
                tracing::error!(
                    "the engine uses version {version} of the front protocol, but this front uses version {VERSION}"
                );
            }
            ToFront::AccessEnded { grant } => self.grants.lock().end(grant),
            ToFront::Settings(settings) => drop(self.settings.send_replace(settings)),
            ToFront::Event(id, event) => {
                let open = self.open.lock();
                let Some(OpenExchange { events, .. }) = open.get(&id) else { return };
                let is_progress = matches!(event, Event::ProgressMessage(_) | Event::Notification(_));
                if !is_progress || events.capacity() > RESERVED_FOR_QUESTIONS {
                    let _ = events.try_send(event);
                }
            }
            ToFront::Response(id, response) => {
                let open = self.open.lock().remove(&id);
                if let Some(open) = open {
                    let _ = open.response.send(response);
                }
            }
        }
    }
}

impl Exchange {
    /// Waits for the next event or for the response of the engine. After the response, never completes.
    pub async fn next(&mut self) -> ExchangeStep {
        let Some(response) = &mut self.response else { return std::future::pending().await };
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => ExchangeStep::Event(event),
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

    /// Sends an input for this request to the engine, such as the answer to a question.
    pub fn send(&self, input: Input) {
        self.shared.send(ToEngine::Input(self.id, input));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let is_open = self.shared.open.lock().remove(&self.id).is_some();
        if is_open {
            self.shared.send(ToEngine::Close(self.id));
        }
    }
}
