//! `lockhouse serve`

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use lockhouse_audit::ReloadCause;
use lockhouse_base::language::Language;
use lockhouse_base::lifecycle::Life;
use lockhouse_base::telemetry;
use lockhouse_engine::control::ControlSocket;
use lockhouse_engine::notify;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front as front;
use lockhouse_front::http::{
    Address, Certificate, HttpSettings, NotOpened, OpenDoor, Service, serve_figures,
};
use lockhouse_upstream::NESTED;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{UNAVAILABLE, USAGE, complain, load, read, start_with};
use crate::config::{Files, Settings};

/// How AI clients come in.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Serve over HTTP where the configuration says, or at the sockets that systemd passes
    #[arg(long)]
    http: bool,
    /// Serve over HTTP at IP:PORT or unix:/PATH, and not where the configuration says; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
}

impl Arguments {
    /// Whether clients come to us, or one has started us and is at standard input.
    fn over_http(&self) -> bool {
        self.http || !self.listen.is_empty() || front::http::are_inherited()
    }
}

/// `T`, or why clients can be served no longer.
type ServeResult<T> = Result<T, Box<dyn std::error::Error>>;

/// What runs before the first client is served.
struct Instance {
    settings: Settings,
    supervisor: Arc<Supervisor>,
    /// Without one, the client is at standard input and output.
    door: Option<OpenDoor>,
}

/// Serves until the client closes its end, or a signal asks to stop. SIGHUP loads the configuration again.
pub(super) async fn serve(files: &Files, arguments: Arguments) -> ExitCode {
    if std::env::var_os(NESTED).is_some() {
        eprintln!(
            "lockhouse: this is an upstream server of another Lockhouse; take it out of that one's servers file"
        );
        return ExitCode::from(USAGE);
    }
    let instance = match start(files, arguments).await {
        Ok(instance) => instance,
        Err(status) => return status,
    };
    match serve_until_closed(files, instance).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(error.as_ref(), UNAVAILABLE),
    }
}

/// Opens the sockets and starts the supervisor.
async fn start(files: &Files, arguments: Arguments) -> Result<Instance, ExitCode> {
    let (settings, policy) = load(files)?;
    for secret in settings.readable_secrets() {
        tracing::warn!("{secret}");
    }
    let door = match arguments.over_http() {
        true => Some(open(settings.http.clone(), arguments.listen).await?),
        false => None,
    };
    if door.is_some() {
        telemetry::install();
    }
    let languages = [Language::Python, Language::Typescript];
    let supervisor = Arc::new(start_with(settings.engine.clone(), policy, &languages)?);
    supervisor.warn_about_first_policy();
    Ok(Instance { settings, supervisor, door })
}

/// Serves clients and reloads the configuration, then ends what still runs.
async fn serve_until_closed(files: &Files, instance: Instance) -> ServeResult<()> {
    let Instance { settings, supervisor, door } = instance;
    let is_http = door.is_some();
    let certificate = door.as_ref().map(OpenDoor::certificate);
    let closing = supervisor.life().closing().clone();
    end_on_signal(supervisor.life(), is_http);
    tokio::spawn(notify::keep(supervisor.clone()));
    let control = ControlSocket::open(&supervisor);
    let _control = control.map_err(|error| tracing::warn!("{error}"));
    let service = Service {
        engine: lockhouse_engine::connect(&supervisor, closing.clone()),
        life: supervisor.life().clone(),
    };
    let served = tokio::select! {
        served = serve_clients(&service, door, &closing) => served,
        error = supervisor.unprotected() => Err(error.into()),
        served = figures(&service, &settings.metrics, is_http) => served.map(|never| match never {}),
        never = reload_on_signal(&supervisor, &settings, files, certificate.as_ref()) => match never {},
        never = reload_on_answer(&supervisor, &settings, files) => match never {},
    };
    supervisor.life().close();
    supervisor.close().await;
    served
}

/// Serves those who connect to the sockets, or the one client at standard input and output.
async fn serve_clients(
    service: &Service,
    door: Option<OpenDoor>,
    closing: &CancellationToken,
) -> ServeResult<()> {
    match door {
        Some(door) => door.serve(service.clone(), closing.clone()).await,
        None => {
            service.life.listens();
            front::serve_stdio(service.engine.clone(), closing.clone()).await?;
        }
    }
    Ok(())
}

/// The sockets, before anything else is started: what is refused is refused at once.
async fn open(settings: HttpSettings, listen: Vec<Address>) -> Result<OpenDoor, ExitCode> {
    let listen = if listen.is_empty() { settings.listen } else { listen };
    let opened = OpenDoor::open(HttpSettings { listen, ..settings }).await;
    opened.map_err(|error| match error {
        NotOpened::Unavailable(_) => complain(&error, UNAVAILABLE),
        _ => complain(&error, USAGE),
    })
}

/// SIGHUP: what is written now takes effect, or what was in force stays and the reason is told.
async fn reload_on_signal(
    supervisor: &Supervisor,
    first: &Settings,
    files: &Files,
    certificate: Option<&Certificate>,
) -> Infallible {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::warn!("SIGHUP cannot be handled: {error}");
            return std::future::pending().await;
        }
    };
    loop {
        if hangup.recv().await.is_none() {
            return std::future::pending().await;
        }
        if let Some(certificate) = certificate {
            certificate.reload();
        }
        reload(supervisor, first, files, ReloadCause::Signal);
    }
}

/// An answer to a question changed the policy file: whoever gave it waits until it is in force.
async fn reload_on_answer(supervisor: &Supervisor, first: &Settings, files: &Files) -> Infallible {
    while let Some(waits) = supervisor.approvers().policy_changed().await {
        reload(supervisor, first, files, ReloadCause::Approval);
        let _ = waits.send(());
    }
    std::future::pending().await
}

/// What was configured at the start, `first`, counts for everything but servers and policy.
fn reload(supervisor: &Supervisor, first: &Settings, files: &Files, cause: ReloadCause) {
    notify::reloading();
    let read = read(files);
    telemetry::reloaded(read.is_ok());
    match read {
        Ok((settings, policy)) => {
            let changed = first.that_need_a_restart(&settings);
            if !changed.is_empty() {
                let changed = changed.join(", ");
                tracing::warn!("what has changed in {changed} takes effect when Lockhouse is started again");
            }
            supervisor.reload(cause, settings.engine, policy);
        }
        Err(error) => {
            tracing::error!("the configuration was not loaded again, and what was in force stays:\n{error}");
            supervisor.reload_refused(cause, &error.without_excerpts());
        }
    }
    notify::reloaded();
}

/// Figures for whoever reaches the addresses that are configured for them.
async fn figures(service: &Service, addresses: &[Address], is_http: bool) -> ServeResult<Infallible> {
    if is_http { Ok(serve_figures(service, addresses).await?) } else { std::future::pending().await }
}

/// SIGTERM and SIGINT: runs that are under way are let come to their end where there is more than one client. The second
/// one ends them.
fn end_on_signal(life: &Life, drains: bool) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let life = life.clone();
        match signal(kind) {
            Ok(mut signal) => drop(tokio::spawn(async move {
                signal.recv().await;
                if drains && !life.draining().is_cancelled() {
                    tokio::select! {
                        () = life.drain() => {}
                        _ = signal.recv() => tracing::warn!("told to end for the second time: runs are stopped"),
                    }
                }
                life.close();
            })),
            Err(error) => tracing::warn!("a signal cannot be handled: {error}"),
        }
    }
}
