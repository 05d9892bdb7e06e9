//! One attempt to start an upstream server, with the newest or with an older MCP protocol version.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_catalog::Catalogue;
use lockhouse_cluster::ServerPlace;
use lockhouse_mcp::client::http::{HttpConnection, PostAddress};
use lockhouse_mcp::client::{
    Client, FailureSignal, Handshake, HttpError, LineTransport, MessageReader, converse, shake_hands,
};
use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::service_socket::{self, standard_streams};
use super::{ServerStarter, StartFailure, StartedServer};
use crate::auth::TokenProvider;
use crate::child_process::{ChildProcess, ServerStreams, StandardStreams};
use crate::confine::ConfineError;
use crate::connect_error::ConnectError;
use crate::definition::{Endpoint, HttpEndpoint, HttpTransport, RunAs, ServerCommand};
use crate::http;
use crate::in_flight_calls::InFlightCalls;
use crate::live_connection::{LiveConnection, LiveTransport};
use crate::mcp_client_handler::McpClientHandler;
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

/// One attempt to start an upstream server.
pub(super) struct Attempt<'a> {
    pub(super) server: &'a ServerStarter,
    pub(super) begun: Instant,
    /// Whether to use the older MCP handshake (`initialize`) without probing for the newest protocol version.
    pub(super) legacy_handshake: bool,
    /// Time limit from `begun` until the server has listed its tools.
    pub(super) limit: Duration,
}

impl Attempt<'_> {
    /// Connects to the server and lists its tools.
    pub(super) async fn run(self) -> Result<StartedServer, StartFailure> {
        match &self.server.endpoint {
            Endpoint::Stdio(command) if command.is_single => self.on_one_host(command).await,
            Endpoint::Stdio(command) => self.over_stdio(command).await,
            Endpoint::Http(endpoint) => match endpoint.transport {
                HttpTransport::Streamable => self.over_streamable_http(endpoint).await,
                HttpTransport::Sse => self.over_sse(endpoint).await,
            },
            Endpoint::Socket(path) => self.over_socket(path).await,
        }
    }

    async fn over_stdio(self, command: &ServerCommand) -> Result<StartedServer, StartFailure> {
        let (process, (stdin, stdout, stderr)) = match command.run_as {
            RunAs::Lockhouse => self.start_child(command).await?,
            RunAs::Person => {
                // Half of the time that is left: another attempt may have used some.
                let left = (self.begun + self.limit).saturating_duration_since(Instant::now());
                let deadline = Instant::now() + left / 2;
                let launched = self.server.launchers.start(&self.server.name, command, deadline).await;
                let (process, streams) = launched.map_err(StartFailure::from)?;
                (ServerProcess::Launched(process), streams)
            }
        };
        self.server.status.send_modify(|status| status.spawn_time = Some(self.begun.elapsed()));
        let last_lines = self.follow(stderr);
        let (bytes_max, failure_signal) = (self.server.limits.message_bytes_max, FailureSignal::default());
        let mut transport = LineTransport::new(stdout, stdin, bytes_max, failure_signal.clone());
        let noise = StdoutNoise::new(&self.server.name, self.server.secrets.clone());
        let examining = noise.clone();
        transport.examine_lines(move |line| examining.examine(line));
        let (client, changed) = (transport.client(), Arc::new(Notify::new()));
        let failure = match self.connect(transport, client, self.handshake(), &changed).await {
            Ok(connected) => {
                let ground = LiveTransport::Process { process, failure_signal, last_lines };
                return Ok(self.started(connected, ground, changed));
            }
            Err(Some(fault)) => {
                let server_output = fault.server_message(&self.server.secrets);
                let may_need_legacy_handshake = fault.may_need_legacy_handshake();
                let failure = StartFailure::new(fault.reason(process.end().await.1));
                StartFailure { server_output, may_need_legacy_handshake, ..failure }
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

    async fn start_child(
        &self,
        command: &ServerCommand,
    ) -> Result<(ServerProcess, ServerStreams), StartFailure> {
        if let Some(requirement) = &command.requirement {
            let checked = check_program(&command.program, requirement).await;
            checked.map_err(|error| StartFailure {
                may_be_sandbox: false,
                ..StartFailure::new(error.to_string())
            })?;
        }
        let mut process = ChildProcess::start(command, &self.server.sandbox.places, StandardStreams::Pipes)
            .map_err(|error| StartFailure {
            may_be_sandbox: !ConfineError::is_of_program(&error),
            ..StartFailure::new(explain(command, &error))
        })?;
        let streams = process.streams();
        let streams = streams.ok_or_else(|| StartFailure::new("its standard streams are missing".into()))?;
        Ok((ServerProcess::Child(process), streams))
    }

    /// Returns the handshake with a server whose protocol version is not known.
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
        let opened = self.authority(endpoint).and_then(|authority| {
            http::open_streamable(endpoint, &self.server.limits, authority, renewals, changed.clone())
        });
        let (connection, failure_signal) = opened.map_err(|fault| StartFailure::new(fault.reason))?;
        self.over_http(connection, self.handshake(), failure_signal, changed).await
    }

    async fn over_sse(self, endpoint: &HttpEndpoint) -> Result<StartedServer, StartFailure> {
        let (changed, renewals) = (Arc::new(Notify::new()), self.server.session_renewals.clone());
        let opened = self
            .authority(endpoint)
            .and_then(|authority| http::open_sse(endpoint, &self.server.limits, authority, renewals));
        let (connection, failure_signal, address) =
            opened.map_err(|fault| StartFailure::new(fault.reason))?;
        let started = self.over_http(connection, Handshake::Initialize, failure_signal, changed).await;
        started.map_err(|failure| {
            // Protocol 2026-07-28 was not tried.
            let mut failure = StartFailure { may_need_legacy_handshake: false, ..failure };
            if failure.is_late && matches!(*address.borrow(), PostAddress::Awaited) {
                failure.reason += NO_POST_ADDRESS;
            }
            failure
        })
    }

    /// Connects to a server that another service starts for this connection.
    async fn over_socket(self, path: &Path) -> Result<StartedServer, StartFailure> {
        let connected = service_socket::connect(path).await;
        let streams = connected.map_err(|error| StartFailure::new(error.to_string()))?;
        self.over_streams(streams).await
    }

    /// Starts the server here, or connects to that of the host of the cluster that runs it.
    async fn on_one_host(self, command: &ServerCommand) -> Result<StartedServer, StartFailure> {
        let failed = |error: &dyn std::error::Error| StartFailure::new(error.to_string());
        let place = self.server.places.find(self.server.name.as_str()).await;
        let mut other = match place.map_err(|error| failed(&error))? {
            ServerPlace::Here => return self.over_stdio(command).await,
            ServerPlace::There(stream) => stream,
        };
        let (mut ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
        let streams = standard_streams(theirs).map_err(|error| failed(&error))?;
        tokio::spawn(async move { drop(copy_bidirectional(&mut ours, &mut *other).await) });
        self.over_streams(streams).await
    }

    async fn over_streams(
        self,
        (output, input): (ChildStdout, ChildStdin),
    ) -> Result<StartedServer, StartFailure> {
        let (bytes_max, failure_signal) = (self.server.limits.message_bytes_max, FailureSignal::default());
        let mut transport = LineTransport::new(output, input, bytes_max, failure_signal.clone());
        let noise = StdoutNoise::new(&self.server.name, self.server.secrets.clone());
        transport.examine_lines(move |line| noise.examine(line));
        let (client, changed) = (transport.client(), Arc::new(Notify::new()));
        let failure = match self.connect(transport, client, self.handshake(), &changed).await {
            Ok(connected) => {
                let ground = LiveTransport::Remote(failure_signal);
                return Ok(self.started(connected, ground, changed));
            }
            Err(Some(fault)) => StartFailure {
                server_output: fault.server_message(&self.server.secrets),
                may_need_legacy_handshake: fault.may_need_legacy_handshake(),
                ..StartFailure::new(fault.reason(None))
            },
            Err(None) => StartFailure::late(self.limit),
        };
        Err(failure.or_violation(&failure_signal))
    }

    fn authority(&self, endpoint: &HttpEndpoint) -> Result<TokenProvider, HttpError> {
        let ServerStarter { name, secrets, login, .. } = self.server;
        TokenProvider::new(name, endpoint, secrets.clone(), login)
    }

    /// Starts the conversation with a server over HTTP.
    async fn over_http(
        &self,
        connection: HttpConnection,
        handshake: Handshake,
        failure_signal: FailureSignal,
        changed: Arc<Notify>,
    ) -> Result<StartedServer, StartFailure> {
        let HttpConnection { client, messages } = connection;
        let failure = match self.connect(messages, client, handshake, &changed).await {
            Ok(connected) => {
                return Ok(self.started(connected, LiveTransport::Remote(failure_signal), changed));
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

    fn started(&self, connected: Connected, ground: LiveTransport, changed: Arc<Notify>) -> StartedServer {
        let Connected { client, handler, conversation, catalogue } = connected;
        let (calls, notices) = (handler.calls(), handler.notices());
        let link = LiveConnection::new(client, calls, notices, conversation, ground, changed);
        StartedServer { link, catalogue, legacy_handshake: self.legacy_handshake }
    }

    /// Starts the conversation, performs the MCP handshake and lists the server's tools. `Err(None)` means that the start
    /// timeout has passed.
    async fn connect(
        &self,
        messages: impl MessageReader + 'static,
        client: Client,
        handshake: Handshake,
        changed: &Arc<Notify>,
    ) -> Result<Connected, Option<ConnectError>> {
        let handler = Arc::new(self.handler(changed));
        let conversation = tokio::spawn(converse(messages, client.clone(), handler.clone()));
        // Also if this future is dropped: over HTTP, no process ends with it.
        let ending = client.end_on_drop();
        let connected = async {
            shake_hands(&client, handler.config(), handshake).await?;
            let era = client.info().map(|info| info.protocol_version.to_string());
            let took = self.begun.elapsed();
            let answered = era.clone().unwrap_or_default();
            let minimum = self.server.protocol_minimum;
            if !minimum.permits(&answered) {
                return Err(ConnectError::Version { answered, minimum });
            }
            self.server
                .status
                .send_modify(|status| (status.protocol_version, status.handshake_time) = (era, Some(took)));
            list_tools(&self.server.name, &client, self.limit).await
        };
        let listed = timeout_at(self.begun + self.limit, connected).await;
        let catalogue = listed.map_err(|_| None)?.map_err(Some)?;
        ending.disarm();
        Ok(Connected { client, handler, conversation, catalogue })
    }
}

/// A server after its handshake.
struct Connected {
    client: Client,
    handler: Arc<McpClientHandler>,
    /// The task that handles the server's messages.
    conversation: JoinHandle<()>,
    catalogue: Catalogue,
}
