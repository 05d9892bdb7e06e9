//! One attempt to start an upstream server, with the newest or with an older MCP protocol version.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_catalog::Catalogue;
use lockhouse_mcp::{FailureSignal, Handshake, LineTransport, converse, shake_hands};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::{ServerStarter, StartFailure, StartedServer};
use crate::auth::TokenProvider;
use crate::connect_error::ConnectError;
use crate::definition::{Endpoint, HttpEndpoint, HttpTransport, ServerCommand};
use crate::http::{self, PostAddress, RawResults};
use crate::http_error::HttpError;
use crate::in_flight_calls::InFlightCalls;
use crate::live_connection::{LiveConnection, LiveTransport};
use crate::mcp_client_handler::McpClientHandler;
use crate::peer::Peer;
use crate::process::ServerProcess;
use crate::program_digest::check_program;
use crate::server_log::ServerLog;
use crate::start_fault::explain;
use crate::stdout_noise::StdoutNoise;
use crate::tool_list::list_tools;

/// Maximum time to wait for the answer to the probe of a server's protocol version. Some older servers neither answer
/// the probe nor exit; a server that takes longer than this is treated as one of them.
const PROBE_MAX: Duration = Duration::from_secs(15);
/// What is added to the failure of a server over HTTP+SSE that took too long and has not named the URL for messages.
const NO_POST_ADDRESS: &str = "; it sent no event `endpoint`, with which a server over HTTP+SSE begins";

type Service = RunningService<RoleClient, McpClientHandler>;

/// One attempt to start an upstream server.
pub(super) struct Attempt<'a> {
    pub(super) server: &'a ServerStarter,
    pub(super) begun: Instant,
    /// Whether to use the older MCP handshake (`initialize`) without probing for the newest protocol version.
    pub(super) legacy_handshake: bool,
    /// Time limit from `begun` until the server has listed its tools.
    pub(super) limit: Duration,
}

/// Returns rmcp's handshake mode for servers over HTTP, in which rmcp itself finds out the server's protocol version.
fn asking() -> ClientLifecycleMode {
    let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
    ClientLifecycleMode::Auto { preferred_versions: newest(), legacy_version }
}

fn newest() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V_2026_07_28]
}

impl Attempt<'_> {
    /// Connects to the server and lists its tools.
    pub(super) async fn run(self) -> Result<StartedServer, StartFailure> {
        match &self.server.endpoint {
            Endpoint::Stdio(command) => self.over_stdio(command).await,
            Endpoint::Http(endpoint) => match endpoint.transport {
                HttpTransport::Streamable => self.over_streamable_http(endpoint).await,
                HttpTransport::Sse => self.over_sse(endpoint).await,
            },
        }
    }

    async fn over_stdio(self, command: &ServerCommand) -> Result<StartedServer, StartFailure> {
        if let Some(requirement) = &command.requirement {
            let checked = check_program(&command.program, requirement).await;
            checked.map_err(|error| StartFailure::new(error.to_string()))?;
        }
        let mut process = ServerProcess::start(command, &self.server.sandbox.places)
            .map_err(|error| StartFailure::new(explain(command, &error)))?;
        self.server.status.send_modify(|status| status.spawn_time = Some(self.begun.elapsed()));
        let Some((stdin, stdout, stderr)) = process.streams() else {
            return Err(StartFailure::new("its standard streams are missing".into()));
        };
        let last_lines = self.follow(stderr);
        let (bytes_max, failure_signal) = (self.server.limits.message_bytes_max, FailureSignal::default());
        let mut transport = LineTransport::new(stdout, stdin, bytes_max, failure_signal.clone());
        let noise = StdoutNoise::new(&self.server.name, self.server.secrets.clone());
        let examining = noise.clone();
        transport.examine_lines(move |line| examining.examine(line));
        let (client, changed) = (transport.client(), Arc::new(Notify::new()));
        let handler = Arc::new(self.handler(&changed));
        let conversation = tokio::spawn(converse(transport, handler.clone()));
        let handshake = async {
            shake_hands(&client, handler.config(), self.handshake()).await?;
            Ok((Peer::Lines(client.clone()), ()))
        };
        let connected = self.connect(handshake).await;
        if connected.is_err() {
            client.end();
        }
        let failure = match connected {
            Ok((peer, (), catalogue)) => {
                let ground = LiveTransport::Process { process, failure_signal, last_lines, client };
                let link = LiveConnection::new(
                    peer,
                    (handler.callers(), handler.notices()),
                    conversation,
                    ground,
                    changed,
                );
                return Ok(StartedServer { link, catalogue, legacy_handshake: self.legacy_handshake });
            }
            Err(Some(fault)) => {
                let server_output = fault.server_message(&self.server.secrets);
                let failure = StartFailure::new(fault.reason(process.end().await.1));
                StartFailure { server_output, may_need_legacy_handshake: true, ..failure }
            }
            Err(None) => {
                drop(process);
                StartFailure::late(self.limit)
            }
        };
        let server_output = last_lines.error_clause().await + &noise.clause();
        let server_output = failure.server_output.clone() + &server_output;
        Err(StartFailure { server_output, ..failure }.or_violation(&failure_signal))
    }

    /// Returns the handshake with a server over standard input and output.
    fn handshake(&self) -> Handshake {
        match self.legacy_handshake {
            true => Handshake::Initialize,
            false => Handshake::Probe(PROBE_MAX.min(self.limit / 2)),
        }
    }

    fn handler(&self, changed: &Arc<Notify>) -> McpClientHandler {
        let (name, notices) = (self.server.name.clone(), self.server.notices.clone());
        let status = self.server.status.clone();
        McpClientHandler::new(name, InFlightCalls::default(), changed.clone(), notices, status)
    }

    /// Spawns a task that writes the process's standard error to the log file, with secrets redacted. Returns the last
    /// lines of the output, which the task keeps up to date.
    fn follow(&self, stderr: ChildStderr) -> LastLines {
        let last_lines = LastLines::default();
        let secrets = self.server.secrets.clone();
        let notice = self.server.sandbox.notice.clone();
        let mut log = self.server.log.as_deref().map(ServerLog::new);
        last_lines.follow_edited(self.server.name.to_string(), stderr, move |line| {
            // First the control characters: without them, the pieces of a secret around one are together again.
            let visible: String = line.chars().filter(|c| !c.is_control()).collect();
            let line = secrets.redact(&visible);
            if let Some(log) = log.as_mut().filter(|_| !line.trim().is_empty()) {
                log.write_line(&line);
            }
            if let Some(notice) = &notice {
                notice.is_refusal(&line);
            }
            line
        });
        last_lines
    }

    async fn over_streamable_http(self, endpoint: &HttpEndpoint) -> Result<StartedServer, StartFailure> {
        let (changed, renewals) = (Arc::new(Notify::new()), self.server.session_renewals.clone());
        let transport = self.authority(endpoint).and_then(|authority| {
            http::transport(endpoint, &self.server.limits, authority, renewals, changed.clone())
        });
        let (transport, failure_signal) = transport.map_err(|fault| StartFailure::new(fault.reason))?;
        // The request determines whether its result stays raw.
        let mode = if self.legacy_handshake { ClientLifecycleMode::Initialize } else { asking() };
        let connected = self.connect_with_rmcp(transport, mode, RawResults::default(), &changed).await;
        self.started_over_http(connected, failure_signal, changed)
    }

    async fn over_sse(self, endpoint: &HttpEndpoint) -> Result<StartedServer, StartFailure> {
        let (changed, renewals) = (Arc::new(Notify::new()), self.server.session_renewals.clone());
        let raw = RawResults::default();
        let transport = self.authority(endpoint).and_then(|authority| {
            http::open_sse(endpoint, &self.server.limits, authority, renewals, raw.clone())
        });
        let (transport, failure_signal) = transport.map_err(|fault| StartFailure::new(fault.reason))?;
        let address = transport.post_address();
        let mode = ClientLifecycleMode::Initialize;
        let connected = self.connect_with_rmcp(transport, mode, raw, &changed).await;
        let started = self.started_over_http(connected, failure_signal, changed);
        started.map_err(|failure| {
            // Protocol 2026-07-28 was not tried.
            let mut failure = StartFailure { may_need_legacy_handshake: false, ..failure };
            if failure.is_late && matches!(*address.borrow(), PostAddress::Awaited) {
                failure.reason += NO_POST_ADDRESS;
            }
            failure
        })
    }

    fn authority(&self, endpoint: &HttpEndpoint) -> Result<TokenProvider, HttpError> {
        TokenProvider::new(&self.server.name, endpoint, self.server.secrets.clone())
    }

    /// Returns the started server after its handshake over HTTP, or why there is none.
    fn started_over_http(
        &self,
        connected: Result<(Peer, Service, Catalogue), Option<ConnectError>>,
        failure_signal: FailureSignal,
        changed: Arc<Notify>,
    ) -> Result<StartedServer, StartFailure> {
        let failure = match connected {
            Ok((peer, service, catalogue)) => {
                let ground = LiveTransport::Http(failure_signal, service.cancellation_token());
                let (callers, notices) = (service.service().callers(), service.service().notices());
                let conversation = tokio::spawn(async move { drop(service.waiting().await) });
                let link = LiveConnection::new(peer, (callers, notices), conversation, ground, changed);
                return Ok(StartedServer { link, catalogue, legacy_handshake: self.legacy_handshake });
            }
            Err(Some(fault)) => {
                let lost = failure_signal.reason().filter(|_| matches!(fault, ConnectError::Closed));
                StartFailure {
                    server_output: fault.server_message(&self.server.secrets),
                    may_need_legacy_handshake: fault.may_need_legacy_handshake(),
                    ..StartFailure::new(lost.map_or_else(|| fault.reason(None), |lost| lost.message))
                }
            }
            Err(None) => StartFailure::late(self.limit),
        };
        Err(failure.or_violation(&failure_signal))
    }

    /// Connects to a server over HTTP with rmcp's client. `raw` says from the end of the handshake on that results stay raw.
    async fn connect_with_rmcp<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        mode: ClientLifecycleMode,
        raw: RawResults,
        changed: &Arc<Notify>,
    ) -> Result<(Peer, Service, Catalogue), Option<ConnectError>> {
        let handshake = async {
            let service = self.handler(changed).serve_with_lifecycle(transport, mode).await?;
            service.set_response_cache_config(ClientCacheConfig::disabled()).await;
            raw.store(true, Ordering::Release);
            Ok((Peer::Http(service.peer().clone()), service))
        };
        self.connect(handshake).await
    }

    /// Performs the MCP handshake and lists the server's tools. `handshake` returns the connection and what belongs to it.
    /// `Err(None)` means that the start timeout has passed.
    async fn connect<T>(
        &self,
        handshake: impl Future<Output = Result<(Peer, T), ConnectError>>,
    ) -> Result<(Peer, T, Catalogue), Option<ConnectError>> {
        let connected = async {
            let (peer, service) = handshake.await?;
            let era = peer.info().map(|info| info.protocol_version.to_string());
            let took = self.begun.elapsed();
            self.server
                .status
                .send_modify(|status| (status.protocol_version, status.handshake_time) = (era, Some(took)));
            let catalogue = list_tools(&self.server.name, &peer, self.limit).await?;
            Ok::<_, ConnectError>((peer, service, catalogue))
        };
        match timeout_at(self.begun + self.limit, connected).await {
            Ok(done) => done.map_err(Some),
            Err(_) => Err(None),
        }
    }
}
