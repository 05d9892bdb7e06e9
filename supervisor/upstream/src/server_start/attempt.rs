//! One attempt to start an upstream server, with the newest or with an older MCP protocol version.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_catalog::Catalogue;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::Transport;
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::{ServerStarter, StartFailure, StartedServer};
use crate::auth::TokenProvider;
use crate::connect_error::ConnectError;
use crate::connection_failure::FailureSignal;
use crate::definition::{Endpoint, HttpEndpoint, HttpTransport, ServerCommand};
use crate::http::{self, PostAddress};
use crate::http_error::HttpError;
use crate::in_flight_calls::InFlightCalls;
use crate::live_connection::{LiveConnection, LiveTransport, Service};
use crate::mcp_client_handler::McpClientHandler;
use crate::process::ServerProcess;
use crate::program_digest::check_program;
use crate::protocol_probe::{ProbeOutcome, probe};
use crate::server_log::ServerLog;
use crate::start_fault::explain;
use crate::stdout_noise::StdoutNoise;
use crate::tool_list::list_tools;
use crate::transport::{LineTransport, RawResults};

/// Maximum time to wait for the answer to the probe of a server's protocol version. Some older servers neither answer
/// the probe nor exit; a server that takes longer than this is treated as one of them.
const PROBE_MAX: Duration = Duration::from_secs(15);
/// What is added to the failure of a server over HTTP+SSE that took too long and has not named the URL for messages.
const NO_POST_ADDRESS: &str = "; it sent no event `endpoint`, with which a server over HTTP+SSE begins";

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
        let raw = RawResults::default();
        let (bytes_max, failure_signal) = (self.server.limits.message_bytes_max, FailureSignal::default());
        let mut transport = LineTransport::new(stdout, stdin, bytes_max, raw.clone(), failure_signal.clone());
        let noise = StdoutNoise::new(&self.server.name, self.server.secrets.clone());
        transport.report_noise(noise.clone());
        let requests = transport.requests();
        let changed = Arc::new(Notify::new());
        let conversed = match self.era(&mut transport).await {
            Ok(mode) => self.converse(transport, mode, raw, &changed).await,
            Err(fault) => {
                drop(transport);
                Err(Some(fault))
            }
        };
        let failure = match conversed {
            Ok((service, catalogue)) => {
                let ground = LiveTransport::Process { process, failure_signal, last_lines, requests };
                let link = LiveConnection::new(service, ground, changed);
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

    /// Chooses the MCP handshake for a server over standard input and output: the older one if this attempt requires
    /// it, otherwise by a probe of the server.
    async fn era(&self, transport: &mut LineTransport) -> Result<ClientLifecycleMode, ConnectError> {
        if self.legacy_handshake {
            return Ok(ClientLifecycleMode::Initialize);
        }
        match probe(transport, PROBE_MAX.min(self.limit / 2)).await {
            ProbeOutcome::Newest => Ok(ClientLifecycleMode::Discover { preferred_versions: newest() }),
            ProbeOutcome::Older => Ok(ClientLifecycleMode::Initialize),
            ProbeOutcome::Closed => Err(ConnectError::Closed),
            ProbeOutcome::Silent => Err(ConnectError::Strange("it did not answer server/discover".into())),
        }
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
        // Over HTTP, the request determines whether its result stays raw.
        let mode = if self.legacy_handshake { ClientLifecycleMode::Initialize } else { asking() };
        let conversed = self.converse(transport, mode, RawResults::default(), &changed).await;
        self.started_over_http(conversed, failure_signal, changed)
    }

    async fn over_sse(self, endpoint: &HttpEndpoint) -> Result<StartedServer, StartFailure> {
        let (changed, renewals) = (Arc::new(Notify::new()), self.server.session_renewals.clone());
        let raw = RawResults::default();
        let transport = self.authority(endpoint).and_then(|authority| {
            http::open_sse(endpoint, &self.server.limits, authority, renewals, raw.clone())
        });
        let (transport, failure_signal) = transport.map_err(|fault| StartFailure::new(fault.reason))?;
        let address = transport.post_address();
        let conversed = self.converse(transport, ClientLifecycleMode::Initialize, raw, &changed).await;
        let started = self.started_over_http(conversed, failure_signal, changed);
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
        conversed: Result<(Service, Catalogue), Option<ConnectError>>,
        failure_signal: FailureSignal,
        changed: Arc<Notify>,
    ) -> Result<StartedServer, StartFailure> {
        let failure = match conversed {
            Ok((service, catalogue)) => {
                let link = LiveConnection::new(service, LiveTransport::Http(failure_signal), changed);
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

    /// Performs the MCP handshake and lists the server's tools. `Err(None)` means that the start timeout has passed.
    async fn converse<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        mode: ClientLifecycleMode,
        raw: RawResults,
        changed: &Arc<Notify>,
    ) -> Result<(Service, Catalogue), Option<ConnectError>> {
        let handshake = async {
            let (name, notices) = (self.server.name.clone(), self.server.notices.clone());
            let status = self.server.status.clone();
            let host =
                McpClientHandler::new(name, InFlightCalls::default(), changed.clone(), notices, status);
            let service = host.serve_with_lifecycle(transport, mode).await?;
            let era = service.peer_info().map(|info| info.protocol_version.to_string());
            let took = self.begun.elapsed();
            self.server
                .status
                .send_modify(|status| (status.protocol_version, status.handshake_time) = (era, Some(took)));
            service.set_response_cache_config(ClientCacheConfig::disabled()).await;
            raw.store(true, Ordering::Release);
            let catalogue = list_tools(&self.server.name, service.peer(), self.limit).await?;
            Ok::<_, ConnectError>((service, catalogue))
        };
        match timeout_at(self.begun + self.limit, handshake).await {
            Ok(done) => done.map_err(Some),
            Err(_) => Err(None),
        }
    }
}
