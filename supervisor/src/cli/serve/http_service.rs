//! The HTTP service of `lockhouse serve --http`. This process has the engine. It opens the listening sockets, and starts two
//! sealed processes: the *front* accepts the connections of AI clients and speaks TLS, HTTP and MCP, and the *signer* has the
//! private key of TLS. When one of them ends, another one takes its place.

mod front_process;
mod process_log;
mod process_name;
mod service_process;
mod signer_process;

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::Authenticator;
use lockhouse_config::Settings;
use lockhouse_engine::FrontBudget;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::{FrontUpdate, HttpSettings, HttpSockets, HttpStartError};
use lockhouse_link::SetupSender;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::ServeResult;
use crate::cli::{UNAVAILABLE, USAGE, print_error};
use front_process::FrontProcess;
use service_process::{ProcessError, ServiceAccounts};
use signer_process::{SignerError, SignerProcess};

/// Pauses before a process that has failed several times in succession is started again: the first, and the longest.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a front that was replaced may serve the requests that it has. A request waits for its run for 4 minutes at most.
/// Bound: engines and fronts.
const RETIREMENT_MAX: Duration = Duration::from_secs(10 * 60);

/// The HTTP service, whose processes are started.
pub(in crate::cli) struct HttpService {
    settings: HttpSettings,
    sockets: HttpSockets,
    accounts: ServiceAccounts,
    authenticator: Arc<Authenticator>,
    /// The first front, until it is served.
    first: Mutex<Option<FrontProcess>>,
    /// Where the current front gets its certificates.
    channel: Mutex<Option<Arc<SetupSender>>>,
    /// The current signer. `None` without TLS.
    signer: Mutex<Option<SignerProcess>>,
}

impl HttpService {
    /// Opens the listening sockets and starts the processes, and waits until AI clients can be served.
    ///
    /// # Errors
    /// The exit status. This process has printed why it does not start.
    pub(super) async fn start(settings: &Settings, http: HttpSettings) -> Result<Arc<Self>, ExitCode> {
        let authenticator = Authenticator::new(settings.access.clone());
        let authenticator = authenticator.map_err(|error| print_error(&error, USAGE))?;
        let sockets = HttpSockets::open(&http, &settings.metrics).await;
        let sockets = sockets.map_err(|error| report_start_error(&error))?;
        let accounts = ServiceAccounts::beside(settings.user_of_workers());
        let signer = match &http.tls {
            Some(tls) => {
                let started = SignerProcess::start(tls, accounts.signer).await;
                Some(started.map_err(|error| match error {
                    SignerError::Unusable(_) => print_error(&error, USAGE),
                    SignerError::Process(_) => print_error(&error, UNAVAILABLE),
                })?)
            }
            None => None,
        };
        let service = Self {
            settings: http,
            sockets,
            accounts,
            authenticator,
            first: Mutex::default(),
            channel: Mutex::default(),
            signer: Mutex::new(signer),
        };
        let first = service.start_front().await.map_err(|error| print_error(&error, UNAVAILABLE))?;
        *service.first.lock().await = Some(first);
        Ok(Arc::new(service))
    }

    /// Serves AI clients until the engine closes.
    ///
    /// # Errors
    /// The last front failed while the engine closed.
    pub(super) async fn serve(&self, supervisor: &Arc<Supervisor>) -> ServeResult<()> {
        supervisor.set_authenticator(self.authenticator.clone());
        self.report_signer(supervisor).await;
        tokio::select! {
            served = self.serve_fronts(supervisor) => served,
            never = self.replace_signers(supervisor) => match never {},
        }
    }

    /// Serves one front after the other. A front is replaced when it is lost, and when it has served for long enough: an attacker
    /// may hold it.
    async fn serve_fronts(&self, supervisor: &Arc<Supervisor>) -> ServeResult<()> {
        let mut next = self.first.lock().await.take();
        let mut retired = JoinSet::new();
        loop {
            let front = match next.take() {
                Some(front) => front,
                None => tokio::select! {
                    front = self.start_next_front() => front,
                    () = supervisor.lifecycle().closing().cancelled() => return Ok(()),
                },
            };
            let channel = front.channel();
            supervisor.set_http_process(front.describe());
            self.make_current(&front).await;
            let budget = FrontBudget::new(self.settings.limits.front_requests);
            let mut serving = Box::pin(front.serve(supervisor.clone(), budget.clone()));
            let ended = tokio::select! {
                ended = &mut serving => ended,
                replacement = self.replacement(&budget) => {
                    next = Some(replacement);
                    retired.spawn(retire(channel, serving));
                    while retired.try_join_next().is_some() {}
                    continue;
                }
            };
            *self.channel.lock().await = None;
            if supervisor.lifecycle().closing().is_cancelled() {
                while retired.join_next().await.is_some() {}
                return Ok(ended?);
            }
            let reason = ended.err().map_or_else(|| "it ended".to_owned(), |error| error.to_string());
            tracing::error!(
                "the front was lost, with the connections of its AI clients; another one starts: {reason}"
            );
        }
    }

    /// Waits until a front has served for `front_seconds`, or `front_requests` requests, and starts another one.
    async fn replacement(&self, budget: &FrontBudget) -> FrontProcess {
        tokio::select! {
            () = sleep(self.settings.limits.front_lifetime) => {}
            () = budget.spent() => {}
        }
        self.start_next_front().await
    }

    /// Starts a front in place of the current one or of one that was lost. Tries until it succeeds.
    async fn start_next_front(&self) -> FrontProcess {
        let mut pause = RESTART_PAUSE;
        loop {
            match self.start_front().await {
                Ok(front) => return front,
                Err(error) => tracing::error!("no front can be started: {error}; trying again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RESTART_PAUSE_MAX);
        }
    }

    async fn start_front(&self) -> Result<FrontProcess, ProcessError> {
        let mut front = FrontProcess::start(&self.settings, &self.sockets, self.accounts.front).await?;
        if let Some(signer) = &*self.signer.lock().await {
            send_certificate(&front.channel(), signer).await?;
            front.signer = Some(signer.pid());
        }
        front.verified().await
    }

    /// Sends each further certificate to this front, and the current one if it has changed since the front started.
    async fn make_current(&self, front: &FrontProcess) {
        let signer = self.signer.lock().await;
        *self.channel.lock().await = Some(front.channel());
        if let Some(signer) = &*signer
            && front.signer != Some(signer.pid())
            && let Err(error) = send_certificate(&front.channel(), signer).await
        {
            tracing::error!("the front has not got the current certificate: {error}");
        }
    }

    /// Reads the certificate and key files again, for new connections. If they are invalid, the current certificate stays in use
    /// and an error is logged.
    pub(in crate::cli) async fn reload_certificate(&self) {
        match self.replace_signer().await {
            Ok(false) => {}
            Ok(true) => tracing::info!("the certificate was reloaded"),
            Err(reason) => {
                tracing::error!(
                    "the certificate was not reloaded, and the current one stays in use: {reason}"
                );
            }
        }
    }

    /// Starts a signer with the files as they are now, for new connections. The current one ends when no handshake needs it any
    /// more. Returns false without TLS.
    async fn replace_signer(&self) -> Result<bool, SignerError> {
        let Some(tls) = &self.settings.tls else { return Ok(false) };
        let started = SignerProcess::start(tls, self.accounts.signer).await?;
        let mut signer = self.signer.lock().await;
        // A front that is being started gets it when it is the current one.
        if let Some(channel) = self.channel.lock().await.clone() {
            send_certificate(&channel, &started).await.map_err(ProcessError::from)?;
        }
        *signer = Some(started);
        Ok(true)
    }

    async fn report_signer(&self, supervisor: &Supervisor) {
        if let Some(signer) = &*self.signer.lock().await {
            supervisor.set_http_process(signer.describe());
        }
    }

    /// Starts another signer whenever the current one has ended.
    async fn replace_signers(&self, supervisor: &Supervisor) -> Infallible {
        let mut pause = RESTART_PAUSE;
        loop {
            let ended = self.signer.lock().await.as_ref().map(SignerProcess::ended);
            match ended {
                Some(ended) => ended.await,
                None => return std::future::pending().await,
            }
            let is_current = self.signer.lock().await.as_ref().is_some_and(SignerProcess::has_ended);
            if !is_current {
                pause = RESTART_PAUSE;
                self.report_signer(supervisor).await;
                continue;
            }
            tracing::error!("the signer of TLS was lost; another one starts");
            if let Err(error) = self.replace_signer().await {
                tracing::error!("no signer of TLS can be started: {error}; trying again");
                sleep(pause).await;
                pause = (pause * 2).min(RESTART_PAUSE_MAX);
            }
        }
    }
}

/// Sends a front the certificate of a signer, with a connection to that.
async fn send_certificate(channel: &SetupSender, signer: &SignerProcess) -> std::io::Result<()> {
    let certificate = FrontUpdate::Certificate(signer.certificate().clone());
    channel.send(&certificate, &[signer.connect()?.as_fd()]).await
}

/// Lets a front serve the requests that it has, and then end.
async fn retire(channel: Arc<SetupSender>, serving: impl Future<Output = Result<(), ProcessError>>) {
    let retiring = async {
        match channel.send(&FrontUpdate::Retire, &[]).await {
            Ok(()) => sleep(RETIREMENT_MAX).await,
            Err(error) => tracing::warn!("a front that was replaced does not answer: {error}"),
        }
    };
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            tracing::warn!("a front that was replaced: {error}");
        },
        // It is killed.
        () = retiring => {}
    }
}

/// Prints why the HTTP service cannot start, and returns the exit status.
fn report_start_error(error: &HttpStartError) -> ExitCode {
    match error {
        HttpStartError::Unavailable(_) | HttpStartError::Metrics(_) => print_error(error, UNAVAILABLE),
        HttpStartError::Inherited(_) | HttpStartError::Exposure(_) => print_error(error, USAGE),
    }
}
