//! Runs `lockhouse page-action` for actions that need the configuration with its secrets, or take long.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lockhouse_page::{Action, ActionError, ErrorCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use lockhouse_config::Files;

/// Maximum number of processes at one time. Further actions wait.
const PROCESSES_MAX: usize = 2;
/// Maximum bytes of a result.
const RESULT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Runs the processes, with the configuration files of this command.
pub(super) struct ActionProcesses {
    program: PathBuf,
    /// The options that name the configuration files.
    files: Vec<OsString>,
    permits: Semaphore,
}

impl ActionProcesses {
    pub(super) fn new(files: &Files) -> io::Result<Self> {
        let files = files.options().flat_map(|(option, value)| [option.into(), value.into_os_string()]);
        let files = files.collect();
        Ok(Self { program: std::env::current_exe()?, files, permits: Semaphore::new(PROCESSES_MAX) })
    }

    /// Carries out an action in a process of its own.
    ///
    /// # Errors
    /// The error of the action, or [`ErrorCode::Failed`] if the process does not end in time: it is then killed.
    pub(super) async fn run(&self, action: &Action) -> Result<Value, ActionError> {
        let timeout = timeout(action);
        let elapsed = || io::Error::other(format!("it did not end within {} s", timeout.as_secs()));
        let result = tokio::time::timeout(timeout, self.exchange(action)).await;
        let result = result
            .unwrap_or_else(|_| Err(elapsed()))
            .map_err(|error| ActionError::new(ErrorCode::Failed, format!("the action failed: {error}")))?;
        let no_result = || ActionError::new(ErrorCode::Failed, "the command failed without a message");
        serde_json::from_slice(&result).unwrap_or_else(|_| Err(no_result()))
    }

    /// Returns what the process writes to its standard output.
    async fn exchange(&self, action: &Action) -> io::Result<Vec<u8>> {
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let mut command = Command::new(&self.program);
        command.arg("page-action").args(&self.files).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut result = Vec::new();
        if let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
            stdin.write_all(&serde_json::to_vec(action)?).await?;
            drop(stdin);
            stdout.take(RESULT_BYTES_MAX + 1).read_to_end(&mut result).await?;
        }
        if result.len() as u64 > RESULT_BYTES_MAX {
            return Err(io::Error::other("its output is too long for the page: run it yourself"));
        }
        child.wait().await?;
        Ok(result)
    }
}

/// Returns the maximum time of an action.
fn timeout(action: &Action) -> Duration {
    Duration::from_secs(match action {
        Action::PreviewPolicy { .. } | Action::ApplyPolicy { .. } => 20,
        Action::VerifyAudit {} => 120,
        _ => 90,
    })
}
