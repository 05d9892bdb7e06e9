//! Starts an upstream server and lists its tools: first with the newest MCP protocol version and, if that fails, with
//! the older handshake (`initialize`).

mod attempt;
mod service_socket;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockhouse_base::secrets::Secrets;
use lockhouse_catalog::Catalogue;
use lockhouse_cluster::ServerPlaces;
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use self::attempt::Attempt;
use super::auth::LoginSource;
use super::change_notices::ServerChangeNotices;
use super::confine::{RefusalNotice, SandboxPlaces};
use super::connection_setup::ConnectionSetup;
use super::connection_status::ConnectionStatus;
use super::definition::{Endpoint, ProtocolMinimum, ServerDefinition, ServerLimits};
use super::launcher::{LaunchError, Launchers};
use super::live_connection::LiveConnection;
use lockhouse_mcp::client::http::SessionRenewals;
use lockhouse_mcp::client::{ConnectionFailure, FailureSignal};

/// How often the time limit of a start is doubled at most.
const DOUBLINGS_MAX: u32 = 3;

/// Why an upstream server could not be started.
pub(super) struct StartFailure {
    /// Describes the failure without any text of the server; submitted code and the model may read it.
    pub(super) reason: String,
    /// The server's own output with secrets redacted, for users.
    pub(super) server_output: String,
    /// Whether another start with the older MCP handshake (`initialize`) may succeed.
    may_need_legacy_handshake: bool,
    /// Whether the server exceeded a limit or broke the protocol.
    pub(super) is_violation: bool,
    /// Whether the time limit of the start passed.
    is_late: bool,
    /// Whether the sandbox of the server can be the cause.
    may_be_sandbox: bool,
    /// Whether nothing was tried, because no launcher is connected in the session of the server's user.
    lacks_launcher: bool,
}

impl StartFailure {
    /// Returns the failure with a violation as its reason, if the connection was ended because the server
    /// exceeded a limit or broke the protocol. Otherwise returns the failure unchanged.
    fn or_violation(self, failure_signal: &FailureSignal) -> Self {
        match failure_signal.reason().filter(|reason| reason.is_violation) {
            Some(ConnectionFailure { message, is_violation }) => {
                Self { reason: message, may_need_legacy_handshake: false, is_violation, ..self }
            }
            None => self,
        }
    }

    fn new(reason: String) -> Self {
        Self {
            reason,
            server_output: String::new(),
            may_need_legacy_handshake: false,
            is_violation: false,
            is_late: false,
            may_be_sandbox: true,
            lacks_launcher: false,
        }
    }

    fn late(limit: Duration) -> Self {
        let reason =
            format!("it did not finish its start within {} s (start_timeout_seconds)", limit.as_secs_f32());
        Self { is_late: true, ..Self::new(reason) }
    }
}

impl From<LaunchError> for StartFailure {
    fn from(error: LaunchError) -> Self {
        let may_be_sandbox = matches!(error, LaunchError::Failed(_));
        let lacks_launcher = matches!(error, LaunchError::NoLauncher);
        Self { may_be_sandbox, lacks_launcher, ..Self::new(error.to_string()) }
    }
}

/// Starts one upstream server. The connection task uses this value for the first start and for each restart.
pub(super) struct ServerStarter {
    name: ServerName,
    endpoint: Endpoint,
    /// Whether the configuration requires the older MCP handshake (`initialize`) for this server.
    only_legacy: bool,
    protocol_minimum: ProtocolMinimum,
    pub(super) limits: ServerLimits,
    /// `FILE` or `FILE:LINE` where the server is configured.
    origin: String,
    /// Number of starts in a row whose time limit passed.
    late_starts: AtomicU32,
    secrets: Secrets,
    /// The log file for the server's standard error; `None` if it is not stored.
    pub(super) log: Option<PathBuf>,
    status: watch::Sender<ConnectionStatus>,
    notices: ServerChangeNotices,
    sandbox: Sandbox,
    /// Limits new MCP sessions of a server over HTTP, across its connections.
    session_renewals: SessionRenewals,
    launchers: Launchers,
    /// Which host of a cluster runs the server, if all use one process.
    places: ServerPlaces,
    login: LoginSource,
    /// Why the server was not started when it was last tried. `None` if it was started, or never tried.
    last_reason: Mutex<Option<String>>,
}

/// What belongs to the sandbox of a server, if it has one.
#[derive(Clone, Default)]
pub(super) struct Sandbox {
    pub(super) places: SandboxPlaces,
    /// `None` for a server without a sandbox.
    pub(super) notice: Option<Arc<RefusalNotice>>,
}

/// An upstream server that has been started, with its connection and its tools.
pub(super) struct StartedServer {
    pub(super) link: LiveConnection,
    pub(super) catalogue: Catalogue,
    /// Whether the server was started with the older MCP handshake (`initialize`) and no probe for the newest protocol
    /// version, because the configuration requires this or because the start with the probe failed.
    pub(super) legacy_handshake: bool,
}

impl ServerStarter {
    /// Creates the starter of one upstream server. `log` is the file for the server's standard error; the progress of
    /// each start is recorded in `status`.
    pub(super) fn new(
        setup: &ConnectionSetup,
        secrets: Secrets,
        log: Option<PathBuf>,
        sandbox: Sandbox,
        status: watch::Sender<ConnectionStatus>,
        notices: ServerChangeNotices,
    ) -> Self {
        let ServerDefinition { endpoint, limits, start, origin, .. } = setup.definition.clone();
        Self {
            name: setup.name.clone(),
            endpoint,
            only_legacy: start.legacy_handshake,
            protocol_minimum: start.protocol_minimum,
            limits,
            origin,
            late_starts: AtomicU32::new(0),
            secrets,
            log,
            status,
            notices,
            sandbox,
            session_renewals: SessionRenewals::default(),
            launchers: setup.launchers.clone(),
            places: setup.places.clone(),
            login: setup.login.clone(),
            last_reason: Mutex::default(),
        }
    }

    /// Returns the time limit of the next start. A server that only needs longer is not killed for ever: the configured
    /// limit is doubled after each start that took too long.
    fn start_limit(&self) -> Duration {
        let late_starts = self.late_starts.load(Ordering::Relaxed);
        self.limits.start_timeout.saturating_mul(1 << late_starts.min(DOUBLINGS_MAX))
    }

    /// Connects to the server and lists its tools. If `legacy_handshake` is true, uses only the older MCP handshake
    /// (`initialize`); otherwise tries the newest protocol version first.
    pub(super) async fn start(&self, legacy_handshake: bool) -> Result<StartedServer, StartFailure> {
        self.sandbox.notice.iter().for_each(|notice| notice.reset());
        let started = self.start_in_either_protocol(legacy_handshake).await;
        match &started {
            Err(StartFailure { is_late: true, .. }) => _ = self.late_starts.fetch_add(1, Ordering::Relaxed),
            _ => self.late_starts.store(0, Ordering::Relaxed),
        }
        let started = started.map_err(|failure| self.with_last_reason(failure));
        if started.is_ok() {
            *self.last_reason.lock() = None;
        }
        started.map_err(|failure| self.with_sandbox_advice(self.with_time_advice(failure)))
    }

    /// Adds why the server failed when it was last tried to the failure of one that was not tried.
    fn with_last_reason(&self, mut failure: StartFailure) -> StartFailure {
        let mut last = self.last_reason.lock();
        if !failure.lacks_launcher {
            *last = Some(failure.reason.clone());
        } else if let Some(last) = last.as_ref() {
            failure.reason = format!("{last}. It was not tried again: {}", failure.reason);
        }
        failure
    }

    /// Tells users of a server that took too long which limit the next start has, and where to set it.
    fn with_time_advice(&self, mut failure: StartFailure) -> StartFailure {
        if failure.is_late {
            let next = self.start_limit().as_secs_f32();
            failure.server_output += &format!(
                "; the next start may take {next} s. If it always takes long, set `start_timeout_seconds` of this server in {}",
                self.origin
            );
        }
        failure
    }

    /// Names the setting of the sandbox in the failure of a server that was in one. Users get it always, since most
    /// servers do not report which access was refused.
    fn with_sandbox_advice(&self, mut failure: StartFailure) -> StartFailure {
        if let Some(notice) = self.sandbox.notice.as_ref().filter(|_| failure.may_be_sandbox) {
            let advice = notice.advice(&failure.server_output);
            failure.server_output += &format!("; {advice}");
        }
        failure
    }

    async fn start_in_either_protocol(&self, legacy_handshake: bool) -> Result<StartedServer, StartFailure> {
        let begun = Instant::now();
        let limit = self.start_limit();
        self.status.send_modify(|status| {
            status.attempt_began = Some(begun.into_std());
            (status.protocol_version, status.spawn_time, status.handshake_time) = (None, None, None);
        });
        let attempt = |legacy_handshake| Attempt { server: self, begun, legacy_handshake, limit }.run();
        if legacy_handshake || self.only_legacy {
            return attempt(true).await;
        }
        match attempt(false).await {
            // Some servers crash on the probe, or refuse the older handshake after it, so the next attempt uses a new
            // process.
            Err(first) if first.may_need_legacy_handshake => match attempt(true).await {
                Err(StartFailure { lacks_launcher: true, .. }) => Err(first),
                second => second,
            },
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Confinement, ConfinementProfile, ServerCommand};

    fn shell(script: &str) -> ServerStarter {
        let seconds = Duration::from_secs;
        let command = ServerCommand {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: [("TOKEN".to_owned(), "SEKRET-CANARY".to_owned())].into(),
            ..ServerCommand::default()
        };
        let (start_timeout, call_timeout) = (seconds(5), seconds(5));
        let limits =
            ServerLimits { start_timeout, call_timeout, message_bytes_max: 1024, ..ServerLimits::default() };
        let secrets = Secrets::from_environment(&command.environment);
        let name = ServerName::new("h").expect("a name");
        ServerStarter {
            name,
            endpoint: Endpoint::Stdio(command),
            only_legacy: false,
            protocol_minimum: ProtocolMinimum::default(),
            limits,
            origin: "config.toml:7".into(),
            late_starts: AtomicU32::new(0),
            secrets,
            log: None,
            status: watch::Sender::default(),
            notices: ServerChangeNotices::default(),
            sandbox: Sandbox::default(),
            session_renewals: SessionRenewals::default(),
            launchers: Launchers::default(),
            places: ServerPlaces::default(),
            login: LoginSource::default(),
            last_reason: Mutex::default(),
        }
    }

    #[tokio::test]
    async fn why_a_server_is_not_available_is_told_without_its_own_words() {
        for (script, words) in [
            ("echo bad token: $TOKEN >&2; exit 3", "it ended before it was ready (exit status: 3)"),
            (
                r#"n=1; while read -r line; do
                    printf '{"jsonrpc":"2.0","id":%d,"error":{"code":-5,"message":"%s"}}\n' $n $TOKEN; n=$((n+1))
                done"#,
                "it answered with an error while it started (JSON-RPC code -5)",
            ),
        ] {
            let Err(refusal) = shell(script).start(false).await else {
                panic!("no refusal");
            };
            let (reason, server_output) = (refusal.reason, refusal.server_output);
            assert!(reason.starts_with(words) && !reason.contains("TOKEN"), "{reason}");
            assert!(
                server_output.contains("[redacted TOKEN]") && !server_output.contains("CANARY"),
                "{server_output}"
            );
        }
    }

    #[tokio::test]
    async fn only_the_failure_of_a_server_in_its_sandbox_names_the_setting() {
        for (program, words, is_advised) in [
            ("no-such-program", "there is no program of this name in PATH", false),
            // The process that enters the sandbox is not Lockhouse here, so it fails.
            ("sh", "it ended before it was ready", true),
        ] {
            let folder = tempfile::tempdir().expect("a directory");
            let mut starter = shell("exit 3");
            let Endpoint::Stdio(command) = &mut starter.endpoint else { panic!("a command") };
            command.program = program.to_owned();
            command.confinement = Some(Confinement::with_profile(ConfinementProfile::Default));
            let definition =
                ServerDefinition::new(starter.endpoint.clone(), starter.limits, starter.origin.clone());
            let places = SandboxPlaces { folder: Some(folder.path().to_owned()), ..SandboxPlaces::default() };
            let notice = RefusalNotice::new(&starter.name, &definition, &places).map(Arc::new);
            starter.sandbox = Sandbox { places, notice };
            let Err(failure) = starter.start(false).await else { panic!("no failure") };
            let (reason, output) = (failure.reason, failure.server_output);
            assert!(reason.contains(words), "{reason}");
            assert_eq!(output.contains("it is confined by `sandbox` in"), is_advised, "{reason}{output}");
        }
    }
}
