//! The HTTP service of `lockhouse serve --http`. This process has the engine. It opens the listening sockets, and starts two
//! sealed processes: the *front* accepts the connections of AI clients and speaks TLS, HTTP and MCP, and the *signer* has the
//! private key of TLS. When one of them ends, another one takes its place.

mod current_signer;
mod front_child;
mod front_process;
mod front_series;
mod process_log;
mod process_name;
mod service_process;
mod signer_process;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::Authenticator;
use lockhouse_config::Settings;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::{HttpSettings, HttpSockets, HttpStartError};
use tokio::task::JoinSet;

use super::ServeResult;
use crate::cli::{UNAVAILABLE, USAGE, print_error};
use current_signer::{CurrentSigner, FrontChannel};
use front_child::FrontStarter;
use front_series::FrontSeries;
use service_process::ServiceAccounts;
use signer_process::SignerError;

/// Pauses before a process that has failed several times in succession is started again: the first, and the longest.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The HTTP service, whose processes are started.
pub(in crate::cli) struct HttpService {
    /// One, or one for each address.
    fronts: Vec<Arc<FrontSeries>>,
    authenticator: Arc<Authenticator>,
    signer: Arc<CurrentSigner>,
}

impl HttpService {
    /// Opens the listening sockets and starts the processes, and waits until AI clients can be served. With `front_socket`, the
    /// service that listens there starts the fronts.
    ///
    /// # Errors
    /// The exit status. This process has printed why it does not start.
    pub(super) async fn start(
        settings: &Settings,
        http: HttpSettings,
        front_socket: Option<PathBuf>,
    ) -> Result<Arc<Self>, ExitCode> {
        let authenticator = Authenticator::new(settings.access.clone());
        let authenticator = authenticator.map_err(|error| print_error(&error, USAGE))?;
        let sockets = HttpSockets::open(&http, &settings.metrics).await;
        let sockets = sockets.map_err(|error| report_start_error(&error))?;
        let accounts = ServiceAccounts::beside(settings.user_of_workers());
        let starter = match front_socket {
            Some(socket) => FrontStarter::Service { socket },
            None => FrontStarter::ThisProcess { account: accounts.front },
        };
        let signer = CurrentSigner::start(http.tls.clone(), accounts.signer).await;
        let signer = Arc::new(signer.map_err(|error| match error {
            SignerError::Unusable(_) => print_error(&error, USAGE),
            SignerError::Process(_) => print_error(&error, UNAVAILABLE),
        })?);
        let sockets = if http.front_per_address { sockets.of_each_address() } else { vec![sockets] };
        let mut fronts = Vec::new();
        for sockets in sockets {
            let series = FrontSeries::start(http.clone(), sockets, starter.clone(), signer.clone()).await;
            fronts.push(Arc::new(series.map_err(|error| print_error(&error, UNAVAILABLE))?));
        }
        Ok(Arc::new(Self { fronts, authenticator, signer }))
    }

    /// Serves AI clients until the engine closes.
    ///
    /// # Errors
    /// A last front failed while the engine closed.
    pub(super) async fn serve(&self, supervisor: &Arc<Supervisor>) -> ServeResult<()> {
        supervisor.set_authenticator(self.authenticator.clone());
        supervisor.lifecycle().set_accepts_connections();
        let mut serving: JoinSet<_> = self
            .fronts
            .iter()
            .map(|series| {
                let (series, supervisor) = (series.clone(), supervisor.clone());
                async move { series.serve(&supervisor).await }
            })
            .collect();
        let served = async {
            let mut result = Ok(());
            while let Some(ended) = serving.join_next().await {
                result = result.and(ended?);
            }
            Ok(result?)
        };
        let channels = self.channels();
        tokio::select! {
            served = served => served,
            never = self.signer.replace_lost(supervisor, &channels) => match never {},
        }
    }

    fn channels(&self) -> Vec<FrontChannel> {
        self.fronts.iter().map(|series| series.channel()).collect()
    }

    /// Reads the certificate and key files again, for new connections. If they are invalid, the current certificate stays in use
    /// and an error is logged.
    pub(in crate::cli) async fn reload_certificate(&self) {
        match self.signer.replace(&self.channels()).await {
            Ok(false) => {}
            Ok(true) => tracing::info!("the certificate was reloaded"),
            Err(reason) => {
                tracing::error!(
                    "the certificate was not reloaded, and the current one stays in use: {reason}"
                );
            }
        }
    }
}

/// Prints why the HTTP service cannot start, and returns the exit status.
fn report_start_error(error: &HttpStartError) -> ExitCode {
    match error {
        HttpStartError::Unavailable(_) | HttpStartError::Metrics(_) => print_error(error, UNAVAILABLE),
        HttpStartError::Inherited(_) | HttpStartError::Exposure(_) => print_error(error, USAGE),
    }
}
