//! Runs other commands of this program for the page. They load the configuration with its secrets, and end with their
//! answer, so this process never has secrets.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lockhouse_page::{ActionError, ErrorCode};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::cli::terminal::sanitize_lines;
use crate::config::Files;

/// Maximum number of commands at one time. Further ones wait.
const COMMANDS_MAX: usize = 2;
/// Maximum bytes of the output of a command.
const OUTPUT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum bytes of the error output of a command that are shown.
const ERROR_BYTES_MAX: u64 = 4 * 1024;

/// Runs commands with the configuration files of this command.
pub(super) struct Commands {
    program: PathBuf,
    /// The options that name the configuration files.
    files: Vec<OsString>,
    permits: Semaphore,
}

/// The output of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// The exit status; `None` if a signal ended the command.
    pub(super) status: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Commands {
    pub(super) fn new(files: &Files) -> std::io::Result<Self> {
        let files = files.options().flat_map(|(option, value)| [option.into(), value.into_os_string()]);
        let files = files.collect();
        Ok(Self { program: std::env::current_exe()?, files, permits: Semaphore::new(COMMANDS_MAX) })
    }

    /// Runs a command of this program. `operands` are never taken for options.
    ///
    /// # Errors
    /// [`ErrorCode::Failed`] if the command cannot be started, or does not end in time: it is then killed.
    pub(super) async fn run(
        &self,
        arguments: &[&str],
        operands: &[&str],
        timeout: Duration,
    ) -> Result<CommandOutput, ActionError> {
        let failed = |reason: String| {
            let words = arguments.join(" ");
            ActionError::new(ErrorCode::Failed, format!("`lockhouse {words}` failed: {reason}"))
        };
        let running = async {
            let _permit = self.permits.acquire().await.map_err(|error| failed(error.to_string()))?;
            let mut command = Command::new(&self.program);
            command.args(arguments).args(&self.files).arg("--").args(operands);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
            let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
            let stdout = read(child.stdout.take(), OUTPUT_BYTES_MAX);
            let stderr = read(child.stderr.take(), ERROR_BYTES_MAX);
            let (stdout, stderr) = tokio::join!(stdout, stderr);
            let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
            let stdout = stdout
                .ok_or_else(|| failed("its output is too long for the page: run it yourself".into()))?;
            let stderr = stderr.unwrap_or_default();
            Ok(CommandOutput { status: status.code(), stdout, stderr: sanitize_lines(stderr.trim()) })
        };
        let elapsed = |_| failed(format!("it did not end within {} s", timeout.as_secs()));
        tokio::time::timeout(timeout, running).await.unwrap_or_else(|error| Err(elapsed(error)))
    }
}

impl CommandOutput {
    /// Returns the output as JSON.
    ///
    /// # Errors
    /// [`ErrorCode::Failed`] with the error output of the command if its output is not JSON.
    pub(super) fn json(&self) -> Result<Value, ActionError> {
        serde_json::from_str(&self.stdout).map_err(|_| self.to_error(ErrorCode::Failed))
    }

    /// Returns an error with the error output of the command.
    pub(super) fn to_error(&self, code: ErrorCode) -> ActionError {
        let message = self.stderr.strip_prefix("lockhouse: ").unwrap_or(&self.stderr);
        ActionError::new(
            code,
            if message.is_empty() { "the command failed without a message" } else { message },
        )
    }
}

/// Reads the output of a command. Beyond `bytes_max`, the output is read and dropped, and `None` is returned.
async fn read(from: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> Option<String> {
    let mut from = from?;
    let mut bytes = Vec::new();
    (&mut from).take(bytes_max).read_to_end(&mut bytes).await.ok()?;
    let rest = tokio::io::copy(&mut from, &mut tokio::io::sink()).await.unwrap_or(0);
    (rest == 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
