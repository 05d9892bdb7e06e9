//! The front's end: requests go out, and what comes back finds the exchange that it is for.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lockhouse_base::principal::{Grant, Principal};
use lockhouse_policies::ClientName;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::edge::carried;
use crate::{
    Abilities, Caller, EngineEnd, Event, ExchangeId, FrontEnd, FrontSettings, Input, Request, Response,
    ToEngine, ToFront, VERSION,
};

/// Events of one exchange that wait to be taken. Progress beyond it is dropped.
const EVENTS_MAX: usize = 64;
/// Of these, as many are kept free of progress: more than questions that one execution can have open.
const FOR_QUESTIONS: usize = 32;

/// What a front asks the engine with. Copies are the same one.
#[derive(Clone)]
pub struct EngineClient(Arc<Shared>);

struct Shared {
    engine: Arc<dyn EngineEnd>,
    last: AtomicU64,
    settings: watch::Sender<FrontSettings>,
    open: Mutex<HashMap<ExchangeId, Open>>,
    /// Grants whose end is waited for.
    grants: Mutex<HashSet<u64>>,
}

/// Where messages of one exchange go.
struct Open {
    events: mpsc::Sender<Event>,
    response: oneshot::Sender<Response>,
}

/// One request, until its response. It is closed when this is dropped.
pub struct Exchange {
    id: ExchangeId,
    shared: Arc<Shared>,
    events: mpsc::Receiver<Event>,
    response: Option<oneshot::Receiver<Response>>,
}

/// What comes of an exchange next.
#[derive(Debug)]
pub enum Step {
    Event(Event),
    Over(Response),
}

impl EngineClient {
    /// Connects to an engine in this process. Once `closing`, the engine ends what this front began.
    pub fn connect(
        engine: impl FnOnce(Weak<dyn FrontEnd>) -> Arc<dyn EngineEnd>,
        closing: CancellationToken,
    ) -> Self {
        let shared = Arc::new_cyclic(|weak: &Weak<Shared>| Shared {
            engine: engine(weak.clone()),
            last: AtomicU64::new(0),
            settings: watch::Sender::default(),
            open: Mutex::default(),
            grants: Mutex::default(),
        });
        shared.send(ToEngine::Hello { version: VERSION });
        let leaving = Arc::downgrade(&shared);
        tokio::spawn(async move {
            closing.cancelled().await;
            if let Some(shared) = leaving.upgrade() {
                shared.send(ToEngine::Goodbye);
            }
        });
        Self(shared)
    }

    /// What the engine said last of itself.
    pub fn settings(&self) -> FrontSettings {
        self.0.settings.borrow().clone()
    }

    /// Begins an exchange on behalf of a client.
    pub fn open(
        &self,
        principal: &Principal,
        client: Option<ClientName>,
        abilities: Abilities,
        request: Request,
    ) -> Exchange {
        if let Some(grant) = principal.grant() {
            self.revoke_at_its_end(grant);
        }
        let caller = Caller::new(principal, client, abilities);
        let id = ExchangeId(self.0.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (respond, response) = oneshot::channel();
        self.0.open.lock().insert(id, Open { events: sender, response: respond });
        self.0.send(ToEngine::Request(id, Box::new(caller), Box::new(request)));
        Exchange { id, shared: self.0.clone(), events, response: Some(response) }
    }

    /// Begins an exchange that has a response alone, and waits for it.
    pub async fn ask(&self, principal: &Principal, client: Option<ClientName>, request: Request) -> Response {
        self.open(principal, client, Abilities::default(), request).response().await
    }

    fn revoke_at_its_end(&self, grant: &Grant) {
        if !self.0.grants.lock().insert(grant.number()) {
            return;
        }
        let (grant, shared) = (grant.clone(), Arc::downgrade(&self.0));
        tokio::spawn(async move {
            grant.revoked().await;
            if let Some(shared) = shared.upgrade() {
                shared.grants.lock().remove(&grant.number());
                shared.send(ToEngine::Revoke { grant: grant.number() });
            }
        });
    }
}

impl Shared {
    fn send(&self, message: ToEngine) {
        self.engine.receive(carried(message));
    }
}

impl FrontEnd for Shared {
    fn receive(&self, message: ToFront) {
        match message {
            ToFront::Welcome { .. } => {}
            ToFront::Unsupported { version } => {
                tracing::error!(
                    "the engine speaks version {version} of the messages, and this front {VERSION}"
                );
            }
            ToFront::Settings(settings) => drop(self.settings.send_replace(settings)),
            ToFront::Event(id, event) => {
                let open = self.open.lock();
                let Some(Open { events, .. }) = open.get(&id) else { return };
                let is_progress = matches!(event, Event::Note(_) | Event::Passed(_));
                if !is_progress || events.capacity() > FOR_QUESTIONS {
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
    /// What comes next. After the response there is nothing more, for ever.
    pub async fn next(&mut self) -> Step {
        let Some(response) = &mut self.response else { return std::future::pending().await };
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => Step::Event(event),
            over = response => {
                self.response = None;
                Step::Over(over.unwrap_or(Response::Broken))
            }
        }
    }

    /// The response, whatever is said before it.
    pub async fn response(mut self) -> Response {
        loop {
            if let Step::Over(response) = self.next().await {
                return response;
            }
        }
    }

    /// Says something to the engine.
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
