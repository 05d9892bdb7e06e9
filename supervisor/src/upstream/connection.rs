//! One connection and the task that holds it: start, list tools, wait for the end, start again.

use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockhouse_policies::PermittedCall;
use lockhouse_protocol::{Failure, FailureCode, ServerName, ToolName};
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, CustomResult,
    Implementation, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RunningService,
    ServiceError,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::transport::{LineTransport, RawResults, TOO_LARGE};
use super::{ServerCommand, result};
use crate::catalog::{self, Tool};
use crate::child_stderr::LastLines;

/// What a server process inherits, besides what its configuration sets.
const INHERITED: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
const BACKOFF_MIN: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How long a process gets to leave by itself, after the end of its input and again after SIGTERM.
const LEAVE: Duration = Duration::from_millis(500);
const PAGES_MAX: usize = 100;

/// Where a connection stands.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Being started, or started again.
    Connecting,
    /// Usable.
    Connected(Arc<Offer>),
    /// The last attempt failed, for this reason; another will follow.
    Failed(String),
}

/// A connected server and its tools.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    /// What a client that loads all definitions would get of them.
    pub(crate) definitions_bytes: usize,
    /// The answer to a worker's `ListTools`, which only depends on the policy: made once.
    pub(crate) briefs: OnceLock<Vec<u8>>,
    peer: Peer<RoleClient>,
}

impl Offer {
    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == *name)
    }
}

/// A handle to the task that holds the connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    name: ServerName,
    call_timeout: Duration,
    start_timeout: Duration,
    state: watch::Receiver<State>,
    closing: CancellationToken,
}

impl Connection {
    /// Starts the task.
    pub(super) fn open(name: ServerName, command: ServerCommand) -> Self {
        let (sender, state) = watch::channel(State::Connecting);
        let closing = CancellationToken::new();
        let (call_timeout, start_timeout) = (command.call_timeout, command.start_timeout);
        tokio::spawn(hold(name.clone(), command, sender, closing.clone()));
        Self { name, call_timeout, start_timeout, state, closing }
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits while it connects, at most for the start timeout.
    pub(crate) async fn offer(&self) -> Result<Arc<Offer>, Failure> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, State::Connecting));
        let reason = match tokio::time::timeout(self.start_timeout, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Connected(offer) => return Ok(offer.clone()),
                State::Failed(reason) => reason.clone(),
                State::Connecting => "it is still starting".into(),
            },
            Ok(Err(_)) => "it was shut down".into(),
            Err(_) => format!("it did not start within {} s", self.start_timeout.as_secs_f32()),
        };
        Err(self.failure(
            FailureCode::UpstreamUnavailable,
            format!("server {} is not available: {reason}", self.name),
        ))
    }

    /// Sends a permitted call. When the caller stops waiting, the upstream is told that it is cancelled.
    pub(crate) async fn call(
        &self,
        offer: &Offer,
        permitted: PermittedCall,
        arguments: Map<String, Value>,
    ) -> Result<Vec<u8>, Failure> {
        let tool = permitted.tool().clone();
        let parameters = CallToolRequestParams::new(tool.as_str().to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let answer = send(offer.peer.clone(), request, self.call_timeout).await;
        let outcome = answer.map_err(|error| self.told(&error)).and_then(|raw| result::envelope(&raw));
        outcome.map_err(|(code, message)| Failure {
            tool: Some(tool.to_string()),
            ..self.failure(code, message)
        })
    }

    fn told(&self, error: &ServiceError) -> (FailureCode, String) {
        let name = &self.name;
        match error {
            ServiceError::McpError(error) if error.message == TOO_LARGE => (
                FailureCode::ResultTooLarge,
                format!(
                    "the result of server {name} exceeds the limit of one message; ask for less at a time"
                ),
            ),
            ServiceError::McpError(error) if error.code.0 == -32602 => {
                (FailureCode::InvalidArguments, error.message.chars().take(4_000).collect())
            }
            ServiceError::McpError(error) => {
                (FailureCode::ToolFailed, error.message.chars().take(4_000).collect())
            }
            ServiceError::Timeout { .. } => (
                FailureCode::Timeout,
                format!("server {name} did not answer within {} s", self.call_timeout.as_secs_f32()),
            ),
            _ => (
                FailureCode::UpstreamUnavailable,
                format!("server {name} ended during the call; whether the call took effect is not known"),
            ),
        }
    }

    fn failure(&self, code: FailureCode, message: String) -> Failure {
        let retryable = matches!(code, FailureCode::Timeout | FailureCode::UpstreamUnavailable);
        Failure { code, message, server: Some(self.name.to_string()), tool: None, retryable }
    }

    /// Ends the process and waits until it is gone.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

/// Sends one request, whose result comes back as its JSON text. rmcp forgets a request that nobody waits for without telling the
/// server, so a task of its own stays with it to the end.
async fn send(
    peer: Peer<RoleClient>,
    request: ClientRequest,
    limit: Duration,
) -> Result<String, ServiceError> {
    let mut handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let (mut answer, waiting) = oneshot::channel();
    tokio::spawn(async move {
        let received = tokio::select! {
            received = &mut handle.rx => received.unwrap_or(Err(ServiceError::TransportClosed)),
            () = tokio::time::sleep(limit) => {
                let _ = handle.cancel(Some("timeout".into())).await;
                Err(ServiceError::Timeout { timeout: limit })
            }
            () = answer.closed() => {
                let _ = handle.cancel(Some("the execution ended".into())).await;
                return;
            }
        };
        let _ = answer.send(received);
    });
    match waiting.await.unwrap_or(Err(ServiceError::TransportClosed))? {
        ServerResult::CustomResult(CustomResult(Value::String(raw))) => Ok(raw),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// What a server is told about us.
struct Host;

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("lockhouse", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// A running process and the connection to it.
struct Link {
    child: Child,
    service: RunningService<RoleClient, Host>,
    last_lines: LastLines,
}

async fn hold(
    name: ServerName,
    command: ServerCommand,
    state: watch::Sender<State>,
    closing: CancellationToken,
) {
    let mut legacy = false;
    let mut backoff = BACKOFF_MIN;
    loop {
        let started = tokio::select! {
            started = start(&name, &command, &mut legacy) => started,
            () = closing.cancelled() => return,
        };
        match started {
            Ok((link, offer)) => {
                tracing::info!(server = %name, tools = offer.tools.len(), "connected");
                backoff = BACKOFF_MIN;
                state.send_replace(State::Connected(Arc::new(offer)));
                until_the_end(&name, link, &state, &closing).await;
            }
            Err(reason) => {
                tracing::warn!(server = %name, "not available: {reason}");
                state.send_replace(State::Failed(reason));
                tokio::select! {
                    () = tokio::time::sleep(backoff) => {}
                    () = closing.cancelled() => return,
                }
                backoff = (backoff * 2).min(BACKOFF_MAX);
            }
        }
        if closing.is_cancelled() {
            return;
        }
    }
}

/// Keeps the connection until either side ends it. A caller that comes from then on waits for the next one.
async fn until_the_end(
    name: &ServerName,
    mut link: Link,
    state: &watch::Sender<State>,
    closing: &CancellationToken,
) {
    let status = tokio::select! {
        status = link.child.wait() => Some(status),
        _ = link.service.waiting() => None,
        () = closing.cancelled() => None,
    };
    state.send_replace(State::Connecting);
    if !closing.is_cancelled() {
        let last_words = link.last_lines.told().await;
        tracing::warn!(server = %name, ?status, "the connection ended{last_words}");
    }
    // The service is gone with the select, and with it the process's input.
    end(link.child).await;
}

async fn start(
    name: &ServerName,
    command: &ServerCommand,
    legacy: &mut bool,
) -> Result<(Link, Offer), String> {
    let attempt = async {
        if !*legacy {
            match connect(name, command, probe()).await {
                Ok(started) => return Ok(started),
                // Some servers crash on the probe, or refuse the older handshake after it: a new process does not
                // know that it was asked.
                Err(Refusal { process_ran: true, .. }) => *legacy = true,
                Err(refusal) => return Err(refusal.reason),
            }
        }
        connect(name, command, ClientLifecycleMode::Initialize).await.map_err(|refusal| refusal.reason)
    };
    let seconds = command.start_timeout.as_secs_f32();
    let late = || format!("it did not finish its start within {seconds} s (start_timeout_seconds)");
    let started = tokio::time::timeout(command.start_timeout, attempt).await.unwrap_or_else(|_| Err(late()));
    if started.is_err() {
        // What failed this time may be the process, not the era.
        *legacy = false;
    }
    started
}

fn probe() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

struct Refusal {
    process_ran: bool,
    reason: String,
}

async fn connect(
    name: &ServerName,
    command: &ServerCommand,
    mode: ClientLifecycleMode,
) -> Result<(Link, Offer), Refusal> {
    let mut child = spawn(command).map_err(|error| Refusal {
        process_ran: false,
        reason: format!("cannot start {:?}: {error}", command.program),
    })?;
    let last_lines = LastLines::default();
    if let Some(stderr) = child.stderr.take() {
        last_lines.follow(name.to_string(), stderr);
    }
    let raw = RawResults::default();
    let handshake = async {
        let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.take()) else {
            return Err("its standard streams are missing".to_owned());
        };
        let transport = LineTransport::new(stdout, stdin, command.line_bytes_max, raw.clone());
        let service = Host.serve_with_lifecycle(transport, mode).await.map_err(|error| error.to_string())?;
        service.set_response_cache_config(ClientCacheConfig::disabled()).await;
        raw.store(true, Ordering::Release);
        let tools = list_tools(name, service.peer(), command.start_timeout).await?;
        Ok((service, tools))
    };
    match handshake.await {
        Ok((service, (tools, definitions_bytes))) => {
            let offer =
                Offer { tools, definitions_bytes, briefs: OnceLock::new(), peer: service.peer().clone() };
            Ok((Link { child, service, last_lines }, offer))
        }
        Err(reason) => {
            end(child).await;
            Err(Refusal { process_ran: true, reason: format!("{reason}{}", last_lines.told().await) })
        }
    }
}

fn spawn(command: &ServerCommand) -> std::io::Result<Child> {
    let mut process = Command::new(&command.program);
    process.args(&command.arguments).env_clear();
    let inherited = INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value)));
    process.envs(inherited).envs(&command.environment);
    if let Some(directory) = &command.directory {
        process.current_dir(directory);
    }
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: grandchildren end with it, and a terminal's Ctrl-C does not reach it before we do.
    process.process_group(0).kill_on_drop(true).spawn()
}

/// Ends the process and its whole group: it has lost its input; then SIGTERM, then SIGKILL.
async fn end(mut child: Child) {
    use nix::sys::signal::{Signal, killpg};
    let Some(group) = child.id().map(|id| nix::unistd::Pid::from_raw(id as i32)) else { return };
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if tokio::time::timeout(LEAVE, child.wait()).await.is_ok() {
            break;
        }
        let _ = killpg(group, signal);
    }
    // What the process itself left behind.
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait().await;
}

/// One page of `tools/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

async fn list_tools(
    name: &ServerName,
    peer: &Peer<RoleClient>,
    limit: Duration,
) -> Result<(Vec<Tool>, usize), String> {
    let mut tools: Vec<Tool> = Vec::new();
    let mut bytes = 0;
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest {
            params: Some(params),
            method: Default::default(),
            extensions: Default::default(),
        };
        let page = send(peer.clone(), ClientRequest::ListToolsRequest(request), limit).await;
        let page = page.map_err(|error| format!("tools/list failed: {error}"))?;
        let page: Page<'_> = serde_json::from_str(&page)
            .map_err(|error| format!("tools/list is not as MCP has it: {error}"))?;
        for entry in page.tools {
            bytes += entry.get().len();
            if tools.len() == catalog::TOOLS_MAX || bytes > catalog::DEFINITIONS_BYTES_MAX {
                tracing::warn!(server = %name, "it offers more tools than are kept; the rest is left out");
                return Ok((tools, bytes));
            }
            match Tool::from_json(entry.get()) {
                Some(tool) if tools.iter().all(|other| other.name != tool.name) => tools.push(tool),
                _ => tracing::warn!(server = %name, "a tool has no usable name of its own and is left out"),
            }
        }
        if page.next_cursor.is_none() || page.next_cursor == cursor {
            return Ok((tools, bytes));
        }
        cursor = page.next_cursor;
    }
    tracing::warn!(server = %name, "tools/list has more than {PAGES_MAX} pages; the rest is left out");
    Ok((tools, bytes))
}
