//! Finds the process of the engine that clients with this setup share, and starts it if there is none.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_config::{Configuration, Files, Settings, Setup, SetupError};
use lockhouse_link::{EngineSocket, EngineSource};
use lockhouse_policies::Policy;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::cli::engine_socket::{READY, TAKEN, activated_socket_path, connect, directory, socket_path};

/// Maximum time from the start of the engine's process until it accepts clients.
/// Bound: engines and fronts.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two attempts to connect to an engine that another client has started, and the number of attempts
/// before this process tries to start one: the other one may have ended.
const RETRY_EVERY: Duration = Duration::from_millis(20);
const RETRIES: usize = 25;
/// Maximum length of what the engine's process reports, in bytes.
const REPORT_BYTES_MAX: u64 = 4 * 1024;

/// Where the engine is found, and how it is started.
#[derive(Clone)]
pub(super) struct EngineProcess {
    files: Files,
    /// The program file of this process, as it was called at the start. After an update, another build is at this path.
    program: PathBuf,
    /// The setup at the start of this process, until the first connection. `None` if it must be determined again.
    initial: Arc<Mutex<Option<Setup>>>,
}

/// Why there is no connection to the engine's process, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli::serve) enum EngineProcessError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("the configuration or policy is not valid, see `lockhouse config check`: {0}")]
    InvalidConfiguration(String),
    #[error("the configuration says that clients share no engine; restart this MCP server in your AI client")]
    NotShared,
    #[error("there is no state directory for its socket")]
    NoDirectory,
    #[error("the shared Lockhouse service does not start within {} s", START_TIMEOUT.as_secs())]
    StartTimeout,
    #[error("the shared Lockhouse service cannot be started: {0}")]
    CannotStart(std::io::Error),
    #[error("the shared Lockhouse service ended while it started")]
    Ended,
    /// The process reported the reason.
    #[error("the shared Lockhouse service did not start: {0}")]
    DidNotStart(String),
}

impl EngineProcess {
    /// Prepares the connections of a process with these settings and this policy, which come from `files`.
    pub(super) fn new(
        files: &Files,
        settings: &Settings,
        policy: &Policy,
    ) -> Result<Self, EngineProcessError> {
        let program = std::env::current_exe()?;
        let mut paths = files.config.iter().chain(&files.policy).chain(&files.servers);
        // Settings that were loaded from relative paths contain these paths, and the engine gets absolute ones.
        let initial = match paths.all(|path| path.is_absolute()) {
            true => Some(settings.setup(files, policy, &program)?),
            false => None,
        };
        let files = files.absolute()?;
        Ok(Self { files, program, initial: Arc::new(Mutex::new(initial)) })
    }

    /// Reads the configuration and the policy again for each further connection, since they may have changed.
    pub(super) fn forget_initial_setup(&self) {
        *self.initial.lock() = None;
    }

    /// Connects to an engine whose setup equals that of the current configuration, policy and environment.
    pub(super) async fn connect(self, source: EngineSource) -> Result<EngineSocket, EngineProcessError> {
        match source {
            EngineSource::Activated => {
                let stream = connect(&activated_socket_path()).await?;
                Ok(EngineSocket { stream, setup: Some(self.setup()?.digest) })
            }
            EngineSource::OnDemand => {
                let setup = self.setup()?;
                let stream = self.find_or_start(&setup).await?;
                Ok(EngineSocket { stream, setup: Some(setup.digest) })
            }
        }
    }

    fn setup(&self) -> Result<Setup, EngineProcessError> {
        if let Some(initial) = self.initial.lock().clone() {
            return Ok(initial);
        }
        let loaded = Configuration::load(&self.files);
        let Configuration { settings, policy, .. } =
            loaded.map_err(|error| EngineProcessError::InvalidConfiguration(error.without_excerpts()))?;
        if !settings.shares_engine() {
            return Err(EngineProcessError::NotShared);
        }
        Ok(settings.setup(&self.files, &policy, &self.program)?)
    }

    async fn find_or_start(&self, setup: &Setup) -> Result<Stream, EngineProcessError> {
        let directory = directory().ok_or(EngineProcessError::NoDirectory)?;
        let path = socket_path(&directory, &setup.digest);
        if let Ok(stream) = connect(&path).await {
            return Ok(stream);
        }
        let connected = timeout(START_TIMEOUT, self.start_and_connect(setup, &path)).await;
        connected.unwrap_or(Err(EngineProcessError::StartTimeout))
    }

    async fn start_and_connect(&self, setup: &Setup, path: &Path) -> Result<Stream, EngineProcessError> {
        loop {
            let report = self.start(setup).await.map_err(EngineProcessError::CannotStart)?;
            match report.trim() {
                READY => return Ok(connect(path).await?),
                TAKEN => {
                    if let Some(stream) = wait_for_other(path).await {
                        return Ok(stream);
                    }
                }
                "" => return Err(EngineProcessError::Ended),
                reason => return Err(EngineProcessError::DidNotStart(reason.to_owned())),
            }
        }
    }

    /// Starts the process, and returns what it reports.
    async fn start(&self, setup: &Setup) -> std::io::Result<String> {
        let expose = self.files.expose.as_str();
        let mut command = Command::new(&self.program);
        command.arg("engine").arg("--detach").args(["--setup", &setup.digest, "--expose", expose]);
        for (option, value) in self.files.options() {
            command.arg(option).arg(value);
        }
        command.env_clear().envs(setup.variables.iter().cloned()).current_dir(&setup.directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The command starts the engine's process and ends at once; the engine's process has the other end of the pipe.
        let mut child = command.spawn()?;
        let stdout = child.stdout.take();
        child.wait().await?;
        let mut report = String::new();
        if let Some(stdout) = stdout {
            stdout.take(REPORT_BYTES_MAX).read_to_string(&mut report).await?;
        }
        Ok(report)
    }
}

/// Waits until an engine accepts clients that another process has started. Returns `None` if it does not within half a
/// second.
async fn wait_for_other(path: &Path) -> Option<Stream> {
    for _ in 0..RETRIES {
        sleep(RETRY_EVERY).await;
        if let Ok(stream) = connect(path).await {
            return Some(stream);
        }
    }
    None
}
