//! `lockhouse engine`: the engine that AI clients over standard input and output share. `lockhouse serve` starts it when it
//! is needed, or systemd does. It ends when it had no clients for some time. With `--person`, it is the engine of the system
//! for that person.

mod endpoint;
mod person_sockets;

use std::convert::Infallible;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::Listener;
use lockhouse_config::{Configuration, ExposeMode, Files, Settings, Setup, SetupParts};
use lockhouse_engine::control_socket::ControlSocket;
use lockhouse_engine::front_socket::{AcceptedFronts, FrontSocket};
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_engine::systemd_notify;
use lockhouse_front::http::inherited_unix_listeners;
use lockhouse_policies::Policy;
use lockhouse_pool::PoolError;
use lockhouse_protocol::Language;
use nix::unistd::Uid;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::audit_forwarding::AuditForwarding;
use super::engine_description::{DescribedEngine, EngineDescription};
use super::engine_lock::{SetupLock, remove_stale};
use super::engine_log::{self, LogFile};
use super::engine_socket::{self, READY, TAKEN};
use super::reloader::{Reloader, UnmetRequirements};
use super::startup_code::release_after_start;
use super::stop_signals::end_on_signal;
use super::{REQUIREMENTS, UNAVAILABLE, USAGE, load, print_error, start_with};
use endpoint::Endpoint;
use person_sockets::PersonSockets;

/// Maximum time until the last answers are written when the engine ends.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(3);

/// Options of `lockhouse engine`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The setup that the client expects; without it, the socket is one that systemd passes
    #[arg(long, value_name = "DIGEST")]
    setup: Option<String>,
    /// Continue as a process of its own session, whose parent is not the client
    #[arg(long, requires = "setup")]
    detach: bool,
    /// Serve this person, in the account of this process, as requirements with `engine = "system"` say
    #[arg(long, value_name = "UID", conflicts_with = "setup")]
    person: Option<u32>,
    /// The directory in which the sockets for the person are made; without it, systemd passes them
    #[arg(long, value_name = "DIR", requires = "person")]
    sockets: Option<PathBuf>,
    /// Expose all servers in this way, except those whose table says how
    #[arg(long, value_enum, default_value_t)]
    expose: ExposeMode,
}

impl Arguments {
    pub(super) fn detaches(&self) -> bool {
        self.detach
    }
}

/// Where clients find an engine.
enum OpenSockets {
    /// A socket file of this process. `None` after a reload to a setup that another engine serves.
    Own(Option<Endpoint>),
    /// Sockets that systemd holds, and the description of this process.
    Activated(Vec<JoinHandle<Infallible>>, Option<SetupLock>),
    /// Sockets of a person, whose engine this is.
    Person(PersonSockets),
}

/// An engine that clients share.
struct SharedEngine {
    clients: Arc<FrontSocket>,
    sockets: Mutex<OpenSockets>,
    program: PathBuf,
}

/// Why an engine ends before its clients.
#[derive(Debug, thiserror::Error)]
enum EngineFailure {
    #[error(transparent)]
    Protection(Arc<PoolError>),
    #[error(transparent)]
    Requirements(UnmetRequirements),
}

/// Runs `lockhouse engine` until it had no clients for some time, or a signal stops the process.
pub(super) async fn engine(files: &Files, arguments: Arguments) -> ExitCode {
    let files = &Files { expose: arguments.expose, person: arguments.person, ..files.clone() };
    // systemd has a log of its own.
    let log = LogFile::new().filter(|_| arguments.setup.is_some());
    if let Some(Err(error)) = log.as_ref().map(LogFile::redirect_stderr) {
        return report_failure(&format!("its log file cannot be opened: {error}"));
    }
    let lock = match &arguments.setup {
        Some(setup) => match lock(setup) {
            Ok(Some(lock)) => Some(lock),
            Ok(None) => return report(TAKEN, ExitCode::SUCCESS),
            Err(error) => return report_failure(&format!("its socket cannot be opened: {error}")),
        },
        None => None,
    };
    let configuration = match load(files) {
        Ok(loaded) => loaded,
        Err(_) => return report_failure("its configuration or policy is not valid"),
    };
    let program = std::env::current_exe().unwrap_or_default();
    let Configuration { settings, policy, .. } = &configuration;
    let setup = match settings.setup(files, policy, &program) {
        Ok(setup) => setup,
        Err(error) => return report_failure(&error.to_string()),
    };
    if arguments.setup.as_ref().is_some_and(|expected| *expected != setup.digest) {
        return report_failure("its configuration, policy or environment changed meanwhile");
    }
    let languages = [Language::Python, Language::Typescript];
    let supervisor = match start_with(settings.engine.clone(), policy.clone(), &languages) {
        Ok(supervisor) => Arc::new(supervisor),
        Err(_) => return report_failure("its parts cannot be started"),
    };
    let Ok(forwarding) = AuditForwarding::start(settings, &supervisor) else {
        return report_failure("its audit log cannot be forwarded");
    };
    let shared = match SharedEngine::open(&supervisor, &arguments, lock, setup, program) {
        Ok(shared) => shared,
        Err(error) => return report_failure(&format!("its socket cannot be opened: {error}")),
    };
    report(READY, ExitCode::SUCCESS);
    let _ = engine_log::release_stdout();
    let status = serve(files, configuration, &supervisor, &shared, log.as_ref()).await;
    forwarding.close().await;
    status
}

fn lock(setup: &str) -> std::io::Result<Option<SetupLock>> {
    let directory = engine_socket::directory().ok_or(std::io::ErrorKind::NotFound)?;
    let lock = SetupLock::acquire(&directory, setup)?;
    if lock.is_some() {
        remove_stale(&directory);
    }
    Ok(lock)
}

fn open_sockets(
    lock: Option<SetupLock>,
    clients: &Arc<FrontSocket>,
    parts: SetupParts,
) -> std::io::Result<OpenSockets> {
    let engine = DescribedEngine::Shared(parts);
    if let Some(lock) = lock {
        explain_other_engines(lock.directory(), &engine);
        lock.describe(engine)?;
        return Ok(OpenSockets::Own(Some(Endpoint::open(lock, clients.clone())?)));
    }
    let listeners = inherited_unix_listeners().map_err(std::io::Error::other)?;
    let listeners = listeners.into_iter().map(local_listener).collect::<std::io::Result<Vec<_>>>()?;
    if listeners.is_empty() {
        return Err(std::io::Error::other(
            "systemd passes no socket; `lockhouse serve` starts the engine when it is needed",
        ));
    }
    let accept = |listener: Listener| {
        let clients = clients.clone();
        tokio::spawn(async move { clients.accept(&listener).await })
    };
    let accepting = listeners.into_iter().map(accept).collect();
    Ok(OpenSockets::Activated(accepting, SetupLock::describe_this_process(engine)))
}

fn local_listener(listener: tokio::net::UnixListener) -> std::io::Result<Listener> {
    let listener = OwnedFd::from(listener.into_std()?);
    Ok(interprocess::os::unix::uds_local_socket::tokio::Listener::try_from(listener)?.into())
}

/// Logs in what the setup of each other engine differs from that of this one.
fn explain_other_engines(directory: &Path, engine: &DescribedEngine) {
    for other in EngineDescription::read_all(directory) {
        if let Some(reason) = engine.difference(&other) {
            tracing::info!("another engine than that of process {}: {reason}", other.pid);
        }
    }
}

async fn serve(
    files: &Files,
    configuration: Configuration,
    supervisor: &Arc<Supervisor>,
    shared: &SharedEngine,
    log: Option<&LogFile>,
) -> ExitCode {
    supervisor.record_start("engine", &configuration.settings.configured_files(files));
    supervisor.warn_about_first_policy();
    let idle_time = configuration.settings.engine_idle_time();
    for warning in configuration.settings.warnings() {
        tracing::warn!("{warning}");
    }
    let lifecycle = supervisor.lifecycle();
    end_on_signal(lifecycle, true);
    tokio::spawn(systemd_notify::run(supervisor.clone()));
    tokio::spawn(release_after_start());
    let control = ControlSocket::open(supervisor);
    let _control = control.map_err(|error| tracing::warn!("{error}"));
    let observer = |settings: &Settings, policy: &Policy, is_complete: bool| {
        shared.move_to(shared.setup(files, settings, policy, is_complete));
    };
    let reloader = Reloader::new(supervisor, configuration, files).with_observer(&observer);
    lifecycle.set_listening();
    let failure = tokio::select! {
        () = supervisor.connected_clients().wait_unused(idle_time) => None,
        () = lifecycle.draining().cancelled() => None,
        error = supervisor.wait_for_failed_protection() => Some(EngineFailure::Protection(error)),
        unmet = reloader.run() => unmet.err().map(EngineFailure::Requirements),
        never = rotate(log) => match never {},
    };
    // First of all, so that clients find or start another engine from now on.
    shared.close();
    if failure.is_none() && lifecycle.draining().is_cancelled() {
        lifecycle.closing().cancelled().await;
    }
    supervisor.set_end_reason(&match &failure {
        Some(error) => error.to_string(),
        None if lifecycle.draining().is_cancelled() => "a signal".to_owned(),
        None => "it had no clients".to_owned(),
    });
    lifecycle.close();
    let answered = supervisor.connected_clients().wait_unused(Duration::ZERO);
    let _ = timeout(LAST_ANSWERS_TIMEOUT, answered).await;
    supervisor.close().await;
    match failure {
        Some(error @ EngineFailure::Requirements(_)) => print_error(&error, REQUIREMENTS),
        Some(error) => print_error(&error, UNAVAILABLE),
        None => ExitCode::SUCCESS,
    }
}

async fn rotate(log: Option<&LogFile>) -> Infallible {
    match log {
        Some(log) => log.rotate().await,
        None => std::future::pending().await,
    }
}

impl SharedEngine {
    /// Opens the sockets of a person, or those of clients with a setup.
    fn open(
        supervisor: &Arc<Supervisor>,
        arguments: &Arguments,
        lock: Option<SetupLock>,
        setup: Setup,
        program: PathBuf,
    ) -> std::io::Result<Self> {
        let Some(person) = arguments.person.map(Uid::from_raw) else {
            let clients = FrontSocket::new(supervisor, AcceptedFronts::OfSetup(setup.digest));
            let sockets = Mutex::new(open_sockets(lock, &clients, setup.parts)?);
            return Ok(Self { clients, sockets, program });
        };
        let clients = FrontSocket::new(supervisor, AcceptedFronts::OfPerson(person));
        let sockets = PersonSockets::open(supervisor, &clients, person, arguments.sockets.as_deref())?;
        Ok(Self { clients, sockets: Mutex::new(OpenSockets::Person(sockets)), program })
    }

    /// Returns the setup of a configuration that is about to be loaded. `None` if it cannot be determined, or if
    /// `is_complete` is false: the process then has a part of the previous configuration too.
    fn setup(&self, files: &Files, settings: &Settings, policy: &Policy, is_complete: bool) -> Option<Setup> {
        let setup = settings.setup(files, policy, &self.program);
        let setup =
            setup.inspect_err(|error| tracing::warn!("the setup of this engine is not known: {error}")).ok();
        setup.filter(|_| is_complete && settings.shares_engine())
    }

    /// Moves to another setup, after a reload. New clients with that setup find this engine, unless another engine serves
    /// it. `None` stands for a setup that no client can have: then no further client is accepted.
    fn move_to(&self, setup: Option<Setup>) {
        let (setup, parts) = setup.map(|setup| (setup.digest, setup.parts)).unzip();
        let engine = parts.map(DescribedEngine::Shared);
        let mut sockets = self.sockets.lock();
        match &mut *sockets {
            OpenSockets::Own(endpoint) => {
                let Some(current) = endpoint.as_ref() else { return };
                if setup.as_deref() == Some(current.setup()) {
                    return;
                }
                let directory = current.directory().to_owned();
                let open = |setup: &String| -> std::io::Result<Option<Endpoint>> {
                    let Some(lock) = SetupLock::acquire(&directory, setup)? else { return Ok(None) };
                    engine.map_or(Ok(()), |engine| lock.describe(engine))?;
                    Endpoint::open(lock, self.clients.clone()).map(Some)
                };
                self.clients.set_accepted(accepted(setup.as_ref()));
                let next = setup.as_ref().map(open).transpose();
                let next = next.inspect_err(|error| tracing::warn!("the socket cannot be moved: {error}"));
                *endpoint = next.ok().flatten().flatten();
                if endpoint.is_none() {
                    tracing::info!("no further client shares this engine, whose configuration has changed");
                }
            }
            OpenSockets::Activated(_, description) => {
                self.clients.set_accepted(accepted(setup.as_ref()));
                // The file of the former description is removed first.
                drop(description.take());
                *description = engine.and_then(SetupLock::describe_this_process);
            }
            // A person has no other engine.
            OpenSockets::Person(_) => {}
        }
    }

    /// Accepts no further client. Connected clients stay connected.
    fn close(&self) {
        self.clients.set_accepted(AcceptedFronts::None);
        match &mut *self.sockets.lock() {
            OpenSockets::Own(endpoint) => drop(endpoint.take()),
            OpenSockets::Activated(accepting, _) => accepting.iter().for_each(JoinHandle::abort),
            OpenSockets::Person(sockets) => sockets.close_to_fronts(),
        }
    }
}

/// Returns which fronts an engine accepts whose setup has this digest.
fn accepted(setup: Option<&String>) -> AcceptedFronts {
    setup.cloned().map_or(AcceptedFronts::None, AcceptedFronts::OfSetup)
}

/// Tells the process that started this one what has become of it. That process may have ended meanwhile.
fn report(line: &str, status: ExitCode) -> ExitCode {
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    status
}

fn report_failure(reason: &str) -> ExitCode {
    eprintln!("lockhouse: the shared engine does not start: {reason}");
    report(reason, ExitCode::from(USAGE))
}
