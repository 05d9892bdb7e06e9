//! `lockhouse serve`: runs the MCP server over standard input and output or over HTTP.

mod cluster_member;
mod http_service;
mod shared;
mod system;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::telemetry;
use lockhouse_config::{ConfigError, Configuration, ExposeMode, Files, Settings, SystemEngine};
use lockhouse_engine::control_socket::ControlSocket;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_engine::systemd_notify;
use lockhouse_front::http::{HttpSettings, ListenAddress, SpareSockets};
use lockhouse_front::{self as front, AnswerForm, AnswerSettings};
use lockhouse_protocol::Language;
use lockhouse_upstream::NESTED_VARIABLE;
use tokio_util::sync::CancellationToken;

use super::audit_forwarding::AuditForwarding;
use super::engine_description::DescribedEngine;
use super::engine_lock::SetupLock;
use super::reloader::{Reloader, UnmetRequirements};
use super::startup_code::release_after_start;
use super::stop_signals::end_on_signal;
use super::{REQUIREMENTS, UNAVAILABLE, USAGE, load, print_config_error, print_error, start_with};
use cluster_member::ClusterMember;
pub(super) use http_service::HttpService;
use shared::{NotShared, ThinProcess};

/// Options of `lockhouse serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Serve over HTTP on the configured addresses, or on the sockets that systemd passes
    #[arg(long)]
    http: bool,
    /// Serve over HTTP on IP:PORT or unix:/PATH instead of the configured addresses; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<ListenAddress>,
    /// Form of answers: text for models, value for AI clients that process answers with code, labelled for Gemini CLI, or
    /// structured; over HTTP, for clients without an entry in the configuration
    #[arg(long, value_name = "FORM", default_value = "text")]
    answer: AnswerForm,
    /// Longest time that a request waits for its run; then the AI client gets a handle. For clients whose own time limit
    /// is shorter than wait_seconds in the configuration [default: less than the environment variable MCP_TOOL_TIMEOUT]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=240))]
    wait: Option<u32>,
    /// Expose all servers in this way, except those whose table says how: to code, directly as tools, or both
    #[arg(long, value_enum, default_value_t)]
    expose: ExposeMode,
    /// Let the service that listens at this socket start the processes that speak HTTP with AI clients, in accounts of their own:
    /// that of lockhouse-http-front.socket
    #[arg(long, value_name = "PATH", requires = "http")]
    front_socket: Option<PathBuf>,
    /// Run an engine and servers of its own, even if the configuration says that clients share them
    #[arg(long)]
    own: bool,
}

/// How long before the AI client's time limit for a tool call `lockhouse serve` answers a request. If half of that time
/// limit is shorter than this, the request is answered after half of it.
const BEFORE_CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The environment variable in which Claude Code gives its time limit of a tool call, in milliseconds.
const CLIENT_TIMEOUT_VARIABLE: &str = "MCP_TOOL_TIMEOUT";

impl Arguments {
    /// Returns the form of answers, and how long a request waits for its run before it is answered with a handle.
    fn answer_settings(&self) -> AnswerSettings {
        let wait = self.wait.map(|seconds| Duration::from_secs(seconds.into()));
        let wait = wait.or_else(|| if self.uses_http() { None } else { client_timeout() });
        AnswerSettings { form: self.answer, wait, ..AnswerSettings::default() }
    }

    /// Whether to serve over HTTP instead of standard input and output: if `--http` or `--listen` is given, or systemd
    /// has passed sockets.
    fn uses_http(&self) -> bool {
        self.http || !self.listen.is_empty() || front::http::has_inherited_sockets()
    }
}

/// Returns how long requests may wait so that they are answered before the AI client that started this process gives
/// up. `None` if the environment variable MCP_TOOL_TIMEOUT is not set or is not a number.
fn client_timeout() -> Option<Duration> {
    let milliseconds: u64 = std::env::var(CLIENT_TIMEOUT_VARIABLE).ok()?.trim().parse().ok()?;
    let timeout = Duration::from_millis(milliseconds);
    Some(timeout.saturating_sub(BEFORE_CLIENT_TIMEOUT).max(timeout / 2))
}

/// A value of type `T`, or the error that stops `lockhouse serve`.
type ServeResult<T> = Result<T, Box<dyn std::error::Error>>;

/// The parts of a `lockhouse serve` process that are created before it serves the first AI client.
struct Instance {
    configuration: Configuration,
    supervisor: Arc<Supervisor>,
    forwarding: AuditForwarding,
    front: Front,
    /// `None` if this process is part of no cluster.
    cluster: Option<ClusterMember>,
}

/// The front, which speaks MCP with AI clients, before it serves the first one.
enum Front {
    /// Serves the AI client on standard input and output, in this process. The settings are the form of answers, and how long a
    /// request waits for its run.
    Stdio(AnswerSettings),
    /// Serves AI clients over HTTP, in a process of its own.
    Http(Arc<HttpService>),
}

/// Runs `lockhouse serve` until the AI client on standard input disconnects or a signal stops the process. SIGHUP
/// and `lockhouse reload` reload the configuration.
pub(super) async fn serve(files: &Files, arguments: Arguments) -> ExitCode {
    let spare = SpareSockets::of_this_process();
    let status = serve_clients_of(files, arguments).await;
    if status != ExitCode::SUCCESS {
        spare.refuse_connections().await;
    }
    status
}

async fn serve_clients_of(files: &Files, arguments: Arguments) -> ExitCode {
    if std::env::var_os(NESTED_VARIABLE).is_some() {
        eprintln!(
            "lockhouse: this process was started as an upstream server of another Lockhouse; remove it from that Lockhouse's servers"
        );
        return ExitCode::from(USAGE);
    }
    match SystemEngine::of_this_account() {
        Ok(Some(engine)) => return system::serve(engine, files, &arguments).await,
        Ok(None) => {}
        Err(error) => return print_config_error(&error),
    }
    let files = &Files { expose: arguments.expose, ..files.clone() };
    let configuration = match load(files) {
        Ok(loaded) => loaded,
        Err(status) => return status,
    };
    let mut _description = None;
    if configuration.settings.wants_shared_engine() && !arguments.uses_http() {
        match connect(files, &configuration, &arguments).await {
            Ok(client) => {
                // Only the engine needs it.
                drop(configuration);
                return client.serve(arguments.answer_settings()).await;
            }
            Err(reason) => {
                tracing::warn!("this process runs an engine of its own: {reason}");
                _description = SetupLock::describe_this_process(DescribedEngine::Own(reason.to_string()));
            }
        }
    }
    if !arguments.listen.is_empty() && configuration.settings.requires_key("http", "listen") {
        return print_error(&ConfigError::Determined { key: "listen of [http]" }, USAGE);
    }
    let instance = match start(configuration, arguments).await {
        Ok(instance) => instance,
        Err(status) => return status,
    };
    match serve_until_closed(files, instance).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<UnmetRequirements>() => print_error(error.as_ref(), REQUIREMENTS),
        Err(error) => print_error(error.as_ref(), UNAVAILABLE),
    }
}

/// Connects to the shared engine.
async fn connect(
    files: &Files,
    configuration: &Configuration,
    arguments: &Arguments,
) -> Result<ThinProcess, NotShared> {
    let Configuration { settings, policy, .. } = configuration;
    if arguments.own && !settings.requires_key("sharing", "engine") {
        return Err(NotShared::Own);
    }
    if arguments.own {
        tracing::warn!("--own has no effect: the administrator's requirements determine engine of [sharing]");
    }
    if let Some(server) = settings.unshared_server() {
        return Err(NotShared::Server(server.clone()));
    }
    shared::connect(files, settings, policy).await
}

/// Opens the HTTP listeners, if HTTP is used, and starts the supervisor.
async fn start(configuration: Configuration, arguments: Arguments) -> Result<Instance, ExitCode> {
    let Configuration { settings, policy, .. } = &configuration;
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
    // Before anything else is started, so that an invalid address fails at once.
    let front = match http_settings(settings, &arguments) {
        Some(http) => Front::Http(HttpService::start(settings, http, arguments.front_socket.clone()).await?),
        None => Front::Stdio(arguments.answer_settings()),
    };
    if arguments.uses_http() {
        telemetry::install();
    }
    // Before the first id is made.
    let cluster = match arguments.uses_http() {
        true => ClusterMember::join(settings).await?,
        false => None,
    };
    let languages = [Language::Python, Language::Typescript];
    let supervisor = Arc::new(start_with(settings.engine.clone(), policy.clone(), &languages)?);
    if let Some(cluster) = &cluster {
        supervisor.set_cluster(cluster.engine_part().clone());
    }
    supervisor.warn_about_first_policy();
    let forwarding = AuditForwarding::start(&configuration.settings, &supervisor)?;
    Ok(Instance { configuration, supervisor, forwarding, front, cluster })
}

/// Serves AI clients until the AI client on standard input disconnects, a signal stops the process or a part of it
/// fails. Meanwhile, reloads the configuration whenever something requires it. Finally closes the supervisor.
async fn serve_until_closed(files: &Files, instance: Instance) -> ServeResult<()> {
    let Instance { configuration, supervisor, forwarding, front, mut cluster } = instance;
    supervisor.record_start("serve", &configuration.settings.configured_files(files));
    let http = match &front {
        Front::Http(service) => Some(service.clone()),
        Front::Stdio(_) => None,
    };
    end_on_signal(supervisor.lifecycle(), http.is_some());
    tokio::spawn(systemd_notify::run(supervisor.clone()));
    tokio::spawn(release_after_start());
    let reloader = Reloader::new(&supervisor, configuration, files).with_certificate_of(http);
    let control = ControlSocket::open(&supervisor);
    let _control = control.map_err(|error| tracing::warn!("{error}"));
    let for_people = ControlSocket::open_for_people(&supervisor);
    let _for_people = for_people.map_err(|error| tracing::warn!("{error}"));
    let served = tokio::select! {
        // An AI client may disconnect because of the answer that tells it of the failure.
        biased;
        error = supervisor.wait_for_failed_protection() => Err(error.into()),
        served = serve_clients(&supervisor, front) => served,
        unmet = reloader.run() => unmet.map(|never| match never {}).map_err(Into::into),
        end = cluster_member::serve(&mut cluster, &supervisor) => Err(end.into()),
    };
    supervisor.set_end_reason(&describe_end(&supervisor, &served));
    supervisor.lifecycle().close();
    supervisor.close().await;
    if let Some(cluster) = cluster {
        cluster.leave(&supervisor).await;
    }
    forwarding.close().await;
    served
}

/// Returns why the process ends, for the audit log.
fn describe_end(supervisor: &Supervisor, served: &ServeResult<()>) -> String {
    match served {
        Err(error) => error.to_string(),
        Ok(()) if supervisor.lifecycle().draining().is_cancelled() => "a signal".to_owned(),
        Ok(()) => "its AI client has disconnected".to_owned(),
    }
}

/// Serves AI clients through the front, until they have disconnected or the engine ends.
async fn serve_clients(supervisor: &Arc<Supervisor>, front: Front) -> ServeResult<()> {
    let answers = match front {
        Front::Http(service) => return service.serve(supervisor).await,
        Front::Stdio(answers) => answers,
    };
    // Cancelled when the front stops: because its AI client has disconnected, or because the engine ends.
    let closing = CancellationToken::new();
    let engine = lockhouse_engine::connect(supervisor, closing.clone());
    engine.lifecycle().announce_listening();
    Ok(front::serve_stdio(engine, answers, closing).await?)
}

/// Returns the settings of the HTTP server, if HTTP is used. It listens at the addresses that `--listen` names, or else at
/// those of the configuration.
fn http_settings(settings: &Settings, arguments: &Arguments) -> Option<HttpSettings> {
    if !arguments.uses_http() {
        return None;
    }
    let mut http = settings.http.clone();
    if !arguments.listen.is_empty() {
        http.listen.clone_from(&arguments.listen);
    }
    let AnswerSettings { form, wait, .. } = arguments.answer_settings();
    (http.answers.form, http.answers.wait) = (form, wait);
    Some(http)
}
