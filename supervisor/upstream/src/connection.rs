//! One connection, as its callers have it. The task that holds it is in [`hold`](super::hold).

use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::secrets::Secrets;
use lockhouse_catalog::{Catalogue, Shapes};
use lockhouse_policies::OnChange;
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::definition::{Decode, Exposure, ServerDefinition, ServerLimits};
use super::hold::{Holder, Tools};
use super::notices::{DirectNotices, Notices};
use super::pins::Pins;
use super::places::Places;
use super::request::ping;
use super::signals::{Answers, Signals};
use super::slots::{Busy, Slot};
use super::start::Starter;
use super::state::{Offer, State};
use super::status::Status;
use super::subscriptions::Subscriptions;

/// What a start that takes too long gets besides its limit to be ended and told.
const START_MARGIN: Duration = Duration::from_secs(1);

/// A handle to the task that holds the connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) name: ServerName,
    pub(super) limits: ServerLimits,
    pub(super) decode: Decode,
    pub(super) secrets: Secrets,
    pub exposure: Exposure,
    /// What becomes of tools that no person has accepted as they are, where the policy does not say.
    pub on_change: OnChange,
    state: watch::Receiver<State>,
    known: watch::Receiver<Option<Arc<Catalogue>>>,
    status: watch::Receiver<Status>,
    answers: watch::Receiver<Answers>,
    pub(super) subscriptions: Subscriptions,
    pub(super) signals: Arc<Signals>,
    closing: CancellationToken,
    /// What results of the server look like.
    pub shapes: Arc<Shapes>,
}

impl Connection {
    /// Starts the task.
    pub(super) fn open(
        name: ServerName,
        definition: ServerDefinition,
        places: &Places,
        starts: Arc<Semaphore>,
        notices: &Notices,
    ) -> Self {
        let initial = if definition.start.lazy { State::Idle } else { State::Connecting };
        let (state_sender, state) = watch::channel(initial);
        let (status_sender, status) = watch::channel(Status::default());
        let exposure = definition.exposure.clone();
        let notices = DirectNotices::new(exposure.directly.is_some().then(|| notices.clone()));
        let signals = Arc::new(Signals::new(definition.limits));
        let (secrets, closing) = (Secrets::of(&definition.secrets()), CancellationToken::new());
        let (limits, decode, on_change) = (definition.limits, definition.decode, definition.on_change);
        let shapes = Arc::new(Shapes::at(places.shapes(&name, &definition), places.learns_shapes));
        let cache = Cache::new(&name, places.tools(&name, &definition), places.tools_lifetime);
        let pins = Pins::at(places.pins(&name, &definition));
        let (tools, known) = Tools::new(name.clone(), definition.tools.clone(), cache, pins, notices.clone());
        let idle_stop = definition.start.idle_stop;
        let log = places.log(&name);
        let starter =
            Starter::new(&name, definition, secrets.clone(), log, status_sender.clone(), notices.clone());
        let holder = Holder {
            name: name.clone(),
            starter: Arc::new(starter),
            tools,
            idle_stop,
            state: state_sender,
            status: status_sender,
            signals: signals.clone(),
            answers: signals.answers(),
            older: false,
            starts,
            closing: closing.clone(),
        };
        tokio::spawn(holder.hold());
        let subscriptions = Subscriptions::new(name.clone(), notices);
        let answers = signals.answers();
        Self {
            name,
            limits,
            decode,
            secrets,
            exposure,
            on_change,
            state,
            known,
            status,
            answers,
            subscriptions,
            signals,
            closing,
            shapes,
        }
    }

    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub fn status(&self) -> Status {
        let Answers { count: answered, latency } = *self.answers.borrow();
        Status { answered, latency, ..self.status.borrow().clone() }
    }

    /// What is left of this time, or of the start timeout where that is shorter, for the attempt to connect that is under way.
    /// Who waits no longer does not wait again and again for a server that never answers.
    pub fn patience_left(&self, most: Duration) -> Duration {
        let begun = matches!(self.state(), State::Connecting).then(|| self.status().begun).flatten();
        let waited = begun.map(|begun| begun.elapsed()).unwrap_or_default();
        most.min(self.limits.start_timeout).saturating_sub(waited)
    }

    /// What stands before the names that an AI client has of its tools and prompts, if it has them directly.
    pub fn prefix(&self) -> Option<&str> {
        let directly = self.exposure.directly.as_ref()?;
        Some(directly.prefix.as_deref().unwrap_or(self.name.as_str()))
    }

    /// The tools as they were last known, without waiting.
    pub fn known(&self) -> Option<Arc<Catalogue>> {
        self.known.borrow().clone()
    }

    /// The tools as they are known once the server is connected, has failed, or is not started before somebody needs it.
    pub async fn settled(&self) -> Option<Arc<Catalogue>> {
        let mut state = self.state.clone();
        // A closed server is not waited for.
        let _ = state.wait_for(|state| !matches!(state, State::Connecting)).await;
        self.known()
    }

    /// The tools as they were last known; waits for the first connection if they never were.
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, Failure> {
        match self.known() {
            Some(catalogue) => Ok(catalogue),
            None => Ok(self.offer().await?.catalogue.clone()),
        }
    }

    /// A usable connection. Starts a server that is idle, and waits while it connects, at most for the start timeout.
    pub async fn offer(&self) -> Result<Arc<Offer>, Failure> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| {
            if matches!(state, State::Idle) {
                self.signals.wanted.notify_one();
            }
            !matches!(state, State::Idle | State::Connecting)
        });
        let reason = match tokio::time::timeout(self.limits.start_timeout + START_MARGIN, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Connected(offer) => return Ok(offer.clone()),
                State::Failed(reason) => reason.clone(),
                State::Idle | State::Connecting => "it is still starting".into(),
            },
            Ok(Err(_)) => "it was shut down".into(),
            Err(_) => format!(
                "it has not started within {} s; many servers may be starting at once",
                self.limits.start_timeout.as_secs_f32()
            ),
        };
        Err(self.failure(
            FailureCode::UpstreamUnavailable,
            format!("server {} is not available: {reason}", self.name),
        ))
    }

    /// Whether the server answers anything at all, while a call would be waited for.
    pub async fn answers(&self, offer: &Offer) -> bool {
        ping(offer.peer.clone(), self.limits.call_timeout).await
    }

    /// The right to ask the server for something now; waits for its turn.
    pub async fn slot(&self) -> Result<Slot, Failure> {
        self.signals.slots.enter().await.map_err(|busy| {
            let (name, at_once) = (&self.name, self.limits.calls_max);
            let told = match busy {
                Busy::QueueFull(queue_max) => {
                    format!("server {name} is busy: {at_once} calls run and {queue_max} wait; make fewer at a time")
                }
                Busy::TooLate(limit) => format!(
                    "server {name} is busy: no call of {at_once} ended within {} s; the call was not made",
                    limit.as_secs_f32()
                ),
            };
            Failure { retryable: true, ..self.failure(FailureCode::UpstreamUnavailable, told) }
        })
    }

    pub(super) fn failure(&self, code: FailureCode, message: String) -> Failure {
        let retryable = matches!(code, FailureCode::Timeout | FailureCode::UpstreamUnavailable);
        Failure { code, message, server: Some(self.name.to_string()), tool: None, retryable }
    }

    /// Ends the process, once no call runs or too much time has passed, and waits until it is gone.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }

    /// Whether its process is gone for good.
    pub(super) fn is_closed(&self) -> bool {
        self.state.has_changed().is_err()
    }
}
