//! The connection to one upstream server as its callers use it. The task in [`connection_task`](super::connection_task)
//! starts, monitors and restarts the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::secrets::Secrets;
use lockhouse_catalog::{Catalogue, ResultShapes};
use lockhouse_policies::OnChange;
use lockhouse_protocol::{ExecutionId, Failure, FailureCode, ServerName, ToolName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::call_concurrency::{CallSlot, SlotError};
use super::caller_signals::{CallStats, CallerSignals};
use super::change_notices::ServerChangeNotices;
use super::confine::{KernelGap, RefusalNotice, kernel_gaps};
use super::connection_setup::ConnectionSetup;
use super::connection_state::{ConnectedServer, ConnectionState};
use super::connection_status::ConnectionStatus;
use super::connection_task::{ConnectionTask, PublishedTools};
use super::definition::{DecodeRules, Exposure, ServerLimits, TextDecoding};
use super::request::ping;
use super::resource_subscriptions::Subscriptions;
use super::server_start::{Sandbox, ServerStarter};
use super::shared_files::shared_item;
use super::tool_cache::ToolCache;
use super::tool_pins::Pins;

/// Time that a caller waits beyond a server's start timeout, so that the caller receives the error of the start.
const START_MARGIN: Duration = Duration::from_secs(1);

/// A handle to one upstream server's connection task, by which callers use the server. Clones use the same
/// connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) name: ServerName,
    pub(super) limits: ServerLimits,
    pub(super) decode: Arc<DecodeRules>,
    pub(super) secrets: Secrets,
    pub exposure: Exposure,
    /// What happens to tools whose current definition no user has accepted, unless the policy says otherwise.
    pub on_change: OnChange,
    state: watch::Receiver<ConnectionState>,
    known_catalogue: watch::Receiver<Option<Arc<Catalogue>>>,
    status: watch::Receiver<ConnectionStatus>,
    answers: watch::Receiver<CallStats>,
    pub(super) subscriptions: Subscriptions,
    pub(super) signals: Arc<CallerSignals>,
    closing: CancellationToken,
    /// Cancelled when the administrator does not permit the server any more.
    withdrawn: CancellationToken,
    /// Tells about refused accesses; `None` for a server without a sandbox.
    pub(super) refusals: Option<Arc<RefusalNotice>>,
    /// The result types of this server's tools, as observed from earlier calls.
    pub shapes: Arc<ResultShapes>,
}

impl Connection {
    /// Returns the name of the server.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns whether programs get text results of a tool as text, also if they are JSON.
    pub fn keeps_text(&self, tool: &ToolName) -> bool {
        self.decode.for_tool(tool.as_str()) == TextDecoding::Text
    }

    /// Starts the connection task of an upstream server and returns a handle to it.
    pub(super) fn open(setup: &ConnectionSetup) -> Self {
        let ConnectionSetup { name, definition, paths, notices, .. } = setup;
        let initial = if definition.start.lazy { ConnectionState::Idle } else { ConnectionState::Connecting };
        let ((state_sender, state), (status_sender, status)) =
            (watch::channel(initial), watch::channel(ConnectionStatus::default()));
        let (exposure, signals) =
            (definition.exposure.clone(), Arc::new(CallerSignals::new(definition.limits)));
        let notices = ServerChangeNotices::new(notices.clone(), exposure.direct.is_some());
        let (secrets, closing) = (Secrets::from_environment(&definition.secrets()), CancellationToken::new());
        let (limits, on_change) = (definition.limits, definition.on_change);
        let decode = Arc::new(definition.decode.clone());
        let shapes_file = paths.shapes_file(name, definition);
        let shared = shapes_file.as_deref().and_then(|path| shared_item(&setup.login.sharing, path));
        let shapes = Arc::new(ResultShapes::new(shapes_file, paths.records_shapes, shared));
        let cache = ToolCache::new(name, paths.tools_file(name, definition), paths.tools_ttl);
        let pins = Pins::new(paths.pins_file(name, definition));
        let (tools, known_catalogue) =
            PublishedTools::new(name.clone(), definition.tools.clone(), cache, pins, notices.clone());
        let (idle_stop, log) = (definition.start.idle_stop, paths.log_file(name));
        let places = paths.sandbox_places(name, definition);
        let refusals = RefusalNotice::new(name, definition, &places).map(Arc::new);
        let sandbox = Sandbox { places, notice: refusals.clone() };
        let (status_of_starts, notices_of_starts) = (status_sender.clone(), notices.clone());
        let starter =
            ServerStarter::new(setup, secrets.clone(), log, sandbox, status_of_starts, notices_of_starts);
        let task = ConnectionTask {
            name: name.clone(),
            starter: Arc::new(starter),
            tools,
            idle_stop,
            state: state_sender,
            status: status_sender,
            signals: signals.clone(),
            answers: signals.answers(),
            legacy_handshake: false,
            starts: setup.starts.clone(),
            closing: closing.clone(),
            events: setup.events.clone(),
        };
        tokio::spawn(task.run());
        Self {
            subscriptions: Subscriptions::new(name.clone(), notices),
            name: name.clone(),
            limits,
            decode,
            secrets,
            exposure,
            on_change,
            state,
            known_catalogue,
            status,
            answers: signals.answers(),
            signals,
            closing,
            withdrawn: CancellationToken::new(),
            refusals,
            shapes,
        }
    }

    /// Returns what the kernel does not enforce of the server's sandbox; nothing for a server without one.
    pub fn sandbox_gaps(&self) -> Vec<KernelGap> {
        if self.refusals.is_some() { kernel_gaps() } else { Vec::new() }
    }

    pub fn state(&self) -> ConnectionState {
        self.state.borrow().clone()
    }

    /// Returns the known tools of the server, as they change from now on.
    pub(super) fn catalogue_changes(&self) -> watch::Receiver<Option<Arc<Catalogue>>> {
        let mut catalogue = self.known_catalogue.clone();
        catalogue.mark_unchanged();
        catalogue
    }

    /// Waits until this connection to the server has ended.
    pub(super) async fn ended(&self, server: &Arc<ConnectedServer>) {
        let is_another = |state: &ConnectionState| !matches!(state, ConnectionState::Connected(now) if Arc::ptr_eq(now, server));
        drop(self.state.clone().wait_for(is_another).await);
    }

    pub fn status(&self) -> ConnectionStatus {
        let CallStats { answered_calls: answered, latency } = *self.answers.borrow();
        ConnectionStatus { answered_calls: answered, last_latency: latency, ..self.status.borrow().clone() }
    }

    /// Returns how long a caller should still wait for the current attempt to connect: the smaller of `most` and the
    /// start timeout, less the time that the attempt has already taken. If a server never answers, successive callers
    /// thus do not each wait for the full time.
    pub fn connect_time_left(&self, most: Duration) -> Duration {
        let begun = matches!(self.state(), ConnectionState::Connecting)
            .then(|| self.status().attempt_began)
            .flatten();
        let waited = begun.map(|begun| begun.elapsed()).unwrap_or_default();
        most.min(self.limits.start_timeout).saturating_sub(waited)
    }

    /// Returns the prefix of the names of the server's tools and prompts for AI clients that use the server directly;
    /// `None` if AI clients do not use it directly.
    pub fn prefix(&self) -> Option<&str> {
        let directly = self.exposure.direct.as_ref()?;
        Some(directly.prefix.as_deref().unwrap_or(self.name.as_str()))
    }

    /// Returns the server's tools as they were last listed, without waiting; `None` if they were never listed.
    pub fn known_catalogue(&self) -> Option<Arc<Catalogue>> {
        self.known_catalogue.borrow().clone()
    }

    /// Waits while the server is being started, and then returns its tools as they were last listed; `None` if they
    /// were never listed.
    pub async fn settled_catalogue(&self) -> Option<Arc<Catalogue>> {
        let mut state = self.state.clone();
        // If the task has ended, there is nothing to wait for.
        let _ = state.wait_for(|state| !matches!(state, ConnectionState::Connecting)).await;
        self.known_catalogue()
    }

    /// Returns the server's tools as they were last listed. If they were never listed, waits until the server is
    /// connected.
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, Failure> {
        match self.known_catalogue() {
            Some(catalogue) => Ok(catalogue),
            None => Ok(self.connected_server().await?.catalogue.clone()),
        }
    }

    /// Returns the connected server. Starts the server if it is idle, and waits while it connects, at most one second
    /// longer than the start timeout.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be started, does not start in time, or waits for a restart after a failed
    /// start or a violation of a limit or the protocol.
    pub async fn connected_server(&self) -> Result<Arc<ConnectedServer>, Failure> {
        self.refuse_withdrawn()?;
        if let ConnectionState::Connected(connected_server) = &*self.state.borrow() {
            return Ok(connected_server.clone());
        }
        let mut state = self.state.clone();
        let settled_catalogue = state.wait_for(|state| {
            if matches!(state, ConnectionState::Idle) {
                self.signals.demand.notify_one();
            }
            !matches!(state, ConnectionState::Idle | ConnectionState::Connecting)
        });
        let reason =
            match tokio::time::timeout(self.limits.start_timeout + START_MARGIN, settled_catalogue).await {
                Ok(Ok(state)) => match &*state {
                    ConnectionState::Connected(connected_server) => return Ok(connected_server.clone()),
                    ConnectionState::Failed(reason) => reason.clone(),
                    ConnectionState::Idle | ConnectionState::Connecting => "it is still starting".into(),
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

    /// Pings the server and returns whether it answered within the call timeout.
    pub async fn answers(&self, connected_server: &ConnectedServer) -> bool {
        ping(connected_server.client.clone(), self.limits.call_timeout).await.is_ok()
    }

    /// Acquires one of the server's slots for concurrent calls. Waits in the queue if all slots are in use, or if the server
    /// asks its user questions and has calls of another execution.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue is full, or if no slot becomes free within the queue timeout.
    pub async fn call_slot(&self, execution: ExecutionId) -> Result<CallSlot, Failure> {
        let is_exclusive = self.status.borrow().asks_by_request;
        self.signals.slots.acquire(execution, is_exclusive).await.map_err(|busy| {
            let (name, at_once) = (&self.name, self.limits.calls_max);
            let message = match busy {
                SlotError::QueueFull(queue_max) => {
                    format!("server {name} is busy: {at_once} calls run and {queue_max} wait; make fewer at a time")
                }
                SlotError::QueueTimeout(limit) => format!(
                    "server {name} is busy: no call of {at_once} ended within {} s; the call was not made",
                    limit.as_secs_f32()
                ),
                SlotError::TurnTimeout(limit) => format!(
                    "server {name} asks its user questions, so it serves one run at a time: another run did not end its calls \
                     within {} s; the call was not made",
                    limit.as_secs_f32()
                ),
            };
            Failure { retryable: true, ..self.failure(FailureCode::UpstreamUnavailable, message) }
        })
    }

    pub(super) fn failure(&self, code: FailureCode, message: String) -> Failure {
        let retryable = matches!(code, FailureCode::Timeout | FailureCode::UpstreamUnavailable);
        Failure { server: Some(self.name.to_string()), retryable, ..Failure::new(code, message) }
    }

    /// Refuses all further calls of the server, also those of runs that began when it was permitted.
    pub(super) fn withdraw(&self) {
        self.withdrawn.cancel();
    }

    /// Fails if the administrator does not permit the server any more.
    ///
    /// # Errors
    ///
    /// Returns the error for the caller.
    pub fn refuse_withdrawn(&self) -> Result<(), Failure> {
        if !self.withdrawn.is_cancelled() {
            return Ok(());
        }
        let message =
            format!("the administrator's requirements do not permit the server {} any more", self.name);
        Err(self.failure(FailureCode::Denied, message))
    }

    /// Closes the connection once no call is in flight or the drain timeout has passed. Waits until the connection task
    /// has ended; the process of a connected server has exited then.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }

    /// Returns when a call of the server last ended.
    pub(super) fn last_used(&self) -> Instant {
        self.signals.slots.last_used()
    }

    /// Whether the connection task has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.state.has_changed().is_err()
    }
}
