//! `lockhouse serve` as a thin process: it holds the MCP session of one AI client, and the engine is in another process,
//! which clients share. The thin process survives that process and connects to the next one.

mod engine_process;

use std::process::ExitCode;

use lockhouse_base::lifecycle::Lifecycle;
use lockhouse_config::{Files, Settings};
use lockhouse_front::{self as front, AnswerSettings};
use lockhouse_link::{EngineClient, RemoteEngineError, RemoteEngineSettings};
use lockhouse_policies::Policy;
use lockhouse_protocol::ServerName;
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::client_sandbox;
use crate::cli::engine_log::LogFile;
use crate::cli::startup_code::release_after_start;
use crate::cli::stop_signals::end_on_signal;
use crate::cli::{UNAVAILABLE, print_error};
use engine_process::{EngineProcess, EngineProcessError};

/// An AI client's side of a shared engine.
pub(super) struct ThinProcess {
    engine: EngineClient,
    lifecycle: Lifecycle,
}

/// Why this process does not use a shared engine. An engine in this process can do the same work.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotShared {
    #[error("--own was given")]
    Own,
    #[error("the server {0} has share = false")]
    Server(ServerName),
    #[error("this process may run in a sandbox ({0}), which a shared engine is not in")]
    Confined(String),
    #[error(transparent)]
    Subreaper(#[from] Errno),
    #[error(transparent)]
    Process(#[from] EngineProcessError),
    #[error(transparent)]
    Engine(#[from] RemoteEngineError),
}

/// Connects to the engine that clients with this configuration share. Starts it if it does not run.
pub(super) async fn connect(
    files: &Files,
    settings: &Settings,
    policy: &Policy,
) -> Result<ThinProcess, NotShared> {
    if let Some(reason) = client_sandbox::find().await {
        return Err(NotShared::Confined(reason));
    }
    // The engine's process must not become a child of this one, which an AI client may end with all of its children.
    set_child_subreaper(false)?;
    match try_connect(files, settings, policy).await {
        Ok(client) => Ok(client),
        Err(reason) => {
            set_child_subreaper(true)?;
            Err(reason)
        }
    }
}

async fn try_connect(files: &Files, settings: &Settings, policy: &Policy) -> Result<ThinProcess, NotShared> {
    let process = EngineProcess::new(files, settings, policy)?;
    let connecting = process.clone();
    let log = LogFile::new().map(|log| format!("The log of the service is {}.", log.path().display()));
    let remote = RemoteEngineSettings {
        connect: Box::new(move |source| {
            let connecting = connecting.clone().connect(source);
            Box::pin(async { connecting.await.map_err(|error| RemoteEngineError::Unavailable(error.into())) })
        }),
        advice: log.unwrap_or_default(),
    };
    let client = ThinProcess::connect(remote).await?;
    process.forget_initial_setup();
    Ok(client)
}

impl ThinProcess {
    /// Connects to an engine in another process.
    ///
    /// # Errors
    /// Why there is no such engine, or why it refuses this process.
    pub(super) async fn connect(remote: RemoteEngineSettings) -> Result<Self, RemoteEngineError> {
        let lifecycle = Lifecycle::new(std::time::Duration::ZERO);
        let engine = EngineClient::connect_remote(remote, lifecycle.closing().clone()).await?;
        Ok(Self { engine, lifecycle })
    }

    /// Serves the AI client on standard input and output until it disconnects, or a signal stops the process.
    pub(super) async fn serve(self, answers: AnswerSettings) -> ExitCode {
        let Self { engine, lifecycle } = self;
        end_on_signal(&lifecycle, false);
        tokio::spawn(explain_hangup());
        tokio::spawn(release_after_start());
        let closing = lifecycle.closing().clone();
        match front::serve_stdio(engine, answers, closing.clone()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => print_error(&error, UNAVAILABLE),
        }
    }
}

/// SIGHUP reloads the configuration of an engine. This process has none, and must not end.
async fn explain_hangup() {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        tracing::warn!("the configuration is loaded by the shared engine: use `lockhouse reload`");
    }
}
